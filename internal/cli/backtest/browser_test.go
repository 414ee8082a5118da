package backtest

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	pure "github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/forecast/score"
	"github.com/springtide/springtide/internal/backtest"
	"github.com/springtide/springtide/internal/cli/chart/charttest"
	"github.com/springtide/springtide/series"
)

// TestReportsInABrowser opens the report in headless Chromium.
func TestReportsInABrowser(t *testing.T) {
	charttest.InABrowser(t, "backtest", func(b *bytes.Buffer) error {
		r, kept := sampleBacktest()
		return writeBacktestPage(b, r, kept)
	})
}

// sampleBacktest are series of all sizes, one that a model explodes on.
func sampleBacktest() (*backtestReport, []backtest.Kept) {
	set := pure.Set{Horizon: 24}
	kept := backtest.Kept{Set: &set, Quantiles: []float64{0.1, 0.5, 0.9}, Forecasts: make([][]plain.Forecast, 3)}
	for k, unit := range []float64{0.004, 3, 1.2e7} {
		value := func(i int) float64 { return unit * (2 + math.Sin(2*math.Pi*float64(i)/24)) }
		h := series.Series{Start: time.Date(2026, 3, 2, 7, 0, 0, 0, time.UTC), Step: time.Hour}
		for i := range 96 {
			h.Values = append(h.Values, value(i))
		}
		c := pure.Case{Series: fmt.Sprintf("series-%d", k), History: h, Period: 24}
		for m := range kept.Forecasts {
			paths := make([][]float64, 3)
			for i := range 24 {
				for q, f := range []float64{0.9, 1, 1.1} {
					paths[q] = append(paths[q], value(96+i)*f*math.Pow(1.3, float64(m*k)*float64(i)/4))
				}
			}
			kept.Forecasts[m] = append(kept.Forecasts[m], plain.Forecast{Paths: paths})
		}
		for i := range 24 {
			surge := 1.02
			if k == 1 && i < 5 { // above the highest quantile of each model
				surge = 1.5
			}
			c.Actual = append(c.Actual, value(96+i)*surge)
		}
		set.Cases = append(set.Cases, c)
	}
	r := &backtestReport{Horizon: 24, Stride: 24, Origins: 1, Result: pure.Result{Levels: []float64{0.5, 0.9}, Models: []pure.ModelResult{
		{Model: "springtide", Pooled: score.Report{Forecasts: 3, WQL: 0.09}}, {Model: "seasonal-naive", Pooled: score.Report{Forecasts: 3, WQL: 0.1}}, {Model: "drift", Pooled: score.Report{Forecasts: 3, WQL: 0.4}}}}}
	return r, []backtest.Kept{kept}
}
