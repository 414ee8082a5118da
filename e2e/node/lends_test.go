package node

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	for _, story := range []struct {
		name string
		tell func(*testing.T, *cluster)
	}{
		{"a socket is lent, and recalled from a pod that goes", lendsAndRecalls},
		{"a socket is recalled from a process that ignores it", recallsFromTheDeaf},
		{"a pod is resized in place", resizesInPlace},
		{"annotations are nonsense", readsNonsense},
		{"containerd and the kubelet start again", restartsRuntimeAndKubelet},
		{"the agent is killed again and again", killsTheAgent},
	} {
		if !t.Run(story.name, func(t *testing.T) { story.tell(t, c) }) {
			break // the next one would begin in the middle of a loan
		}
	}
}

// lendsAndRecalls: online is confined before the socket is Clean, offline runs on the lent socket from its first instruction on and nowhere else,
// and on the recall the agent names who is still there.
func lendsAndRecalls(t *testing.T, c *cluster) {
	c.lend(t)
	c.confined(t, c.web, "0-3", "0-1")
	c.noMemoryOn(t, c.web, 2, 3)
	job := c.Create(t, c.offline("job"))
	if got := c.firstWords(t, job); !strings.Contains(got, socketOne) {
		t.Errorf("the offline pod starts with %q, want it on socket 1 from its first instruction on", got)
	}
	c.confined(t, job, "4-7", "2-3")
	only(t, job, c.ranOn(t, job, 10), 1)
	only(t, c.web, c.ranOn(t, c.web, 5), 0)
	c.noMemoryOn(t, job, 0, 1)
	c.Took(t, "offline ran on socket 1 alone, online on socket 0 alone")

	c.recall(t)
	c.Eventually(t, "the agent names who holds the recall up", func(ctx context.Context) (bool, error) {
		r, err := c.report(ctx)
		return err == nil && r != nil && r.Epoch == c.epoch && !r.Clean && strings.Contains(fmt.Sprint(r.Occupants), "default/job"), err
	})
	c.confined(t, job, "4-7", "2-3") // it saves its work where it is
	c.remove(t, job)
	c.takeHome(t)
}

// recallsFromTheDeaf: Clean waits for the kubelet's kill.
func recallsFromTheDeaf(t *testing.T, c *cluster) {
	c.lend(t)
	deaf := c.offline("deaf", "-deaf")
	grace := int64(15)
	deaf.Spec.TerminationGracePeriodSeconds = &grace
	deaf = c.Create(t, deaf)
	c.confined(t, deaf, "4-7", "2-3")
	c.recall(t)
	if err := c.Client.CoreV1().Pods(deaf.Namespace).Delete(t.Context(), deaf.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	procs := "cat " + cgroup(deaf) + "/cgroup.procs 2>/dev/null | wc -l"
	c.Eventually(t, "the deaf process is gone", func(ctx context.Context) (bool, error) {
		r, err := c.report(ctx)
		if err != nil {
			return false, err
		}
		// The process is looked at after the report: one that is there now was there then.
		left, err := c.Run(ctx, procs)
		if err == nil && strings.TrimSpace(left) != "0" && r != nil && r.Epoch == c.epoch && r.Clean {
			return false, fmt.Errorf("socket 1 is reported Clean while %s processes of the deaf pod run", strings.TrimSpace(left))
		}
		return strings.TrimSpace(left) == "0", err
	})
	c.takeHome(t)
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
