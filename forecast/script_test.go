package forecast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/scripttest"
	"github.com/springtide/springtide/internal/series"
	"github.com/springtide/springtide/portrait"
)

// TestScripts forecasts from a history that is described as for [scripttest.History]:
//
//	late DURATION                   is asked that long after its last sample
//	festival FACTOR FROM TO         an approved plan multiplies the load, in hours from now
//	ask HOUR...                     the hours from now of which is told
func TestScripts(t *testing.T) { scripttest.Run(t, ask) }

func ask(t *testing.T, lines [][]string) string {
	t.Helper()
	h := scripttest.History{}
	var late time.Duration
	var lifts [][3]float64
	var hours []int
	for _, line := range lines {
		ok, err := h.Do(line)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case ok:
		case line[0] == "late" && len(line) == 2:
			late = scripttest.Duration(t, line[1])
		case line[0] == "festival" && len(line) == 4:
			var v [3]float64
			for i, word := range line[1:] {
				v[i] = scripttest.Float(t, word)
			}
			lifts = append(lifts, v)
		case line[0] == "ask":
			for _, word := range line[1:] {
				hours = append(hours, scripttest.Int(t, word))
			}
		default:
			t.Fatalf("unknown words %q", line)
		}
	}
	p := portrait.Fold(portrait.Portrait{Service: "shop/cart"}, portrait.Batch{Load: h.Series}, portrait.Options{})
	now := h.End().Add(late)
	in := func(hours float64) time.Time { return now.Add(time.Duration(hours * float64(time.Hour))) }
	var festivals []fleet.Festival
	for i, l := range lifts {
		festivals = append(festivals, fleet.Festival{ID: fmt.Sprint("f", i), Start: in(l[1]), End: in(l[2]), Approved: true,
			Lifts: []fleet.Lift{{Service: "shop/cart", Factor: l[0]}}})
	}
	d := Project(p, series.Series{}, festivals, now, Options{Quantiles: []float64{0.5, 0.9}, Horizon: 14 * 24 * time.Hour})
	var b strings.Builder
	fmt.Fprintf(&b, "%s, trusted: %v", d.Model, d.Trusted)
	if d.Note != "" {
		fmt.Fprintf(&b, "; %s", d.Note)
	}
	b.WriteString("\n")
	for _, n := range hours {
		j := n * int(time.Hour/d.Step)
		fmt.Fprintf(&b, "in %d h: %s, nine times in ten below %s\n", n, scripttest.Short(d.Paths[0][j]), scripttest.Short(d.Paths[1][j]))
	}
	return b.String()
}
