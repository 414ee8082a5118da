package main

import (
	"fmt"
	"io"
	"math"

	"github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/score"
)

// write prints the tables of one bench.
func write(w io.Writer, title string, r backtest.Result, bySeries bool) {
	fmt.Fprintf(w, "## %s\n\n", title)
	if len(r.Models) == 0 {
		return
	}
	fmt.Fprintf(w, "%d series, %d forecasts.\n\n", len(r.Models[0].Series), r.Models[0].Pooled.Forecasts)
	fmt.Fprintln(w, "| model | WQL pooled | WQL scaled | WQL mean | .5 | .9 | .95 | .99 | cover .9 | .95 | .99 | sMAPE | MASE | median | MSIS | ms | ours better on |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for i := range r.Models {
		m := &r.Models[i]
		better := "–"
		if m.ComparedOn > 0 {
			better = fmt.Sprintf("%d of %d", m.BetterOn, m.ComparedOn)
		}
		row(w, m.Model, &m.Pooled, num(1000*m.Seconds, 2), better)
	}
	fmt.Fprintln(w)
	if !bySeries {
		return
	}
	for i := range r.Models {
		m := &r.Models[i]
		fmt.Fprintf(w, "### %s\n\n", m.Model)
		for j := range m.Series {
			row(w, m.Series[j].Series, &m.Series[j].Report, "", "")
		}
		fmt.Fprintln(w)
	}
}

func row(w io.Writer, name string, r *score.Report, ms, better string) {
	fmt.Fprintf(w, "| %s | %s | %s | %s |", name, num(r.WQL, 4), num(r.ScaledWQL, 4), num(r.MeanWQL, 4))
	for _, l := range r.Levels {
		fmt.Fprintf(w, " %s |", num(l.WQL, 4))
	}
	for _, l := range r.Levels[1:] {
		fmt.Fprintf(w, " %s |", num(l.Coverage, 3))
	}
	fmt.Fprintf(w, " %s | %s | %s | %s | %s | %s |\n", num(r.SMAPE, 3), num(r.MASE, 3), num(r.MedianMASE, 3), num(r.MSIS, 3), ms, better)
}

func num(m score.Measure, digits int) string {
	if math.IsNaN(float64(m)) {
		return "–"
	}
	return fmt.Sprintf("%.*f", digits, float64(m))
}
