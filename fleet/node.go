package fleet

import (
	"cmp"
	"slices"
	"time"
)

// Class says which side of the tide a pool or a pod belongs to.
type Class string

// The classes. Online services have SLOs and come first; offline work takes what is lent.
const (
	Online  Class = "Online"
	Offline Class = "Offline"
)

// Unit is the smallest parcel that a pool lends.
type Unit string

// The lendable units.
const (
	UnitNode   Unit = "Node"   // whole machines only
	UnitSocket Unit = "Socket" // whole machines first, then sockets
)

// Mode says how far Springtide may go on its own.
type Mode string

// The modes. The zero value acts as Observe, so that nothing acts by an omission.
const (
	Observe   Mode = "Observe"   // record what would be done
	Recommend Mode = "Recommend" // say it in status and events as well
	Auto      Mode = "Auto"      // do it
)

// Acts reports whether the mode lets actions through.
func (m Mode) Acts() bool { return m == Auto }

// Cell is one NUMA cell of a machine ("node" means machine here).
type Cell struct {
	ID, Socket int
	// Capacity is what pods can have of the cell as its reporter knows it: its memory is without huge pages and without what is reserved on this cell.
	// A cell can have memory alone.
	Capacity Resources
}

// Node is one machine as observed.
type Node struct {
	ID   NodeID
	Name string
	Zone string
	// Network is the network pod (a block of racks with full bandwidth inside) that the machine is in; empty where it
	// is unknown.
	Network string
	// Pool is the home pool; empty for nodes outside of Springtide's care.
	Pool        PoolID
	Allocatable Resources
	GPUModel    string
	// Cells are sorted by ID and empty where the topology is unknown: such a node is lent whole or not at all.
	Cells []Cell
	// Ready is false for a node that is not ready, cordoned or being deleted, and for one of an online pool with a taint that its services do not
	// tolerate: no pod of online may land there.
	Ready bool
	// Shut says why a node is not Ready.
	Shut Shut
	// Leaving is by what the machine is known to go, or to be maintained: a condition of its administrator, a taint of a node autoscaler or cloud, its
	// deletion; empty without one. Online goes on there for as long as it may, nothing new is lent, and what comes home brings no room.
	Leaving string
	// Repels are the online pools whose services do not tolerate the taints of others on a node of an offline pool, sorted: borrowed, it would be no room
	// for them. The node stays Ready, since its own pool's work may tolerate them.
	Repels []PoolID
	// AgentAlive says that a node agent showed life lately; without one a socket cannot be confined.
	AgentAlive bool
	// AgentKnown says that an agent was recorded on this machine and never uninstalled: while it is silent, no other
	// component speaks for it.
	AgentKnown bool
	Marks      NodeMarks
	Share      Share
}

// ShutBy is what keeps new pods off a machine.
type ShutBy string

// The reasons for which a machine takes no new pods.
const (
	ShutByTaint    ShutBy = "Taint"    // a taint of others, which the services of the pool do not tolerate
	ShutByCordon   ShutBy = "Cordon"   // spec.unschedulable
	ShutByDeletion ShutBy = "Deletion" // the Node is being deleted
	ShutByKubelet  ShutBy = "Kubelet"  // its kubelet does not report Ready
)

// Shut is why a machine takes no new pods; the zero value where it does, or where that is not known.
type Shut struct {
	By ShutBy
	// Taint is "key=value:Effect".
	Taint string
}

// String names the reason in a message.
func (s Shut) String() string {
	switch s.By {
	case ShutByTaint:
		return "the taint " + s.Taint
	case ShutByCordon:
		return "a cordon"
	case ShutByDeletion:
		return "the deletion of the Node"
	case ShutByKubelet:
		return "a kubelet that is not Ready"
	}
	return "a reason that is not known"
}

// Lasts reports whether room on the machine can be counted on for the time ahead: it takes pods, and is not known to go.
func (n *Node) Lasts() bool { return n.Ready && n.Leaving == "" }

// Admits reports whether a machine of an offline pool is room for an online pool that borrows it: it is ready, and the pool's services tolerate its taints.
func (n *Node) Admits(pool PoolID) bool { return n.Ready && !slices.Contains(n.Repels, pool) }

