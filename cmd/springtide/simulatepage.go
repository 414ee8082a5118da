package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/springtide/springtide/sim"
)

//go:embed simulate.html
var simulateHTML string

var simulateTemplate = template.Must(template.New("simulate").Parse(simulateHTML))

// policyColors are those of the curves, in the order of the policies.
var policyColors = []string{"#9f6b53", "#d9730d", "#cb912f", "#448361", "#787774", "#9065b0", "#c14c8a", "#5b5fc7", "#6bb3c9", "#0b6e99", "#111111", "#999999"}

// curvePlot is one cost–SLO plot, in pixels.
type curvePlot struct {
	Title      string
	Wide, High float64
	Lines      []curveLine
	XTicks     []axisTick
	YTicks     []axisTick
}

type curveLine struct {
	Policy, Color, Path string
	Dots                []curveDot
}

type curveDot struct {
	X, Y   float64
	Filled bool
	Label  string
}

type axisTick struct {
	At   float64
	Text string
}

// fleetPlot is the fleet over time under one row.
type fleetPlot struct {
	Title                string
	Wide, High           float64
	Online, Lent, Demand string
	Used                 string
	Days                 []axisTick
}

// simulatePart is what a page shows of one seed.
type simulatePart struct {
	Seed   uint64
	Rows   [][]string
	Equal  [][]string
	Curves []curvePlot
	Fleets []fleetPlot
}

// writeSimulatePage writes one page that needs nothing else.
func writeSimulatePage(w io.Writer, r *simulateReport) error {
	page := struct {
		Report *simulateReport
		Head   []string
		Parts  []simulatePart
	}{Report: r, Head: simulateHead()}
	for _, seed := range r.seeds() {
		all := r.of(seed)
		part := simulatePart{Seed: seed, Equal: equalCost(all)}
		for i := range all {
			part.Rows = append(part.Rows, simulateRow(&all[i], all))
			if all[i].Lender != sim.LendNone && len(all[i].Timeline) > 0 {
				part.Fleets = append(part.Fleets, drawFleet(&all[i], r))
			}
		}
		for _, c := range []struct{ title, class string }{{"All services", ""}, {"Calm services", sim.Calm}, {"Bursty services", sim.Bursty}} {
			if p, ok := drawCurves(all, c.title, c.class); ok {
				part.Curves = append(part.Curves, p)
			}
		}
		page.Parts = append(page.Parts, part)
	}
	return simulateTemplate.Execute(w, page)
}

// drawCurves draws the violations of every policy over its cost, on a logarithmic axis with room for zero.
func drawCurves(all []sim.Result, title, class string) (curvePlot, bool) {
	const high, margin = 2 * chartHigh, 40.0
	p := curvePlot{Title: title, Wide: chartWide, High: high}
	low, top, most := math.Inf(1), 0.0, 1.0
	curves := map[string][]sim.Point{}
	for _, name := range sim.Policies() {
		curves[name] = sim.Curve(all, name, class)
		for _, c := range curves[name] {
			low, top, most = min(low, c.OnlineCoreHours), max(top, c.OnlineCoreHours), max(most, c.Minutes)
		}
	}
	if !(top > low) {
		return p, false // a single row is no curve
	}
	x := func(v float64) float64 { return margin + (chartWide-2*margin)*(v-low)/(top-low) }
	y := func(v float64) float64 { return high - margin - (high-2*margin)*math.Log1p(v)/math.Log1p(most) }
	for i, name := range sim.Policies() {
		if len(curves[name]) == 0 {
			continue
		}
		l := curveLine{Policy: name, Color: policyColors[i]}
		pen := "M"
		for _, c := range curves[name] {
			l.Path += fmt.Sprintf("%s%s %s", pen, pixel(x(c.OnlineCoreHours)), pixel(y(c.Minutes)))
			pen = "L"
			l.Dots = append(l.Dots, curveDot{X: x(c.OnlineCoreHours), Y: y(c.Minutes), Filled: c.Default,
				Label: strings.TrimSpace(fmt.Sprintf("%s %s %g: %.0f minutes, %.0f core-hours", name, c.Knob, c.Target, c.Minutes, c.OnlineCoreHours))})
		}
		p.Lines = append(p.Lines, l)
	}
	for k := range 5 {
		v := low + (top-low)*float64(k)/4
		p.XTicks = append(p.XTicks, axisTick{x(v), whole(v)})
	}
	for v := 0.0; v <= most; v = max(10*v, 1) {
		p.YTicks = append(p.YTicks, axisTick{y(v), whole(v)})
	}
	return p, true
}

// drawFleet draws what online and offline hold over time, stacked, with what the load needs and what is used.
func drawFleet(r *sim.Result, report *simulateReport) fleetPlot {
	m := r.Timeline
	top := 1.0
	for i := range m {
		top = max(top, m[i].Online+m[i].Lent)
	}
	s := scaleTo{low: 0, high: top * chartHeadroom, steps: float64(max(1, len(m)-1))}
	line := func(v func(sim.Moment) float64) []float64 {
		out := make([]float64, len(m))
		for i := range m {
			out[i] = v(m[i])
		}
		return out
	}
	online, both := line(func(m sim.Moment) float64 { return m.Online }), line(func(m sim.Moment) float64 { return m.Online + m.Lent })
	p := fleetPlot{Title: fmt.Sprintf("%s with %s", r.Policy, r.Lender), Wide: chartWide, High: chartHigh, Online: s.area(online, make([]float64, len(m))),
		Lent: s.area(both, online), Demand: s.path(line(func(m sim.Moment) float64 { return m.Demand }), 0), Used: s.path(line(func(m sim.Moment) float64 { return m.Used }), 0)}
	for d := 1; float64(d) < report.Days; d++ {
		p.Days = append(p.Days, axisTick{chartWide * float64(d) / report.Days, fmt.Sprintf("day %d", d+1)})
	}
	return p
}

// area is the band between two lines.
func (s scaleTo) area(upper, lower []float64) string {
	var b strings.Builder
	b.WriteString(s.path(upper, 0))
	for i, v := range slices.Backward(lower) {
		fmt.Fprintf(&b, "L%s %s", pixel(s.x(i)), pixel(s.y(v)))
	}
	return b.String() + "Z"
}
