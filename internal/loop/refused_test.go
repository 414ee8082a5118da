package loop

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// TestRefusedReturnsAreRemembered: a pod whose return failed is left alone for a while; one that was stale is not.
func TestRefusedReturnsAreRemembered(t *testing.T) {
	l := New(Ports{}, Options{})
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	back := func(name string) planner.Standby {
		return planner.Standby{Back: true, Pod: planner.PodRef{Name: fleet.Name{Namespace: "shop", Name: name},
			ID: fleet.UID(name)}}
	}
	plan := planner.Plan{Returns: []planner.Standby{back("a"), back("b"), back("c")}}
	result := func(i int, how Outcome) Result {
		k := planner.KeyOf(&plan.Returns[i])
		return Result{Action: k.Kind, Subject: k.Subject, Outcome: how}
	}
	l.keepRefused(at, &plan, &Receipt{Results: []Result{result(0, Failed), result(1, Stale), result(2, Done)}})
	if d := cmp.Diff(map[fleet.UID]bool{"a": true}, l.refusedNow()); d != "" {
		t.Error(d)
	}
	none := planner.Plan{}
	if l.keepRefused(at.Add(refusedFor-time.Second), &none, &Receipt{}); len(l.refusedNow()) != 1 {
		t.Error("it is tried again too early")
	}
	if l.keepRefused(at.Add(refusedFor), &none, &Receipt{}); l.refusedNow() != nil {
		t.Error("it is never tried again")
	}
}

// TestUnreadServicesWait: a service that cannot be read is in no reading before its patience is over.
func TestUnreadServicesWait(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	l := New(Ports{}, Options{Learn: 5 * time.Minute, Backfill: 24 * time.Hour})
	l.progressOf("shop/cart").fail(at, l.o.Learn)
	l.progressOf("shop/cart").fail(at, l.o.Learn)
	for after, want := range map[time.Duration]int{5 * time.Minute: 1, 10 * time.Minute: 2} {
		n := 0
		for _, r := range l.readings(&fleet.Snapshot{At: at.Add(after), Services: []fleet.Service{{ID: "shop/cart"},
			{ID: "shop/pay"}}}) {
			n += len(r.services)
		}
		if n != want {
			t.Errorf("after %s %d services are read, want %d", after, n, want)
		}
	}
}
