package sim

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/sim/scenario"
)

// Broken is an invariant that did not hold in a run.
type Broken struct {
	Seed uint64
	// Row is the policy and the lender that were played, as policies are named.
	Row  string
	At   time.Time
	What string
	// Faults are what went wrong in the run, as lines of a scenario.
	Faults string
}

// Error says what broke, when, and under which faults.
func (b *Broken) Error() string {
	s := fmt.Sprintf("seed %d, %s, %s: %s", b.Seed, b.Row, b.At.UTC().Format("2006-01-02 15:04:05Z"), b.What)
	if b.Faults != "" {
		s += "; faults: " + b.Faults
	}
	return s
}

// breaks notes the first invariant that does not hold and ends the run.
func (c *controller) breaks(format string, args ...any) {
	if c.err == nil {
		c.err = &Broken{Seed: c.w.b.Seed, At: c.w.now, What: fmt.Sprintf(format, args...), Faults: listFaults(c.w.faults)}
		c.cancel()
	}
}

// checkPlan: one function resolves what the planner's passes propose for a loan, and knows each pair that they propose.
func (c *controller) checkPlan(p *planner.Plan) {
	for _, w := range p.Unresolved() {
		c.breaks("the planner withholds from itself, for %s, %s: %s (%s)", w.Subject, w.Action, w.By, w.Why)
	}
}

// check looks at what must hold at every moment.
func (c *controller) check() {
	w := c.w
	c.checkGangs()
	c.checkWindows()
	c.checkPromises()
	c.checkTogether()
	for i := range c.loans {
		l := &c.loans[i]
		n, ok := c.machineOf(l.NodeName)
		if !ok || w.machines[n].gone || w.facts[n].ID != l.Node {
			continue
		}
		c.checkHolder(i, n)
	}
	if len(c.others) == 0 {
		for n := range w.machines {
			c.checkGuests(int32(n))
		}
	}
	if len(w.faults) > 0 {
		c.noteEnds()
		c.checkNotices()
		if err := w.sound(); err != nil {
			c.breaks("the books: %v", err)
		}
	}
}

// holds reports whether a loan has its parcel. The machine's share is the lock: a loan that begins has none before it is there.
func (c *controller) holds(l *fleet.Loan, n int32) bool {
	return !l.Phase.Ended() && (l.Phase != fleet.Emptying || c.w.facts[n].Share.Find(l.ID) != nil)
}

// checkHolder: a parcel has one holder, and room that came home is its claimant's. The machine's other sockets may still be lent: when a controller died
// while it recalled two sockets of a machine, one comes home before the other.
func (c *controller) checkHolder(i int, n int32) {
	l, m := &c.loans[i], &c.w.machines[n]
	// Loans are sorted by names that begin with the machine's, so those of one machine stand together.
	for k := i + 1; k < len(c.loans) && c.loans[k].NodeName == l.NodeName; k++ {
		if o := &c.loans[k]; o.Node == l.Node && c.holds(o, n) && c.holds(l, n) && fleet.Overlap(o.Cells, l.Cells) {
			c.breaks("loans %s and %s both hold a parcel of machine %s", l.ID, o.ID, l.NodeName)
		}
	}
	if l.From == offlinePool {
		c.checkBorrowed(l, n)
		return
	}
	switch {
	case c.keepsOut(l, n) && m.online > c.keeps(n, func(o *fleet.Loan) bool { return c.keepsOut(o, n) }):
		c.breaks("online pods are on machine %s, with more cores (%d) than loan %s, which is %s, and others of it leave them", l.NodeName, m.online, l.ID, l.Phase)
	case c.keepsOut(l, n) && m.toOnline && (!c.w.byShare(n) || c.keeps(n, func(o *fleet.Loan) bool { return c.keepsOut(o, n) }) == 0):
		c.breaks("machine %s is open to online while loan %s is %s", l.NodeName, l.ID, l.Phase)
	case l.Phase == fleet.Returned && m.offline > c.lent(n):
		c.breaks("offline work is on machine %s, which loan %s brought home for its claimant", l.NodeName, l.ID)
	}
}

