package protocol

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// orphanFacts is [doorFacts] after its loan was deleted by hand.
func orphanFacts() *fleet.Snapshot {
	s := versioned()
	s.Loans = nil
	return s
}

func adoption() planner.Move {
	after := fleet.Loan{ID: "l2", Node: "u1", NodeName: "n1", Cells: []int{0}, Kind: fleet.KindNode, From: "web", To: "batch"}.
		Adopt(doorTime, doorTime.Add(time.Minute), doorTime.Add(3*time.Minute), reason.Said("loan l1 is gone"))
	before := after
	before.Phase, before.Epoch = "", 0
	return planner.Move{Kind: planner.MoveAdopt, Before: before, After: after, Node: "n1"}
}

func clearing() planner.Move {
	was := fleet.Loan{ID: "l1", UID: "lu1", Node: "u1", NodeName: "n1", Cells: []int{0}, From: "web", To: "batch", Epoch: 3}
	return planner.Move{Kind: planner.MoveClear, Before: was, After: was, Node: "n1"}
}

func TestDoorAdopt(t *testing.T) {
	stray := func(s *fleet.Snapshot) { s.Nodes[0].Share.Parcels = nil }
	for _, c := range []struct {
		name  string
		facts []func(*fleet.Snapshot)
		want  string
	}{
		{"its loan was deleted", nil, ""},
		{"pods alone", []func(*fleet.Snapshot){stray}, ""},
		{"nothing is there", []func(*fleet.Snapshot){stray, func(s *fleet.Snapshot) { s.Pods[1].Node = "u2" }}, "nothing of its borrower"},
		{"nobody is on it and the share says that offline has it", []func(*fleet.Snapshot){func(s *fleet.Snapshot) { s.Pods[1].Node = "u2" }}, ""},
		{"its loan is there", []func(*fleet.Snapshot){func(s *fleet.Snapshot) { s.Loans = versioned().Loans }}, "in loan l1"},
		{"a loan of the name has another UID", []func(*fleet.Snapshot){func(s *fleet.Snapshot) {
			s.Loans = versioned().Loans
			s.Loans[0].UID, s.Loans[0].Phase = "lu9", fleet.Cancelled
		}}, ""},
		{"its loan ended by hand", []func(*fleet.Snapshot){func(s *fleet.Snapshot) { s.Loans = versioned().Loans; s.Loans[0].Phase = fleet.Returned }}, ""},
		{"name taken", []func(*fleet.Snapshot){func(s *fleet.Snapshot) { s.Loans = versioned().Loans; s.Loans[0].ID = "l2" }}, "a loan of this name exists"},
		{"node gone", []func(*fleet.Snapshot){func(s *fleet.Snapshot) { s.Nodes[0].ID = "u9"; s.Sort() }}, "node n1 is gone"},
		{"the pool observes", []func(*fleet.Snapshot){func(s *fleet.Snapshot) { s.Pools[1].Mode = fleet.Observe }}, "mode of pool web is Observe"},
		{"the pool is gone", []func(*fleet.Snapshot){func(s *fleet.Snapshot) { s.Pools = s.Pools[:1] }}, ""},
		{"just in time", []func(*fleet.Snapshot){func(s *fleet.Snapshot) { s.At = doorTime.Add(time.Minute - leastNotice) }}, ""},
		{"an entry of other cells comes first", []func(*fleet.Snapshot){func(s *fleet.Snapshot) {
			other := fleet.ShareParcel{Cells: []int{5}, Holder: "batch", Loan: "l5", LoanUID: "lu5"}
			s.Nodes[0].Share.Parcels, s.Pods[1].Node = append([]fleet.ShareParcel{other}, s.Nodes[0].Share.Parcels...), "u2"
		}}, ""},
		{"too late to tell", []func(*fleet.Snapshot){func(s *fleet.Snapshot) { s.At = doorTime.Add(50 * time.Second) }}, "less than 15s"},
	} {
		s, m := orphanFacts(), adoption()
		for _, f := range c.facts {
			f(s)
		}
		expect(t, c.name, judge(NewDoor(s).CheckMove(&m)), c.want)
	}
	for _, c := range []struct {
		name  string
		facts func(*fleet.Snapshot)
		want  string
	}{
		{"at home", func(s *fleet.Snapshot) { s.Nodes[0].Share.Parcels[0].Holder = "web" }, ""},
		{"cells that are not there", func(s *fleet.Snapshot) { s.Nodes[0].Share.Parcels[0].Cells = []int{8} }, ""},
		{"the borrower holds it", func(*fleet.Snapshot) {}, "pool batch holds cells"},
		{"its loan is there", func(s *fleet.Snapshot) { s.Nodes[0].Share.Parcels[0].Holder, s.Loans = "web", versioned().Loans }, "loan l1 is there"},
		{"no entry", func(s *fleet.Snapshot) { s.Nodes[0].Share.Parcels = nil }, "no entry"},
		{"an entry of another", func(s *fleet.Snapshot) { s.Nodes[0].Share.Parcels[0].LoanUID = "lu9" }, "no entry"},
		{"node gone", func(s *fleet.Snapshot) { s.Nodes[0].ID = "u9"; s.Sort() }, "node n1 is gone"},
	} {
		s, m := orphanFacts(), clearing()
		c.facts(s)
		expect(t, "clear: "+c.name, judge(NewDoor(s).CheckMove(&m)), c.want)
	}
}

