// Package memorystore keeps what outlives a loop in the memory of a test or a simulation, as package store keeps it in a database. Values that go in come
// out, by value: maps are copied, portraits and decisions are shared and never written into.
package memorystore

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
	"github.com/springtide/springtide/slo"
)

// Store implements [loop.Memory]. The zero value is empty and ready. It is not safe for concurrent use.
type Store struct {
	Portraits map[fleet.ServiceID]portrait.Portrait
	Tides     map[fleet.ServiceID]forecast.Tide
	Summaries map[fleet.ServiceID]loop.Summary
	Days      map[fleet.ServiceID]loop.Days
	Paces     reclaim.Paces
	// Accounts are marshalled, as the loop goes on counting in its own.
	Accounts  map[fleet.ServiceID][]byte
	Decisions map[fleet.ServiceID][]hpa.Decision
	// Down, where set, is asked by each call. While it returns an error, the store answers with it, and neither keeps nor returns anything.
	Down func() error
	// Most bounds the newest decisions of a service that are kept; 0 keeps all.
	Most int
	// Saves counts the calls of SavePortraits, those that failed too.
	Saves int
}

var _ loop.Memory = (*Store)(nil)

func (s *Store) down() error {
	if s.Down == nil {
		return nil
	}
	return s.Down()
}

func load[M ~map[K]V, K comparable, V any](s *Store, stored M) (M, error) {
	if err := s.down(); err != nil {
		return nil, err
	}
	return maps.Clone(stored), nil
}

func save[M ~map[K]V, K comparable, V any](s *Store, to *M, values M) error {
	if err := s.down(); err != nil {
		return err
	}
	*to = maps.Clone(values)
	return nil
}

// LoadPortraits implements loop.Memory.
func (s *Store) LoadPortraits(context.Context) (map[fleet.ServiceID]portrait.Portrait, error) {
	return load(s, s.Portraits)
}

// SavePortraits implements loop.Memory.
func (s *Store) SavePortraits(_ context.Context, ps []portrait.Portrait) error {
	s.Saves++
	if err := s.down(); err != nil {
		return err
	}
	s.Portraits = make(map[fleet.ServiceID]portrait.Portrait, len(ps))
	for i := range ps {
		s.Portraits[ps[i].Service] = ps[i]
	}
	return nil
}

// SaveTides implements loop.Memory. No loop loads tides.
func (s *Store) SaveTides(_ context.Context, ts []forecast.Tide) error {
	if err := s.down(); err != nil {
		return err
	}
	s.Tides = make(map[fleet.ServiceID]forecast.Tide, len(ts))
	for i := range ts {
		s.Tides[ts[i].Service] = ts[i]
	}
	return nil
}

// LoadSummaries implements loop.Memory.
func (s *Store) LoadSummaries(context.Context) (map[fleet.ServiceID]loop.Summary, error) {
	return load(s, s.Summaries)
}

// SaveSummaries implements loop.Memory.
func (s *Store) SaveSummaries(_ context.Context, sums map[fleet.ServiceID]loop.Summary) error {
	return save(s, &s.Summaries, sums)
}

// LoadDays implements loop.Memory.
func (s *Store) LoadDays(context.Context) (map[fleet.ServiceID]loop.Days, error) {
	return load(s, s.Days)
}

// SaveDays implements loop.Memory.
func (s *Store) SaveDays(_ context.Context, ds map[fleet.ServiceID]loop.Days) error {
	return save(s, &s.Days, ds)
}

// LoadPaces implements loop.Memory.
func (s *Store) LoadPaces(context.Context) (reclaim.Paces, error) { return load(s, s.Paces) }

// SavePaces implements loop.Memory.
func (s *Store) SavePaces(_ context.Context, ps reclaim.Paces) error {
	return save(s, &s.Paces, ps)
}

// LoadAccounts implements loop.Memory.
func (s *Store) LoadAccounts(context.Context) (map[fleet.ServiceID]slo.Account, error) {
	if err := s.down(); err != nil {
		return nil, err
	}
	out := make(map[fleet.ServiceID]slo.Account, len(s.Accounts))
	for id, form := range s.Accounts {
		a, err := slo.Unmarshal(form)
		if err != nil {
			return nil, err
		}
		out[id] = a
	}
	return out, nil
}

// SaveAccounts implements loop.Memory.
func (s *Store) SaveAccounts(_ context.Context, as map[fleet.ServiceID]*slo.Account) error {
	if err := s.down(); err != nil {
		return err
	}
	if s.Accounts == nil {
		s.Accounts = map[fleet.ServiceID][]byte{}
	}
	for id, a := range as {
		s.Accounts[id] = slo.Marshal(a)
	}
	return nil
}

// LoadDecisions implements loop.Memory.
func (s *Store) LoadDecisions(_ context.Context, since time.Time) (map[fleet.ServiceID][]hpa.Decision, error) {
	if err := s.down(); err != nil {
		return nil, err
	}
	out := map[fleet.ServiceID][]hpa.Decision{}
	for id, ds := range s.Decisions {
		if i := slices.IndexFunc(ds, func(d hpa.Decision) bool { return !d.At.Before(since) }); i >= 0 {
			out[id] = slices.Clone(ds[i:])
		}
	}
	return out, nil
}

// SaveDecisions implements loop.Memory.
func (s *Store) SaveDecisions(_ context.Context, ds map[fleet.ServiceID][]hpa.Decision) error {
	if err := s.down(); err != nil {
		return err
	}
	if s.Decisions == nil {
		s.Decisions = map[fleet.ServiceID][]hpa.Decision{}
	}
	for id, d := range ds {
		all := append(s.Decisions[id], d...)
		if s.Most > 0 {
			all = all[max(0, len(all)-s.Most):]
		}
		s.Decisions[id] = all
	}
	return nil
}
