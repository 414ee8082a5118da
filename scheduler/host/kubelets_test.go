package host

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/scheduler/place"
)

// rejects plays that the kubelet of a node does not admit a pod: it is over before it ran.
func (p *play) rejects(name, reason string) {
	p.t.Helper()
	x := p.c.pods[types.UID("pod-"+name)]
	if x == nil || x.node == "" {
		p.t.Fatalf("%s is on no node", name)
	}
	o := p.bound(x.object, x.node)
	p.c.kubelets.ended(p.c, p.c.pods[o.UID]) // as the end of the watch has it: the phase is not shown
	o = o.DeepCopy()
	o.Status.Phase, o.Status.Reason, o.Status.Message = corev1.PodFailed, reason, "Pod was rejected: "+reason+" says the kubelet"
	p.c.podChanged(o)
}

// passes lets seconds pass, with what the loop does meanwhile.
func (p *play) passes(seconds int) {
	for range seconds {
		p.now = p.now.Add(time.Second)
		p.c.tick(p.now)
		p.settle()
	}
}

// TestAKubeletThatRefuses: pods of a ReplicaSet of one are made as long as none runs. While a twin is free, the second goes there, whatever the kubelet's
// reason and part that judges the pod; where none is, few are made, and the pod that waits says why.
func TestAKubeletThatRefuses(t *testing.T) {
	kinds := map[string]struct {
		reason string
		change func(*play) func(*corev1.Pod)
	}{
		"OutOfcpu":                 {"OutOfcpu", nil},
		"UnexpectedAdmissionError": {"UnexpectedAdmissionError", func(*play) func(*corev1.Pod) { return hostPort(80) }},
		"TopologyAffinityError, judged by plugins": {"TopologyAffinityError", func(p *play) func(*corev1.Pod) { return p.onePerNode() }},
		"nominated by another component": {"OutOfmemory", func(*play) func(*corev1.Pod) {
			return func(o *corev1.Pod) { o.Status.NominatedNodeName = "a" }
		}},
	}
	for _, name := range sortedKeys(kinds) {
		t.Run(name, func(t *testing.T) {
			for _, twin := range []bool{true, false} {
				p := newPlay(t)
				change := func(*corev1.Pod) {}
				if kinds[name].change != nil {
					change = kinds[name].change(p)
				}
				var reports []string
				p.c.kubelets.report = func(n *corev1.Node, _ *corev1.Pod, text string) { reports = append(reports, n.Name+": "+text) }
				p.node("a", "4")
				if twin {
					p.node("b", "4")
				}
				made, on := 0, map[string]int{}
				for second := range 60 {
					for n := 0; ; n++ { // a controller makes the next one as soon as one failed
						pod := fmt.Sprint("x", made)
						if p.c.pods[types.UID("pod-"+pod)] == nil {
							p.pod(pod, "2", change)
						}
						p.settle()
						node := p.take()[pod]
						if on[node]++; node != "a" {
							break
						}
						p.rejects(pod, kinds[name].reason)
						if made++; n > 100 {
							t.Fatalf("second %d: 100 pods were made on the node that refuses them", second)
						}
					}
					p.passes(1)
				}
				switch {
				case twin && (on["a"] > 1 || on["b"] != 1):
					t.Errorf("with a twin, placed %v, want at most one on the node that refuses", on)
				case !twin && (on["a"] < 2 || on["a"] > 4):
					t.Errorf("alone, %d pods were made in a minute, want 2 to 4", on["a"])
				case !twin && len(reports) != on["a"]:
					t.Errorf("%d reports of %d refusals", len(reports), on["a"])
				case !twin:
					if got := p.said[types.UID(fmt.Sprint("pod-x", made))]; !strings.Contains(got, "1 whose kubelet refused such a pod a moment ago: "+kinds[name].reason) {
						t.Errorf("the pod that waits has the message %q", got)
					}
					if !strings.Contains(reports[1], "a: the kubelet refused pod default/x1: "+kinds[name].reason) || !strings.Contains(reports[1], "for 20s") {
						t.Errorf("the second report is %q", reports[1])
					}
				}
			}
		})
	}
}

