package validate

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

// OverlappingPools finds the pools that pick machines of another one whatever labels these have: both pick every value of the same keys in
// common. Two pools that name different keys may never share a machine, so only a machine that carries both shows it, in the controller.
func OverlappingPools(pools []*v1alpha1.CapacityPool) map[string]Problem {
	out := map[string]Problem{}
	needs := make([]map[string]allowed, len(pools))
	for i, p := range pools {
		needs[i] = requirements(&p.Spec.NodeSelector)
	}
	for i, p := range pools {
		for j, other := range pools {
			if i == j || p.Name == other.Name || !overlap(needs[i], needs[j]) {
				continue
			}
			out[p.Name] = Problem{"spec.nodeSelector", fmt.Sprintf(
				"pool %s picks the same machines, which belong to neither of the two: give the selectors different values of one label", other.Name)}
			break
		}
	}
	return out
}

// allowed are the values of one label that a selector takes: those listed, or all but those listed; absent where it takes machines
// without the label.
type allowed struct {
	values  []string
	but     bool
	absent  bool
	nothing bool // no machine at all
}

func requirements(s *v1alpha1.Selector) map[string]allowed {
	out := map[string]allowed{}
	add := func(key string, a allowed) {
		if was, ok := out[key]; ok {
			a = both(was, a)
		}
		out[key] = a
	}
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		add(k, allowed{values: []string{s.MatchLabels[k]}})
	}
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		switch metav1.LabelSelectorOperator(e.Operator) {
		case metav1.LabelSelectorOpIn:
			add(e.Key, allowed{values: e.Values})
		case metav1.LabelSelectorOpNotIn:
			add(e.Key, allowed{values: e.Values, but: true, absent: true})
		case metav1.LabelSelectorOpExists:
			add(e.Key, allowed{but: true})
		case metav1.LabelSelectorOpDoesNotExist:
			add(e.Key, allowed{absent: true})
		}
	}
	return out
}

// both is what two selectors of one label take.
func both(a, b allowed) allowed {
	out := allowed{absent: a.absent && b.absent, but: a.but && b.but}
	switch {
	case a.but && b.but:
		out.values = append(slices.Clone(a.values), b.values...)
	case a.but:
		out.values = without(b.values, a.values)
	case b.but:
		out.values = without(a.values, b.values)
	default:
		for _, v := range a.values {
			if slices.Contains(b.values, v) {
				out.values = append(out.values, v)
			}
		}
	}
	out.nothing = !out.but && len(out.values) == 0 && !out.absent
	return out
}

func without(list, taken []string) []string {
	var out []string
	for _, v := range list {
		if !slices.Contains(taken, v) {
			out = append(out, v)
		}
	}
	return out
}

// overlap reports whether two selectors take machines in common by the labels that both name, where one names no label beyond the other's.
func overlap(a, b map[string]allowed) bool {
	within := func(x, y map[string]allowed) bool {
		for k := range x {
			if _, ok := y[k]; !ok {
				return false
			}
		}
		return true
	}
	if len(a) == 0 || len(b) == 0 || !within(a, b) && !within(b, a) {
		return false
	}
	for k, x := range a {
		if y, ok := b[k]; ok && both(x, y).nothing {
			return false
		}
	}
	return true
}
