package node

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/agent/shape"
)

// measured is how a pod of online fared for some seconds.
type measured struct {
	// wait is the share of the time that its threads were runnable in which they waited in a run queue, by schedstat; stall the share of time in which one of
	// them waited, by the pressure of its cgroup; share what it got of the machine's CPUs.
	wait, stall, share float64
}

func (m measured) String() string {
	return fmt.Sprintf("%8.3f %8.3f %8.3f", m.wait, m.stall, m.share)
}

// measuredFor is how long one measurement lasts, by the guest's clock.
const measuredFor = 10

// fares measures a pod that wants all CPUs. The emulation slows all threads of the guest alike, and these are ratios of what the guest's kernel counts.
func (c *cluster) fares(t *testing.T, pod *corev1.Pod) measured {
	t.Helper()
	// Of schedstat: the time on a CPU and the time in a run queue, in nanoseconds. Threads that came or went meanwhile do not count.
	out := c.Script(t, fmt.Sprintf(`d=%s
read_all() {
	for p in $(cat $d/cgroup.procs); do for f in /proc/$p/task/*/schedstat; do echo "thread $f $(cat $f)"; done; done
	echo "stall $(sed -n 's/^some.*total=//p' $d/cpu.pressure)"
	echo "used $(sed -n 's/^usage_usec //p' $d/cpu.stat)"
	echo "now $(cut -d' ' -f1 /proc/uptime)"
}
read_all; sleep %d; read_all`, cgroup(pod), measuredFor))
	type counters struct{ stall, used, now float64 }
	first := map[string][2]float64{}
	var at [2]counters
	var run, wait float64
	n := 0
	for line := range strings.Lines(out) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "thread" {
			var name string
			var x, y float64
			if _, err := fmt.Sscan(rest, &name, &x, &y); err != nil {
				continue // it ended in between
			}
			if was, ok := first[name]; ok && n == 1 {
				run, wait = run+x-was[0], wait+y-was[1]
			} else if n == 0 {
				first[name] = [2]float64{x, y}
			}
			continue
		}
		value, err := strconv.ParseFloat(rest, 64)
		if err != nil {
			t.Fatalf("%q is no measurement: %v", line, err)
		}
		switch kind {
		case "stall":
			at[n].stall = value
		case "used":
			at[n].used = value
		case "now":
			at[n].now, n = value, 1
		}
	}
	elapsed := 1e6 * (at[1].now - at[0].now)
	if elapsed <= 0 || run+wait <= 0 {
		t.Fatalf("nothing was measured: %s", out)
	}
	return measured{wait: wait / (run + wait), stall: (at[1].stall - at[0].stall) / elapsed, share: (at[1].used - at[0].used) / elapsed / probedCPUs}
}

// often is the median of some measurements, each value by itself.
func (c *cluster) often(t *testing.T, pod *corev1.Pod) measured {
	t.Helper()
	var all [3][]float64
	for range *runs {
		m := c.fares(t, pod)
		for i, x := range []float64{m.wait, m.stall, m.share} {
			all[i] = append(all[i], x)
		}
	}
	for i := range all {
		slices.Sort(all[i])
	}
	mid := *runs / 2
	return measured{all[0][mid], all[1][mid], all[2][mid]}
}

// The bounds: with the agent, antagonists that fill the machine twice take so little of what online gets while they stand still, and its threads wait for a
// CPU no more than so much longer. Next to pods with requests of their own, whose weight is that of any other pod without the agent, they add less than half
// of the wait that they add without.
const (
	leastShare = 0.85
	mostWait   = 0.10
	lessWait   = 0.5
)

// still stops the processes of some pods, and goes lets them go on. Between the measurements nothing spins: on an emulated guest of two CPUs, a pod that
// starts or ends next to six threads that spin takes minutes.
func (c *cluster) still(t *testing.T, pods ...*corev1.Pod) { c.freezes(t, 1, pods) }

func (c *cluster) goes(t *testing.T, pods ...*corev1.Pod) { c.freezes(t, 0, pods) }

func (c *cluster) freezes(t *testing.T, value int, pods []*corev1.Pod) {
	t.Helper()
	var script strings.Builder
	for _, pod := range pods {
		fmt.Fprintf(&script, "d=%s; [ ! -e $d ] || echo %d >$d/cgroup.freeze\n", cgroup(pod), value)
	}
	c.Script(t, script.String())
}

