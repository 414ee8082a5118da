package sim

import (
	"math"
	"testing"
)

func TestCurve(t *testing.T) {
	rows := []Result{
		{Policy: HPA, Lender: LendNone, OnlineCoreHours: 200, SLOViolationMinutes: 10, Classes: map[string]Class{Calm: {SLOViolationMinutes: 4}}, Default: true},
		{Policy: HPA, Lender: LendNone, OnlineCoreHours: 100, SLOViolationMinutes: 50, Classes: map[string]Class{Calm: {SLOViolationMinutes: 20}}},
		{Policy: HPA, Lender: LendTidal, OnlineCoreHours: 150, SLOViolationMinutes: 999, Default: true},
		{Policy: KEDA, Lender: LendNone, OnlineCoreHours: 150, SLOViolationMinutes: 999},
	}
	all, calm := Curve(rows, HPA, ""), Curve(rows, HPA, Calm)
	spent := append(all[:1:1], Point{OnlineCoreHours: 200}) // there is nothing left to save
	for _, c := range []struct {
		curve      []Point
		cost, want float64
		ok         bool
	}{{all, 100, 50, true}, {all, 150, 30, true}, {all, 200, 10, true}, {all, 201, 0, false}, {all, 99, 0, false}, {spent, 300, 0, true}, {spent, 201, 0, true}, {spent, 99, 0, false}, {calm, 175, 8, true}, {nil, 1, 0, false}} {
		if got, ok := At(c.curve, c.cost); got != c.want || ok != c.ok {
			t.Errorf("at %v: %v (%v), want %v (%v)", c.cost, got, ok, c.want, c.ok)
		}
	}
	if r := Find(rows, HPA, LendTidal); r == nil || r.SLOViolationMinutes != 999 || Find(rows, KEDA, LendNone) != nil {
		t.Errorf("found %+v", r)
	}
}

// Two services, by hand: a saves 90 minutes for 10 core-hours, b 10 for 10; the dear target of a saves 5 for 40 more.
func TestTuned(t *testing.T) {
	row := func(lender string, aCost float64, aMinutes int, bCost float64, bMinutes int) Result {
		return Result{Policy: HPA, Lender: lender, Services: []ServiceResult{{Service: "a", OnlineCoreHours: aCost, SLOViolationMinutes: aMinutes},
			{Service: "b", OnlineCoreHours: bCost, SLOViolationMinutes: bMinutes}}}
	}
	rows := []Result{row(LendNone, 20, 10, 20, 0), row(LendNone, 10, 100, 10, 10), row(LendNone, 60, 5, 30, 20), row(LendTidal, 1, 0, 1, 0)}
	for _, c := range []struct {
		cost, want float64
		ok         bool
	}{{20, 110, true}, {25, 65, true}, {30, 20, true}, {40, 10, true}, {60, 7.5, true}, {80, 5, true}, {500, 5, true}, {19, 110, false}} {
		if got, ok := Tuned(rows, HPA, c.cost); math.Abs(got-c.want) > 1e-9 || ok != c.ok {
			t.Errorf("at %v: %v (%v), want %v (%v)", c.cost, got, ok, c.want, c.ok)
		}
	}
	if _, ok := Tuned(rows, KEDA, 100); ok {
		t.Error("a policy without rows is tuned")
	}
}
