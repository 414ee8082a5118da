package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	pure "github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/score"
)

// write prints the tables of one bench.
func write(w io.Writer, r *pure.Result, bySeries bool) {
	first := r.Models[0]
	fmt.Fprintf(w, "%d series, %d forecasts.\n\n", len(first.Series), first.Pooled.Forecasts+first.Pooled.Missed)
	fmt.Fprintf(w, "| model | WQL pooled | scaled | mean | .5 | .9 | .95 | .99 | %s better on |\n|---|---|---|---|---|---|---|---|---|\n", first.Model)
	for i := range r.Models {
		m := &r.Models[i]
		fmt.Fprintf(w, "| %s | %s | %s | %s |", m.Model, num(m.Pooled.WQL, 4), num(m.Pooled.ScaledWQL, 4), num(m.Pooled.MeanWQL, 4))
		for _, l := range m.Pooled.Levels {
			fmt.Fprintf(w, " %s |", num(l.WQL, 4))
		}
		fmt.Fprintf(w, " %s |\n", better(m))
	}
	fmt.Fprint(w, "\n| model | cover .5 | .9 | .95 | .99 | sMAPE | MASE | its median | MSIS | ms | missed |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range r.Models {
		m := &r.Models[i]
		fmt.Fprintf(w, "| %s |", m.Model)
		for _, l := range m.Pooled.Levels {
			fmt.Fprintf(w, " %s |", num(l.Coverage, 3))
		}
		fmt.Fprintf(w, " %s | %s | %s | %s | %s | %d |\n", num(m.Pooled.SMAPE, 3), num(m.Pooled.MASE, 3), num(m.Pooled.MedianMASE, 3), num(m.Pooled.MSIS, 3),
			num(1000*m.Seconds, 2), m.Pooled.Missed)
	}
	fmt.Fprintln(w)
	if bySeries && len(r.Models) > 1 {
		writeSeries(w, r)
	}
}

func better(m *pure.ModelResult) string {
	if m.ComparedOn == 0 {
		return "–"
	}
	return fmt.Sprintf("%d of %d (%.0f %%)", m.BetterOn, m.ComparedOn, 100*float64(m.BetterOn)/float64(m.ComparedOn))
}

// writeSeries sets the first model next to the one that did best on each series.
func writeSeries(w io.Writer, r *pure.Result) {
	first := &r.Models[0]
	fmt.Fprintf(w, "| series | forecasts | WQL of %s | cover .9 | MASE | best other | its WQL |\n|---|---|---|---|---|---|---|\n", first.Model)
	for k := range first.Series {
		s := &first.Series[k]
		others := r.Models[1:]
		best := slices.MinFunc(others, func(a, b pure.ModelResult) int {
			x, y := orInf(a.Series[k].WQL), orInf(b.Series[k].WQL)
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
		fmt.Fprintf(w, "| %s | %d | %s | %s | %s | %s | %s |\n", s.Series, s.Forecasts, num(s.WQL, 4), num(s.Levels[1].Coverage, 3), num(s.MASE, 3),
			best.Model, num(best.Series[k].WQL, 4))
	}
	fmt.Fprintln(w)
}

func orInf(m score.Measure) float64 {
	if math.IsNaN(float64(m)) {
		return math.Inf(1)
	}
	return float64(m)
}

// writeOWA prints what M4 ranks by: the mean of sMAPE and MASE, each over that of Naive2.
func writeOWA(w io.Writer, r *pure.Result) {
	i := slices.IndexFunc(r.Models, func(m pure.ModelResult) bool { return m.Model == naive2Name })
	yard := &r.Models[i].Pooled
	fmt.Fprint(w, "| model | sMAPE | MASE | OWA | MSIS |\n|---|---|---|---|---|\n")
	for i := range r.Models {
		p := &r.Models[i].Pooled
		owa := (p.SMAPE/yard.SMAPE + p.MASE/yard.MASE) / 2
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", r.Models[i].Model, num(p.SMAPE, 3), num(p.MASE, 3), num(owa, 3), num(p.MSIS, 3))
	}
	fmt.Fprintln(w)
}

func num(m score.Measure, digits int) string {
	switch {
	case math.IsNaN(float64(m)):
		return "–"
	case math.Abs(float64(m)) >= 1e6:
		return fmt.Sprintf("%.3g", float64(m))
	}
	return fmt.Sprintf("%.*f", digits, float64(m))
}
