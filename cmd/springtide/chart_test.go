package main

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/springtide/springtide/sim"
)

var (
	svgs        = regexp.MustCompile(`(?s)<svg viewBox="0 0 ([\d.]+) ([\d.]+)".*?</svg>`)
	chartPoints = regexp.MustCompile(`[ML](-?[\d.e+]+) (-?[\d.e+]+)`)
	chartLabels = regexp.MustCompile(`<text x="(-?[\d.]+)" y="(-?[\d.]+)"([^>]*)>([^<]*)</text>`)
)

// withinChart fails where a point or a label of a page's charts is beyond its edge: it would be cut off. A letter is 7 pixels at most.
func withinChart(t *testing.T, page string) {
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

func TestTicksAreRound(t *testing.T) {
	for _, c := range []struct {
		low, top float64
		want     string
	}{{0, 1, "0 0.5 1.0 1.5"}, {0, 97, "0 50 100 150"}, {0, 4, "0 1 2 3 4 5"}, {0, 0.013, "0 0.005 0.010 0.015"}, {0, 123456, "0 50k 100k 150k"}, {-30, 70, "-50 0 50 100"}, {0, 3e6, "0 1M 2M 3M 4M"}, {0, 0, "0 0.5 1.0 1.5"}} {
		f := newFrame(chartHigh, "", "")
		f.scaled(10, c.low, c.top)
		var got []string
		for _, x := range f.YTicks {
			got = append(got, x.Text)
			if x.At < f.Top-0.01 || x.At > f.Bottom+0.01 {
				t.Errorf("%v to %v: the tick %s is at %v, beyond the axis", c.low, c.top, x.Text, x.At)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v to %v: %v, want %s", c.low, c.top, got, c.want)
		}
	}
}

// Each policy has a colour of its own, apart from all others for the eye: the distance in CIELAB is 20 and more, where 2 can just be seen.
func TestColoursAreDistinct(t *testing.T) {
	used := map[string]string{}
	for _, p := range sim.Policies() {
		c := policyColors[p]
		if c == "" || used[c] != "" {
			t.Errorf("%s has the colour %q of %q", p, c, used[c])
		}
		used[c] = p
	}
	for i, a := range palette {
		for _, b := range palette[:i] {
			if d := colourDistance(t, a, b); d < 20 {
				t.Errorf("%s and %s are %.0f apart", a, b, d)
			}
		}
	}
}

func colourDistance(t *testing.T, a, b string) float64 {
	x, y := lab(t, a), lab(t, b)
	return math.Sqrt((x[0]-y[0])*(x[0]-y[0]) + (x[1]-y[1])*(x[1]-y[1]) + (x[2]-y[2])*(x[2]-y[2]))
}

// lab are the coordinates of a colour in CIELAB under D65.
func lab(t *testing.T, hex string) [3]float64 {
	n, err := strconv.ParseUint(hex[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift int) float64 {
		v := float64(n>>shift&255) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	r, g, b := linear(16), linear(8), linear(0)
	f := func(v float64) float64 {
		if v > 0.008856 {
			return math.Cbrt(v)
		}
		return 7.787*v + 16.0/116
	}
	x, y, z := f((0.4124*r+0.3576*g+0.1805*b)/0.9505), f(0.2126*r+0.7152*g+0.0722*b), f((0.0193*r+0.1192*g+0.9505*b)/1.089)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func TestVerdict(t *testing.T) {
	row := func(policy, lender string, target, cost float64, minutes int, byDefault bool) sim.Result {
		return sim.Result{Policy: policy, Lender: lender, Target: target, Default: byDefault, OnlineCoreHours: cost, SLOViolationMinutes: minutes, Classes: map[string]sim.Class{}}
	}
	hpa := row(sim.HPA, sim.LendNone, 60, 100, 97, true)
	ours := func(target, cost float64, minutes int, byDefault bool) sim.Result {
		return row(sim.Springtide, sim.LendNone, target, cost, minutes, byDefault)
	}
	for _, c := range []struct {
		name          string
		rows          []sim.Result
		verdict, hint string
	}{
		{"better", []sim.Result{hpa, ours(95, 91, 20, true), ours(99, 100, 12, false)}, "at HPA's cost: 12 SLO minutes instead of 97; 9 % cheaper by default, with 20 SLO minutes instead of 97.", ""},
		{"ends below", []sim.Result{hpa, ours(95, 80, 1, true)}, "Springtide's curve does not reach HPA's cost of 100 core-hours: its dearest target costs 80 and leaves 1 SLO minute; 20 % cheaper by default, with 1 SLO minute instead of 97.", ""},
		{"begins above, and another target is not better", []sim.Result{hpa, ours(95, 130, 5, true), ours(80, 120, 30, false)},
			"Springtide's curve does not reach HPA's cost of 100 core-hours: its cheapest target costs 120 and leaves 30 SLO minutes; 30 % dearer by default, with 5 SLO minutes instead of 97.",
			"On this fleet no spec.forecastPercent that was played beats HPA in both minutes and cost. The rows show what each minute costs."},
		{"another target is better", []sim.Result{hpa, ours(95, 130, 5, true), ours(90, 99, 50, false), ours(80, 70, 96, false)},
			"at HPA's cost: 49 SLO minutes instead of 97; 30 % dearer by default, with 5 SLO minutes instead of 97.",
			"On this fleet the default does not beat HPA. spec.forecastPercent: 90 does: 50 SLO minutes and 99 core-hours, HPA has 97 and 100."},
		{"no sweep", []sim.Result{hpa, ours(95, 130, 5, true)},
			"Springtide's curve does not reach HPA's cost of 100 core-hours: its cheapest target costs 130 and leaves 5 SLO minutes; 30 % dearer by default, with 5 SLO minutes instead of 97.",
			"On this fleet the default does not beat HPA. Play --policies springtide,hpa to see which spec.forecastPercent would."},
		{"HPA was not played", []sim.Result{ours(95, 80, 1, true)}, "", ""},
	} {
		if got := fleetVerdict(c.rows); got != c.verdict {
			t.Errorf("%s: %q, want %q", c.name, got, c.verdict)
		}
		if got := hint(c.rows); got != c.hint {
			t.Errorf("%s: the hint is %q, want %q", c.name, got, c.hint)
		}
	}
}
