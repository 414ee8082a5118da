package backtest

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/series"
)

func sets(t *testing.T, n int) []backtest.Set {
	t.Helper()
	var all []plain.History
	for k := range n {
		h := plain.History{ID: string(rune('a'+k%26)) + strings.Repeat("'", k/26), Series: series.Series{Start: time.Unix(0, 0).UTC(), Step: time.Hour}}
		for i := range 24 * 20 {
			h.Values = append(h.Values, float64(10+k)+math.Sin(2*math.Pi*float64(i)/24)+float64(i*7919%101)/300)
		}
		all = append(all, h)
	}
	out, skipped := backtest.Rolling{Horizon: 12, Stride: 12, Origins: 3}.Sets(all)
	if len(skipped) > 0 {
		t.Fatal(skipped)
	}
	return out
}

func pick(t *testing.T, names ...string) []Model {
	t.Helper()
	models, err := Pick(names, false)
	if err != nil {
		t.Fatal(err)
	}
	return models
}

// However many processors there are and however series are shared out: the same measures and the same forecasts.
func TestParallelIsSerial(t *testing.T) {
	all := sets(t, 2*share+1)
	models := pick(t, "last-value", "seasonal-day+residuals")
	o := Options{Levels: []float64{0.5, 0.9}, Keep: true}
	run := func() (backtest.Result, []Kept) {
		r, kept, err := Run(t.Context(), all, models, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Models {
			if r.Models[i].Seconds <= 0 {
				t.Errorf("%s took no time", r.Models[i].Model)
			}
			r.Models[i].Seconds = 0
		}
		return r, kept
	}
	many, kept := run()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, again := run()
	if d := cmp.Diff(one, many, cmpopts.EquateNaNs()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(kept, again); d != "" {
		t.Error(d)
	}
	if len(kept) != 1 || len(kept[0].Forecasts[1]) != 2*share+1 || kept[0].Set.Origin != 0 {
		t.Errorf("kept %d sets", len(kept))
	}
	last := all[0].Cases[2*share].History
	if got := kept[0].Forecasts[0][2*share].Paths[0][0]; got != last.Values[last.Len()-1] {
		t.Errorf("the last series' last value is %v, want %v", got, last.Values[last.Len()-1])
	}
}

// A forecaster that pools is shown all series of an origin.
func TestPoolingModelsSeeAll(t *testing.T) {
	all := sets(t, 2*share)
	seen := make(chan int, 10)
	m := Model{Name: "pool", Forecast: func(in plain.Input) []plain.Forecast {
		seen <- len(in.Histories)
		return make([]plain.Forecast, len(in.Histories))
	}}
	var steps []int
	o := Options{Levels: []float64{0.5}, Progress: func(done, total int) { steps = append(steps, done, total) }}
	r, _, err := Run(t.Context(), all, []Model{m}, o)
	if err != nil {
		t.Fatal(err)
	}
	for range all {
		if n := <-seen; n != 2*share {
			t.Errorf("%d of %d series were shown", n, 2*share)
		}
	}
	if r.Models[0].Pooled.Missed != 6*share {
		t.Errorf("%+v", r.Models[0].Pooled)
	}
	if d := cmp.Diff([]int{2 * share, 6 * share, 4 * share, 6 * share, 6 * share, 6 * share}, steps); d != "" {
		t.Error(d)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := Options{Levels: []float64{0.5}, Progress: func(int, int) { cancel() }}
	if _, _, err := Run(ctx, sets(t, 3*share), pick(t, "last-value"), o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestPick(t *testing.T) {
	tests := []struct {
		names []string
		peers bool
		want  string
	}{
		{nil, false, "springtide"},
		{[]string{"crane-dsp", "springtide"}, false, "crane-dsp springtide"},
		{nil, true, strings.Join(Names(Models()), " ")},
		{[]string{"phpa-linear", "springtide"}, true, "phpa-linear springtide last-value"},
	}
	for _, tt := range tests {
		got, err := Pick(tt.names, tt.peers)
		if err != nil || !strings.HasPrefix(strings.Join(Names(got), " "), tt.want) || tt.peers && len(got) != len(Models()) {
			t.Errorf("%v: %v, %v", tt.names, Names(got), err)
		}
	}
	for name, want := range map[string]string{"prophet": `"prophet" is no model: write some of springtide, last-value, last-value+residuals,`, "springtide": `"springtide" stands twice`} {
		if _, err := Pick([]string{"springtide", name}, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
