// Package charttest judges pages of charts: nothing lies beyond an edge, and a browser shows all of it. Tests alone import it.
package charttest

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	svgs        = regexp.MustCompile(`(?s)<svg viewBox="0 0 ([\d.]+) ([\d.]+)".*?</svg>`)
	chartPoints = regexp.MustCompile(`[ML](-?[\d.e+]+) (-?[\d.e+]+)`)
	chartLabels = regexp.MustCompile(`<text x="(-?[\d.]+)" y="(-?[\d.]+)"([^>]*)>([^<]*)</text>`)
)

// Within fails where a point or a label of a page's charts is beyond its edge: it would be cut off. A letter is 7 pixels at most.
func Within(t *testing.T, page string) {
	t.Helper()
	all := svgs.FindAllStringSubmatch(page, -1)
	if len(all) == 0 {
		t.Error("no chart was found")
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, svg := range all {
		wide, high := number(svg[1]), number(svg[2])
		for _, p := range chartPoints.FindAllStringSubmatch(svg[0], -1) {
			if x, y := number(p[1]), number(p[2]); x < 0 || x > wide || y < 0 || y > high {
				t.Errorf("the point %s %s is beyond %g x %g", p[1], p[2], wide, high)
			}
		}
		ticks := 0
		for _, l := range chartLabels.FindAllStringSubmatch(svg[0], -1) {
			x, y, length := number(l[1]), number(l[2]), 7*float64(len([]rune(l[4])))
			left := x
			switch {
			case strings.Contains(l[3], `"end"`):
				left = x - 6 - length
			case strings.Contains(l[3], `"middle"`):
				left = x - length/2
			}
			if left < 0 || left+length > wide || y < 8 || y > high {
				t.Errorf("the label %q at %g %g is beyond %g x %g", l[4], x, y, wide, high)
			}
			ticks++
		}
		if ticks < 6 {
			t.Errorf("a chart has %d labels: axes have ticks and titles", ticks)
		}
	}
}
