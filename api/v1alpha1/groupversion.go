// Package v1alpha1 holds the API types of group springtide.dev.
//
// Spec says what an operator wants, status what Springtide saw and did. Everything is bounded, units stand last in
// names (noticeSeconds), and whatever the API server can judge is judged there by CEL, in a sentence that says the fix.
//
// +kubebuilder:object:generate=true
// +groupName=springtide.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "springtide.dev", Version: "v1alpha1"}

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ElasticService{}, &ElasticServiceList{},
		&CapacityPool{}, &CapacityPoolList{},
		&CapacityQuota{}, &CapacityQuotaList{},
		&Loan{}, &LoanList{},
		&NodeShare{}, &NodeShareList{},
		&ElasticJob{}, &ElasticJobList{},
		&FestivalPlan{}, &FestivalPlanList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
