package backtest

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/springtide/springtide/forecast/score"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/screen"
)

// shownSeries bounds the series of a table; the JSON has all.
const shownSeries = 50

// printBacktest writes the pooled table and the one of each series.
func printBacktest(out io.Writer, r *backtestReport) error {
	pooled := [][]string{slices.Concat([]string{"MODEL", "FORECASTS", "MISSED"}, measureNames(r.Levels), []string{"WQL SCALED", "WQL MEAN", "SECONDS", "BETTER ON"})}
	for i := range r.Models {
		m := &r.Models[i]
		better := cell.None
		if m.ComparedOn > 0 {
			better = fmt.Sprintf("%d of %d", m.BetterOn, m.ComparedOn)
		}
		pooled = append(pooled, slices.Concat([]string{m.Model, cell.Number(m.Pooled.Forecasts), cell.Number(m.Pooled.Missed)}, measures(&m.Pooled),
			[]string{figure(m.Pooled.ScaledWQL), figure(m.Pooled.MeanWQL), figure(m.Seconds), better}))
	}
	if err := (&screen.Table{Out: out}).Print(pooled); err != nil {
		return err
	}
	fmt.Fprintln(out)
	all := r.Models[0].Series
	rows := [][]string{slices.Concat([]string{"SERIES", "MODEL", "FORECASTS", "MISSED"}, measureNames(r.Levels))}
	for k := range all[:min(len(all), shownSeries)] {
		for i := range r.Models {
			s := &r.Models[i].Series[k]
			rows = append(rows, slices.Concat([]string{s.Series, r.Models[i].Model, cell.Number(s.Forecasts), cell.Number(s.Missed)}, measures(&s.Report)))
		}
	}
	if err := (&screen.Table{Out: out}).Print(rows); err != nil {
		return err
	}
	if more := len(all) - shownSeries; more > 0 {
		fmt.Fprintf(out, "and %d more series: --out writes all of them\n", more)
	}
	return nil
}

// measureNames are the columns of a report at the levels.
func measureNames(levels []float64) []string {
	out := []string{"sMAPE", "MASE", "WQL"}
	for _, q := range levels {
		out = append(out, "PINBALL "+short(q))
	}
	for _, q := range levels {
		out = append(out, "COVER "+short(q))
	}
	return append(out, "MSIS")
}

func measures(r *score.Report) []string {
	out := []string{figure(r.SMAPE), figure(r.MASE), figure(r.WQL)}
	for _, l := range r.Levels {
		out = append(out, figure(l.Pinball))
	}
	for _, l := range r.Levels {
		out = append(out, figure(l.Coverage))
	}
	return append(out, figure(r.MSIS))
}

// figure prints four digits that matter.
func figure(m score.Measure) string {
	if math.IsNaN(float64(m)) {
		return cell.None
	}
	return strconv.FormatFloat(float64(m), 'g', 4, 64)
}

func short(q float64) string { return strconv.FormatFloat(q, 'g', -1, 64) }
