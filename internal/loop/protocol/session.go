package protocol

import (
	"fmt"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// Session carries one plan out, as data.
//
// The executor walks the stages in order. Of each stage it first carries out the ledgers, then the groups, which may go side by side; the tasks
// of a group go one after another. It carries a task out by asking [Session.Next] and giving each answer to [Session.Answer], until the step is
// done or refused.
type Session struct {
	plan *planner.Plan
	door *Door
	held error
	now  time.Time
	// refused are actions that the executor refused before the session began, with the reason.
	refused map[planner.Key]refusal
	waived  map[planner.Key]bool
	// raise checks a raise against the quotas of its tenant.
	raise func(*planner.Scale) error
	// This plan's writes: the second parcel of a machine starts from the first one's share, and a later stage from the
	// ledgers of an earlier one.
	shares  map[string]wroteShare
	ledgers map[fleet.PoolID]wroteLedger
	// drained are the loans whose drain this plan wrote.
	drained map[fleet.LoanID]bool
	soon    bool
}

// refusal says why an action is held back, and whether that is because the facts moved on or because a budget is spent.
type refusal struct {
	how Outcome
	err error
}

type wroteShare struct {
	node    fleet.NodeID
	share   fleet.Share
	version string
}

type wroteLedger struct {
	ledger  fleet.Ledger
	version string
}

// Stage is one list of a plan, in tasks.
type Stage struct {
	Kind planner.ActionKind
	// Ledgers are written before the first act of the stage: the count of what is taken stands in the API before anything is.
	Ledgers []*Task
	// Groups may be carried out side by side, and in any order.
	Groups [][]*Task
	// Tasks are those of all groups in the order of the plan.
	Tasks []*Task
}

// Task is one action on its way, or the writing of one pool's ledger.
type Task struct {
	// Action is nil for a ledger.
	Action planner.Action
	flow   []request
	// pending is what was handed out and has no answer yet; last is the write that was handed out last.
	pending pending
	last    *Write
	begun   bool
	done    bool
	how     Outcome
	err     error
	// owes are the ledgers that must have been written for it; ledger is what a ledger task writes.
	owes   []*Task
	ledger *charges
	// denied: the API server said no, so nothing of what was charged for it happened.
	denied bool
}

// pending is the kind of request that a task waits for.
type pending int

const (
	nothing pending = iota
	writing
	reading
	rereading // after a conflict
	undoing
)

// request is one step of a task: a write, which may turn out to have nothing to change, or a read and what must hold of what it finds.
type request struct {
	write func() (*Write, error)
	// then notes what a write that was taken changed.
	then  func(w *Write, a Answer)
	read  *Object
	judge func(*Fact) error
}

// Step is what a task asks for next: a write, a read, or neither when it is done or refused.
type Step struct {
	Write *Write
	Read  *Read
}

// Over reports whether the task asks for nothing more.
func (s Step) Over() bool { return s.Write == nil && s.Read == nil }

// New begins to carry a plan out on facts that were read after it was made.
func New(p *planner.Plan, fresh *fleet.Snapshot) *Session {
	door := NewDoor(fresh)
	door.thawed = p.Thawed
	s := &Session{plan: p, door: door, now: fresh.At, refused: map[planner.Key]refusal{}, waived: map[planner.Key]bool{}, shares: map[string]wroteShare{},
		ledgers: map[fleet.PoolID]wroteLedger{}, drained: map[fleet.LoanID]bool{}}
	s.door.Clocked(func() time.Time { return s.now })
	s.held = s.door.CheckPlan(p)
	s.raise = s.door.Raises(p)
	return s
}

// Held says why nothing of the plan may be done; nil where it may.
func (s *Session) Held() error { return s.held }

// Door is the door that the session asks.
func (s *Session) Door() *Door { return s.door }

// Soon reports whether something was done that wants the next cycle at once: a recall's pods get their notice from the next plan, and their time
// runs already.
func (s *Session) Soon() bool { return s.soon }

// Refuse holds one action back for a reason that only the executor knows. It must be called before the action's stage begins, so that no ledger
// is charged for it.
func (s *Session) Refuse(a planner.Action, why error) {
	s.refused[planner.KeyOf(a)] = refusal{Stale, why}
}

// Waive lets an action pass the door unasked. The model check takes the door away by it; nothing else may.
func (s *Session) Waive(a planner.Action) { s.waived[planner.KeyOf(a)] = true }

// Check asks the door whether an action still holds.
func (s *Session) Check(a planner.Action) error {
	if s.held != nil {
		return s.held
	}
	if r := s.refused[planner.KeyOf(a)]; r.err != nil {
		return r.err
	}
	if s.waived[planner.KeyOf(a)] {
		return nil
	}
	switch a := a.(type) {
	case *planner.Unmark:
		return s.door.CheckUnmark(a)
	case *planner.Scale:
		if a.To > a.From {
			return s.raise(a)
		}
		return s.door.CheckScale(a)
	case *planner.GiveBack:
		return s.door.CheckGiveBack(a)
	case *planner.Move:
		return s.door.CheckMove(a)
	case *planner.Notice:
		return s.door.CheckNotice(a)
	case *planner.Eviction:
		return s.door.CheckEviction(a)
	case *planner.Kill:
		return s.door.CheckKill(a)
	case *planner.JobScale:
		return s.door.CheckJobScale(a)
	case *planner.Filler:
		return s.door.CheckFiller(a)
	case *planner.Mark:
		return s.door.CheckMark(a)
	case *planner.Resize:
		return s.door.CheckResize(a)
	case *planner.Standby:
		return s.door.CheckStandby(a)
	}
	panic(fmt.Sprintf("an action that the protocol does not know: %T", a))
}

// Stages yields the stages in order. A stage is made when it is asked for, since its ledgers depend on what earlier
// stages did.
func (s *Session) Stages(yield func(Stage) bool) {
	for _, list := range s.plan.Stages() {
		if !yield(s.stage(list)) {
			return
		}
	}
}

func (s *Session) stage(list planner.Stage) Stage {
	out := Stage{Kind: list.Kind}
	index := map[string]int{}
	for a := range list.Actions {
		t := &Task{Action: a}
		out.Tasks = append(out.Tasks, t)
		g := groupOf(a)
		i, known := index[g]
		if !known {
			i = len(out.Groups)
			index[g], out.Groups = i, append(out.Groups, nil)
		}
		out.Groups[i] = append(out.Groups[i], t)
	}
	if s.held == nil {
		out.Ledgers = s.chargeStage(out.Tasks)
	}
	return out
}

// groupOf names the group of an action: actions of one group go one after another, in the order of the plan.
func groupOf(a planner.Action) string {
	switch a := a.(type) {
	case *planner.Move:
		return a.Before.NodeName // moves of one machine share its NodeShare
	case *planner.Filler:
		return a.Node
	case *planner.JobScale:
		return string(a.Job)
	case *planner.Eviction:
		if a.Loan != "" {
			return string(a.Loan) // lower priorities first, and a disruption budget counts them in that order
		}
	}
	return a.Subjects()[0].Name
}

// Next is what a task asks for, at a time. It must be called again after each answer.
func (s *Session) Next(t *Task, now time.Time) Step {
	s.now = now
	if t.done {
		return Step{}
	}
	if !t.begun {
		t.begun = true
		if how, err := s.begin(t); err != nil {
			return t.end(how, err)
		}
	}
	switch t.pending {
	case undoing:
		return Step{Write: t.last.Undo}
	case rereading:
		return Step{Read: &Read{Object: t.last.Object}}
	case writing:
		return Step{Write: t.last} // once more, on what was read
	}
	for ; len(t.flow) > 0; t.flow = t.flow[1:] {
		r := &t.flow[0]
		if r.read != nil {
			t.pending = reading
			return Step{Read: &Read{Object: *r.read}}
		}
		w, err := r.write()
		if err != nil {
			t.fail(Stale, err)
			return s.Next(t, now)
		}
		if w != nil {
			w.Action, t.last, t.pending = t.Action, w, writing
			return Step{Write: w}
		}
	}
	if t.Action != nil {
		s.finished(t.Action)
	}
	return t.end(Done, nil)
}

// begin passes a task through the door and lays out its requests.
func (s *Session) begin(t *Task) (Outcome, error) {
	if t.ledger != nil {
		t.flow = []request{s.ledgerRequest(t.ledger)}
		return Done, nil
	}
	if r := s.refused[planner.KeyOf(t.Action)]; r.err != nil && s.held == nil {
		return r.how, r.err
	}
	if err := s.Check(t.Action); err != nil {
		return Stale, err
	}
	for _, l := range t.owes {
		if l.how != Done {
			return l.how, fmt.Errorf("write the disruption ledger first: %w", l.err)
		}
	}
	t.flow = s.flowOf(t.Action)
	return Done, nil
}

func (t *Task) end(how Outcome, err error) Step {
	t.done, t.how, t.err, t.flow, t.pending = true, how, err, nil, nothing
	return Step{}
}

// fail ends a task, once what it did was taken back.
func (t *Task) fail(how Outcome, err error) {
	if t.last != nil && t.last.Undo != nil {
		t.pending, t.how, t.err, t.flow = undoing, how, err, nil
		return
	}
	t.end(how, err)
}

// Answer takes what came back for the request that Next handed out last.
func (s *Session) Answer(t *Task, a Answer) {
	was := t.pending
	t.pending = nothing
	switch {
	case was == undoing:
		t.end(t.how, t.err) // the planner repairs what could not be taken back: it sees a loan without a share
	case a.How == Refused, a.How == Denied:
		t.denied = a.How == Denied
		t.fail(Failed, a.Err)
	case was == writing && a.How == Taken:
		if then := t.flow[0].then; then != nil {
			then(t.last, a)
		}
		t.flow = t.flow[1:]
	case was == writing && t.last.OnConflict != ConflictStale && !t.last.again:
		t.pending = rereading
	case was == rereading && a.How == Taken:
		if err := s.stillHolds(t.last, &a.Fact); err != nil {
			t.fail(Stale, err)
			return
		}
		t.last.again, t.pending = true, writing
	case was == reading && a.How == Taken:
		if err := t.flow[0].judge(&a.Fact); err != nil {
			t.fail(Stale, err)
			return
		}
		t.flow = t.flow[1:]
	default:
		t.fail(Stale, a.Err)
	}
}

// stillHolds looks at the object of a write that met a conflict: when the decision's ground is untouched, the write is made once more on the
// version that was read.
func (s *Session) stillHolds(w *Write, now *Fact) error {
	loose := w.If
	loose.Version = ""
	if err := loose.Holds(now); err != nil {
		return fmt.Errorf("%s: %w", w.Object, err)
	}
	if w.ledger != nil {
		if w.ledger.spends() && !w.ledger.base.Equal(now.Ledger) {
			return fmt.Errorf("another actor charged the disruption ledger of pool %s", w.ledger.pool)
		}
		w.Change = SetLedger{Ledger: w.ledger.on(now.Ledger)}
	}
	w.If.Version = now.Version
	return nil
}

// Done reports whether the task was carried out.
func (t *Task) Done() bool { return t.done && t.how == Done }

// Over reports whether the task is done or refused.
func (t *Task) Over() bool { return t.done }

// Result is the fate of a task that is over.
func (t *Task) Result() Result {
	key := planner.KeyOf(t.Action)
	r := Result{Action: key.Kind, Subject: key.Subject, Outcome: t.how}
	if t.err != nil {
		r.Message = t.err.Error()
	}
	return r
}
