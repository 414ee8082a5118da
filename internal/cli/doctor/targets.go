package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/kube/target"
)

// kind names a kind of targets.
type kind struct{ apiVersion, kind string }

// String renders "Rollout of argoproj.io/v1alpha1".
func (k kind) String() string { return k.kind + " of " + k.apiVersion }

// checkTargets says which kinds other than Deployment and StatefulSet can be targets, and whether the rights on them
// are there. A kind that a service names must be one.
func checkTargets(ctx context.Context, d *doctor) error {
	services, err := cluster.List[v1alpha1.ElasticService](ctx, d.Clients, cluster.Services, "")
	if err != nil && !cluster.IsUnserved(err) {
		return err
	}
	named := map[kind][]string{}
	for i := range services {
		if ref := &services[i].Spec.TargetRef; !target.Builtin(ref) {
			k := kind{ref.APIVersion, ref.Kind}
			named[k] = append(named[k], services[i].Namespace+"/"+services[i].Name)
		}
	}
	for _, k := range sortedKinds(named) {
		if err := d.judgeTarget(ctx, k, named[k]); err != nil {
			return err
		}
	}
	var further []string
	for _, ref := range d.Clients.Scalable() {
		k := kind{ref.APIVersion, ref.Kind}
		if named[k] != nil {
			continue
		}
		gvr, problem, err := target.Find(d.Clients.Core.Discovery(), k.apiVersion, k.kind)
		if err != nil || problem.Any() {
			continue
		}
		missing, err := d.missingOn(ctx, gvr)
		if err != nil {
			return err
		}
		how := "rights are there"
		if len(missing) > 0 {
			how = "no rights yet"
		}
		further = append(further, fmt.Sprintf("%s (%s)", k, how))
	}
	if len(further) > 0 {
		d.OK("further kinds that a service may name: %s; doctor prints the ClusterRole of a kind that one names",
			cell.First(further, cell.FewNames))
	} else if len(named) == 0 {
		d.OK("Deployments and StatefulSets alone can be scaled: no other kind here has a scale subresource")
	}
	return nil
}

// judgeTarget looks at a kind that services name.
func (d *doctor) judgeTarget(ctx context.Context, k kind, by []string) error {
	gvr, problem, err := target.Find(d.Clients.Core.Discovery(), k.apiVersion, k.kind)
	if err != nil {
		return err
	}
	if problem.Any() {
		d.Report("correct spec.targetRef of "+cell.First(by, cell.FewNames), "%s", problem.Message)
		return nil
	}
	missing, err := d.missingOn(ctx, gvr)
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		d.OK("%s is scaled for %s, and the rights are there", k, cell.First(by, cell.FewNames))
		return nil
	}
	d.Report("apply this ClusterRole; its label gives the rights to the "+
		"controller:\n"+strings.TrimSpace(target.ClusterRole(gvr)),
		"%s is the target of %s, and the rights %s are missing", k, cell.First(by, cell.FewNames),
		strings.Join(missing, ", "))
	return nil
}

// missingOn are the rights on a kind that the caller lacks.
func (d *doctor) missingOn(ctx context.Context, gvr schema.GroupVersionResource) ([]string, error) {
	var missing []string
	for _, r := range target.Rights() {
		allowed, err := d.May(ctx, &authorizationv1.ResourceAttributes{Group: gvr.Group, Resource: gvr.Resource,
			Subresource: r.Subresource, Verb: r.Verb})
		if err != nil {
			return nil, err
		}
		if !allowed {
			missing = append(missing, r.Text(gvr))
		}
	}
	return missing, nil
}

func sortedKinds(m map[kind][]string) []kind {
	out := make([]kind, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.apiVersion, b.apiVersion))
	})
	return out
}