// suffersAnAntagonist measures online that wants all CPUs next to pods that stand still and next to the same pods spinning, without the agent and with it:
// BestEffort pods, which get cpu.idle and a quota, and reclaimed pods that request CPU, which get the least weight and the same quota. So what the kubelet,
// the runtime and the agent take of an emulated machine is in both. The guest has two CPUs, as many as a small machine below. The agent may evict an
// antagonist: online does wait for CPUs.
func suffersAnAntagonist(t *testing.T, c *cluster) {
	c.onlineCPUs(t, probedCPUs)
	defer c.onlineCPUs(t, 8)
	busy := c.online("busy")
	busy.Spec.Containers[0].Args = []string{"-spin", fmt.Sprint(probedCPUs)}
	busy = c.Create(t, busy)
	c.still(t, busy)
	table := []string{fmt.Sprintf("%-8s %-36s %8s %8s %8s", "agent", "next to", "wait", "stall", "share")}
	kinds := []struct {
		name    string
		request string
	}{{"4 BestEffort pods", ""}, {"4 reclaimed pods of 500m", "500m"}}
	without := map[string]float64{} // the wait that antagonists add
	for _, agent := range []bool{false, true} {
		name := "without"
		if agent {
			name = "with"
			c.startAgent(t)
		}
		for k, kind := range kinds {
			var made []*corev1.Pod
			for i := range 2 * probedCPUs {
				pod := c.Pod(fmt.Sprintf("antagonist-%t-%d-%d", agent, k, i), "-spin", "1")
				if kind.request != "" {
					pod.Annotations = map[string]string{shape.AnnotationClass: string(shape.Reclaimed)}
					pod.Spec.Containers[0].Resources = requests(kind.request, "16Mi")
				}
				made = append(made, c.Create(t, pod))
				c.still(t, made[i])
			}
			c.goes(t, busy)
			if agent {
				c.squeezed(t, made, kind.request != "")
			}
			quiet := c.often(t, busy)
			c.goes(t, made...)
			got := c.often(t, busy)
			c.still(t, append(made, busy)...)
			table = append(table, fmt.Sprintf("%-8s %-36s %s", name, kind.name+", still", quiet), fmt.Sprintf("%-8s %-36s %s", name, kind.name+", spinning", got))
			switch added := got.wait - quiet.wait; {
			case !agent:
				without[kind.name] = added
			case got.share < leastShare*quiet.share || added > mostWait:
				t.Errorf("next to %s, with the agent, online gets %.3f of the CPUs and waits %.3f of the time; while they stand still it gets %.3f and waits %.3f", kind.name, got.share, got.wait, quiet.share, quiet.wait)
			case kind.request != "" && added > lessWait*without[kind.name]:
				t.Errorf("%s add %.3f to the wait of online with the agent and %.3f without", kind.name, added, without[kind.name])
			}
			for _, pod := range made { // a process that is to end is killed where it stands still
				c.removeIfThere(t, pod)
			}
		}
	}
	t.Logf("measure: online that wants %d CPUs of %d, median of %d times %d s: share of the runnable time in a run queue, of the time under pressure, of the CPUs:\n%s",
		probedCPUs, probedCPUs, *runs, measuredFor, strings.Join(table, "\n"))
	c.remove(t, busy)
}

// squeezed waits until the kernel has what the agent gives reclaimed pods: cpu.idle where the kubelet cannot be in the way, the least weight elsewhere,
// and one quota for all.
func (c *cluster) squeezed(t *testing.T, pods []*corev1.Pod, requests bool) {
	t.Helper()
	var script strings.Builder
	for _, pod := range pods {
		if requests {
			fmt.Fprintf(&script, "d=%s; d=${d%%/*}; [ $(cat $d/cpu.weight) = 1 ] && ! grep -q max $d/cpu.max || exit 1\n", cgroup(pod))
		} else {
			fmt.Fprintf(&script, "d=%s; d=${d%%/*}; [ $(cat $d/cpu.idle) = 1 ] && ! grep -q max $d/../cpu.max || exit 1\n", cgroup(pod))
		}
	}
	c.eventuallyRuns(t, "the kernel has what the agent gives reclaimed pods", script.String())
	// Together they have no more than the floor, next to online that wants all.
	sum := `total=0; for d in `
	for _, pod := range pods {
		if requests {
			sum += "$(dirname " + cgroup(pod) + ") "
		}
	}
	sum += reclaimedGroup + `; do total=$((total + $(cut -d' ' -f1 $d/cpu.max))); done; [ $total -le 60000 ]`
	c.eventuallyRuns(t, "all of reclaimed work has no more than its floor", sum)
}
