package node

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/lab/node/nodetest"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// socketOne is what the kernel says of a process that may run on socket 1 alone.
const socketOne = "Cpus_allowed_list: 4-7, Mems_allowed_list: 2-3"

// TestAgent plays the stories of one real node with the agent on it, one after another: each lends socket 1 and takes
// it home again.
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
		name  string
		limit time.Duration
		tell  func(*testing.T, *cluster)
	}{
		{"a pod is resized in place", 10 * time.Minute, resizesInPlace},
		{"online left page cache on the socket", 10 * time.Minute, dropsCache},
		{"annotations are nonsense", 10 * time.Minute, readsNonsense},
		{"cgroups are read-only, and a controller is missing", 10 * time.Minute, losesCgroups},
		{"the API server is gone", *outage + 10*time.Minute, losesTheAPIServer},
		{"many containers start while the agent dies and returns", 20 * time.Minute, startsMany},
		{"the kubelet starts again", 10 * time.Minute, keepsTheProtection},
		{"a plugin that is slow", 10 * time.Minute, outlivesASlowPlugin},
		{"containerd and the kubelet start again", 10 * time.Minute, restartsRuntimeAndKubelet},
		{"the agent is killed again and again", 20 * time.Minute, killsTheAgent},
	} {
		if !t.Run(story.name, func(t *testing.T) {
			c.Limit(t, story.limit)
			story.tell(t, c)
		}) {
			break // the next one would begin in the middle of a loan
		}
	}
}

// dropsCache: a pod of online has page cache on the socket that is lent, which the kernel does not move. The agent asks it back before it reports Clean.
func dropsCache(t *testing.T, c *cluster) {
	const file, mib, leftMiB = "/var/lib/kubelet/cached", 160, 64
	held := func() int {
		n, err := strconv.Atoi(c.Script(t, "sed -n 's/^file .*N2=\\([0-9]*\\) N3=\\([0-9]*\\).*/\\1 \\2/p' "+cgroup(c.web)+"/memory.numa_stat | { read a b; echo $(((a+b)>>20)); }"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// The page cache of a file is on the cell of the CPU that wrote it, and the pod's whose process did.
	c.Script(t, fmt.Sprintf("echo $$ >%s/cgroup.procs; exec taskset -c 6 dd if=/dev/zero of=%s bs=1M count=%d conv=fsync 2>/dev/null", cgroup(c.web), file, mib))
	before := held()
	if before <= leftMiB {
		t.Fatalf("the pod has %d MiB of page cache on the socket: the story needs more than the threshold", before)
	}
	begin := c.guestNow(t)
	c.lend(t)
	took, after := c.guestNow(t).Sub(begin), held()
	if after > leftMiB {
		t.Errorf("the socket is reported Clean with %d MiB of page cache of online", after)
	}
	t.Logf("measure: online had %d MiB of page cache on the socket, and %d MiB when it was lent %.1f s later", before, after, took.Seconds())
	c.Script(t, "rm "+file)
	c.recall(t)
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
