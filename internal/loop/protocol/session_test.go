package protocol

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// versioned are the door's facts, with versions.
func versioned() *fleet.Snapshot {
	s := doorFacts()
	s.Loans[0].Version = "l7"
	s.Nodes[0].Share.Version = "s7"
	s.Nodes[0].Share.Parcels[0].LoanUID = "lu1"
	for i := range s.Pools {
		s.Pools[i].Version = "p7"
		s.Pools[i].Budget = fleet.DisruptionBudget{EvictionsPerMinute: 2, ServiceShare: 1, FleetShare: 1}
	}
	return s
}

// line says a request in a few words.
func line(step Step) string {
	if step.Read != nil {
		return "read " + step.Read.Object.String()
	}
	w := step.Write
	text := fmt.Sprintf("%s %s", strings.TrimPrefix(fmt.Sprintf("%T", w.Change), "protocol."), w.Object.Name)
	if w.If.Version != "" {
		text += " at " + w.If.Version
	}
	if w.If.Absent {
		text += " if absent"
	}
	return text
}

// play carries a plan out. answers gives what the API says to the n-th request of the plan; every other one is taken.
func play(p *planner.Plan, s *fleet.Snapshot, answers map[int]Answer) (lines []string, results []Result) {
	session := New(p, s)
	n := 0
	carry := func(t *Task) {
		for step := session.Next(t, s.At); !step.Over(); step = session.Next(t, s.At) {
			lines = append(lines, line(step))
			a, ok := answers[n]
			if !ok {
				a = Answer{How: Taken, UID: "made", Version: fmt.Sprintf("v%d", n)}
			}
			n++
			session.Answer(t, a)
		}
	}
	for stage := range session.Stages {
		for _, t := range stage.Ledgers {
			carry(t)
		}
		for _, g := range stage.Groups {
			for _, t := range g {
				carry(t)
			}
		}
		for _, t := range stage.Tasks {
			results = append(results, t.Result())
		}
	}
	return lines, results
}

var conflict = Answer{How: Conflict, Err: errors.New("the object has been modified")}

func drain(s *fleet.Snapshot) planner.Move {
	m := planner.Move{Kind: planner.MoveDrain, Before: s.Loans[0], After: s.Loans[0], Node: "n1"}
	m.After.Phase = fleet.Draining
	return m
}

func begin() planner.Move {
	l := fleet.Loan{ID: "l2", Node: "u2", NodeName: "n2", Cells: []int{0}, Kind: fleet.KindNode, From: "web", To: "batch", Phase: fleet.Emptying, Epoch: 1}
	return planner.Move{Kind: planner.MoveBegin, Before: fleet.Loan{ID: "l2", NodeName: "n2", Node: "u2"}, After: l, Node: "n2"}
}

var bertPod = planner.PodRef{Name: fleet.Name{Namespace: "train", Name: "bert-0"}, ID: "p2"}

