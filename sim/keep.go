package sim

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
	"github.com/springtide/springtide/sim/scenario"
)

// kept is what outlives a leader. It is kept only where leaders fall.
type kept struct {
	portraits map[fleet.ServiceID]portrait.Portrait
	summaries map[fleet.ServiceID]loop.Summary
	days      map[fleet.ServiceID]loop.Days
	paces     reclaim.Paces
	decisions map[fleet.ServiceID][]hpa.Decision
}

// stored is the answer of the store.
func (c *controller) stored() error {
	if c.w.on(scenario.StoreDown) != nil {
		return errDown
	}
	return nil
}

// loaded is what was kept, or the store's error and nothing.
func loaded[M ~map[K]V, K comparable, V any](c *controller, kept M) (M, error) {
	if err := c.stored(); err != nil {
		return nil, err
	}
	return maps.Clone(kept), nil
}

// Append implements loop.Journal.
func (c *controller) Append(_ context.Context, r *loop.Record) error {
	if c.w.journal != nil {
		c.w.journal(r)
	}
	if r.Plan != nil {
		c.checkPlan(r.Plan)
	}
	return c.stored()
}

// LoadPortraits implements loop.Memory.
func (c *controller) LoadPortraits(context.Context) (map[fleet.ServiceID]portrait.Portrait, error) {
	return loaded(c, c.kept.portraits)
}

// SavePortraits implements loop.Memory.
func (c *controller) SavePortraits(_ context.Context, ps []portrait.Portrait) error {
	if err := c.stored(); err != nil {
		return err
	}
	c.kept.portraits = make(map[fleet.ServiceID]portrait.Portrait, len(ps))
	for i := range ps {
		c.kept.portraits[ps[i].Service] = ps[i]
	}
	return nil
}

// SaveTides implements loop.Memory: nobody loads them.
func (c *controller) SaveTides(context.Context, []forecast.Tide) error { return c.stored() }

// LoadSummaries implements loop.Memory.
func (c *controller) LoadSummaries(context.Context) (map[fleet.ServiceID]loop.Summary, error) {
	return loaded(c, c.kept.summaries)
}

// SaveSummaries implements loop.Memory.
func (c *controller) SaveSummaries(_ context.Context, sums map[fleet.ServiceID]loop.Summary) error {
	if err := c.stored(); err != nil {
		return err
	}
	c.kept.summaries = maps.Clone(sums)
	return nil
}

// LoadDays implements loop.Memory.
func (c *controller) LoadDays(context.Context) (map[fleet.ServiceID]loop.Days, error) {
	return loaded(c, c.kept.days)
}

// SaveDays implements loop.Memory.
func (c *controller) SaveDays(_ context.Context, ds map[fleet.ServiceID]loop.Days) error {
	if err := c.stored(); err != nil {
		return err
	}
	c.kept.days = maps.Clone(ds)
	return nil
}

// LoadPaces implements loop.Memory.
func (c *controller) LoadPaces(context.Context) (reclaim.Paces, error) {
	return loaded(c, c.kept.paces)
}

// SavePaces implements loop.Memory.
func (c *controller) SavePaces(_ context.Context, ps reclaim.Paces) error {
	if err := c.stored(); err != nil {
		return err
	}
	c.kept.paces = maps.Clone(ps)
	return nil
}

// LoadDecisions implements loop.Memory.
func (c *controller) LoadDecisions(_ context.Context, since time.Time) (map[fleet.ServiceID][]hpa.Decision, error) {
	if err := c.stored(); err != nil {
		return nil, err
	}
	out := map[fleet.ServiceID][]hpa.Decision{}
	for id, ds := range c.kept.decisions {
		if i := slices.IndexFunc(ds, func(d hpa.Decision) bool { return !d.At.Before(since) }); i >= 0 {
			out[id] = slices.Clone(ds[i:])
		}
	}
	return out, nil
}

// decisionsKept bounds the decisions of a service that are kept: two hours of them, four a minute.
const decisionsKept = 480

// SaveDecisions implements loop.Memory.
func (c *controller) SaveDecisions(_ context.Context, ds map[fleet.ServiceID][]hpa.Decision) error {
	if err := c.stored(); err != nil || len(c.w.faults) == 0 {
		return err
	}
	if c.kept.decisions == nil {
		c.kept.decisions = map[fleet.ServiceID][]hpa.Decision{}
	}
	for id, d := range ds {
		all := append(c.kept.decisions[id], d...)
		c.kept.decisions[id] = all[max(0, len(all)-decisionsKept):]
	}
	return nil
}
