package planner

import (
	"cmp"
	"fmt"
	"github.com/springtide/springtide/reason"
	"iter"
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
	Summary() string
}

// Key identifies an action within its plan: no plan holds two actions of one kind on one first subject.
type Key struct {
	Kind    ActionKind
	Subject string
}

// KeyOf is the key of an action.
func KeyOf(a Action) Key { return Key{a.ActionKind(), a.Subjects()[0].Name} }

// Stage is one list of a plan. Stages are carried out one after another, in the order of [Plan.Stages].
type Stage struct {
	Kind    ActionKind
	Actions iter.Seq[Action]
}

// Stages lists the actions of the plan by the lists they stand in, in the order in which they are carried out: what takes away comes before
// what gives.
func (p *Plan) Stages() []Stage {
	return []Stage{
		stageOf(ActionUnmark, p.Unmarks),
		stageOf(ActionScale, p.Lowers),
		stageOf(ActionGiveBack, p.GiveBacks),
		stageOf(ActionMove, p.Moves),
		stageOf(ActionNotice, p.Notices),
		stageOf(ActionEvict, p.Evictions),
		stageOf(ActionKill, p.Kills),
		stageOf(ActionJobScale, p.Jobs),
		stageOf(ActionFiller, p.Fillers),
		stageOf(ActionMark, p.Marks),
		stageOf(ActionScale, p.Raises),
		stageOf(ActionResize, p.Resizes),
	}
}

// action is a pointer to an element of one of the plan's lists.
type action[T any] interface {
	*T
	Action
}

func stageOf[T any, A action[T]](kind ActionKind, list []T) Stage {
	return Stage{Kind: kind, Actions: func(yield func(Action) bool) {
		for i := range list {
			if !yield(A(&list[i])) {
				return
			}
		}
	}}
}

// Actions yields every action in the order in which the plan is carried out.
func (p *Plan) Actions() iter.Seq[Action] {
	return func(yield func(Action) bool) {
		for _, stage := range p.Stages() {
			for a := range stage.Actions {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// CountActions counts them.
func (p *Plan) CountActions() int {
	return len(p.Unmarks) + len(p.Lowers) + len(p.GiveBacks) + len(p.Moves) + len(p.Notices) + len(p.Evictions) + len(p.Kills) + len(p.Jobs) +
		len(p.Fillers) + len(p.Marks) + len(p.Raises) + len(p.Resizes)
}

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

// ActionKind implements [Action].
func (*Unmark) ActionKind() ActionKind { return ActionUnmark }

// Subjects implements [Action].
func (a *Unmark) Subjects() []Subject {
	return subjects(Subject{SubjectPod, a.Pod.Name.String()}, Subject{SubjectService, string(a.Service)}, Subject{SubjectNode, a.Node})
}

// ActionWhy implements [Action].
func (a *Unmark) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Unmark) Summary() string { return "Unmark " + a.Pod.Name.String() }

// ActionKind implements [Action].
func (*Scale) ActionKind() ActionKind { return ActionScale }

// Subjects implements [Action].
func (a *Scale) Subjects() []Subject { return []Subject{{SubjectService, string(a.Service)}} }

// ActionWhy implements [Action].
func (a *Scale) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Scale) Summary() string { return fmt.Sprintf("Scale %d -> %d", a.From, a.To) }

// ActionKind implements [Action].
func (*GiveBack) ActionKind() ActionKind { return ActionGiveBack }

// Subjects implements [Action].
func (a *GiveBack) Subjects() []Subject { return []Subject{{SubjectHPA, a.HPA.String()}} }

// ActionWhy implements [Action].
func (a *GiveBack) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *GiveBack) Summary() string { return fmt.Sprintf("Give back %d -> %d", a.From, a.To) }

// ActionKind implements [Action].
func (*Move) ActionKind() ActionKind { return ActionMove }

// Subjects implements [Action].
func (a *Move) Subjects() []Subject {
	return subjects(Subject{SubjectLoan, string(a.Before.ID)}, Subject{SubjectNode, a.Node})
}

// ActionWhy implements [Action].
func (a *Move) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Move) Summary() string {
	if a.Before.Phase == a.After.Phase {
		return string(a.Kind)
	}
	before := a.Before.Phase
	if before == "" {
		before = "none"
	}
	return fmt.Sprintf("%s: %s -> %s", a.Kind, before, a.After.Phase)
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
func (a *Notice) Summary() string { return "Notice " + a.Pod.Name.String() }

// ActionKind implements [Action].
func (*Eviction) ActionKind() ActionKind { return ActionEvict }

// Subjects implements [Action].
func (a *Eviction) Subjects() []Subject {
	return subjects(Subject{SubjectPod, a.Pod.Name.String()}, Subject{SubjectLoan, string(a.Loan)}, Subject{SubjectJob, string(a.Job)})
}

// ActionWhy implements [Action].
func (a *Eviction) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Eviction) Summary() string { return "Evict " + a.Pod.Name.String() }

// ActionKind implements [Action].
func (*Kill) ActionKind() ActionKind { return ActionKill }

// Subjects implements [Action].
func (a *Kill) Subjects() []Subject {
	return subjects(Subject{SubjectPod, a.Pod.Name.String()}, Subject{SubjectLoan, string(a.Loan)}, Subject{SubjectJob, string(a.Job)})
}

// ActionWhy implements [Action].
func (a *Kill) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Kill) Summary() string { return "Kill " + a.Pod.Name.String() }

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
func (a *JobScale) Summary() string { return fmt.Sprintf("Scale %s %d -> %d", a.Role, a.From, a.To) }

// ActionKind implements [Action].
func (*Filler) ActionKind() ActionKind { return ActionFiller }

// Subjects implements [Action].
func (a *Filler) Subjects() []Subject {
	return subjects(Subject{SubjectFiller, a.Name}, Subject{SubjectNode, a.Node}, Subject{SubjectLoan, string(a.Loan)})
}

// ActionWhy implements [Action].
func (a *Filler) ActionWhy() reason.Reason { return reason.Of(a.Purpose) }

// Summary implements [Action].
func (a *Filler) Summary() string {
	if a.Delete {
		return "Unfill " + a.Room.String()
	}
	return "Fill " + a.Room.String()
}

// ActionKind implements [Action].
func (*Mark) ActionKind() ActionKind { return ActionMark }

// Subjects implements [Action].
func (a *Mark) Subjects() []Subject { return []Subject{{SubjectNode, a.Node}} }

// ActionWhy implements [Action].
func (*Mark) ActionWhy() reason.Reason { return reason.Reason{} }

// Summary implements [Action].
func (*Mark) Summary() string { return "Mark" }

// ActionKind implements [Action].
func (*Resize) ActionKind() ActionKind { return ActionResize }

// Subjects implements [Action].
func (a *Resize) Subjects() []Subject { return []Subject{{SubjectService, string(a.Service)}} }

// ActionWhy implements [Action].
func (a *Resize) ActionWhy() reason.Reason { return a.Why }

// Summary implements [Action].
func (a *Resize) Summary() string {
	return fmt.Sprintf("Resize %s %s -> %s", a.By, a.From, a.To)
}

var (
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
