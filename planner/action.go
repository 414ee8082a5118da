package planner

import (
	"cmp"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// ActionKind names what an action does; receipts, metrics and the journal use it.
type ActionKind string

// The kinds of actions.
const (
	ActionUnmark   ActionKind = "Unmark"
	ActionScale    ActionKind = "Scale"
	ActionGiveBack ActionKind = "GiveBack"
	ActionMove     ActionKind = "Move"
	ActionNotice   ActionKind = "Notice"
	ActionEvict    ActionKind = "Evict"
	ActionKill     ActionKind = "Kill"
	ActionJobScale ActionKind = "JobScale"
	ActionFiller   ActionKind = "Filler"
	ActionMark     ActionKind = "Mark"
	ActionResize   ActionKind = "Resize"
	ActionStandby  ActionKind = "Standby"
	ActionReturn   ActionKind = "Return"
)

// SubjectKind is the kind of object that an action concerns.
type SubjectKind string

// The kinds of subjects. Their values stand in stored plans and in the journal's index.
const (
	SubjectService SubjectKind = "service"
	SubjectPool    SubjectKind = "pool"
	SubjectLoan    SubjectKind = "loan"
	SubjectNode    SubjectKind = "node"
	SubjectJob     SubjectKind = "job"
	SubjectHPA     SubjectKind = "hpa"
	SubjectPod     SubjectKind = "pod"
	SubjectFiller  SubjectKind = "filler"
	// SubjectRequests are what a service's pods request: another line may withhold the scale of the same service.
	SubjectRequests SubjectKind = "requests"
)

// Subject names one object that an action concerns.
type Subject struct {
	Kind SubjectKind
	Name string
}

// String renders the subject: "service shop/cart".
func (s Subject) String() string { return string(s.Kind) + " " + s.Name }

// Compare orders subjects by kind and name.
func (s Subject) Compare(o Subject) int {
	return cmp.Or(cmp.Compare(s.Kind, o.Kind), cmp.Compare(s.Name, o.Name))
}

// Action is one thing that a plan wants done. The pointers to the elements of a plan's lists implement it.
type Action interface {
	// ActionKind says what is done.
	ActionKind() ActionKind
	// Subjects are the objects that the action concerns. The first one names the action in receipts.
	Subjects() []Subject
	// ActionWhy is the reason; zero where the action follows from the phase of its loan alone.
	ActionWhy() reason.Reason
	// Summary says in a few words what is done, with its numbers.
	Summary() reason.Reason
}

// Key identifies an action within its plan: no plan holds two actions of one kind on one first subject.
type Key struct {
	Kind    ActionKind
	Subject string
}

// KeyOf is the key of an action.
func KeyOf(a Action) Key { return Key{a.ActionKind(), a.Subjects()[0].Name} }

// subjects drops those without a name: an eviction for a quota has no loan, say.
func subjects(all ...Subject) []Subject {
	out := all[:0]
	for _, s := range all {
		if s.Name != "" {
			out = append(out, s)
		}
	}
	return out
}

// PodRef names one pod for good: a UID never comes back.
type PodRef struct {
	Name fleet.Name
	ID   fleet.UID
}

// Charge is what one action takes from the disruption budget of a pool.
type Charge struct {
	Pool fleet.PoolID
	Pods int
	// Due says that the room goes back to whom it was lent by: it is counted on the line of the recalls, shown and
	// never blocked.
	Due bool
}

// On returns a ledger on which the pods of an owner are counted, on the line that is theirs.
func (c Charge) On(l fleet.Ledger, now time.Time, owner string) fleet.Ledger {
	if c.Due {
		return l.ChargeRecalls(now, c.Pods)
	}
	return l.Charge(now, owner, c.Pods)
}

// Unmark takes the mark of a victim back from a pod that stays. The mark says for which scale-in it was written, so
// that what the target's controller really took can be seen in the facts alone, by whichever leader looks.
type Unmark struct {
	Service fleet.ServiceID
	Pod     PodRef
	Node    string
	// Passed says that the scale-in is over and took another pod instead.
	Passed bool
	Why    reason.Reason
}

// ActionKind implements [Action].
func (*Unmark) ActionKind() ActionKind { return ActionUnmark }

// Subjects implements [Action].
func (a *Unmark) Subjects() []Subject {
	return subjects(Subject{SubjectPod, a.Pod.Name.String()}, Subject{SubjectService, string(a.Service)}, Subject{SubjectNode, a.Node})
}

// ActionWhy implements [Action].
func (a *Unmark) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Unmark) Summary() reason.Reason { return reason.Of(reason.UnmarkPod, a.Pod.Name) }

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