// keepsOut reports whether a loan keeps online off its parcel: while it is away, but for the moment in which the share has it at home already and the loan's
// own status is not written. The bundled scheduler places pods by the share; a controller that dies in that moment leaves the status to the next one.
func (c *controller) keepsOut(l *fleet.Loan, n int32) bool {
	e := c.w.facts[n].Share.Find(l.ID)
	return l.Phase.Away() && (!c.w.byShare(n) || e == nil || e.Holder != l.From || e.Next != "")
}

// togetherWithin is how long a socket may stay lent after a recall of another one of its machine, while the controller can act: three plans.
const togetherWithin = 3 * planEvery

// checkTogether: all sockets of a machine are recalled together. A controller that dies between the two notices leaves the second one to the next.
func (c *controller) checkTogether() {
	apart := c.judge.apart
	c.judge.apart = map[fleet.UID]int32{}
	for i := range c.loans {
		l := &c.loans[i]
		recalled := func(o fleet.Loan) bool {
			return o.Node == l.Node && o.From == onlinePool && o.Phase != fleet.Emptying && o.Phase != fleet.Lent && o.Phase != fleet.Cancelled
		}
		if l.Phase != fleet.Lent || l.From != onlinePool || !c.w.steady() || !slices.ContainsFunc(c.loans, recalled) {
			continue
		}
		n := apart[l.UID] + 1
		if c.judge.apart[l.UID] = n; time.Duration(n)*tick > togetherWithin {
			c.breaks("loan %s has been lent for %s after a recall of its machine %s", l.ID, time.Duration(n)*tick, l.NodeName)
		}
	}
}

// checkGuests: the other side's pods are on a machine within the cells that it lent, pods with a notice or ending ones
// too: a parcel comes home once they are gone, and not before.
func (c *controller) checkGuests(n int32) {
	m := &c.w.machines[n]
	side, cores := "offline work is", m.offline
	if m.home == offlinePool {
		side, cores = "online pods are", m.online
	}
	if cores == 0 {
		return
	}
	name := c.w.facts[n].Name
	switch lent := c.lent(n); {
	case lent == 0:
		c.breaks("%s on machine %s, which nobody lent", side, name)
	case cores > lent:
		c.breaks("%s on machine %s with %d cores, of which %d are lent", side, name, cores, lent)
	}
}

// lent are the cores of a machine that borrowers have.
func (c *controller) lent(n int32) int32 {
	return int32(c.w.facts[n].Allocatable.CPU/1000) - c.keeps(n, func(l *fleet.Loan) bool { return c.away(l, n) })
}

// away reports whether the borrower has a loan's parcel: by the loan, or by the machine's share alone, which is written first and by which the node
// side goes: a controller that died in between leaves it to the next one to bring the loan up to it.
func (c *controller) away(l *fleet.Loan, n int32) bool {
	e := c.w.facts[n].Share.Find(l.ID)
	return l.Phase.Away() || !l.Phase.Ended() && e != nil && e.Holder == l.To
}

// checkBorrowed is the same of a machine whose home is offline. A loan that was begun a second time by a write that came again holds nothing.
func (c *controller) checkBorrowed(l *fleet.Loan, n int32) {
	switch m := &c.w.machines[n]; {
	case l.Phase.Away() && m.offline > 0:
		c.breaks("offline work is on machine %s while online borrows it by loan %s, which is %s", l.NodeName, l.ID, l.Phase)
	case c.holds(l, n) && !c.away(l, n) && m.online > 0:
		c.breaks("online pods are on machine %s, which loan %s has not brought them yet", l.NodeName, l.ID)
	case l.Phase.Lost():
		c.breaks("machine %s was fenced for the return of loan %s", l.NodeName, l.ID)
	}
}

// checkClaims: a machine that came home is its claimant's until he is on it, or his time is over: it is not lent again before.
func (c *controller) checkClaims(m *planner.Move) {
	for i := range c.loans {
		if l := &c.loans[i]; l.Node == m.After.Node && l.From == onlinePool && l.Phase == fleet.Returned {
			c.breaks("machine %s is lent again while loan %s keeps its room for the claimant", m.Node, l.ID)
		}
	}
}

