package backtest

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	pure "github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/forecast/score"
	"github.com/springtide/springtide/internal/backtest"
	"github.com/springtide/springtide/internal/cli/chart/charttest"
	"github.com/springtide/springtide/series"
)

// A page holds every series, whatever it is called and whatever was said of it, is well formed and asks for nothing from elsewhere.
func TestBacktestPage(t *testing.T) {
	set := pure.Set{Horizon: 3}
	kept := backtest.Kept{Set: &set, Quantiles: []float64{0.1, 0.5, 0.9}, Forecasts: make([][]plain.Forecast, 2)}
	for _, id := range []string{`<script>alert("a")</script>`, "exploding", "silent", "zero"} {
		h := series.Series{Start: time.Unix(0, 0), Step: time.Hour, Values: []float64{1, math.NaN(), 3, 2}}
		if id == "zero" {
			h.Values = []float64{0, 0, 0, 0}
		}
		actual := []float64{0, math.NaN(), 0}
		if id == "exploding" {
			actual[0] = 3 // above the highest quantile of springtide, below the wild one
		}
		set.Cases = append(set.Cases, pure.Case{Series: id, History: h, Actual: actual, Period: 1})
		f := plain.Forecast{Paths: [][]float64{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}}}
		if id == "silent" {
			f = plain.Forecast{}
		}
		wild := plain.Forecast{Paths: [][]float64{{0, 0, 0}, {1e12, -1e300, 1e12}, {2e12, 2, 2}}}
		kept.Forecasts[0] = append(kept.Forecasts[0], f)
		kept.Forecasts[1] = append(kept.Forecasts[1], wild)
	}
	r := &backtestReport{Horizon: 3, Stride: 3, Origins: 1, Skipped: []string{"few: too short"}, Result: pure.Result{Levels: []float64{0.5},
		Models: []pure.ModelResult{{Model: "springtide"}, {Model: "last-value"}}}}
	r.Models[0].Pooled, r.Models[1].Pooled = score.Report{Forecasts: 4, WQL: 0.3}, score.Report{Forecasts: 4, WQL: 0.4}
	var page bytes.Buffer
	if err := writeBacktestPage(&page, r, []backtest.Kept{kept}); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for what, n := range map[string]int{"<svg": 4, "<script": 0, "src=": 0, "href=": 0, "NaN": 0, "Inf": 0, "few: too short": 1, "exploding": 1, "The quantile loss (WQL) of springtide is 0.3, the least of the other models has 0.4 (last-value): 25 % less.": 1} {
		if got := strings.Count(text, what); got != n {
			t.Errorf("%d times %q, want %d", got, what, n)
		}
	}
	charttest.Within(t, text)
	if n := strings.Count(text, `class="breach"`); n != 1 || !strings.Contains(text, "springtide: SLO broken in 1 steps") || !strings.Contains(text, "above the 0.9 quantile") {
		t.Errorf("%d marks of breaches, want the one step of one series in which the load was above the highest quantile of the model in front", n)
	}
	if !strings.Contains(text, "beyond the chart: last-value") {
		t.Error("a model whose forecast explodes is not named")
	}
	d := xml.NewDecoder(strings.NewReader(strings.NewReplacer("<!DOCTYPE html>", "", `<meta charset="utf-8">`, "").Replace(text)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	// A hole in what came is no line.
	if !strings.Contains(text, "M72.0 ") || strings.Count(text, "M") < 8 {
		t.Error("no gap is drawn")
	}
}
