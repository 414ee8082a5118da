package protocol

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/quota"
)

// Each part of a precondition is asked by itself, and what it does not name is not asked.
func TestPreconditions(t *testing.T) {
	is := Fact{Exists: true, UID: "u", Version: "7", Size: fleet.KnownAt(int32(3), doorTime), LeaderEpoch: 4}
	for _, c := range []struct {
		name string
		p    Precondition
		of   Fact
		want string
	}{
		{"nothing is asked", Precondition{}, is, ""},
		{"nothing is asked of what is gone", Precondition{}, Fact{}, "it is gone"},
		{"absent, and it is", Precondition{Absent: true}, Fact{}, ""},
		{"absent, and it is not", Precondition{Absent: true}, is, "there is an object of that name"},
		{"this object", Precondition{UID: "u"}, is, ""},
		{"another object", Precondition{UID: "v"}, is, "another object"},
		{"this version", Precondition{Version: "7"}, is, ""},
		{"another version", Precondition{Version: "6"}, is, "it changed since"},
		{"this size", Precondition{Size: is.Size}, is, ""},
		{"another size", Precondition{Size: fleet.KnownAt(int32(2), doorTime)}, is, "its size is 3 now, not 2"},
		{"a size that is not known", Precondition{Size: fleet.KnownAt(int32(0), doorTime)}, Fact{Exists: true}, "its size is 0 now, not 0"},
		{"this leader", Precondition{LeaderEpoch: 4}, is, ""},
		{"a later leader than the writer", Precondition{LeaderEpoch: 5}, is, ""},
		{"an earlier leader than the writer", Precondition{LeaderEpoch: 3}, is, "leader epoch 4 wrote it"},
		{"no leader", Precondition{LeaderEpoch: 0}, is, ""},
		{"the first leader, of what none wrote", Precondition{LeaderEpoch: 1}, Fact{Exists: true}, ""},
	} {
		expect(t, c.name, judge(c.p.Holds(&c.of)), c.want)
	}
}

// Marks that let pods land, or end what is there, want a look at the share; marks that only keep pods off may be written after a conflict, as the share
// cannot make them wrong; others do neither.
func TestWhichMarksOpenAndClose(t *testing.T) {
	const execute = fleet.FenceExecute
	taint, label, none := fleet.NodeMarks{HolderTaint: true}, fleet.NodeMarks{HolderTaint: true, OfflineLabel: true}, fleet.NodeMarks{}
	fenced := func(m fleet.NodeMarks) fleet.NodeMarks { m.Fence = execute; return m }
	for _, c := range []struct {
		name            string
		has, want       fleet.NodeMarks
		opens, closes   bool
		machine, noNode string
	}{
		{name: "nothing changes", has: taint, want: taint},
		{name: "nothing changes on an open machine", has: none, want: none},
		{name: "the taint comes", has: none, want: taint, closes: true},
		{name: "the taint goes", has: taint, want: none, opens: true},
		{name: "the label comes", has: taint, want: label, opens: true},
		{name: "the label goes", has: label, want: taint, closes: true},
		{name: "the label stays", has: label, want: label},
		{name: "the label goes with the taint", has: label, want: none, opens: true},
		{name: "the label comes with the taint", has: none, want: label, opens: true},
		{name: "the fence comes", has: taint, want: fenced(taint), opens: true},
		{name: "the fence stays", has: fenced(taint), want: fenced(taint)},
		{name: "the fence stays while the taint comes", has: fenced(none), want: fenced(taint)},
		{name: "the fence goes", has: fenced(taint), want: taint},
		{name: "the label goes while the fence comes", has: label, want: fenced(taint), opens: true},
		{name: "a machine that is not there", has: none, want: taint, machine: "n9"},
	} {
		f := versioned()
		f.Nodes[0].Marks = c.has
		s := New(&planner.Plan{LeaderEpoch: 4}, f)
		m := &planner.Mark{Node: "n1", ID: "u1", Want: c.want}
		if c.machine != "" {
			m.Node = c.machine
		}
		if opens, closes := s.opens(m), s.closes(m); opens != c.opens || closes != c.closes {
			t.Errorf("%s: opens %t, closes %t", c.name, opens, closes)
		}
		flow := s.markFlow(m)
		w, _ := flow[len(flow)-1].write()
		if (len(flow) == 2) != c.opens || (w.OnConflict == ConflictSameLeader) != (c.opens || c.closes) {
			t.Errorf("%s: %d requests, on conflict %v", c.name, len(flow), w.OnConflict)
		}
	}
}

// Pods that are chosen to leave are marked before the size is written, those that bear the mark already are not; marks of a scale-in that never
// happened go.
func TestMarksOfAScaleIn(t *testing.T) {
	at := func(n int32) fleet.Known[int32] { return fleet.KnownAt(n, doorTime) }
	for _, c := range []struct {
		name   string
		bend   func(svc *fleet.Service, chosen, other *fleet.Pod)
		to     int32
		change string // what is written of pods, by the types of the changes
	}{
		{"nothing is marked", func(*fleet.Service, *fleet.Pod, *fleet.Pod) {}, 2, "Steer"},
		{"it is marked for this size", func(_ *fleet.Service, p, _ *fleet.Pod) { p.DeletionCost, p.LeavesAt = VictimCost, at(2) }, 2, ""},
		{"it is marked for another size", func(_ *fleet.Service, p, _ *fleet.Pod) { p.DeletionCost, p.LeavesAt = VictimCost, at(1) }, 2, "Steer"},
		{"its cost is another's", func(_ *fleet.Service, p, _ *fleet.Pod) { p.DeletionCost, p.LeavesAt = -5, at(2) }, 2, "Steer"},
		{"it has the cost and no note", func(_ *fleet.Service, p, _ *fleet.Pod) { p.DeletionCost, p.LeavesAt.Value = VictimCost, 2 }, 2, "Steer"},
		{"another has an old mark", func(_ *fleet.Service, _, o *fleet.Pod) { o.DeletionCost, o.LeavesAt = VictimCost, at(1) }, 2, "Unsteer with its cost, Steer"},
		{"another has an old mark, and a cost of its owner", func(_ *fleet.Service, _, o *fleet.Pod) { o.DeletionCost, o.LeavesAt = 7, at(1) }, 2, "Unsteer, Steer"},
		{"another is ending", func(_ *fleet.Service, _, o *fleet.Pod) { o.LeavesAt, o.Deleting = at(1), true }, 2, "Steer"},
		{"another goes by a scale-in that stands", func(s *fleet.Service, _, o *fleet.Pod) { s.Desired.Value, o.LeavesAt = 1, at(1) }, 0, "Steer"},
		{"another was marked for less than is asked for", func(s *fleet.Service, _, o *fleet.Pod) { s.Desired.Value, o.LeavesAt = 1, at(0) }, 0, "Unsteer, Steer"},
		{"a scale-out takes no marks", func(_ *fleet.Service, _, o *fleet.Pod) { o.LeavesAt = at(1) }, 4, "Steer"},
		{"the same size takes none either", func(_ *fleet.Service, _, o *fleet.Pod) { o.LeavesAt = at(1) }, 3, "Steer"},
	} {
		f := versioned()
		chosen, other := f.Pods[0], f.Pods[0]
		other.ID, other.Name.Name = "p8", "cart-b"
		svc := &f.Services[0]
		c.bend(svc, &chosen, &other)
		from := svc.Desired.Value
		f.Pods[0] = chosen
		f.Pods = append(f.Pods, other)
		svc.Pods = []fleet.Pod{chosen, other}
		var got []string
		for _, r := range New(&planner.Plan{LeaderEpoch: 4}, f).scaleFlow(&planner.Scale{Service: svc.ID, By: fleet.ByScale, From: from, To: c.to,
			Victims: []planner.PodRef{{Name: chosen.Name, ID: chosen.ID}}}) {
			w, _ := r.write()
			switch x := w.Change.(type) {
			case Steer:
				got = append(got, "Steer")
			case Unsteer:
				if text := "Unsteer"; x.Cost {
					got = append(got, text+" with its cost")
				} else {
					got = append(got, text)
				}
			}
		}
		if text := strings.Join(got, ", "); text != c.change {
			t.Errorf("%s: %q, want %q", c.name, text, c.change)
		}
	}
}

