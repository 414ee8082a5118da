package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/lab/liar"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/world"
)

// fault is one fault of a play, and how long the world goes on after it before the next one.
type fault struct {
	name string
	do   func(w *world.World, s *watcher)
	then time.Duration
	// ready, when set, is waited for before.
	ready func(w *world.World, s *watcher) bool
}

// playActs plays faults one after another in one world. The judge says what comes of them.
func playActs(t *testing.T, o world.Options, acts []fault) (*world.World, *watcher) {
	t.Helper()
	next, due := 0, time.Time{}
	w, s := play(t, o, func(w *world.World, s *watcher) bool {
		switch {
		case w.Now().Before(due):
			return false
		case next == len(acts):
			return true
		case acts[next].ready != nil && !acts[next].ready(w, s):
			return false
		}
		a := acts[next]
		t.Logf("%s: %s", w.Now().Format("15:04:05"), a.name)
		a.do(w, s)
		next, due = next+1, w.Now().Add(a.then)
		return false
	})
	if next < len(acts) {
		t.Errorf("%q was not played before %s; loans: %s", acts[next].name, w.Now(), s.summary())
	}
	return w, s
}

// lent waits until so many parcels are lent.
func lent(n int) func(*world.World, *watcher) bool {
	return func(_ *world.World, s *watcher) bool { return s.in("Lent") >= n }
}

// TestJudgedLies lets the source of the metrics report each lie for ten minutes, and the truth for ten. Nothing is
// scaled in too far, nothing is lent while the source is away, and all goes on when it is back.
func TestJudgedLies(t *testing.T) {
	o := small(4 * time.Hour)
	o.Liar = true
	var acts []fault
	for _, lie := range liar.All() {
		span := 10 * time.Minute
		if lie == liar.Slow {
			span = time.Minute // the clock waits for each answer
		}
		acts = append(acts,
			fault{name: "the source says " + string(lie), do: func(w *world.World, _ *watcher) { w.Liar().Set(lie) }, then: span},
			fault{name: "the source says the truth", do: func(w *world.World, _ *watcher) { w.Liar().Set(liar.None) }, then: 10 * time.Minute})
	}
	acts[0].ready = func(w *world.World, _ *watcher) bool { return w.Counted() > 10*time.Minute }
	playActs(t, o, acts)
}

// TestJudgedKills ends each process of the cluster and of the product while parcels are lent and on their way home, and installs Springtide again over what an
// earlier installation left.
func TestJudgedKills(t *testing.T) {
	o := small(8 * time.Hour)
	restart := func(part string) func(w *world.World, s *watcher) {
		return func(w *world.World, s *watcher) {
			if err := w.Plane().StopComponent(part); err != nil {
				t.Fatal(err)
			}
			if err := w.Plane().StartComponent(t.Context(), part); err != nil {
				t.Fatal(err)
			}
		}
	}
	again := func(w *world.World, _ *watcher) {
		if err := w.KillController(0); err != nil {
			t.Fatal(err)
		}
		if err := w.StartController(0); err != nil {
			t.Fatal(err)
		}
	}
	const gap = 4 * time.Minute
	playActs(t, o, []fault{
		{name: "the scheduler is ended", ready: lent(2), do: restart(plane.Springtide), then: gap},
		{name: "the controller-manager is ended", do: restart(plane.ControllerManager), then: gap},
		{name: "kwok is ended", do: restart(plane.KWOK), then: gap},
		{name: "etcd is ended", do: restart(plane.Etcd), then: gap},
		{name: "the controller is killed while parcels are lent", do: func(w *world.World, s *watcher) { w.SetSpeed(slow * 3); again(w, s) }, then: gap},
		{name: "the controller is killed once more", do: again, then: gap},
		{name: "Springtide is installed again: its Lease is gone, its marks are not", do: func(w *world.World, s *watcher) {
			if err := w.KillController(0); err != nil {
				t.Fatal(err)
			}
			leases := s.core.CoordinationV1().Leases("springtide-system")
			if err := leases.Delete(t.Context(), "springtide-controller", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := w.StartController(0); err != nil {
				t.Fatal(err)
			}
		}, then: 10 * time.Minute},
		{name: "all services want all they may, after the new installation", do: func(w *world.World, s *watcher) {
			s.apply("festivalplans", festival("flood", w.Now(), time.Hour, s.services(), 1))
		}, then: 30 * time.Second},
		{name: "the controller is killed while parcels come home", do: again, then: gap},
		{name: "the flood goes on", do: func(w *world.World, _ *watcher) { w.SetSpeed(slow * 30) }, then: 15 * time.Minute},
	})
}
