package node

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/agent/notice"
	"github.com/springtide/springtide/api/v1alpha1"
)

// quotaFloor is the quota of reclaimed work at its floor.
const quotaFloor = "50000 100000"

// metric waits for a value of one of the agent's metrics.
func (c *cluster) metric(t *testing.T, address, series string, ok func(float64) bool) {
	t.Helper()
	last := -1.0
	c.Eventually(t, "the agent's "+series, func(ctx context.Context) (bool, error) {
		m, err := c.agentMetrics(ctx, address)
		if v, there := m[series]; err == nil && there && v != last {
			last = v
			c.Took(t, fmt.Sprintf("%s is %g", series, v))
		}
		return err == nil && last >= 0 && ok(last), nil //nolint:nilerr // a machine under pressure may answer late
	})
}

// offered is the idle CPU that the node offers, in thousandths of a core.
func (c *cluster) offered(ctx context.Context) (int64, error) {
	n, err := c.Client.CoreV1().Nodes().Get(ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	q := n.Status.Allocatable[v1alpha1.ResourceReclaimedCPU]
	return q.Value(), nil
}

// offersLessBeforeATide: the growth that the controller writes on the share takes the offer to the scheduler away and leaves the quota of what runs. The
// offer comes back with the annotation gone.
func offersLessBeforeATide(t *testing.T, c *cluster) {
	c.startAgent(t) // no change where the story before did it
	address := c.agentAddress(t)
	c.share(t, onlinePool, "", 0)
	tide := c.online("tide")
	tide.Spec.Containers[0].Args = []string{"-spin", "1"}
	tide = c.Create(t, tide)
	grow := func(text string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.AnnotationOnlineGrowth, text)
		if _, err := c.dynamic.Resource(v1alpha1.GroupVersion.WithResource("nodeshares")).Patch(t.Context(), c.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	offers := func(what string, ok func(milli int64) bool) {
		t.Helper()
		last := int64(-1)
		c.Eventually(t, what, func(ctx context.Context) (bool, error) {
			n, err := c.offered(ctx)
			if err == nil && n != last {
				last = n
				c.Took(t, fmt.Sprintf("the node offers %d thousandths of a core", n))
			}
			return err == nil && ok(n), err
		})
	}
	offers("the node offers idle CPU", func(milli int64) bool { return milli > 1000 })
	begin := c.guestNow(t)
	// The pod alone uses a core, and nine more are not there.
	grow(`"10"`)
	offers("nothing is offered before the tide", func(milli int64) bool { return milli == 0 })
	took := c.guestNow(t).Sub(begin)
	c.metric(t, address, "springtide_agent_reclaimed_quota_cores", func(cores float64) bool { return cores > 0.5 })
	grow("null")
	offers("the offer is back", func(milli int64) bool { return milli > 1000 })
	t.Logf("measure: a forecast growth of ten times took the whole offer away %.1f s after it was written", took.Seconds())
	c.remove(t, tide)
}

// obeysALatency: a pod of online writes its latency and the limit of it to its volume. Beyond the limit reclaimed work is cut to its floor, and a
// pod that falls silent is a stale signal.
func obeysALatency(t *testing.T, c *cluster) {
	c.startAgent(t)
	address := c.agentAddress(t)
	pod := c.online("measures")
	pod.Spec.Containers[0].Args = []string{"-mib", "16"}
	pod.Spec.Volumes = []corev1.Volume{{Name: notice.Volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: notice.Volume, MountPath: "/answers"}}
	pod = c.Create(t, pod)
	file := notice.Dir("/var/lib/kubelet", string(pod.UID)) + "/" + notice.FileLatency
	filler := c.Create(t, c.Pod("filler", "-spin", "4"))
	quota := "cat " + reclaimedGroup + "/cpu.max"
	c.Eventually(t, "reclaimed work has more than its floor", func(ctx context.Context) (bool, error) {
		out, err := c.Run(ctx, quota)
		return strings.TrimSpace(out) != quotaFloor, err
	})
	c.Script(t, fmt.Sprintf("echo '0.50 0.25' >/tmp/latency; rm -f /tmp/latency.end; setsid sh -c 'while [ ! -e /tmp/latency.end ]; do cp /tmp/latency %s; sleep 1; done' >/dev/null 2>&1 &", file))
	begin := c.guestNow(t)
	const indicator = `springtide_agent_indicator{indicator="latency"}`
	c.metric(t, address, indicator, func(ratio float64) bool { return ratio == 2 })
	c.Eventually(t, "reclaimed work is at its floor", func(ctx context.Context) (bool, error) {
		out, err := c.Run(ctx, quota)
		return strings.TrimSpace(out) == quotaFloor, err
	})
	t.Logf("measure: online at twice its latency's limit: reclaimed work is at its floor %.1f s after the pod wrote it", c.guestNow(t).Sub(begin).Seconds())
	c.Script(t, "echo '0.10 0.25' >/tmp/latency")
	c.metric(t, address, indicator, func(ratio float64) bool { return ratio == 0.4 })
	c.Script(t, "touch /tmp/latency.end")
	c.metric(t, address, "springtide_agent_stale_signals", func(n float64) bool { return n == 1 })
	c.remove(t, filler)
	c.remove(t, pod)
}

// knowsItsWriters: what the agent's choice of files depends on. Without an agent the kubelet writes the weights of its
// QoS cgroups again once a minute, and leaves the others; where cpu.idle is 1 the kernel refuses cpu.weight.
func knowsItsWriters(t *testing.T, c *cluster) {
	pod := c.Create(t, c.Pod("marked"))
	marks := c.Script(t, fmt.Sprintf(`d=%s; p=${d%%/*}; q=/sys/fs/cgroup/kubepods
cat $q/memory.max $q/cpu.weight >/tmp/marks
echo 7 >$q/besteffort/cpu.weight; echo 7 >$q/burstable/cpu.weight
echo 8 >$q/cpu.weight; echo 1073741824 >$q/memory.max; echo 1073741824 >$q/besteffort/memory.high
echo 9 >$p/cpu.weight; echo 0-3 >$p/cpuset.cpus; echo 0-1 >$d/cpuset.cpus; echo 10 >$d/cpu.weight
sleep 75
cd $q; grep . besteffort/cpu.weight burstable/cpu.weight; echo --
cat cpu.weight memory.max besteffort/memory.high $p/cpu.weight $p/cpuset.cpus $d/cpuset.cpus $d/cpu.weight; echo --
echo 1 >$p/cpu.idle; (echo 11 >$p/cpu.weight) 2>&1 && echo written; true`, cgroup(pod)))
	parts := strings.Split(marks, "--")
	if len(parts) != 3 || strings.Contains(parts[0], ":7\n") {
		t.Fatalf("after more than a minute the weights of the QoS cgroups are as they were marked: %s", marks)
	}
	if got := strings.Join(strings.Fields(parts[1]), " "); got != "8 1073741824 1073741824 9 0-3 0-1 10" {
		t.Errorf("the kubelet wrote what it is to leave alone: %s", got)
	}
	if strings.Contains(parts[2], "written") {
		t.Errorf("cpu.weight is written where cpu.idle is 1: %s", parts[2])
	}
	c.Script(t, "cd /sys/fs/cgroup/kubepods; { read max; read weight; } </tmp/marks; echo $max >memory.max; echo $weight >cpu.weight; echo max >besteffort/memory.high")
	c.remove(t, pod)
}
