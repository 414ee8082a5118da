package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/portrait/model"
)

// learn folds new history into the portraits and projects the tides again, once every Learn. While history cannot be
// read it is tried again in each cycle, and the tides go on being made from what is known: they grow old, and say so.
func (l *Loop) learn(ctx context.Context, s *fleet.Snapshot) error {
	l.forget(s)
	if s.At.Sub(l.learned) < l.o.Learn && !l.hasNew(s) {
		return nil
	}
	l.learnDays(ctx, s.At, s.Services)
	var err error
	for _, r := range l.readings(s) {
		if err == nil && len(r.services) > 0 {
			err = l.fold(ctx, r, s)
		}
	}
	if err == nil {
		l.learned = s.At
		l.teach(s.At)
		l.summarise(ctx, s.At, s.Services)
	}
	if err == nil || s.At.Sub(l.projected) >= l.o.Learn {
		l.projected = s.At
		l.project(s)
	}
	return err
}

// reading is a stretch of history that is read for several services together, so that the number of queries does not grow with them.
type reading struct {
	services []fleet.Service
	from     time.Time
	// young services are learned from nothing.
	young bool
}

// lateSteps is how many readings back samples are still expected to arrive.
const lateSteps = 6

// readings divides the services by what there is to be read of them:
//   - those that are followed, from the end of the portrait that lies furthest back;
//   - those that have been silent while others were not;
//   - those without a portrait, or whose portrait was older than the backfill when the process started, or of which the source knows more than was learned, from
//     the whole backfill.
//
// Samples that were read already are read again only as far back as samples may be late. Otherwise a service that
// exports nothing would make each reading longer than the one before.
func (l *Loop) readings(s *fleet.Snapshot) []reading {
	followed, silent := reading{from: s.At}, reading{from: s.At}
	young := reading{from: s.At.Add(-l.o.Backfill), young: true}
	late := -lateSteps * l.o.Learn
	var newest time.Time
	for i := range s.Services {
		if p := l.portraits[s.Services[i].ID]; p.End.After(newest) {
			newest = p.End
		}
	}
	for _, svc := range s.Services {
		p, ok := l.portraits[svc.ID]
		known := l.progressOf(svc.ID)
		if known.unread && s.At.Before(known.retry) {
			continue
		}
		if !ok || known.again || known.read.IsZero() && p.End.Before(young.from) {
			young.services = append(young.services, svc)
			continue
		}
		from := p.End
		// Samples in quarantine are read again, as they are folded or dropped only once the fall was judged.
		if again := known.read.Add(late); again.After(from) && !p.Doubt.Quarantined() {
			from = again
		}
		if p.End.Before(newest.Add(late)) {
			silent.add(svc, from)
		} else {
			followed.add(svc, from)
		}
	}
	return []reading{followed, silent, young}
}

// longestPatience is how long a service that cannot be read is left alone at most.
const longestPatience = time.Hour

// fail notes that a service could not be read. Each further time it is left alone for twice as long: what is to be read
// of it grows, and it costs its source the more.
func (p *progress) fail(at time.Time, least time.Duration) {
	p.unread = true
	p.patience = min(max(2*p.patience, least), longestPatience)
	p.retry = at.Add(p.patience)
}

func (r *reading) add(svc fleet.Service, from time.Time) {
	r.services = append(r.services, svc)
	if from.Before(r.from) {
		r.from = from
	}
}

// hasNew reports whether a service was never looked at: it is learned at once, so that it has a portrait soon after its creation.
func (l *Loop) hasNew(s *fleet.Snapshot) bool {
	for i := range s.Services {
		if _, ok := l.portraits[s.Services[i].ID]; !ok && !l.progressOf(s.Services[i].ID).unread {
			return true
		}
	}
	return false
}

// forget drops what belongs to services that are gone.
func (l *Loop) forget(s *fleet.Snapshot) {
	drop(l.portraits, s)
	drop(l.tides, s)
	drop(l.decisions, s)
	drop(l.summaries, s)
	drop(l.days, s)
	drop(l.progress, s)
	l.promises.forget(s)
}

func drop[V any](m map[fleet.ServiceID]V, s *fleet.Snapshot) {
	maps.DeleteFunc(m, func(id fleet.ServiceID, _ V) bool { return s.Service(id) == nil })
}

