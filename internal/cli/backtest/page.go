package backtest

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	pure "github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/internal/backtest"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/chart"
)

//go:embed backtest.html
var backtestHTML string

var backtestTemplate = template.Must(template.Must(template.New("backtest").Parse(backtestHTML)).Parse(chart.HTML))

const (
	// chartCount is how many charts a page has at most: more would not be looked at. chartPast is how many horizons of history are drawn.
	chartCount = 60
	chartPast  = 2
)

// writeBacktestPage writes one page that needs nothing else.
func writeBacktestPage(w io.Writer, r *backtestReport, kept []backtest.Kept) error {
	page := struct {
		Report *backtestReport
		Head   []string
		Rows   [][]string
		Legend []legend
		Charts []plot
		More   int
		// Empty are the series of which nothing can be drawn.
		Empty   int
		Verdict string
		// Level is the quantile that replicas are sized by in the charts: the highest that was asked for.
		Level string
	}{Report: r, Verdict: modelsVerdict(r.Models), Head: slices.Concat([]string{"model", "forecasts"}, measureNames(r.Levels))}
	var names []string
	for i := range r.Models {
		m := &r.Models[i]
		page.Rows = append(page.Rows, slices.Concat([]string{m.Model, cell.Number(m.Pooled.Forecasts)}, measures(&m.Pooled)))
		names = append(names, m.Model)
		if i < len(chart.Palette) {
			page.Legend = append(page.Legend, legend{m.Model, chart.Palette[i]})
		}
	}
	for k := range kept {
		if n := len(kept[k].Quantiles); n > 0 {
			page.Level = fmt.Sprint(kept[k].Quantiles[n-1])
		}
		for i := range kept[k].Set.Cases {
			if len(page.Charts) == chartCount {
				page.More++
				continue
			}
			c, ok := drawCase(&kept[k], i, names)
			if !ok {
				page.Empty++
				continue
			}
			page.Charts = append(page.Charts, c)
		}
	}
	return backtestTemplate.Execute(w, page)
}

type legend struct{ Name, Color string }

// plot is one series at its newest origin, in pixels.
type plot struct {
	Series    string
	Frame     chart.Frame
	Origin    float64
	Begin, At string
	// Leaves names the models whose medians leave the chart.
	Leaves string
	Actual string
	Band   string
	Lines  []line
}

// line is the median of one model, and where replicas sized by its highest quantile would have broken the SLO.
type line struct {
	Model, Points, Color string
	Breaches             string
	Broken               int
}

// beyond is how many times as high as what came and the first model's band the axis may be: what explodes does not flatten the rest.
const beyond = 2

// drawCase draws one series; false where there is nothing to draw.
func drawCase(k *backtest.Kept, i int, names []string) (plot, bool) {
	c := &k.Set.Cases[i]
	past := c.History.Values[max(0, c.History.Len()-chartPast*len(c.Actual)):]
	first := k.Forecasts[0][i].Paths
	shown := [][]float64{past, c.Actual}
	if len(first) > 0 {
		shown = append(shown, first[0], first[len(first)-1])
	}
	low, high := bounds(math.Inf(1), math.Inf(-1), shown...)
	if low > high {
		return plot{}, false
	}
	limit := high + (beyond-1)*max(high-min(low, 0), math.Abs(high))
	out := plot{Series: c.Series, Frame: chart.New(chart.High, "UTC", "value of the series"), Begin: minuteOf(c.History.Time(c.History.Len() - len(past))), At: minuteOf(c.History.End())}
	var leave []string
	for m := range k.Forecasts {
		if m >= len(chart.Palette) {
			break
		}
		l, h := bounds(low, high, middle(k, k.Forecasts[m][i]))
		if h > limit || l < min(low, 0)-(limit-high) {
			leave = append(leave, names[m])
			continue
		}
		low, high = l, h
	}
	out.Leaves = strings.Join(leave, ", ")
	s := out.Frame.Scaled(float64(len(past)+len(c.Actual)-1), low, high)
	out.Origin, out.Actual = s.X(float64(len(past))), s.Path(append(slices.Clone(past), c.Actual...), 0)
	times(&out.Frame, c.History.Time(c.History.Len()-len(past)), c.History.Step, len(past)+len(c.Actual)-1)
	if len(first) > 0 {
		out.Band = s.Area(first[len(first)-1], first[0], len(past))
	}
	for m := range min(len(k.Forecasts), len(chart.Palette)) {
		path := s.Path(middle(k, k.Forecasts[m][i]), len(past))
		if path == "" {
			continue
		}
		l := line{Model: names[m], Points: path, Color: chart.Palette[m]}
		sized := k.Forecasts[m][i].Paths[len(k.Quantiles)-1]
		for j, v := range c.Actual {
			if v > sized[j] { // never of a gap
				l.Breaches += fmt.Sprintf("M%s %sh%s", chart.Pixel(max(out.Frame.Left, s.X(float64(len(past)+j)-0.5))), chart.Pixel(out.Frame.Top+4+5*float64(m)), chart.Pixel(max(2, s.X(0.5)-s.X(0))))
				l.Broken++
			}
		}
		out.Lines = append(out.Lines, l)
	}
	slices.Reverse(out.Lines) // the first model's on top
	return out, true
}

