package forecast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/scripttest"
	"github.com/springtide/springtide/portrait"
)

// TestScripts forecasts from a history that is described as for [scripttest.History]:
//
//	late DURATION                   is asked that long after its last sample
//	ask HOUR...                     the hours from now to show
func TestScripts(t *testing.T) { scripttest.Run(t, ask) }

func ask(t *testing.T, lines [][]string) string {
	t.Helper()
	h := scripttest.History{}
	var late time.Duration
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
	d := Project(p, now, Options{Quantiles: []float64{0.5, 0.9}, Horizon: 14 * 24 * time.Hour})
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