// Agentless reports whether no agent was ever seen on the machine. The controller then decides Clean by the API server's facts, for the
// whole machine and for no part of it.
func (n *Node) Agentless() bool { return !n.AgentAlive && !n.AgentKnown }

// NodeMarks are the marks of ours that a node carries.
type NodeMarks struct {
	// HolderTaint: the taint springtide.dev/holder=offline:NoSchedule, which keeps online pods away.
	HolderTaint bool
	// OfflineLabel: the label springtide.dev/offline=true, which offline pods ask for.
	OfflineLabel bool
	// HomeLabel: the label springtide.dev/home=offline, which stable members ask for: what is lent to offline lacks it.
	HomeLabel bool
	// KeepNode: the cluster-autoscaler's scale-down-disabled and Karpenter's do-not-disrupt annotations.
	KeepNode bool
	// Fence: the taint springtide.dev/fenced, which cuts off a machine whose parcel did not come home.
	Fence Fence
}

// KeepOff reports whether no more pods of a class may land behind the marks: the taint keeps online ones off, the
// missing label offline ones. A node side says Clean for cells that a class leaves behind such marks alone, since a pod
// that lands later would be on another's cells.
func (m NodeMarks) KeepOff(c Class) bool {
	if c == Online {
		return m.HolderTaint
	}
	return !m.OfflineLabel
}

// Fence says how a machine is cut off: the effect of the taint springtide.dev/fenced, or empty.
type Fence string

// The fences.
const (
	FenceNone Fence = ""
	// FenceSchedule lets nothing new land; what runs there stays. It is for machines on which online pods are, too.
	FenceSchedule Fence = "NoSchedule"
	// FenceExecute also ends whatever does not tolerate it.
	FenceExecute Fence = "NoExecute"
)

// Sockets lists the socket numbers in order.
func (n *Node) Sockets() []int {
	var out []int
	for _, c := range n.Cells {
		if !slices.Contains(out, c.Socket) {
			out = append(out, c.Socket)
		}
	}
	slices.Sort(out)
	return out
}

// CellsOf lists the cells of one socket.
func (n *Node) CellsOf(socket int) []int {
	var out []int
	for _, c := range n.Cells {
		if c.Socket == socket {
			out = append(out, c.ID)
		}
	}
	return out
}

// AllCells lists every cell; a node of unknown topology counts as the single cell 0.
func (n *Node) AllCells() []int {
	if len(n.Cells) == 0 {
		return []int{0}
	}
	out := make([]int, len(n.Cells))
	for i, c := range n.Cells {
		out[i] = c.ID
	}
	return out
}

// CapacityOf is what the given cells can hold. All cells together hold Allocatable exactly. The system's reservation is
// not known by cell: it is taken from each cell in proportion, CPU and pods by the cells' CPUs, memory by their memory.
// No part holds more memory than its cells have.
func (n *Node) CapacityOf(cells []int) Resources {
	if len(cells) >= max(len(n.Cells), 1) {
		return n.Allocatable
	}
	var part, whole Resources
	for _, c := range n.Cells {
		whole = whole.Add(c.Capacity)
		if slices.Contains(cells, c.ID) {
			part = part.Add(c.Capacity)
		}
	}
	if whole.CPU <= 0 {
		return Resources{}
	}
	byCPU := float64(part.CPU) / float64(whole.CPU)
	out := Resources{
		CPU:    MilliCPU(float64(n.Allocatable.CPU) * byCPU),
		Memory: Bytes(float64(n.Allocatable.Memory) * byCPU),
		GPU:    min(part.GPU, n.Allocatable.GPU),
		Pods:   int64(float64(n.Allocatable.Pods) * byCPU),
	}
	if whole.Memory > 0 { // otherwise its reporter says nothing of memory
		out.Memory = min(Bytes(float64(n.Allocatable.Memory)*(float64(part.Memory)/float64(whole.Memory))), part.Memory)
	}
	return out
}

// Share is the NodeShare of a node: the lock on who holds which cells.
type Share struct {
	Exists bool
	// Version is the resourceVersion that was read; a write carries it, so that two writers cannot both win.
	Version string
	// Former is the resourceVersion of a NodeShare that an earlier machine of this name left. It says nothing of this one; the first write takes it
	// over.
	Former  string
	Parcels []ShareParcel
	// Evicted are the pods that the node's agent evicted lately, oldest first.
	Evicted []AgentEviction
	// Rest is how long the machine is not offered again after loans that came to nothing; zero while it need not rest.
	Rest Rest
}