// checkScale: no action of ours puts online under its floor, and no budget is overspent. A write that comes again was judged when it came first: where the size came
// back meanwhile the API server carries it out, and no plan knows of a window that opened in between. The next plan raises what it took, which checkWindows asks for.
func (c *controller) checkScale(a *planner.Scale) {
	s := &c.w.services[c.index[a.Service]]
	floor := int32(s.Spec.Min)
	for _, x := range c.services[c.index[a.Service]].Windows {
		if a.To < a.From && !c.redelivering && x.Min > floor && !c.judge.beyond[s.Name.Namespace] && c.judge.isOpen(x, c.Now()) {
			floor = x.Min
		}
	}
	if a.To < floor {
		c.breaks("service %s was scaled to %d, under its floor of %d", a.Service, a.To, floor)
	}
	c.checkBudgets()
}

// checkEviction: no pod is evicted before the latest announced deadline, of which it had notice before, unless it said
// that it is ready.
func (c *controller) checkEviction(e *planner.Eviction, p *pod) {
	at, ok := c.loanAt(e.Loan)
	if p.kind != offline {
		c.breaks("pod %s, which is online, was evicted", p.name)
	}
	if !ok {
		c.breaks("pod %s was evicted for loan %s, which is not there", p.name, e.Loan)
		return
	}
	l := &c.loans[at]
	switch now, deadline := c.requested(), c.seenDeadline(l); {
	case c.answered(p, l), c.seenAnswer(p, l):
	case l.Deadline.IsZero():
		c.breaks("pod %s was evicted for loan %s, which announced no deadline", p.name, l.ID)
	case now.Before(deadline):
		c.breaks("pod %s was evicted %s before the deadline of loan %s", p.name, deadline.Sub(now), l.ID)
	default:
		c.checkNoticed(p, l)
	}
}

// requested is the time of a request by the clock of the leader that sends it, which announced the deadline or took it over. A request of the leader before
// was judged by that leader's clock: its successor's may be minutes behind.
func (c *controller) requested() time.Time {
	if c.late != nil {
		return c.late.facts.At
	}
	return c.Now()
}

// seenDeadline is the deadline of a loan as the leader that sends a request could see it: an eviction that was on its way when its leader was succeeded knows
// of no deadline that the next one puts off.
func (c *controller) seenDeadline(l *fleet.Loan) time.Time {
	if c.late != nil {
		for i := range c.late.facts.Loans {
			if o := &c.late.facts.Loans[i]; o.UID == l.UID && o.Epoch == l.Epoch {
				return o.Deadline
			}
		}
	}
	return l.Deadline
}

// seenAnswer reports whether the leader that sends a request late saw an answer of the pod to the loan: a notice that came again since may have taken it off.
func (c *controller) seenAnswer(p *pod, l *fleet.Loan) bool {
	return c.late != nil && slices.ContainsFunc(c.late.facts.Pods, func(x fleet.Pod) bool {
		return x.ID == p.uid && x.NoticeLoan == l.ID && x.NoticeEpoch == l.Epoch && x.AckEpoch == l.Epoch
	})
}

// sentAt is the tick at which a request was sent.
func (c *controller) sentAt() int32 {
	if c.late != nil {
		return c.late.sent
	}
	return c.w.tick
}

// answered reports whether a pod said that it is ready, to the present notice of a loan or of another one of the same
// machine: those come home together, so that an answer to one is an answer to all. An answer to an older notice says
// nothing of this one.
func (c *controller) answered(p *pod, l *fleet.Loan) bool {
	at, ok := c.loanAt(p.noticeLoan)
	if !ok || p.ackEpoch == 0 || p.ackEpoch != p.noticeEpoch {
		return false
	}
	o := &c.loans[at]
	return o.Node == l.Node && o.Epoch == p.ackEpoch
}

