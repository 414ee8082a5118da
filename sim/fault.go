package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/sim/scenario"
)

// fault is one thing that goes wrong, in ticks.
type fault struct {
	scenario.Fault
	from, to int32
	// rand draws what the fault touches. It hangs on the fault alone, so that dropping another one changes nothing here.
	rand *rand.Rand
	// begun says that what happens once has happened; touched are the machines or services that it hit.
	begun   bool
	touched []int32
}

// plainest are the measures of a drawn fault of each kind: how long it lasts, what share it touches, what it multiplies by.
var plainest = map[string]struct {
	least, most time.Duration
	share       float64
	factors     []float64
}{
	scenario.NodesLost:      {10 * time.Minute, time.Hour, 0.5, nil},
	scenario.NotReady:       {time.Minute, 30 * time.Minute, 0.3, nil},
	scenario.AgentSilent:    {5 * time.Minute, 30 * time.Minute, 0.5, nil},
	scenario.MetricsDown:    {5 * time.Minute, time.Hour, 1, nil},
	scenario.MetricsGaps:    {5 * time.Minute, time.Hour, 0.5, nil},
	scenario.MetricsNaN:     {time.Minute, 30 * time.Minute, 0.5, nil},
	scenario.MetricsSpikes:  {time.Minute, 20 * time.Minute, 0.3, []float64{10}},
	scenario.MetricsShrunk:  {leastShrunk, mostShrunk, 1, []float64{0.01}},
	scenario.StoreDown:      {5 * time.Minute, time.Hour, 1, nil},
	scenario.ForecastWrong:  {30 * time.Minute, 2 * time.Hour, 1, []float64{0.2, 5}},
	scenario.FlashCrowd:     {5 * time.Minute, 40 * time.Minute, 0.4, []float64{1.5, 2, 3}},
	scenario.RetryStorm:     {5 * time.Minute, 20 * time.Minute, 0.5, []float64{2, 3}},
	scenario.LeaderFlapping: {3 * time.Minute, 20 * time.Minute, 1, nil},
	scenario.Crash:          {time.Minute, 10 * time.Minute, 1, nil},
	scenario.APIConflicts:   {5 * time.Minute, 40 * time.Minute, 0.3, nil},
	scenario.StaleCache:     {time.Minute, 5 * time.Minute, 1, nil},
	scenario.DeafMembers:    {10 * time.Minute, time.Hour, 1, nil},
	scenario.StuckPods:      {10 * time.Minute, time.Hour, 0.5, nil},
	scenario.BudgetRefuses:  {5 * time.Minute, time.Hour, 1, nil},
	scenario.ClockSkew:      {10 * time.Minute, time.Hour, 1, []float64{0.5, 1, 2}},
	scenario.Heartbeats:     {10 * time.Minute, time.Hour, 1, nil},
	scenario.MovingLost:     {time.Minute, 30 * time.Minute, 0.7, nil},
	scenario.DeliveredTwice: {10 * time.Minute, time.Hour, 0.5, nil},
	scenario.Freeze:         {leastFrozen, mostFrozen, 1, nil},
	scenario.ClocksForward:  {tick, tick, 1, nil}, // a moment
	scenario.ClocksBack:     {tick, tick, 1, nil},
}

