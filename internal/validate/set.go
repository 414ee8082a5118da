package validate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/api/v1alpha1"
)

// Key names an object of a [Set].
type Key struct{ Kind, Namespace, Name string }

// String renders "Kind namespace/name".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// Set is objects that are judged together.
type Set struct {
	// Services in the order in which they got hold of their targets: the first of two keeps it.
	Services []*v1alpha1.ElasticService
	Pools    []*v1alpha1.CapacityPool
	Quotas   []*v1alpha1.CapacityQuota
}

// Problems finds what is wrong between the objects: a second owner of a target, pools that pick the same machines,
// parents that form a circle or are missing. The functions of each kind find what is wrong with one object alone.
func (s *Set) Problems() map[Key][]Problem {
	out := map[Key][]Problem{}
	for name, p := range SharedTargets(s.Services) {
		namespace, name, _ := strings.Cut(name, "/")
		k := Key{"ElasticService", namespace, name}
		out[k] = append(out[k], p)
	}
	for name, p := range OverlappingPools(s.Pools) {
		k := Key{"CapacityPool", "", name}
		out[k] = append(out[k], p)
	}
	for _, found := range []map[string]Problem{ParentCircles(s.Quotas), MissingParents(s.Quotas)} {
		for name, p := range found {
			k := Key{"CapacityQuota", "", name}
			out[k] = append(out[k], p)
		}
	}
	return out
}

// Advice finds what works between the objects, though hardly as it was meant: parents that guarantee less than those below them.
func (s *Set) Advice() map[Key][]Problem {
	out := map[Key][]Problem{}
	for name, p := range OversoldParents(s.Quotas) {
		out[Key{"CapacityQuota", "", name}] = []Problem{p}
	}
	return out
}

// MissingParents finds the quotas whose parent is not among them, by name.
func MissingParents(quotas []*v1alpha1.CapacityQuota) map[string]Problem {
	there := make(map[string]bool, len(quotas))
	for _, q := range quotas {
		there[q.Name] = true
	}
	out := map[string]Problem{}
	for _, q := range quotas {
		if p := q.Spec.Parent; p != "" && !there[p] {
			out[q.Name] = Problem{"spec.parent", fmt.Sprintf("there is no CapacityQuota %s: create it, or correct the parent", p)}
		}
	}
	return out
}

// ParentCircles finds the quotas whose chain of parents comes back to themselves, by name. A quota that only leads into a circle has a
// parent that is refused, and is not named here.
func ParentCircles(quotas []*v1alpha1.CapacityQuota) map[string]Problem {
	parent := make(map[string]string, len(quotas))
	for _, q := range quotas {
		parent[q.Name] = q.Spec.Parent
	}
	out := map[string]Problem{}
	for _, q := range quotas {
		chain := []string{q.Name}
		for next := parent[q.Name]; next != "" && !slices.Contains(chain, next); next = parent[next] {
			chain = append(chain, next)
		}
		if parent[chain[len(chain)-1]] != q.Name {
			continue
		}
		chain = append(chain, q.Name)
		out[q.Name] = Problem{"spec.parent", fmt.Sprintf("the parents form a circle (%s): leave parent out of one of them",
			strings.Join(chain, " -> "))}
	}
	return out
}

// OversoldParents finds the quotas that guarantee less than those below them together, by name. Nothing breaks on that,
// as the guarantees below are scaled down alike; but a tenant counts on what it does not have. A quota that guarantees
// nothing of a resource passes on what those below it are guaranteed, and quotas in a circle are left to
// [ParentCircles].
func OversoldParents(quotas []*v1alpha1.CapacityQuota) map[string]Problem {
	circles := ParentCircles(quotas)
	below := map[string][]*v1alpha1.CapacityQuota{}
	for _, q := range quotas {
		if _, ok := circles[q.Name]; !ok {
			below[q.Spec.Parent] = append(below[q.Spec.Parent], q)
		}
	}
	out := map[string]Problem{}
	for _, r := range []struct {
		name string
		of   func(*v1alpha1.ResourceAmounts) resource.Quantity
	}{
		{"cpu", func(a *v1alpha1.ResourceAmounts) resource.Quantity { return a.CPU }},
		{"memory", func(a *v1alpha1.ResourceAmounts) resource.Quantity { return a.Memory }},
		{"gpu", func(a *v1alpha1.ResourceAmounts) resource.Quantity {
			return *resource.NewQuantity(a.GPU, resource.DecimalSI)
		}},
	} {
		var promised func(q *v1alpha1.CapacityQuota) resource.Quantity
		promised = func(q *v1alpha1.CapacityQuota) resource.Quantity {
			var sum resource.Quantity
			for _, c := range below[q.Name] {
				sum.Add(promised(c))
			}
			own := r.of(&q.Spec.Guarantee)
			if own.IsZero() {
				return sum
			}
			if _, found := out[q.Name]; sum.Cmp(own) > 0 && !found {
				out[q.Name] = Problem{"spec.guarantee." + r.name, fmt.Sprintf("the guarantees below come to %s of its %s: raise it, or lower theirs, which count as less until then", sum.String(), own.String())}
			}
			return own
		}
		for _, q := range quotas {
			if _, ok := circles[q.Name]; !ok {
				promised(q)
			}
		}
	}
	return out
}

// SharedTargets finds services that name the target of another one, in the order given: the first of two keeps it. The key of the answer
// is "namespace/name".
func SharedTargets(services []*v1alpha1.ElasticService) map[string]Problem {
	type target struct{ namespace, group, kind, name string }
	owner := map[target]string{}
	out := map[string]Problem{}
	for _, s := range services {
		ref := s.Spec.TargetRef
		group, _, grouped := strings.Cut(ref.APIVersion, "/")
		if !grouped {
			group = ""
		}
		t, name := target{s.Namespace, group, ref.Kind, ref.Name}, s.Namespace+"/"+s.Name
		if first, taken := owner[t]; taken && first != name {
			out[name] = Problem{"spec.targetRef", fmt.Sprintf("%s %s is the target of ElasticService %s already: delete one of the two",
				ref.Kind, ref.Name, first)}
			continue
		}
		owner[t] = name
	}
	return out
}
