package node

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/lab/node/nodetest"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// socketOne is what the kernel says of a process that may run on socket 1 alone.
const socketOne = "Cpus_allowed_list: 4-7, Mems_allowed_list: 2-3"

// TestAgent tells the stories of one real node with the agent on it, one after another: each lends socket 1 and takes it home again.
func TestAgent(t *testing.T) {
	img := nodetest.Image(t)
	p := planetest.Start(t, plane.Options{})
	c := newCluster(t, nodetest.Start(t, img, p, "real-1", map[string]string{labelPool: onlinePool}), p)
	c.web = c.Create(t, c.online("web"))
	c.confined(t, c.web, "0-7", "0-3")
	if cost := c.Script(t, "cat /sys/fs/cgroup/io.cost.qos"); !strings.Contains(cost, c.disk(t)+" enable=1") {
		t.Errorf("io.cost.qos after the agent began: %s", cost)
	}
	for _, story := range []struct {
		name string
		tell func(*testing.T, *cluster)
	}{
		{"a pod is resized in place", resizesInPlace},
		{"annotations are nonsense", readsNonsense},
		{"cgroups are read-only, and a controller is missing", losesCgroups},
		{"the API server is gone", losesTheAPIServer},
		{"many containers start while the agent dies and returns", startsMany},
		{"containerd and the kubelet start again", restartsRuntimeAndKubelet},
		{"the agent is killed again and again", killsTheAgent},
	} {
		if !t.Run(story.name, func(t *testing.T) { story.tell(t, c) }) {
			break // the next one would begin in the middle of a loan
		}
	}
}

// noMemoryOn checks that a container holds no anonymous memory on some memory nodes.
func (c *cluster) noMemoryOn(t *testing.T, pod *corev1.Pod, nodes ...int) {
	t.Helper()
	line := c.Script(t, "grep '^anon ' "+cgroup(pod)+"/memory.numa_stat")
	for _, n := range nodes {
		if !strings.Contains(line+" ", fmt.Sprintf(" N%d=0 ", n)) {
			t.Errorf("pod %s has memory on node %d: %s", pod.Name, n, line)
		}
	}
}
