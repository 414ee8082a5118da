package kube

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
)

// emptying is a machine without an agent that is on its way out, behind its taint.
func emptying(t *testing.T, more ...metav1.Object) *reported {
	n := kubetest.Node("n1", kubetest.InWeb)
	n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}}
	return newReported(t, append(more, n, kubetest.Pool("web", "Online", kubetest.InWeb),
		kubetest.Pool("batch", "Offline", kubetest.InBatch), kubetest.Loan("l", "n1", "Emptying", 1, 0),
		kubetest.NodeShare("n1", "l", "web", "batch", 1, false, 0))...)
}

// said reports one cycle at a time after t0 and returns what the share's status says of its parcel: clean, or what it waits for.
func (r *reported) judged(t *testing.T, after time.Duration) string {
	t.Helper()
	r.clock.Time = kubetest.Now.Add(after)
	r.cycle(t, nil)
	s := objectNow[v1alpha1.NodeShare](t, r.world, object.GVRShares, "n1").Status
	switch {
	case len(s.Parcels) == 0:
		return ""
	case s.Reporter != v1alpha1.ReporterController:
		t.Fatalf("reporter %q", s.Reporter)
	case s.Parcels[0].Clean:
		return "clean"
	}
	return strings.Join(append([]string{s.Parcels[0].Waits}, s.Parcels[0].Occupants...), " ")
}

// lists counts the lists of pods that name no version: those that are made live.
func (r *reported) lists() int {
	n := 0
	for _, a := range r.core.Actions() {
		if l, ok := a.(clienttesting.ListActionImpl); ok && l.GetResource().Resource == "pods" && strings.Contains(l.GetListRestrictions().Fields.String(), "spec.nodeName") {
			n++
		}
	}
	return n
}

// The controller decides Clean for a machine that never had an agent, after the margin, and lists pods once for it.
func TestCleanWithoutAnAgent(t *testing.T) {
	r := emptying(t)
	for _, x := range []struct {
		after time.Duration
		want  string
		lists int
	}{{0, "Margin", 0}, {15 * time.Second, "Margin", 0}, {29 * time.Second, "Margin", 0}, {30 * time.Second, "clean", 1}, {45 * time.Second, "clean", 1}} {
		if got := r.judged(t, x.after); got != x.want || r.lists() != x.lists {
			t.Errorf("after %s: %q with %d lists, want %q with %d", x.after, got, r.lists(), x.want, x.lists)
		}
	}
	s := objectNow[v1alpha1.NodeShare](t, r.world, object.GVRShares, "n1").Status
	if p := s.Parcels[0]; p.Epoch != 1 || p.LoanUID != string(kubetest.UID("Loan",
		"l")) || p.Time == nil || !p.Time.Time.Equal(kubetest.Now.Add(30*time.Second)) {
		t.Errorf("the report %+v", p)
	}
}

// A Lease of the bundled scheduler that the watch shows as given up, and that another instance holds by now, is asked for its acknowledgement.
func TestAcknowledgementsRestOnLiveLeases(t *testing.T) {
	lease := &coordinationv1.Lease{ObjectMeta: kubetest.Meta("Lease", kubetest.Namespace,
		v1alpha1.SchedulerLeasePrefix+"0")}
	served := func(name, class string, in map[string]string) *v1alpha1.CapacityPool {
		p := kubetest.Pool(name, class, in)
		p.Spec.SchedulerName = v1alpha1.SchedulerName
		return p
	}
	n := kubetest.Node("n1", kubetest.InWeb)
	n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}}
	share := kubetest.NodeShare("n1", "l", "web", "batch", 1, false, 0)
	share.Generation = 1
	for holder, want := range map[string]string{"": "clean", "new": "Acks"} {
		r := newReported(t, n.DeepCopy(), served("web", "Online", kubetest.InWeb),
			served("batch", "Offline", kubetest.InBatch), kubetest.Loan("l", "n1", "Emptying", 1, 0),
			share.DeepCopy(), lease.DeepCopy())
		live := lease.DeepCopy()
		live.Spec.HolderIdentity, live.Spec.RenewTime = &holder, &metav1.MicroTime{Time: time.Now()}
		r.core.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { return true, live, nil })
		if got := r.judged(t, 0); got != want {
			t.Errorf("holder %q: %q, want %q", holder, got, want)
		}
	}
}

// A new leader has seen nothing of the margin.
func TestANewLeaderCountsTheMarginAgain(t *testing.T) {
	r := emptying(t)
	r.judged(t, 0)
	r.lead(leadership.Held{Epoch: 8, Lease: kubetest.Lease})
	if got := r.judged(t, 30*time.Second); got != "Margin" {
		t.Errorf("%q: the margin is the old leader's", got)
	}
	if got := r.judged(t, time.Minute); got != "clean" {
		t.Errorf("%q after a margin of its own", got)
	}
}