// The writes of each action: in which order, on which versions, and what becomes of it when the API answers otherwise.
func TestSession(t *testing.T) {
	past := func(s *fleet.Snapshot) *fleet.Snapshot { // the deadline ran out
		s.At = doorTime.Add(2 * time.Minute)
		return s
	}
	for _, c := range []struct {
		name    string
		plan    func(s *fleet.Snapshot) planner.Plan
		answers map[int]Answer
		lines   []string
		want    []Outcome
	}{
		{"a loan is made before its first effect", func(*fleet.Snapshot) planner.Plan { return planner.Plan{Moves: []planner.Move{begin()}} }, nil,
			[]string{"CreateLoan l2 if absent", "SetShare n2 if absent", "SetLoan l2 at v0"}, []Outcome{Done}},
		{"a loan whose share was taken goes again", func(*fleet.Snapshot) planner.Plan { return planner.Plan{Moves: []planner.Move{begin()}} }, map[int]Answer{1: conflict},
			[]string{"CreateLoan l2 if absent", "SetShare n2 if absent", "DeleteLoan l2 at v0"}, []Outcome{Stale}},
		{"a move writes the share first where it changes it", func(s *fleet.Snapshot) planner.Plan { return planner.Plan{Moves: []planner.Move{drain(s)}} }, nil,
			[]string{"SetLoan l1 at l7"}, []Outcome{Done}},
		{"an eviction follows the drain of its plan", func(s *fleet.Snapshot) planner.Plan {
			return planner.Plan{Moves: []planner.Move{drain(s)}, Evictions: []planner.Eviction{{Pod: bertPod, Loan: "l1"}}}
		}, nil, []string{"SetLoan l1 at l7", "SetLedger web at p7", "EvictPod train/bert-0"}, []Outcome{Done, Done}},
		{"and not one that was refused", func(s *fleet.Snapshot) planner.Plan {
			return planner.Plan{Moves: []planner.Move{drain(s)}, Evictions: []planner.Eviction{{Pod: bertPod, Loan: "l1"}}}
		}, map[int]Answer{0: conflict}, []string{"SetLoan l1 at l7"}, []Outcome{Stale, Stale}},
		{"a refused ledger holds its actions back", func(s *fleet.Snapshot) planner.Plan {
			return planner.Plan{Moves: []planner.Move{drain(s)}, Evictions: []planner.Eviction{{Pod: bertPod, Loan: "l1"}}}
		}, map[int]Answer{1: {How: Refused, Err: errors.New("forbidden")}}, []string{"SetLoan l1 at l7", "SetLedger web at p7"}, []Outcome{Done, Failed}},
		{"a ledger that met a conflict is read once, and charged where recalls alone are", func(s *fleet.Snapshot) planner.Plan {
			return planner.Plan{Moves: []planner.Move{drain(s)}, Evictions: []planner.Eviction{{Pod: bertPod, Loan: "l1"}}}
		}, map[int]Answer{1: conflict, 2: {How: Taken, Fact: Fact{Exists: true, Version: "p9"}}},
			[]string{"SetLoan l1 at l7", "SetLedger web at p7", "read CapacityPool web", "SetLedger web at p9", "EvictPod train/bert-0"}, []Outcome{Done, Done}},
		{"marks that open a node follow a look at its share", func(s *fleet.Snapshot) planner.Plan {
			lent := &s.Loans[0]
			lent.Phase = fleet.Lent
			s.Nodes[0].Share.Parcels[0].Next = ""
			return planner.Plan{Marks: []planner.Mark{{Node: "n1", ID: "u1", Want: fleet.NodeMarks{HolderTaint: true, OfflineLabel: true}}}}
		}, map[int]Answer{0: {How: Taken, Fact: Fact{Exists: true, Version: "s7"}}}, []string{"read NodeShare n1", "SetMarks n1"}, []Outcome{Done}},
		{"and stay as they were when it changed", func(s *fleet.Snapshot) planner.Plan {
			s.Loans[0].Phase = fleet.Lent
			s.Nodes[0].Share.Parcels[0].Next = ""
			return planner.Plan{Marks: []planner.Mark{{Node: "n1", ID: "u1", Want: fleet.NodeMarks{HolderTaint: true, OfflineLabel: true}}}}
		}, map[int]Answer{0: {How: Taken, Fact: Fact{Exists: true, Version: "s8"}}}, []string{"read NodeShare n1"}, []Outcome{Stale}},
		{"replicas hold after a conflict while they are as decided", func(*fleet.Snapshot) planner.Plan {
			return planner.Plan{Raises: []planner.Scale{{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", By: fleet.ByScale, From: 3, To: 5}}}
		}, map[int]Answer{0: conflict, 1: {How: Taken, Fact: Fact{Exists: true, Version: "d9", Size: fleet.KnownAt(int32(3), doorTime)}}},
			[]string{"SetSize shop/cart", "read Service shop/cart", "SetSize shop/cart at d9"}, []Outcome{Done}},
		{"and not when they changed", func(*fleet.Snapshot) planner.Plan {
			return planner.Plan{Raises: []planner.Scale{{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", By: fleet.ByScale, From: 3, To: 5}}}
		}, map[int]Answer{0: conflict, 1: {How: Taken, Fact: Fact{Exists: true, Version: "d9", Size: fleet.KnownAt(int32(4), doorTime)}}},
			[]string{"SetSize shop/cart", "read Service shop/cart"}, []Outcome{Stale}},
		{"nor when a newer leader stamped the target", func(*fleet.Snapshot) planner.Plan {
			return planner.Plan{Raises: []planner.Scale{{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", By: fleet.ByScale, From: 3, To: 5}}}
		}, map[int]Answer{0: conflict, 1: {How: Taken, Fact: Fact{Exists: true, Version: "d9", LeaderEpoch: 5, Size: fleet.KnownAt(int32(3), doorTime)}}},
			[]string{"SetSize shop/cart", "read Service shop/cart"}, []Outcome{Stale}},
	} {
		s := versioned()
		p := c.plan(s)
		p.LeaderEpoch, p.At = 4, doorTime
		if len(p.Evictions) > 0 || len(p.Moves) > 0 && p.Moves[0].Kind == planner.MoveDrain {
			past(s)
		}
		lines, results := play(&p, s, c.answers)
		if !slices.Equal(lines, c.lines) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, lines, c.lines)
		}
		for i, r := range results {
			if r.Outcome != c.want[i] {
				t.Errorf("%s: %+v, want %s", c.name, r, c.want[i])
			}
		}
	}
}

// A repair depends on the loan, so that the loan is asked first; forgetting ends with the loan.
func TestOrderOfTheWrites(t *testing.T) {
	s := versioned()
	s.Nodes[0].Share.Parcels[0].Epoch = 4 // one step ahead
	repair := planner.Move{Kind: planner.MoveRepair, Before: s.Loans[0], After: s.Loans[0], Node: "n1"}
	repair.After.Epoch = 5
	if lines, _ := play(&planner.Plan{LeaderEpoch: 4, Moves: []planner.Move{repair}}, s, nil); !slices.Equal(lines, []string{"SetLoan l1 at l7", "SetShare n1 at s7"}) {
		t.Errorf("a repair: %q", lines)
	}
	if lines, _ := play(&planner.Plan{LeaderEpoch: 4, Moves: []planner.Move{repair}}, s, map[int]Answer{0: conflict}); len(lines) != 1 {
		t.Errorf("a repair whose loan changed goes on: %q", lines)
	}
	s = versioned()
	s.Loans[0].Phase, s.Nodes[0].Share.Parcels[0].Holder = fleet.Returned, "web"
	forget := planner.Move{Kind: planner.MoveForget, Before: s.Loans[0], After: s.Loans[0], Node: "n1"}
	if lines, _ := play(&planner.Plan{LeaderEpoch: 4, Moves: []planner.Move{forget}}, s, nil); !slices.Equal(lines, []string{"SetShare n1 at s7", "DeleteLoan l1 at l7"}) {
		t.Errorf("forgetting: %q", lines)
	}
}

// The second parcel of a machine starts from the share that the first one wrote.
func TestASessionKnowsItsOwnWrites(t *testing.T) {
	a, b := begin(), begin()
	b.Before.ID, b.After.ID, b.After.Cells = "l3", "l3", []int{1}
	lines, _ := play(&planner.Plan{LeaderEpoch: 4, Moves: []planner.Move{a, b}}, versioned(), nil)
	if want := "SetShare n2 at v1"; len(lines) != 6 || lines[4] != want {
		t.Errorf("%q, want %q as the fifth", lines, want)
	}
}

// A held plan is refused as a whole, and no ledger is charged for it.
func TestAHeldPlanWritesNothing(t *testing.T) {
	s := versioned()
	s.At = doorTime.Add(2 * time.Minute)
	p := planner.Plan{LeaderEpoch: 3, Moves: []planner.Move{drain(s)}, Evictions: []planner.Eviction{{Pod: bertPod, Loan: "l1"}}}
	lines, results := play(&p, s, nil)
	if len(lines) > 0 || len(results) != 2 || results[0].Outcome != Stale || !strings.Contains(results[1].Message, "leader epoch") {
		t.Errorf("%q, %+v", lines, results)
	}
}
