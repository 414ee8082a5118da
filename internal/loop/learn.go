package loop

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/series"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
)

// learn folds new history into the portraits and projects the tides anew, once every Learn. Services without a portrait are learned from
// the whole backfill, together, so that the number of queries does not grow with them.
func (l *Loop) learn(ctx context.Context, s *fleet.Snapshot) error {
	l.forget(s)
	if s.At.Sub(l.learned) < l.o.Learn && !l.hasNew(s) {
		return nil
	}
	var young, known []fleet.Service
	from := s.At
	for _, svc := range s.Services {
		if p, ok := l.portraits[svc.ID]; ok && s.At.Sub(p.End) < l.o.Backfill {
			known = append(known, svc)
			if p.End.Before(from) {
				from = p.End
			}
		} else {
			young = append(young, svc)
		}
	}
	// A single portrait that fell behind must not make every cycle read its whole gap for all: it is read with the young ones.
	if oldest := s.At.Add(-6 * l.o.Learn); from.Before(oldest) && !l.learned.IsZero() {
		from = oldest
		known = slices.DeleteFunc(known, func(svc fleet.Service) bool {
			behind := l.portraits[svc.ID].End.Before(oldest)
			if behind {
				young = append(young, svc)
			}
			return behind
		})
	}
	var err error
	if len(known) > 0 {
		err = l.fold(ctx, known, from, s.At, false)
	}
	if err == nil && len(young) > 0 {
		err = l.fold(ctx, young, s.At.Add(-l.o.Backfill), s.At, true)
	}
	if err == nil {
		l.learned = s.At
	}
	l.project(s)
	l.save(ctx, s.At.Sub(l.saved) >= l.o.Save)
	return err
}

// hasNew reports whether a service was never looked at: it is learned at once, so that it has a portrait soon after its creation.
func (l *Loop) hasNew(s *fleet.Snapshot) bool {
	for i := range s.Services {
		if _, ok := l.portraits[s.Services[i].ID]; !ok {
			return true
		}
	}
	return false
}

// forget drops what belongs to services that are gone.
func (l *Loop) forget(s *fleet.Snapshot) {
	for id := range l.portraits {
		if s.Service(id) == nil {
			delete(l.portraits, id)
			delete(l.tides, id)
			delete(l.decisions, id)
			delete(l.summaries, id)
		}
	}
}

// fold reads a stretch of history and folds it in. A young service that has none gets an empty portrait, which says so.
func (l *Loop) fold(ctx context.Context, services []fleet.Service, from, to time.Time, young bool) error {
	batches, err := l.p.History.Since(ctx, services, from, to)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	type work struct {
		id    fleet.ServiceID
		batch portrait.Batch
	}
	var todo []work
	for id, b := range batches {
		todo = append(todo, work{id, b})
	}
	slices.SortFunc(todo, func(a, b work) int { return cmp.Compare(a.id, b.id) })
	folded := make([]portrait.Portrait, len(todo))
	each(len(todo), func(i int) {
		p, ok := l.portraits[todo[i].id]
		if !ok || young {
			p = portrait.Portrait{Version: portrait.Version, Service: todo[i].id}
		}
		folded[i] = portrait.Fold(p, todo[i].batch, l.o.Portrait)
	})
	for i := range folded {
		l.portraits[folded[i].Service] = folded[i]
	}
	if !young {
		return nil
	}
	for i := range services {
		svc := &services[i]
		if _, ok := l.portraits[svc.ID]; !ok {
			l.portraits[svc.ID] = portrait.Portrait{Version: portrait.Version, Service: svc.ID, End: to}
		}
	}
	sums := make([]Summary, len(todo))
	each(len(todo), func(i int) {
		if j, ok := slices.BinarySearchFunc(services, todo[i].id, func(v fleet.Service, id fleet.ServiceID) int { return cmp.Compare(v.ID, id) }); ok {
			sums[i] = Backcast(&services[j], todo[i].batch, l.o)
		}
	})
	for i := range sums {
		l.summaries[todo[i].id] = sums[i]
	}
	return nil
}

// project makes every tide anew.
func (l *Loop) project(s *fleet.Snapshot) {
	tides := make([]forecast.Tide, len(s.Services))
	each(len(s.Services), func(i int) {
		id := s.Services[i].ID
		tides[i] = forecast.Project(l.portraits[id], series.Series{}, s.Festivals, s.At, l.o.Forecast)
	})
	for i := range tides {
		l.tides[s.Services[i].ID] = tides[i]
	}
}

// save stores what was learned. It is tried again in the next cycle when the store was down.
func (l *Loop) save(ctx context.Context, due bool) {
	if !due && !l.unsaved {
		return
	}
	now := l.p.Clock.Now()
	l.saved = now
	ids := make([]fleet.ServiceID, 0, len(l.portraits))
	for id := range l.portraits {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	ps, ts := make([]portrait.Portrait, len(ids)), make([]forecast.Tide, 0, len(ids))
	for i, id := range ids {
		ps[i] = l.portraits[id]
		if t, ok := l.tides[id]; ok {
			ts = append(ts, t)
		}
	}
	l.unsaved = false
	for _, err := range []error{l.p.Memory.SavePortraits(ctx, ps), l.p.Memory.SaveTides(ctx, ts)} {
		if err != nil {
			l.unsaved = true
			l.p.Log.Warn("what was learned could not be saved", "err", err)
		}
	}
}

// record journals the cycle, and the decisions that the next process must know.
func (l *Loop) record(ctx context.Context, s *fleet.Snapshot, plan *planner.Plan, receipt *Receipt, t *timer) error {
	fresh := make(map[fleet.ServiceID][]hpa.Decision, len(plan.Targets))
	for i := range plan.Targets {
		if d := plan.Targets[i].Decision; !d.At.IsZero() {
			fresh[plan.Targets[i].Service] = []hpa.Decision{d}
		}
	}
	if err := l.p.Memory.SaveDecisions(ctx, fresh); err != nil {
		return err
	}
	return l.p.Journal.Append(ctx, &Record{Revision: s.Revision, At: s.At, LeaderEpoch: s.LeaderEpoch, InputDigest: digest(s),
		Plan: plan, Receipt: receipt, Took: t.laps()})
}

// digest identifies the facts of a snapshot by the versions of its objects: equal facts have equal digests. Marshalling all of it would
// cost more than the plan.
func digest(s *fleet.Snapshot) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %s\n", s.At.UnixNano(), s.LeaderEpoch, s.Frozen)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		fmt.Fprintf(h, "n %s %s %v %v %v %s\n", n.ID, n.Pool, n.Ready, n.AgentAlive, n.Marks, n.Share.Version)
	}
	for i := range s.Pods {
		io.WriteString(h, string(s.Pods[i].ID))
		io.WriteString(h, s.Pods[i].Version)
	}
	for i := range s.Services {
		v := &s.Services[i]
		fmt.Fprintf(h, "s %s %s %s %v %s\n", v.ID, v.Version, v.Mode, v.Desired, v.Blocked)
	}
	for i := range s.Loans {
		fmt.Fprintf(h, "l %s %s\n", s.Loans[i].ID, s.Loans[i].Version)
	}
	for i := range s.Jobs {
		fmt.Fprintf(h, "j %s %v\n", s.Jobs[i].ID, s.Jobs[i].Members)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// each calls f for 0..n-1 on all cores. Results go back by index, so the order of the work does not show.
func each(n int, f func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				f(i)
			}
		})
	}
	wg.Wait()
}