// A pod that was bound and that the watches have not shown keeps the machine, and starts the margin over; so does one that ends.
func TestABindThatIsNotSeenPreventsClean(t *testing.T) {
	r := emptying(t)
	var hidden []corev1.Pod
	r.core.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return len(hidden) > 0, &corev1.PodList{Items: hidden}, nil
	})
	r.judged(t, 0)
	hidden = []corev1.Pod{*kubetest.Pod("shop", "late", "n1", "", ""), *kubetest.Pod("shop", "elsewhere", "n2", "", "")}
	if got := r.judged(t, 30*time.Second); got != "Binds shop/late" {
		t.Errorf("%q with a bind that no watch shows", got)
	}
	hidden = nil
	for _, x := range []struct {
		after time.Duration
		want  string
	}{{45 * time.Second, "Margin"}, {60 * time.Second, "Margin"}, {75 * time.Second, "clean"}} {
		if got := r.judged(t, x.after); got != x.want {
			t.Errorf("after %s: %q, want %q", x.after, got, x.want)
		}
	}
}

// The API's present answer counts: marks that the watches show closed and that are open, and a kubelet that fell
// silent.
func TestCleanRestsOnLiveFacts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		want   string
	}{
		"the taint is gone":     {func(n *corev1.Node) { n.Spec.Taints = nil }, "Marks"},
		"the kubelet is silent": {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, "Ready"},
		"another machine":       {func(n *corev1.Node) { n.UID = "another" }, "Ready"},
		"cordoned":              {func(n *corev1.Node) { n.Spec.Unschedulable = true }, "clean"},
	} {
		t.Run(name, func(t *testing.T) {
			r := emptying(t)
			at := time.Duration(0)
			r.core.PrependReactor("get", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
				n, err := r.core.Tracker().Get(a.GetResource(), "", "n1")
				if err != nil {
					return true, nil, err
				}
				live := n.(*corev1.Node).DeepCopy()
				c.change(live)
				return true, live, nil
			})
			for ; at <= time.Minute; at += 15 * time.Second {
				r.judged(t, at)
			}
			if got := r.judged(t, at); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// Pods of the side that leaves keep the machine, terminating ones too.
func TestPodsKeepAMachineWithoutAnAgent(t *testing.T) {
	p := kubetest.Pod("shop", "cart-1", "n1", "", "")
	p.DeletionTimestamp, p.Finalizers = kubetest.Ptr(kubetest.Stamp(0)), []string{"example.com/slow"}
	r := emptying(t, p)
	r.judged(t, 0)
	if got := r.judged(t, time.Hour); got != "Pods shop/cart-1" || r.lists() != 0 {
		t.Errorf("%q with %d lists: what the watches show needs none", got, r.lists())
	}
}

// A silent agent is never taken for none: not while its Lease is there, and not while it is on record.
func TestASilentAgentIsNotReplaced(t *testing.T) {
	for name, more := range map[string][]metav1.Object{
		"its Lease is old": {kubetest.AgentOf(time.Now().Add(-time.Hour), 0)},
		"its Lease is gone": {func() metav1.Object {
			s := kubetest.NodeShare("n1", "l", "web", "batch", 1, false, 0)
			s.Status.Agent = &v1alpha1.ShareAgent{NodeUID: string(kubetest.UID("Node", "n1")),
				FirstSeen: kubetest.Ago(time.Hour)}
			return s
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			n := kubetest.Node("n1", kubetest.InWeb)
			n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}}
			objects := append(more, n, kubetest.Pool("web", "Online", kubetest.InWeb),
				kubetest.Pool("batch", "Offline", kubetest.InBatch), kubetest.Loan("l", "n1", "Emptying", 1, 0))
			if name == "its Lease is old" {
				objects = append(objects, kubetest.NodeShare("n1", "l", "web", "batch", 1, false, 0))
			}
			r := newReported(t, objects...)
			r.judged(t, 0)
			if got := r.judged(t, time.Hour); got != "" {
				t.Errorf("the controller said %q in the place of a silent agent", got)
			}
		})
	}
}

// The first agent of a machine is recorded once, and makes the machine's share where nothing was lent yet.
func TestAgentsAreRecorded(t *testing.T) {
	r := newReported(t, kubetest.Node("n1", kubetest.InWeb), kubetest.Pool("web", "Online", kubetest.InWeb),
		kubetest.AgentOf(time.Now(), 3600))
	r.cycle(t, nil)
	if _, err := r.dyn.Resource(object.GVRShares).Get(t.Context(), "n1", metav1.GetOptions{}); err != nil {
		t.Fatalf("no share was made: %v", err)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, ok := r.Shares.Get("", "n1"); ok || time.Now().After(deadline) {
			break
		}
	}
	r.cycle(t, nil)
	s := objectNow[v1alpha1.NodeShare](t, r.world, object.GVRShares, "n1")
	if a := s.Status.Agent; a == nil || a.NodeUID != string(kubetest.UID("Node",
		"n1")) || !a.FirstSeen.Time.Equal(kubetest.Now) {
		t.Fatalf("recorded %+v", a)
	}
	if written, _ := r.cycle(t, nil); len(written) > 0 {
		t.Errorf("written again: %v", written)
	}
	if n := r.snapshot(t).Nodes[0]; !n.AgentKnown || n.Agentless() {
		t.Errorf("the agent is not known: %+v", n)
	}
}
