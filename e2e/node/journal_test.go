package node

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/agent/host"
)

// guestNow is the guest's clock, by which the agent's journal counts.
func (c *cluster) guestNow(t *testing.T) time.Time {
	t.Helper()
	now, err := c.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// written is what the agent wrote to cgroups since a moment, by its journal.
func (c *cluster) written(t *testing.T, since time.Time) []host.Entry {
	t.Helper()
	text, err := c.Get(t.Context(), "/var/lib/springtide-agent/journal.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []host.Entry
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		var e host.Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // a kill may cut a line off
		}
		if !e.At.Before(since) {
			out = append(out, e)
		}
	}
	return out
}

// lastCPUSet prints how long after a moment, at which the share was changed, the agent wrote the last cpuset. A cycle is in the journal before
// its answer is in the share's status.
func (c *cluster) lastCPUSet(t *testing.T, what string, since time.Time) {
	t.Helper()
	c.Eventually(t, "the share's status answers the change", func(ctx context.Context) (bool, error) {
		s, err := c.nodeShare(ctx)
		return err == nil && s.Status.ObservedGeneration == s.Generation, err
	})
	var last time.Duration
	n := 0
	for _, e := range c.written(t, since) {
		if strings.HasPrefix(e.File, "cpuset.") {
			last = e.At.Sub(since)
			n++
		}
	}
	if n == 0 {
		t.Errorf("%s: no cpuset is in the agent's journal", what)
	}
	t.Logf("measure: %s: %d cpusets written, the last one %.2f s after the change, by the guest's clock", what, n, last.Seconds())
}

// readMetrics is the shell's command that prints an agent's metrics. busybox' wget looks a name up even for an address, which needs the C library's
// files, and these are not on the disk.
func readMetrics(address string) string {
	return `printf "GET /metrics HTTP/1.0\r\n\r\n" | nc -w 30 ` + address + ` 8081`
}

// agentMetrics reads the agent's metrics by its pod's address, from inside of the machine.
func (c *cluster) agentMetrics(ctx context.Context, address string) (map[string]float64, error) {
	text, err := c.Run(ctx, readMetrics(address))
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), " ")
		var v float64
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if _, err := fmt.Sscan(value, &v); err == nil {
			out[name] = v
		}
	}
	return out, nil
}

// agentAddress is the address of the agent's pod; a container that starts again keeps it.
func (c *cluster) agentAddress(t *testing.T) string {
	t.Helper()
	pods, err := c.Client.CoreV1().Pods("springtide-agent").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 || pods.Items[0].Status.PodIP == "" {
		t.Fatalf("%d agents, %v", len(pods.Items), err)
	}
	return pods.Items[0].Status.PodIP
}

// sum adds the series of a metric.
func sum(metrics map[string]float64, name string) float64 {
	total := 0.0
	for series, v := range metrics {
		if series == name || strings.HasPrefix(series, name+"{") {
			total += v
		}
	}
	return total
}
