package target

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/v1alpha1"
)

// Right is one verb that the controller needs on a kind of targets.
type Right struct {
	Verb, Subresource string
	// Acts marks what is needed to scale alone: without it objects are read, and services of mode Auto are refused.
	Acts bool
}

// Rights are those that the controller needs on a kind: it watches the objects and reads their Scale. It patches the
// Scale, and a new leader stamps its epoch on the object.
func Rights() []Right {
	return []Right{{Verb: "get"}, {Verb: "list"}, {Verb: "watch"}, {Verb: "get", Subresource: Subresource},
		{Verb: "patch", Acts: true}, {Verb: "patch", Subresource: Subresource, Acts: true}}
}

// Text names a right on a resource, as in "patch rollouts.argoproj.io/scale".
func (r *Right) Text(of schema.GroupVersionResource) string {
	out := r.Verb + " " + of.GroupResource().String()
	if r.Subresource != "" {
		out += "/" + r.Subresource
	}
	return out
}

// ClusterRole is the manifest that grants the rights on a resource to the controller, by aggregation.
func ClusterRole(of schema.GroupVersionResource) string {
	name := of.Resource
	if of.Group != "" {
		name += "-" + strings.ReplaceAll(of.Group, ".", "-")
	}
	return fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: springtide-target-%s
  labels: {%s: "true"}
rules:
  - apiGroups: [%q]
    resources: [%s]
    verbs: [get, list, watch, patch]
  - apiGroups: [%q]
    resources: [%s/scale]
    verbs: [get, patch]
`, name, v1alpha1.LabelAggregate, of.Group, of.Resource, of.Group, of.Resource)
}
