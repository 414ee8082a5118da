package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/quota"
)

// budget is how many pods a minute may be taken off machines that are to be emptied.
const budget = 1

// model is the code under check with what it is asked again and again: equal facts have equal plans.
type model struct {
	Options
	views
	portraits map[fleet.ServiceID]portrait.Portrait
	tides     [onlinePods + 1]tide
	plans     map[planKey]*planner.Plan
	scripts   map[doorKey][]act
	judged    map[nodeFacts][units]bool
	broken    string // the property that the transition in progress broke
}

type planKey struct {
	view viewID
	eyes
}

type doorKey struct {
	plan planKey
	door viewID
	fast bool
}

// act is one action of a plan in the model's terms, or the writing of the ledger.
type act struct {
	action planner.Action
	// holds says that the door lets it pass; writes are what its session then asks for, as long as each is taken. Reads stand for their writes.
	holds  bool
	writes []*protocol.Write
	move   move
	pods   []int8 // by UID: to tell, to evict, or chosen to leave
	// charges are the pods that the ledger's write counts; owes says that the action follows that write.
	charges int8
	owes    bool
	// reads says that the share is read before the marks are written.
	reads bool
}

// move is what a planner.Move writes.
type move struct {
	loan, machine, node, cells int8
	phase, epoch               int8
	holder, next               int8
	// deadline says whether the move sets one, moves it, takes it away or leaves it; enters that the phase begins
	// again.
	deadline         deadline
	recalled, enters bool
	dueLater         bool // the due time moves later
	kill             deadline
}

type deadline int8

const (
	leaves deadline = iota
	clears
	sets
	later
	sooner
)

func newModel(o Options) *model {
	x := &model{Options: o, views: *newViews(), portraits: newPortraits(), plans: map[planKey]*planner.Plan{}, scripts: map[doorKey][]act{}, judged: map[nodeFacts][units]bool{}}
	for i := range x.tides {
		x.tides[i] = newTide(i)
	}
	return x
}

// planOf is the plan that a controller makes from a view.
func (x *model) planOf(k planKey) *planner.Plan {
	if p, ok := x.plans[k]; ok {
		return p
	}
	in := x.input(&x.all[k.view], k.eyes)
	if x.Mutant.Input != nil {
		x.Mutant.Input(&in)
	}
	made := planner.Make(in)
	if faults := made.Unresolved(); len(faults) > 0 && x.Mutant.Input == nil {
		x.breaks("the planner withholds from itself: %+v", faults)
	}
	if x.Mutant.Plan != nil {
		x.Mutant.Plan(&made, in.Snapshot)
	}
	// The reasoning is not carried out, and would fill the memory.
	made.Targets, made.Division, made.Pools, made.Withheld = nil, quota.Division{}, nil, nil
	x.plans[k] = &made
	return &made
}

// The versions of objects, in the facts that a session is given and in its writes: as they were seen, and as the plan itself made them. The model
// compares the numbers that stand behind them.
const (
	versionSeen = "seen"
	versionOwn  = "own"
)

// created is the UID of a loan that the plan itself made.
const created fleet.UID = "new"

// scriptOf is what the session of a plan writes on a view: the protocol is run once for each pair, every write being taken, and the model then plays
// what the API makes of the writes, one by one.
func (x *model) scriptOf(k doorKey) []act {
	if acts, ok := x.scripts[k]; ok {
		return acts
	}
	p := x.planOf(k.plan)
	e := k.plan.eyes
	e.fast = k.fast
	fresh := x.snapshot(&x.all[k.door], e)
	if x.Mutant.Door != nil {
		x.Mutant.Door(fresh)
	}
	rebased := *p
	rebased.Moves = slices.Clone(p.Moves)
	for i := range rebased.Moves {
		rebase(&rebased.Moves[i], &x.all[k.plan.view], &x.all[k.door], fresh)
	}
	rebased.Notices = slices.Clone(p.Notices)
	for i := range rebased.Notices {
		x.rebaseNotice(&rebased.Notices[i], k.plan, &x.all[k.door], fresh)
	}
	s := protocol.New(&rebased, fresh)
	if x.Mutant.Passes != nil {
		for a := range rebased.Actions() {
			if x.Mutant.Passes(a) {
				s.Waive(a)
			}
		}
	}
	var out []act
	wrote := map[string]bool{}
	for stage := range s.Stages {
		for _, t := range stage.Ledgers {
			a := x.write(s, t, fresh, wrote)
			if ledger, ok := a.writes[0].Change.(protocol.SetLedger); ok {
				a.charges = int8(ledger.Ledger.Evictions - fresh.Pool("online").Ledger.Evictions)
			}
			if a.charges > 0 { // recalls wait for no budget, and no property asks of their line
				out = append(out, a)
			}
		}
		for _, t := range stage.Tasks {
			out = append(out, x.write(s, t, fresh, wrote))
		}
	}
	if x.Mutant.Script != nil {
		out = x.Mutant.Script(out)
	}
	x.scripts[k] = out
	return out
}