// checkKill: no pod is killed before the time that was announced for it.
func (c *controller) checkKill(k *planner.Kill, p *pod) {
	at, ok := c.loanAt(k.Loan)
	if p.kind != offline {
		c.breaks("pod %s, which is online, was killed", p.name)
	}
	if !ok || !c.loans[at].Killing(c.requested()) {
		c.breaks("pod %s was killed, and loan %s announced no such time", p.name, k.Loan)
	}
}

// leastPatience is what the scenarios' pools wait, after the deadline, for pods that a disruption budget keeps: the default of the API.
const leastPatience = 2 * time.Minute

// noteEnds notes on which machines a recall has got its first pod to end.
func (c *controller) noteEnds() {
	for i := range c.loans {
		l := &c.loans[i]
		if l.Phase != fleet.Noticed && l.Phase != fleet.Draining || c.judge.ended[l.UID] {
			continue
		}
		n, ok := c.machineOf(l.NodeName)
		if !ok {
			continue
		}
		waits, ends := false, false
		for _, id := range c.w.machines[n].pods {
			if p := &c.w.pods[id]; p.kind == offline {
				waits, ends = waits || !p.leaving, ends || p.leaving
			}
		}
		c.judge.ended[l.UID] = ends || !waits
	}
}

// checkFence: no machine is cut off with a pod on it that was never evicted before the pool's patience with it is over.
func (c *controller) checkFence(n int32, fence fleet.Fence) {
	if fence != fleet.FenceExecute || c.w.misdated() {
		return
	}
	for i := range c.loans {
		l := &c.loans[i]
		least := leastPatience
		if !c.judge.ended[l.UID] {
			least += fleet.DefaultKillAfter + fleet.DefaultFenceAfter // the time of the kill counts from the end of the patience
		}
		if l.NodeName != c.w.facts[n].Name || l.Phase != fleet.Fenced || l.Since.Sub(l.Deadline) >= least {
			continue
		}
		for _, id := range c.w.machines[n].pods {
			if p := &c.w.pods[id]; p.kind == offline && !p.leaving && c.w.timeOf(p.bound).Before(l.Since) {
				c.breaks("machine %s was cut off %s after the deadline of loan %s with pod %s on it, which was never evicted", l.NodeName, l.Since.Sub(l.Deadline), l.ID, p.name)
			}
		}
	}
}

// settledWithin is how long after the last fault everything must be in order again: due loans home, pods placed.
// Deadlines of a start-up have that long beyond it: a scenario may say that pods take up to an hour.
const settledWithin = 30 * time.Minute

// checkSettled looks at what must have happen once nothing goes wrong any more.
func (c *controller) checkSettled() {
	w := c.w
	for i := range c.loans {
		l := &c.loans[i]
		// A parcel that online borrowed goes home when online can do without it.
		if !l.Phase.Ended() && l.From == onlinePool && !l.FirstNotice.IsZero() && w.now.Sub(l.Due) > settledWithin {
			c.breaks("loan %s has been due for %s and is %s", l.ID, w.now.Sub(l.Due), l.Phase)
		}
	}
	for i := range w.services {
		s := &w.services[i]
		// Only a quota, a maximum of its owner's, or a fleet that is full, may keep a service from what it needs.
		if s.waiting == 0 && s.desired < w.mostReplicas(i) && !c.bound(i) && time.Duration(s.broken)*tick > settledWithin+s.longestStart() {
			c.breaks("service %s has broken its SLO for %s with %d replicas", s.id, time.Duration(s.broken)*tick, s.ready)
		}
		for _, id := range s.pods {
			p := &w.pods[id]
			if p.node != none && !p.ready && time.Duration(w.tick-p.readyAt)*tick > settledWithin {
				c.breaks("pod %s has been starting for %s", p.name, time.Duration(w.tick-p.bound)*tick)
			}
			if p.node == none && time.Duration(w.tick-p.created)*tick > settledWithin && w.borrowed > 0 && len(c.others) == 0 {
				c.breaks("pod %s has waited for %s while %d parcels are lent", p.name, time.Duration(w.tick-p.created)*tick, w.borrowed)
			}
		}
	}
}

