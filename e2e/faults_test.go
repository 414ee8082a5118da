package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/lab/world"
)

// slow is the speed of runs in which leases and kills matter: a lease of 15 s by the wall is then two and a half virtual minutes.
const slow = 10

// small is a fleet on which an ebb lends within half an hour and a festival recalls at once. Its draw has no service whose level changed on the
// day before: such a one holds its machines, rightly, till its forecasts are good again.
func small(length time.Duration) world.Options {
	return world.Options{Nodes: 24, Services: 6, Seed: 1, Length: length, WarmUp: 10 * time.Minute}
}

// flood waits until something is lent, then asks for nearly everything at once.
func flood(w *world.World, s *watcher) (begun bool) {
	if s.in("Lent") < 2 {
		return false
	}
	s.apply("festivalplans", festival("flood", w.Now(), 3*time.Hour, s.services(), 1))
	return true
}

// TestControllerKilledMidRecall kills the controller without warning while parcels are on their way home, and starts it again: the recall
// that was announced is finished, under a higher leader epoch.
func TestControllerKilledMidRecall(t *testing.T) {
	var asked, killed, back bool
	var at time.Time
	var pending string
	w, s := play(t, small(6*time.Hour), func(w *world.World, s *watcher) bool {
		switch {
		case !asked:
			if asked = flood(w, s); asked {
				w.SetSpeed(slow)
			}
		case !killed:
			for name, l := range s.loans {
				if l.Status.Phase == "Noticed" {
					pending = name
				}
			}
			if pending == "" {
				return false
			}
			if err := w.KillController(0); err != nil {
				t.Fatal(err)
			}
			killed, at = true, w.Now()
		case !back:
			if w.Now().Sub(at) < 2*time.Minute {
				return false
			}
			if err := w.StartController(0); err != nil {
				t.Fatal(err)
			}
			back = true
		default:
			return s.loans[pending].Status.Phase == "Returned"
		}
		return false
	})
	if !back {
		t.Fatalf("nothing was recalled before %s; loans: %s", w.Now(), s.summary())
	}
	l := s.loans[pending]
	if phases(&l) != "Emptying Lent Noticed Draining Returned" {
		t.Errorf("loan %s went %s", pending, phases(&l))
	}
	if l.Status.LeaderEpoch < 2 {
		t.Errorf("the second controller wrote under leader epoch %d", l.Status.LeaderEpoch)
	}
}

// TestTwoControllers runs two controllers and kills the leader: the other takes the lease, fences the first one's epoch, and goes on.
func TestTwoControllers(t *testing.T) {
	o := small(6 * time.Hour)
	o.Controllers = 2
	var killed bool
	var before int64
	w, s := play(t, o, func(w *world.World, s *watcher) bool {
		switch {
		case !killed:
			if s.in("Lent") < 1 {
				return false
			}
			for _, l := range s.loans {
				before = max(before, l.Status.LeaderEpoch)
			}
			w.SetSpeed(slow)
			if err := w.KillController(leader(t, s)); err != nil {
				t.Fatal(err)
			}
			killed = true
			s.apply("festivalplans", festival("flood", w.Now().Add(5*time.Minute), 3*time.Hour, s.services(), 1))
		default:
			return len(s.returned("Node")) > 0
		}
		return false
	})
	if !killed {
		t.Fatalf("nothing was lent before %s", w.Now())
	}
	done := s.returned("Node")
	if len(done) == 0 {
		t.Fatalf("the second controller recalled nothing before %s; loans: %s", w.Now(), s.summary())
	}
	if got := done[0].Status.LeaderEpoch; got <= before {
		t.Errorf("the second leader's epoch is %d, the first one's was %d", got, before)
	}
}

// leader is the index of the controller that holds the lease; controllers are named a, b, ... in the order of their indices.
func leader(t *testing.T, s *watcher) int {
	t.Helper()
	lease, err := s.core.CoordinationV1().Leases("springtide-system").Get(t.Context(), "springtide-controller", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		t.Fatalf("who leads? %v", err)
	}
	return int(strings.TrimSpace(*lease.Spec.HolderIdentity)[0] - 'a')
}

// TestPrometheusDown takes Prometheus' API away for an hour of a falling load: nothing scales in, nothing is lent, and a condition says why;
// when it is back, the ebb goes on.
func TestPrometheusDown(t *testing.T) {
	o := small(4 * time.Hour)
	from := 90 * time.Minute
	o.Faults = []world.Fault{{What: world.Prometheus, At: from, For: time.Hour}}
	var start, began time.Time
	least := map[string]int32{}
	loans := -1
	said := map[string]string{}
	_, s := play(t, o, func(w *world.World, s *watcher) bool {
		if start.IsZero() {
			start = w.Now()
		}
		down := len(w.View().Down) > 0
		switch {
		// Samples of the last minutes are still fresh at the beginning of an outage.
		case down && began.IsZero():
			began = w.Now()
		case down && w.Now().Sub(began) > 5*time.Minute:
			if loans < 0 {
				loans = len(s.loans)
			}
			if len(s.loans) > loans {
				t.Errorf("%s: a loan was begun on missing signals", w.Now())
				loans = len(s.loans)
			}
			for _, v := range s.services() {
				name := v.Namespace + "/" + v.Name
				if was, ok := least[name]; ok && v.Status.Replicas < was {
					t.Errorf("%s: %s went from %d to %d replicas on missing signals", w.Now(), name, was, v.Status.Replicas)
				}
				least[name] = v.Status.Replicas
				for _, c := range v.Status.Conditions {
					if c.Type == catalog.ConditionDataFresh && c.Status == metav1.ConditionFalse {
						said[name] = c.Message
					}
				}
			}
		}
		return false
	})
	if began.IsZero() || loans < 0 {
		t.Fatal("Prometheus was never seen down")
	}
	if len(said) != len(least) || len(said) == 0 {
		t.Errorf("%d of %d services say that their data is not fresh: %v", len(said), len(least), said)
	}
	for _, v := range s.services() {
		for _, c := range v.Status.Conditions {
			if c.Type == catalog.ConditionDataFresh && c.Status == metav1.ConditionFalse {
				t.Errorf("%s/%s is still blind at the end: %s", v.Namespace, v.Name, c.Message)
			}
		}
	}
}