// Rest is the pause of a machine whose loans were turned back.
type Rest struct {
	// Turns is how many of its last loans were, one after another.
	Turns int
	// Until is when the machine may be offered again.
	Until time.Time
}

// Find returns the share's entry for a loan, or nil.
func (s *Share) Find(loan LoanID) *ShareParcel {
	for i := range s.Parcels {
		if s.Parcels[i].Loan == loan {
			return &s.Parcels[i]
		}
	}
	return nil
}

// Over returns the first entry that has one of the cells, or nil.
func (s *Share) Over(cells []int) *ShareParcel {
	for i := range s.Parcels {
		if Overlap(s.Parcels[i].Cells, cells) {
			return &s.Parcels[i]
		}
	}
	return nil
}

// Overlap reports whether a cell is in both.
func Overlap(a, b []int) bool {
	return slices.ContainsFunc(a, func(c int) bool { return slices.Contains(b, c) })
}

// SameCells reports whether two lists, neither of which names a cell twice, name the same cells.
func SameCells(a, b []int) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c int) bool { return !slices.Contains(b, c) })
}

// ShareParcel is one parcel of a NodeShare: what the controller asked for and what the node side reported.
type ShareParcel struct {
	Cells  []int
	Holder PoolID
	// Next is the pool that the parcel is being prepared for; empty when nothing moves. The node side empties the cells for it.
	Next PoolID
	Loan LoanID
	// LoanUID distinguishes the loan from an earlier one of its name.
	LoanUID UID
	Epoch   int64
	// Clean is what the node side reported last: the cells were seen empty for this epoch. Reports of an older epoch say nothing.
	Clean      bool
	CleanEpoch int64
	CleanAt    time.Time
}

// IsClean reports whether the node side said Clean for the given epoch.
func (p *ShareParcel) IsClean(epoch int64) bool { return p.Clean && p.CleanEpoch == epoch }

// Pool is one CapacityPool.
type Pool struct {
	ID PoolID
	// Refused says why the pool is not accepted.
	Refused Problem
	Class   Class
	Mode    Mode
	Unit    Unit
	// LowWatermark and HighWatermark are shares (0..1) of the pool's capacity: recall when the headroom of online falls below the low
	// one, lend only what leaves more than the high one. The gap between them is the hysteresis.
	LowWatermark, HighWatermark float64
	Notice, NoticeMax           time.Duration
	// MovesAtOnce bounds loans that are in motion, MovesPerHour the loans begun in an hour, and a 60th of it the recalls of a minute that have time.
	MovesAtOnce, MovesPerHour int
	// MinimumTerm is the least time a parcel must be expected to stay away for a loan to be worth its cost.
	MinimumTerm time.Duration
	// Scheduler is the bundled scheduler that serves the pool and holds the room of each side by itself; empty while the cluster's own does.
	Scheduler string
	// Waits says that pods without room wait, for an autoscaler that adds machines; otherwise services share what there
	// is.
	Waits  bool
	Ladder Ladder
	Budget DisruptionBudget
	Ledger Ledger
	// Changes are its windows of change, in the order of the spec.
	Changes []ChangeWindow
	// Evicted are the pods that agents of the pool's machines evicted lately. They count in the ledger's bounds, and are not kept in it.
	Evicted []AgentEviction
	// Version is the resourceVersion that the ledger was read with.
	Version string
	// SeenFrozen: the pool's status shows a freeze, as the last report left it.
	SeenFrozen bool
	// Hold is the pause in force: nothing of the pool is lent, and recalls go on. Ended is one that is over and still
	// stands.
	Hold, Ended Hold
}

// Ladder is how long each of the last rungs of a recall waits before the next is taken: the kill of pods whose end was announced, the fence
// of a machine that is not clean after it, the writing off of one that was fenced. A zero stands for the default.
type Ladder struct {
	// Patience is counted from the deadline of the notice: so long a recall waits for pods whose eviction is refused. Kill is counted from the
	// end of the longest grace of the machine's pods, Fence from the kill, WriteOff from the fence.
	Patience, Kill, Fence, WriteOff time.Duration
}