// bound reports whether what a service may have at most is what it has: by a window of its own, or since the last division leaves its tenant no room
// for one replica more.
func (c *controller) bound(i int) bool {
	s := &c.w.services[i]
	for _, x := range c.services[i].Windows {
		if x.Max > 0 && s.desired >= x.Max && planner.WindowOpen(x, c.Now()) {
			return true
		}
	}
	for k := range c.tenants {
		t := &c.tenants[k]
		limit, divided := c.limits[t.ID]
		if divided && slices.Contains(t.Namespaces, s.Name.Namespace) && c.asks(t)+s.request.CPU > limit {
			return true
		}
	}
	return false
}

// asks is what the online services of a tenant request.
func (c *controller) asks(t *fleet.Tenant) fleet.MilliCPU {
	sum := fleet.MilliCPU(0)
	for k := range c.w.services {
		if s := &c.w.services[k]; slices.Contains(t.Namespaces, s.Name.Namespace) {
			sum += fleet.MilliCPU(1000 * s.Cores * int(s.desired))
		}
	}
	return sum
}

// sound checks that a world's books agree with each other.
func (w *World) sound() error {
	held := make([]machine, len(w.machines))
	counts := make([]service, len(w.services))
	for id := range w.pods {
		p := &w.pods[id]
		if !p.used {
			continue
		}
		if p.node != none {
			*held[p.node].held(p.kind) += p.cores
		}
		if p.kind != online {
			continue
		}
		switch c := &counts[p.owner]; {
		case p.leaving:
			c.leaving++
		case p.ready:
			*c.counts(p)++
		case p.node != none:
			c.starting++
		default:
			c.waiting++
		}
	}
	for i := range w.machines {
		m, h := &w.machines[i], &held[i]
		if m.online != h.online || m.offline != h.offline || m.filled != h.filled {
			return fmt.Errorf("machine %d holds %d, %d and %d cores, its pods %d, %d and %d", i, m.online, m.offline, m.filled, h.online, h.offline, h.filled)
		}
		if m.free != int32(w.b.Fleet.CoresPerNode)-m.online-m.offline-m.filled || m.free < 0 {
			return fmt.Errorf("machine %d has %d cores free", i, m.free)
		}
	}
	for i := range w.machines {
		if n := w.rooms.table.PodsOn(w.rooms.ids[i]); n != len(w.machines[i].pods) {
			return fmt.Errorf("machine %d has %d pods, placement %d", i, len(w.machines[i].pods), n)
		}
	}
	for i := range w.services {
		s, c := &w.services[i], &counts[i]
		if s.ready != c.ready || s.standing != c.standing || s.starting != c.starting || s.waiting != c.waiting ||
			s.leaving != c.leaving {
			return fmt.Errorf("service %d counts %d ready, %d starting, %d waiting, %d leaving; there are %d, %d, %d, %d", i,
				s.ready, s.starting, s.waiting, s.leaving, c.ready, c.starting, c.waiting, c.leaving)
		}
		if len(s.pods) != s.ready+s.standing+s.starting+s.waiting {
			return fmt.Errorf("service %d lists %d pods", i, len(s.pods))
		}
	}
	return nil
}

// misdated reports whether the controller's clock or its facts are off in this run, so that its times are not those of the fleet.
func (w *World) misdated() bool {
	return slices.ContainsFunc(w.faults, func(f fault) bool { return f.Kind == scenario.ClockSkew || f.Kind == scenario.StaleCache })
}

// keeps are the cores of a machine that no loan of a kind has.
func (c *controller) keeps(n int32, of func(*fleet.Loan) bool) int32 {
	f := &c.w.facts[n]
	left := f.Allocatable.CPU
	// Loans are sorted by names that begin with the machine's.
	for i := sort.Search(len(c.loans), func(i int) bool { return c.loans[i].NodeName >= f.Name }); i < len(c.loans) && c.loans[i].NodeName == f.Name; i++ {
		if l := &c.loans[i]; l.Node == f.ID && of(l) {
			left -= f.CapacityOf(l.Cells).CPU
		}
	}
	return int32(left / 1000)
}
