package validate

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/springtide/springtide/api/v1alpha1"
)

// selector judges the labels that a selector names. The API server takes a label selector as it comes, and one whose labels no object can
// carry picks nothing, in silence.
func selector(field string, s *v1alpha1.Selector) []Problem {
	var out []Problem
	key := func(at, text string) {
		if len(validation.IsQualifiedName(text)) > 0 {
			out = append(out, Problem{at, fmt.Sprintf("%q is no label's key, so nothing would be picked: write one such as pool or example.com/pool", text)})
		}
	}
	value := func(at, text string) {
		if len(validation.IsValidLabelValue(text)) > 0 {
			out = append(out, Problem{at, fmt.Sprintf("%q is no label's value, so nothing would be picked: write letters, digits, '-', '_' and '.', "+
				"with a letter or digit at both ends", text)})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		at := fmt.Sprintf("%s.matchLabels[%s]", field, k)
		key(at, k)
		value(at, s.MatchLabels[k])
	}
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		at := fmt.Sprintf("%s.matchExpressions[%d]", field, i)
		key(at+".key", e.Key)
		for k, v := range e.Values {
			value(fmt.Sprintf("%s.values[%d]", at, k), v)
		}
	}
	return out
}
