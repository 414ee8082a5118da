package sim

import "testing"

func TestCurve(t *testing.T) {
	rows := []Result{
		{Policy: HPA, Lender: LendNone, OnlineCoreHours: 200, SLOViolationMinutes: 10, Classes: map[string]Class{Calm: {SLOViolationMinutes: 4}}, Default: true},
		{Policy: HPA, Lender: LendNone, OnlineCoreHours: 100, SLOViolationMinutes: 50, Classes: map[string]Class{Calm: {SLOViolationMinutes: 20}}},
		{Policy: HPA, Lender: LendTidal, OnlineCoreHours: 150, SLOViolationMinutes: 999, Default: true},
		{Policy: KEDA, Lender: LendNone, OnlineCoreHours: 150, SLOViolationMinutes: 999},
	}
	all, calm := Curve(rows, HPA, ""), Curve(rows, HPA, Calm)
	for _, c := range []struct {
		curve      []Point
		cost, want float64
		ok         bool
	}{{all, 100, 50, true}, {all, 150, 30, true}, {all, 200, 10, true}, {all, 300, 10, true}, {all, 99, 0, false}, {calm, 175, 8, true}, {nil, 1, 0, false}} {
		if got, ok := At(c.curve, c.cost); got != c.want || ok != c.ok {
			t.Errorf("at %v: %v (%v), want %v (%v)", c.cost, got, ok, c.want, c.ok)
		}
	}
	if r := Find(rows, HPA, LendTidal); r == nil || r.SLOViolationMinutes != 999 || Find(rows, KEDA, LendNone) != nil {
		t.Errorf("found %+v", r)
	}
}
