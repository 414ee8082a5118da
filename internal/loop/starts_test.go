package loop

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

func TestStartsOf(t *testing.T) {
	t0 := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	started := func(took, ago time.Duration, image fleet.Known[bool]) fleet.Pod {
		at := t0.Add(-ago)
		return fleet.Pod{Ready: true, Created: at.Add(-took - time.Hour), Started: fleet.KnownAt(at.Add(-took), at), ReadySince: fleet.KnownAt(at, at), ImagePresent: image}
	}
	yes, no := fleet.Known[bool]{Value: true, OK: true}, fleet.Known[bool]{OK: true}
	waiting := started(time.Minute, time.Minute, yes)
	waiting.Ready = false
	again := started(4*time.Minute, time.Minute, yes) // a start of 12 s, and a restart of its container four minutes later
	again.Restarts = 1
	svc := fleet.Service{Pods: []fleet.Pod{
		started(20*time.Second, time.Minute, yes),
		started(90*time.Second, 2*time.Minute, no),
		started(30*time.Second, time.Minute, fleet.Known[bool]{}), // the machine's images were not seen
		started(25*time.Second, 5*time.Minute, yes),               // reported the last time
		started(time.Hour, time.Minute, yes),                      // lost its readiness and regained it
		waiting,
		again,
		{Ready: true, ImagePresent: yes},
		{Ready: true, ReadySince: fleet.KnownAt(t0, t0), Created: t0.Add(-time.Minute), ImagePresent: yes}, // when it began is not known
	}}
	want := []portrait.Start{{Took: 20 * time.Second, Image: portrait.ImagePresent}, {Took: 90 * time.Second, Image: portrait.ImageAbsent}}
	if d := cmp.Diff(want, startsOf(&svc, firstReady{}, t0.Add(-5*time.Minute), t0)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// A pod that loses its readiness and regains it without a restart teaches its first start alone, though it was seen ready only once.
func TestAReadinessFlapTeachesNothing(t *testing.T) {
	t0 := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) fleet.Known[time.Time] { return fleet.KnownAt(t0.Add(-ago), t0.Add(-ago)) }
	pod := func(id fleet.UID, ready bool, since time.Duration) fleet.Pod {
		return fleet.Pod{ID: id, Ready: ready, Started: at(10 * time.Minute), ReadySince: at(since), ImagePresent: fleet.Known[bool]{Value: true, OK: true}}
	}
	snapshot := func(pods ...fleet.Pod) *fleet.Snapshot {
		return &fleet.Snapshot{Services: []fleet.Service{{Pods: pods}}, Pods: pods}
	}
	first := firstReady{}
	// "seen" is ready in the first cycle, "lost" lost it before this process watched, "slow" was never ready.
	first.see(snapshot(pod("seen", true, 9*time.Minute+40*time.Second), pod("lost", false, 6*time.Minute), pod("slow", false, 10*time.Minute)))
	first.see(snapshot(pod("seen", false, 3*time.Minute), pod("lost", false, 6*time.Minute), pod("slow", false, 10*time.Minute)))
	last := snapshot(pod("seen", true, time.Minute), pod("lost", true, time.Minute), pod("slow", true, time.Minute))
	first.see(last)
	want := []portrait.Start{{Took: 9 * time.Minute, Image: portrait.ImagePresent}}
	if d := cmp.Diff(want, startsOf(&last.Services[0], first, t0.Add(-5*time.Minute), t0)); d != "" {
		t.Errorf("the last five minutes, -want +got:\n%s", d)
	}
	want = append([]portrait.Start{{Took: 20 * time.Second, Image: portrait.ImagePresent}}, want...)
	got := startsOf(&last.Services[0], first, t0.Add(-10*time.Minute), t0)
	if len(got) == 0 || got[0] != want[0] {
		t.Errorf("the first start of a pod that flapped: %v", got)
	}
	if first.see(snapshot()); len(first) > 0 {
		t.Errorf("pods that are gone are remembered: %v", first)
	}
}
