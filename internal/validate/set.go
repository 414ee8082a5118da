package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/springtide/springtide/api/v1alpha1"
)

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