// write runs one task, every write of which is taken.
func (x *model) write(s *protocol.Session, t *protocol.Task, fresh *fleet.Snapshot, wrote map[string]bool) act {
	var a act
	if t.Action != nil {
		a = newAct(t.Action)
	}
	for step := s.Next(t, fresh.At); !step.Over(); step = s.Next(t, fresh.At) {
		if step.Read != nil {
			if step.Read.Object.Kind == protocol.ObjectLoan { // a loan that was not seen; whether it is gone is asked when the act is played
				s.Answer(t, protocol.Answer{How: protocol.Taken})
				continue
			}
			now := protocol.Fact{Exists: true}
			if n := s.Door().NodeNamed(step.Read.Object.Name); n != nil {
				now.Version = n.Share.Version
			}
			if wrote[step.Read.Object.Name] {
				now.Version = versionOwn
			}
			a.reads = true
			s.Answer(t, protocol.Answer{How: protocol.Taken, Fact: now})
			continue
		}
		w := *step.Write
		if w.Object.Kind == protocol.ObjectShare {
			wrote[w.Object.Name] = true
		}
		if x.Mutant.Write != nil {
			x.Mutant.Write(&w)
		}
		if steers(&w) { // the marks of victims are played with the write of the size, which follows
			s.Answer(t, protocol.Answer{How: protocol.Taken, Version: versionOwn})
			continue
		}
		a.writes = append(a.writes, &w)
		uid := fleet.UID("")
		if _, ok := w.Change.(protocol.CreateLoan); ok {
			uid = created
		}
		s.Answer(t, protocol.Answer{How: protocol.Taken, UID: uid, Version: versionOwn})
	}
	a.holds = t.Done()
	return a
}

func steers(w *protocol.Write) bool {
	switch w.Change.(type) {
	case protocol.Steer, protocol.Unsteer:
		return true
	}
	return false
}

// rebase brings the times of a move to those of the facts it is checked against. Every snapshot is of the same moment and what passes are
// the deadlines; a deadline that is still the same one must be equal to itself.
func rebase(m *planner.Move, then, since *facts, fresh *fleet.Snapshot) {
	l := fresh.Loan(m.Before.ID)
	if l == nil {
		return
	}
	was, is := then.loan(loanOf(m.Before.ID)), since.loan(loanOf(m.Before.ID))
	if was == nil || was.epoch != is.epoch || was.announced != is.announced || was.recalled != is.recalled {
		m.Before.Deadline = m.Before.Deadline.Add(time.Nanosecond)
		return
	}
	if !m.After.Deadline.IsZero() && !m.Before.Deadline.IsZero() {
		by := l.Deadline.Sub(m.Before.Deadline)
		m.After.Deadline, m.After.Due = m.After.Deadline.Add(by), m.After.Due.Add(by)
	}
	m.Before.Deadline, m.Before.Due = l.Deadline, l.Due
	if was.kill != unset && is.kill != unset {
		if m.After.KillAt.Equal(m.Before.KillAt) {
			m.After.KillAt = l.KillAt
		}
		m.Before.KillAt = l.KillAt
	}
}

// rebaseNotice does the same for the deadline that a notice tells.
func (x *model) rebaseNotice(n *planner.Notice, then planKey, since *facts, fresh *fleet.Snapshot) {
	was, is, l := x.all[then.view].loan(loanOf(n.Loan)), since.loan(loanOf(n.Loan)), fresh.Loan(n.Loan)
	switch {
	case was == nil || is == nil || l == nil:
	case was.announced != is.announced:
		n.Deadline = n.Deadline.Add(time.Nanosecond)
	default:
		planned := x.loan(was, then.eyes)
		n.Deadline = n.Deadline.Add(l.Deadline.Sub(planned.Deadline))
	}
}

