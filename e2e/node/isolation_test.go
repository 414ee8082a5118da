package node

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/lab/node"
	"github.com/springtide/springtide/lab/node/nodetest"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

var runs = flag.Int("runs", 3, "how often online is measured next to each antagonist")

// TestIsolation plays the stories of a machine that nothing is lent of, on which reclaimed work runs next to online.
func TestIsolation(t *testing.T) {
	img := nodetest.Image(t)
	p := planetest.Start(t, plane.Options{})
	c := newKinds(t, p, nil)
	c.join(t, nodetest.Start(t, img, p, "real-1", map[string]string{labelPool: onlinePool}))
	c.loadAgent(t)
	tell := func(name string, limit time.Duration, story func(*testing.T, *cluster)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			c.Limit(t, limit)
			story(t, c)
		})
	}
	tell("what others write to cgroups", 10*time.Minute, knowsItsWriters)
	web := c.online("web")
	web.Spec.Containers[0].Args = []string{"-mib", "16"}
	c.web = c.Create(t, web)
	tell("a CPU antagonist", 20*time.Minute, suffersAnAntagonist)
	tell("online spikes", 10*time.Minute, spikes)
	tell("a tide is forecast", 10*time.Minute, offersLessBeforeATide)
	tell("online measures its latency", 10*time.Minute, obeysALatency)
	tell("reclaimed work fills a cell", 10*time.Minute, leavesAFullCell)
	tell("online grows next to a memory hog", 15*time.Minute, outlivesAHog)
	tell("a memory hog grows without end", 15*time.Minute, evictsBeforeTheKernel)
}

// probedCPUs are what the guest has while latency is measured: as many as the cores of a small machine, since a guest with more busy CPUs than the
// machine below has cores measures that machine's queues.
const probedCPUs = 2

// onlineCPUs gives the guest's kernel a number of CPUs.
func (c *cluster) onlineCPUs(t *testing.T, n int) {
	t.Helper()
	var script strings.Builder
	for i := 1; i < node.CPUs; i++ {
		fmt.Fprintf(&script, "echo %d >/sys/devices/system/cpu/cpu%d/online\n", map[bool]int{true: 1, false: 0}[i < n], i)
	}
	c.Script(t, script.String())
}

// spikes has online use the whole machine of a sudden, next to reclaimed work that fills it, and prints how soon the agent took the CPUs back.
func spikes(t *testing.T, c *cluster) {
	c.onlineCPUs(t, probedCPUs)
	c.startAgent(t)
	const busy, floor = probedCPUs, quotaFloor
	filler := c.Create(t, c.Pod("filler", "-spin", strconv.Itoa(busy)))
	quota := "cat /sys/fs/cgroup/kubepods/besteffort/cpu.max"
	c.Eventually(t, "reclaimed work has more than its floor", func(ctx context.Context) (bool, error) {
		out, err := c.Run(ctx, quota)
		cores, _, _ := strings.Cut(out, " ")
		n, _ := strconv.Atoi(cores)
		return n > 100000, err
	})
	begin, before := c.guestNow(t), c.agentWaited(t)
	c.Script(t, fmt.Sprintf(`d=%s; for i in $(seq %d); do setsid sh -c "echo \$\$ >$d/cgroup.procs; exec timeout 60 sh -c 'while :; do :; done'" >/dev/null 2>&1 & done`, cgroup(c.web), busy))
	started := c.guestNow(t).Sub(begin)
	c.Eventually(t, "reclaimed work is at its floor", func(ctx context.Context) (bool, error) {
		out, err := c.Run(ctx, quota)
		return strings.TrimSpace(out) == floor, err
	})
	waited := c.agentWaited(t) - before
	c.Eventually(t, "the journal has it", func(context.Context) (bool, error) {
		var first, last time.Duration
		n := 0
		for _, e := range c.written(t, begin) {
			if e.File != "cpu.max" {
				continue
			}
			if n++; n == 1 {
				first = e.At.Sub(begin)
			}
			if last = e.At.Sub(begin); e.New == floor {
				t.Logf("measure: online goes from idle to %d cores: the quota of reclaimed work is cut for the first time after %.2f s, and is at its floor after %.2f s and %d writes, by the guest's clock; of that, the shell took %.2f s to start it, and threads of the agent waited %.2f s for a CPU",
					busy, first.Seconds(), last.Seconds(), n, started.Seconds(), waited.Seconds())
				return true, nil
			}
		}
		return false, nil
	})
	c.remove(t, filler)
	c.onlineCPUs(t, node.CPUs)
}

