package planner

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/scheduler/place"
)

// maker is the plan in the making. Its steps run in the order of Make, and each reads what the earlier ones decided.
type maker struct {
	in   *Input
	plan Plan
	// sizing is what services ask for, and the bounds of it so far.
	sizing *sizing
	// room is who is on each machine; fillers are the pods that hold room, by the name of the machine.
	room    *fleet.Occupancy
	fillers map[string][]*fleet.Pod
	// proposed are the loans that this plan already takes a step with; begun are the cells of those that it begins, by machine, recalled the
	// machines on which it recalls one.
	proposed map[fleet.LoanID]proposed
	begun    map[fleet.NodeID][]int
	recalled map[fleet.NodeID]bool
	// adopted are the cells of each machine for which this plan makes a loan again.
	adopted map[fleet.NodeID][]int
	// used says of machines that offline uses a part of them although no loan says so.
	used map[fleet.NodeID]reason.Reason
	// ledgers are what the online pools have and need, computed when first asked for.
	ledgers map[fleet.PoolID]*ledger
	poolOf  map[fleet.ServiceID]fleet.PoolID
	// shortened are the deadlines of notices that online pods wait for.
	shortened map[fleet.LoanID]time.Time
	// clean are loans whose parcels the borrower may have, unless the plan recalls others of the same machine.
	clean []*fleet.Loan
	// returning are loans that it brings home.
	returning map[fleet.LoanID]bool
	// ends are the pods that the plan evicts or kills.
	ends map[fleet.UID]bool
	// regained is the CPU that machines have left after what pods that come back from standby get again.
	regained map[fleet.NodeID]fleet.MilliCPU
	// tenants is what was divided among them.
	tenants *tenants
	// budgets is what the plan spends of the disruption budgets, computed when first asked for.
	budgets map[fleet.PoolID]*fleet.Spending
	// fits is what fits where, built when first asked for.
	fits *place.Table
}

func newMaker(in *Input) *maker {
	s := in.Snapshot
	if in.changes = openChanges(s); in.changes != nil {
		in.homes = PoolsOf(s)
	}
	m := &maker{in: in, plan: Plan{Revision: s.Revision, At: s.At, LeaderEpoch: s.LeaderEpoch, Thawed: in.Thawed},
		room: fleet.OccupancyOf(s), fillers: map[string][]*fleet.Pod{}, proposed: map[fleet.LoanID]proposed{},
		adopted: map[fleet.NodeID][]int{}, used: map[fleet.NodeID]reason.Reason{}, begun: map[fleet.NodeID][]int{}, recalled: map[fleet.NodeID]bool{}, returning: map[fleet.LoanID]bool{}, ends: map[fleet.UID]bool{},
		ledgers: map[fleet.PoolID]*ledger{}, shortened: map[fleet.LoanID]time.Time{}}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Class == fleet.PodFiller && !p.Deleting && p.HoldsOn != "" {
			m.fillers[p.HoldsOn] = append(m.fillers[p.HoldsOn], p)
		}
	}
	return m
}

// on is who is on a machine.
func (m *maker) on(id fleet.NodeID) *fleet.Machine { return m.room.On(id) }

// rest returns the cool-down of a machine after its loan is deleted: a lent machine uses its own record, a borrowed one
// stays as it is.
func (m *maker) rest(kind MoveKind, l *fleet.Loan) fleet.Rest {
	n := m.in.Snapshot.Node(l.Node)
	switch pool := m.pool(l); {
	case kind != MoveForget || n == nil:
		return fleet.Rest{}
	case pool == nil || pool.Class != fleet.Online:
		return n.Share.Rest
	default:
		return m.in.Options.Rests.After(n.Share.Rest, l, pool.MinimumTerm)
	}
}

func (m *maker) withhold(subject Subject, action, by, why reason.Reason) {
	m.plan.Withheld = append(m.plan.Withheld, Withheld{Subject: subject, Action: action, By: by, Why: why})
}

// withholdOnce is withhold for what one plan may come to twice.
func (m *maker) withholdOnce(subject Subject, action, by, why reason.Reason) {
	if !slices.ContainsFunc(m.plan.Withheld, func(w Withheld) bool {
		return w.Subject == subject &&
			w.Action.Equal(action) && w.By.Equal(by)
	}) {
		m.withhold(subject, action, by, why)
	}
}

// pool finds the pool that a loan is from; nil once it is gone.
func (m *maker) pool(l *fleet.Loan) *fleet.Pool { return m.in.Snapshot.Pool(l.From) }

// terms are those of the pool that a loan is from, or what the API sets by default: what a pool lent that is gone goes home by the same ladder.
func (m *maker) terms(l *fleet.Loan) *fleet.Pool {
	if p := m.pool(l); p != nil {
		return p
	}
	return &fleet.Pool{Notice: 2 * time.Minute, NoticeMax: 10 * time.Minute}
}

// emptying reports whether a pod is on a machine of which a parcel is being emptied.
func (m *maker) emptying(p *fleet.Pod) bool {
	st := m.on(p.Node).Moves
	return st.Emptying+st.Back > 0 && m.in.Snapshot.Node(p.Node) != nil
}
