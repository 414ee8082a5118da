package looptest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reclaim"
)

// Store is what outlives a loop.
type Store struct {
	Portraits map[fleet.ServiceID]portrait.Portrait
	Tides     map[fleet.ServiceID]forecast.Tide
	Summaries map[fleet.ServiceID]loop.Summary
	Days      map[fleet.ServiceID]loop.Days
	Paces     reclaim.Paces
	Decisions map[fleet.ServiceID][]hpa.Decision
	// Saves counts the calls of SavePortraits, those that failed too.
	Saves int
}

// Append implements loop.Journal. A record shares nothing with what the loop goes on to use: plans are made anew in each cycle.
func (w *World) Append(_ context.Context, r *loop.Record) error {
	if w.StoreErr != nil {
		return w.StoreErr
	}
	w.Records = append(w.Records, *r)
	return nil
}

// LoadPortraits implements loop.Memory.
func (w *World) LoadPortraits(context.Context) (map[fleet.ServiceID]portrait.Portrait, error) {
	return maps.Clone(w.Portraits), w.StoreErr
}

// SavePortraits implements loop.Memory.
func (w *World) SavePortraits(_ context.Context, ps []portrait.Portrait) error {
	w.Saves++
	if w.StoreErr != nil {
		return w.StoreErr
	}
	w.Portraits = map[fleet.ServiceID]portrait.Portrait{}
	for i := range ps {
		w.Portraits[ps[i].Service] = ps[i]
	}
	return nil
}

// SaveTides implements loop.Memory.
func (w *World) SaveTides(_ context.Context, ts []forecast.Tide) error {
	if w.StoreErr != nil {
		return w.StoreErr
	}
	w.Tides = map[fleet.ServiceID]forecast.Tide{}
	for i := range ts {
		w.Tides[ts[i].Service] = ts[i]
	}
	return nil
}

// LoadSummaries implements loop.Memory.
func (w *World) LoadSummaries(context.Context) (map[fleet.ServiceID]loop.Summary, error) {
	return maps.Clone(w.Summaries), w.StoreErr
}

// SaveSummaries implements loop.Memory.
func (w *World) SaveSummaries(_ context.Context, sums map[fleet.ServiceID]loop.Summary) error {
	if w.StoreErr != nil {
		return w.StoreErr
	}
	w.Summaries = maps.Clone(sums)
	return nil
}

// LoadDays implements loop.Memory.
func (w *World) LoadDays(context.Context) (map[fleet.ServiceID]loop.Days, error) {
	return maps.Clone(w.Days), w.StoreErr
}

// SaveDays implements loop.Memory.
func (w *World) SaveDays(_ context.Context, ds map[fleet.ServiceID]loop.Days) error {
	if w.StoreErr != nil {
		return w.StoreErr
	}
	w.Days = maps.Clone(ds)
	return nil
}

// LoadPaces implements loop.Memory.
func (w *World) LoadPaces(context.Context) (reclaim.Paces, error) {
	return maps.Clone(w.Paces), w.StoreErr
}

// SavePaces implements loop.Memory.
func (w *World) SavePaces(_ context.Context, ps reclaim.Paces) error {
	if w.StoreErr != nil {
		return w.StoreErr
	}
	w.Paces = maps.Clone(ps)
	return nil
}

// LoadDecisions implements loop.Memory.
func (w *World) LoadDecisions(_ context.Context, since time.Time) (map[fleet.ServiceID][]hpa.Decision, error) {
	if w.StoreErr != nil {
		return nil, w.StoreErr
	}
	out := map[fleet.ServiceID][]hpa.Decision{}
	for id, ds := range w.Decisions {
		i := slices.IndexFunc(ds, func(d hpa.Decision) bool { return !d.At.Before(since) })
		if i >= 0 {
			out[id] = slices.Clone(ds[i:])
		}
	}
	return out, nil
}

// SaveDecisions implements loop.Memory.
func (w *World) SaveDecisions(_ context.Context, ds map[fleet.ServiceID][]hpa.Decision) error {
	if w.StoreErr != nil {
		return w.StoreErr
	}
	if w.Decisions == nil {
		w.Decisions = map[fleet.ServiceID][]hpa.Decision{}
	}
	for id, d := range ds {
		w.Decisions[id] = append(w.Decisions[id], d...)
	}
	return nil
}
