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
		started(30*time.Second, time.Minute, fleet.Known[bool]{}), // nobody saw what the machine had
		started(25*time.Second, 5*time.Minute, yes),               // told the last time
		started(time.Hour, time.Minute, yes),                      // lost its readiness and regained it
		waiting,
		again,
		{Ready: true, ImagePresent: yes},
		{Ready: true, ReadySince: fleet.KnownAt(t0, t0), Created: t0.Add(-time.Minute), ImagePresent: yes}, // when it began is not known
	}}
	want := []portrait.Start{{Took: 20 * time.Second, Image: portrait.ImagePresent}, {Took: 90 * time.Second, Image: portrait.ImageAbsent}}
	if d := cmp.Diff(want, startsOf(&svc, t0.Add(-5*time.Minute), t0)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
