package fleet

import (
	"slices"
	"time"

	"github.com/springtide/springtide/reason"
)

// ParcelKind tells machines from sockets.
type ParcelKind string

// The kinds of parcels.
const (
	KindNode   ParcelKind = "Node"
	KindSocket ParcelKind = "Socket"
)

// Loan is one parcel away from home, or on its way. Its moves are methods in phase.go.
type Loan struct {
	ID       LoanID
	UID      UID
	Parcel   ParcelID
	Kind     ParcelKind
	Node     NodeID
	NodeName string
	Cells    []int
	Capacity Resources
	// From is the home pool, To the borrower.
	From, To PoolID
	Phase    Phase
	// Epoch rises at each hand-over: at Emptying, at every entry to Noticed and at every turn back. Reports and acknowledgements that
	// carry an older epoch are void.
	Epoch int64
	// LeaderEpoch is the fencing number of the controller that wrote last.
	LeaderEpoch int64
	Created     time.Time
	// Since is when the phase was entered.
	Since time.Time
	// Due is when the parcel is wanted back: as the forecast says, until the first notice fixes it. From then on it never moves later.
	Due time.Time
	// Asked is why an operator asks for the recall; empty while no operator does.
	Asked string
	// ExpectedUntil is the announced time until which the borrower may expect to keep a lent parcel; zero while it was
	// not.
	ExpectedUntil time.Time
	// Deadline is the latest announced deadline of the phase: no eviction precedes it unless every pod acknowledged.
	Deadline time.Time
	// KillAt is the announced time from which pods that are still on a draining parcel are killed; zero while none was announced.
	KillAt time.Time
	// FirstNotice is when the recall began, LentAt when the borrower became the holder, CleanAt when the node side reported Clean after
	// the recall; zero while not reached.
	FirstNotice, LentAt, CleanAt time.Time
	// Vanished is the UID of the machine, once it is gone and the loan has ended by that.
	Vanished NodeID
	// Claimant is the service whose waiting pods the parcel is recalled for; empty while none is, and where a forecast recalls for all of the pool.
	Claimant ServiceID
	// Reason is why the loan is where it is.
	Reason reason.Reason
	// Version is the resourceVersion that was read.
	Version string
}

// TakeAll reports whether loans that are not over have every cell of their machine between them, so that its home keeps none.
func TakeAll(n *Node, loans []*Loan) bool {
	taken := func(cell int) bool {
		return slices.ContainsFunc(loans, func(l *Loan) bool {
			return l.Node == n.ID && !l.Phase.Ended() && (l.Kind == KindNode || slices.Contains(l.Cells, cell))
		})
	}
	return !slices.ContainsFunc(n.AllCells(), func(cell int) bool { return !taken(cell) })
}

// Late reports whether a recalled parcel came, or at now still is not, home by its due time.
func (l *Loan) Late(now time.Time) bool {
	if l.FirstNotice.IsZero() || l.Due.IsZero() {
		return false
	}
	if !l.CleanAt.IsZero() {
		return l.CleanAt.After(l.Due)
	}
	return now.After(l.Due)
}

// PatienceEnds is until when, after the deadline, pods are waited for that were never evicted. The time under a freeze, in which nothing is evicted, does not
// count.
func (l *Loan) PatienceEnds(ladder Ladder, thawed time.Time) time.Time {
	from := l.Deadline
	if thawed.After(from) {
		from = thawed
	}
	return from.Add(ladder.OrDefault().Patience)
}

// Unevicted reports whether the pod is of offline work and no eviction of it was accepted yet: an accepted one gives the pod its time of deletion.
func (p *Pod) Unevicted() bool { return p.Class == PodOffline && !p.Deleting && !p.Killed }