// The share is written where any part of its entry changes, and not again where it says all of it already.
func TestTheShareIsWrittenWhereItChanges(t *testing.T) {
	for name, bend := range map[string]func(e *fleet.ShareParcel){
		"the cells":     func(e *fleet.ShareParcel) { e.Cells = []int{0, 1} },
		"the holder":    func(e *fleet.ShareParcel) { e.Holder = "web" },
		"the next one":  func(e *fleet.ShareParcel) { e.Next = "" },
		"the loan":      func(e *fleet.ShareParcel) { e.Loan = "l0" },
		"the epoch":     func(e *fleet.ShareParcel) { e.Epoch = 2 },
		"nothing of it": func(*fleet.ShareParcel) {},
		"only a report": func(e *fleet.ShareParcel) { e.Clean, e.CleanEpoch = true, 3 },
	} {
		f := versioned()
		f.At = doorTime.Add(2 * time.Minute)
		bend(&f.Nodes[0].Share.Parcels[0])
		lines, _ := play(&planner.Plan{LeaderEpoch: 4, Moves: []planner.Move{drain(f)}}, f, nil)
		want := []string{"SetShare n1 at s7", "SetLoan l1 at l7"}
		if name == "nothing of it" || name == "only a report" {
			want = want[1:]
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%s: %q, want %q", name, lines, want)
		}
	}
}

// A loan that its borrower has takes the place of entries that none answers for. One that is still emptied does so with that of an earlier loan of its name alone: the API
// refuses a cell in two parcels, and another loan that is not seen yet keeps its entry.
func TestWhichEntriesGiveWay(t *testing.T) {
	for _, c := range []struct {
		phase       fleet.Phase
		loan        fleet.LoanID
		wantParcels int
	}{
		{fleet.Emptying, "l1", 1}, {fleet.Emptying, "l0", 2}, {fleet.Emptying, "l9", 2},
		{fleet.Noticed, "l1", 1}, {fleet.Noticed, "l0", 1}, {fleet.Lent, "l9", 1},
	} {
		f := versioned()
		l, e := &f.Loans[0], &f.Nodes[0].Share.Parcels[0]
		l.Phase, e.Loan, e.LoanUID = c.phase, c.loan, "lu0"
		f.Sort()
		repair := planner.Move{Kind: planner.MoveRepair, Before: *l, After: *l, Node: "n1"}
		session, parcels := New(&planner.Plan{LeaderEpoch: 4, Moves: []planner.Move{repair}}, f), 0
		for stage := range session.Stages {
			for _, task := range stage.Tasks {
				for step := session.Next(task, f.At); !step.Over(); step = session.Next(task, f.At) {
					if d, ok := step.Write.Change.(SetShare); ok {
						parcels = len(d.Parcels)
					}
					session.Answer(task, Answer{How: Taken, Version: "v1"})
				}
			}
		}
		if parcels != c.wantParcels {
			t.Errorf("a loan that is %s, and the entry of %s: %d parcels, want %d", c.phase, c.loan, parcels, c.wantParcels)
		}
	}
}

// A hand that gives an entry other cells, or writes it twice, is corrected by one write for each loan, also where the entries of two loans have each other's cells: the API refuses
// a cell in two parcels.
func TestEntriesOfOtherCellsAreWrittenRight(t *testing.T) {
	for name, bend := range map[string]func(entries []fleet.ShareParcel) []fleet.ShareParcel{
		"fewer": func(e []fleet.ShareParcel) []fleet.ShareParcel { e[0].Cells = []int{0}; return e },
		"swapped": func(e []fleet.ShareParcel) []fleet.ShareParcel {
			e[0].Cells, e[1].Cells = e[1].Cells, e[0].Cells
			return e
		},
		"one of each": func(e []fleet.ShareParcel) []fleet.ShareParcel {
			e[0].Cells, e[1].Cells = []int{0, 2}, []int{1, 3}
			return e
		},
		"twice": func(e []fleet.ShareParcel) []fleet.ShareParcel {
			again := e[0]
			again.Cells = []int{4}
			return append(e, again)
		},
		"one is gone, and the other has its cells": func(e []fleet.ShareParcel) []fleet.ShareParcel {
			e[0].Cells = e[1].Cells
			return e[:1]
		},
	} {
		f := versioned()
		n := &f.Nodes[0]
		second := f.Loans[0]
		f.Loans[0].Cells = []int{0, 1}
		second.ID, second.UID, second.Version, second.Cells = "l2", "lu2", "l8", []int{2, 3}
		f.Loans = append(f.Loans, second)
		n.Share.Parcels = nil
		for i := range f.Loans {
			n.Share.Parcels = append(n.Share.Parcels, fleet.ParcelOf(&f.Loans[i]))
		}
		n.Share.Parcels = bend(n.Share.Parcels)
		f.Sort()
		plan := &planner.Plan{LeaderEpoch: 4}
		for i := range f.Loans {
			plan.Moves = append(plan.Moves, planner.Move{Kind: planner.MoveRepair, Before: f.Loans[i], After: f.Loans[i], Node: "n1"})
		}
		session := New(plan, f)
		var wrote []fleet.ShareParcel
		for stage := range session.Stages {
			for _, task := range stage.Tasks {
				for step := session.Next(task, f.At); !step.Over(); step = session.Next(task, f.At) {
					if d, ok := step.Write.Change.(SetShare); ok {
						wrote = d.Parcels
						for k := range wrote {
							for i := range k {
								if fleet.Overlap(wrote[i].Cells, wrote[k].Cells) {
									t.Errorf("%s: a write of %+v", name, wrote)
								}
							}
						}
					}
					session.Answer(task, Answer{How: Taken, Version: "v1"})
				}
			}
		}
		if len(wrote) != 2 || !slices.Equal(wrote[0].Cells, []int{0, 1}) || wrote[0].Loan != "l1" || !slices.Equal(wrote[1].Cells, []int{2, 3}) || wrote[1].Loan != "l2" {
			t.Errorf("%s: %+v", name, wrote)
		}
	}
}

