package shape

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

func reclaimedPod(uid string, priority int32, oom int) Pod {
	return Pod{UID: uid, Name: uid, Class: Reclaimed, Side: OverlapSide, Priority: priority, Terms: Terms{OOMPriority: oom}}
}

// TestOneOrder: the kernel ends reclaimed pods in the order in which the agent evicts them.
func TestOneOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		pods []Pod
		want map[string]int
	}{
		{"one pod", []Pod{reclaimedPod("a", 0, 0)}, map[string]int{"a": 1000}},
		{"none is 0, and 0 is between", []Pod{reclaimedPod("low", 0, -100), reclaimedPod("none", 0, 0), reclaimedPod("high", 0, 100)}, map[string]int{"low": 1000, "none": 951, "high": 901}},
		{"below -100", []Pod{reclaimedPod("a", 0, -300), reclaimedPod("b", 0, -200)}, map[string]int{"a": 1000, "b": 901}},
		{"above 0", []Pod{reclaimedPod("a", 0, 10), reclaimedPod("b", 0, 300)}, map[string]int{"a": 1000, "b": 901}},
		{"the pod's priority comes first", []Pod{reclaimedPod("a", 100, -300), reclaimedPod("b", -5, 300)}, map[string]int{"a": 901, "b": 1000}},
		{"equals", []Pod{reclaimedPod("a", 0, 0), reclaimedPod("b", 0, 0), reclaimedPod("c", 1, 0)}, map[string]int{"a": 1000, "b": 1000, "c": 901}},
		{"others keep the kubelet's", []Pod{{UID: "web", Class: Shared}}, map[string]int{}},
	} {
		if got := OOMScores(c.pods); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var pods []Pod
		var cs []Candidate
		for i := range rapid.IntRange(1, 40).Draw(t, "pods") {
			p := reclaimedPod(fmt.Sprint("p", i), int32(rapid.IntRange(-2, 2).Draw(t, "priority")), rapid.IntRange(-300, 300).Draw(t, "oom"))
			pods = append(pods, p)
			cs = append(cs, Candidate{UID: p.UID, Name: p.Name, Priority: p.Priority, OOMPriority: p.Terms.OOMPriority, Memory: fleet.GiB})
		}
		scores := OOMScores(pods)
		if !slices.IsSortedFunc(Rank(cs), func(a, b Candidate) int { return scores[b.UID] - scores[a.UID] }) {
			t.Fatalf("%v is not the order of %v", scores, Rank(cs))
		}
		for uid, score := range scores {
			if score > oomFirst || score < oomLast {
				t.Fatalf("%s has %d", uid, score)
			}
		}
	})
}

// TestDisturbedOnline: where squeezing has come to its end and online still waits, a pod that uses CPU goes; whether it requests something plays no part.
func TestDisturbedOnline(t *testing.T) {
	busy := func(at time.Time) []Candidate {
		return []Candidate{{UID: "idle", Name: "idle", Priority: -1, CPU: fleet.KnownAt(fleet.MilliCPU(1), at)}, {UID: "busy", Name: "busy", CPU: fleet.KnownAt(fleet.MilliCPU(400), at)}}
	}
	stall := func(share float64) func(time.Time) []Indicator {
		return func(now time.Time) []Indicator { return []Indicator{CPUStall(fleet.KnownAt(share, now))} }
	}
	latency := func(share float64) func(time.Time) []Indicator {
		return func(now time.Time) []Indicator {
			return []Indicator{CPUStall(fleet.KnownAt(0.0, now)), Latency(fleet.KnownAt(share, now))}
		}
	}
	for _, c := range []struct {
		name     string
		is       func(time.Time) []Indicator
		squeezed bool
		cs       func(time.Time) []Candidate
		rule     string
	}{
		{"online waits for CPUs", stall(0.3), true, busy, RuleCPU},
		{"online is slow", latency(1.2), true, busy, RuleLatency},
		{"there is more to squeeze", stall(0.3), false, busy, ""},
		{"within the band", stall(0.104), true, busy, ""},
		{"no pod uses CPU", stall(0.3), true, func(at time.Time) []Candidate { return busy(at)[:1] }, ""},
		{"what they use is unknown", stall(0.3), true, func(time.Time) []Candidate { return []Candidate{{UID: "a", Name: "a"}} }, ""},
		{"the signal is old", func(now time.Time) []Indicator {
			return []Indicator{CPUStall(fleet.KnownAt(0.3, now.Add(-time.Minute)))}
		}, true, busy, ""},
	} {
		var e Evictor
		var v Verdict
		after := 0
		for ; after < 60 && len(v.Evict) == 0; after++ {
			now := noon.Add(time.Duration(after) * time.Second)
			e, v = e.Decide(&Pressure{Indicators: c.is(now), Squeezed: c.squeezed}, c.cs(now), now, DefaultEvictions())
		}
		if c.rule == "" && len(v.Evict) > 0 || c.rule != "" && (len(v.Evict) != 1 || v.Evict[0].Rule != c.rule || v.Evict[0].UID != "busy" || after != 31) {
			t.Errorf("%s: %+v after %d s, want %q", c.name, v.Evict, after, c.rule)
		}
	}
	// A value that falls into the band goes on counting, and one at the target ends it.
	for _, c := range []struct {
		then  float64
		goes  bool
		label string
	}{{0.103, true, "in the band"}, {0.09, false, "at the target"}} {
		var e Evictor
		gone := false
		for i := range 40 {
			now, share := noon.Add(time.Duration(i)*time.Second), 0.3
			if i > 20 {
				share = c.then
			}
			var v Verdict
			e, v = e.Decide(&Pressure{Indicators: stall(share)(now), Squeezed: true}, busy(now), now, DefaultEvictions())
			gone = gone || len(v.Evict) > 0
		}
		if gone != c.goes {
			t.Errorf("%s: a pod went %v", c.label, gone)
		}
	}
}