// TestARefusalIsOfItsKind: pods that ask for something else still go to the node; the penalty ends when such a pod runs there, when the node offers something
// else, and with its time; a pod that ran and failed is no refusal.
func TestARefusalIsOfItsKind(t *testing.T) {
	refused := func(t *testing.T) *play {
		p := newPlay(t)
		p.node("a", "8")
		p.pod("x", "2")
		p.pod("old", "2", func(o *corev1.Pod) { o.Spec.NodeName, o.Status.Phase = "a", corev1.PodPending })
		p.settle()
		p.take()
		p.rejects("x", "OutOfcpu")
		p.pod("next", "2")
		p.settle()
		if got := p.take(); len(got) != 0 {
			t.Fatalf("bound %v at once", got)
		}
		return p
	}
	t.Run("another size", func(t *testing.T) {
		p := refused(t)
		p.pod("small", "1")
		p.settle()
		if got := p.take(); got["small"] != "a" {
			t.Errorf("bound %v", got)
		}
	})
	t.Run("one runs", func(t *testing.T) {
		p := refused(t)
		p.changed("old", func(o *corev1.Pod) { o.Status.Phase = corev1.PodRunning })
		p.pod("again", "2")
		p.settle()
		if got := p.take(); got["again"] != "a" {
			t.Errorf("bound %v", got)
		}
	})
	t.Run("the node offers more", func(t *testing.T) {
		p := refused(t)
		p.node("a", "9")
		p.settle()
		if got := p.take(); got["next"] != "a" {
			t.Errorf("bound %v", got)
		}
	})
	t.Run("another node of the name", func(t *testing.T) {
		p := refused(t)
		p.c.removeNode("a")
		p.node("a", "8")
		p.settle()
		if got := p.take(); got["next"] != "a" {
			t.Errorf("bound %v", got)
		}
	})
	t.Run("its time", func(t *testing.T) {
		p := refused(t)
		p.passes(int(firstPenalty/time.Second) - 1)
		if got := p.take(); len(got) != 0 {
			t.Errorf("bound %v before the penalty is over", got)
		}
		p.passes(1)
		if got := p.take(); got["next"] != "a" {
			t.Errorf("bound %v after the penalty", got)
		}
	})
	t.Run("one that ran and failed", func(t *testing.T) {
		p := newPlay(t)
		p.node("a", "8")
		o := p.pod("x", "2")
		p.settle()
		o = p.bound(o, p.take()["x"]).DeepCopy()
		o.Status.Phase, o.Status.Reason = corev1.PodFailed, "Error"
		p.c.podChanged(o)
		p.pod("next", "2")
		p.settle()
		if got := p.take(); got["next"] != "a" {
			t.Errorf("bound %v", got)
		}
	})
}

// TestARefusalBreaksTies: after its penalty a node that refused comes after its equals, and a node that stands first by its score still comes first.
func TestARefusalBreaksTies(t *testing.T) {
	p := newPlay(t)
	p.node("a", "8")
	p.pod("x", "2")
	p.settle()
	p.take()
	p.rejects("x", "OutOfcpu")
	p.passes(int(firstPenalty / time.Second))
	p.node("b", "8")
	p.pod("next", "2")
	p.settle()
	if got := p.take(); got["next"] != "b" {
		t.Errorf("bound %v, want the equal that refused nothing", got)
	}
	p.pod("more", "2") // a is the emptier one now
	p.settle()
	if got := p.take(); got["more"] != "a" {
		t.Errorf("bound %v, want the better node, whose penalty is over", got)
	}
}

// TestAGangAvoidsARefusal: the pods of a gang keep off a node whose kubelet refused one like them; a pod for one node alone waits for the end of the penalty.
func TestAGangAvoidsARefusal(t *testing.T) {
	p := newPlay(t)
	p.node("a", "8")
	p.pod("x", "2")
	p.settle()
	p.take()
	p.rejects("x", "OutOfcpu")
	p.node("b", "4")
	p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
	p.pod("g0", "2", inGroup("ring"))
	p.pod("g1", "2", inGroup("ring"))
	p.pod("daemon", "2", pinned("a"))
	p.settle()
	if got := p.take(); len(got) != 2 || got["g0"] != "b" || got["g1"] != "b" {
		t.Errorf("bound %v, want the gang on b and the pinned pod waiting", got)
	}
	p.passes(int(firstPenalty / time.Second))
	if got := p.take(); got["daemon"] != "a" {
		t.Errorf("bound %v after the penalty", got)
	}
}

// TestWhatAKubeletAdmitsBy: what a kubelet may refuse a pod for distinguishes classes, and nothing else does.
func TestWhatAKubeletAdmitsBy(t *testing.T) {
	base := place.Shape{Cells: place.OneCell}
	other := base
	other.Cells = place.Restricted
	same := base
	same.Priority, same.Needs = 7, &place.Needs{Images: []string{"x"}}
	if asksOf(&base) == asksOf(&other) || asksOf(&base) != asksOf(&same) {
		t.Error("another policy for cells is another kind, another priority and image are not")
	}
}

// TestAPodThatEndsBeforeItRanIsAskedFor: the watch shows no pod that is over, so the scheduler asks why a pod of its own ended that was bound and never ran.
func TestAPodThatEndsBeforeItRanIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		asked  bool
	}{
		"bound, and never ran": {func(*corev1.Pod) {}, true},
		"ran":                  {func(o *corev1.Pod) { o.Status.Phase = corev1.PodRunning }, false},
		"was being deleted":    {func(o *corev1.Pod) { o.DeletionTimestamp = &o.CreationTimestamp }, false},
		"another scheduler's":  {func(o *corev1.Pod) { o.Spec.SchedulerName = "another" }, false},
		"waits":                {func(o *corev1.Pod) { o.Spec.NodeName = "" }, false},
	} {
		p := newPlay(t)
		asked := 0
		p.c.kubelets.ask = func(*corev1.Pod) { asked++ }
		o := p.pod("x", "1", func(o *corev1.Pod) { o.Spec.NodeName, o.Status.Phase = "a", corev1.PodPending; c.change(o) })
		p.c.podGone(o.UID)
		if (asked == 1) != c.asked {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
}
