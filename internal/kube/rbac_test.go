package kube

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/internal/kube/kubetest"
)

// right is one verb on one resource; own marks what is needed in the controller's namespace alone.
type right struct {
	group, resource, verb string
	own                   bool
}

func (r right) String() string {
	s := r.verb + " " + r.resource
	if r.group != "" {
		s += "." + r.group
	}
	if r.own {
		s += " (own namespace)"
	}
	return s
}

// granted reads deploy/base/rbac.yaml, and the role that tenants bind in their own namespaces.
var granted = sync.OnceValues(func() (map[right]bool, error) {
	text, err := os.ReadFile("../../deploy/base/rbac.yaml")
	if err != nil {
		return nil, err
	}
	tenants, err := os.ReadFile("../../deploy/base/offline/hosts.yaml")
	if err != nil {
		return nil, err
	}
	text = append(append(text, "\n---\n"...), tenants...)
	out := map[right]bool{}
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := d.Decode(&role); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		for _, rule := range role.Rules {
			for _, g := range rule.APIGroups {
				for _, res := range rule.Resources {
					for _, v := range rule.Verbs {
						out[right{g, res, v, role.Kind == "Role"}] = true
					}
				}
			}
		}
	}
})

// rightOf is what an API server would ask for before a call.
func rightOf(a clienttesting.Action) right {
	res := a.GetResource().Resource
	if s := a.GetSubresource(); s != "" {
		res += "/" + s
	}
	return right{group: a.GetResource().Group, resource: res, verb: a.GetVerb()}
}

// checkRights fails a test whose world made a call that deploy/base/rbac.yaml does not grant. Every test with a world ends with it.
func (w *world) checkRights(t testing.TB) {
	t.Helper()
	have, err := granted()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range append(w.core.Actions(), w.dyn.Actions()...) {
		r := rightOf(a)
		if r.resource == "resource" || r.resource == "group" { // discovery, which everybody may
			continue
		}
		if r.group == gvrKruise.Group { // granted by who names it in daemonKinds
			continue
		}
		own := r
		own.own = true
		if !have[r] && !(have[own] && a.GetNamespace() == kubetest.Namespace) {
			t.Errorf("%s is used and not granted in deploy/base/rbac.yaml", r)
		}
	}
}

// TestRights lists every right that the controller uses, and holds deploy/base/rbac.yaml to it.
func TestRights(t *testing.T) {
	const ours = "springtide.dev"
	want := map[right]bool{}
	add := func(group, resources, verbs string, own bool) {
		for res := range strings.FieldsSeq(resources) {
			for v := range strings.FieldsSeq(verbs) {
				want[right{group, res, v, own}] = true
			}
		}
	}
	add("", "nodes pods namespaces", "get list watch", false)
	add("apps", "deployments statefulsets replicasets daemonsets", "get list watch", false)
	add("batch", "jobs", "get list watch", false)
	add("autoscaling", "horizontalpodautoscalers", "get list watch", false)
	add("policy", "poddisruptionbudgets", "get list watch", false) // who refuses an eviction, and when another try is worth it
	add("topology.node.k8s.io", "noderesourcetopologies", "get list watch", false)
	add("keda.sh", "scaledobjects", "get list watch", false)
	add("autoscaling.alibabacloud.com", "cronhorizontalpodautoscalers", "get list watch", false)
	add("autoscaling.k8s.io", "verticalpodautoscalers", "get list watch", false)
	add("scheduling.k8s.io", "workloads podgroups", "get create patch", false) // the gang of a job
	add("resource.k8s.io", "deviceclasses resourceslices resourceclaims resourceclaimtemplates", "get list watch", false)
	add("kubeflow.org", "mpijobs pytorchjobs", "get list watch patch", false) // sizes of workloads of other operators
	add("ray.io", "rayclusters", "get list watch patch", false)
	add("batch.volcano.sh", "jobs", "get list watch patch", false)
	add("jobset.x-k8s.io", "jobsets", "get list watch", false)
	add("sparkoperator.k8s.io", "sparkapplications", "get list watch", false)
	add("trainer.kubeflow.org", "trainjobs", "get list watch", false)
	add("", "configmaps", "get create patch", false)                    // host lists
	add("apps", "deployments/scale statefulsets/scale", "patch", false) // replicas, by server-side apply
	add("autoscaling", "horizontalpodautoscalers", "patch", false)      // the floor
	add("batch", "jobs", "patch", false)                                // parallelism
	add("", "nodes", "patch", false)                                    // taint, label, annotations
	add("", "pods", "patch", false)                                     // notice, deletion cost
	add("", "pods/eviction", "create", false)
	add("apps", "deployments statefulsets", "patch", false) // requests in the template, the leader's epoch
	add("", "pods/resize", "patch", false)                  // requests in place
	add("", "pods/status", "patch", false)                  // readiness gates
	add("", "events", "create list patch watch", false)     // it reads why pods cannot be made
	add(ours, "elasticservices capacitypools capacityquotas elasticjobs festivalplans loans nodeshares", "get list watch", false)
	add(ours, "elasticservices/status capacitypools/status capacityquotas/status elasticjobs/status festivalplans/status loans/status nodeshares/status", "update", false)
	add(ours, "loans", "create delete", false)
	add(ours, "nodeshares", "create update", false)
	add(ours, "leaderepochs", "update", false)         // asked for by deploy/base/epochs.yaml
	add("coordination.k8s.io", "leases", "get", false) // of the name springtide-controller, in all namespaces
	add("coordination.k8s.io", "leases", "get list watch create update", true)
	add("", "pods", "create delete", true) // fillers

	have, err := granted()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sorted(want), sorted(have)); diff != "" {
		t.Errorf("deploy/base/rbac.yaml (-used +granted):\n%s", diff)
	}
	for r := range have {
		if !r.own && r.group == "" && r.resource == string(corev1.ResourcePods) && (r.verb == "delete" || r.verb == "create") {
			t.Errorf("%s: pods of others end through the Eviction API alone", r)
		}
	}
}

func sorted(m map[right]bool) []string {
	var out []string
	for r := range m {
		out = append(out, r.String())
	}
	slices.Sort(out)
	return out
}
