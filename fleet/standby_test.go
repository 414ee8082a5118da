package fleet

import (
	"strings"
	"testing"
	"time"
)

// Pods in standby are no part of the size; those that a scale-in takes by now count with it alone.
func TestServing(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	type pod struct {
		name     string
		since    time.Duration // in standby; 0 for in service
		leavesAt int32         // 0 without a mark
		deleting bool
	}
	for _, c := range []struct {
		name    string
		desired int32
		pods    []pod
		serving int32
		by      string
	}{
		{"none stands by", 2, []pod{{"a", 0, 0, false}, {"b", 0, 0, false}}, 2, ""},
		{"the last that left comes first", 4, []pod{{"a", 0, 0, false}, {"b", 3 * time.Minute, 0, false},
			{"c", time.Minute, 0, false}, {"d", 2 * time.Minute, 0, false}}, 1, "c d b"},
		{"one is deleted", 3, []pod{{"a", 0, 0, false}, {"b", time.Minute, 0, true}, {"c", time.Minute, 0, false}}, 2, "c"},
		{"a scale-in takes the marked one", 2, []pod{{"a", 0, 0, false}, {"b", time.Minute, 2, false},
			{"c", 9 * time.Minute, 0, false}}, 1, "c"},
		{"a scale-in takes both", 1, []pod{{"a", 0, 0, false}, {"b", time.Minute, 1, false},
			{"c", 2 * time.Minute, 1, false}}, 1, ""},
		{"another writer lowered replicas", 1, []pod{{"a", 0, 0, false}, {"b", time.Minute, 0, false},
			{"c", 2 * time.Minute, 0, false}}, 1, ""},
		{"a pod is replaced", 3, []pod{{"a", 0, 0, false}, {"b", time.Minute, 0, false}}, 2, "b"},
		{"the target is at 0", 0, []pod{{"a", time.Minute, 0, false}}, 0, ""},
	} {
		s := Service{Desired: KnownAt(c.desired, now)}
		for _, p := range c.pods {
			x := Pod{Name: Name{Name: p.name}, Phase: PodRunning, Deleting: p.deleting}
			if p.since > 0 {
				x.Standby = KnownAt(now.Add(-p.since), now)
			}
			if p.leavesAt > 0 {
				x.LeavesAt = KnownAt(p.leavesAt, now)
			}
			s.Pods = append(s.Pods, x)
		}
		var by []string
		for _, p := range s.StandingBy() {
			by = append(by, p.Name.Name)
		}
		if got := strings.Join(by, " "); got != c.by || s.Serving() != c.serving {
			t.Errorf("%s: %q stand by, %d serve; want %q, %d", c.name, got, s.Serving(), c.by, c.serving)
		}
	}
}

// Lending counts a pod in standby with all that it may ask for again.
func TestReserves(t *testing.T) {
	now := time.Now()
	p := Pod{Requests: Resources{CPU: 50, Memory: GiB}, FullCPU: 1000}
	if got := p.Reserves(); got != p.Requests {
		t.Errorf("in service: %v", got)
	}
	p.Standby = KnownAt(now, now)
	if got := p.Reserves(); got != (Resources{CPU: 1000, Memory: GiB}) {
		t.Errorf("in standby: %v", got)
	}
	for cpu, want := range map[MilliCPU]MilliCPU{0: 0, 5: 5, 100: 10, 1000: 50, 8000: 400} {
		if got := StandbyCPU(cpu); got != want {
			t.Errorf("%d m: %d m, want %d", cpu, got, want)
		}
	}
}
