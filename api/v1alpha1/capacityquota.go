package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CapacityQuota is one tenant.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=springtide,shortName=cquota
// +kubebuilder:printcolumn:name="Parent",type=string,JSONPath=`.spec.parent`
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.namespaces`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.guarantee.cpu`
// +kubebuilder:printcolumn:name="Entitled",type=string,JSONPath=`.status.entitled.cpu`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.used.cpu`
// +kubebuilder:printcolumn:name="Borrowed",type=string,JSONPath=`.status.borrowed.cpu`
// +kubebuilder:printcolumn:name="Lent",type=string,JSONPath=`.status.lent.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.guarantee.memory`,priority=1
// +kubebuilder:printcolumn:name="Used Memory",type=string,JSONPath=`.status.used.memory`,priority=1
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.parent) || self.spec.parent != self.metadata.name",message="a quota cannot be its own parent: name the quota above, or leave parent out",fieldPath=".spec.parent"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.leaderEpoch) || (has(self.status) && has(self.status.leaderEpoch) && self.status.leaderEpoch >= oldSelf.status.leaderEpoch)",message="status.leaderEpoch must not fall: a newer leader wrote this object; stand down and read it again"
type CapacityQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              CapacityQuotaSpec   `json:"spec"`
	Status            CapacityQuotaStatus `json:"status,omitempty"`
}

// CapacityQuotaList is a list of CapacityQuota.
//
// +kubebuilder:object:root=true
type CapacityQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityQuota `json:"items"`
}

// CapacityQuotaSpec is what the operator wants.
type CapacityQuotaSpec struct {
	// Parent names the quota above; empty for a root.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be an object's name: lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
	Parent string `json:"parent,omitempty"`
	// NamespaceSelector picks the tenant's namespaces.
	NamespaceSelector Selector `json:"namespaceSelector"`
	// Guarantee is what the tenant always gets back.
	Guarantee ResourceAmounts `json:"guarantee"`
	// LendingLimit is how much of the guarantee others may use; absent = no limit.
	// +kubebuilder:validation:XValidation:rule="has(self.cpu) && has(self.memory)",message="a limit must name cpu and memory (and gpu where there are any): an amount left out counts as 0"
	LendingLimit *ResourceAmounts `json:"lendingLimit,omitempty"`
	// BorrowingLimit is how much the tenant may use beyond its guarantee; absent = no limit.
	// +kubebuilder:validation:XValidation:rule="has(self.cpu) && has(self.memory)",message="a limit must name cpu and memory (and gpu where there are any): an amount left out counts as 0"
	BorrowingLimit *ResourceAmounts `json:"borrowingLimit,omitempty"`
	// Slices lift the guarantee in windows.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Slices []QuotaSlice `json:"slices,omitempty"`
	// Burst lets the tenant exceed its quota for a bounded time. It is kept and judged; nothing acts on it yet.
	Burst *Burst `json:"burst,omitempty"`
	// HighestJobPriority is Low or High: an ElasticJob of the tenant that asks for more counts as this.
	// +kubebuilder:validation:Enum=Low;High
	// +kubebuilder:default=High
	HighestJobPriority string `json:"highestJobPriority,omitempty"`
}

// ResourceAmounts are amounts of capacity. An amount left out is 0.
//
// +kubebuilder:validation:XValidation:rule="(!has(self.cpu) || (isQuantity(string(self.cpu)) && !quantity(string(self.cpu)).isLessThan(quantity('0')))) && (!has(self.memory) || (isQuantity(string(self.memory)) && !quantity(string(self.memory)).isLessThan(quantity('0'))))",message="amounts must be quantities such as 12, 500m or 64Gi, and not negative"
type ResourceAmounts struct {
	// CPU in cores, as in "12" or "500m".
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	CPU resource.Quantity `json:"cpu,omitempty"`
	// Memory in bytes, as in "64Gi".
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Memory resource.Quantity `json:"memory,omitempty"`
	// GPU in whole devices.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	GPU int64 `json:"gpu,omitempty"`
}

// QuotaSlice lifts a guarantee while its window is open.
type QuotaSlice struct {
	// Name is unique within the quota.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a plain name: lower-case letters, digits and '-', with a letter or digit at both ends, as in evening-peak"
	Name string `json:"name"`
	// Start is a five-field cron expression: when the slice opens.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	Start string `json:"start"`
	// Duration is how long it stays open, as in "4h30m".
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?$') && duration(self) > duration('0s') && duration(self) <= duration('168h')",message="must be written like 4h30m, be longer than 0 and at most 168h (7 days)"
	Duration metav1.Duration `json:"duration"`
	// TimeZone is an IANA zone, as in "Asia/Shanghai".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone"`
	// Guarantee is what the tenant gets while the slice is open, where it is more than the quota's own.
	Guarantee ResourceAmounts `json:"guarantee"`
}

// Burst lets a tenant exceed its quota for a bounded time.
type Burst struct {
	// Percent of the quota that may be used beyond it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=400
	Percent int32 `json:"percent"`
	// DurationSeconds is for how long.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	DurationSeconds int32 `json:"durationSeconds"`
}

// CapacityQuotaStatus is what Springtide saw.
type CapacityQuotaStatus struct {
	// ObservedGeneration is the generation of the spec that this status answers.
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Namespaces counts the tenant's namespaces.
	// +kubebuilder:validation:Minimum=0
	Namespaces int32 `json:"namespaces,omitempty"`
	// Entitled is the guarantee in force now, time slices included.
	Entitled ResourceAmounts `json:"entitled,omitempty"`
	// Used is what the tenant's pods request.
	Used ResourceAmounts `json:"used,omitempty"`
	// Borrowed is what it uses beyond its guarantee.
	Borrowed ResourceAmounts `json:"borrowed,omitempty"`
	// Lent is what others use of its guarantee.
	Lent ResourceAmounts `json:"lent,omitempty"`
	// LeaderEpoch is the fencing number of the controller that wrote this status.
	// +kubebuilder:validation:Minimum=0
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
	// Conditions: Accepted, Ready.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
