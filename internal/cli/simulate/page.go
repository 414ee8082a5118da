package simulate

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/springtide/springtide/internal/cli/chart"
	"github.com/springtide/springtide/sim"
)

//go:embed simulate.html
var simulateHTML string

var simulateTemplate = template.Must(template.Must(template.New("simulate").Parse(simulateHTML)).Parse(chart.HTML))

// serviceCharts is how many services a page draws at most, those with the most SLO minutes first.
const serviceCharts = 24

// policyColors gives each policy a colour of its own, Springtide the first.
var policyColors = func() map[string]string {
	out := map[string]string{sim.Springtide: chart.Palette[0], sim.HPA: chart.Palette[1]}
	next := 2
	for _, p := range sim.Policies() {
		if out[p] == "" {
			out[p] = chart.Palette[next]
			next++
		}
	}
	return out
}()

// curvePlot is one cost–SLO plot, in pixels.
type curvePlot struct {
	Title string
	Frame chart.Frame
	Lines []curveLine
	// Mark is where HPA's cost is.
	Mark float64
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

// fleetPlot is the fleet over time under one row.
type fleetPlot struct {
	Title                string
	Frame                chart.Frame
	Online, Lent, Demand string
	Used                 string
}

// servicePlot is one service over time: what its load needs, and what each policy had ready.
type servicePlot struct {
	Title, Note string
	Frame       chart.Frame
	Need        string
	Lines       []serviceLine
}

type serviceLine struct {
	Policy, Color, Path string
	// Breaches are the stretches that broke the SLO, drawn below the axis' top.
	Breaches string
	Minutes  int
}

// simulatePart is what a page shows of one seed.
type simulatePart struct {
	Seed          uint64
	Verdict, Hint string
	Rows          [][]string
	Equal         [][]string
	Curves        []curvePlot
	Fleets        []fleetPlot
	Services      []servicePlot
	More          int
}

// writeSimulatePage writes one page that needs nothing else.
func writeSimulatePage(w io.Writer, r *simulateReport) error {
	page := struct {
		Report *simulateReport
		Head   []string
		Parts  []simulatePart
	}{Report: r, Head: simulateHead()}
	for _, seed := range r.seeds() {
		page.Parts = append(page.Parts, r.part(seed))
	}
	return simulateTemplate.Execute(w, page)
}

func (r *simulateReport) part(seed uint64) simulatePart {
	all := r.of(seed)
	part := simulatePart{Seed: seed, Verdict: sentence(fleetVerdict(all)), Hint: hint(all), Equal: equalCost(all)}
	for i := range all {
		row := simulateRow(&all[i], all)
		for k := range row {
			row[k] = strings.ReplaceAll(row[k], " %", "\u00a0%") // no line breaks there
		}
		part.Rows = append(part.Rows, row)
		if p, ok := drawFleet(&all[i], r); ok {
			part.Fleets = append(part.Fleets, p)
		}
	}
	for _, c := range []struct{ title, class string }{{"All services", ""}, {"Calm services", sim.Calm}, {"Bursty services", sim.Bursty}} {
		if p, ok := drawCurves(all, c.title, c.class); ok {
			part.Curves = append(part.Curves, p)
		}
	}
	part.Services, part.More = drawServices(all, r)
	return part
}

// curvesOf are the curves of the policies that have one, of a class, and the bounds of their costs and minutes. A class without services or without
// any minute has nothing to draw, and where all services are of one class its plot would say the same again.
func curvesOf(all []sim.Result, class string) (curves map[string][]sim.Point, low, top, most float64) {
	low, most = math.Inf(1), 0
	curves = map[string][]sim.Point{}
	if len(all) > 0 && class != "" && (all[0].Classes[class].ServiceWeeks == 0 || all[0].Classes[sim.Calm].ServiceWeeks == 0 || all[0].Classes[sim.Bursty].ServiceWeeks == 0) {
		return curves, low, top, most
	}
	for _, name := range sim.Policies() {
		curves[name] = sim.Curve(all, name, class)
		for _, c := range curves[name] {
			low, top, most = min(low, c.OnlineCoreHours), max(top, c.OnlineCoreHours), max(most, c.Minutes)
		}
	}
	return curves, low, top, most
}

// drawCurves draws the violations of every policy over its cost, on a logarithmic axis with room for zero.
func drawCurves(all []sim.Result, title, class string) (curvePlot, bool) {
	curves, low, top, most := curvesOf(all, class)
	p := curvePlot{Title: title, Frame: chart.New(2*chart.High, "online core-hours of all services", "minutes that broke the SLO (logarithmic)")}
	if !(top > low) || most == 0 {
		return p, false // a single cost is no curve, and no minute no plot
	}
	// The axis begins and ends at round values beyond what is drawn.
	_, step := chart.Between(low, top)
	low, top = step*math.Floor(low/step), step*math.Ceil(top/step)
	ticks, step := chart.Between(low, top)
	s := chart.Scale{Frame: p.Frame, X0: low, X1: top, Top: math.Log1p(math.Pow(10, math.Ceil(math.Log10(max(most, 10)))))}
	for _, v := range ticks {
		p.Frame.XTicks = append(p.Frame.XTicks, chart.Tick{At: s.X(v), Text: chart.Round(v, step)})
	}
	for v := 0.0; math.Log1p(v) <= s.Top; v = max(10*v, 1) {
		p.Frame.YTicks = append(p.Frame.YTicks, chart.Tick{At: s.Y(math.Log1p(v)), Text: chart.Round(v, max(v, 1))})
	}
	if hpa := sim.Find(all, sim.HPA, sim.LendNone); hpa != nil {
		p.Mark = s.X(hpa.OnlineCoreHours)
	}
	for _, name := range sim.Policies() {
		if len(curves[name]) == 0 {
			continue
		}
		l := curveLine{Policy: name, Color: policyColors[name]}
		pen := "M"
		for _, c := range curves[name] {
			x, y := s.X(c.OnlineCoreHours), s.Y(math.Log1p(c.Minutes))
			l.Path += fmt.Sprintf("%s%s %s", pen, chart.Pixel(x), chart.Pixel(y))
			pen = "L"
			l.Dots = append(l.Dots, curveDot{X: x, Y: y, Filled: c.Default,
				Label: strings.TrimSpace(fmt.Sprintf("%s %s %g: %.0f minutes, %.0f core-hours", name, c.Knob, c.Target, c.Minutes, c.OnlineCoreHours))})
		}
		p.Lines = append(p.Lines, l)
	}
	return p, true
}

// days puts a tick at each day, or at each hour where there is one day or less; of long runs only every few days have one.
func days(f *chart.Frame, length float64) {
	n, every, unit, from := length, 1.0, "day", 1
	if length <= 1 {
		n, unit, from = 24*length, "hour", 0
	}
	for n/every > 14 {
		every++
	}
	for d := 0.0; d <= n; d += every {
		f.XTicks = append(f.XTicks, chart.Tick{At: f.Left + (f.Right-f.Left)*d/n, Text: fmt.Sprintf("%s %d", unit, int(d)+from)})
	}
	// A label of the end would stand beyond the chart for days, since they are numbered by their start.
	if from == 1 && len(f.XTicks) > 1 {
		f.XTicks = slices.DeleteFunc(f.XTicks, func(t chart.Tick) bool { return t.At > f.Right-1 })
	}
}

// drawFleet draws what online and offline hold over time, stacked, with what the load needs and what is used; false where nothing is lent.
func drawFleet(r *sim.Result, report *simulateReport) (fleetPlot, bool) {
	m := r.Timeline
	p := fleetPlot{Title: fmt.Sprintf("Fleet: %s with lender %s", r.Policy, r.Lender), Frame: chart.New(chart.High, "time", "cores")}
	if r.Lender == sim.LendNone || len(m) < 2 {
		return p, false
	}
	top := 0.0
	for i := range m {
		top = max(top, m[i].Online+m[i].Lent, m[i].Demand)
	}
	days(&p.Frame, report.Days)
	s := p.Frame.Scaled(float64(len(m)-1), 0, top)
	line := func(v func(sim.Moment) float64) []float64 {
		out := make([]float64, len(m))
		for i := range m {
			out[i] = v(m[i])
		}
		return out
	}
	online, both := line(func(m sim.Moment) float64 { return m.Online }), line(func(m sim.Moment) float64 { return m.Online + m.Lent })
	p.Online, p.Lent = s.Area(online, make([]float64, len(m)), 0), s.Area(both, online, 0)
	p.Demand, p.Used = s.Path(line(func(m sim.Moment) float64 { return m.Demand }), 0), s.Path(line(func(m sim.Moment) float64 { return m.Used }), 0)
	return p, top > 0
}

// drawServices draws each service under the rows that are kept over time: those with the most SLO minutes first. The number is of those left out.
func drawServices(all []sim.Result, report *simulateReport) (out []servicePlot, more int) {
	type drawn struct {
		name string
		of   []*sim.Result
		at   []*sim.ServiceResult
		bad  int
	}
	var list []drawn
	place := map[string]int{}
	for i := range all {
		for k := range all[i].Services {
			s := &all[i].Services[k]
			if len(s.Timeline) < 2 {
				continue
			}
			n, ok := place[s.Service]
			if !ok {
				n = len(list)
				place[s.Service], list = n, append(list, drawn{name: s.Service})
			}
			d := &list[n]
			d.of, d.at, d.bad = append(d.of, &all[i]), append(d.at, s), d.bad+s.SLOViolationMinutes
		}
	}
	slices.SortStableFunc(list, func(a, b drawn) int { return cmp.Or(cmp.Compare(b.bad, a.bad), cmp.Compare(a.name, b.name)) })
	for i := range list[:min(len(list), serviceCharts)] {
		out = append(out, drawService(list[i].name, list[i].of, list[i].at, report))
	}
	return out, len(list) - len(out)
}

func drawService(name string, of []*sim.Result, at []*sim.ServiceResult, report *simulateReport) servicePlot {
	p := servicePlot{Title: name, Note: at[0].Class, Frame: chart.New(chart.High, "time", "replicas")}
	need, top := make([]float64, len(at[0].Timeline)), 0.0
	for i, m := range at[0].Timeline {
		need[i] = float64(m.Need)
		top = max(top, need[i])
	}
	for _, s := range at {
		for _, m := range s.Timeline {
			top = max(top, float64(m.Ready))
		}
	}
	days(&p.Frame, report.Days)
	sc := p.Frame.Scaled(float64(len(need)-1), 0, top)
	p.Need = sc.Path(need, 0)
	for k, s := range at {
		l := serviceLine{Policy: of[k].Policy, Color: policyColors[of[k].Policy], Minutes: s.SLOViolationMinutes}
		ready := make([]float64, len(s.Timeline))
		y := p.Frame.Top + 4 + 5*float64(k)
		for i, m := range s.Timeline {
			ready[i] = float64(m.Ready)
			if m.Broken > 0 {
				l.Breaches += fmt.Sprintf("M%s %sh%s", chart.Pixel(sc.X(float64(i))), chart.Pixel(y), chart.Pixel(max(2, (p.Frame.Right-p.Frame.Left)/float64(len(s.Timeline)))))
			}
		}
		l.Path = sc.Path(ready, 0)
		p.Lines = append(p.Lines, l)
	}
	return p
}
