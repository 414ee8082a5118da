package host

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
)

// podGroup is upstream's PodGroup or CompositePodGroup as far as it is understood.
type podGroup struct {
	gvr             schema.GroupVersionResource
	namespace, name string
	uid             types.UID
	generation      int64
	// scheduled: its condition says that it was scheduled once.
	scheduled bool
	// minCount is how many pods it needs; a composite one needs as many groups.
	minCount  int
	composite bool
	// topologyKey is the node label that must be the same for all; empty for none.
	topologyKey string
	// parent is the CompositePodGroup that it is part of; empty for none. workload is the Workload whose template it was made of.
	parent, workload string
	// job is the ElasticJob that it was made for, as namespace/name; empty for none.
	job string
	// invalid: its tree has a shape that waiting does not make good.
	invalid bool
	// whole: its pods are taken together or not at all (disruptionMode all).
	whole bool
	// priority stands for that of its pods where prioritized says that the group states one. policy does for their preemption policy; empty where the group states
	// none.
	prioritized bool
	priority    int32
	policy      corev1.PreemptionPolicy
	// object is the group as upstream's plugins read it: who it is, and its claims; nil for a CompositePodGroup.
	object *schedulingv1beta1.PodGroup
}

// asksAs reports whether a group asks for the same as another version of it.
func (g *podGroup) asksAs(o *podGroup) bool {
	a, b := *g, *o
	for _, x := range []*podGroup{&a, &b} {
		x.gvr, x.uid, x.generation, x.scheduled, x.invalid, x.object = schema.GroupVersionResource{}, "", 0, false, false, nil
	}
	return a == b
}

// loose reports whether the pods of a group need nothing of each other: they stand for themselves.
func (g *podGroup) loose() bool {
	return g.minCount < 2 && g.topologyKey == "" && g.parent == "" && !g.whole
}

// podGroups are the versions of PodGroup that are understood, the preferred one first. 1.37 serves v1beta1 and v1alpha3, 1.36 v1alpha2.
func podGroups() []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, v := range []string{"v1", "v1beta1", "v1alpha3", "v1alpha2"} {
		out = append(out, schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: v, Resource: "podgroups"})
	}
	return out
}

// The conditions that say how a PodGroup stands. The later one stays true after the first success: it says nothing of what happened to the pods since.
const (
	conditionScheduled          = "PodGroupScheduled"
	conditionInitiallyScheduled = "PodGroupInitiallyScheduled"
	conditionCompositeScheduled = "CompositePodGroupInitiallyScheduled"
)

// condition is the type of the condition that a group has in its version.
func (g *podGroup) condition() string {
	switch {
	case g.composite:
		return conditionCompositeScheduled
	case g.gvr.Version == "v1alpha2":
		return conditionScheduled
	}
	return conditionInitiallyScheduled
}

// readGroup reads a PodGroup of any version. A group without a gang policy has a minimum of one.
func readGroup(u *unstructured.Unstructured) *podGroup {
	g := readAs(u, "podgroups", "minCount", false)
	g.object = &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: g.name, UID: g.uid}}
	if g.topologyKey != "" {
		g.object.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: g.topologyKey}}}
	}
	read(u.Object, &g.object.Spec.ResourceClaims, "spec", "resourceClaims")
	read(u.Object, &g.object.Status.ResourceClaimStatuses, "status", "resourceClaimStatuses")
	return g
}

// read reads a list, which is the same in all versions. Of what has another shape nothing is read.
func read[A any](o map[string]any, into *[]A, fields ...string) {
	list, _, _ := unstructured.NestedSlice(o, fields...)
	for _, x := range list {
		var a A
		if m, ok := x.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &a) == nil {
			*into = append(*into, a)
		}
	}
}

// readAs reads a group. least is the name of the field that counts what it needs at least.
func readAs(u *unstructured.Unstructured, resource, least string, composite bool) *podGroup {
	g := &podGroup{gvr: u.GroupVersionKind().GroupVersion().WithResource(resource), namespace: u.GetNamespace(), name: u.GetName(), uid: u.GetUID(), generation: u.GetGeneration(), minCount: 1, composite: composite}
	g.readSpec(u.Object, least)
	g.parent, _, _ = unstructured.NestedString(u.Object, "spec", "parentCompositePodGroupName")
	g.workload, _, _ = unstructured.NestedString(u.Object, "spec", "workloadRef", "workloadName")
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil && owner.Kind == "ElasticJob" && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		g.job = g.namespace + "/" + owner.Name
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == g.condition() {
			g.scheduled = c["status"] == "True"
		}
	}
	return g
}

// readSpec reads what a group asks for.
func (g *podGroup) readSpec(o map[string]any, least string) {
	if n, ok, err := unstructured.NestedInt64(o, "spec", "schedulingPolicy", "gang", least); ok && err == nil {
		g.minCount = int(n)
	}
	if list, ok, err := unstructured.NestedSlice(o, "spec", "schedulingConstraints", "topology"); ok && err == nil && len(list) > 0 {
		if first, ok := list[0].(map[string]any); ok {
			g.topologyKey, _ = first["key"].(string)
		}
	}
	mode, _, _ := unstructured.NestedFieldNoCopy(o, "spec", "disruptionMode")
	switch mode := mode.(type) {
	case string: // until 1.36
		g.whole = mode == "PodGroup"
	case map[string]any:
		_, g.whole = mode["all"]
	}
	// Admission writes 0 into a group that names no class while there is no default: that states nothing, and the priorities of its pods count.
	class, _, _ := unstructured.NestedString(o, "spec", "priorityClassName")
	if n, ok, err := unstructured.NestedInt64(o, "spec", "priority"); ok && err == nil && (class != "" || n != 0) {
		g.prioritized, g.priority = true, int32(n)
	}
	policy, _, _ := unstructured.NestedString(o, "spec", "preemptionPolicy")
	g.policy = corev1.PreemptionPolicy(policy)
}

// groupOf is the group that states the priority of a pod: the one at the top of its tree; nil where it names none or an unknown one.
func (g *gangs) groupOf(o *corev1.Pod) *podGroup {
	group := g.groups[groupName(o)]
	if group == nil {
		return nil
	}
	if top, _, _ := g.root(group); top != nil {
		return top
	}
	return group
}

// priorityOf is the priority of a pod: that of its PodGroup where it states one.
func (g *gangs) priorityOf(o *corev1.Pod) int32 {
	if group := g.groupOf(o); group != nil && group.prioritized {
		return group.priority
	}
	return ownPriority(o)
}

// ownPriority is what the pod itself says.
func ownPriority(o *corev1.Pod) int32 {
	if o.Spec.Priority == nil {
		return 0
	}
	return *o.Spec.Priority
}

// mayPreempt reports whether a pod may take the room of others, by its PodGroup where that says so.
func (g *gangs) mayPreempt(o *corev1.Pod) bool {
	if group := g.groupOf(o); group != nil && group.policy != "" {
		return group.policy != corev1.PreemptNever
	}
	return o.Spec.PreemptionPolicy == nil || *o.Spec.PreemptionPolicy != corev1.PreemptNever
}
