package planner

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reason"
)

// Plan is the whole decision of one cycle: a struct of work that does none of it. The order of its lists is its contract, and the
// actuator carries them out from top to bottom:
//
//  1. Unmarks take marks back from pods that stay; Lowers free room (and steer which pods leave), GiveBacks return floors that nobody asks for;
//  2. Moves take loans one step further, each of them re-checked against fresh facts;
//  3. Notices tell the borrowers' pods;
//  4. Evictions end what was told to go;
//  5. Kills end at once what did not go within its grace;
//  6. Jobs shrink or grow the offline work into what is lent;
//  7. Fillers hold room that nobody may take;
//  8. Marks bring node taints, labels and annotations to what the loans say;
//  9. Raises come into room that is free by then;
//  10. Resizes come last: they can wait.
//
// Everything is a level, not an edge: what could not be done is still true in the next snapshot and is planned again.
type Plan struct {
	Revision    fleet.Revision
	At          time.Time
	LeaderEpoch int64
	// Thawed is [Input.Thawed]: what a freeze did to the plan holds for who judges its writes, too.
	Thawed time.Time

	Unmarks   []Unmark
	Lowers    []Scale
	GiveBacks []GiveBack
	Moves     []Move
	Notices   []Notice
	Evictions []Eviction
	Kills     []Kill
	Jobs      []JobScale
	Fillers   []Filler
	Marks     []Mark
	Raises    []Scale
	Resizes   []Resize

	// Targets and Division are the reasoning that status, events and `explain` show, in Observe mode too.
	Targets  []hpa.Target
	Division quota.Division
	// Pools says for each lending pool what the cycle saw: capacity, need now and ahead, what is lent, what pins the rest.
	Pools []PoolView
	// Gangs say how the minima of jobs stand once this plan is carried out, in the order of job ids.
	Gangs []GangView
	// Links say which members of link groups were raised, and who holds the others up, by the name of the group.
	Links []LinkView
	// ETAs say when jobs that wait are expected to begin, in the order of job ids.
	ETAs []ETA
	// Survivals are updated promises to the borrowers of lent parcels.
	Survivals []Survival
	// Strays are the machines that a borrower uses although no loan says so, in the order of their UIDs.
	Strays []Stray
	// Withheld are actions that a mode, freeze, pause or budget held back; they are recorded and never applied.
	Withheld []Withheld
}

// Scale sets the replicas of one service's target.
type Scale struct {
	Service  fleet.ServiceID
	Target   fleet.Name
	Kind     string
	By       fleet.Actuation
	From, To int32
	// Version is the resourceVersion of the facts that the decision depends on (the target's, or the HPA's).
	Version string
	// Victims are the pods that a scale-in should take: their deletion cost is written just before the scale.
	Victims []PodRef
	// Charges are the victims that go because a machine is to be emptied, or that a quota takes back: they are written
	// into the disruption ledgers before the scale.
	Charges []Charge
	Why     reason.Reason
}

// PodRef names one pod for good: a UID never comes back.
type PodRef struct {
	Name fleet.Name
	ID   fleet.UID
}

// MoveKind is one arrow of the loan's phase machine.
type MoveKind string

// The moves.
const (
	MoveBegin    MoveKind = "Begin"    // a machine or socket begins to empty for a loan
	MoveLend     MoveKind = "Lend"     // it is clean, and the borrower has it
	MoveCancel   MoveKind = "Cancel"   // it stays at home: it is needed, or did not empty in time
	MoveRecall   MoveKind = "Recall"   // the borrower is notified of the recall
	MoveTurnBack MoveKind = "TurnBack" // the recall is taken back: the tide turned
	MoveAnnounce MoveKind = "Announce" // a deadline is announced again, as after a freeze
	MoveDrain    MoveKind = "Drain"    // the notice is over: pods of the borrower are evicted
	MoveFence    MoveKind = "Fence"    // pods did not end in time: the machine is cut off by a taint
	MoveWriteOff MoveKind = "WriteOff" // the machine is still not clean: its capacity counts as lost
	MoveReturn   MoveKind = "Return"   // it is clean and at home again
	MoveNodeGone MoveKind = "NodeGone" // the machine left the cluster
	MoveAdopt    MoveKind = "Adopt"    // a parcel that its borrower uses although no loan says so gets one, which begins with the notice
	MoveClear    MoveKind = "Clear"    // remove an entry of the NodeShare whose loan is gone and whose parcel is home
	MoveForget   MoveKind = "Forget"   // delete an ended loan and its entry in the NodeShare
	MoveRepair   MoveKind = "Repair"   // bring a NodeShare that disagrees with its loan (a crash between two writes) in line
)

