package planner

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/reason"
)

// ledger is what one lending pool has and needs, over the horizon.
type ledger struct {
	in   *Input
	pool *fleet.Pool
	// PoolRoom is what the pool's machines have as the plan finds them, and as its adoptions change that.
	fleet.PoolRoom
	// wasted and lacks are nil until they are asked for.
	wasted *float64
	lacks  *fleet.Resources
	// claimant is the service whose pods lack it; empty while none do.
	claimant fleet.ServiceID
	// due is when the loans from offline pools will not be needed any more (zero until asked).
	due      time.Time
	services []*sized
}

// sized is one service of the pool with its target.
type sized struct {
	index  int // in the snapshot, and in the plan's targets
	svc    *fleet.Service
	target *hpa.Target
	pods   int   // that exist and do not leave
	worst  int32 // [hpa.Demand.Worst]
	held   int32 // replicas with those in standby; 0 where none stands by
}

// ledgerOf is the ledger of an online pool.
func (m *maker) ledgerOf(pool *fleet.Pool) *ledger {
	l := m.ledgers[pool.ID]
	if l == nil {
		if m.poolOf == nil {
			m.poolOf = PoolsOf(m.in.Snapshot)
		}
		l = m.newLedger(pool, m.poolOf)
		m.ledgers[pool.ID] = l
	}
	return l
}

// newLedger computes a pool. A service belongs to the online pool on which most of its pods are, a service without pods
// to the first one.
func (m *maker) newLedger(pool *fleet.Pool, home map[fleet.ServiceID]fleet.PoolID) *ledger {
	s := m.in.Snapshot
	l := &ledger{in: m.in, pool: pool, PoolRoom: *m.room.Pool(pool.ID)}
	for i := range s.Services {
		if svc := &s.Services[i]; home[svc.ID] == pool.ID {
			v := &sized{index: i, svc: svc, target: &m.plan.Targets[i], pods: svc.Standing(), worst: m.sizing.demands[i].Worst()}
			if n := len(svc.StandingBy()); n > 0 {
				v.held = v.target.Decision.From + int32(n)
			}
			l.services = append(l.services, v)
		}
	}
	return l
}

// need is what the pool's services ask for at most between two times from now: what they likely ask for, and their deviations from it, pooled. It
// adds the largest demand of each service in the window, which is no less than the largest sum: the bias is towards too much room for online.
func (l *ledger) need(from, to time.Duration) fleet.Resources { return l.sum(from, to, false) }

// worst is need with each service whose signals are missing taken at its worst. It is what lending must leave free; it recalls nothing,
// since a source that is down is no flood.
func (l *ledger) worst(from, to time.Duration) fleet.Resources { return l.sum(from, to, true) }

func (l *ledger) sum(from, to time.Duration, worst bool) fleet.Resources {
	likely, more := l.Other, deviations{}
	for _, v := range l.services {
		n, above := v.asks(from, to, worst)
		likely = likely.Add(v.svc.ReplicaPods().Times(int64(n)))
		more.add(v.svc.Replica().Times(int64(above)))
	}
	return grossUp(likely.Add(more.pooled()), l.waste())
}

// asks is what a service likely asks for between two times from now, and what it may ask for above that. Pods in
// standby may come back in any cycle, so their room is asked for.
func (v *sized) asks(from, to time.Duration, worst bool) (likely, above int32) {
	likely, above = v.wants(from, to, worst)
	if likely < v.held {
		return v.held, max(likely+above-v.held, 0)
	}
	return likely, above
}

// wants is what its demand asks for. Where one of the two is not known, all that it may ask for is likely; but what
// live signals may grow to is no surer than a forecast.
func (v *sized) wants(from, to time.Duration, worst bool) (likely, above int32) {
	most := v.target.Most(from, to)
	if worst && v.worst > most {
		if v.target.LiveMost > 0 {
			return most, v.worst - most
		}
		return v.worst, 0
	}
	likely = v.target.MostLikely(from, to)
	return likely, most - likely
}

// deviations are what the services of a pool may ask for above what is likely. Each alone may come to that at its own quantile, all of them
// seldom do: errors that are independent of each other add up by their squares. So far as they go together, which services of one house do
// in a surprise that meets all of them, they add up as they are.
type deviations struct{ sum, squares [2]float64 } // of CPU and memory

// together is the correlation of the errors of two services that pooling computes with. Between series of one source
// (an application, a city, a stock exchange) that of the errors of a seasonal forecast an hour ahead lies between none
// and 0.4, of most pairs below 0.1.
const together = 0.1

func (d *deviations) add(r fleet.Resources) {
	for i, v := range [2]float64{float64(r.CPU), float64(r.Memory)} {
		d.sum[i] += v
		d.squares[i] += v * v
	}
}

// of is the deviation of the sum.
func (d *deviations) of(i int) float64 {
	return math.Sqrt(together*d.sum[i]*d.sum[i] + (1-together)*d.squares[i])
}

func (d *deviations) pooled() fleet.Resources {
	return fleet.Resources{CPU: fleet.MilliCPU(d.of(0)), Memory: fleet.Bytes(d.of(1))}
}

// remaining is the part of each deviation that stays of it, 0..1.
func (d *deviations) remaining() float64 {
	share := 0.0
	for i, sum := range d.sum {
		if sum > 0 {
			share = max(share, d.of(i)/sum)
		}
	}
	return share
}

// grossUp adds the part of each machine that scattered pod sizes leave unusable.
func grossUp(r fleet.Resources, waste float64) fleet.Resources {
	return r.Add(r.Part(waste))
}

// drops is how many pods of each service its tide takes away within EmptyFor and keeps away for the term: what emptying may wait for.
func (l *ledger) drops(term time.Duration) map[fleet.ServiceID]int {
	o := l.in.Options
	out := map[fleet.ServiceID]int{}
	if !l.in.changes.closed(l.pool.ID, fleet.ChangeScaleIn).None() {
		return out // no pod leaves, so no machine is worth waiting for
	}
	for _, v := range l.services {
		if !v.movable() {
			continue
		}
		if keep := int(v.target.Most(o.EmptyFor, o.EmptyFor+term)); v.pods > keep {
			out[v.svc.ID] = v.pods - keep
		}
	}
	return out
}

// movable reports whether scale-in of this service may be waited for at all.
func (v *sized) movable() bool {
	t := v.target
	return v.svc.Mode.Acts() && !v.svc.Blocked.Any() && v.svc.Steerable && t.DataFresh && len(t.Ahead) > 0 &&
		v.svc.Pause != fleet.PauseAll && v.svc.Pause != fleet.PauseIn
}

// blindShare is how much of what online asks for may be without live signals while there is still lending: a tenth.
// Each such service is computed at its worst in any case.
const blindShare = 0.1

// tooBlind says why nothing may be lent: too much of the pool is asked for by services whose live signals are missing
// or old. A service that merely has no trusted forecast yet (a young one) is computed at its worst and holds no other
// up.
func (l *ledger) tooBlind() reason.Reason {
	var blind, all fleet.MilliCPU
	var first fleet.ServiceID
	for _, v := range l.services {
		asks := v.svc.Request.CPU * fleet.MilliCPU(v.pods)
		all += asks
		if v.svc.TargetFound && slices.ContainsFunc(v.target.Missing, hpa.Missing.Live) {
			blind += asks
			if first == "" {
				first = v.svc.ID
			}
		}
	}
	if float64(blind) <= blindShare*float64(all) {
		return reason.Reason{}
	}
	return reason.Of(reason.TooBlind, fmt.Sprintf("%.0f", blind.Cores()), fmt.Sprintf("%.0f", all.Cores()), first)
}
