package sim

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
	"github.com/springtide/springtide/signal"
	"github.com/springtide/springtide/sim/scenario"
)

// liveAgo is how many ticks old the newest sample is that a cycle sees: it was fetched at the end of the cycle before.
const liveAgo = 1

// Snapshot implements loop.Observer. Its lists are built in the room of the last one: the loop does not keep them over
// a cycle.
func (c *controller) Snapshot(context.Context) (*fleet.Snapshot, error) {
	if c.w.on(scenario.StaleCache) == nil {
		c.stale = nil
		c.fresh = c.snapshot()
		return c.fresh, nil
	}
	c.fresh = nil
	if c.stale == nil {
		c.stale = detached(c.snapshot())
	}
	late := *c.stale
	late.At, late.Services = c.Now(), slices.Clone(c.stale.Services)
	return &late, nil
}

// detached is a snapshot that shares nothing with the fleet.
func detached(s *fleet.Snapshot) *fleet.Snapshot {
	s.Nodes, s.Pods, s.Services, s.Pools = slices.Clone(s.Nodes), slices.Clone(s.Pods), slices.Clone(s.Services), slices.Clone(s.Pools)
	for i := range s.Nodes {
		s.Nodes[i].Share = sharedNow(&s.Nodes[i])
	}
	for i := range s.Services {
		s.Services[i].Pods = slices.Clone(s.Services[i].Pods)
	}
	return s
}

func (c *controller) snapshot() *fleet.Snapshot {
	w := c.w
	s := &fleet.Snapshot{At: c.Now(), LeaderEpoch: c.epoch, Nodes: w.standing(), Pools: c.pools, Tenants: c.tenants, Festivals: c.plans, Loans: slices.Clone(c.loans)}
	if w.on(scenario.Freeze) != nil {
		s.Frozen = "a drill"
	}
	c.listPods()
	for i := range w.services {
		c.services[i].Desired = fleet.KnownAt(w.services[i].desired, w.now)
		if c.o.ByObjective {
			c.services[i].Quantile = 0 // the loop filled in what its record chose
		}
		if c.o.Knows && w.services[i].Changes() {
			c.services[i].Metrics = c.serviceFacts(i).Metrics
		}
	}
	s.Pods, s.Services = c.pods, c.services
	for i := range w.jobs {
		s.Jobs = append(s.Jobs, w.jobFacts(i))
	}
	return s
}

// listPods lists all pods by name, and those of each service that do not leave: a leaving pod counts as no replica, and
// is on its machine all the same. A service's pods stand together in the list, and are a part of it unless one of them
// leaves.
func (c *controller) listPods() {
	w := c.w
	c.pods = c.pods[:0]
	runs := make([]struct{ from, to int }, len(w.services))
	for _, id := range w.byName {
		if p := &w.pods[id]; p.kind == online && !p.leaving {
			r := &runs[p.owner]
			if r.to == 0 {
				r.from = len(c.pods)
			}
			r.to = len(c.pods) + 1
		}
		c.pods = append(c.pods, w.podFacts(id))
	}
	for i, r := range runs {
		own := w.services[i].pods
		if r.to-r.from == len(own) {
			c.services[i].Pods = c.pods[r.from:r.to:r.to]
			continue
		}
		c.services[i].Pods = make([]fleet.Pod, 0, len(own))
		for _, id := range own {
			c.services[i].Pods = append(c.services[i].Pods, w.podFacts(id))
		}
	}
}

// standing are the machines that are there.
func (w *World) standing() []fleet.Node {
	if w.lost == 0 {
		return w.facts
	}
	out := make([]fleet.Node, 0, len(w.facts))
	for i := range w.facts {
		if !w.machines[i].gone {
			out = append(out, w.facts[i])
		}
	}
	return out
}

// timeOf is the time of a tick.
func (w *World) timeOf(t int32) time.Time { return w.start.Add(time.Duration(t) * tick) }

