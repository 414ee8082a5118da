package portrait

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/series"
)

// live is what a controller reads: a history, and the moments and start-ups of now. Each lies by a factor while the source does.
type live struct {
	Batch
	from, to time.Time
	factor   float64
	// bySource says that the source lies, about any time; else what was scraped is wrong, and stays wrong.
	bySource bool
}

// at is what is read at a time of history since another.
func (l *live) at(since, now time.Time) Batch {
	cut := func(s series.Series) series.Series {
		from, end := max(0, s.Index(since)), s.Index(now)
		out := series.Series{Start: s.Time(from), Step: s.Step, Values: append([]float64(nil), s.Values[from:end]...)}
		for i := range out.Values {
			when := out.Time(i)
			if l.bySource {
				when = now
			}
			if l.lies(when) {
				out.Values[i] *= l.factor
			}
		}
		return out
	}
	b := Batch{Load: cut(l.Load), CPU: cut(l.CPU), Ready: cut(l.Ready), Memory: cut(l.Memory), PodsReady: l.PodsReady}
	for i := range b.Ready.Values {
		b.Ready.Values[i] = 10
	}
	for at := since.Add(-defaultStep); at.Before(now); at = at.Add(15 * time.Second) {
		y := l.Load.At(at)
		if l.lies(at) {
			y *= l.factor
		}
		b.Moments = append(b.Moments, Moment{At: at, Load: y})
	}
	took, when := 30*time.Second, now
	if !l.bySource {
		when = now.Add(-defaultStep) // as the newest step has it
	}
	if l.lies(when) {
		took = time.Duration(float64(took) * l.factor)
	}
	b.StartUps = []time.Duration{took}
	return b
}

func (l *live) lies(at time.Time) bool { return l.factor > 0 && !at.Before(l.from) && at.Before(l.to) }

// Whatever stands next to the load is learned by the load's own door: a step that was in doubt leaves nothing in the
// ripple, the costs, the usage or the start-ups, whether the source lied about it or the lie stays in its history.
func TestADoubtedStepTeachesNothing(t *testing.T) {
	t.Parallel()
	b, fall := fallen(0, nil, nil)
	b.Memory = series.New(b.Load.Start, defaultStep, b.Load.Len())
	for i := range b.Memory.Values {
		b.Memory.Values[i] = 2e9
	}
	history := live{Batch: b}
	before := Fold(Portrait{}, history.at(b.Load.Start, fall.Add(-2*time.Hour)), Options{})
	run := func(l live) Portrait {
		p := before
		for at := p.End.Add(defaultStep); !at.After(fall.Add(2 * time.Hour)); at = at.Add(defaultStep) {
			p = Fold(p, l.at(p.End, at), Options{})
		}
		return p
	}
	honest := run(history)
	for _, factor := range []float64{0.01, 0.1, 0.3} {
		for _, bySource := range []bool{true, false} {
			l := live{Batch: b, from: fall.Add(2 * time.Minute), to: fall.Add(17 * time.Minute), factor: factor, bySource: bySource}
			p := run(l)
			name := fmt.Sprintf("x%g, by the source %v", factor, bySource)
			if got, want := p.Ripple.Deviation(), honest.Ripple.Deviation(); math.Abs(got-want) > 0.01 {
				t.Errorf("%s: ripple %.3f, without it %.3f", name, got, want)
			}
			if got, want := p.CPUPerLoad.Value, honest.CPUPerLoad.Value; math.Abs(got/want-1) > 0.01 {
				t.Errorf("%s: cost %.5f, without it %.5f", name, got, want)
			}
			least := func(h *Histogram, o bucketing) float64 {
				q, _ := h.percentiles(o, 0.0001)
				return q[0]
			}
			if got, want := least(&p.Usage.CPU, cpuBuckets), least(&honest.Usage.CPU, cpuBuckets); math.Abs(got/want-1) > 0.06 {
				t.Errorf("%s: least usage %.3f cores, without it %.3f", name, got, want)
			}
			for _, d := range p.StartUpTimes {
				if d != 30*time.Second {
					t.Errorf("%s: a start-up of %s was learned", name, d)
				}
			}
		}
	}
}
