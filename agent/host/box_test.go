package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/fleet"
)

// cores reads the quota of a cgroup; 0 while there is none.
func (l *load) cores(path string) float64 {
	text, _, _ := strings.Cut(l.read(path, "cpu.max"), " ")
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n / quotaPeriodOfTest
}

// uses adds to the CPU counter of a cgroup, in cores for a second.
func (l *load) uses(path string, cores float64) {
	l.t.Helper()
	was := l.cgroups.Keyed(path, "cpu.stat")["usage_usec"]
	files(l.t, filepath.Join(l.roots.Cgroup, path), map[string]string{"cpu.stat": fmt.Sprintf("usage_usec %d\nthrottled_usec 0", was+int64(cores*1e6))})
}

// holds sets the memory of a cgroup.
func (l *load) holds(path string, anon, cache int) {
	l.t.Helper()
	files(l.t, filepath.Join(l.roots.Cgroup, path), map[string]string{"memory.current": fmt.Sprint(anon + cache), "memory.stat": fmt.Sprintf("anon %d\ninactive_file %d", anon, cache)})
}

// TestReclaimedPodsAreBoxed: every reclaimed pod is in the box and the quota, and its CPU is no use of online, whatever its Kubernetes QoS.
func TestReclaimedPodsAreBoxed(t *testing.T) {
	for _, c := range []struct {
		name string
		qos  shape.QoS
		ask  int64
		own  fleet.Resources
	}{
		{"requests, so Burstable", shape.Burstable, 1000, fleet.Resources{}},
		{"requests and limits that are the same, so Guaranteed", shape.Guaranteed, 1000, fleet.Resources{CPU: 9000, Memory: 60 * fleet.GiB}},
		{"reclaimed-cpu and a limit of memory, so Burstable", shape.Burstable, 1, fleet.Resources{Memory: 2 * fleet.GiB}},
		{"none, so BestEffort", shape.BestEffort, 0, fleet.Resources{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLoad(t)
			p := l.pod("batch", shape.OverlapSide, shape.Reclaimed, c.ask)
			if err := os.RemoveAll(filepath.Join(l.roots.Cgroup, l.path(p))); err != nil {
				t.Fatal(err)
			}
			p.QoS, p.Own = c.qos, c.own
			path := l.path(p)
			l.group(path)
			box := path
			if c.qos == shape.BestEffort {
				box = "kubepods/besteffort"
			}
			l.cycle()
			for range 4 {
				l.second(4, 0, 0)
				// The pod's part of what all CPUs were busy with.
				l.busy += 600
				if box == path {
					l.uses(path, 6)
				} else {
					l.best += 6e6
				}
				l.holds(box, 8<<30, 0)
				l.second(0, 0, 0)
				l.now = l.now.Add(-time.Second)
				l.protect()
			}
			if used := l.guard.meter.used[box]; used == 0 {
				t.Error("its CPU is not measured as that of reclaimed work")
			}
			// Online uses 4 of 16 cores: 5 are kept for it. Were the pod's 6 cores online's, none would be left.
			if sum := l.guard.advice.Quota; sum < 10500 || sum > 11500 {
				t.Errorf("the quota of all is %d: its CPU counts as online's", sum)
			}
			if got := l.cores(box); got <= 0 || got > 11.5 {
				t.Errorf("its quota is %g", got)
			}
			limit, high := l.read(box, "memory.max"), l.read(box, "memory.high")
			if limit == "max" || high == "max" {
				t.Errorf("its memory box is %s, %s", limit, high)
			}
			if n, _ := strconv.ParseInt(limit, 10, 64); c.own.Memory > 0 && n > int64(c.own.Memory) {
				t.Errorf("its limit went from %d to %d", c.own.Memory, n)
			}
			if m := l.guard.advice.Max; m < 50*fleet.GiB { // 48 GiB are available next to the 8
				t.Errorf("the box of all has %d GiB: what the pod holds is not counted", m>>30)
			}
			// It is not reclaimed any more, and the kubelet's own limits hold again.
			if box != path {
				return
			}
			q := &l.facts.Pods[len(l.facts.Pods)-1]
			q.Side, q.Level = shape.OnlineSide, shape.Shared
			l.cycle()
			want := "max"
			if c.own.CPU > 0 {
				want = "900000 100000"
			}
			if got := l.read(path, "cpu.max"); got != want {
				t.Errorf("a pod that is not reclaimed any more has the quota %q, want %q", got, want)
			}
			if got := l.read(path, "memory.high"); got != "max" {
				t.Errorf("and memory.high %s", got)
			}
		})
	}
}