func (f *facts) loan(uid int8) *loan {
	for i := range f.l {
		if uid > 0 && f.l[i].uid == uid {
			return &f.l[i]
		}
	}
	return nil
}

// nodeOf and uidOf are the numbers in the UID of a machine and of a loan.
func nodeOf(id fleet.NodeID) int8 {
	n, err := strconv.Atoi(strings.TrimPrefix(string(id), "uid-"))
	if err != nil {
		panic("a machine that the model did not make: " + string(id))
	}
	return int8(n)
}

func uidOf(id fleet.UID) int8 {
	n, err := strconv.Atoi(string(id))
	if err != nil {
		panic("a loan that the model did not make: " + string(id))
	}
	return int8(n)
}

func podOf(uid fleet.UID) int8 {
	n, err := strconv.Atoi(strings.TrimPrefix(string(uid), "pod-"))
	if err != nil {
		panic("a pod that the model did not make: " + string(uid))
	}
	return int8(n)
}

func newAct(action planner.Action) act {
	a := act{action: action}
	switch d := action.(type) {
	case *planner.Move:
		a.move = newMove(d)
	case *planner.Notice:
		a.pods = []int8{podOf(d.Pod.ID)}
	case *planner.Eviction:
		a.pods = []int8{podOf(d.Pod.ID)}
	case *planner.Kill:
		a.pods = []int8{podOf(d.Pod.ID)}
	case *planner.Scale:
		for _, l := range d.Victims {
			a.pods = append(a.pods, podOf(l.ID))
		}
		a.owes = len(d.Charges) > 0
	case *planner.Filler:
		if d.Delete {
			a.pods = []int8{podOf(d.ID)}
		}
	case *planner.JobScale, *planner.Mark:
	default:
		panic(fmt.Sprintf("an action that the model does not know: %T", action))
	}
	return a
}

// String says an action in words.
func (a *act) String() string {
	if a.action == nil {
		return "the ledger"
	}
	k := planner.KeyOf(a.action)
	what := string(k.Kind) + " " + k.Subject
	switch d := a.action.(type) {
	case *planner.Move:
		return fmt.Sprintf("%s %s: %s %d -> %s %d", d.Kind, d.Before.ID, d.Before.Phase, d.Before.Epoch, d.After.Phase, d.After.Epoch)
	case *planner.Notice:
		return fmt.Sprintf("%s of loan %s, epoch %d", what, d.Loan, d.Epoch)
	case *planner.Scale:
		return fmt.Sprintf("%s %d -> %d", what, d.From, d.To)
	case *planner.JobScale:
		return fmt.Sprintf("%s %d -> %d", what, d.From, d.To)
	case *planner.Filler:
		if d.Delete {
			return what + " deleted"
		}
	case *planner.Mark:
		return fmt.Sprintf("%s taint %t, label %t %s", what, d.Want.HolderTaint, d.Want.OfflineLabel, d.Want.Fence)
	}
	return what
}

func newMove(d *planner.Move) move {
	before, after := &d.Before, &d.After
	if d.Kind == planner.MoveBegin || d.Kind == planner.MoveAdopt {
		before = &fleet.Loan{ID: d.Before.ID, Since: d.Before.Since} // there is none yet
	}
	m := move{loan: loanOf(before.ID), machine: int8(d.Node[1] - '0'), cells: setOf(after.Cells), phase: int8(slices.Index(fleet.Phases(), after.Phase)),
		epoch: int8(after.Epoch), holder: poolOf(after.Holder()), next: poolOf(after.Next()), recalled: !after.FirstNotice.IsZero(),
		enters:   !after.Since.Equal(before.Since),
		dueLater: before.FirstNotice.Equal(after.FirstNotice) && !before.Due.IsZero() && after.Due.After(before.Due)}
	m.node = nodeOf(after.Node)
	m.deadline, m.kill = change(before.Deadline, after.Deadline), change(before.KillAt, after.KillAt)
	return m
}

func change(before, after time.Time) deadline {
	switch {
	case after.IsZero():
		return clears
	case before.IsZero():
		return sets
	case after.After(before):
		return later
	case after.Before(before):
		return sooner
	}
	return leaves
}
