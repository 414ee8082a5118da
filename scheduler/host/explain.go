package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/scheduler/place"
)

// explainPod says what became of a pod, or would become of it now: which filter removes how many nodes, and why the winner wins. It is false where
// another partition may know more.
func (c *core) explainPod(named string) (string, bool) {
	for _, p := range c.pods {
		if name(p.object) == named {
			return c.explain(p), true
		}
	}
	for _, o := range c.elsewhere {
		if name(o) == named {
			return fmt.Sprintf("pod %s is placed by partition %d of the scheduler", named, c.homeOf(o)), false
		}
	}
	return "the scheduler knows no pod " + named + ": it is over, or there never was one", false
}

func (c *core) explain(p *pod) string {
	var b strings.Builder
	switch p.stage {
	case bound:
		fmt.Fprintf(&b, "pod %s is on node %s", name(p.object), p.node)
	case making:
		fmt.Fprintf(&b, "pod %s is decided for node %s, and its volumes and claims are being made for it", name(p.object), p.node)
	case assumed:
		fmt.Fprintf(&b, "pod %s is decided for node %s, and its binding is under way", name(p.object), p.node)
	case nominated:
		fmt.Fprintf(&b, "pod %s takes room on node %s, and waits until the pods that must go are gone", name(p.object), p.node)
	case waits:
		fmt.Fprintf(&b, "pod %s waits", name(p.object))
		if s := scheduledCondition(p.object); s != nil && s.Message != "" {
			fmt.Fprintf(&b, ": %s", s.Message)
		}
	}
	if len(p.cells) > 0 {
		fmt.Fprintf(&b, ", on the NUMA cells %s", v1alpha1.FormatCells(p.cells))
	}
	b.WriteByte('\n')
	if !c.serves(p.object) {
		fmt.Fprintf(&b, "its schedulerName is %q, which is not served here\n", p.object.Spec.SchedulerName)
	}
	e := c.table.Explain(p.class)
	fmt.Fprintf(&b, "one more such pod: %d of %d nodes fit\n", e.Fit, e.Machines)
	for f, n := range e.Removed {
		if n > 0 {
			fmt.Fprintf(&b, "  %6d  removed by: %s\n", n, place.Filter(f))
		}
	}
	if e.Fit > 0 {
		fmt.Fprintf(&b, "best: node %s with %d points\n", e.Name, e.Score.Total)
		for _, t := range termsOf(&e.Score) {
			fmt.Fprintf(&b, "  %6d  %s\n", t.value, t.name)
		}
	}
	if c.judge.needed(p) {
		b.WriteString("upstream's plugins judge it too: volumes, claims or inter-pod affinity\n")
		b.WriteString(c.explainPlugins(p))
	}
	return strings.TrimRight(b.String(), "\n")
}

// explainPlugins says what upstream's plugins make of the nodes that the table offers to one more such pod.
func (c *core) explainPlugins(p *pod) string {
	if c.judge.plugins == nil {
		return "  they are starting\n"
	}
	trial, err := c.judge.plugins.Begin(context.Background(), p.object)
	if err != nil {
		return fmt.Sprintf("  no node will do: %s\n", err)
	}
	accepted, refused, err := c.judge.accepted(context.Background(), c, p, trial, "")
	if err != nil {
		return fmt.Sprintf("  they fail: %s\n", err)
	}
	out := fmt.Sprintf("  %6d  accepted, of which the one that the pod prefers is taken (they are asked until %d are)\n", len(accepted), mostAccepted)
	for _, why := range sortedKeys(refused) {
		out += fmt.Sprintf("  %6d  refused: %s\n", refused[why], why)
	}
	return out
}
