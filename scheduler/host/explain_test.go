package host

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestExplainPod: which filter removes how many nodes, why the winner wins, and what upstream's plugins say.
func TestExplainPod(t *testing.T) {
	p := newPlay(t)
	p.taken()
	app := p.onePerNode()
	p.node("a", "4")
	p.node("b", "4", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	p.node("c", "1")
	p.runs("first", "1", "a", app, online(5))
	p.pod("large", "8")
	p.pod("second", "1", app, online(1))
	p.pod("third", "1", app, online(9))
	p.settle()
	for pod, want := range map[string][]string{
		"default/first":  {"is on node a", "one more such pod: 1 of 3 nodes fit", "removed by: ", "best: node ", "points"},
		"default/large":  {"pod default/large waits", "0 of 3 nodes fit", "     2  removed by: cpu"},
		"default/second": {"pod default/second waits", "0  accepted", "1  refused: node has one"},
		"default/nobody": {"the scheduler knows no pod default/nobody"},
	} {
		got, _ := p.c.explainPod(pod)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q is not in\n%s", pod, w, got)
			}
		}
	}
}

// TestExplainPodElsewhere: a pod that another partition places is not explained here: who asks has to go on asking.
func TestExplainPodElsewhere(t *testing.T) {
	p := newPlay(t)
	p.c.c.Partitions = 2
	for i := range 8 {
		o := p.pod(fmt.Sprint("w", i), "1")
		text, ours := p.c.explainPod(name(o))
		if want := p.c.homeOf(o) == 0; ours != want {
			t.Errorf("%s of partition %d is explained: %v, %s", name(o), p.c.homeOf(o), ours, text)
		}
		if !ours && !strings.Contains(text, "is placed by partition 1 ") {
			t.Error(text)
		}
	}
}
