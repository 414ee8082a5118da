package hpa

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

// draw makes a random service whose spec.replicas lie within its bounds. All signals are known and fresh; pods may be missing, young or on
// their way out.
func draw(t *rapid.T) *world {
	current := rapid.Int32Range(1, 60).Draw(t, "current")
	w := calm(current)
	w.svc.Min = rapid.Int32Range(0, current).Draw(t, "min")
	w.svc.Max = rapid.Int32Range(current, 100).Draw(t, "max")
	w.remember(rapid.Int32Range(0, 100).Draw(t, "remembered"))
	w.p.FastestFalls = portrait.Falls{1, 1, 1}
	if rapid.Bool().Draw(t, "utilisation") {
		w.svc.SLO = fleet.Levels(fleet.CPU(rapid.Float64Range(0.2, 1).Draw(t, "limit")))
	}
	w.svc.Metrics = []fleet.Metric{
		{Name: "cpu", Type: fleet.MetricCPU, Target: rapid.Float64Range(0.1, 1).Draw(t, "cpu target")},
		{Name: "rps", Type: fleet.MetricRequests, Target: rapid.Float64Range(1, 100).Draw(t, "rps target")},
		{Name: "queue", Type: fleet.MetricQuery, Target: rapid.Float64Range(1, 100).Draw(t, "queue target")},
	}
	load := rapid.Float64Range(0, 2000)
	w.load(load.Draw(t, "load"))
	w.tide(rapid.SliceOfN(load, 1, 24).Draw(t, "tide")...)
	w.signal("queue", load.Draw(t, "queue"))
	w.latency(time.Duration(rapid.Int64Range(1, int64(2*time.Second)).Draw(t, "latency")))
	w.pods(rapid.Int32Range(0, current).Draw(t, "pods"))
	w.live.CPU = map[fleet.Name]fleet.Known[fleet.MilliCPU]{}
	usage := rapid.Int64Range(0, 2000)
	for i := range w.svc.Pods {
		p := &w.svc.Pods[i]
		switch rapid.IntRange(0, 9).Draw(t, "pod") {
		case 0:
			p.Deleting = true
		case 1:
			p.Ready, p.Phase = false, fleet.PodPending
		case 2:
			p.Started = fleet.KnownAt(w.now.Add(-time.Minute), w.now)
			p.ReadySince = fleet.KnownAt(w.now, w.now)
		case 3:
			continue
		}
		w.live.CPU[p.Name] = fleet.KnownAt(fleet.MilliCPU(usage.Draw(t, "usage")), w.now)
	}
	if rapid.Bool().Draw(t, "window") {
		w.svc.Windows = []fleet.Window{{Name: "w", Schedule: "0 */3 * * *", Zone: time.UTC,
			Duration: time.Duration(rapid.IntRange(1, 300).Draw(t, "minutes")) * time.Minute,
			Min:      rapid.Int32Range(0, 120).Draw(t, "window min"), Max: rapid.Int32Range(0, 120).Draw(t, "window max")}}
		if w.svc.Windows[0].Max > 0 {
			// A ceiling is the operator's word and takes away without proof; the properties below are about proof.
			w.svc.Windows[0].Max = max(w.svc.Windows[0].Max, current)
		}
	}
	if rapid.Bool().Draw(t, "festival") {
		w.o.Festivals = []fleet.Festival{{ID: "f", Start: w.now, End: w.now.Add(time.Hour), Approved: true, Lifts: []fleet.Lift{
			{Service: w.svc.ID, Factor: rapid.Float64Range(0, 5).Draw(t, "factor"), Floor: rapid.Int32Range(0, 120).Draw(t, "floor")}}}}
	}
	if rapid.Bool().Draw(t, "quota?") {
		w.within.Quota = rapid.Int32Range(1, 100).Draw(t, "quota")
	}
	return w
}