// drawFaults lists what goes wrong in a run: what the file says, and what its seed draws.
func drawFaults(b *scenario.Built) []fault {
	var all []scenario.Fault
	r := rand.New(rand.NewPCG(b.Seed, 3))
	kinds := b.Faults.Kinds
	if len(kinds) == 0 {
		if kinds = scenario.Drawn(); len(b.Clocks()) == 0 {
			kinds = slices.DeleteFunc(kinds, scenario.ChangesClocks)
		}
	}
	last := (b.Duration() - time.Duration(b.Faults.Quiet)).Truncate(tick)
	for range b.Faults.Random {
		f := scenario.Fault{Kind: kinds[r.IntN(len(kinds))]}
		p := plainest[f.Kind]
		span := min(p.least+time.Duration(r.Float64()*float64(p.most-p.least)), last)
		f.For = scenario.Length(span)
		after := scenario.Length(time.Duration(r.Float64() * float64(max(0, last-span))))
		f.After = min(after, config.Duration(last)-f.For) // rounded, it could end beyond what a list may say
		f.Share = p.share
		if len(p.factors) > 0 {
			f.Factor = p.factors[r.IntN(len(p.factors))]
		}
		all = append(all, f)
	}
	all = append(all, drawShrunk(b, last)...)
	all = append(all, drawFreeze(b, last)...)
	all = append(all, b.Faults.List...)
	scored := int32(scenario.WarmUp / tick)
	out := make([]fault, 0, len(all))
	for _, f := range all {
		if f.Share == 0 {
			f.Share = plainest[f.Kind].share
		}
		if f.Factor == 0 && len(plainest[f.Kind].factors) > 0 {
			f.Factor = plainest[f.Kind].factors[0]
		}
		from := scored + int32(time.Duration(f.After)/tick)
		out = append(out, fault{Fault: f, from: from, to: from + ticks(time.Duration(f.For)), rand: rand.New(rand.NewPCG(b.Seed^uint64(from), uint64(slices.Index(scenario.Kinds(), f.Kind))))})
	}
	return out
}

// String renders a fault as a line of a scenario.
func (f *fault) String() string {
	return fmt.Sprintf("{kind: %s, after: %s, for: %s, share: %g, factor: %g}", f.Kind, f.After, f.For, f.Share, f.Factor)
}

// on is the fault of a kind that is under way, or nil.
func (w *World) on(kind string) *fault { return w.onAt(kind, w.tick) }

// onAt is the fault of a kind that is under way as of a tick, or nil.
func (w *World) onAt(kind string, at int32) *fault {
	for i := range w.faults {
		if f := &w.faults[i]; f.Kind == kind && at >= f.from && at < f.to {
			return f
		}
	}
	return nil
}

// hit reports whether a fault of a kind touches the i-th of its things now. The target depends on the fault and the
// thing alone.
func (w *World) hit(kind string, i int) (*fault, bool) {
	f := w.on(kind)
	if f == nil {
		return nil, false
	}
	return f, w.draws(f, i)
}

// draws reports whether a fault touches the i-th of its things.
func (w *World) draws(f *fault, i int) bool {
	return rand.New(rand.NewPCG(w.b.Seed^uint64(f.from), uint64(i))).Float64() < f.Share
}

// refuses reports whether a disruption budget keeps a pod of offline work that does not end already.
func (w *World) refuses(id int32) bool {
	p := &w.pods[id]
	if p.kind != offline || p.leaving {
		return false
	}
	_, hit := w.hit(scenario.BudgetRefuses, int(p.owner))
	return hit
}

// trouble lets the faults begin and end that change the fleet itself.
func (w *World) trouble() {
	for i := range w.faults {
		f := &w.faults[i]
		if f.Kind != scenario.NodesLost && f.Kind != scenario.MovingLost {
			continue
		}
		switch {
		case w.tick >= f.from && w.tick < f.to && !f.begun:
			w.loseMachines(f)
			f.begun = f.touched != nil || f.Kind == scenario.NodesLost
		case w.tick >= f.to && f.begun && f.touched != nil:
			for _, n := range f.touched {
				w.restoreMachine(n)
			}
			f.touched = nil
		}
	}
}

// loseMachines takes machines away with all that is on them: some of all, or of those whose parcels are changing hands.
func (w *World) loseMachines(f *fault) {
	for n := range w.machines {
		moving := slices.ContainsFunc(w.facts[n].Share.Parcels, func(e fleet.ShareParcel) bool { return e.Next != "" })
		if w.machines[n].gone || f.Kind == scenario.MovingLost && !moving || f.rand.Float64() >= f.Share {
			continue
		}
		f.touched = append(f.touched, int32(n))
		for _, id := range slices.Clone(w.machines[n].pods) {
			w.vanish(id)
		}
		w.machines[n].gone = true
		w.open(int32(n))
	}
	w.lost += len(f.touched)
}

