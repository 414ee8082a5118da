package place

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// TestClaims: room that is set aside is for its claimant alone, is spent by the claimant's pods, and ends with them or with its time.
func TestClaims(t *testing.T) {
	now := time.Date(2026, 6, 7, 8, 0, 0, 0, time.UTC)
	tab := New()
	tab.SetMachine(plain("a"))
	tab.SetMachine(plain("b"))
	tab.Bound(Shape{Side: fleet.Online, Requests: cores(60)}, "id-a", "u", nil)
	id := tab.Reserve(Claim{Node: "id-b", Side: fleet.Online, Claimant: "shop/web", Room: fleet.Resources{CPU: 32000, Memory: 128 * fleet.GiB}, Cells: []int{2, 3},
		Until: now.Add(time.Minute)})
	other := tab.Class(Shape{Side: fleet.Online, Requests: cores(20)})
	web := tab.Class(Shape{Side: fleet.Online, Requests: cores(16), Claimant: "shop/web", Cells: OneCell})
	narrow := tab.Class(Shape{Side: fleet.Online, Requests: cores(16), Cells: OneCell})
	if n := fill(tab, narrow); len(n) != 2 {
		t.Errorf("others hold %d of the four cells, of which two are claimed", len(n))
	} else {
		for _, ref := range n {
			tab.Forget(ref)
		}
	}
	d, ok := tab.Decide(other)
	if !ok || tab.CanPlace(other) {
		t.Fatalf("of the 32 cores that are not claimed, 20 are taken: %v", ok)
	}
	first, _ := tab.Decide(web)
	if first.Name != "b" || first.Cells[0] != 2 && first.Cells[0] != 3 {
		t.Fatalf("the claimant went to %+v", first)
	}
	if c := tab.Claims(); len(c) != 1 || c[0].Room.CPU != 16000 {
		t.Errorf("one pod of 16 cores took of a claim of 32, and it is %+v", c)
	}
	before := tab.Claims()[0].Room
	if tab.Would(func() bool { _, ok := tab.Decide(web); return ok }); tab.Claims()[0].Room != before {
		t.Errorf("a decision was undone, and the claim is %+v", tab.Claims())
	}
	if tab.CanPlace(other) {
		t.Error("what the claimant left of its claim is not for others")
	}
	if gone := tab.Expire(now); len(gone) != 0 {
		t.Errorf("ended before its time: %v", gone)
	}
	if gone := tab.Expire(now.Add(time.Minute)); len(gone) != 1 || gone[0] != id {
		t.Errorf("ended: %v", gone)
	}
	if !tab.CanPlace(other) {
		t.Error("a claim that is over keeps its room")
	}
	tab.Forget(d.Pod)
	tab.Release(id)
	if err := complainOfSums(tab); err != nil {
		t.Error(err)
	}
}

// TestClaimsAreSpentOnce: a pod that two claims of one machine serve takes its room of the first, and of the second what is missing.
func TestClaimsAreSpentOnce(t *testing.T) {
	tab := New()
	tab.SetMachine(plain("a"))
	for range 2 {
		tab.Reserve(Claim{Node: "id-a", Side: fleet.Online, Claimant: "shop/web", Room: cores(10), Until: time.Unix(1, 0)})
	}
	tab.Decide(tab.Class(Shape{Side: fleet.Online, Requests: cores(14), Claimant: "shop/web"}))
	var left []fleet.MilliCPU
	for _, c := range tab.Claims() {
		left = append(left, c.Room.CPU)
	}
	if !slices.Equal(left, []fleet.MilliCPU{0, 6000}) {
		t.Errorf("of two claims of 10 cores a pod of 14 left %v", left)
	}
	if gone := tab.Expire(time.Unix(0, 0)); len(gone) != 1 || gone[0] != 0 {
		t.Errorf("the claim of which nothing is left stays: %v", gone)
	}
}

// fill decides pods of a class until none fits.
func fill(t *Table, c ClassID) (out []PodRef) {
	for d, ok := t.Decide(c); ok; d, ok = t.Decide(c) {
		out = append(out, d.Pod)
	}
	return out
}

// TestClaimsAreExplained: a machine that only its claim keeps from others is one that the claimant's pods fit, whether the class was asked for before or not.
func TestClaimsAreExplained(t *testing.T) {
	tab := New()
	tab.SetMachine(plain("a"))
	tab.SetMachine(plain("b"))
	tab.Bound(Shape{Side: fleet.Online, Requests: cores(60)}, "id-a", "u", nil)
	tab.Reserve(Claim{Node: "id-b", Side: fleet.Online, Claimant: "shop/web", Room: cores(64)})
	web := tab.Class(Shape{Side: fleet.Online, Requests: cores(8), Claimant: "shop/web"})
	other := tab.Class(Shape{Side: fleet.Online, Requests: cores(8)})
	for range 2 {
		if e := tab.Explain(web); e.Name != "b" || e.Fit != 1 || e.Removed[FilterCPU] != 1 {
			t.Errorf("the claimant: %+v", e)
		}
		if e := tab.Explain(other); e.Fit != 0 || e.Removed[FilterCPU] != 2 {
			t.Errorf("others: %+v", e)
		}
		tab.Would(func() bool { tab.Decide(web); tab.Decide(other); return true }) // from here on they have indexes
	}
}
