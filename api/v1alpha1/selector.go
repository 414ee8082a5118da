package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Selector picks objects by their labels. It is written as Kubernetes' own label selector, whose definition bounds nothing.
type Selector struct {
	// MatchLabels are labels that an object must carry, with these values.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && self[k].size() <= 63)",message="a label's key has at most 317 characters and its value 63: shorten them"
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// MatchExpressions must all hold.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []SelectorRule `json:"matchExpressions,omitempty"`
}

// SelectorRule is one demand on a label.
//
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",message="operators In and NotIn need values, Exists and DoesNotExist take none"
type SelectorRule struct {
	// Key is the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// Operator is In, NotIn, Exists or DoesNotExist.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator string `json:"operator"`
	// Values are those that In and NotIn speak of.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	Values []string `json:"values,omitempty"`
}

// LabelSelector is the selector in Kubernetes' own form.
func (s *Selector) LabelSelector() *metav1.LabelSelector {
	out := &metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for i := range s.MatchExpressions {
		r := &s.MatchExpressions[i]
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator), Values: r.Values})
	}
	return out
}