// vanish ends a pod at once: its controller makes another.
func (w *World) vanish(id int32) {
	p := &w.pods[id]
	switch p.kind {
	case online:
		if p.leaving {
			w.services[p.owner].leaving--
			break
		}
		s := &w.services[p.owner]
		i := slices.Index(s.pods, id)
		s.pods = slices.Delete(s.pods, i, i+1)
		if p.ready {
			*s.counts(p)--
		} else {
			s.starting--
		}
	case offline:
		w.endWorker(id)
		j := &w.jobs[p.owner]
		if p.leaving {
			j.ending--
		} else if i := slices.Index(j.members, id); i >= 0 {
			j.members = slices.Delete(j.members, i, i+1)
		}
	}
	w.drop(id)
}

// restoreMachine brings a machine back as another one of the same name: a new UID, no share, no marks.
func (w *World) restoreMachine(n int32) {
	m := &w.machines[n]
	w.lives++
	facts := w.nodeFacts(int(n), m.home)
	facts.ID += fleet.NodeID(fmt.Sprintf("-%d", w.lives))
	w.facts[n] = facts
	m.gone, m.toOnline, m.toOffline, m.away = false, m.home == onlinePool, m.home == offlinePool, nil
	w.open(n)
	w.lost--
}

// redate moves a world that has not begun yet to where the clocks of a zone change, at the moment of the first fault that says so. It is moved as a
// whole, load and all: but for what follows a wall clock, it is the same run.
func (w *World) redate() {
	i := slices.IndexFunc(w.faults, func(f fault) bool { return scenario.ChangesClocks(f.Kind) })
	zones := w.b.Clocks()
	if i < 0 || len(zones) == 0 {
		return
	}
	f := &w.faults[i]
	change, ok := scenario.ClockChange(zones[f.rand.IntN(len(zones))], w.b.Start, f.Kind == scenario.ClocksForward)
	if !ok {
		return
	}
	by := change.Add(-time.Duration(f.After)).Sub(w.b.Start).Truncate(time.Minute)
	w.b = w.b.Later(by)
	w.start, w.now = w.start.Add(by), w.now.Add(by)
	for i := range w.services {
		w.services[i].Online = &w.b.Services[i]
	}
	for i := range w.jobs {
		w.jobs[i].checkpoint = w.jobs[i].checkpoint.Add(by)
	}
}

// skew is how far the controller's clock is ahead of everybody's: by the factor in minutes for the first half of the fault, and behind by as much
// for the second, so that it jumps three times.
func (w *World) skew() time.Duration {
	f := w.on(scenario.ClockSkew)
	switch {
	case f == nil:
		return 0
	case w.tick < f.from+(f.to-f.from)/2:
		return time.Duration(f.Factor * float64(time.Minute))
	}
	return -time.Duration(f.Factor * float64(time.Minute))
}

// crowd is what the load of a service is multiplied by now.
func (w *World) crowd(i int) float64 { return w.crowdAt(i, w.tick) }

// crowdAt is what the load of a service is multiplied by as of a tick.
func (w *World) crowdAt(i int, at int32) float64 {
	if f := w.onAt(scenario.FlashCrowd, at); f != nil && w.draws(f, i) {
		return f.Factor
	}
	if f := w.onAt(scenario.RetryStorm, at); f != nil && w.draws(f, i) {
		if at < f.from+(f.to-f.from)/2 {
			return 0
		}
		return f.Factor
	}
	return 1
}

// listFaults lists the faults of a run, those that begin first before the others.
func listFaults(faults []fault) string {
	order := slices.Clone(faults)
	slices.SortStableFunc(order, func(a, b fault) int { return cmp.Compare(a.from, b.from) })
	var out []string
	for i := range order {
		out = append(out, order[i].String())
	}
	return strings.Join(out, ", ")
}