// since reads history, and answers which services were read: those for which the source gave no answer, though it did for others, stay as they are until the
// next look.
func (l *Loop) since(ctx context.Context, services []fleet.Service, from, to time.Time) (iter.Seq2[fleet.ServiceID, portrait.Batch], []fleet.Service, error) {
	batches, err := l.p.History.Since(ctx, services, from, to)
	var unread *UnreadError
	if err != nil && !errors.As(err, &unread) {
		return nil, nil, err
	}
	var read []fleet.Service
	for i := range services {
		id := services[i].ID
		if unread != nil && unread.Services[id] != nil {
			l.progressOf(id).fail(to, l.o.Learn)
			continue
		}
		l.progressOf(id).unread, l.progressOf(id).patience = false, 0
		read = append(read, services[i])
	}
	if unread != nil {
		l.p.Log.Warn("history could not be read for some services: they are read again at the next look", "services", len(unread.Services), "err", unread)
	}
	return batches, read, nil
}

// fold reads a stretch of history and folds it in. A young service that has none gets an empty portrait, which says so.
func (l *Loop) fold(ctx context.Context, r reading, s *fleet.Snapshot) error {
	to := s.At
	batches, services, err := l.since(ctx, r.services, r.from, to)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	r.services = services
	type work struct {
		id    fleet.ServiceID
		batch portrait.Batch
	}
	var todo []work
	for id, b := range batches {
		if p, ok := l.portraits[id]; ok && !p.Begun() && !r.young {
			// The first samples of a service that had none: what the source knows of the time before is read at the next look, as for a new service.
			delete(l.portraits, id)
			continue
		}
		todo = append(todo, work{id, l.quiet(id, b, r.from, to)})
		l.p.Alive() // a backfill of many services takes minutes
	}
	at := make(map[fleet.ServiceID]int, len(todo))
	for i := range todo {
		at[todo[i].id] = i
	}
	for i := range r.services {
		id := r.services[i].ID
		p, known := l.portraits[id]
		if _, read := at[id]; read || !known || !p.Begun() {
			continue
		}
		// A service that rests has no samples, and is learned all the same.
		if b := l.quiet(id, portrait.Batch{}, r.from, to); b.CPU.Len() > 0 {
			at[id], todo = len(todo), append(todo, work{id, b})
		}
	}
	for i := range r.services {
		if k, ok := at[r.services[i].ID]; ok {
			progress := l.progressOf(r.services[i].ID)
			todo[k].batch.Moments = progress.moments.settled(l.o.Learn)
			todo[k].batch.PodsReady = float64(r.services[i].Ready())
			todo[k].batch.CoresMost = hpa.CoresMost(&r.services[i], s.Node)
			todo[k].batch.Starts = startsOf(&r.services[i], l.ready, progress.started, to)
			known := l.portraits[r.services[i].ID]
			levels := &todo[k].batch.Levels
			agree(levels, &r.services[i], &known)
			levels.Apart = slices.Concat(levels.Apart, progress.apart)
		}
	}
	slices.SortFunc(todo, func(a, b work) int { return cmp.Compare(a.id, b.id) })
	calendars := l.calendarsOf(r.services, to)
	folded := make([]portrait.Portrait, len(todo))
	o := l.o.Portrait
	o.Kin, o.KinUntil = l.kinTaught.kin, l.kinTaught.at
	l.eachInRoom(len(todo), func(room *model.Room, i int) {
		p, ok := l.portraits[todo[i].id]
		if !ok || r.young {
			p = p.WithoutLoad(todo[i].id)
		}
		o := o
		o.Room, o.Backfill = room, r.young
		folded[i] = portrait.Fold(p, l.ordinary(todo[i].id, todo[i].batch, calendars[todo[i].id]), o)
		l.p.Alive()
	})
	for i := range folded {
		id := todo[i].id
		doubted := l.portraits[id].Doubt.Quarantined() || folded[i].Doubt.Quarantined()
		l.portraits[id] = folded[i]
		l.progressOf(id).apart = l.progressOf(id).apart.after(folded[i].End)
		l.folded(id, doubted, to)
		if !folded[i].Doubt.Quarantined() {
			l.progressOf(id).started = to
		}
	}
	for i := range r.services {
		id := r.services[i].ID
		progress := l.progressOf(id)
		progress.read = to
		if r.young {
			progress.again = false
			progress.look = look{to, subjectOf(&r.services[i])}
		}
		if _, ok := l.portraits[id]; !ok && r.young {
			l.portraits[id] = portrait.Portrait{Version: portrait.Version, Service: id, End: to}
		}
	}
	if !r.young {
		return nil
	}
	of := make(map[fleet.ServiceID]portrait.Batch, len(todo))
	for i := range todo {
		of[todo[i].id] = todo[i].batch
	}
	l.sumUp(r.services, of, to)
	return nil
}

