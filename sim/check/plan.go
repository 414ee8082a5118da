package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
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
	plans     map[planKey]*plan
	doors     map[doorKey][]bool
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

// plan is what planner.Make decided, and what each of its actions would write.
type plan struct {
	plan *planner.Plan
	acts []act
}

// act is one action of a plan in the model's terms.
type act struct {
	does any
	what string // it is done to
	move move
	pods []int8 // by UID: to tell, to evict, or chosen to leave
}

// move is what a planner.Move writes.
type move struct {
	loan, machine, node, cells int8
	phase, epoch               int8
	holder, next               int8
	// deadline says whether the move sets one, moves it, takes it away or leaves it; enters that the phase begins anew.
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
	x := &model{Options: o, views: *newViews(), portraits: newPortraits(), plans: map[planKey]*plan{}, doors: map[doorKey][]bool{}, judged: map[nodeFacts][units]bool{}}
	for i := range x.tides {
		x.tides[i] = newTide(i)
	}
	return x
}

// planOf is the plan that a controller makes from a view.
func (x *model) planOf(k planKey) *plan {
	if p, ok := x.plans[k]; ok {
		return p
	}
	in := x.input(&x.all[k.view], k.eyes)
	if x.Mutant.Input != nil {
		x.Mutant.Input(&in)
	}
	made := planner.Make(in)
	if x.Mutant.Plan != nil {
		x.Mutant.Plan(&made, in.Snapshot)
	}
	// The reasoning is not carried out, and would fill the memory.
	made.Targets, made.Division, made.Pools, made.Withheld = nil, quota.Division{}, nil, nil
	p := &plan{plan: &made}
	for st := range loop.NewDoor(in.Snapshot).Steps(&made) {
		p.acts = append(p.acts, newAct(&st))
	}
	x.plans[k] = p
	return p
}

// doorOf says which actions of a plan still hold by a view.
func (x *model) doorOf(k doorKey) []bool {
	if d, ok := x.doors[k]; ok {
		return d
	}
	p := x.planOf(k.plan)
	e := k.plan.eyes
	e.fast = k.fast
	fresh := x.snapshot(&x.all[k.door], e)
	if x.Mutant.Door != nil {
		x.Mutant.Door(fresh)
	}
	rebased := *p.plan
	rebased.Moves = slices.Clone(p.plan.Moves)
	for i := range rebased.Moves {
		rebase(&rebased.Moves[i], &x.all[k.plan.view], &x.all[k.door], fresh)
	}
	rebased.Notices = slices.Clone(p.plan.Notices)
	for i := range rebased.Notices {
		x.rebaseNotice(&rebased.Notices[i], k.plan, &x.all[k.door], fresh)
	}
	out := make([]bool, 0, len(p.acts))
	for st := range loop.NewDoor(fresh).Steps(&rebased) {
		check := st.Check()
		st.Did(check) // a notice rests on the deadline of its loan, which no property asks of pods: it is taken to be written
		out = append(out, check == nil || x.Mutant.Passes != nil && x.Mutant.Passes(&st))
	}
	x.doors[k] = out
	return out
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

func podOf(uid fleet.UID) int8 {
	n, err := strconv.Atoi(strings.TrimPrefix(string(uid), "pod-"))
	if err != nil {
		panic("a pod that the model did not make: " + string(uid))
	}
	return int8(n)
}

func newAct(st *loop.Step) act {
	a := act{does: st.Act, what: st.Action + " " + st.Subject}
	switch d := st.Act.(type) {
	case *planner.Move:
		a.move = newMove(d)
	case *planner.Notice:
		a.pods = []int8{podOf(d.Pod.ID)}
	case *planner.Eviction:
		a.pods = []int8{podOf(d.Pod.ID)}
	case *planner.Kill:
		a.pods = []int8{podOf(d.Pod.ID)}
	case *planner.Scale:
		for _, l := range d.Leavers {
			a.pods = append(a.pods, podOf(l.ID))
		}
	case *planner.Filler:
		if d.Delete {
			a.pods = []int8{podOf(d.ID)}
		}
	case *planner.JobScale, *planner.Mark:
	default:
		panic(fmt.Sprintf("an action that the model does not know: %T", st.Act))
	}
	return a
}

// String says an action in words.
func (a *act) String() string {
	switch d := a.does.(type) {
	case *planner.Move:
		return fmt.Sprintf("%s %s: %s %d -> %s %d", d.Kind, d.Before.ID, d.Before.Phase, d.Before.Epoch, d.After.Phase, d.After.Epoch)
	case *planner.Notice:
		return fmt.Sprintf("%s of loan %s, epoch %d", a.what, d.Loan, d.Epoch)
	case *planner.Scale:
		return fmt.Sprintf("%s %d -> %d", a.what, d.From, d.To)
	case *planner.JobScale:
		return fmt.Sprintf("%s %d -> %d", a.what, d.From, d.To)
	case *planner.Filler:
		if d.Delete {
			return a.what + " deleted"
		}
	case *planner.Mark:
		return fmt.Sprintf("%s taint %t, label %t %s", a.what, d.Want.HolderTaint, d.Want.OfflineLabel, d.Want.Fence)
	}
	return a.what
}

func newMove(d *planner.Move) move {
	before, after := &d.Before, &d.After
	if d.Kind == planner.MoveBegin {
		before = &fleet.Loan{ID: d.Before.ID, Since: d.Before.Since} // there is none yet
	}
	m := move{loan: loanOf(before.ID), machine: int8(d.Node[1] - '0'), cells: setOf(after.Cells), phase: int8(slices.Index(fleet.Phases(), after.Phase)),
		epoch: int8(after.Epoch), holder: poolOf(after.Holder()), next: poolOf(after.Next()), recalled: !after.FirstNotice.IsZero(),
		enters:   !after.Since.Equal(before.Since),
		dueLater: before.FirstNotice.Equal(after.FirstNotice) && !before.Due.IsZero() && after.Due.After(before.Due)}
	uid, err := strconv.Atoi(strings.TrimPrefix(string(after.Node), "uid-"))
	if err != nil {
		panic("a machine that the model did not make: " + string(after.Node))
	}
	m.node = int8(uid)
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