// An adopted loan takes the place of the entry, after a look at the share and at the loan that is said to be gone:
// loans and shares are watched apart.
func TestAdoptionAsksForTheLoan(t *testing.T) {
	share, gone := Answer{How: Taken, Fact: Fact{Exists: true, Version: "s7"}}, Answer{How: Taken}
	there := Answer{How: Taken, Fact: Fact{Exists: true, UID: "lu1"}}
	for _, c := range []struct {
		name    string
		move    planner.Move
		answers map[int]Answer
		lines   []string
		want    Outcome
	}{
		{"adopt", adoption(), map[int]Answer{0: share, 1: gone}, []string{"read NodeShare n1", "read Loan l1", "CreateLoan l2 if absent", "SetShare n1 at s7", "SetLoan l2 at v2"}, Done},
		{"another loan has the name", adoption(), map[int]Answer{0: share, 1: {How: Taken, Fact: Fact{Exists: true, UID: "lu9"}}},
			[]string{"read NodeShare n1", "read Loan l1", "CreateLoan l2 if absent", "SetShare n1 at s7", "SetLoan l2 at v2"}, Done},
		{"the loan is there, and was not seen", adoption(), map[int]Answer{0: share, 1: there}, []string{"read NodeShare n1", "read Loan l1"}, Stale},
		{"the share changed", adoption(), map[int]Answer{0: {How: Taken, Fact: Fact{Exists: true, Version: "s8"}}}, []string{"read NodeShare n1"}, Stale},
		{"the share changed in the last moment", adoption(), map[int]Answer{0: share, 1: gone, 3: conflict},
			[]string{"read NodeShare n1", "read Loan l1", "CreateLoan l2 if absent", "SetShare n1 at s7", "DeleteLoan l2 at v2"}, Stale},
		{"clear", clearing(), map[int]Answer{0: share, 1: gone}, []string{"read NodeShare n1", "read Loan l1", "SetShare n1 at s7"}, Done},
		{"clear, and the loan is there", clearing(), map[int]Answer{0: share, 1: there}, []string{"read NodeShare n1", "read Loan l1"}, Stale},
	} {
		s := orphanFacts()
		if c.move.Kind == planner.MoveClear {
			s.Nodes[0].Share.Parcels[0].Holder = "web"
		}
		lines, results := play(&planner.Plan{LeaderEpoch: 4, At: doorTime, Moves: []planner.Move{c.move}}, s, c.answers)
		if !slices.Equal(lines, c.lines) || results[0].Outcome != c.want {
			t.Errorf("%s: %q, %+v\nwant %q, %s", c.name, lines, results, c.lines, c.want)
		}
	}
}

// The entry of a loan that is made again stands in the place of the old one, with a report of its own; other parcels stay.
func TestAdoptionReplacesTheEntry(t *testing.T) {
	s := orphanFacts()
	s.Nodes[0].Share.Parcels = append(s.Nodes[0].Share.Parcels, fleet.ShareParcel{Cells: []int{1}, Holder: "batch", Loan: "l5", LoanUID: "lu5", Epoch: 1})
	s.Nodes[0].Share.Parcels[0].Clean, s.Nodes[0].Share.Parcels[0].CleanEpoch = true, 3
	s.Loans = []fleet.Loan{{ID: "l5", UID: "lu5", Node: "u1", NodeName: "n1", Cells: []int{1}, From: "web", To: "batch", Phase: fleet.Lent, Epoch: 1}}
	m := adoption()
	session := New(&planner.Plan{LeaderEpoch: 4, At: doorTime, Moves: []planner.Move{m}}, s)
	for stage := range session.Stages {
		for _, task := range stage.Tasks {
			for step := session.Next(task, s.At); !step.Over(); step = session.Next(task, s.At) {
				if step.Write != nil {
					if c, ok := step.Write.Change.(SetShare); ok {
						if len(c.Parcels) != 2 || c.Parcels[0].LoanUID != "made" || c.Parcels[0].Clean || c.Parcels[0].Holder != "batch" || c.Parcels[0].Next != "web" || c.Parcels[1].LoanUID != "lu5" {
							t.Errorf("the share: %+v", c.Parcels)
						}
					}
					session.Answer(task, Answer{How: Taken, UID: "made", Version: "v1"})
					continue
				}
				session.Answer(task, Answer{How: Taken, Fact: Fact{Exists: step.Read.Object.Kind == ObjectShare, Version: "s7"}})
			}
			if !task.Done() {
				t.Errorf("%+v", task.Result())
			}
		}
	}
}

// A loan that ended by hand is forgotten; the entry that gives its cells to the borrower is not, since they are not home.
func TestForgettingKeepsWhatTheBorrowerHolds(t *testing.T) {
	s := versioned()
	s.Loans[0].Phase = fleet.Returned
	forget := planner.Move{Kind: planner.MoveForget, Before: s.Loans[0], After: s.Loans[0], Node: "n1"}
	if lines, _ := play(&planner.Plan{LeaderEpoch: 4, Moves: []planner.Move{forget}}, s, nil); !slices.Equal(lines, []string{"DeleteLoan l1 at l7"}) {
		t.Errorf("%q", lines)
	}
}
