package hpa

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

func pods(n int32, period time.Duration) []fleet.ScalingPolicy {
	return []fleet.ScalingPolicy{{Pods: n, Period: period}}
}

// The operator's own policies bound the forecast too, and never the operator's own levels.
func TestOwnPoliciesOfScaleOut(t *testing.T) {
	for _, v := range []struct {
		name string
		set  func(*world)
		want int32
	}{
		{"without policies the forecast is meant to be early", func(w *world) { w.tide(500) }, 20},
		{"policies bound it", func(w *world) { w.tide(500); w.svc.Behavior.Up.Policies = pods(2, time.Minute) }, 10},
		{"the larger change counts", func(w *world) {
			w.tide(500)
			w.svc.Behavior.Up.Policies = append(pods(2, time.Minute), fleet.ScalingPolicy{Percent: 50, Period: time.Minute})
		}, 12},
		{"the smaller change counts", func(w *world) {
			w.tide(500)
			w.svc.Behavior.Up.Policies = append(pods(2, time.Minute), fleet.ScalingPolicy{Percent: 50, Period: time.Minute})
			w.svc.Behavior.Up.Select = fleet.SelectMin
		}, 10},
		{"disabled, nothing is added", func(w *world) { w.tide(500); w.svc.Behavior.Up.Select = fleet.SelectDisabled }, 8},
		{"the minimum is the operator's word", func(
			w *world) {
			w.svc.Min = 15
			w.svc.Behavior.Up.Select = fleet.SelectDisabled
		}, 15},
		{"a window is too", func(w *world) {
			w.svc.Behavior.Up.Policies = pods(1, time.Minute)
			w.svc.Windows = []fleet.Window{{Name: "noon", Schedule: "0 12 * * *", Duration: time.Hour, Zone: time.UTC, Min: 30}}
		}, 30},
		{"what was added within the period counts", func(w *world) {
			w.tide(500)
			w.svc.Behavior.Up.Policies = pods(3, 5*time.Minute)
			w.o.History[len(w.o.History)-2].From = 6 // two minutes ago it ran 6
			for i := range w.o.History[:len(w.o.History)-2] {
				w.o.History[i].From = 6
			}
		}, 9},
	} {
		t.Run(v.name, func(t *testing.T) {
			w := calm(8)
			v.set(w)
			if tg := w.size(); tg.Replicas != v.want {
				t.Errorf("%d, want %d: %s", tg.Replicas, v.want, tg.Why())
			}
		})
	}
}

// A scale-out waits until the whole window asked for it; the smallest ask of the window is taken at once.
func TestScaleOutStabilizes(t *testing.T) {
	w := calm(8)
	w.tide(500)
	w.svc.Behavior.Up.Stabilization = fleet.Says(3 * time.Minute)
	if tg := w.size(); tg.Replicas != 8 || tg.Held != HeldStabilisation {
		t.Errorf("8 was wanted within the window: %d, held by %q (%s)", tg.Replicas, tg.Held, tg.Why())
	}
	for i := range w.o.History {
		w.o.History[i].Replicas = 14
	}
	if tg := w.size(); tg.Replicas != 14 {
		t.Errorf("14 was wanted all along: %d (%s)", tg.Replicas, tg.Why())
	}
	w.svc.Min = 18
	if tg := w.size(); tg.Replicas != 18 {
		t.Errorf("the minimum waits for nothing: %d (%s)", tg.Replicas, tg.Why())
	}
}

func TestOwnPoliciesOfScaleIn(t *testing.T) {
	for _, v := range []struct {
		name string
		set  func(*world)
		want int32
	}{
		{"policies bound it", func(w *world) { w.svc.Behavior.Down.Policies = pods(3, time.Minute) }, 17},
		{"disabled, nothing leaves", func(w *world) { w.svc.Behavior.Down.Select = fleet.SelectDisabled }, 20},
		{"the maximum is the operator's word", func(w *world) {
			w.svc.Behavior.Down.Select,
				w.svc.Max = fleet.SelectDisabled, 12
		}, 12},
		{"without a window it goes at once", func(w *world) {
			w.remember(20)
			w.svc.Behavior.Down.Stabilization = fleet.Says(time.Duration(0))
		}, 4},
		{"with the default window it waits", func(w *world) { w.remember(20) }, 20},
		{"a fall that nothing confirmed is eased however much the policies allow", func(w *world) {
			w.p.Doubt.Eased = true
			w.svc.Behavior.Down.Policies = pods(100, time.Minute)
		}, 18},
		{"and disabled stays disabled", func(w *world) {
			w.p.Doubt.Eased = true
			w.svc.Behavior.Down.Select = fleet.SelectDisabled
		}, 20},
	} {
		t.Run(v.name, func(t *testing.T) {
			w := falling(20, 4)
			v.set(w)
			if tg := w.size(); tg.Replicas != v.want {
				t.Errorf("%d, want %d: %s", tg.Replicas, v.want, tg.Why())
			}
		})
	}
}

// A new leader watches, also where a scale-in needs no agreement.
func TestNoWindowStillWatches(t *testing.T) {
	w := falling(20, 4)
	w.svc.Behavior.Down.Stabilization = fleet.Says(time.Duration(0))
	w.watched(time.Minute)
	if tg := w.size(); tg.Replicas != 20 || tg.Held != HeldJustStarted {
		t.Errorf("%d, held by %q: %s", tg.Replicas, tg.Held, tg.Why())
	}
}

// Each direction has its tolerance.
func TestTolerances(t *testing.T) {
	for _, v := range []struct {
		name     string
		cpu      fleet.MilliCPU
		up, down fleet.Stated[float64]
		want     int32
	}{
		{"default, 8 % above", 648, fleet.Stated[float64]{}, fleet.Stated[float64]{}, 8},
		{"less upwards, 8 % above", 648, fleet.Says(0.05), fleet.Stated[float64]{}, 9},
		{"none upwards, 2 % above", 612, fleet.Says(0.0), fleet.Stated[float64]{}, 9},
		{"more upwards, 20 % above", 720, fleet.Says(0.3), fleet.Stated[float64]{}, 8},
		{"more downwards says nothing above", 720, fleet.Stated[float64]{}, fleet.Says(0.9), 10},
	} {
		t.Run(v.name, func(t *testing.T) {
			w := calm(8)
			w.cpu(v.cpu)
			w.svc.Behavior.Up.Tolerance, w.svc.Behavior.Down.Tolerance = v.up, v.down
			if p := part(t, w.size(), "reactive:cpu"); p.Replicas.Value != v.want {
				t.Errorf("%d, want %d: %s", p.Replicas.Value, v.want, p.Why)
			}
		})
	}
}
