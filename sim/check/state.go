package check

// The bounds of the model: two controllers, two machines (or one of two sockets), two jobs of one pod or one of two, a service of up to two replicas.
const (
	controllers = 2
	machines    = 2
	units       = 2 // sockets of a machine at most: the amount that one pod asks for
	loanSlots   = 3 // one for each parcel, and one that lost a race for its cells
	onlinePods  = 2
	jobPods     = 2 // of a job each, or of one gang
	fillerSlot  = onlinePods + jobPods
	podSlots    = fillerSlot + 1
)

// The pools, as the facts name them.
const (
	noSide int8 = iota
	online
	offline
)

// States of a deadline by the clocks: ahead for all, passed for a fast clock alone, passed for all.
const (
	unset int8 = iota
	ahead
	near
	past
)

// How a deadline was moved last.
const (
	extended  int8 = 1 + iota // by a heartbeat, as far as it goes
	shortened                 // to the shortest notice
)

// Where a pod stands.
const (
	absent int8 = iota
	waiting
	bound
	ending
)

// entry is one parcel of a NodeShare. clean is the epoch of the last Clean report; 0 where there is none.
type entry struct {
	loan, cells, holder, next, epoch, clean int8
}

// share is a NodeShare; ver 0 means that there is none.
// acked: the bundled scheduler acknowledged its spec.
type share struct {
	ver, leader, node int8
	acked             bool
	e                 [units]entry
}

// machine is a Node with its share; uid 0 means that it is gone.
type machine struct {
	uid, leader        int8
	last               int8 // the UID that was here before, while there is none
	taint, label, keep bool
	fence              int8 // an index of fences
	share              share
}

// loan is a Loan. The last fields are ghosts: the model knows them, and no controller sees them.
type loan struct {
	uid, ver, leader int8
	machine, node    int8 // index and UID
	cells            int8
	phase, epoch     int8
	wait, announced  int8 // the deadline, and how it was moved last
	kill             int8 // the announced kill
	recalled, old    bool // FirstNotice stands; the phase has lasted as long as any patience
	// The deadline, and the time of the kill, passed before a controller saw a freeze end.
	waitOver, killOver bool
	claimed            bool // its room was taken
	// The deadline, and the time of the kill, passed under a freeze.
	sleptWait, sleptKill bool
}

// pod is a pod of the slot's owner: the service, a job, or ourselves.
type pod struct {
	uid, state, machine int8
	loan, epoch, ack    int8 // the notice and the answer
	beat, cost, late    bool // a heartbeat asks for more time; chosen to leave; started after the machine's last return
	killed              bool
}

// facts are what the API server holds.
type facts struct {
	m            [machines]machine
	l            [loanSlots]loan
	p            [podSlots]pod
	desired      int8 // replicas of the service
	members      [jobPods]int8
	ver          int8 // of the pool
	leader       int8 // of the pool
	spent, taken int8 // the disruption ledger, and what was taken in truth
	tide         int8 // replicas that the load asks for
	frozen       bool
	shown        bool // the pools' status says that all is frozen
	gang         int8 // an index of gangPhases, by the job's status
	gangOld      bool // it has been in this phase for long
}

// Where a controller stands.
const (
	standby int8 = iota
	leading
	deposed // its lease is lost and it does not know
)

// When a controller saw a freeze end.
const (
	none int8 = iota
	before
	justNow // in the cycle in progress
)

// Where a controller is in its cycle.
const (
	idle int8 = iota
	planned
	applying
)

// The kinds that a controller watches, each on its own.
const (
	watchLoans int8 = 1 << iota
	watchShares
	watchPods
	watchNodes
	watchPool
	watchAll = watchLoans | watchShares | watchPods | watchNodes | watchPool
)

// controller is one process. plan, door and stalled are views: the facts that the plan was made from, those that its actions are checked
// against, and what the watches in mask still show.
type controller struct {
	mode, leader        int8
	watched             bool
	froze, shown        bool // its last cycle was frozen; the pools' status said so in it
	thaw                int8 // when it saw a freeze end
	stage               int8
	mask                int8           // the kinds whose watches stall
	step                int8           // the action of its plan that comes next
	sub                 int8           // the writes of it that are done
	charged             bool           // this plan charged the ledger
	loan, held          int8           // the loan that a move in progress is about, and the version that it read
	wrote               [machines]int8 // the versions of the shares that this plan wrote
	plan, door, stalled viewID
}

// report is a Clean report on its way: the node side looked, and has not written yet. ver is the version of the share
// that a controller read; 0 of an agent's report, which depends on none.
type report struct{ machine, node, loan, epoch, ver int8 }

// binding is a pod on its way to a machine: a scheduler decided by marks that may be older than those that stand when it binds. older says that the
// bundled scheduler has seen another share of the machine since.
type binding struct {
	pod, machine, node int8
	older              bool
}

// state is everything. It is comparable, small, and equal exactly when nothing that follows can differ.
type state struct {
	f       facts
	c       [controllers]controller
	report  report
	binding binding
	i       instance
	faults  int8 // that may still happen
	pauses  int8
	turns   int8 // of the tide
	freezes int8
}
