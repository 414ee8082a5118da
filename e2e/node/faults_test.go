package node

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/agent/shape"
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
		shape.AnnotationCells: "7-3,banana", shape.AnnotationClass: "royal", shape.AnnotationNUMA: strings.Repeat("x", 10000), shape.AnnotationOOMPriority: "1e9",
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