func (w *World) podFacts(id int32) fleet.Pod {
	p := &w.pods[id]
	f := fleet.Pod{ID: p.uid, Name: p.name, Phase: fleet.PodPending, Ready: p.serves(), Created: w.timeOf(p.created),
		Deleting: p.leaving, CurrentRevision: true,
		DeletionCost: int(p.cost)}
	if p.node != none {
		n := &w.facts[p.node]
		bound := w.timeOf(p.bound)
		f.Node, f.NodeName, f.Phase, f.Started = n.ID, n.Name, fleet.PodRunning, fleet.KnownAt(bound, bound)
	} else {
		f.Unschedulable = p.created < w.tick
	}
	if p.ready {
		ready := w.timeOf(p.readyAt)
		f.ReadySince = fleet.KnownAt(ready, ready)
	}
	switch p.kind {
	case online:
		s := &w.services[p.owner]
		f.Class, f.Service, f.Requests = fleet.PodOnline, s.id, s.request
		if f.Gated = s.Spec.Standby > 0; p.standby {
			left := w.timeOf(p.left)
			f.Standby = fleet.KnownAt(left, left)
		}
	case offline:
		j := &w.jobs[p.owner]
		f.Class, f.Job, f.Role, f.Requests = fleet.PodOffline, j.id(), role, j.request
		f.NoticeLoan, f.NoticeEpoch, f.AckEpoch = p.noticeLoan, p.noticeEpoch, p.ackEpoch
		f.NoticeDeadline = fleet.Known[time.Time]{Value: p.deadline, At: p.deadline, OK: !p.deadline.IsZero()}
		if p.noticeLoan != "" && p.ackEpoch == 0 && w.on(scenario.Heartbeats) != nil {
			f.Heartbeat = fleet.KnownAt(w.now.Add(heartbeatAhead), w.now)
		}
		f.Grace, f.Killed = offlineGrace, p.killed
	case filler:
		f.Class, f.HoldsOn, f.Requests = fleet.PodFiller, w.facts[p.holdsOn].Name, coresRequest(int(p.cores))
	}
	return f
}

// heartbeatAhead is how much more time a member asks for that never has enough.
const heartbeatAhead = 5 * time.Minute

// role is the only role of a job.
const role = "worker"

func (w *World) jobFacts(i int) fleet.Job {
	j := &w.jobs[i]
	remaining := int32(-1)
	if j.done {
		remaining = 0
	}
	return fleet.Job{ID: j.id(), UID: fleet.UID("uid-" + j.name.String()), Priority: j.spec.PriorityOf(), Checkpoint: time.Duration(j.spec.Save) * 3 / 2,
		LastCheckpoint: fleet.KnownAt(j.checkpoint, j.checkpoint), LastRecalled: j.recalled, Created: w.start,
		Gang: j.gang,
		Members: []fleet.Member{{Role: role, Kind: "Job", Workload: j.name, Min: int32(j.spec.Gang), Max: j.most, Desired: j.desired, Active: int32(len(j.members)),
			Ending: int32(j.ending), Remaining: remaining, Request: j.request}}}
}

// errDown is a dependency that does not answer.
var errDown = errors.New("connection refused")

// Since implements loop.History: minutes, as recording rules keep them, with the scrape's delay.
func (c *controller) Since(_ context.Context, services []fleet.Service, from, to time.Time) (iter.Seq2[fleet.ServiceID, portrait.Batch], error) {
	if c.w.on(scenario.MetricsDown) != nil {
		return nil, errDown
	}
	return func(yield func(fleet.ServiceID, portrait.Batch) bool) {
		for i := range services {
			k, err := c.serviceAt(services[i].ID)
			if err != nil {
				return
			}
			if b := c.batch(k, from, to); b.CPU.Known() > 0 && !yield(services[i].ID, b) {
				return
			}
		}
	}, nil
}

