package sim

import (
	"sort"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/sim/scenario"
)

// nodeSides reports Clean for each parcel that moves, once nobody of the other side needs its cells, its marks have let nobody of that side
// land, and the node side had its time. The time counts from the marks on, so a scheduler that saw them late has bound its last pod by then.
func (c *controller) nodeSides() {
	w := c.w
	if len(w.faults) > 0 {
		for n := range w.facts {
			_, silent := w.hit(scenario.AgentSilent, n)
			_, down := w.hit(scenario.NotReady, n)
			f := &w.facts[n]
			if f.AgentAlive = !silent && !down; f.Ready == down {
				f.Ready = !down
				w.open(int32(n))
			}
		}
	}
	for i := range c.loans {
		l := &c.loans[i]
		next := l.Next()
		if next == "" {
			continue
		}
		n, ok := c.machineOf(l.NodeName)
		if !ok || w.machines[n].gone || w.facts[n].ID != l.Node || !w.facts[n].AgentAlive {
			continue
		}
		e := w.facts[n].Share.Find(l.ID)
		if e == nil || e.IsClean(e.Epoch) {
			continue
		}
		key := errand{l.ID, e.Epoch}
		if !c.vacant(n, l, next) {
			delete(c.free, key)
			continue
		}
		since, known := c.free[key]
		if !known {
			since = w.tick
			c.free[key] = since
		}
		if w.tick-since >= ticks(confine) {
			e.Clean, e.CleanEpoch, e.CleanAt = true, e.Epoch, w.now
			w.facts[n].Share.Version = c.api.Version()
			delete(c.free, key)
			w.changed = true
		}
	}
}

// vacant reports whether what leaves fits into the cells that its side keeps (nothing of a whole machine, the other sockets of a socket), and
// no more of it may land.
func (c *controller) vacant(n int32, l *fleet.Loan, next fleet.PoolID) bool {
	m, marks := &c.w.machines[n], c.w.facts[n].Marks
	if next != offlinePool {
		return m.offline == 0 && marks.KeepOff(fleet.Offline)
	}
	if !marks.KeepOff(fleet.Online) {
		return false
	}
	return m.online <= c.keeps(n, func(o *fleet.Loan) bool { return !o.Phase.Ended() })
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