// ActionKind implements [Action].
func (*Scale) ActionKind() ActionKind { return ActionScale }

// Subjects implements [Action].
func (a *Scale) Subjects() []Subject { return []Subject{{SubjectService, string(a.Service)}} }

// ActionWhy implements [Action].
func (a *Scale) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Scale) Summary() reason.Reason { return reason.Of(reason.ScaleTo, a.From, a.To) }

// GiveBack returns an HPA whose floor was raised for a service that does not ask for one any more: minReplicas as they
// were before, and no mark of ours.
type GiveBack struct {
	HPA fleet.Name
	ID  fleet.UID
	// From is the floor that stands there, To what its owner had.
	From, To int32
	Why      reason.Reason
}

// ActionKind implements [Action].
func (*GiveBack) ActionKind() ActionKind { return ActionGiveBack }

// Subjects implements [Action].
func (a *GiveBack) Subjects() []Subject { return []Subject{{SubjectHPA, a.HPA.String()}} }

// ActionWhy implements [Action].
func (a *GiveBack) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *GiveBack) Summary() reason.Reason { return reason.Of(reason.GiveBackTo, a.From, a.To) }

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
	// a parcel that its borrower uses although no loan says so gets one, which begins with the notice
	MoveAdopt  MoveKind = "Adopt"
	MoveClear  MoveKind = "Clear"  // remove an entry of the NodeShare whose loan is gone and whose parcel is home
	MoveForget MoveKind = "Forget" // delete an ended loan and its entry in the NodeShare
	// bring a NodeShare that disagrees with its loan (a crash between two writes) in line
	MoveRepair MoveKind = "Repair"
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

// ActionKind implements [Action].
func (*Move) ActionKind() ActionKind { return ActionMove }

// Subjects implements [Action].
func (a *Move) Subjects() []Subject {
	return subjects(Subject{SubjectLoan, string(a.Before.ID)}, Subject{SubjectNode, a.Node})
}

// ActionWhy implements [Action].
func (a *Move) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Move) Summary() reason.Reason {
	if a.Before.Phase == a.After.Phase {
		return reason.Of(reason.StepWithin, a.Kind)
	}
	return reason.Of(reason.StepTo, a.Kind, cmp.Or(string(a.Before.Phase), "none"), a.After.Phase)
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

// ActionKind implements [Action].
func (*Notice) ActionKind() ActionKind { return ActionNotice }

// Subjects implements [Action].
func (a *Notice) Subjects() []Subject {
	return subjects(Subject{SubjectPod, a.Pod.Name.String()}, Subject{SubjectLoan, string(a.Loan)})
}

// ActionWhy implements [Action].
func (*Notice) ActionWhy() reason.Reason { return reason.Reason{} }

// Summary implements [Action].
func (a *Notice) Summary() reason.Reason { return reason.Of(reason.NoticePod, a.Pod.Name) }

// Eviction ends one borrower's pod through the Eviction API. Only offline pods are ever named here.
type Eviction struct {
	Pod  PodRef
	Loan fleet.LoanID
	Job  fleet.JobID
	Why  reason.Reason
}

// ActionKind implements [Action].
func (*Eviction) ActionKind() ActionKind { return ActionEvict }

// Subjects implements [Action].
func (a *Eviction) Subjects() []Subject {
	return subjects(Subject{SubjectPod, a.Pod.Name.String()}, Subject{SubjectLoan, string(a.Loan)}, Subject{SubjectJob, string(a.Job)})
}

// ActionWhy implements [Action].
func (a *Eviction) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Eviction) Summary() reason.Reason { return reason.Of(reason.EvictPod, a.Pod.Name) }

// Kill ends, with no grace, one borrower's pod that should have ended, after the time that its loan announced. Only
// offline pods are ever named here.
type Kill struct {
	Pod  PodRef
	Loan fleet.LoanID
	Job  fleet.JobID
	Why  reason.Reason
}

// ActionKind implements [Action].
func (*Kill) ActionKind() ActionKind { return ActionKill }

// Subjects implements [Action].
func (a *Kill) Subjects() []Subject {
	return subjects(Subject{SubjectPod, a.Pod.Name.String()}, Subject{SubjectLoan, string(a.Loan)}, Subject{SubjectJob, string(a.Job)})
}

// ActionWhy implements [Action].
func (a *Kill) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Kill) Summary() reason.Reason { return reason.Of(reason.KillPod, a.Pod.Name) }

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

// Member names the member of the job in receipts.
func (a *JobScale) Member() string { return string(a.Job) + "/" + a.Role }

// ActionKind implements [Action].
func (*JobScale) ActionKind() ActionKind { return ActionJobScale }

