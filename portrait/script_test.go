package portrait

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/scripttest"
	"github.com/springtide/springtide/series"
)

// TestScripts paints the portrait of a history that is described as for [scripttest.History], and of
//
//	cpu PER IDLE REPLICAS    what a unit of load costs in cores, and each of some replicas when idle
//	starts DURATION...       observed times to Ready
//	unmeasured               no requests: the load above is cores in use
func TestScripts(t *testing.T) { scripttest.Run(t, newScript) }

func newScript(*testing.T) scripttest.Script {
	h := scripttest.History{}
	var b Batch
	unmeasured := false
	line := func(f scripttest.Line) bool {
		switch f[0] {
		case "cpu":
			costs(&b, &h, f.Float(1), f.Float(2), f.Float(3))
		case "starts":
			for i := 1; f.Has(i); i++ {
				b.StartUps = append(b.StartUps, f.Duration(i))
			}
		case "unmeasured":
			unmeasured = true
		default:
			return h.Do(f)
		}
		return true
	}
	return scripttest.Script{Line: line, Out: func() string {
		if b.Load = h.Series; unmeasured {
			b.Load, b.CPU = series.Series{}, h.Series
		}
		p := Fold(Portrait{Service: "shop/cart"}, b, Options{})
		return tell(&p)
	}}
}

// costs gives the history so far its price in cores.
func costs(b *Batch, h *scripttest.History, per, idle, replicas float64) {
	b.CPU, b.Ready = series.New(h.Start, h.Step, h.Len()), series.New(h.Start, h.Step, h.Len())
	for i, y := range h.Values {
		b.CPU.Values[i], b.Ready.Values[i] = per*y+idle*replicas, replicas
	}
}

// tell writes a portrait as an operator would put it.
func tell(p *Portrait) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s; level %s, peak %s, usual miss %.0f %%\n", p.Signal, p.Shape.Class, scripttest.Short(p.Level), scripttest.Short(p.Peak), 100*p.Noise)
	for _, s := range p.Shape.Periods {
		fmt.Fprintf(&b, "period %v, swing %.1f\n", s.Length, s.Swing)
	}
	if s := p.Shape.Shift; !s.At.IsZero() {
		fmt.Fprintf(&b, "level times %.1f since %s\n", s.Ratio, s.At.Format(time.DateOnly))
	}
	if p.CPUPerLoad.OK {
		fmt.Fprintf(&b, "costs %s cores a unit, %s idle\n", scripttest.Short(p.CPUPerLoad.Value), scripttest.Short(p.CPUIdle.Value))
	}
	if p.StartUps > 0 {
		fmt.Fprintf(&b, "ready in %v, %v at most\n", p.StartUp[0], p.StartUp[2])
	}
	q := &p.Quality
	fmt.Fprintf(&b, "quality %.2f: %d points of %d needed, %d gaps, %d outliers, %d resets", q.Score, q.Points, q.Needed, q.Gaps, q.Outliers, q.Resets)
	if !q.ReadyAt.IsZero() {
		fmt.Fprintf(&b, "; ready at %s", q.ReadyAt.Format(time.DateTime))
	}
	if q.Note != "" {
		fmt.Fprintf(&b, "; %s", q.Note)
	}
	return b.String() + "\n"
}
