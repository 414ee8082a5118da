package doctor

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/examine"
)

// right is what the controller must be allowed to do. Those marked own are needed in its own namespace alone.
type right struct {
	group, resource, subresource string
	verbs                        string
	own                          bool
}

// controllerRights are all rights that the controller uses, and why in the order of its work: those that deploy/base grants.
var controllerRights = []right{
	// It watches.
	{"", "nodes", "", "get list watch", false},
	{"", "pods", "", "get list watch", false},
	{"", "namespaces", "", "get list watch", false},
	{"apps", "deployments", "", "get list watch", false},
	{"apps", "statefulsets", "", "get list watch", false},
	{"apps", "replicasets", "", "get list watch", false},
	{"apps", "daemonsets", "", "get list watch", false},
	{"batch", "jobs", "", "get list watch", false},
	{"autoscaling", "horizontalpodautoscalers", "", "get list watch", false},
	// The same of kinds that a cluster might not have: NUMA cells, and scalers not to fight with.
	{"topology.node.k8s.io", "noderesourcetopologies", "", "get list watch", false},
	{"keda.sh", "scaledobjects", "", "get list watch", false},
	{"autoscaling.alibabacloud.com", "cronhorizontalpodautoscalers", "", "get list watch", false},
	{"autoscaling.k8s.io", "verticalpodautoscalers", "", "get list watch", false},
	{"resource.k8s.io", "deviceclasses", "", "get list watch", false},
	{"resource.k8s.io", "resourceslices", "", "get list watch", false},
	{"resource.k8s.io", "resourceclaims", "", "get list watch", false},
	{"resource.k8s.io", "resourceclaimtemplates", "", "get list watch", false},
	// It reads which disruption budgets refuse an eviction.
	{"policy", "poddisruptionbudgets", "", "get list watch", false},
	// Workloads of other operators that elastic jobs may name, and those of them that it resizes.
	{"kubeflow.org", "mpijobs", "", "get list watch patch", false},
	{"kubeflow.org", "pytorchjobs", "", "get list watch patch", false},
	{"ray.io", "rayclusters", "", "get list watch patch", false},
	{"batch.volcano.sh", "jobs", "", "get list watch patch", false},
	{"jobset.x-k8s.io", "jobsets", "", "get list watch", false},
	{"sparkoperator.k8s.io", "sparkapplications", "", "get list watch", false},
	{"trainer.kubeflow.org", "trainjobs", "", "get list watch", false},
	// The Workload and the PodGroup of an elastic job, where the API server serves them.
	{"scheduling.k8s.io", "workloads", "", "get create patch", false},
	{"scheduling.k8s.io", "podgroups", "", "get create patch", false},
	// It scales, by the scale subresource or by the floor of an HPA, and resizes Jobs.
	{"apps", "deployments", "scale", "patch", false},
	{"apps", "statefulsets", "scale", "patch", false},
	{"autoscaling", "horizontalpodautoscalers", "", "patch", false},
	{"batch", "jobs", "", "patch", false},
	// It changes requests, in templates and in place.
	{"apps", "deployments", "", "patch", false},
	{"apps", "statefulsets", "", "patch", false},
	{"", "pods", "resize", "patch", false},
	{"", "pods", "status", "patch", false},
	// It marks machines, notifies pods, and evicts those that must go.
	{"", "nodes", "", "patch", false},
	{"", "pods", "", "patch", false},
	{"", "pods", "eviction", "create", false},
	{"", "events", "", "create list patch watch", false},
	// It holds room by fillers, and leads, in its own namespace.
	{"", "pods", "", "create delete", true},
	{"coordination.k8s.io", "leases", "", "get list watch create update", true},
	// It sees the Lease of another installation, and writes the epochs of leaders.
	{"coordination.k8s.io", "leases", "", "get", false},
	{v1alpha1.GroupVersion.Group, "leaderepochs", "", "update", false},
	// It keeps its own objects.
	{v1alpha1.GroupVersion.Group, cluster.Services, "", "get list watch", false},
	{v1alpha1.GroupVersion.Group, cluster.Pools, "", "get list watch", false},
	{v1alpha1.GroupVersion.Group, cluster.Quotas, "", "get list watch", false},
	{v1alpha1.GroupVersion.Group, cluster.Jobs, "", "get list watch", false},
	{v1alpha1.GroupVersion.Group, cluster.Festivals, "", "get list watch", false},
	{v1alpha1.GroupVersion.Group, cluster.Loans, "", "get list watch create delete", false},
	{v1alpha1.GroupVersion.Group, cluster.Shares, "", "get list watch create update", false},
	{v1alpha1.GroupVersion.Group, cluster.Services, "status", "update", false},
	{v1alpha1.GroupVersion.Group, cluster.Pools, "status", "update", false},
	{v1alpha1.GroupVersion.Group, cluster.Quotas, "status", "update", false},
	{v1alpha1.GroupVersion.Group, cluster.Jobs, "status", "update", false},
	{v1alpha1.GroupVersion.Group, cluster.Festivals, "status", "update", false},
	{v1alpha1.GroupVersion.Group, cluster.Loans, "status", "update", false},
	{v1alpha1.GroupVersion.Group, cluster.Shares, "status", "update", false},
}

// checkRights asks the API server about each right. The answers are about the caller.
func checkRights(ctx context.Context, d *doctor) error {
	asked := 0
	var missing []string
	for _, r := range controllerRights {
		for verb := range strings.FieldsSeq(r.verbs) {
			asked++
			attributes := &authorizationv1.ResourceAttributes{Group: r.group, Resource: r.resource, Subresource: r.subresource, Verb: verb}
			if r.own {
				attributes.Namespace = d.Namespace
			} else if r.resource == "leases" { // granted by name
				attributes.Name = "springtide-controller"
			}
			allowed, err := d.May(ctx, attributes)
			if err != nil {
				return err
			}
			if !allowed {
				missing = append(missing, verb+" "+r.String())
			}
		}
	}
	if len(missing) > 0 {
		d.Report("if this is the controller's account, grant them by a ClusterRole; if it is yours, run doctor as the controller", "%d of %d are missing: %s", len(missing), asked, cell.First(missing, cell.FewNames))
		return nil
	}
	d.OK("all %d that the controller uses are there", asked)
	return nil
}

// String renders "resource.group/subresource".
func (r right) String() string { return examine.KindText(r.group, r.resource, r.subresource) }