// losses are the ways in which each signal can go missing; every one of a signal's ways must be as good as any other.
var losses = []struct {
	signal string
	ways   []func(*world)
}{
	{"load", []func(*world){
		func(w *world) { w.live.Load = fleet.Known[float64]{} },
		func(w *world) { w.live.Load.At = w.now.Add(-3 * time.Minute) },
		func(w *world) { w.live.Load.At = w.now.Add(-3 * time.Hour) },
		func(w *world) { w.load(math.NaN()) },
		func(w *world) { w.load(-5) },
		func(w *world) { w.load(math.Inf(1)) },
	}},
	{"cpu", []func(*world){
		func(w *world) { w.live.CPU = nil },
		func(w *world) { w.cpu(-1) },
		func(w *world) {
			for name, k := range w.live.CPU {
				w.live.CPU[name] = fleet.KnownAt(k.Value, w.now.Add(-3*time.Minute))
			}
		},
	}},
	{"queue", []func(*world){
		func(w *world) { delete(w.live.Signals, "queue") },
		func(w *world) { w.signal("queue", math.NaN()) },
		func(w *world) {
			w.live.Signals["queue"] = fleet.KnownAt(w.live.Signals["queue"].Value, w.now.Add(-3*time.Minute))
		},
	}},
	{"latency", []func(*world){
		func(w *world) { w.live.Latency = fleet.Known[time.Duration]{} },
		func(w *world) { w.live.Latency.At = w.now.Add(-3 * time.Minute) },
		func(w *world) { w.latency(-1) },
	}},
	{"forecast", []func(*world){
		func(w *world) { w.t.Trusted = false },
		func(w *world) { w.t.Paths = nil },
		func(w *world) { w.t.Made = w.now.Add(-time.Hour) },
		func(w *world) {
			for i := range w.t.Paths {
				for j := range w.t.Paths[i] {
					w.t.Paths[i][j] = math.NaN()
				}
			}
		},
	}},
	{"capacity", []func(*world){
		func(w *world) { w.p.CPUPerLoad.OK, w.svc.Metrics[1].Target = false, 0 },
	}},
	{"replicas", []func(*world){
		func(w *world) { w.svc.Desired.OK = false },
	}},
}

// Whatever subset of the signals is missing, stale or wrong, the target never falls and never leaves its bounds.
func TestNeverInWhileAnySignalIsMissing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := draw(rt)
		if seed.svc.SLO.LatencyLimit() == 0 {
			seed.svc.SLO = fleet.Levels(append(seed.svc.SLO.Levels, fleet.Latency(0.99, 200*time.Millisecond))...)
		}
		way := rapid.IntRange(0, 5).Draw(rt, "way")
		for subset := 1; subset < 1<<len(losses); subset++ {
			w := *seed
			w.live.Signals = map[string]fleet.Known[float64]{"queue": seed.live.Signals["queue"]}
			w.live.CPU = map[fleet.Name]fleet.Known[fleet.MilliCPU]{}
			for name, k := range seed.live.CPU {
				w.live.CPU[name] = k
			}
			w.svc.Metrics = append([]fleet.Metric(nil), seed.svc.Metrics...)
			w.tide(300)
			w.t.Paths[1][0] = seed.t.Paths[1][0]
			names := ""
			for i, l := range losses {
				if subset&(1<<i) != 0 {
					l.ways[way%len(l.ways)](&w)
					names += " " + l.signal
				}
			}
			tg := w.size()
			if few := names == " latency" && w.live.Load.Value*latencySpan.Seconds() < fewRequests; tg.DataFresh && !few {
				rt.Fatalf("without%s: said to be fresh: %s", names, tg.Why())
			}
			if tg.Replicas < tg.Current && !tg.DataFresh {
				rt.Fatalf("without%s: %d -> %d: %s", names, tg.Current, tg.Replicas, tg.Why())
			}
			if tg.Replicas > w.svc.Max {
				rt.Fatalf("without%s: %d above the maximum %d: %s", names, tg.Replicas, w.svc.Max, tg.Why())
			}
			if w.svc.Desired.OK && tg.Replicas < w.svc.Min {
				rt.Fatalf("without%s: %d below the minimum %d: %s", names, tg.Replicas, w.svc.Min, tg.Why())
			}
			for _, p := range tg.Parts {
				if !p.Replicas.OK && len(tg.Missing) == 0 {
					rt.Fatalf("part %s is unknown and nothing is said to be missing", p.Name)
				}
			}
		}
	})
}

