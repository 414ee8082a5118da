package place

import (
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/rules"
)

// zoned is a table of two machines of 64 cores, in a zone each.
func zoned() *Table {
	t := New()
	for _, name := range []string{"a", "b"} {
		m := plain(name)
		m.Labels = rules.Labels{{Key: "zone", Value: "of-" + name}}
		t.SetMachine(m)
	}
	return t
}

// web is a pod of the set web, of a number of cores; by its constraint no zone has more than one of them above another.
func web(n int64, priority int32, constrained bool) Shape {
	s := Shape{Side: fleet.Online, Requests: cores(n), Priority: priority, Needs: &Needs{Sets: []string{"web"}}}
	if constrained {
		s.Needs.Spread = []Spread{{Set: "web", Self: true, Key: "zone", MaxSkew: 1, MinDomains: 1}}
	}
	return s
}

// TestPreemptForSpread: where a constraint alone refuses a machine, a pod of the set goes, and no other; a machine that the constraint refuses whatever goes is none to
// preempt on, nor one to wait for.
func TestPreemptForSpread(t *testing.T) {
	x := zoned()
	x.Bound(Shape{Side: fleet.Online, Requests: cores(64), Priority: 20}, "id-b", "full", nil)
	x.Bound(Shape{Side: fleet.Online, Requests: cores(1), Priority: 1}, "id-a", "other", nil)
	low := x.Bound(web(2, 1, false), "id-a", "low", nil)
	c := x.Class(web(1, 10, true))
	if x.CanPlaceOn(c, "id-a") || x.Placeable(c) {
		t.Fatal("zone of-a has one more already")
	}
	p, ok := x.Preempt(c, &PreemptionFacts{})
	if !ok || p.Node != "id-a" || len(p.Victims) != 1 || p.Victims[0] != low {
		t.Fatalf("victims %v on %q, want the pod of the set on a", p.Victims, p.Node)
	}
	if e := x.Explain(c); e.Fit != 0 || e.Removed[FilterSpread] != 1 || e.Removed[FilterCPU] != 1 {
		t.Errorf("explained %+v", e)
	}

	x = zoned()
	x.Bound(Shape{Side: fleet.Online, Requests: cores(64), Priority: 20}, "id-b", "full", nil)
	x.Bound(Shape{Side: fleet.Online, Requests: cores(63), Priority: 1}, "id-a", "low", nil)
	x.Bound(web(1, 20, false), "id-a", "high", nil)
	leaves := x.Bound(Shape{Side: fleet.Online, Requests: cores(1), Priority: 1}, "id-a", "leaves", nil)
	x.Leaving(leaves)
	c = x.Class(web(1, 10, true))
	if p, ok := x.Preempt(c, &PreemptionFacts{}); ok {
		t.Errorf("%v go for nothing: the skew stays", p.Victims)
	}
	if p, ok := x.Await(c, &PreemptionFacts{}); ok {
		t.Errorf("it waits for room on %s that the constraint refuses", p.Node)
	}
}

// TestSpreadRefusesAClaim: what is set aside for a pod does not stand above its own constraint.
func TestSpreadRefusesAClaim(t *testing.T) {
	x := zoned()
	x.Bound(web(1, 0, false), "id-a", "first", nil)
	x.Reserve(Claim{Node: "id-a", Side: fleet.Online, Claimant: "svc", Room: cores(4)})
	s := web(1, 0, true)
	s.Claimant = "svc"
	if d, ok := x.Decide(x.Class(s)); !ok || d.Node != "id-b" {
		t.Errorf("it is on %q, want b", d.Node)
	}
}

// TestSpreadUndone: a trial leaves the counts as they were.
func TestSpreadUndone(t *testing.T) {
	x := zoned()
	c := x.Class(web(1, 0, true))
	for range 3 {
		x.Would(func() bool {
			d, ok := x.Decide(c)
			if !ok || d.Node != "id-a" {
				t.Errorf("the first is on %q, want a", d.Node)
			}
			d, ok = x.Decide(c)
			if !ok || d.Node != "id-b" {
				t.Errorf("the second is on %q, want b", d.Node)
			}
			return true
		})
	}
}
