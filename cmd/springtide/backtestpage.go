package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/internal/backtest"
)

//go:embed backtest.html
var backtestHTML string

var backtestTemplate = template.Must(template.New("backtest").Parse(backtestHTML))

const (
	// chartWide and chartHigh are the size of a chart in pixels, chartCount how many a page has at most: more would not be looked at.
	chartWide, chartHigh = 960.0, 220.0
	chartCount           = 60
	// chartPast is how many horizons of history are drawn, chartHeadroom how far above what came and the band the axis reaches.
	chartPast     = 2
	chartHeadroom = 1.1
)

// chartColors are those of the models' medians, the first one's first; beyond them no further model is drawn.
var chartColors = []string{"#0b6e99", "#d9730d", "#448361", "#9065b0", "#c14c8a", "#9f6b53", "#787774"}

// writeBacktestPage writes one page that needs nothing else.
func writeBacktestPage(w io.Writer, r *backtestReport, kept []backtest.Kept) error {
	page := struct {
		Report *backtestReport
		Head   []string
		Rows   [][]string
		Legend []legend
		Charts []chart
		More   int
	}{Report: r, Head: slices.Concat([]string{"model", "forecasts"}, measureNames(r.Levels))}
	for i := range r.Models {
		m := &r.Models[i]
		page.Rows = append(page.Rows, slices.Concat([]string{m.Model, number(m.Pooled.Forecasts)}, measures(&m.Pooled)))
		if i < len(chartColors) {
			page.Legend = append(page.Legend, legend{m.Model, chartColors[i]})
		}
	}
	for k := range kept {
		for i := range kept[k].Set.Cases {
			if len(page.Charts) == chartCount {
				page.More++
				continue
			}
			page.Charts = append(page.Charts, drawCase(&kept[k], i))
		}
	}
	return backtestTemplate.Execute(w, page)
}

type legend struct{ Name, Color string }

// chart is one series at its newest origin, in pixels.
type chart struct {
	Series     string
	Wide, High float64
	Origin     float64
	Begin, At  string
	Low, Top   string
	Actual     string
	Band       string
	Lines      []line
}

type line struct{ Points, Color string }

// scaleTo maps steps and values to pixels.
type scaleTo struct{ low, high, steps float64 }

func (s scaleTo) x(step int) float64 { return chartWide * float64(step) / s.steps }

func (s scaleTo) y(v float64) float64 {
	// What explodes leaves the chart, not the range of numbers that a browser draws.
	return max(-chartHigh, min(2*chartHigh, chartHigh*(1-(v-s.low)/(s.high-s.low))))
}

// path draws values from a step on; gaps stay open.
func (s scaleTo) path(values []float64, from int) string {
	var b strings.Builder
	pen := "M"
	for j, v := range values {
		if math.IsNaN(v) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&b, "%s%s %s", pen, pixel(s.x(from+j)), pixel(s.y(v)))
		pen = "L"
	}
	return b.String()
}

func pixel(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func drawCase(k *backtest.Kept, i int) chart {
	c := &k.Set.Cases[i]
	past := c.History.Values[max(0, c.History.Len()-chartPast*len(c.Actual)):]
	first := k.Forecasts[0][i].Paths
	s := scaleTo{low: 0, high: math.SmallestNonzeroFloat64, steps: float64(len(past) + len(c.Actual) - 1)}
	band := [][]float64{past, c.Actual}
	if len(first) > 0 {
		band = append(band, first[0], first[len(first)-1])
	}
	for _, v := range slices.Concat(band...) {
		if !math.IsNaN(v) {
			s.low, s.high = min(s.low, v), max(s.high, v)
		}
	}
	s.high = s.low + chartHeadroom*(s.high-s.low)
	out := chart{Series: c.Series, Wide: chartWide, High: chartHigh, Origin: s.x(len(past)),
		Begin: c.History.Time(c.History.Len() - len(past)).UTC().Format("2006-01-02 15:04"), At: c.History.End().UTC().Format("2006-01-02 15:04"),
		Low: strconv.FormatFloat(s.low, 'g', 4, 64), Top: strconv.FormatFloat(s.high, 'g', 4, 64), Actual: s.path(append(slices.Clone(past), c.Actual...), 0)}
	if len(first) > 0 {
		back := slices.Clone(first[0])
		out.Band = s.path(first[len(first)-1], len(past))
		for j := len(back) - 1; j >= 0; j-- {
			out.Band += fmt.Sprintf("L%s %s", pixel(s.x(len(past)+j)), pixel(s.y(back[j])))
		}
	}
	for m := range k.Forecasts {
		if m < len(chartColors) {
			out.Lines = append(out.Lines, line{s.path(middle(k, k.Forecasts[m][i]), len(past)), chartColors[m]})
		}
	}
	slices.Reverse(out.Lines) // the first model's on top
	return out
}

// middle is the median of a forecast.
func middle(k *backtest.Kept, f plain.Forecast) []float64 {
	i, ok := slices.BinarySearch(k.Quantiles, 0.5)
	if !ok || f.Paths == nil {
		return nil
	}
	return f.Paths[i]
}
