package adapter

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
)

// rayCluster adapts KubeRay's RayCluster: the replicas of a worker group are written. Each group is a part of its own;
// the head is stable. KubeRay makes missing workers again at once. Of those that are too many it takes the ones that
// scaleStrategy names, and else the first of its list, where one that ends is still counted. Ray moves tasks and actors
// of a lost worker elsewhere.
type rayCluster struct{}

// The labels of KubeRay: the node type is "head" or "worker", the group the name of the worker group.
const (
	labelRayNodeType = "ray.io/node-type"
	labelRayGroup    = "ray.io/group"
	rayHead          = "head"
)

func (rayCluster) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayCluster"}
}

func (r rayCluster) Resource() schema.GroupVersionResource {
	return r.Kind().GroupVersion().WithResource("rayclusters")
}

func (rayCluster) PartOf(labels map[string]string) string {
	if labels[labelRayNodeType] == rayHead {
		return rayHead
	}
	return labels[labelRayGroup]
}

func (rayCluster) Read(u *unstructured.Unstructured) Workload {
	o := object(u.Object)
	w := Workload{What: what(u)}
	if o.yes("spec", "suspend") {
		refuseSuspended(&w.Refusals, u, "spec.suspend", w.What)
	}
	for i, g := range o.list("spec", "workerGroupSpecs") {
		at := func(field string) []string { return []string{"spec", "workerGroupSpecs", strconv.Itoa(i), field} }
		p := Part{Name: g.text("groupName"), Size: g.number(0, "replicas"), Remaining: -1, Active: -1, Ending: -1,
			Path: at("replicas"), Guard: &Guard{at("groupName"), g.text("groupName")}, Leaves: fleet.LeavesNamed, Victims: at("scaleStrategy"),
			Template: g.podSpec("template", "spec"), Labels: g.labels("template", "metadata", "labels")}
		p.Min = Bound{g.number(0, "minReplicas"), dotted(at("minReplicas"))}
		if g.has("maxReplicas") {
			p.Max = Bound{g.number(0, "maxReplicas"), dotted(at("maxReplicas"))}
		}
		if g.yes("suspend") {
			refuseSuspended(&p.StableToo, u, dotted(at("suspend")), w.What)
		}
		if n := g.number(1, "numOfHosts"); n > 1 {
			refuse(&p.Refusals, catalog.MultiHostGroup, p.Name, w.What, n)
		}
		if o.yes("spec", "enableInTreeAutoscaling") {
			refuse(&p.Refusals, catalog.RayScaler, w.What, p.Name)
		}
		w.Parts = append(w.Parts, p)
	}
	w.Parts = append(w.Parts, Part{Name: rayHead, Size: 1, Remaining: -1, Active: -1, Ending: -1, Fixed: "there is one head",
		Template: o.podSpec("spec", "headGroupSpec", "template", "spec"),
		Labels:   marked(o.labels("spec", "headGroupSpec", "template", "metadata", "labels"), labelRayNodeType, rayHead)})
	w.Stopped = stoppedAt(o)
	w.govern(u, rayCluster{}.Kind(), managedBy(o))
	return w
}
