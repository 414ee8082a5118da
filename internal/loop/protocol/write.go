package protocol

import (
	"errors"
	"fmt"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// ObjectKind is the kind of object that a request is for.
type ObjectKind string

// The kinds of objects.
const (
	ObjectLoan      ObjectKind = "Loan"
	ObjectShare     ObjectKind = "NodeShare"
	ObjectPool      ObjectKind = "CapacityPool"
	ObjectNode      ObjectKind = "Node"
	ObjectPod       ObjectKind = "Pod"
	ObjectService   ObjectKind = "Service"   // the target of an ElasticService, or the HPA that scales it
	ObjectJobMember ObjectKind = "JobMember" // the workload of one member of an ElasticJob
	ObjectFiller    ObjectKind = "Filler"    // a pause pod of ours
	ObjectHPA       ObjectKind = "HorizontalPodAutoscaler"
)

// Object names one object of the API.
type Object struct {
	Kind ObjectKind
	// Name is the loan, the machine, the pool, the pod ("namespace/name"), the service, the member ("job/role") or the filler.
	Name string
}

// String names the object in a message.
func (o Object) String() string { return string(o.Kind) + " " + o.Name }

// Precondition is what must hold of the object for a write to be taken. Each field that is set must hold; the zero value demands nothing.
type Precondition struct {
	// Absent demands that there is no object of that name.
	Absent bool
	// UID demands this very object: a UID never comes back.
	UID fleet.UID
	// Version demands the object as it was read, to the byte.
	Version string
	// Size demands the replicas, the parallelism or the floor that the decision started from. Everything else may have changed.
	Size fleet.Known[int32]
	// LeaderEpoch demands that no newer leader wrote the object.
	LeaderEpoch int64
}

// Holds returns nil when the precondition holds of an object as it is, and what does not hold otherwise.
func (p *Precondition) Holds(o *Fact) error {
	switch {
	case p.Absent && o.Exists:
		return errors.New("there is an object of that name")
	case p.Absent:
		return nil
	case !o.Exists:
		return errors.New("it is gone")
	case p.UID != "" && o.UID != p.UID:
		return errors.New("it is another object of that name now")
	case p.Version != "" && o.Version != p.Version:
		return errors.New("it changed since it was checked")
	case p.Size.OK && (!o.Size.OK || o.Size.Value != p.Size.Value):
		return fmt.Errorf("its size is %d now, not %d", o.Size.Value, p.Size.Value)
	case p.LeaderEpoch > 0 && p.LeaderEpoch < o.LeaderEpoch:
		return &NewerLeaderError{Theirs: o.LeaderEpoch, Ours: p.LeaderEpoch}
	}
	return nil
}

// NewerLeaderError refuses a write on an object that carries the epoch of a newer leader. For a former leader that is the end; for a leader that holds
// its lease it does not pass by itself, so it is reported.
type NewerLeaderError struct{ Theirs, Ours int64 }

func (e *NewerLeaderError) Error() string {
	return fmt.Sprintf("leader epoch %d wrote it, this is epoch %d", e.Theirs, e.Ours)
}

// Fact is what is known of one object: what a read answers, and what preconditions are judged by.
type Fact struct {
	Exists      bool
	UID         fleet.UID
	Version     string
	Size        fleet.Known[int32]
	LeaderEpoch int64
	// Ledger is that of a pool.
	Ledger fleet.Ledger
}

// OnConflict says what a conflict means to a write.
type OnConflict string

// Meanings of conflicts.
const (
	// Stale: the facts moved on, and the next cycle decides again.
	ConflictStale OnConflict = ""
	// SameSize: the object is read once again. When its size is still the one that the decision started from, the write is made once more.
	ConflictSameSize OnConflict = "SameSize"
	// SameLedger: as SameSize, of a pool whose disruption ledger no other actor charged. Recalls are added whatever it says.
	ConflictSameLedger OnConflict = "SameLedger"
	// SameLeader: as SameSize, of a node that no newer leader marked. Marks are a level and depend on nothing else of
	// the node.
	ConflictSameLeader OnConflict = "SameLeader"
)

// Sight is what the watches must show of a write before the plan is done, so that the next snapshot does not plan it again.
type Sight string

// The sights.
const (
	SeeNothing Sight = ""
	SeeVersion Sight = "Version" // the version that the write made, or a later one
	SeeGone    Sight = "Gone"    // that the object is gone, or ends
)

// Write is one request that changes an object.
type Write struct {
	// Action is the action that the write is made for; nil for the ledgers of a stage.
	Action planner.Action
	Object Object
	If     Precondition
	Change Change
	// OnConflict is what a conflict means. The object is read once again at the most: a second conflict is stale.
	OnConflict OnConflict
	// Undo takes the earlier writes of the action back when this one is refused; nil where there is nothing to take back.
	Undo *Write
	See  Sight
	// Rests are objects that the write depends on besides its own, at the versions that were judged. An executor that
	// knows a newer version refuses the write as stale. No safety depends on it: an executor that knows no better sends
	// the write.
	Rests []Rest
	// Drained names the loan whose drain this plan wrote and the write depends on; empty where it depends on none. The
	// session hands the write out only after the drain was taken.
	Drained fleet.LoanID

	// Undoes says that the write takes back what an earlier write of its action did.
	Undoes bool

	again  bool     // it met a conflict already, and its object was read once more
	ledger *charges // what a ledger's write is made of
}

// Rest is an object at a version.
type Rest struct {
	Object  Object
	UID     fleet.UID
	Version string
}

// Read asks for an object as the API server has it now.
type Read struct {
	Object Object
}

// Change is what a write changes. The set of its types is closed: an executor has one case for each.
type Change interface{ change() }

type (
	// CreateLoan makes the object of a loan, without a status.
	CreateLoan struct{ Loan *fleet.Loan }
	// SetLoan writes the status of a loan.
	SetLoan struct{ Loan *fleet.Loan }
	// DeleteLoan deletes the object of a loan.
	DeleteLoan struct{}
	// SetShare writes the parcels of a NodeShare. A share of an earlier machine of the name is taken over whole.
	SetShare struct {
		Node fleet.NodeID
		// Create says that there is none yet.
		Create  bool
		Parcels []fleet.ShareParcel
		Rest    fleet.Rest
	}
	// SetLedger writes the disruption ledger of a pool.
	SetLedger struct{ Ledger fleet.Ledger }
	// SetSize writes the replicas of a service's target.
	SetSize struct{ From, To int32 }
	// SetFloor raises minReplicas of the HPA that the user keeps, never below the owner's own.
	SetFloor struct{ From, To int32 }
	// ReturnFloor gives an adopted HPA back to its owner.
	ReturnFloor struct{ To int32 }
	// Steer marks a pod to go first in the scale-in to a size.
	Steer struct{ At int32 }
	// Unsteer takes that mark back, and the deletion cost with it when it is still ours.
	Unsteer struct{ Cost bool }
	// SetNotice writes the checkpoint notice on a pod. Unless it repeats a known epoch, the pod's earlier answer goes.
	SetNotice struct {
		Loan     fleet.LoanID
		Epoch    int64
		Deadline time.Time
		Again    bool
	}
	// DropNotice takes the notice and its answer off a pod.
	DropNotice struct{}
	// EvictPod asks the Eviction API to end a pod with its own grace.
	EvictPod struct{}
	// KillPod asks it to end a pod that ends already, with no grace.
	KillPod struct{}
	// SetParallelism writes the size of one member of an elastic job.
	SetParallelism struct {
		From, To int32
		Victims  []string
	}
	// CreateFiller makes a pause pod that holds room.
	CreateFiller struct{ Filler *planner.Filler }
	// DeleteFiller deletes it.
	DeleteFiller struct{}
	// SetMarks brings a node's taints, labels and annotations to what the loans say.
	SetMarks struct{ Want fleet.NodeMarks }
	// SetRequests changes the requests in the template of a target.
	SetRequests struct{ From, To fleet.Resources }
	// ResizePod changes the requests of a running pod.
	ResizePod struct{ From, To fleet.Resources }
	// NoteCPU writes on a pod what CPU its containers request, for when it comes back from standby.
	NoteCPU struct{}
	// SetInService writes the condition that takes a pod out of traffic, or brings it back.
	SetInService struct {
		In  bool
		Why string
	}
	// LowerCPU lowers the CPU requests of a running pod to a part of what it noted, and RestoreCPU brings them back. Both
	// leave limits as they are, and change nothing where nothing is to be changed.
	LowerCPU   struct{}
	RestoreCPU struct{}
)

func (CreateLoan) change()     {}
func (SetLoan) change()        {}
func (DeleteLoan) change()     {}
func (SetShare) change()       {}
func (SetLedger) change()      {}
func (SetSize) change()        {}
func (SetFloor) change()       {}
func (ReturnFloor) change()    {}
func (Steer) change()          {}
func (Unsteer) change()        {}
func (SetNotice) change()      {}
func (DropNotice) change()     {}
func (EvictPod) change()       {}
func (KillPod) change()        {}
func (SetParallelism) change() {}
func (CreateFiller) change()   {}
func (DeleteFiller) change()   {}
func (SetMarks) change()       {}
func (SetRequests) change()    {}
func (ResizePod) change()      {}
func (NoteCPU) change()        {}
func (SetInService) change()   {}
func (LowerCPU) change()       {}
func (RestoreCPU) change()     {}

// VictimCost is the deletion cost of a pod that is marked to go. It is below the cost of every pod without a mark (0), so that a ReplicaSet
// takes the marked ones first.
const VictimCost = -1000

// Answered is how the API answered a request.
type Answered string

// The answers.
const (
	Taken Answered = "Taken"
	// Conflict: the precondition does not hold, or the object is gone: the facts moved on.
	Conflict Answered = "Conflict"
	// Refused: the API forbade the write, or could not be reached.
	Refused Answered = "Refused"
	// Denied: as Refused, and the API server said no itself: the write had no effect.
	Denied Answered = "Denied"
)

// Answer is what came back for a request.
type Answer struct {
	How Answered
	// UID and Version are those of the object after a write that was taken.
	UID     fleet.UID
	Version string
	// Fact is what a read found, or what the write made of a pool's ledger: stamps of the API are coarser than ours.
	Fact Fact
	// Err says why the request was not taken.
	Err error
}

// Outcome is what became of one action.
type Outcome string

// The outcomes.
const (
	Done   Outcome = "Done"
	Stale  Outcome = "Stale"  // the facts changed since the plan: nothing was written
	Failed Outcome = "Failed" // the API refused or could not be reached
)

// Result is the fate of one action.
type Result struct {
	Action  planner.ActionKind
	Subject string
	Outcome Outcome
	Message string
}