// The defaults of a Ladder.
const (
	// DefaultPatience is eight cycles: a budget that lets one pod go at a time, with pods that start within seconds, empties a machine in it.
	DefaultPatience = 2 * time.Minute
	// DefaultKillAfter is two cycles of 15 s: one in which the last eviction goes out, one in which its end is seen.
	DefaultKillAfter = 30 * time.Second
	// DefaultFenceAfter is the node side's time to see the cells clean and say so (45 s), and a cycle.
	DefaultFenceAfter = time.Minute
	// DefaultWriteOffAfter is what a machine takes that an operator, or its own watchdog, boots again.
	DefaultWriteOffAfter = 10 * time.Minute
)

// OrDefault puts the defaults in the place of zeros.
func (l Ladder) OrDefault() Ladder {
	return Ladder{Patience: cmp.Or(l.Patience, DefaultPatience), Kill: cmp.Or(l.Kill, DefaultKillAfter), Fence: cmp.Or(l.Fence, DefaultFenceAfter), WriteOff: cmp.Or(l.WriteOff, DefaultWriteOffAfter)}
}

// Tenant is one CapacityQuota.
type Tenant struct {
	ID         TenantID
	Parent     TenantID
	Namespaces []string // matched by the selector, sorted
	Guarantee  Resources
	// LendingLimit is how much of the guarantee others may use; BorrowingLimit how much the tenant may use beyond it. Unknown means
	// no limit.
	LendingLimit, BorrowingLimit Known[Resources]
	// Parcels are the same terms for whole machines and sockets under offline work, sorted by class.
	Parcels []ParcelQuota
	Slices  []Slice
	Burst   Burst
	// Drain is how long what runs beyond the quota may stay after the notice.
	Drain       time.Duration
	MaxPriority JobPriority
	Accepted    bool
	// Refused says what is wrong with the tenant's object. A tenant whose
	// namespaces are contested is accepted for the others.
	Refused Problem
	// OverSince is the time of the tenant's notice that it runs beyond its quota, BurstSince when its last burst began;
	// zero while not, or never. They are kept in the API, so that neither a restart nor a new leader gives more time,
	// or takes any away.
	OverSince, BurstSince time.Time
	// Notices are what it must give back, oldest first, kept as these times are.
	Notices []QuotaNotice
}

// QuotaNotice is what a tenant must give back: all that its online services, and its offline work, owed then, what
// older notices were for included.
type QuotaNotice struct {
	Since           time.Time
	Online, Offline Resources
	// OnlineUsed and OfflineUsed are what it used then: what it uses less since is given back already.
	OnlineUsed, OfflineUsed Resources
	// Parcels are those that its offline work was to leave, by class.
	Parcels []ParcelDebt
}

// ParcelDebt is how many parcels of one class a tenant owed, and how many it was on then.
type ParcelDebt struct {
	Class   ParcelClass
	N, Used int64
}

// ParcelClass is a kind of parcel, of machines with one GPU model where it names one.
type ParcelClass struct {
	Kind     ParcelKind
	GPUModel string
}

// String renders a class as in "Node" or "Socket/H100".
func (c ParcelClass) String() string {
	if c.GPUModel == "" {
		return string(c.Kind)
	}
	return string(c.Kind) + "/" + c.GPUModel
}

// Holds reports whether parcels of a kind, of machines with a GPU model, belong to the class.
func (c ParcelClass) Holds(kind ParcelKind, gpuModel string) bool {
	return c.Kind == kind && (c.GPUModel == "" || c.GPUModel == gpuModel)
}

// ParcelQuota is what a tenant may hold of one class of parcels. Unknown limits are none.
type ParcelQuota struct {
	Class                        ParcelClass
	Guarantee                    int64
	LendingLimit, BorrowingLimit Known[int64]
}

// Slice lifts a tenant's guarantee while its window is open.
type Slice struct {
	Window    Window
	Guarantee Resources
}

// Burst lets a tenant borrow more than its borrowing limit for a bounded time: a share of its guarantee more.
type Burst struct {
	Percent  int
	Duration time.Duration
}
