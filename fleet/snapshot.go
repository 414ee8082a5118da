package fleet

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// Revision counts the cycles of one controller.
type Revision int64

// Snapshot is every fact that one cycle decides on. It is immutable once built, and At is the only clock that decisions know.
// Every list is sorted by ID (pods by name), so that equal facts give equal bytes.
type Snapshot struct {
	Revision Revision
	At       time.Time
	// LeaderEpoch fences this controller's writes.
	LeaderEpoch int64
	// WatchedSince is when this controller began to watch as a leader; nothing that takes away starts before one full window from it.
	WatchedSince time.Time
	// Frozen says why all actions are held; empty when they are not.
	Frozen string

	Nodes     []Node
	Pods      []Pod
	Pools     []Pool
	Tenants   []Tenant
	Services  []Service
	Jobs      []Job
	Loans     []Loan
	Festivals []Festival
	// Orphans are adopted HPAs that no service asks to be kept.
	Orphans []AdoptedHPA
}

// SeenFrozen reports whether the status of a pool shows a freeze: all is frozen, or the leader that saw it thaw did not
// come to say so.
func (s *Snapshot) SeenFrozen() bool {
	return slices.ContainsFunc(s.Pools, func(p Pool) bool { return p.SeenFrozen })
}

// Sort brings every list into its order. The builder of a snapshot calls it once.
func (s *Snapshot) Sort() {
	slices.SortFunc(s.Nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Pods, func(a, b Pod) int { return a.Name.Compare(b.Name) })
	slices.SortFunc(s.Pools, func(a, b Pool) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Tenants, func(a, b Tenant) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Services, func(a, b Service) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Jobs, func(a, b Job) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Loans, func(a, b Loan) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Festivals, func(a, b Festival) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Orphans, func(a, b AdoptedHPA) int { return a.Name.Compare(b.Name) })
	for i := range s.Services {
		slices.SortFunc(s.Services[i].Pods, func(a, b Pod) int { return a.Name.Compare(b.Name) })
	}
}

// Node finds a node by its UID, or nil.
func (s *Snapshot) Node(id NodeID) *Node {
	return find(s.Nodes, id, func(x *Node) NodeID { return x.ID })
}

// Pool finds a pool, or nil.
func (s *Snapshot) Pool(id PoolID) *Pool {
	return find(s.Pools, id, func(x *Pool) PoolID { return x.ID })
}

// ClassOf is the class of a pool; empty for one that is not known.
func (s *Snapshot) ClassOf(id PoolID) Class {
	if p := s.Pool(id); p != nil {
		return p.Class
	}
	return ""
}

// ByCells reports whether the online pods of a pool are placed by the cells of NodeShares: the bundled scheduler does so, the cluster's own reads the marks of nodes.
func (s *Snapshot) ByCells(id PoolID) bool {
	p := s.Pool(id)
	return p != nil && p.Scheduler != ""
}

// FromOffline reports whether a loan's parcel is at home in an offline pool. Of a pool that is gone the borrower tells: loans go from one side
// to the other.
func (s *Snapshot) FromOffline(l *Loan) bool {
	if from := s.Pool(l.From); from != nil {
		return from.Class == Offline
	}
	to := s.Pool(l.To)
	return to != nil && to.Class == Online
}

// Service finds a service, or nil.
func (s *Snapshot) Service(id ServiceID) *Service {
	return find(s.Services, id, func(x *Service) ServiceID { return x.ID })
}

// Job finds a job, or nil.
func (s *Snapshot) Job(id JobID) *Job { return find(s.Jobs, id, func(x *Job) JobID { return x.ID }) }

// Loan finds a loan, or nil.
func (s *Snapshot) Loan(id LoanID) *Loan {
	return find(s.Loans, id, func(x *Loan) LoanID { return x.ID })
}

