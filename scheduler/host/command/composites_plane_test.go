//go:build plane

package command_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// composite makes a CompositePodGroup that needs some groups, with the basic policy where that is 0; in one domain of a node label where a key is given.
func (k *kase) composite(name, parent string, least int32, key string, with ...func(*schedulingv1alpha3.CompositePodGroup)) {
	k.t.Helper()
	g := &schedulingv1alpha3.CompositePodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.WorkloadRef = &schedulingv1alpha3.WorkloadReference{WorkloadName: "w", TemplateName: "t"}
	g.Spec.SchedulingPolicy.Gang = &schedulingv1alpha3.CompositeGangSchedulingPolicy{MinGroupCount: least}
	if least == 0 {
		g.Spec.SchedulingPolicy = schedulingv1alpha3.CompositePodGroupSchedulingPolicy{Basic: &schedulingv1alpha3.CompositeBasicSchedulingPolicy{}}
	}
	if parent != "" {
		g.Spec.ParentCompositePodGroupName = &parent
	}
	if key != "" {
		g.Spec.SchedulingConstraints = &schedulingv1alpha3.CompositePodGroupSchedulingConstraints{Topology: []schedulingv1alpha3.TopologyConstraint{{Key: key}}}
	}
	for _, f := range with {
		f(g)
	}
	if _, err := k.api.SchedulingV1alpha3().CompositePodGroups(k.ns).Create(k.t.Context(), g, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// below puts a PodGroup below a CompositePodGroup.
func below(parent string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) {
		g.Spec.WorkloadRef = &schedulingv1beta1.WorkloadReference{WorkloadName: "w", TemplateName: "t"}
		g.Spec.ParentCompositePodGroupName = &parent
	}
}

// stands waits until a CompositePodGroup says how it stands.
func (k *kase) stands(name string, status metav1.ConditionStatus, reason, message string) {
	k.t.Helper()
	k.poll("CompositePodGroup "+name+" is "+string(status)+", "+reason, func(ctx context.Context) (bool, error) {
		g, err := k.api.SchedulingV1alpha3().CompositePodGroups(k.ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		c := apimeta.FindStatusCondition(g.Status.Conditions, "CompositePodGroupInitiallyScheduled")
		return c != nil && c.Status == status && c.Reason == reason && strings.Contains(c.Message, message), nil
	})
}

// TestPlaneComposites plays upstream's tests of composite pod groups on the real API server, and a LeaderWorkerSet.
func TestPlaneComposites(t *testing.T) {
	classes(t, connect(t))
	rack := func(r string) nodeOption { return labelled("rack", r) }
	in := func(zone, rack string) nodeOption {
		return func(n *corev1.Node) { n.Labels["zone"], n.Labels["rack"] = zone, rack }
	}
	none := map[string]string{}
	waits := func(k *kase, names ...string) {
		for _, name := range names {
			k.poll("pod "+name+" waits", func(context.Context) (bool, error) { return unschedulable(k.get(name)), nil })
			if p := k.get(name); p.Spec.NodeName != "" {
				k.t.Errorf("pod %s is on %s without its tree", name, p.Spec.NodeName)
			}
		}
	}
	lws := func(k *kase) {
		k.composite("lws", "", 2, "")
		k.group("leader", 1, "", below("lws"))
		k.group("worker", 2, "", below("lws"))
	}
	playAll(t, []behaviour{
		{name: "leader and workers come whole or not at all", nodes: []*corev1.Node{host("a")}, objects: lws, pods: append(times(2, "worker", member("worker"), cores("2")), work("leader", member("leader"), cores("1"))), want: none,
			check: func(k *kase, _ map[string]string) {
				waits(k, "worker-0", "worker-1", "leader")
				k.stands("lws", metav1.ConditionFalse, "Unschedulable", "2 of 3 fit")
			}, then: func(k *kase) {
				k.node(host("b"))
				k.stands("lws", metav1.ConditionTrue, "Scheduled", "")
			}, after: map[string]string{"worker-0": "*", "worker-1": "*", "leader": "*"}},
		{name: "the leader waits for its workers to exist", nodes: []*corev1.Node{host("a")}, objects: lws, pods: []*corev1.Pod{work("leader", member("leader"), cores("1"))}, want: none,
			check: func(k *kase, _ map[string]string) { waits(k, "leader") },
			then: func(k *kase) {
				for _, p := range times(2, "worker", member("worker"), cores("1")) {
					k.pod(p)
				}
			}, after: map[string]string{"worker-0": "a", "worker-1": "a", "leader": "a"}},
		{name: "three levels, of gangs and basic groups", nodes: []*corev1.Node{host("a", holds(corev1.ResourceCPU, "20"))}, objects: func(k *kase) {
			k.composite("root", "", 2, "")
			for _, sub := range []string{"sub1", "sub3"} {
				k.composite(sub, "root", 2, "")
			}
			k.composite("sub2", "root", 0, "")
			for name, of := range map[string]string{"pg1": "sub1", "pg2": "sub1", "pg3": "sub1", "pg5": "sub2", "pg6": "sub3", "pg7": "sub3"} {
				k.group(name, 3, "", below(of))
			}
			k.group("pg4", 0, "", below("sub2"))
		}, pods: slices.Concat(times(3, "pg1", member("pg1")), times(3, "pg2", member("pg2")), times(3, "pg3", member("pg3"), cores("100")), times(3, "pg4", member("pg4")),
			times(3, "pg5", member("pg5")), times(3, "pg6", member("pg6")), times(3, "pg7", member("pg7"), cores("100"))), want: none,
			then: func(k *kase) {
				waits(k, "pg3-0", "pg3-1", "pg3-2", "pg6-0", "pg6-1", "pg6-2", "pg7-0")
				k.stands("root", metav1.ConditionTrue, "Scheduled", "")
				k.stands("sub1", metav1.ConditionTrue, "Scheduled", "")
				k.stands("sub3", metav1.ConditionFalse, "Unschedulable", "")
			}, after: map[string]string{"pg1-0": "a", "pg1-1": "a", "pg1-2": "a", "pg2-0": "a", "pg2-1": "a", "pg2-2": "a", "pg4-0": "a", "pg4-1": "a", "pg4-2": "a", "pg5-0": "a", "pg5-1": "a", "pg5-2": "a"}},
		{name: "the root comes last", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) { k.composite("mid", "root", 1, ""); k.group("g", 2, "", below("mid")) }, pods: times(2, "g", member("g")), want: none,
			check: func(k *kase, _ map[string]string) {
				waits(k, "g-0", "g-1")
				k.stands("mid", metav1.ConditionFalse, "Unschedulable", "which does not exist")
			}, then: func(k *kase) { k.composite("root", "", 1, "") }, after: map[string]string{"g-0": "a", "g-1": "a"}},
		{name: "a root of another identity under the name", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) { k.composite("root", "", 2, ""); k.group("g", 1, "", below("root")) }, pods: []*corev1.Pod{work("p", member("g"))}, want: none,
			check: func(k *kase, _ map[string]string) { waits(k, "p") }, then: func(k *kase) {
				if err := k.api.SchedulingV1alpha3().CompositePodGroups(k.ns).Delete(k.t.Context(), "root", metav1.DeleteOptions{}); err != nil {
					k.t.Fatal(err)
				}
				k.composite("root", "", 1, "")
				k.stands("root", metav1.ConditionTrue, "Scheduled", "")
			}, after: map[string]string{"p": "a"}},
		{name: "a circle of parents is held", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) {
			k.composite("x", "y", 1, "")
			k.composite("y", "x", 1, "")
			k.group("g", 1, "", below("x"))
		}, pods: []*corev1.Pod{work("p", member("g"))}, want: none, check: func(k *kase, _ map[string]string) {
			waits(k, "p")
			k.stands("x", metav1.ConditionFalse, "Invalid", "is above itself")
			k.stands("y", metav1.ConditionFalse, "Invalid", "is above itself")
		}},
		{name: "more than four levels are held", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) {
			k.composite("q", "", 1, "")
			k.composite("r", "q", 1, "")
			k.composite("s", "r", 1, "")
			k.composite("t", "s", 1, "")
			k.group("g", 1, "", below("t"))
		}, pods: []*corev1.Pod{work("p", member("g"))}, want: none, check: func(k *kase, _ map[string]string) {
			waits(k, "p")
			k.stands("q", metav1.ConditionFalse, "Invalid", "more than 4 groups")
		}},
		{name: "topology: all groups in one rack", nodes: []*corev1.Node{host("a1", rack("a")), host("b1", rack("b")), host("b2", rack("b"))}, objects: func(k *kase) {
			k.composite("root", "", 2, "rack")
			k.group("x", 1, "", below("root"))
			k.group("y", 1, "", below("root"))
		}, pods: []*corev1.Pod{work("x", member("x"), cores("3")), work("y", member("y"), cores("3"))}, want: none, then: func(*kase) {}, after: map[string]string{"x": "b1|b2", "y": "b1|b2"}},
		{name: "topology: a rack for each group, in one zone", nodes: []*corev1.Node{host("a1", in("1", "a")), host("a2", in("1", "a")), host("c1", in("2", "c")), host("c2", in("2", "c")), host("d1", in("2", "d")), host("d2", in("2", "d"))},
			objects: func(k *kase) {
				k.composite("root", "", 2, "zone")
				k.group("x", 2, "rack", below("root"))
				k.group("y", 2, "rack", below("root"))
			}, pods: append(times(2, "x", member("x"), cores("3")), times(2, "y", member("y"), cores("3"))...), want: none, then: func(*kase) {},
			after: map[string]string{"x-0": "c1|c2|d1|d2", "x-1": "c1|c2|d1|d2", "y-0": "c1|c2|d1|d2", "y-1": "c1|c2|d1|d2"}, check: func(k *kase, at map[string]string) {
				if at["x-0"] != "" && (at["x-0"][0] != at["x-1"][0] || at["y-0"][0] != at["y-1"][0]) {
					k.t.Errorf("a group is in two racks: %v", at)
				}
			}},
		{name: "preemption: a tree goes as a whole", nodes: []*corev1.Node{host("a"), host("b"), host("c")}, objects: func(k *kase) { lws(k) },
			pods: append(times(2, "worker", member("worker"), of("low"), cores("3")), work("leader", member("leader"), of("low"), cores("3"))), want: none, then: func(k *kase) {
				k.are(map[string]string{"worker-0": "*", "worker-1": "*", "leader": "*"})
				k.pod(work("high", of("high"), cores("3")))
				k.gone("worker-0", "worker-1", "leader")
			}, after: map[string]string{"high": "*"}},
		{name: "preemption: a rack for each group", nodes: []*corev1.Node{host("a1", rack("a")), host("a2", rack("a")), host("b1", rack("b")), host("b2", rack("b")), host("c1", rack("c"))}, objects: func(k *kase) {
			k.composite("root", "", 2, "")
			k.group("x", 2, "rack", below("root"))
			k.group("y", 2, "rack", below("root"))
		}, running: []*corev1.Pod{work("low-a1", on("a1"), of("low"), cores("3")), work("low-b1", on("b1"), of("low"), cores("3")), work("low-b2", on("b2"), of("low"), cores("3")), work("low-c1", on("c1"), of("low"), cores("3"))},
			pods: append(times(2, "x", member("x"), of("high"), cores("3")), times(2, "y", member("y"), of("high"), cores("3"))...), want: none, then: func(k *kase) {
				k.gone("low-a1", "low-b1", "low-b2")
				k.stays("low-c1")
				at := k.are(map[string]string{"x-0": "a1|a2|b1|b2", "x-1": "a1|a2|b1|b2", "y-0": "a1|a2|b1|b2", "y-1": "a1|a2|b1|b2"})
				if at["x-0"][0] != at["x-1"][0] || at["y-0"][0] != at["y-1"][0] {
					k.t.Errorf("a group is in two racks: %v", at)
				}
			}, after: none},
		{name: "groups that are made again while their pods run", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) { lws(k) },
			pods: append(times(2, "worker", member("worker"), cores("1")), work("leader", member("leader"), cores("1"))), want: none, then: func(k *kase) {
				k.are(map[string]string{"worker-0": "a", "worker-1": "a", "leader": "a"})
				k.stands("lws", metav1.ConditionTrue, "Scheduled", "")
				if err := k.api.SchedulingV1alpha3().CompositePodGroups(k.ns).Delete(k.t.Context(), "lws", metav1.DeleteOptions{}); err != nil {
					k.t.Fatal(err)
				}
				k.composite("lws", "", 2, "")
				k.stands("lws", metav1.ConditionTrue, "Scheduled", "")
				if err := k.api.SchedulingV1beta1().PodGroups(k.ns).Delete(k.t.Context(), "worker", metav1.DeleteOptions{}); err != nil {
					k.t.Fatal(err)
				}
				// Its finalizer keeps it while its pods run; an operator takes that away.
				if _, err := k.api.SchedulingV1beta1().PodGroups(k.ns).Patch(k.t.Context(), "worker", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
					k.t.Fatal(err)
				}
				k.group("worker", 2, "", below("lws"))
				k.poll("the group is scheduled", func(ctx context.Context) (bool, error) {
					g, err := k.api.SchedulingV1beta1().PodGroups(k.ns).Get(ctx, "worker", metav1.GetOptions{})
					return err == nil && apimeta.IsStatusConditionTrue(g.Status.Conditions, "PodGroupInitiallyScheduled"), err
				})
			}, after: none},
		{name: "a minimum that becomes smaller", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) { k.composite("root", "", 1, ""); k.group("g", 3, "", below("root")) },
			pods: times(3, "g", member("g"), cores("2")), want: none, check: func(k *kase, _ map[string]string) { waits(k, "g-0", "g-1", "g-2") }, then: func(k *kase) {
				k.poll("the minimum is changed", func(ctx context.Context) (bool, error) { // that of a CompositePodGroup cannot be
					g, err := k.api.SchedulingV1beta1().PodGroups(k.ns).Get(ctx, "g", metav1.GetOptions{})
					if err != nil {
						return false, err
					}
					g.Spec.SchedulingPolicy.Gang.MinCount = 2
					_, err = k.api.SchedulingV1beta1().PodGroups(k.ns).Update(ctx, g, metav1.UpdateOptions{})
					if apierrors.IsConflict(err) {
						return false, nil
					}
					return err == nil, err
				})
				k.poll("two pods are placed", func(context.Context) (bool, error) {
					n := 0
					for _, name := range []string{"g-0", "g-1", "g-2"} {
						if k.get(name).Spec.NodeName != "" {
							n++
						}
					}
					return n == 2, nil
				})
			}, after: none},
		{name: "preemption: a tree takes room for all of it", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) {
			k.composite("root", "", 2, "")
			k.group("x", 1, "", below("root"))
			k.group("y", 1, "", below("root"))
		}, running: []*corev1.Pod{work("low-a", on("a"), of("low"), cores("3")), work("low-b", on("b"), of("low"), cores("3"))},
			pods: []*corev1.Pod{work("x", member("x"), of("high"), cores("3")), work("y", member("y"), of("high"), cores("3"))}, want: none, then: func(*kase) {}, after: map[string]string{"x": "*", "y": "*"}},
	})
}
