package node

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// kills is how often the agent is killed. The kubelet takes some seconds to start it again.
var kills = flag.Int("kills", 50, "how often the agent is killed")

// watch lets the guest write down each value that the effective cpusets of some containers take, until the returned function reads them.
func (c *cluster) watch(t *testing.T, name string, pods ...*corev1.Pod) (stop func() map[string]string) {
	t.Helper()
	for _, pod := range pods {
		// setsid: the watcher outlives the script that starts it.
		c.Script(t, fmt.Sprintf(`d=%s; f=/tmp/%s-%s; rm -f $f.end
setsid sh -c "while [ ! -e $f.end ]; do cat $d/cpuset.cpus.effective; sleep 0.1; done 2>&1 | uniq >$f" >/dev/null 2>&1 &`, cgroup(pod), name, pod.Name))
	}
	return func() map[string]string {
		t.Helper()
		seen := map[string]string{}
		for _, pod := range pods {
			out := c.Script(t, fmt.Sprintf("f=/tmp/%s-%s; touch $f.end; sleep 1; cat $f", name, pod.Name))
			seen[pod.Name] = strings.Join(strings.Fields(out), " ")
		}
		return seen
	}
}

// stays checks that all along each container was on the CPUs of its side.
func (c *cluster) stays(t *testing.T, seen map[string]string, job *corev1.Pod) {
	t.Helper()
	for pod, want := range map[string]string{c.web.Name: "0-3", job.Name: "4-7"} {
		if seen[pod] != want {
			t.Errorf("pod %s was on CPUs %q, want %s all along", pod, seen[pod], want)
		}
	}
}

// killsTheAgent kills the agent with SIGKILL each time that it runs. Its settings stay, and after the last start it
// does what it is for: a pod that came while it was dead is confined.
func killsTheAgent(t *testing.T, c *cluster) {
	c.lend(t)
	job := c.Create(t, c.offline("job"))
	c.confined(t, job, "4-7", "2-3")
	stop := c.watch(t, "kills", c.web, job)
	for n := 1; n <= *kills; n++ {
		c.Script(t, `until kill -9 $(pidof springtide-agent) 2>/dev/null; do sleep 0.2; done`)
		if n%10 == 0 || n == *kills {
			c.Took(t, fmt.Sprintf("the agent was killed %d times", n))
		}
	}
	late := c.Create(t, c.offline("late"))
	c.Eventually(t, "the agent runs again", func(ctx context.Context) (bool, error) {
		_, err := c.Run(ctx, "pidof springtide-agent")
		return err == nil, nil
	})
	c.confined(t, late, "4-7", "2-3")
	c.stays(t, stop(), job)
	c.recall(t)
	c.remove(t, late)
	c.remove(t, job)
	c.takeHome(t)
}

// restartsRuntimeAndKubelet kills containerd and the kubelet. Containers stay where they are, and new ones are confined from their first
// instruction on once the agent's plugin has registered again.
func restartsRuntimeAndKubelet(t *testing.T, c *cluster) {
	c.lend(t)
	job := c.Create(t, c.offline("job"))
	c.confined(t, job, "4-7", "2-3")
	stop := c.watch(t, "restarts", c.web, job)
	c.Script(t, "kill -9 $(pidof containerd)")
	c.Eventually(t, "containerd runs again", func(ctx context.Context) (bool, error) {
		_, err := c.Run(ctx, "ctr -n k8s.io version >/dev/null")
		return err == nil, nil
	})
	first := c.Create(t, c.offline("after-containerd"))
	c.confined(t, first, "4-7", "2-3")
	c.Script(t, "kill -9 $(pidof kubelet)")
	second := c.Create(t, c.offline("after-kubelet"))
	c.confined(t, second, "4-7", "2-3")
	if got := c.firstWords(t, second); !strings.Contains(got, socketOne) {
		t.Errorf("the pod starts with %q: the plugin has not registered again with the new containerd", got)
	}
	c.stays(t, stop(), job)
	c.recall(t)
	for _, pod := range []*corev1.Pod{first, second, job} {
		c.remove(t, pod)
	}
	c.takeHome(t)
}
