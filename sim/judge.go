package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/sim/scenario"
)

// judge is what invariants compute by themselves, from what happened in the fleet: nothing of it comes from the code
// that it judges.
type judge struct {
	// open are the times at which each service's windows, and each tenant's slices, are open; nil where a schedule is not a daily one.
	open map[fleet.Window][]open
	// under counts the ticks for which each service has stood under the floor of an open window.
	under []int32
	// beyond are the namespaces whose tenants asked for more than their quota when the plan was made, owed the ticks of a broken promise.
	beyond map[string]bool
	owed   int32
	// taken are the pods that went off machines being emptied, by the pool that was charged, seen those that were counted.
	taken map[fleet.PoolID]*takings
	seen  map[fleet.UID]bool
	// noticed is the tick at which each pod first had each notice: a notice of a leader that was succeeded may have
	// been under way since then.
	noticed map[noticeKey]int32
	// ended are the recalled loans on whose machine a pod of the borrower ended, or no pod was left to evict.
	ended map[fleet.UID]bool
	// apart counts the ticks for which each loan has been lent after a recall of another one of its machine.
	apart map[fleet.UID]int32
}

// open is a time at which a window is open, its end not included.
type open struct{ from, to time.Time }

func (c *controller) newJudge() judge {
	j := judge{open: map[fleet.Window][]open{}, under: make([]int32, len(c.services)), taken: map[fleet.PoolID]*takings{}, seen: map[fleet.UID]bool{}, ended: map[fleet.UID]bool{},
		noticed: map[noticeKey]int32{}}
	add := func(w fleet.Window) {
		if spans, daily := dailySpans(w, c.w.start, c.w.b.End()); daily {
			j.open[w] = spans
		}
	}
	for i := range c.services {
		for _, w := range c.services[i].Windows {
			add(w)
		}
	}
	for i := range c.tenants {
		for _, s := range c.tenants[i].Slices {
			add(s.Window)
		}
	}
	return j
}

// dailySpans reads a daily window off its zone's clock, minute by minute: it opens when the clock first shows its time of the day or a later one on a
// date. So it opens at the change where clocks jump over that time, and once where they show it twice.
func dailySpans(w fleet.Window, from, to time.Time) (out []open, daily bool) {
	f := strings.Fields(w.Schedule)
	if w.Zone == nil || len(f) != 5 || f[2] != "*" || f[3] != "*" || f[4] != "*" {
		return nil, false
	}
	minute, bad := strconv.Atoi(f[0])
	hour, worse := strconv.Atoi(f[1])
	if bad != nil || worse != nil {
		return nil, false
	}
	last := 0
	for t := from.Add(-w.Duration - 48*time.Hour).Truncate(time.Minute); t.Before(to); t = t.Add(time.Minute) {
		if local := t.In(w.Zone); local.YearDay() != last && 60*local.Hour()+local.Minute() >= 60*hour+minute {
			last, out = local.YearDay(), append(out, open{t, t.Add(w.Duration)})
		}
	}
	return out, true
}

// isOpen reports whether a window is open: by the judge's own computing where it has one.
func (j *judge) isOpen(w fleet.Window, at time.Time) bool {
	spans, known := j.open[w]
	if !known {
		return planner.WindowOpen(w, at)
	}
	return slices.ContainsFunc(spans, func(o open) bool { return !at.Before(o.from) && at.Before(o.to) })
}

// unsteady are the faults under which a controller might not carry out what it decided.
var unsteady = []string{scenario.LeaderFlapping, scenario.Crash, scenario.APIConflicts, scenario.StaleCache, scenario.ClockSkew, scenario.Freeze}

// steady reports whether none of them is under way.
func (w *World) steady() bool {
	return !slices.ContainsFunc(unsteady, func(kind string) bool { return w.on(kind) != nil })
}

// floorWithin is how long a service may stand under the floor of an open window: some plans, and what of an act failed.
const floorWithin = 5 * time.Minute