// TestUnboxedAfterARestart: a pod loses its class while the agent is away; the journal says that its limits were the agent's.
func TestUnboxedAfterARestart(t *testing.T) {
	l := newLoad(t)
	p := *l.pod("batch", shape.OverlapSide, shape.Reclaimed, 1000)
	l.cycle()
	for range 3 {
		l.second(4, 1, 0)
		l.protect()
	}
	if l.cores(l.path(&p)) == 0 {
		t.Fatal("it has no quota")
	}
	again, err := New(l.o.withRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	q := &l.facts.Pods[len(l.facts.Pods)-1]
	q.Side, q.Level = shape.OnlineSide, shape.Shared
	if _, err := again.Cycle(t.Context(), l.facts, l.now); err != nil {
		t.Fatal(err)
	}
	if got := l.read(l.path(&p), "cpu.max"); got != "max" {
		t.Errorf("its quota is %s", got)
	}
}

// TestStallOfReclaimedPodsIsNotOnlines: the cgroup of Burstable pods waits because reclaimed pods in it do. Online does not, and nothing is cut; and where
// online waits, a calm Guaranteed pod does not hide it.
func TestStallOfReclaimedPodsIsNotOnlines(t *testing.T) {
	for _, c := range []struct {
		name         string
		web, calm    bool
		stalls, cuts bool
	}{
		{"reclaimed pods wait", true, false, false, false},
		{"reclaimed pods wait, and no pod of online is there", false, false, false, false},
		{"online waits", true, false, true, true},
		{"online waits next to a calm Guaranteed pod", true, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLoad(t)
			l.pod("batch", shape.OverlapSide, shape.Reclaimed, 1000)
			if !c.web {
				l.facts.Pods = l.facts.Pods[1:]
			}
			if c.calm {
				l.pod("calm", shape.OnlineSide, shape.Shared, 2000)
				l.facts.Pods[len(l.facts.Pods)-1].QoS = shape.Guaranteed
				l.group(l.path(&l.facts.Pods[len(l.facts.Pods)-1]))
			}
			l.cycle()
			for range 4 {
				l.second(2, 8, 0)
				l.protect()
			}
			was := l.guard.advice.Quota
			for range 5 {
				l.second(2, 8, 0.6)
				if !c.stalls { // the pods of online say that they do not wait
					files(t, l.roots.Cgroup, map[string]string{"kubepods/burstable/podweb-uid/cpu.pressure": groupFiles["cpu.pressure"]})
				}
				l.protect()
			}
			if cut := l.guard.advice.Quota < was; cut != c.cuts {
				t.Errorf("the quota went from %d to %d", was, l.guard.advice.Quota)
			}
		})
	}
}

// TestProtectionTakenBack: a kubelet that starts sets the protection of memory above the pods to nothing. It is back a second later, also where the agent
// boxes nothing.
func TestProtectionTakenBack(t *testing.T) {
	for name, overlap := range map[string]bool{"with a box": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			l := newLoad(t)
			if !overlap {
				l.o.Overlap = OverlapOptions{Advice: shape.DefaultAdvice()}
			}
			l.pod("own", shape.OnlineSide, shape.Dedicated, 2000)
			l.cycle()
			for _, file := range []string{"kubepods/memory.min", "kubepods/memory.low", "kubepods/burstable/memory.low", "kubepods/burstable/memory.min"} {
				dir, base := filepath.Dir(file), filepath.Base(file)
				before := l.read(dir, base)
				if before == "0" {
					t.Fatalf("%s protects nothing", file)
				}
				files(t, l.roots.Cgroup, map[string]string{file: "0"})
				l.second(1, 0, 0)
				l.protect()
				if now := l.read(dir, base); now != before {
					t.Errorf("%s was %s and is %s a second after the kubelet started", file, before, now)
				}
			}
			if n := len(strings.Fields(l.journalled(t, "kubepods", "memory.min"))); n != 2 {
				t.Errorf("kubepods/memory.min was written %d times, want 2", n)
			}
		})
	}
}

// TestDisturbedOnlineEvicts: online waits for CPUs for half a minute though reclaimed work has its floor alone. A pod that uses CPU goes, whether it is of
// BestEffort or requests something.
func TestDisturbedOnlineEvicts(t *testing.T) {
	for name, milli := range map[string]int64{"plain BestEffort": 0, "with requests": 500} {
		t.Run(name, func(t *testing.T) {
			l := newLoad(t)
			p := *l.pod("busy", shape.OverlapSide, shape.Reclaimed, milli)
			l.cycle()
			var evicted []shape.Eviction
			after := 0
			for ; after < 60 && len(evicted) == 0; after++ {
				l.second(15, 0.4, 0.6)
				l.uses(l.path(&p), 0.4)
				evicted = l.protect()
			}
			if len(evicted) != 1 || evicted[0].Name != "shop/busy" || evicted[0].Rule != shape.RuleCPU || after < 30 || after > 40 {
				t.Errorf("%+v after %d s", evicted, after)
			}
		})
	}
}
