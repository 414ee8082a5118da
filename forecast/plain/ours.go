package plain

import (
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/series"
)

// Ours forecasts by the controller's methods: each series is folded into a portrait and projected, as a service's load is, with the help of
// its kin, and holidays are lifted as a service's calendar is. Kin are those that the input brings, or else the series of the origin.
func Ours(in Input) []Forecast {
	return WithHolidays(func(in Input) []Forecast {
		if in.Kin == nil {
			in.Kin = Teach(in.Histories, inOrder)
		}
		return Each(project)(in)
	})(in)
}

// loadOf is a history as a load, which is never negative.
func loadOf(h *History) series.Series {
	scale := ScaleOf(h.Values)
	load := series.Series{Start: h.Start, Step: h.Step, Values: make([]float64, h.Len())}
	for i, v := range h.Values {
		load.Values[i] = scale.Load(v)
	}
	return load
}

// project folds one series into a portrait, as the controller does, and projects it.
func project(h History, in *Input) Forecast {
	scale := ScaleOf(h.Values)
	po := portrait.Options{Step: h.Step, Backfill: true}
	fo := forecast.Options{Steps: in.Horizon, Quantiles: in.Quantiles, MaxStale: math.MaxInt64}
	if c := in.Options.cycle(h.Step); len(in.Options.Seasons) > 0 && c != model.CycleOf(h.Step) {
		po.Cycle = c
	} else if k := in.Kin.of(h.Step); k != nil { // kin have the seasons of their step
		po.Kin, po.KinUntil = k.early, h.End().Add(-time.Duration(forecast.Held(h.Step))*h.Step)
		fo.Kin = k.final
	}
	p := portrait.Fold(portrait.Portrait{Version: portrait.Version, Service: fleet.ServiceID(h.ID)}, portrait.Batch{Load: loadOf(&h)}, po)
	// A missing value at the end is a step that passed: what is asked for begins after the last one.
	now := series.GridTime(series.GridIndex(h.Start, h.Step)+int64(h.Len()), h.Step)
	t := forecast.Project(p, now, fo)
	out := Forecast{Model: t.Model, Note: t.Note}
	if len(t.Paths) == 0 {
		return out
	}
	out.Paths = make([][]float64, len(in.Quantiles))
	for i, q := range in.Quantiles {
		k, _ := slices.BinarySearch(t.Quantiles, q)
		out.Paths[i] = make([]float64, in.Horizon)
		for j := range out.Paths[i] {
			out.Paths[i][j] = scale.Value(t.Paths[k][j])
		}
	}
	return out
}