// checkWindows: a window's floor holds soon after it opens, by the clock on the wall.
func (c *controller) checkWindows() {
	for i := range c.services {
		s := &c.w.services[i]
		floor := int32(0)
		for _, x := range c.services[i].Windows {
			if c.judge.isOpen(x, c.w.now) {
				floor = max(floor, x.Min)
			}
		}
		if s.desired >= min(floor, c.w.mostReplicas(i)) || !c.w.steady() || c.bound(i) {
			c.judge.under[i] = 0
			continue
		}
		c.judge.under[i]++
		if time.Duration(c.judge.under[i])*tick > floorWithin {
			c.breaks("service %s has had %d replicas for %s, under the floor of %d of its open window", s.id, s.desired, floorWithin, floor)
		}
	}
}

// noticeWithin is how long a member may use a notice that stands no more.
const noticeWithin = 5 * time.Minute

// checkNotices: a member with a notice whose loan turned back or is over learns of it.
func (c *controller) checkNotices() {
	w := c.w
	for id := range w.pods {
		p := &w.pods[id]
		if p.noticeLoan == "" || p.leaving || !w.steady() || c.stands(p) {
			p.astray = 0
			continue
		}
		if p.astray++; time.Duration(p.astray)*tick > noticeWithin {
			c.breaks("pod %s has been told to go for %s by loan %s, whose notice of epoch %d stands no more", p.name, noticeWithin, p.noticeLoan, p.noticeEpoch)
		}
	}
}

// noticeKey is a pod and a notice: the epoch of a loan.
type noticeKey struct {
	pod   fleet.UID
	loan  fleet.LoanID
	epoch int64
}

func (j *judge) noteNotice(pod fleet.UID, n *protocol.SetNotice, tick int32) {
	if by := (noticeKey{pod, n.Loan, n.Epoch}); j.noticed[by] == 0 {
		j.noticed[by] = max(tick, 1)
	}
}

// The least time before its eviction at which a pod has its notice, and the time for which it is tried: the longest
// notice of a scenario's pools as they come.
const (
	noticedBefore = 15 * time.Second
	noticedWithin = 10 * time.Minute
)

// checkNoticed: a pod that did not answer had a notice of its machine, and not in the moment in which it is evicted; but where no write to it was taken
// for long. A machine that is cut off waits for no pod.
func (c *controller) checkNoticed(p *pod, l *fleet.Loan) {
	if l.Phase.Lost() {
		return
	}
	from := l.FirstNotice
	if from.IsZero() {
		from = l.Created
	}
	for i := range c.loans {
		o := &c.loans[i]
		if at := c.judge.noticed[noticeKey{p.uid, o.ID, o.Epoch}]; o.Node == l.Node && at > 0 && time.Duration(c.w.tick-at)*tick >= noticedBefore {
			return
		}
	}
	if past := c.requested().Sub(from); past < noticedWithin {
		c.breaks("pod %s was evicted %s after the notice of loan %s began, of which it was not told in time", p.name, past, l.ID)
	}
}

// stands reports whether the notice that a pod has is still its loan's.
func (c *controller) stands(p *pod) bool {
	at, ok := c.loanAt(p.noticeLoan)
	return ok && c.loans[at].Epoch == p.noticeEpoch && c.loans[at].Next() != ""
}

// gangWithin is how long a gang may run in part: it lost a member, and is asked for again until its time is out; a new leader gives up nothing
// before it has watched; and some plans.
func gangWithin() time.Duration {
	o := planner.DefaultOptions()
	return o.GangTimeout + o.Window + 3*planEvery
}

// checkGangs: a job runs its whole gang or none of it, but for as long as it takes to give it up.
func (c *controller) checkGangs() {
	w := c.w
	for i := range w.jobs {
		j := &w.jobs[i]
		if j.partial++; len(j.members) == 0 || len(j.members) >= j.spec.Gang || j.done || !w.steady() {
			j.partial = 0
		}
		if d := time.Duration(j.partial) * tick; d > gangWithin() && len(c.others) == 0 {
			c.breaks("job %s has run %d members of a gang of %d for %s", j.id(), len(j.members), j.spec.Gang, d)
		}
	}
}