// An ended loan clears its entry, and nothing where the share has none of it, or is that of another machine.
func TestWhatForgettingClears(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(f *fleet.Snapshot)
		want []string
	}{
		"its entry":           {func(*fleet.Snapshot) {}, []string{"SetShare n1 at s7", "DeleteLoan l1 at l7"}},
		"the borrower has it": {func(f *fleet.Snapshot) { f.Nodes[0].Share.Parcels[0].Holder = "batch" }, []string{"DeleteLoan l1 at l7"}},
		"of cells that are not there": {func(f *fleet.Snapshot) {
			f.Nodes[0].Share.Parcels[0].Holder, f.Nodes[0].Share.Parcels[0].Cells = "batch", []int{9}
		}, []string{"SetShare n1 at s7", "DeleteLoan l1 at l7"}},
		"no entry":                      {func(f *fleet.Snapshot) { f.Nodes[0].Share.Parcels[0].LoanUID = "lu9" }, []string{"DeleteLoan l1 at l7"}},
		"no share":                      {func(f *fleet.Snapshot) { f.Nodes[0].Share.Exists = false }, []string{"DeleteLoan l1 at l7"}},
		"a machine of the name":         {func(f *fleet.Snapshot) { f.Nodes[0].ID = "u9" }, []string{"DeleteLoan l1 at l7"}},
		"a machine that is not there":   {func(f *fleet.Snapshot) { f.Nodes = f.Nodes[1:] }, []string{"DeleteLoan l1 at l7"}},
		"the first of several machines": {func(f *fleet.Snapshot) { slices.Reverse(f.Nodes) }, []string{"SetShare n1 at s7", "DeleteLoan l1 at l7"}},
	} {
		f := versioned()
		f.Loans[0].Phase = fleet.Returned
		f.Nodes[0].Share.Parcels[0].Holder, f.Nodes[0].Share.Parcels[0].Next = "web", ""
		c.bend(f)
		f.Sort()
		forget := planner.Move{Kind: planner.MoveForget, Before: f.Loans[0], After: f.Loans[0], Node: "n1"}
		if lines, _ := play(&planner.Plan{LeaderEpoch: 4, Moves: []planner.Move{forget}}, f, nil); !slices.Equal(lines, c.want) {
			t.Errorf("%s: %q, want %q", name, lines, c.want)
		}
	}
}

// A recall, and a loan that begins with a deadline, want the next cycle at once: their pods have no notice yet, and their time runs.
func TestWhatWantsTheNextCycleSoon(t *testing.T) {
	for _, c := range []struct {
		kind     planner.MoveKind
		deadline time.Time
		want     bool
	}{
		{planner.MoveRecall, doorTime.Add(time.Hour), true},
		{planner.MoveRecall, time.Time{}, true},
		{planner.MoveBegin, doorTime.Add(time.Hour), true},
		{planner.MoveBegin, time.Time{}, false},
		{planner.MoveDrain, doorTime.Add(time.Hour), false},
		{planner.MoveLend, doorTime.Add(time.Hour), false},
	} {
		s := New(&planner.Plan{LeaderEpoch: 4}, versioned())
		m := planner.Move{Kind: c.kind}
		m.After.Deadline = c.deadline
		if s.finished(&m); s.Soon() != c.want {
			t.Errorf("%s until %s: soon %t", c.kind, c.deadline, s.Soon())
		}
	}
}

// An eviction for a loan that is Noticed waits for the drain that this plan writes, unless the pod answered the notice that it has.
func TestWhichEvictionsNeedADrain(t *testing.T) {
	for _, c := range []struct {
		name          string
		phase         fleet.Phase
		notice, ack   int64
		gone, drained bool
		waits, names  bool // whether it waits, and whether the write names the loan whose drain it needs
	}{
		{name: "not answered", phase: fleet.Noticed, notice: 3, waits: true, names: true},
		{name: "not answered, and the drain is written", phase: fleet.Noticed, notice: 3, drained: true, names: true},
		{name: "answered", phase: fleet.Noticed, notice: 3, ack: 3},
		{name: "answered the notice before", phase: fleet.Noticed, notice: 3, ack: 2, waits: true, names: true},
		{name: "never told, never answered", phase: fleet.Noticed, waits: true, names: true},
		{name: "the pod is gone", phase: fleet.Noticed, notice: 3, ack: 3, gone: true, waits: true, names: true},
		{name: "seen draining", phase: fleet.Draining, notice: 3},
	} {
		f := versioned()
		f.Loans[0].Phase = c.phase
		f.Pods[1].NoticeEpoch, f.Pods[1].AckEpoch = c.notice, c.ack
		if c.gone {
			f.Pods[1].ID = "p9"
		}
		s := New(&planner.Plan{LeaderEpoch: 4}, f)
		s.drained["l1"] = c.drained
		e := &planner.Eviction{Pod: bertPod, Loan: "l1"}
		if s.waits(e) != c.waits {
			t.Errorf("%s: waits %t", c.name, s.waits(e))
		}
		if w, err := s.flowOf(e)[0].write(); (err != nil) != c.waits || err == nil && (w.Drained != "") != c.names {
			t.Errorf("%s: %+v, %v", c.name, w, err)
		}
	}
	if s := New(&planner.Plan{LeaderEpoch: 4}, versioned()); s.waits(&planner.Eviction{Pod: bertPod, Loan: "l9"}) {
		t.Error("an eviction waits for a loan that is gone")
	}
}