// Move takes one loan one step further. Before is the loan as the decision saw it, After as the phase machine makes it.
type Move struct {
	Kind          MoveKind
	Before, After fleet.Loan
	Node          string
	// Rest is what the machine's share says of its rest from then on, where the loan is forgotten.
	Rest fleet.Rest
	Why  reason.Reason
}

// Notice writes the checkpoint notice on one borrower's pod.
type Notice struct {
	Pod      PodRef
	Loan     fleet.LoanID
	Epoch    int64
	Deadline time.Time
	// Again says that the pod knows of this epoch already and only the deadline moved: an answer that it gave stands.
	Again bool
	// TakenBack says that the pod may work on: the notice it carries stands no more.
	TakenBack bool
}

// Eviction ends one borrower's pod through the Eviction API. Only offline pods are ever named here.
type Eviction struct {
	Pod  PodRef
	Loan fleet.LoanID
	Job  fleet.JobID
	Why  reason.Reason
}

// Kill ends, with no grace, one borrower's pod that should have ended, after the time that its loan announced. Only
// offline pods are ever named here.
type Kill struct {
	Pod  PodRef
	Loan fleet.LoanID
	Job  fleet.JobID
	Why  reason.Reason
}

// JobScale sets the parallelism of one member of an elastic job.
type JobScale struct {
	Job      fleet.JobID
	Role     string
	Workload fleet.Name
	Kind     string
	From, To int32
	// Victims names the pods that a smaller size takes, where the workload's operator accepts names, or their hosts are
	// listed.
	Victims []string
	Version string
	// Charges are the members that go for others: they are written into the disruption ledgers before the scale.
	Charges []Charge
	Why     reason.Reason
}

// GangView is how the minimum of one job stands, and why it does not run yet.
type GangView struct {
	Job fleet.JobID
	fleet.Gang
	Note reason.Reason
}

// Filler holds room on a node: a pause pod of high priority that goes at once when told.
type Filler struct {
	// Name is derived from node, pool and size, so that the same want gives the same pod.
	Name    string
	Node    string
	Room    fleet.Resources
	Delete  bool
	ID      fleet.UID // of the pod to delete
	Loan    fleet.LoanID
	Purpose reason.Code // what the room is kept for
}

// Mark sets the marks of one node.
type Mark struct {
	Node string
	ID   fleet.NodeID
	Want fleet.NodeMarks
}

// PoolView is what one cycle saw of a pool that lends.
type PoolView struct {
	Pool     fleet.PoolID
	Nodes    int
	Capacity fleet.Resources
	// Requested is what online pods ask for now; Need and NeedAhead what the targets ask for now, and at most within the lead.
	Requested, Need, NeedAhead fleet.Resources
	// Unfilled is what machines must hold beyond what the services ask for, as a fraction of that, since pods of their sizes leave a part of each.
	Unfilled float64
	// Lead is what a recall takes, part by part.
	Lead Lead
	// Lent counts parcels by kind that are away, Moving those on their way.
	Lent, Moving map[fleet.ParcelKind]int
	LentCapacity fleet.Resources
	// Borrowed is what the pool holds of offline pools.
	Borrowed fleet.Resources
	// Promised is what parcels on their way home will bring, Released what of it was seen to be free already.
	Promised, Released fleet.Resources
	// WrittenOff counts the parcels that were given up, Lost is what they and the fenced ones hold.
	WrittenOff int
	Lost       fleet.Resources
	// Pinned names nodes that could not be emptied, and by what.
	Pinned []Pin
	// Shut counts the machines on which no online pod may land, by what keeps them off, the most first. They are no room for online.
	Shut []ShutMachines
	// Note is what became of lending in this plan.
	Note reason.Reason
}

// ShutMachines is how many machines one thing keeps new pods off.
type ShutMachines struct {
	By    fleet.Shut
	Nodes int
}

// Pin is one node that stays, and the pod or reason that keeps it.
type Pin struct {
	Node string
	By   reason.Reason
}

// Withheld is an action that was decided but not let through.
type Withheld struct {
	Subject Subject
	Action  string // "scale 40 -> 31"
	By      reason.Reason
	Why     reason.Reason
}
