package host

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"
)

// cpus is a list of resources of so many cores.
func cpus(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
}

// pending is the condition of a resize that the kubelet does not carry out now; none for an empty reason.
func pendingResize(o *corev1.Pod, reason string) {
	o.Status.Conditions = nil
	if reason != "" {
		o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason}}
	}
}

// confirmed is what the kubelet reports of a container: what it was promised, and what it has.
func confirmed(o *corev1.Pod, allocated, has int64) {
	o.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", AllocatedResources: cpus(allocated), Resources: &corev1.ResourceRequirements{Requests: cpus(has)}}}
}

// TestResizeIsCountedAsConfirmed: a node has the room that a resize leaves as soon as the last of its writes is seen, and not before: by which fields the
// kubelet confirms it, and whether a generation changes with them, does not matter. The node has 4 cores.
func TestResizeIsCountedAsConfirmed(t *testing.T) {
	type step struct {
		write func(*corev1.Pod)
		free  int64
	}
	spec := func(n int64) func(*corev1.Pod) {
		return func(o *corev1.Pod) { o.Generation++; o.Spec.Containers[0].Resources.Requests = cpus(n) }
	}
	observed := func(f func(*corev1.Pod)) func(*corev1.Pod) {
		return func(o *corev1.Pod) { o.Status.ObservedGeneration = o.Generation; f(o) }
	}
	for name, steps := range map[string][]step{
		"shrinks in two writes under one generation": {
			{observed(func(o *corev1.Pod) { confirmed(o, 3, 3) }), 1}, {spec(1), 1},
			{observed(func(o *corev1.Pod) { confirmed(o, 1, 3) }), 1}, {func(o *corev1.Pod) { confirmed(o, 1, 1) }, 3}},
		"is deferred, then infeasible": {
			{observed(func(o *corev1.Pod) { confirmed(o, 3, 3) }), 1}, {spec(4), 0},
			{observed(func(o *corev1.Pod) { pendingResize(o, corev1.PodReasonDeferred) }), 0},
			{func(o *corev1.Pod) { pendingResize(o, corev1.PodReasonInfeasible) }, 1}},
		"is infeasible, and asked for less": {
			{observed(func(o *corev1.Pod) { confirmed(o, 3, 3) }), 1}, {spec(8), -4},
			{observed(func(o *corev1.Pod) { pendingResize(o, corev1.PodReasonInfeasible) }), 1},
			{spec(2), 1}, {func(o *corev1.Pod) { pendingResize(o, ""); confirmed(o, 2, 2) }, 2}},
		"shrinks as a whole": {
			{func(o *corev1.Pod) {
				o.Spec.Resources = &corev1.ResourceRequirements{Requests: cpus(3)}
				o.Status.Resources, o.Status.AllocatedResources = &corev1.ResourceRequirements{Requests: cpus(3)}, cpus(3)
			}, 1},
			{func(o *corev1.Pod) { o.Generation++; o.Spec.Resources.Requests = cpus(1) }, 1},
			{observed(func(o *corev1.Pod) { o.Status.AllocatedResources = cpus(1) }), 1},
			{func(o *corev1.Pod) { o.Status.Resources.Requests = cpus(1) }, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.node("a", "4")
			o := p.pod("x", "3")
			p.settle()
			o = p.bound(o, "a")
			for i, s := range steps {
				o = o.DeepCopy()
				s.write(o)
				o.ResourceVersion += "1"
				p.c.podChanged(o)
				if got := p.freeCores("a", 4); got != s.free {
					t.Errorf("after write %d, %d cores are free, want %d", i, got, s.free)
				}
			}
		})
	}
	t.Run("between the decision and its binding", func(t *testing.T) {
		p := newPlay(t)
		p.node("a", "4")
		o := p.pod("x", "3")
		p.settle()
		o = o.DeepCopy()
		spec(1)(o)
		p.bound(o, "a")
		if got := p.freeCores("a", 4); got != 3 {
			t.Errorf("%d cores are free, want 3", got)
		}
	})
}

// freeCores is what the pods on a node of some cores leave.
func (p *play) freeCores(node string, cores int64) int64 {
	for q := range p.c.table.Pods() {
		if string(q.Node) == node {
			x := p.c.byRef[q.Pod]
			cores -= int64(x.shape.Requests.CPU) / 1000
		}
	}
	return cores
}

// TestResizeAsUpstream: whatever a pod's spec and status go through, the node has as much room for others as kube-scheduler counts.
func TestResizeAsUpstream(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := newPlay(t)
		p.node("a", "64")
		o := p.pod("x", "3", func(o *corev1.Pod) { o.Spec.NodeName = "a" })
		cores := func(what string) int64 { return int64(rapid.IntRange(1, 9).Draw(r, what)) }
		for i := range rapid.IntRange(1, 12).Draw(r, "writes") {
			o = o.DeepCopy()
			o.ResourceVersion = fmt.Sprint(i)
			switch rapid.IntRange(0, 6).Draw(r, "write") {
			case 0:
				o.Generation++
				o.Spec.Containers[0].Resources.Requests = cpus(cores("asks"))
			case 1:
				o.Generation++
				o.Spec.Resources = &corev1.ResourceRequirements{Requests: cpus(cores("asks as a whole"))}
			case 2:
				confirmed(o, cores("promised"), cores("has"))
			case 3:
				o.Status.Resources, o.Status.AllocatedResources = &corev1.ResourceRequirements{Requests: cpus(cores("has as a whole"))}, cpus(cores("promised as a whole"))
			case 4:
				o.Status.ObservedGeneration = o.Generation
			default:
				pendingResize(o, pick(r, "condition", "", corev1.PodReasonDeferred, corev1.PodReasonInfeasible))
			}
			p.c.podChanged(o)
			want := framework.NewNodeInfo(o).GetRequested().GetMilliCPU()
			if got := int64(p.c.byRef[p.c.pods[o.UID].ref].shape.Requests.CPU); got != want {
				r.Fatalf("after write %d, the pod counts with %d milli-CPU, upstream counts %d", i, got, want)
			}
			p.pod("next", fmt.Sprint(64-want/1000), func(n *corev1.Pod) { n.UID = "next" })
			p.settle()
			if got := p.take(); got["next"] != "a" {
				r.Fatalf("after write %d, a pod of %d cores is not placed", i, 64-want/1000)
			}
			p.c.podGone("next")
		}
	})
}