// Subjects implements [Action]. The first one is the member, whose name begins with the job's.
func (a *JobScale) Subjects() []Subject {
	return []Subject{{SubjectJob, a.Member()}, {SubjectJob, string(a.Job)}}
}

// ActionWhy implements [Action].
func (a *JobScale) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *JobScale) Summary() reason.Reason { return reason.Of(reason.ScaleRole, a.Role, a.From, a.To) }

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

// ActionKind implements [Action].
func (*Filler) ActionKind() ActionKind { return ActionFiller }

// Subjects implements [Action].
func (a *Filler) Subjects() []Subject {
	return subjects(Subject{SubjectFiller, a.Name}, Subject{SubjectNode, a.Node}, Subject{SubjectLoan, string(a.Loan)})
}

// ActionWhy implements [Action].
func (a *Filler) ActionWhy() reason.Reason { return reason.Of(a.Purpose) }

// Summary implements [Action].
func (a *Filler) Summary() reason.Reason {
	if a.Delete {
		return reason.Of(reason.UnfillRoom, a.Room)
	}
	return reason.Of(reason.FillRoom, a.Room)
}

// Mark sets the marks of one node.
type Mark struct {
	Node string
	ID   fleet.NodeID
	Want fleet.NodeMarks
}

// ActionKind implements [Action].
func (*Mark) ActionKind() ActionKind { return ActionMark }

// Subjects implements [Action].
func (a *Mark) Subjects() []Subject { return []Subject{{SubjectNode, a.Node}} }

// ActionWhy implements [Action].
func (*Mark) ActionWhy() reason.Reason { return reason.Reason{} }

// Summary implements [Action].
func (*Mark) Summary() reason.Reason { return reason.Of(reason.MarkNode) }

// Resize changes what the pods of one service request: in the template of its target (Recreate), or of running pods
// (InPlace).
type Resize struct {
	Service fleet.ServiceID
	Target  fleet.Name
	Kind    string
	By      fleet.RequestsMode
	// From is what is requested now, by the template or by the first of Pods; To what should be. An amount that stays
	// is the same in both.
	From, To fleet.Resources
	// Pods are those to resize in place.
	Pods []PodRef
	// Charges are the pods that the target's strategy rolls over: they are written into the disruption ledgers before
	// the change.
	Charges []Charge
	Why     reason.Reason
}

// ActionKind implements [Action].
func (*Resize) ActionKind() ActionKind { return ActionResize }

// Subjects implements [Action].
func (a *Resize) Subjects() []Subject { return []Subject{{SubjectService, string(a.Service)}} }

// ActionWhy implements [Action].
func (a *Resize) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Resize) Summary() reason.Reason { return reason.Of(reason.ResizeTo, a.By, a.From, a.To) }

// Standby takes one pod out of traffic by its readiness gate, or brings it back.
type Standby struct {
	// Service is empty where the pod comes back since its ElasticService is gone.
	Service fleet.ServiceID
	Pod     PodRef
	Node    string
	Back    bool
	Why     reason.Reason
}

// ActionKind implements [Action].
func (a *Standby) ActionKind() ActionKind {
	if a.Back {
		return ActionReturn
	}
	return ActionStandby
}

// Subjects implements [Action].
func (a *Standby) Subjects() []Subject {
	return subjects(Subject{SubjectPod, a.Pod.Name.String()}, Subject{SubjectService, string(a.Service)},
		Subject{SubjectNode, a.Node})
}

// ActionWhy implements [Action].
func (a *Standby) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Standby) Summary() reason.Reason {
	if a.Back {
		return reason.Of(reason.ReturnPod, a.Pod.Name)
	}
	return reason.Of(reason.StandByPod, a.Pod.Name)
}

var (
	_ Action = (*Standby)(nil)
	_ Action = (*Unmark)(nil)
	_ Action = (*Scale)(nil)
	_ Action = (*GiveBack)(nil)
	_ Action = (*Move)(nil)
	_ Action = (*Notice)(nil)
	_ Action = (*Eviction)(nil)
	_ Action = (*Kill)(nil)
	_ Action = (*JobScale)(nil)
	_ Action = (*Filler)(nil)
	_ Action = (*Mark)(nil)
	_ Action = (*Resize)(nil)
)

// concerned is the object under which a withheld action is looked for: a job and not its member, a loan and not one of
// its pods.
func concerned(a Action) Subject {
	if j, ok := a.(*JobScale); ok {
		return Subject{SubjectJob, string(j.Job)}
	}
	all := a.Subjects()
	for _, s := range all {
		if s.Kind != SubjectPod && s.Kind != SubjectFiller {
			return s
		}
	}
	return all[0]
}
