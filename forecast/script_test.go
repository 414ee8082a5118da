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
func TestScripts(t *testing.T) { scripttest.Run(t, newScript) }

func newScript(*testing.T) scripttest.Script {
	h := scripttest.History{}
	var late time.Duration
	var hours []int
	line := func(f scripttest.Line) bool {
		switch f[0] {
		case "late":
			late = f.Duration(1)
		case "ask":
			for i := 1; f.Has(i); i++ {
				hours = append(hours, f.Int(i))
			}
		default:
			return h.Do(f)
		}
		return true
	}
	return scripttest.Script{Line: line, Out: func() string {
		p := portrait.Fold(portrait.Portrait{Service: "shop/cart"}, portrait.Batch{Load: h.Series}, portrait.Options{})
		d := Project(p, h.End().Add(late), Options{Quantiles: []float64{0.5, 0.9}, Horizon: 14 * 24 * time.Hour})
		return forecastText(&d, hours)
	}}
}

// forecastText writes what a tide says of some hours from now.
func forecastText(d *Tide, hours []int) string {
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