func (c *controller) batch(i int, from, to time.Time) portrait.Batch {
	w, s := c.w, &c.w.services[i]
	if from.Before(s.Load.Start) {
		from = s.Load.Start
	}
	from = from.Truncate(time.Minute)
	n := max(0, int(to.Add(-delay).Truncate(time.Minute).Sub(from)/time.Minute))
	b := portrait.Batch{CPU: series.New(from, time.Minute, n), Ready: series.New(from, time.Minute, n)}
	requests := s.SLO.LatencyLimit() > 0
	if requests {
		b.Load = series.New(from, time.Minute, n)
	}
	b.Levels = c.levels(i, from, n)
	first := int(from.Sub(w.start) / time.Minute)
	for k := range n {
		m := minute{ready: float64(s.Static)}
		at := first + k
		if at >= 0 {
			if at >= len(s.minutes) {
				break
			}
			m = s.minutes[at]
		} else {
			m.served = s.Load.At(from.Add(time.Duration(k) * time.Minute))
			m.cores = m.served * s.CPUAt(s.Moment(from.Add(time.Duration(k)*time.Minute)))
		}
		if len(w.faults) > 0 && at >= 0 {
			k := w.shrunk(i, int32(at)*perMinute)
			m.cores, m.served = m.cores*k, m.served*k
		}
		b.CPU.Values[k], b.Ready.Values[k] = m.cores, m.ready
		if requests {
			b.Load.Values[k] = m.served
		}
	}
	if from.Before(w.start) {
		// Earlier pods were started too, at some time.
		for range min(s.Static, startUpsBefore) {
			b.StartUps = append(b.StartUps, s.startUp())
		}
	}
	b.StartUps = append(b.StartUps, s.startUps[c.read[i]:]...)
	c.read[i] = len(s.startUps)
	return b
}

// startUpsBefore is how many start-ups history shows.
const startUpsBefore = 20

// Live implements loop.History. A load is one total of the service, as an ingress measures it.
func (c *controller) Live(context.Context, []fleet.Service, time.Time) (signal.Samples, error) {
	w := c.w
	if c.live.Services == nil {
		c.live.CPU, c.liveBefore = map[fleet.Name]fleet.Known[float64]{}, map[fleet.Name]fleet.Known[float64]{}
		c.live.Services = map[fleet.ServiceID]signal.Service{}
	}
	if w.on(scenario.MetricsDown) != nil {
		return c.live, errDown
	}
	c.live.CPU, c.liveBefore = c.liveBefore, c.live.CPU
	clear(c.live.CPU)
	for i := range w.services {
		s := &w.services[i]
		if _, gap := w.hit(scenario.MetricsGaps, i); gap { // what was known grows old
			for _, id := range s.pods {
				if v, ok := c.liveBefore[w.pods[id].name]; ok {
					c.live.CPU[w.pods[id].name] = v
				}
			}
			continue
		}
		c.measure(i)
	}
	return c.live, nil
}

// measure takes the newest samples of a service.
func (c *controller) measure(i int) {
	w, s := c.w, &c.w.services[i]
	each, all, ok := s.usedBy(w.tick, metricTicks, liveAgo)
	if !ok {
		delete(c.live.Services, s.id)
		return
	}
	shrunk := 1.0
	if len(w.faults) > 0 {
		shrunk = w.shrunk(i, w.tick)
		each, all = each*shrunk, all*shrunk
	}
	if f, spike := w.hit(scenario.MetricsSpikes, i); spike && w.tick%perMinute == 0 {
		each, all = each*f.Factor, all*f.Factor
	}
	at := w.now.Add(-liveAgo * tick)
	if _, odd := w.hit(scenario.MetricsNaN, i); odd {
		c.live.Services[s.id] = signal.Service{CPU: fleet.KnownAt(math.NaN(), at)}
		return
	}
	for _, id := range s.pods {
		switch p := &w.pods[id]; {
		case p.standby || p.left > 0 && w.tick-p.left <= metricTicks: // a rate looks back over its window
			c.live.CPU[p.name] = fleet.KnownAt(s.Idle*float64(s.Cores), at)
		case p.ready && p.readyAt < w.tick-liveAgo:
			c.live.CPU[p.name] = fleet.KnownAt(each, at)
		case p.node != none:
			c.live.CPU[p.name] = fleet.KnownAt(startShare*float64(s.Cores), at)
		}
	}
	of := signal.Service{CPU: fleet.KnownAt(all, at)}
	if s.SLO.LatencyLimit() > 0 {
		of.Requests = fleet.KnownAt(s.last.Served*shrunk, at)
		of.Levels = s.live(at)
	}
	c.live.Services[s.id] = of
}

// startShare is the part of its cores that a starting pod uses. It is no load, and a scaler that takes it for load scales on its own doing.
const startShare = 0.3

// Prefetch implements loop.History: Live reads the newest sample of its own accord.
func (c *controller) Prefetch(context.Context, []fleet.Service, time.Time) error { return nil }
