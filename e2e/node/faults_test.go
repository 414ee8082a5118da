package node

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/plane"
)

// resizesInPlace: the kubelet writes a running container's shares again, and its cpuset stays.
func resizesInPlace(t *testing.T, c *cluster) {
	c.lend(t)
	c.confined(t, c.web, "0-3", "0-1")
	stop := c.watch(t, "resize", c.web)
	weight := c.Script(t, "cat "+cgroup(c.web)+"/cpu.weight")
	patch := `{"spec":{"containers":[{"name":"work","resources":{"requests":{"cpu":"1500m"}}}]}}`
	if _, err := c.Client.CoreV1().Pods(c.web.Namespace).Patch(t.Context(), c.web.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize"); err != nil {
		t.Fatal(err)
	}
	c.Eventually(t, "the pod has its new request", func(ctx context.Context) (bool, error) {
		pod, err := c.Client.CoreV1().Pods(c.web.Namespace).Get(ctx, c.web.Name, metav1.GetOptions{})
		if err != nil || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].Resources == nil {
			return false, err
		}
		return pod.Status.ContainerStatuses[0].Resources.Requests.Cpu().MilliValue() == 1500, nil
	})
	if now := c.Script(t, "cat "+cgroup(c.web)+"/cpu.weight"); now == weight {
		t.Errorf("cpu.weight is still %s: nothing was resized", now)
	}
	if got := stop()[c.web.Name]; got != "0-3" {
		t.Errorf("during the resize the pod was on CPUs %q, want 0-3 all along", got)
	}
	c.recall(t)
	c.takeHome(t)
}

// readsNonsense: malformed annotations count as absent. The pod is confined as its side is, and the agent goes on.
func readsNonsense(t *testing.T, c *cluster) {
	c.lend(t)
	before := c.restarts(t)
	pod := c.offline("nonsense")
	pod.Annotations = map[string]string{
		shape.AnnotationCells: "7-3,banana", shape.AnnotationClass: "royal", fleet.AnnotationNUMA: strings.Repeat("x", 10000), shape.AnnotationOOMPriority: "1e9",
		shape.AnnotationTolerance: "-1", "katalyst.kubewharf.io/memory_enhancement": "{", "katalyst.kubewharf.io/cpu_enhancement": `[1,{"a":null}]`,
	}
	pod = c.Create(t, pod)
	c.confined(t, pod, "4-7", "2-3")
	if after := c.restarts(t); after != before {
		t.Errorf("the agent has started %d times, before the pod %d", after, before)
	}
	c.recall(t)
	c.remove(t, pod)
	c.takeHome(t)
}

// restarts is how often the agent's container was started again.
func (c *cluster) restarts(t *testing.T) int32 {
	t.Helper()
	pods, err := c.Client.CoreV1().Pods("springtide-agent").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d agents, %v", len(pods.Items), err)
	}
	return pods.Items[0].Status.ContainerStatuses[0].RestartCount
}

var outage = flag.Duration("outage", 10*time.Minute, "how long the API server is gone")

// losesTheAPIServer: while the API server is gone the last share holds, also after a restart of the agent and against writes of others. When it is
// back, nothing has to be written: the machine is as the share wants it all along, and the next change is carried out as any other.
func losesTheAPIServer(t *testing.T, c *cluster) {
	c.lend(t)
	job := c.Create(t, c.offline("job"))
	c.confined(t, job, "4-7", "2-3")
	begin := time.Now()
	if err := c.plane.StopComponent(plane.APIServer); err != nil {
		t.Fatal(err)
	}
	c.Took(t, "the API server is gone")
	stop := c.watch(t, "outage", c.web)
	c.Script(t, `old=$(pidof springtide-agent); kill -9 $old; until now=$(pidof springtide-agent) && [ "$now" != "$old" ]; do sleep 0.5; done`)
	c.Took(t, "the agent runs again, without an API server")
	c.Script(t, fmt.Sprintf("d=%s; echo 0-7 >${d%%/*}/cpuset.cpus; echo 0-7 >$d/cpuset.cpus; cat $d/cpuset.cpus.effective", cgroup(job)))
	c.confined(t, job, "4-7", "2-3")
	// The kernel confines by the pod's own group already while the container's is still to be written.
	c.eventuallyRuns(t, "both files are as they were", fmt.Sprintf(`d=%s; [ "$(cat ${d%%/*}/cpuset.cpus)" = 4-7 ] && [ "$(cat $d/cpuset.cpus)" = 4-7 ] && sleep 5`, cgroup(job)))
	restored := c.guestNow(t)
	stopJob := c.watch(t, "outage", job)
	c.Script(t, fmt.Sprintf("sleep %d", int(max(*outage-time.Since(begin), 0).Seconds())))
	if err := c.plane.StartComponent(t.Context(), plane.APIServer); err != nil {
		t.Fatal(err)
	}
	c.Took(t, "the API server is back")
	back := time.Now()
	c.Eventually(t, "the agent has renewed its Lease", func(ctx context.Context) (bool, error) {
		lease, err := c.Client.CoordinationV1().Leases("springtide-system").Get(ctx, v1alpha1.AgentLeasePrefix+c.Name, metav1.GetOptions{})
		return err == nil && lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(back), nil
	})
	renewed := time.Since(back)
	c.cycles(t, 1)
	seen := stop()
	seen[job.Name] = stopJob()[job.Name]
	c.stays(t, seen, job)
	for _, e := range c.written(t, restored) {
		if strings.HasPrefix(e.File, "cpuset.") {
			t.Errorf("nothing has changed, and the agent wrote %s of %s: %s", e.File, e.Path, e.New)
		}
	}
	t.Logf("measure: the API server was gone for %.0f s; cpusets written from the repair to a whole cycle after its return: none; the Lease was renewed %.1f s after it",
		back.Sub(begin).Seconds(), renewed.Seconds())
	c.recall(t)
	c.remove(t, job)
	c.takeHome(t)
}