// The target lies within its bounds, falls only by the agreement of all, and never below what was wanted within the stabilisation window.
func TestTargetIsBoundedAndProven(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := draw(rt)
		tg := w.size()
		if tg.Replicas < w.svc.Min || tg.Replicas > w.svc.Max {
			rt.Fatalf("%d outside of %d..%d: %s", tg.Replicas, w.svc.Min, w.svc.Max, tg.Why())
		}
		for i, n := range tg.Ahead {
			if n < w.svc.Min || n > w.svc.Max {
				rt.Fatalf("ahead[%d] = %d outside of %d..%d", i, n, w.svc.Min, w.svc.Max)
			}
		}
		if tg.Replicas < tg.Current {
			for _, p := range tg.Parts {
				if !p.Replicas.OK || p.Replicas.Value > tg.Replicas {
					rt.Fatalf("%d -> %d against %+v: %s", tg.Current, tg.Replicas, p, tg.Why())
				}
			}
			if remembered := w.o.History[9].Replicas; tg.Replicas < min(remembered, tg.Current) {
				rt.Fatalf("%d -> %d though %d was wanted a minute ago", tg.Current, tg.Replicas, remembered)
			}
		}
		if tg.Replicas > tg.Current && tg.Replicas > tg.Wanted {
			rt.Fatalf("more than any part wanted: %s", tg.Why())
		}
		if w.within.Quota > 0 && tg.Replicas > max(w.within.Quota, tg.Current, w.svc.Min) {
			rt.Fatalf("%d above the quota of %d: %s", tg.Replicas, w.within.Quota, tg.Why())
		}
	})
}

// More load never gives fewer replicas, now or ahead. (The fault of a sudden fall is meant to break this and is out of play: FastestFalls
// are 1.)
func TestMonotoneInLoad(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := draw(rt)
		less := w.size()
		factor := rapid.Float64Range(1, 3).Draw(rt, "more")
		if w.live.Load.Value == 0 {
			w.live.Load.Value = 1 // at none at all the latency has a voice of its own
			less = w.size()
		}
		w.live.Load.Value *= factor
		w.live.Latency.Value = time.Duration(float64(w.live.Latency.Value) * factor)
		queue := w.live.Signals["queue"]
		queue.Value *= factor
		w.live.Signals["queue"] = queue
		for name, k := range w.live.CPU {
			k.Value = fleet.MilliCPU(math.Ceil(float64(k.Value) * factor))
			w.live.CPU[name] = k
		}
		for i := range w.t.Paths {
			for j := range w.t.Paths[i] {
				w.t.Paths[i][j] *= factor
			}
		}
		more := w.size()
		if more.Replicas < less.Replicas || more.Wanted < less.Wanted || more.Floor < less.Floor {
			rt.Fatalf("load × %.3f: %d instead of %d\n%s\n%s", factor, more.Replicas, less.Replicas, more.Why(), less.Why())
		}
		for i := range more.Ahead {
			if more.Ahead[i] < less.Ahead[i] {
				rt.Fatalf("load × %.3f: ahead[%d] %d instead of %d", factor, i, more.Ahead[i], less.Ahead[i])
			}
		}
	})
}

// Equal facts give equal targets, whatever the order in which the history comes, and nothing that was handed in is changed.
func TestDeterministic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := draw(rt)
		before := fmt.Sprintf("%+v", w)
		a := w.size()
		if after := fmt.Sprintf("%+v", w); after != before {
			rt.Fatal("an input was changed")
		}
		w.o.History = append([]Decision(nil), w.o.History...)
		shuffle := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "order"), 0))
		shuffle.Shuffle(len(w.o.History), func(i, j int) {
			w.o.History[i], w.o.History[j] = w.o.History[j], w.o.History[i]
		})
		if b := w.size(); !reflect.DeepEqual(a, b) {
			rt.Fatalf("another order of history:\n%+v\n%+v", a, b)
		}
	})
}