// Orphaned reports whether no loan answers for an entry of a NodeShare: its loan was deleted by hand, or it is over although the borrower holds the
// cells or is to get them, which only a hand can write. Loans and shares are watched apart, so a component that acts on it asks for the loan itself first.
func (s *Snapshot) Orphaned(e *ShareParcel) bool {
	l := s.Loan(e.Loan)
	return l == nil || l.UID != e.LoanUID || l.Phase.Ended() && (e.Holder != l.From || e.Next != "")
}

// find looks an item up in a list that is sorted by its id, or returns nil. It copies none on its way: they are large, and a plan asks for
// each loan's machine many times.
func find[T any, K cmp.Ordered](list []T, id K, of func(*T) K) *T {
	i := sort.Search(len(list), func(i int) bool { return of(&list[i]) >= id })
	if i == len(list) || of(&list[i]) != id {
		return nil
	}
	return &list[i]
}

// PodsByNode groups the pods that occupy a node, in the order of their names.
func (s *Snapshot) PodsByNode() map[NodeID][]*Pod {
	// Pods are counted first and then share one list: a list that grows for each of 20,000 machines costs more than the plan.
	at, counts := make(map[NodeID]int32, len(s.Nodes)), make([]int32, 0, len(s.Nodes))
	where, total := make([]int32, len(s.Pods)), 0
	for i := range s.Pods {
		where[i] = -1
		if !s.Pods[i].Occupies() {
			continue
		}
		k, ok := at[s.Pods[i].Node]
		if !ok {
			k = int32(len(counts))
			at[s.Pods[i].Node], counts = k, append(counts, 0)
		}
		where[i] = k
		counts[k]++
		total++
	}
	all, lists := make([]*Pod, 0, total), make([][]*Pod, len(counts))
	for k, n := range counts {
		lists[k] = all[len(all) : len(all) : len(all)+int(n)]
		all = all[:len(all)+int(n)]
	}
	for i, k := range where {
		if k >= 0 {
			lists[k] = append(lists[k], &s.Pods[i])
		}
	}
	out := make(map[NodeID][]*Pod, len(at))
	for id, k := range at {
		out[id] = lists[k]
	}
	return out
}

// LoansByNode groups the loans that name a machine, whatever became of it, in the order of their ids.
func (s *Snapshot) LoansByNode() map[NodeID][]*Loan {
	out := make(map[NodeID][]*Loan, len(s.Loans))
	for i := range s.Loans {
		out[s.Loans[i].Node] = append(out[s.Loans[i].Node], &s.Loans[i])
	}
	return out
}

// DisruptionPool is the pool whose disruption budget bounds what is taken off a machine: the online pool that borrows the machine while it holds it,
// or else the machine's home. A machine that online lends stays with its home: where a socket of it is lent, pods of both sides are on it.
func (s *Snapshot) DisruptionPool(n *Node, loans []*Loan) PoolID {
	for _, l := range loans {
		if l.Phase.Away() && s.FromOffline(l) {
			return l.To
		}
	}
	return n.Pool
}

// PodsByPool counts the pods of online and offline work on the machines of each pool, as its disruption budget does (see [Snapshot.DisruptionPool]).
func (s *Snapshot) PodsByPool() map[PoolID]int {
	out := make(map[PoolID]int, len(s.Pools))
	loans := s.LoansByNode()
	pool := make(map[NodeID]PoolID, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		pool[n.ID] = s.DisruptionPool(n, loans[n.ID])
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Occupies() && (p.Class == PodOnline || p.Class == PodOffline) && pool[p.Node] != "" {
			out[pool[p.Node]]++
		}
	}
	return out
}

// PodsOf counts the pods of a job without a notice.
func (s *Snapshot) PodsOf(job JobID) int {
	n := 0
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Job == job && !p.Deleting {
			n++
		}
	}
	return n
}

// Watching reports whether this controller has watched for at least a window, and so may take away.
func (s *Snapshot) Watching(window time.Duration) bool {
	return !s.WatchedSince.IsZero() && s.At.Sub(s.WatchedSince) >= window
}