// losesCgroups: cgroups that are read-only, and a controller that is missing, are conditions of the share. The agent goes on, and does again what
// it can once they are back.
func losesCgroups(t *testing.T, c *cluster) {
	c.lend(t)
	c.condition(t, "CPUSets", metav1.ConditionTrue, "Available")
	c.condition(t, "IOWeight", metav1.ConditionTrue, "Available")
	before := c.restarts(t)
	// Controllers go from the leaves upwards and come back from the root downwards.
	c.Script(t, `find /sys/fs/cgroup/kubepods -depth -type d | while read d; do echo -io >$d/cgroup.subtree_control; done; echo -io >/sys/fs/cgroup/cgroup.subtree_control`)
	c.condition(t, "IOWeight", metav1.ConditionFalse, "NoController")
	c.confined(t, c.web, "0-3", "0-1")
	c.Script(t, `for d in /sys/fs/cgroup $(find /sys/fs/cgroup/kubepods -type d); do echo +io >$d/cgroup.subtree_control; done 2>/dev/null; true`)
	c.condition(t, "IOWeight", metav1.ConditionTrue, "Available")
	if after := c.restarts(t); after != before {
		t.Errorf("the agent has started %d times, before the controller went %d", after, before)
	}
	c.mountCgroups(t, true)
	c.condition(t, "CPUSets", metav1.ConditionFalse, "ReadOnly")
	c.confined(t, c.web, "0-3", "0-1")
	if n := c.restarts(t); n != 0 {
		t.Errorf("on read-only cgroups the agent started %d times again", n)
	}
	c.mountCgroups(t, false)
	c.condition(t, "CPUSets", metav1.ConditionTrue, "Available")
	c.recall(t)
	c.takeHome(t)
}

// mountCgroups has the agent's pod made again with its cgroups mounted read-only, or not.
func (c *cluster) mountCgroups(t *testing.T, readOnly bool) {
	t.Helper()
	sets := c.Client.AppsV1().DaemonSets("springtide-agent")
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"agent","volumeMounts":[{"mountPath":"/sys/fs/cgroup","name":"cgroup","readOnly":%t}]}]}}}}`, readOnly)
	set, err := sets.Patch(t.Context(), "springtide-agent", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Eventually(t, fmt.Sprintf("the agent's pod is made again, read-only %t", readOnly), func(ctx context.Context) (bool, error) {
		now, err := sets.Get(ctx, set.Name, metav1.GetOptions{})
		if err != nil || now.Status.ObservedGeneration < set.Generation || now.Status.UpdatedNumberScheduled != 1 {
			return false, err
		}
		pods, err := c.Client.CoreV1().Pods("springtide-agent").List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning, err
	})
}

// condition waits for a condition of the machine's share.
func (c *cluster) condition(t *testing.T, kind string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	last := ""
	c.Eventually(t, fmt.Sprintf("condition %s is %s, %s", kind, status, reason), func(ctx context.Context) (bool, error) {
		s, err := c.nodeShare(ctx)
		if err != nil {
			return false, err
		}
		now := meta.FindStatusCondition(s.Status.Conditions, kind)
		if now == nil {
			return false, nil
		}
		if said := string(now.Status) + " " + now.Reason + ": " + now.Message; said != last {
			last = said
			c.Took(t, kind+" "+said)
		}
		return now.Status == status && now.Reason == reason, nil
	})
}