// Pods that a stage takes are charged to the pool of the machine before the act, and refused beyond its budget. Recalls
// are counted whatever it holds.
func TestChargesOfAStage(t *testing.T) {
	evict := func(loan fleet.LoanID, job fleet.JobID) planner.Plan {
		return planner.Plan{Evictions: []planner.Eviction{{Pod: bertPod, Loan: loan, Job: job}}}
	}
	lower := func(charges ...planner.Charge) planner.Plan {
		return planner.Plan{Lowers: []planner.Scale{{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", By: fleet.ByScale, From: 3, To: 2, Charges: charges}}}
	}
	job := func(charges ...planner.Charge) planner.Plan {
		return planner.Plan{Jobs: []planner.JobScale{{Job: "train/bert", Role: "worker", Kind: "Job", Workload: fleet.Name{Namespace: "train", Name: "bert"}, From: 4, To: 3, Charges: charges}}}
	}
	for _, c := range []struct {
		name  string
		plan  planner.Plan
		bend  func(f *fleet.Snapshot)
		owner string
		pods  int // of the budget
		due   int
		want  Outcome
		why   string
	}{
		{name: "a pod of no job, for no loan", plan: evict("", ""), owner: "pod train/bert-0", pods: 1, want: Done},
		{name: "a pod of a job, for no loan", plan: evict("", "train/bert"), owner: "job train/bert", pods: 1, want: Done},
		{name: "a pod of a job, and the minute is spent", plan: evict("", "train/bert"), bend: func(f *fleet.Snapshot) { f.Pool("web").Budget.EvictionsPerMinute = 0 }, want: Failed, why: "pods a minute"},
		{name: "a pod on a machine of no pool", plan: evict("", ""), bend: func(f *fleet.Snapshot) { f.Nodes[0].Pool = "gone" }, want: Failed, why: "no pool has a disruption budget"},
		{name: "a pod on a machine that is gone", plan: evict("", ""), bend: func(f *fleet.Snapshot) { f.Pods[1].Node = "u9" }, want: Failed, why: "no pool has a disruption budget"},
		{name: "a pod that is gone", plan: evict("", ""), bend: func(f *fleet.Snapshot) { f.Pods[1].ID = "p9" }, want: Stale, why: "the pod is gone"},
		{name: "for a loan", plan: evict("l1", "train/bert"), bend: func(f *fleet.Snapshot) { f.Loans[0].Phase, f.Pods[1].AckEpoch = fleet.Draining, 3 }, due: 1, want: Done},
		{name: "for a loan whose lender is gone", plan: evict("l1", ""), bend: func(f *fleet.Snapshot) {
			f.Loans[0].Phase, f.Pods[1].AckEpoch = fleet.Draining, 3
			f.Pools = f.Pools[:1]
		}, want: Done},
		{name: "for a loan, with nothing left of the budget", plan: evict("l1", ""), bend: func(f *fleet.Snapshot) {
			f.Loans[0].Phase, f.Pods[1].AckEpoch, f.Pool("web").Budget = fleet.Draining, 3, fleet.DisruptionBudget{}
		}, due: 1, want: Done},
		{name: "a scale-in that is charged", plan: lower(planner.Charge{Pool: "web", Pods: 1}), owner: "service shop/cart", pods: 1, want: Done},
		{name: "a scale-in that takes nothing off machines", plan: lower(), want: Done},
		{name: "a scale-in beyond the minute", plan: lower(planner.Charge{Pool: "web", Pods: 3}), want: Failed, why: "2 pods a minute"},
		{name: "a scale-in that is not done", plan: lower(planner.Charge{Pool: "web", Pods: 1}), bend: func(f *fleet.Snapshot) { f.Services[0].Blocked = fleet.Problem{Reason: "HPAFound", Message: "x"} }, want: Stale, why: "blocked"},
		{name: "a scale-in of a pool that is gone", plan: lower(planner.Charge{Pool: "gone", Pods: 1}), want: Failed, why: "no pool has"},
		{name: "a scale-in on both lines", plan: lower(planner.Charge{Pool: "web", Pods: 5, Due: true}, planner.Charge{Pool: "web", Pods: 2}), owner: "service shop/cart", pods: 2, due: 5, want: Done},
		{name: "a scale-in, for a pool that is gone and one that is not", plan: lower(planner.Charge{Pool: "gone", Pods: 5, Due: true}, planner.Charge{Pool: "web", Pods: 1}), owner: "service shop/cart", pods: 1, want: Done},
		{name: "a job that shrinks", plan: job(planner.Charge{Pool: "web", Pods: 1}), owner: "job train/bert", pods: 1, want: Done},
		{name: "a job that shrinks for nothing", plan: job(), want: Done},
		{name: "a job that is blocked", plan: job(planner.Charge{Pool: "web", Pods: 1}),
			bend: func(f *fleet.Snapshot) {
				f.Jobs[0].Blocked = fleet.Problem{Reason: "Conflicted",
					Message: "x"}
			}, want: Stale, why: "blocked"},
	} {
		f := versioned()
		f.Services[0].Pods = []fleet.Pod{f.Pods[0], f.Pods[0], f.Pods[0]}
		if c.bend != nil {
			c.bend(f)
		}
		c.plan.LeaderEpoch, c.plan.At = 4, doorTime
		s := New(&c.plan, f)
		var charged []fleet.Ledger
		var results []Result
		for stage := range s.Stages {
			for _, task := range stage.Ledgers {
				for step := s.Next(task, f.At); !step.Over(); step = s.Next(task, f.At) {
					charged = append(charged, step.Write.Change.(SetLedger).Ledger)
					s.Answer(task, Answer{How: Taken, Version: "p8"})
				}
			}
			for _, task := range stage.Tasks {
				for step := s.Next(task, f.At); !step.Over(); step = s.Next(task, f.At) {
					s.Answer(task, Answer{How: Taken, Version: "v"})
				}
				results = append(results, task.Result())
			}
		}
		if len(results) != 1 || results[0].Outcome != c.want || !strings.Contains(results[0].Message, c.why) {
			t.Errorf("%s: %+v, want %s: %s", c.name, results, c.want, c.why)
		}
		if c.pods+c.due == 0 {
			if len(charged) > 0 {
				t.Errorf("%s: charged %+v", c.name, charged)
			}
			continue
		}
		if len(charged) != 1 {
			t.Errorf("%s: ledgers %+v, want one", c.name, charged)
			continue
		}
		l := charged[0]
		if l.Evictions != c.pods || l.Recalls != c.due || c.pods > 0 && (len(l.Owners) != 1 || fmt.Sprint(l.Owners) == "" || !strings.Contains(fmt.Sprint(l.Owners), c.owner)) {
			t.Errorf("%s: %+v, want %d pods of %s and %d recalls", c.name, l, c.pods, c.owner, c.due)
		}
	}
}

// A denied eviction is taken back from the line of the recalls, and nothing else: not what it evicted, what the budget
// was charged with, what had no ledger, and what is no eviction.
func TestDeniedRecallsAreReturned(t *testing.T) {
	for _, c := range []struct {
		name    string
		plan    planner.Plan
		bend    func(f *fleet.Snapshot)
		stands  fleet.Ledger    // after the charge, where others wrote it
		denied  map[string]bool // by the pod's name
		charged int             // recalls
		after   int             // what stands in the ledger; -1 where it is not written again
	}{
		{name: "all were evicted", charged: 2, after: -1},
		{name: "one was denied", denied: map[string]bool{"bert-0": true}, charged: 2, after: 1},
		{name: "the second one was denied", denied: map[string]bool{"bert-1": true}, charged: 2, after: 1},
		{name: "both were", denied: map[string]bool{"bert-0": true, "bert-1": true}, charged: 2, after: 0},
		{name: "the minute is over", denied: map[string]bool{"bert-0": true}, stands: fleet.Ledger{}.ChargeRecalls(doorTime.Add(2*time.Minute), 5), charged: 2, after: -1},
		{name: "the lender is gone", denied: map[string]bool{"bert-0": true}, bend: func(f *fleet.Snapshot) { f.Pools = f.Pools[:1] }, after: -1},
		{name: "the budget was charged", plan: planner.Plan{Evictions: []planner.Eviction{{Pod: bertPod}}}, denied: map[string]bool{"bert-0": true}, after: -1},
		{name: "a scale-in was denied", plan: planner.Plan{Lowers: []planner.Scale{{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", By: fleet.ByScale,
			From: 3, To: 2, Charges: []planner.Charge{{Pool: "web", Pods: 1, Due: true}}}}}, denied: map[string]bool{"cart": true}, charged: 1, after: -1},
	} {
		f := versioned()
		f.Services[0].Pods = []fleet.Pod{f.Pods[0], f.Pods[0], f.Pods[0]}
		f.Loans[0].Phase, f.Pods[1].AckEpoch = fleet.Draining, 3
		second := f.Pods[1]
		second.ID, second.Name.Name = "p7", "bert-1"
		f.Pods = append(f.Pods, second)
		if c.bend != nil {
			c.bend(f)
		}
		if c.plan.Evictions == nil && c.plan.Lowers == nil {
			c.plan.Evictions = []planner.Eviction{{Pod: bertPod, Loan: "l1"}, {Pod: planner.PodRef{Name: second.Name, ID: second.ID}, Loan: "l1"}}
		}
		c.plan.LeaderEpoch, c.plan.At = 4, doorTime
		s := New(&c.plan, f)
		carry := func(task *Task) (ledger *fleet.Ledger) {
			for step := s.Next(task, f.At); !step.Over(); step = s.Next(task, f.At) {
				if l, ok := step.Write.Change.(SetLedger); ok {
					ledger = &l.Ledger
				}
				a := Answer{How: Taken, Version: "p8"}
				if !c.stands.WindowStart.IsZero() {
					a.Fact = Fact{Exists: true, Version: "p9", Ledger: c.stands}
				}
				if _, name, _ := strings.Cut(step.Write.Object.Name, "/"); c.denied[name] {
					a = Answer{How: Denied, Err: errors.New("a budget")}
				}
				s.Answer(task, a)
			}
			return ledger
		}
		var tasks []*Task
		recalls := 0
		for stage := range s.Stages {
			for _, task := range stage.Ledgers {
				if l := carry(task); l != nil {
					recalls += l.Recalls
				}
			}
			for _, task := range stage.Tasks {
				carry(task)
				tasks = append(tasks, task)
			}
		}
		if recalls != c.charged {
			t.Errorf("%s: %d recalls are charged, want %d", c.name, recalls, c.charged)
		}
		after := -1
		for _, task := range s.Returns(tasks) {
			if l := carry(task); l != nil {
				after = l.Recalls
			}
		}
		if after != c.after {
			t.Errorf("%s: %d recalls stand in the ledger in the end, want %d", c.name, after, c.after)
		}
	}
}

// After a conflict a ledger that spends of the budget is written again only while no other actor charged it; recalls are added to what stands there.
func TestALedgerAfterAConflict(t *testing.T) {
	charged := fleet.Ledger{}.Charge(doorTime, "service shop/pay", 1)
	for _, c := range []struct {
		name   string
		due    bool
		stands fleet.Ledger
		want   Outcome
	}{
		{"nobody charged it", false, fleet.Ledger{}, Done},
		{"another charged it", false, charged, Failed},
		{"another charged it, and it is a recall", true, charged, Done},
	} {
		f := versioned()
		f.Services[0].Pods = []fleet.Pod{f.Pods[0], f.Pods[0], f.Pods[0]}
		p := planner.Plan{LeaderEpoch: 4, At: doorTime, Lowers: []planner.Scale{{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment",
			By: fleet.ByScale, From: 3, To: 2, Charges: []planner.Charge{{Pool: "web", Pods: 1, Due: c.due}}}}}
		_, results := play(&p, f, map[int]Answer{0: conflict, 1: {How: Taken, Fact: Fact{Exists: true, Version: "p9", Ledger: c.stands}}})
		if got := results[0].Outcome; (got == Done) != (c.want == Done) {
			t.Errorf("%s: %+v", c.name, results)
		}
	}
}

// A read that is not answered, and a write that meets a second conflict, end their task.
func TestAnswersThatEndATask(t *testing.T) {
	raise := planner.Plan{LeaderEpoch: 4, Raises: []planner.Scale{{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", By: fleet.ByScale, From: 3, To: 5}}}
	same := Answer{How: Taken, Fact: Fact{Exists: true, Version: "d9", Size: fleet.KnownAt(int32(3), doorTime)}}
	for _, c := range []struct {
		name    string
		answers map[int]Answer
		lines   int
	}{
		{"the second write meets a conflict, too", map[int]Answer{0: conflict, 1: same, 2: conflict}, 3},
		{"what is read after a conflict is not answered", map[int]Answer{0: conflict, 1: {How: Conflict, Err: errors.New("gone"), Fact: same.Fact}}, 2},
		{"it is refused", map[int]Answer{0: {How: Refused, Err: errors.New("forbidden")}}, 1},
	} {
		lines, results := play(&raise, versioned(), c.answers)
		if len(lines) != c.lines || results[0].Outcome == Done {
			t.Errorf("%s: %q, %+v", c.name, lines, results)
		}
	}
	f := versioned()
	f.Loans[0].Phase = fleet.Lent
	f.Nodes[0].Share.Parcels[0].Next = ""
	marks := planner.Plan{LeaderEpoch: 4, Marks: []planner.Mark{{Node: "n1", ID: "u1", Want: fleet.NodeMarks{HolderTaint: true, OfflineLabel: true}}}}
	lines, results := play(&marks, f, map[int]Answer{0: {How: Conflict, Err: errors.New("timeout"), Fact: Fact{Exists: true, Version: "s7"}}})
	if len(lines) != 1 || results[0].Outcome == Done {
		t.Errorf("a share that could not be read: %q, %+v", lines, results)
	}
}

// The patience of the lender's own ladder counts, and the default's where the lender is gone. The time under a freeze does not: nothing was evicted in it.
func TestTheFenceWaitsForTheLendersPatience(t *testing.T) {
	for _, c := range []struct {
		patience, after time.Duration
		gone            bool
		thawed          time.Duration // how long ago a freeze was over; 0 for none
		want            string
	}{
		{5 * time.Minute, 3 * time.Minute, false, 0, "was never evicted"},
		{5 * time.Minute, 5 * time.Minute, false, 0, ""},
		{time.Minute, time.Minute, false, 0, ""},
		{5 * time.Minute, 3 * time.Minute, true, 0, ""},
		{time.Minute, time.Minute, true, 0, "was never evicted"},
		{5 * time.Minute, time.Hour, false, time.Minute, "was never evicted"},
		{5 * time.Minute, time.Hour, false, 5 * time.Minute, ""},
		{5 * time.Minute, 5 * time.Minute, false, time.Hour, ""},
		{time.Minute, time.Hour, true, time.Minute, "was never evicted"},
	} {
		f := doorFacts()
		l := &f.Loans[0]
		l.Phase, l.Deadline, l.KillAt = fleet.Draining, doorTime.Add(-c.after), doorTime.Add(-c.after/2)
		f.Pool("web").Ladder.Patience = c.patience
		if c.gone {
			f.Pools = f.Pools[:1]
		}
		p := planner.Plan{LeaderEpoch: 4, At: doorTime, Moves: []planner.Move{{Kind: planner.MoveFence, Before: *l, After: *l}}}
		if c.thawed > 0 {
			p.Thawed = doorTime.Add(-c.thawed)
		}
		expect(t, fmt.Sprintf("%+v", c), judge(New(&p, f).door.CheckMove(&p.Moves[0])), c.want)
	}
}

// A machine whose borrower's pool is gone, or that is no offline pool, comes home with whatever marks it has.
func TestAReturnToAPoolThatIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(f *fleet.Snapshot)
		want string
	}{
		"marked":                       {func(*fleet.Snapshot) {}, "still has the label"},
		"marked, the borrower is gone": {func(f *fleet.Snapshot) { f.Pools = f.Pools[1:] }, ""},
		"marked, and not offline's":    {func(f *fleet.Snapshot) { f.Pool("batch").Class = fleet.Online }, ""},
		"without marks, and a pod is on it": {func(f *fleet.Snapshot) {
			f.Nodes[0].Marks.OfflineLabel = false
		}, "offline pod train/bert-0 is on the machine"},
	} {
		f := doorFacts()
		l, e := &f.Loans[0], &f.Nodes[0].Share.Parcels[0]
		l.Phase, f.Nodes[0].Marks.OfflineLabel = fleet.Draining, true
		e.Clean, e.CleanEpoch = true, l.Epoch
		c.bend(f)
		m := planner.Move{Kind: planner.MoveReturn, Before: *l, After: *l}
		expect(t, name, judge(NewDoor(f).CheckMove(&m)), c.want)
	}
}

// Another deadline announces no other kill: one whose time has come stays as it is.
func TestADeadlineMovesWithoutItsKill(t *testing.T) {
	f := doorFacts()
	l := &f.Loans[0]
	l.Phase, l.KillAt = fleet.Draining, doorTime.Add(-time.Minute)
	m := planner.Move{Kind: planner.MoveAnnounce, Before: *l, After: *l}
	m.After.Deadline = l.Deadline.Add(time.Minute)
	expect(t, "a later deadline", judge(NewDoor(f).CheckMove(&m)), "")
	m.After.KillAt = doorTime.Add(-time.Second)
	expect(t, "and a kill in the past", judge(NewDoor(f).CheckMove(&m)), "announce a kill")
}

// Pods that others brought, or that are ending, answer for no other.
func TestWhoseAnswersEndTheNotice(t *testing.T) {
	pod := func(name string, class fleet.PodClass, ending bool, ack int64) fleet.Pod {
		return fleet.Pod{ID: fleet.UID("u-" + name), Name: fleet.Name{Namespace: "train", Name: name}, Node: "u1", NodeName: "n1", Class: class, Phase: fleet.PodRunning,
			Deleting: ending, NoticeLoan: "l1", NoticeEpoch: 3, AckEpoch: ack}
	}
	for _, c := range []struct {
		name string
		pods []fleet.Pod
		want string
	}{
		{"all answered", []fleet.Pod{pod("a", fleet.PodOffline, false, 3), pod("b", fleet.PodOffline, false, 3)}, ""},
		{"none is there", nil, ""},
		{"one did not", []fleet.Pod{pod("a", fleet.PodOffline, false, 3), pod("b", fleet.PodOffline, false, 0)}, "drain"},
		{"one that is ending did not", []fleet.Pod{pod("a", fleet.PodOffline, true, 0), pod("b", fleet.PodOffline, false, 3)}, ""},
		{"one did not, after one that is ending", []fleet.Pod{pod("a", fleet.PodOffline, true, 3), pod("b", fleet.PodOffline, false, 0)}, "drain"},
		{"one did not, after one of the system", []fleet.Pod{pod("a", fleet.PodSystem, false, 0), pod("b", fleet.PodOffline, false, 0)}, "drain"},
		{"one of the system did not", []fleet.Pod{pod("a", fleet.PodSystem, false, 0), pod("b", fleet.PodOffline, false, 3)}, ""},
	} {
		f := doorFacts()
		f.Pods = c.pods
		m := drain(f)
		expect(t, c.name, judge(NewDoor(f).CheckMove(&m)), c.want)
	}
}

// A loan that is over hides none that follows it.
func TestALoanThatIsOverHidesNoOther(t *testing.T) {
	f := doorFacts()
	over := f.Loans[0]
	over.ID, over.UID, over.Phase = "l0", "lu0", fleet.Returned
	f.Loans = []fleet.Loan{over, f.Loans[0]}
	mark := planner.Mark{Node: "n1", ID: "u1", Want: fleet.NodeMarks{HolderTaint: true, OfflineLabel: true}}
	expect(t, "recalled", judge(NewDoor(f).CheckMark(&mark)), "loan l1 is Noticed: nothing of its borrower may land")
	f.Loans[1].Phase, f.Nodes[0].Share.Parcels[0].Next = fleet.Lent, ""
	expect(t, "lent", judge(NewDoor(f).CheckMark(&mark)), "")
	f.Loans[1].Phase = fleet.Emptying
	f.Nodes[0].Share.Parcels[0].Holder, f.Nodes[0].Share.Parcels[0].Next = "web", "batch"
	expect(t, "not lent yet", judge(NewDoor(f).CheckMark(&mark)), "nothing of node n1 is lent")
}

// Targets that are gone, or of no tenant, hide none that follows them; a plan that gave a tenant more than its limit is not judged by what it knew.
func TestRaisesLookAtEveryTarget(t *testing.T) {
	core := fleet.Resources{CPU: 1000}
	for _, c := range []struct {
		name  string
		first hpa.Target
		pay   int32
		limit int64
		want  string
	}{
		{"a service that is gone", hpa.Target{Service: "shop/gone", Current: 1, Replicas: 1}, 5, 10, "more than the plan knew"},
		{"a service of no tenant", hpa.Target{Service: "ads/ad", Current: 1, Replicas: 1}, 5, 10, "more than the plan knew"},
		{"nothing grew beyond what the plan knew, which is beyond the limit", hpa.Target{Service: "ads/ad", Current: 1, Replicas: 1}, 4, 9, ""},
	} {
		f := doorFacts()
		f.Tenants = []fleet.Tenant{{ID: "shop", Accepted: true, Namespaces: []string{"shop"}}}
		pay, ad := f.Services[0], f.Services[0]
		pay.ID, pay.Target.Name, pay.Desired = "shop/pay", "pay", fleet.KnownAt(c.pay, doorTime)
		ad.ID, ad.Target = "ads/ad", fleet.Name{Namespace: "ads", Name: "ad"}
		f.Services = append(f.Services, pay, ad)
		for i := range f.Services {
			f.Services[i].Request = core
		}
		f.Sort()
		a := planner.Scale{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", By: fleet.ByScale, From: 3, To: 6}
		p := &planner.Plan{LeaderEpoch: 4, Raises: []planner.Scale{a}, Targets: []hpa.Target{c.first, {Service: "shop/cart", Current: 3, Replicas: 6}, {Service: "shop/pay", Current: 3, Replicas: 4}},
			Division: quota.Division{Shares: []quota.Share{{Tenant: "shop", Limit: core.Times(c.limit)}}}}
		expect(t, c.name, judge(New(p, f).Check(&a)), c.want)
	}
}

// A victim that is marked already hides none that follows it.
func TestEachVictimIsMarked(t *testing.T) {
	f := versioned()
	f.Pods[0].DeletionCost, f.Pods[0].LeavesAt = VictimCost, fleet.KnownAt(int32(1), doorTime)
	second := f.Pods[0]
	second.ID, second.Name.Name, second.DeletionCost = "p8", "cart-b", 0
	f.Pods = append(f.Pods, second)
	scale := planner.Scale{Service: "shop/cart", By: fleet.ByScale, From: 3, To: 1, Victims: []planner.PodRef{{Name: f.Pods[0].Name, ID: "p1"}, {Name: second.Name, ID: "p8"}}}
	flow := New(&planner.Plan{LeaderEpoch: 4}, f).scaleFlow(&scale)
	if len(flow) != 2 {
		t.Fatalf("%d writes, want the mark of the second and the size", len(flow))
	}
	if w, _ := flow[0].write(); w.Object.Name != "shop/cart-b" {
		t.Errorf("%+v", w)
	}
}

// Requests are changed in the template, or of each pod, and never both.
func TestWhereRequestsAreChanged(t *testing.T) {
	pods := []planner.PodRef{{Name: fleet.Name{Namespace: "shop", Name: "a"}, ID: "1"}, {Name: fleet.Name{Namespace: "shop", Name: "b"}, ID: "2"}}
	for by, want := range map[fleet.RequestsMode]string{fleet.RequestsRecreate: "SetRequests shop/cart", fleet.RequestsInPlace: "ResizePod shop/a, ResizePod shop/b"} {
		var got []string
		for _, r := range New(&planner.Plan{LeaderEpoch: 4}, versioned()).resizeFlow(&planner.Resize{Service: "shop/cart", By: by, Pods: pods}) {
			w, _ := r.write()
			got = append(got, line(Step{Write: w}))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %q, want %q", by, text, want)
		}
	}
}

// This plan's write of a machine's share does not stand for another machine of the name.
func TestTheShareOfAnotherMachineOfTheName(t *testing.T) {
	s := New(&planner.Plan{LeaderEpoch: 4}, versioned())
	s.shares["n1"] = wroteShare{node: "u1", share: fleet.Share{Exists: true}, version: "s8"}
	if _, version, ok := s.shareOf("n1", "u1"); !ok || version != "s8" {
		t.Error("its own write", version, ok)
	}
	if _, version, ok := s.shareOf("n1", "u9"); ok || version != "s8" {
		t.Error("that of the machine before", version, ok)
	}
}

// The end of a loan that never had its share lets nothing go that another loan has; where no side has the cells, or the
// loan goes on, its entry is written.
func TestTheEndOfALoanThatNeverHadItsShare(t *testing.T) {
	for name, c := range map[string]struct {
		phase  fleet.Phase
		cells  []int
		exists bool
		want   bool
	}{
		"it ends, and another loan has the cells": {fleet.Cancelled, []int{0}, true, false},
		"it ends, and nobody has them":            {fleet.Cancelled, []int{1}, true, true},
		"it goes on":                              {fleet.Emptying, []int{0}, true, true},
		"it ends, and there is no share":          {fleet.Cancelled, []int{0}, false, true},
	} {
		f := versioned()
		f.Nodes[0].Share.Exists = c.exists
		l := f.Loans[0]
		l.ID, l.UID, l.Phase, l.Cells = "l2", "lu2", c.phase, c.cells
		w, err := New(&planner.Plan{LeaderEpoch: 4}, f).shareRequest(&l, func() fleet.UID { return "lu2" }, nil, nil).write()
		if err != nil || (w != nil) != c.want {
			t.Errorf("%s: %+v, %v", name, w, err)
		}
	}
}

// A share that is not there yet is created, and one that is there is changed at its version.
func TestAShareIsCreatedOnce(t *testing.T) {
	s := New(&planner.Plan{LeaderEpoch: 4}, versioned())
	for machine, create := range map[string]bool{"n1": false, "n2": true} {
		l := begin().After
		l.NodeName, l.Node, l.Cells = machine, fleet.NodeID("u"+machine[1:]), []int{7}
		w, err := s.shareRequest(&l, func() fleet.UID { return "lu2" }, nil, nil).write()
		if err != nil || w.If.Absent != create || w.Change.(SetShare).Create != create {
			t.Errorf("%s: %+v, %v", machine, w, err)
		}
	}
}

// Actions that must keep their order are in one group: moves of a machine, evictions of a loan, sizes of a job. Others go side by side.
func TestWhatGoesInOrder(t *testing.T) {
	other := planner.PodRef{Name: fleet.Name{Namespace: "train", Name: "bert-1"}, ID: "p7"}
	for name, c := range map[string]struct {
		a, b planner.Action
		same bool
	}{
		"evictions of one loan":             {&planner.Eviction{Pod: bertPod, Loan: "l1"}, &planner.Eviction{Pod: other, Loan: "l1"}, true},
		"evictions of two loans":            {&planner.Eviction{Pod: bertPod, Loan: "l1"}, &planner.Eviction{Pod: other, Loan: "l2"}, false},
		"evictions of no loan":              {&planner.Eviction{Pod: bertPod}, &planner.Eviction{Pod: other}, false},
		"moves of one machine":              {&planner.Move{Before: fleet.Loan{ID: "l1", NodeName: "n1"}}, &planner.Move{Before: fleet.Loan{ID: "l2", NodeName: "n1"}}, true},
		"moves of two":                      {&planner.Move{Before: fleet.Loan{ID: "l1", NodeName: "n1"}}, &planner.Move{Before: fleet.Loan{ID: "l1", NodeName: "n2"}}, false},
		"roles of one job":                  {&planner.JobScale{Job: "train/bert", Role: "a"}, &planner.JobScale{Job: "train/bert", Role: "b"}, true},
		"an eviction of a loan, and a kill": {&planner.Eviction{Pod: bertPod, Loan: "l1"}, &planner.Kill{Pod: bertPod, Loan: "l1"}, false},
	} {
		if same := groupOf(c.a) == groupOf(c.b); same != c.same {
			t.Errorf("%s: in one group %t", name, same)
		}
	}
}

// A task is done when it was carried out, and over when it was refused, too; a loan that begins with a deadline wants the next cycle once it is written.
func TestWhatATaskCameTo(t *testing.T) {
	m := begin()
	m.After.Deadline = doorTime.Add(time.Hour)
	s := New(&planner.Plan{LeaderEpoch: 4, Moves: []planner.Move{m}}, versioned())
	for stage := range s.Stages {
		for _, task := range stage.Tasks {
			for n := 0; !task.Over(); n++ {
				if task.Done() || s.Soon() {
					t.Fatal("done before it is written")
				}
				if step := s.Next(task, doorTime); !step.Over() {
					s.Answer(task, Answer{How: Taken, UID: "made", Version: fmt.Sprint(n)})
				}
			}
			if !task.Done() || !s.Soon() {
				t.Errorf("done %t, soon %t", task.Done(), s.Soon())
			}
		}
	}
	s = New(&planner.Plan{LeaderEpoch: 4, Moves: []planner.Move{m}}, versioned())
	for stage := range s.Stages {
		for _, task := range stage.Tasks {
			s.Next(task, doorTime)
			if s.Answer(task, Answer{How: Refused, Err: errors.New("forbidden")}); !task.Over() || task.Done() || s.Soon() {
				t.Errorf("refused: over %t, done %t, soon %t", task.Over(), task.Done(), s.Soon())
			}
		}
	}
}

// A change of requests that rolls pods over is charged like what takes them.
func TestAResizeIsCharged(t *testing.T) {
	for _, c := range []struct {
		charges []planner.Charge
		minute  int
		blocked bool
		ledgers int
		want    Outcome
	}{
		{[]planner.Charge{{Pool: "web", Pods: 2}}, 2, false, 1, Done},
		{[]planner.Charge{{Pool: "web", Pods: 2}}, 2, true, 0, Stale},
		{[]planner.Charge{{Pool: "gone", Pods: 2}}, 2, false, 0, Failed},
		{nil, 0, false, 0, Done},
	} {
		f := versioned()
		svc := &f.Services[0]
		svc.RequestsMode, svc.Template, f.Pool("web").Budget.EvictionsPerMinute = fleet.RequestsRecreate, fleet.Resources{CPU: 1000}, c.minute
		if c.blocked {
			svc.Blocked = fleet.Problem{Reason: "Conflicted", Message: "x"}
		}
		lines, results := play(&planner.Plan{LeaderEpoch: 4, At: doorTime, Resizes: []planner.Resize{{Service: svc.ID, Target: svc.Target, Kind: svc.TargetKind, By: fleet.RequestsRecreate,
			From: svc.Template, To: fleet.Resources{CPU: 2000}, Charges: c.charges}}}, f, nil)
		n := len(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.HasPrefix(l, "SetLedger") }))
		if n != c.ledgers || len(results) != 1 || results[0].Outcome != c.want {
			t.Errorf("%+v: %q, %+v", c, lines, results)
		}
	}
}