// bounds widens a range by values; gaps do not count.
func bounds(low, high float64, lists ...[]float64) (float64, float64) {
	for _, v := range slices.Concat(lists...) {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high
}

func minuteOf(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

// tickSteps are the times that the ticks of an axis may be apart.
var tickSteps = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 2 * 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour, 364 * 24 * time.Hour}

// times puts ticks at round times of an axis that begins at a time and has so many steps.
func times(f *chart.Frame, begin time.Time, step time.Duration, steps int) {
	length := step * time.Duration(max(steps, 1))
	every := tickSteps[len(tickSteps)-1]
	for _, t := range tickSteps {
		if length/t <= 8 {
			every = t
			break
		}
	}
	for t := begin.UTC().Truncate(every); !t.After(begin.Add(length)); t = t.Add(every) {
		if t.Before(begin) {
			continue
		}
		text := t.Format("15:04")
		if every >= 24*time.Hour || t.Equal(t.Truncate(24*time.Hour)) {
			text = t.Format("02 Jan")
		}
		f.XTicks = append(f.XTicks, chart.Tick{At: f.Left + (f.Right-f.Left)*float64(t.Sub(begin))/float64(length), Text: text})
	}
}

// modelsVerdict is one sentence on the first model next to the best of the others. Empty where there is no other, or nothing was compared.
func modelsVerdict(models []pure.ModelResult) string {
	if len(models) < 2 || models[0].Pooled.Forecasts == 0 {
		return ""
	}
	ours, best := &models[0], -1
	for i := 1; i < len(models); i++ {
		if w := float64(models[i].Pooled.WQL); !math.IsNaN(w) && (best < 0 || w < float64(models[best].Pooled.WQL)) {
			best = i
		}
	}
	mine := float64(ours.Pooled.WQL)
	if best < 0 || math.IsNaN(mine) {
		return ""
	}
	theirs := float64(models[best].Pooled.WQL)
	text := fmt.Sprintf("The quantile loss (WQL) of %s is %s, the least of the other models has %s (%s)", ours.Model, figure(ours.Pooled.WQL), figure(models[best].Pooled.WQL), models[best].Model)
	if theirs > 0 {
		if part := 1 - mine/theirs; part >= 0 {
			text += fmt.Sprintf(": %.0f %% less", 100*part)
		} else {
			text += fmt.Sprintf(": %.0f %% more", -100*part)
		}
	}
	return text + "."
}

// middle is the median of a forecast.
func middle(k *backtest.Kept, f plain.Forecast) []float64 {
	i, ok := slices.BinarySearch(k.Quantiles, 0.5)
	if !ok || f.Paths == nil {
		return nil
	}
	return f.Paths[i]
}