// quiet puts into a batch that the load of a service was nothing while it stood at zero.
func (l *Loop) quiet(id fleet.ServiceID, b portrait.Batch, from, to time.Time) portrait.Batch {
	p := l.portraits[id]
	return l.progressOf(id).rests.fill(b, p.Signal, p.Step, from, to)
}

// project makes every tide again.
func (l *Loop) project(s *fleet.Snapshot) {
	calendars := l.calendarsOf(s.Services, s.At)
	o, project := l.o.Forecast, forecast.Project
	o.Kin = l.kinTaught.kin
	if l.o.Project != nil {
		project = l.o.Project
	}
	tides := make([]forecast.Tide, len(s.Services))
	l.eachInRoom(len(s.Services), func(room *model.Room, i int) {
		id := s.Services[i].ID
		o := o
		o.Room = room
		// Festivals are lifted where replicas are computed (hpa), where floors and bounds are known too.
		t := l.lift(id, project(l.portraits[id], s.At, o), calendars[id])
		tides[i] = t.AtMoments(l.portraits[id].Ripple.Deviation())
	})
	for i := range tides {
		l.tides[s.Services[i].ID] = tides[i]
	}
}

// save stores what was learned.
func (l *Loop) save(ctx context.Context, now time.Time) error {
	ids := slices.Sorted(maps.Keys(l.portraits))
	ps, ts := make([]portrait.Portrait, len(ids)), make([]forecast.Tide, 0, len(ids))
	for i, id := range ids {
		ps[i] = l.portraits[id]
		if t, ok := l.tides[id]; ok {
			ts = append(ts, t)
		}
	}
	err := errors.Join(l.p.Memory.SavePortraits(ctx, ps), l.p.Memory.SaveTides(ctx, ts), l.p.Memory.SaveSummaries(ctx, l.summaries),
		l.p.Memory.SaveDays(ctx, l.days), l.p.Memory.SavePaces(ctx, l.paces.known),
		l.p.Memory.SaveAccounts(ctx, l.promises.accounts))
	if err == nil {
		l.saved = now
	}
	return err
}

// record journals the cycle, and stores what the next process must know: the decisions of each cycle, and now and then what was learned.
// That is tried only while the store answers, so that one that does not costs a cycle little.
func (l *Loop) record(ctx context.Context, s *fleet.Snapshot, plan *planner.Plan, receipt *Receipt, t *timer) error {
	fresh := make(map[fleet.ServiceID][]hpa.Decision, len(plan.Targets))
	for i := range plan.Targets {
		if d := plan.Targets[i].Decision; !d.At.IsZero() {
			fresh[plan.Targets[i].Service] = []hpa.Decision{d}
		}
	}
	// The journal gets the record even when the decisions were not taken: what it holds back until the store answers is
	// not lost.
	err := errors.Join(l.p.Memory.SaveDecisions(ctx, fresh),
		l.p.Journal.Append(ctx, &Record{Revision: s.Revision, At: s.At, LeaderEpoch: s.LeaderEpoch, InputDigest: digest(s),
			Plan: plan, Receipt: receipt, Took: t.laps()}))
	if err == nil {
		err = l.saveBroken(ctx)
	}
	if err == nil && s.At.Sub(l.saved) >= l.o.Save {
		err = l.save(ctx, s.At)
	}
	return err
}

// each calls f for 0..n-1 on all cores. Results go back by index, so the order of the work does not show.
func each(n int, f func(i int)) {
	eachWorker(runtime.GOMAXPROCS(0), n, func(_, i int) { f(i) })
}

// eachInRoom is each with a room to learn in, one for each core.
func (l *Loop) eachInRoom(n int, f func(room *model.Room, i int)) {
	workers := runtime.GOMAXPROCS(0)
	for len(l.rooms) < workers {
		l.rooms = append(l.rooms, &model.Room{})
	}
	eachWorker(workers, n, func(worker, i int) { f(l.rooms[worker], i) })
}

// eachWorker is each with so many workers at most, and the number of the one that calls.
func eachWorker(workers, n int, f func(worker, i int)) {
	workers = min(workers, n)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				f(w, i)
			}
		})
	}
	wg.Wait()
}
