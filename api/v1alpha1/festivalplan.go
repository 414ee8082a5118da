package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FestivalPlan lifts named services while a festival lasts.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=springtide,shortName=fest
// +kubebuilder:printcolumn:name="Start",type=string,JSONPath=`.spec.start`
// +kubebuilder:printcolumn:name="End",type=string,JSONPath=`.spec.end`
// +kubebuilder:printcolumn:name="Approved",type=boolean,JSONPath=`.spec.approved`
// +kubebuilder:printcolumn:name="Take Stable",type=boolean,JSONPath=`.spec.takeStable`,priority=1
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FestivalPlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FestivalPlanSpec   `json:"spec"`
	Status            FestivalPlanStatus `json:"status,omitempty"`
}

// FestivalPlanList is a list of FestivalPlan.
//
// +kubebuilder:object:root=true
type FestivalPlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FestivalPlan `json:"items"`
}

// FestivalPlanSpec is what the operator wants.
//
// +kubebuilder:validation:XValidation:rule="self.start < self.end",message="start must be before end",fieldPath=".end"
// +kubebuilder:validation:XValidation:rule="self.end - self.start <= duration('744h')",message="a festival lasts at most 31 days: split the plan",fieldPath=".end"
// +kubebuilder:validation:XValidation:rule="!has(self.takeStable) || !self.takeStable || (has(self.approved) && self.approved)",message="takeStable takes work below its minimum and needs approved: true",fieldPath=".takeStable"
// +kubebuilder:validation:XValidation:rule="self.lifts.all(l, (!has(l.start) || (l.start >= self.start && l.start < self.end)) && (!has(l.end) || (l.end > self.start && l.end <= self.end)))",message="a lift must lie within the festival: bring its start and end between those of the plan",fieldPath=".lifts"
type FestivalPlanSpec struct {
	// Start is when the festival begins.
	Start metav1.Time `json:"start"`
	// End is when it is over.
	End metav1.Time `json:"end"`
	// Approved lets the plan act; a plan that is not approved is only computed.
	Approved bool `json:"approved,omitempty"`
	// TakeStable lets online also borrow machines whose jobs fall below their minimum, or whose members are stable. It
	// holds while the plan is in force and an hour before.
	TakeStable bool `json:"takeStable,omitempty"`
	// Lifts raise services.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	Lifts []FestivalLift `json:"lifts"`
}

// FestivalLift raises one service.
//
// +kubebuilder:validation:XValidation:rule="has(self.loadPercent) || has(self.floorReplicas)",message="a lift needs loadPercent or floorReplicas, or both"
// +kubebuilder:validation:XValidation:rule="!has(self.start) || !has(self.end) || self.start < self.end",message="a lift's start must be before its end"
type FestivalLift struct {
	// Namespace of the service.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a plain name: lower-case letters, digits and '-', with a letter or digit at both ends, as in evening-peak"
	Namespace string `json:"namespace"`
	// Service names an ElasticService.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be an object's name: lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
	Service string `json:"service"`
	// LoadPercent is the load expected, in percent of the forecast (150 = half as much again).
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=10000
	LoadPercent *int32 `json:"loadPercent,omitempty"`
	// FloorReplicas is a least number of replicas.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	FloorReplicas *int32 `json:"floorReplicas,omitempty"`
	// Start narrows the festival for this lift.
	Start *metav1.Time `json:"start,omitempty"`
	// End narrows the festival for this lift.
	End *metav1.Time `json:"end,omitempty"`
}

// FestivalPlanStatus is what Springtide saw.
type FestivalPlanStatus struct {
	// ObservedGeneration is the generation of the spec that this status answers.
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is Waiting, Lifting or Over.
	// +kubebuilder:validation:Enum=Waiting;Lifting;Over
	Phase string `json:"phase,omitempty"`
	// LeaderEpoch is the fencing number of the controller that wrote this status.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
	// Conditions: Accepted, Ready.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