// agentWaited is for how long a thread of the agent has waited for a CPU, in all.
func (c *cluster) agentWaited(t *testing.T) time.Duration {
	t.Helper()
	us, err := strconv.ParseInt(c.Script(t, `sed -n 's/^some.*total=//p' "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/$(pidof springtide-agent)/cgroup)/cpu.pressure"`), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(us) * time.Microsecond
}

// leavesAFullCell: a reclaimed pod grows on the cell to which a pod of online is bound, while the other cells are all but empty. Its memory is moved there,
// it runs on, and online loses no page.
func leavesAFullCell(t *testing.T, c *cluster) {
	c.startAgent(t) // no change where the story before did it
	address := c.agentAddress(t)
	const spareMiB = 200
	// The cell with the least page cache, and none that can be dropped: cache counts as free, and the kernel leaves that of mapped binaries there as long as other
	// cells have free pages, so that a cell with some of it is full and not low.
	var cell, free, cache int
	if _, err := fmt.Sscan(c.Script(t, `sync; echo 1 >/proc/sys/vm/drop_caches; for n in /sys/devices/system/node/node[0-9]*; do
		awk '/MemFree:/ {free = $4} /Inactive\(file\):/ {cache = $4} END {print $2, free, cache}' $n/meminfo; done | sort -nk 3 | head -n 1`), &cell, &free, &cache); err != nil {
		t.Fatal(err)
	}
	cpus := fmt.Sprintf("%d-%d", cell*node.CPUs/4, (cell+1)*node.CPUs/4-1)
	c.Took(t, fmt.Sprintf("cell %d has %d MiB free and %d MiB of page cache", cell, free>>10, cache>>10))
	bound := c.online("bound")
	bound.Annotations = map[string]string{shape.AnnotationCells: strconv.Itoa(cell)}
	bound.Spec.Containers[0].Args = []string{"-mib", strconv.Itoa(free>>10 - spareMiB)}
	bound = c.Create(t, bound)
	c.confined(t, bound, cpus, strconv.Itoa(cell))
	c.Eventually(t, "online has its memory", func(ctx context.Context) (bool, error) {
		return c.memory(t, bound)["anon"] >= int64(free>>10-spareMiB)<<20, nil
	})
	before, evictions := c.memory(t, bound), c.evictions(t, address)
	filler := c.Create(t, c.Pod("filler", "-grow", "16"))
	// The kernel takes memory of the cell on which a thread runs.
	c.Script(t, fmt.Sprintf("for task in $(cat %s/cgroup.threads); do taskset -pc %s $task; done", cgroup(filler), cpus))
	held := func() int64 {
		n, err := strconv.ParseInt(c.Script(t, fmt.Sprintf("sed -n 's/^anon .*N%d=\\([0-9]*\\).*/\\1/p' %s/memory.numa_stat", cell, cgroup(filler))), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	most := int64(0)
	c.Eventually(t, "reclaimed work leaves the cell", func(ctx context.Context) (bool, error) {
		most = max(most, held())
		m, err := c.agentMetrics(ctx, address)
		if err == nil && sum(m, "springtide_agent_evictions_total") > evictions {
			return false, fmt.Errorf("a pod was evicted, %d MiB of the cell were its own", most>>20)
		}
		return err == nil && m["springtide_agent_moved_pods"] > 0, nil //nolint:nilerr // a machine under pressure may answer late
	})
	begin := c.guestNow(t)
	c.Eventually(t, "its pages are moved", func(context.Context) (bool, error) { return held() < most/8, nil })
	t.Logf("measure: a reclaimed pod with %d MiB on a full cell held %d MiB there %.1f s after it was to leave", most>>20, held()>>20, c.guestNow(t).Sub(begin).Seconds())
	if mems, err := shape.ParseSet(c.Script(t, "cat "+cgroup(filler)+"/cpuset.mems.effective")); err != nil || mems.Has(cell) {
		t.Errorf("reclaimed work may still use memory of cells %s: %v", mems, err)
	}
	if now := c.evictions(t, address); now != evictions {
		t.Errorf("%v pods were evicted", now-evictions)
	}
	c.keptItsPages(t, bound, before)
	c.remove(t, filler)
	c.remove(t, bound)
}

// outlivesAHog: reclaimed work with page cache fills its memory box, then online grows into it. The box shrinks, which takes the hog's page cache; what is
// left is in the way of online, and the agent evicts the hog. The kernel takes no page of online's, and ends no process by itself.
func outlivesAHog(t *testing.T, c *cluster) {
	c.startAgent(t) // no change where the story before did it
	c.Eventually(t, "reclaimed work has a memory box", func(ctx context.Context) (bool, error) {
		_, err := c.Run(ctx, "! grep max "+reclaimedGroup+"/memory.high")
		return err == nil, nil //nolint:nilerr // not written yet
	})
	address := c.agentAddress(t)
	web := c.online("cache")
	web.Spec.Containers[0].Args = []string{"-mib", "64", "-file", "96", "-again", "1s"}
	web.Spec.Containers[0].Resources = requests("500m", "256Mi")
	web = c.Create(t, web)
	c.Eventually(t, "online has its memory and its file in the page cache", func(ctx context.Context) (bool, error) {
		m := c.memory(t, web)
		return m["file"] >= 96<<20 && m["anon"] >= 64<<20, nil
	})
	room := c.boxNow(t).limit
	// Over all cells: a cell that is full evicts before the box is.
	hog := c.Create(t, c.Pod("hog", "-interleave", "-mib", strconv.Itoa(int(room>>20)*88/100), "-file", strconv.Itoa(int(room>>20)*12/100)))
	c.Eventually(t, "the hog fills the box", func(ctx context.Context) (bool, error) {
		b := c.boxNow(t)
		return b.used >= b.high/100*98 && b.cache >= 32<<20, nil
	})
	full, before, evictions := c.boxNow(t), c.memory(t, web), c.evictions(t, address)
	c.Took(t, "before online grows: "+full.String())
	begin := c.guestNow(t)
	// As fast as the agent and the kubelet of an emulated machine can still follow.
	grower := c.online("grower")
	grower.Spec.Containers[0].Args = []string{"-interleave", "-grow", "4"}
	grower = c.Create(t, grower)
	last := full
	c.Eventually(t, "the agent evicts the hog", func(ctx context.Context) (bool, error) {
		if m, err := c.agentMetrics(ctx, address); err == nil && sum(m, "springtide_agent_evictions_total") > evictions {
			return true, nil
		}
		last = c.boxNow(t)
		return false, nil
	})
	c.Took(t, "at the eviction: "+last.String())
	grown := c.memory(t, grower)["anon"]
	c.remove(t, grower)
	c.isGone(t, hog)
	took := c.guestNow(t).Sub(begin)
	if last.high >= full.high {
		t.Errorf("online grew, and high of the box went from %d to %d", full.high, last.high)
	}
	if last.cache >= full.cache/2 {
		t.Errorf("the hog was evicted with %d of its %d bytes of page cache", last.cache, full.cache)
	}
	c.keptItsPages(t, web, before)
	if now := c.boxNow(t); now.kills != full.kills {
		t.Errorf("the kernel ended %d processes of the box", now.kills-full.kills)
	}
	t.Logf("measure: online grew by %d MiB into a full box; %.1f s after it began to, the hog was gone; its page cache went from %d to %d MiB; pages of online that the kernel took: %d",
		grown>>20, took.Seconds(), full.cache>>20, last.cache>>20, c.memory(t, web)["pgsteal"]-before["pgsteal"])
	c.remove(t, web)
}

// evictsBeforeTheKernel: a reclaimed pod grows until its box is full. The kernel slows it down, and the agent evicts it before the kernel ends it.
func evictsBeforeTheKernel(t *testing.T, c *cluster) {
	c.startAgent(t)
	address := c.agentAddress(t)
	before, evictions := c.boxNow(t), c.evictions(t, address)
	begin := c.guestNow(t)
	hog := c.Create(t, c.Pod("grower", "-grow", "64"))
	last := before
	c.Eventually(t, "the agent evicts the pod", func(ctx context.Context) (bool, error) {
		last = c.boxNow(t)
		m, err := c.agentMetrics(ctx, address)
		return err == nil && sum(m, "springtide_agent_evictions_total") > evictions, nil //nolint:nilerr // a machine under pressure may answer late
	})
	c.Took(t, "at the eviction: "+last.String())
	c.isGone(t, hog)
	if now := c.boxNow(t); now.kills != before.kills {
		t.Errorf("the kernel ended %d processes of the box before the agent evicted the pod", now.kills-before.kills)
	}
	t.Logf("measure: a pod that grows by 64 MiB a second was gone %.1f s after it was made; processes that the kernel ended: %d", c.guestNow(t).Sub(begin).Seconds(), c.boxNow(t).kills-before.kills)
}

const reclaimedGroup = "/sys/fs/cgroup/kubepods/besteffort"

// memoryBox is the memory box of reclaimed work as the kernel has it.
type memoryBox struct {
	limit, high, used, cache int64
	// kills counts processes that the kernel ended there, also in cgroups that are gone.
	kills int64
}

func (b memoryBox) String() string {
	return fmt.Sprintf("the box has %d MiB, high at %d; %d MiB are used, of which %d are page cache; the kernel ended %d processes", b.limit>>20, b.high>>20, b.used>>20, b.cache>>20, b.kills)
}

func (c *cluster) boxNow(t *testing.T) memoryBox {
	t.Helper()
	out := c.Script(t, "cd "+reclaimedGroup+"; cat memory.max memory.high memory.current; sed -n 's/^oom_kill //p' memory.events; sed -n 's/^[a-z]*active_file //p' memory.stat")
	n := make([]int64, 6)
	for i, f := range strings.Fields(out) {
		n[i], _ = strconv.ParseInt(f, 10, 64) // "max" is 0
	}
	return memoryBox{limit: n[0], high: n[1], used: n[2], kills: n[3], cache: n[4] + n[5]}
}

// evictions is how many pods the agent has evicted so far.
func (c *cluster) evictions(t *testing.T, address string) float64 {
	t.Helper()
	m, err := c.agentMetrics(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return sum(m, "springtide_agent_evictions_total")
}

// keptItsPages checks that the kernel took nothing of a pod's memory.
func (c *cluster) keptItsPages(t *testing.T, pod *corev1.Pod, before map[string]int64) {
	t.Helper()
	after := c.memory(t, pod)
	// A process gives anonymous memory back by itself, as Go's heap does. Memory that the kernel takes is in pgsteal,
	// and page cache that went another way in file.
	if stolen := after["pgsteal"] - before["pgsteal"]; stolen != 0 || after["file"] < before["file"] {
		t.Errorf("the kernel took pages of online's: pgsteal rose by %d, anon %d to %d, file %d to %d", stolen, before["anon"], after["anon"], before["file"], after["file"])
	}
	for _, file := range []string{"oom_kill ", "oom_group_kill "} {
		if out := c.Script(t, "grep '^"+file+"' "+cgroup(pod)+"/memory.events"); !strings.HasSuffix(out, " 0") {
			t.Errorf("online: %s", out)
		}
	}
}

// memory reads the numbers of a container's memory.stat.
func (c *cluster) memory(t *testing.T, pod *corev1.Pod) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for line := range strings.Lines(c.Script(t, "cat "+cgroup(pod)+"/memory.stat")) {
		if f := strings.Fields(line); len(f) == 2 {
			out[f[0]], _ = strconv.ParseInt(f[1], 10, 64)
		}
	}
	return out
}
