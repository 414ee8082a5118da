package host

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
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

// TestDecisionIsKept: each way to a node leaves on the pod why it is there.
func TestDecisionIsKept(t *testing.T) {
	p := newPlay(t)
	p.taken()
	app := p.onePerNode()
	p.node("a", "4")
	p.node("b", "8")
	p.node("c", "1")
	p.node("d", "4", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	decision := func(of string) string {
		t.Helper()
		for _, r := range p.binds {
			if r.Name == of {
				return r.Annotations[v1alpha1.AnnotationDecision]
			}
		}
		t.Fatalf("pod %s is not bound", of)
		return ""
	}
	says := func(of string, want ...string) {
		t.Helper()
		p.settle()
		got := decision(of)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q is not in %q", of, w, got)
			}
		}
		node := p.take()[of]
		p.bound(p.c.pods[types.UID("pod-"+of)].object, node)
	}
	p.pod("plain", "2")
	says("plain", "2 of 4 nodes fit, removed: 1 taints, 1 cpu; b wins with ", " points: fill ", "; the next is a with ")
	p.pod("large", "5")
	says("large", "1 of 4 nodes fit, removed: 1 taints, 2 cpu; b wins with ")
	if got := p.said["pod-large"]; got != "" {
		t.Errorf("it waits: %s", got)
	}
	p.pod("nominated", "1", func(o *corev1.Pod) { o.Status.NominatedNodeName = "b" })
	says("nominated", "b was nominated for it")
	p.pod("pinned", "100m", pinned("c"))
	says("pinned", "the pod is for c alone")
	p.pod("judged", "100m", app)
	says("judged", "2 of 4 nodes fit", "; a wins with ", "upstream's plugins accept 2 of those asked and prefer a")
	p.node("e", "4", func(n *corev1.Node) { n.Labels[v1alpha1.LabelNetworkPod] = "p2" })
	p.c.setJob("default/train", elasticJob(60, map[string]int32{"worker": 2}))
	p.pod("w0", "500m", owned("Job", "worker"))
	p.pod("w1", "500m", owned("Job", "worker"))
	p.settle()
	for _, w := range []string{"w0", "w1"} {
		if got := decision(w); !strings.Contains(got, " of 5 nodes fit") || !strings.Contains(got, "2 pods of the gang are placed together, in "+v1alpha1.LabelNetworkPod+"=p2") {
			t.Errorf("%s: %q", w, got)
		}
	}
	p.take()

	for _, judged := range []bool{false, true} {
		q := newPlay(t)
		q.taken()
		app, want := q.onePerNode(), "no room was free, so it takes the room of default/low on node a"
		q.node("a", "4")
		low := q.runs("low", "4", "a", online(1))
		if judged {
			want += "; 1 of 1 nodes fit; a wins"
			q.pod("high", "4", online(9), app)
		} else {
			q.pod("high", "4", online(9))
		}
		q.settle()
		q.c.podGone(low.UID)
		q.settle()
		if len(q.binds) != 1 || !strings.HasPrefix(q.binds[0].Annotations[v1alpha1.AnnotationDecision], want) {
			t.Errorf("judged %v: bound %+v, want %s", judged, q.binds, want)
		}
	}
}

// TestDecisionIsBounded: what many plugins say does not grow the pod without end, and is cut between characters.
func TestDecisionIsBounded(t *testing.T) {
	text := decisionText("one", "", strings.Repeat("\u00e4", mostOfDecision))
	if len(text) > mostOfDecision || !strings.HasPrefix(text, "one; \u00e4") || !strings.HasSuffix(text, "\u00e4...") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}
