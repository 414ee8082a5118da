package hpa

import (
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

// crowded plays a service whose load leaps while its pods saturate: they are ready a minute after they were asked for, use no more CPU than their limit,
// and answer slowly while they have too little. atPods says that requests are counted where they are served, else where they arrive. It returns the
// ready replicas of each cycle of fifteen seconds.
func crowded(t *testing.T, factor float64, believe, atPods, latency bool) []int32 {
	t.Helper()
	w := calm(8)
	w.svc.Max = 200
	w.p.Carried = 26
	w.watched(time.Hour)
	load := 8 * 20 * factor
	want := int32(8)
	node := func(fleet.NodeID) *fleet.Node { return &fleet.Node{Allocatable: fleet.Resources{CPU: 64000}} }
	var out []int32
	asked := map[int32]time.Time{}
	for range 40 {
		ready := int32(8)
		for n := int32(9); n <= want; n++ {
			if w.now.Sub(asked[n]) >= time.Minute {
				ready++
			}
		}
		w.svc.Desired = fleet.KnownAt(want, w.now)
		w.pods(want)
		w.live.CPU = map[fleet.Name]fleet.Known[fleet.MilliCPU]{}
		use := math.Min(1, 0.1+0.02*load/float64(ready))
		for i := range w.svc.Pods {
			p := &w.svc.Pods[i]
			p.CPULimit, p.Node = 1000, "n"
			if p.Ready = int32(i) < ready; p.Ready {
				w.live.CPU[p.Name] = fleet.KnownAt(fleet.FromCores(use), w.now)
			} else {
				p.ReadySince, p.Started = fleet.Known[time.Time]{}, fleet.KnownAt(w.now, w.now)
			}
		}
		seen := load
		if atPods {
			seen = math.Min(load, float64(ready)*45)
		}
		w.live.Load, w.live.Steady = fleet.KnownAt(seen, w.now), fleet.KnownAt(seen, w.now)
		w.live.Latency = fleet.KnownAt(100*time.Millisecond, w.now)
		if latency && use >= 1 {
			w.live.Latency = fleet.KnownAt(2*time.Second, w.now)
		}
		live := w.live
		if believe {
			live = Believe(&w.svc, &w.p, live, w.now, CoresMost(&w.svc, node))
			if len(live.Unconfirmed) > 0 {
				t.Errorf("a crowd of x%g is not believed: %v", factor, live.Unconfirmed)
			}
		}
		w.t.Made, w.t.Start = w.now, w.now
		tg := Ask(&w.svc, w.p, w.t, live, w.now, w.o).Within(w.within)
		w.o.History = append(w.o.History, tg.Decision)
		for n := want + 1; n <= tg.Replicas; n++ {
			asked[n] = w.now
		}
		want = tg.Replicas
		out = append(out, ready)
		w.now = w.now.Add(15 * time.Second)
	}
	return out
}

// A true crowd saturates the pods, which bears it out: it is answered as fast as without any doubt, cycle for cycle.
func TestACrowdIsAnsweredAsFastAsEver(t *testing.T) {
	for _, factor := range []float64{2, 5, 20} {
		for _, atPods := range []bool{true, false} {
			for _, latency := range []bool{true, false} {
				today, doubting := crowded(t, factor, false, atPods, latency), crowded(t, factor, true, atPods, latency)
				all := func(ready []int32) time.Duration {
					for i, n := range ready {
						if float64(n)*25 >= 8*20*factor {
							return time.Duration(i) * 15 * time.Second
						}
					}
					return -1
				}
				t.Logf("x%g, counted where it is served %v, latency measured %v: enough replicas are ready after %s, without doubts %s", factor, atPods, latency, all(doubting), all(today))
				for i := range today {
					if doubting[i] < today[i] {
						t.Errorf("x%g, at pods %v, latency %v: cycle %d has %d ready replicas, without doubts %d", factor, atPods, latency, i, doubting[i], today[i])
						break
					}
				}
			}
		}
	}
}

// Load that the ready replicas could not have served, and do not bear out, asks for no replica, and takes none away;
// the other signals stand.
func TestAnImplausibleRiseIsNotBelieved(t *testing.T) {
	node := func(fleet.NodeID) *fleet.Node { return &fleet.Node{Allocatable: fleet.Resources{CPU: 16000}} }
	for name, c := range map[string]struct {
		load, cpu, latency float64
		limit              fleet.MilliCPU
		busy               float64 // of the CPU before the lie
		signal             portrait.Signal
		unconfirmed        int
		more               bool
	}{
		"all x100":                   {load: 100, cpu: 100, latency: 100, busy: 1, unconfirmed: 2},
		"all x100, pods with limits": {load: 100, cpu: 100, latency: 100, limit: 2000, busy: 1, unconfirmed: 2},
		"requests x100":              {load: 100, cpu: 1, latency: 1, busy: 1, unconfirmed: 1},
		"requests x10":               {load: 10, cpu: 1, latency: 1, busy: 1, unconfirmed: 1},
		"CPU x100":                   {load: 1, cpu: 100, latency: 1, busy: 1, unconfirmed: 1},
		"CPU x100, the load is CPU":  {load: 100, cpu: 100, latency: 1, busy: 1, signal: portrait.CPU, unconfirmed: 1},
		"a crowd of x10, slow":       {load: 10, cpu: 1, latency: 10, busy: 1, more: true},
		"a crowd of x10, busy":       {load: 10, cpu: 1, latency: 1, busy: 2, more: true},
		"requests doubled":           {load: 2, cpu: 1, latency: 1, busy: 1, more: true}, // a replica may have carried as much
		"CPU that a pod without a limit can well use": {load: 1, cpu: 4, latency: 1, busy: 1, more: true},
	} {
		w := calm(8)
		w.svc.Max = 400
		w.p.Carried = 26
		if c.signal != "" {
			w.p.Signal = c.signal
			w.p.Carried = 0
			w.load(8 * 0.5)
			w.tide(8 * 0.5)
		}
		for i := range w.svc.Pods {
			w.svc.Pods[i].CPULimit, w.svc.Pods[i].Node = c.limit, fleet.NodeID([]string{"a", "b"}[i%2])
		}
		w.cpu(fleet.MilliCPU(500 * c.cpu * c.busy))
		w.latency(time.Duration(c.latency * float64(100*time.Millisecond)))
		w.load(w.live.Load.Value * c.load)
		w.live.Steady = w.live.Load
		before := w.size()
		w.live = Believe(&w.svc, &w.p, w.live, w.now, CoresMost(&w.svc, node))
		if !w.live.Load.OK {
			w.live.Steady = fleet.Known[float64]{} // the loop keeps none
		}
		tg := w.size()
		if len(tg.Unconfirmed) != c.unconfirmed {
			t.Errorf("%s: told %q, want %d", name, tg.Unconfirmed, c.unconfirmed)
		}
		if before.Replicas <= 8 {
			t.Errorf("%s: believed, it asks for %d of 8 replicas only: the case shows nothing", name, before.Replicas)
		}
		if (tg.Replicas > 8) != c.more || tg.Replicas < 8 {
			t.Errorf("%s: %s", name, tg.Why())
		}
	}
}

// The CPU that pods can be given is bounded by their limits and by their machines, and not known where a machine is not.
func TestCoresMost(t *testing.T) {
	node := func(id fleet.NodeID) *fleet.Node {
		if id == "gone" {
			return nil
		}
		return &fleet.Node{Allocatable: fleet.Resources{CPU: 16000}}
	}
	pod := func(on fleet.NodeID, limit fleet.MilliCPU) fleet.Pod {
		return fleet.Pod{Node: on, CPULimit: limit, Phase: fleet.PodRunning}
	}
	for name, c := range map[string]struct {
		pods []fleet.Pod
		want float64
	}{
		"none":                             {nil, 0},
		"limits":                           {[]fleet.Pod{pod("a", 2000), pod("a", 2000), pod("b", 2000)}, 6},
		"no limits":                        {[]fleet.Pod{pod("a", 0), pod("a", 0), pod("b", 0)}, 32},
		"one without a limit":              {[]fleet.Pod{pod("a", 2000), pod("a", 0)}, 16},
		"limits beyond the machine":        {[]fleet.Pod{pod("a", 12000), pod("a", 12000)}, 16},
		"a machine that nobody knows":      {[]fleet.Pod{pod("a", 2000), pod("gone", 2000)}, 0},
		"pods that do not run yet":         {[]fleet.Pod{pod("a", 2000), {Node: "b", Phase: fleet.PodPending}}, 2},
		"pods that are not on any machine": {[]fleet.Pod{{Phase: fleet.PodRunning}}, 0},
	} {
		if got := CoresMost(&fleet.Service{Pods: c.pods}, node); got != c.want {
			t.Errorf("%s: %g cores, want %g", name, got, c.want)
		}
	}
}
