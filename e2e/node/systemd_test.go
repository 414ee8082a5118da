package node

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/lab/node/nodetest"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

var quiet = flag.Duration("quiet", 3*time.Minute, "how long writes of systemd are counted on a machine where nothing changes")

// TestSystemdDriver lends a socket on a machine whose init is systemd, and whose kubelet and runc have it make their cgroups. It counts what the agent
// must write again since systemd took it back: while nothing changes, after a daemon-reload, and when a pod starts next to others. The containers'
// effective cpusets are those of their sides all along, since these go through the runtime and thus are known to systemd.
func TestSystemdDriver(t *testing.T) {
	img := nodetest.SystemdImage(t)
	p := planetest.Start(t, plane.Options{})
	n := nodetest.Start(t, img, p, "real-1", map[string]string{labelPool: onlinePool})
	n.Limit(t, *quiet+17*time.Minute)
	c := newCluster(t, n, p)
	c.web = c.Create(t, c.online("web"))
	c.lend(t)
	c.confined(t, c.web, "0-3", "0-1")
	job := c.Create(t, c.offline("job"))
	c.confined(t, job, "4-7", "2-3")
	if dir := c.Script(t, "echo "+cgroup(job)); !strings.Contains(dir, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod") || !strings.HasSuffix(dir, ".scope") {
		t.Fatalf("the job's cgroup is %s: not one of systemd's", dir)
	}
	stop := c.watch(t, "systemd", c.web, job)
	c.repeated(t, fmt.Sprintf("%s of a machine where nothing changes", *quiet), func() { c.Script(t, fmt.Sprintf("sleep %d", int(quiet.Seconds()))) })
	c.repeated(t, "systemctl daemon-reload", func() {
		c.Script(t, "timeout 180 systemctl daemon-reload") // on a loaded machine it was once seen to hang
		c.cycles(t, 2)
	})
	c.repeated(t, "a pod of the same slice starts", func() {
		c.confined(t, c.Create(t, c.offline("sibling")), "4-7", "2-3")
		c.cycles(t, 2)
	})
	c.confined(t, c.web, "0-3", "0-1")
	c.confined(t, job, "4-7", "2-3")
	c.stays(t, stop(), job)
}

// cycles waits until the agent has begun and ended some cycles.
func (c *cluster) cycles(t *testing.T, n float64) {
	t.Helper()
	address, first := c.agentAddress(t), 0.0
	c.Eventually(t, fmt.Sprintf("%.0f cycles of the agent", n), func(ctx context.Context) (bool, error) {
		m, err := c.agentMetrics(ctx, address)
		if err != nil {
			return false, nil //nolint:nilerr // it may answer late
		}
		now := sum(m, "springtide_agent_cycle_seconds_count")
		if first == 0 {
			first = now
		}
		return now > first+n, nil // the cycle that ran at first may have begun earlier
	})
}

// repeated prints which files the agent wrote again, with the value that it had written last, while something was done.
func (c *cluster) repeated(t *testing.T, what string, do func()) {
	t.Helper()
	begin := c.guestNow(t)
	do()
	last, again := map[string]string{}, map[string]int{}
	for _, e := range c.written(t, time.Time{}) {
		key := e.Path + "/" + e.File
		if !e.At.Before(begin) && last[key] == e.New {
			name := "container"
			switch {
			case strings.HasSuffix(e.Path, "kubepods.slice"), strings.HasSuffix(e.Path, "kubepods-burstable.slice"), strings.HasSuffix(e.Path, "kubepods-besteffort.slice"):
				name = "above the pods"
			case strings.HasSuffix(e.Path, ".slice"):
				name = "pod"
			}
			again[e.File+" ("+name+")"]++
		}
		last[key] = e.New
	}
	var list []string
	total := 0
	for name, n := range again {
		list, total = append(list, fmt.Sprintf("%s %d", name, n)), total+n
	}
	slices.Sort(list)
	t.Logf("measure: %s: files that the agent wrote again since they were taken back: %d: %s", what, total, strings.Join(list, ", "))
}
