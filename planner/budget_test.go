package planner

import (
	"fmt"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Each pool has an hourly budget of its own, of two loans here: what is remembered of it and what the snapshot shows are counted once each.
func TestMoveBudgetOfAnHour(t *testing.T) {
	for _, c := range []struct {
		name  string
		begun []Begun
		loans map[int]time.Duration // of the online pool's machines, and how long ago they were begun
		plan  []Move
		left  int
	}{
		{"nothing was begun", nil, nil, nil, 2},
		{"other pools", []Begun{{"a", "offline", t0}, {"b", "offline", t0}}, nil, nil, 2},
		{"this pool", []Begun{{"a", "online", t0}}, nil, nil, 1},
		{"an hour ago", []Begun{{"a", "online", t0.Add(-time.Hour)}}, map[int]time.Duration{0: time.Hour}, nil, 2},
		{"a new process remembers nothing", nil, map[int]time.Duration{0: 10 * time.Minute, 1: 59 * time.Minute}, nil, 0},
		{"what is remembered and stands counts once", []Begun{{"loan-m00", "online", t0.Add(-time.Minute)}}, map[int]time.Duration{0: time.Minute}, nil, 1},
		{"this plan begins one", nil, nil, []Move{{Kind: MoveBegin, Before: fleet.Loan{ID: "a", From: "online"}}}, 1},
		{"this plan begins one of another pool", nil, nil, []Move{{Kind: MoveBegin, Before: fleet.Loan{ID: "a", From: "offline"}}}, 2},
		{"this plan recalls one", nil, nil, []Move{{Kind: MoveRecall, Before: fleet.Loan{ID: "a", From: "online"}}}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(4)
			for i, ago := range c.loans {
				w.loan(i, fleet.Lent, 1).Created = t0.Add(-ago)
			}
			w.s.Pools[1].MovesPerHour = 2
			in := w.input()
			in.Begun = c.begun
			m := newMaker(&in)
			m.plan.Moves = c.plan
			if left, by := (&lender{m}).movesLeft(&w.s.Pools[1], false); left != c.left {
				t.Errorf("%d are left (%s), want %d", left, by, c.left)
			}
		})
	}
}

// Online lent so much within the hour that its own budget is spent; the flood borrows all the same.
func TestEbbLeavesTheFloodItsBudget(t *testing.T) {
	w := newWorld(3).service("web", 22, 0, 3, 130)
	w.offline(2)
	in := w.input()
	for i := range w.s.Pools[0].MovesPerHour {
		in.Begun = append(in.Begun, Begun{fleet.LoanID(fmt.Sprint(i)), "online", t0.Add(-time.Minute)})
	}
	if p := made(in); moves(p, MoveBegin) == 0 {
		t.Errorf("nothing is borrowed: %+v", p.Withheld)
	}
}

// A plan begins no more loans than either bound leaves; one that begins none says which bound holds them.
func TestPlansKeepTheMoveBudget(t *testing.T) {
	for _, c := range []struct {
		atOnce, hourly, begun, begins int
		by                            string
	}{
		{10, 60, 0, 6, ""},
		{10, 2, 0, 2, ""},
		{10, 3, 2, 1, ""},
		{10, 2, 2, 0, "move budget: 2 loans an hour"},
		{3, 60, 2, 3, ""},
		{0, 60, 0, 0, "move budget: 0 parcels in motion at once"},
	} {
		w := newWorld(8).service("web", 2, 0, 2, 9)
		p := &w.s.Pools[1]
		p.Unit, p.MovesAtOnce, p.MovesPerHour = fleet.UnitNode, c.atOnce, c.hourly
		in := w.input()
		for i := range c.begun {
			in.Begun = append(in.Begun, Begun{fleet.LoanID(fmt.Sprint(i)), "online", t0.Add(-time.Minute)})
		}
		plan, by := made(in), ""
		for _, x := range plan.Withheld {
			if x.Subject.String() == "pool online" {
				by = x.By.Text()
			}
		}
		if got := moves(plan, MoveBegin); got != c.begins || by != c.by {
			t.Errorf("%d at once, %d an hour, %d begun: %d begin, held by %q; want %d and %q", c.atOnce, c.hourly, c.begun, got, by, c.begins, c.by)
		}
	}
}
