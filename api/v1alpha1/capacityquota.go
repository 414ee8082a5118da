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
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.namespaces`,priority=1
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.guarantee.cpu`
// +kubebuilder:printcolumn:name="Entitled",type=string,JSONPath=`.status.entitled.cpu`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.used.cpu`
// +kubebuilder:printcolumn:name="Borrowed",type=string,JSONPath=`.status.borrowed.cpu`
// +kubebuilder:printcolumn:name="Lent",type=string,JSONPath=`.status.lent.cpu`,priority=1
// +kubebuilder:printcolumn:name="Over",type=string,JSONPath=`.status.over.cpu`
// +kubebuilder:printcolumn:name="Deadline",type=string,JSONPath=`.status.drainDeadline`,priority=1
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.guarantee.memory`,priority=1
// +kubebuilder:printcolumn:name="Used Memory",type=string,JSONPath=`.status.used.memory`,priority=1
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.parent) || self.spec.parent != self.metadata.name",message="a quota cannot be its own parent: name the quota above, or leave parent out",fieldPath=".spec.parent"
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
//
// +kubebuilder:validation:XValidation:rule="!has(self.burst) || has(self.borrowingLimit)",message="burst lifts the borrowing limit: set borrowingLimit, or leave burst out",fieldPath=".burst"
type CapacityQuotaSpec struct {
	// Parent names the quota above; empty for a root.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be an object's name: lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
	Parent string `json:"parent,omitempty"`
	// NamespaceSelector picks the tenant's namespaces.
	NamespaceSelector Selector `json:"namespaceSelector"`
	// Guarantee is what the tenant always gets back. The guarantees below one quota are kept up to its own, and those of all roots up to what
	// the pools' machines hold; beyond that all of them are scaled down alike, and condition GuaranteeKept says so. A quota that has others
	// below it and guarantees nothing of a resource passes on what they are guaranteed.
	Guarantee ResourceAmounts `json:"guarantee"`
	// LendingLimit is how much of the guarantee others may use; absent = no limit. It holds for the tenant and all below it together.
	// +kubebuilder:validation:XValidation:rule="has(self.cpu) && has(self.memory)",message="a limit must name cpu and memory (and gpu where there are any): an amount left out counts as 0"
	LendingLimit *ResourceAmounts `json:"lendingLimit,omitempty"`
	// BorrowingLimit is how much the tenant may use beyond its guarantee; absent = no limit. It holds for the tenant and all below it together.
	// +kubebuilder:validation:XValidation:rule="has(self.cpu) && has(self.memory)",message="a limit must name cpu and memory (and gpu where there are any): an amount left out counts as 0"
	BorrowingLimit *ResourceAmounts `json:"borrowingLimit,omitempty"`
	// Parcels are the same terms for whole machines and sockets under the tenant's offline work; a class that is not named is not bounded.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=gpuModel
	// +kubebuilder:validation:MaxItems=16
	Parcels []ParcelTerms `json:"parcels,omitempty"`
	// Slices lift the guarantee in windows.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Slices []QuotaSlice `json:"slices,omitempty"`
	// Burst lets the tenant's services borrow more than its borrowing limit for a bounded time, while the offline pool's watermarks allow.
	Burst *Burst `json:"burst,omitempty"`
	// DrainSeconds is how long what runs beyond the quota may stay after the notice: when a lender takes its guarantee
	// back, a slice ends or a burst is over. The notice of a slice's end comes that much ahead. 600 by default.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=600
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`
	// HighestJobPriority is Low or High: an ElasticJob of the tenant that asks for more counts as this.
	// +kubebuilder:validation:Enum=Low;High
	// +kubebuilder:default=High
	HighestJobPriority string `json:"highestJobPriority,omitempty"`
}

// ResourceAmounts are amounts of capacity. An amount left out is 0.
//
// +kubebuilder:validation:XValidation:rule="(!has(self.cpu) || (isQuantity(string(self.cpu)) && !quantity(string(self.cpu)).isLessThan(quantity('0')) && !quantity(string(self.cpu)).isGreaterThan(quantity('1G')))) && (!has(self.memory) || (isQuantity(string(self.memory)) && !quantity(string(self.memory)).isLessThan(quantity('0')) && !quantity(string(self.memory)).isGreaterThan(quantity('32Pi'))))",message="amounts must be quantities such as 12, 500m or 64Gi, not negative, and at most 1G cores and 32Pi of memory"
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
	// Duration is how long it stays open, as in "4h30m" or "2d".
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-7]d$') || self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && duration(self) > duration('0s') && duration(self) <= duration('168h')",message="must be written like 4h30m or 2d, be longer than 0 and at most 7d"
	Duration Duration `json:"duration"`
	// TimeZone is an IANA zone, as in "Asia/Shanghai".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone"`
	// Guarantee is what the tenant gets while the slice is open, where it is more than the quota's own.
	Guarantee ResourceAmounts `json:"guarantee"`
}

// ParcelTerms bound how many parcels of one class the tenant's offline work is on: machines of offline pools, and machines and sockets that
// are lent by online ones.
type ParcelTerms struct {
	// Kind is Node for whole machines or Socket.
	// +kubebuilder:validation:Enum=Node;Socket
	Kind string `json:"kind"`
	// GPUModel picks machines with this model, as in "H100"; empty for all machines.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:default=""
	GPUModel string `json:"gpuModel"`
	// Guarantee is how many the tenant can always have. It depends on machines of offline pools: what online lends can
	// be recalled.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Guarantee int32 `json:"guarantee,omitempty"`
	// LendingLimit is how many of the guarantee others may be on; absent = no limit.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	LendingLimit *int32 `json:"lendingLimit,omitempty"`
	// BorrowingLimit is how many more than the guarantee the tenant may be on; absent = no limit.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	BorrowingLimit *int32 `json:"borrowingLimit,omitempty"`
}

// Burst lifts a tenant's borrowing limit for a bounded time. It begins while the low-priority capacity is at or above the offline pool's high
// watermark, ends when that falls below the low one, and rests after its end for as long as it may last.
type Burst struct {
	// Percent of the guarantee by which the borrowing limit is lifted.
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
	// Entitled is what of the guarantee in force now, time slices included, can be kept.
	Entitled ResourceAmounts `json:"entitled,omitempty"`
	// Used is what the tenant's pods request on the machines that they are on, counted again from the pods each time.
	Used ResourceAmounts `json:"used,omitempty"`
	// Borrowed is what it was granted beyond its guarantee.
	Borrowed ResourceAmounts `json:"borrowed,omitempty"`
	// Lent is what others were granted of its guarantee.
	Lent ResourceAmounts `json:"lent,omitempty"`
	// Limit is the most that its services may request now.
	Limit ResourceAmounts `json:"limit,omitempty"`
	// Over is what is to be given back by DrainDeadline; it, OverSince and Notices are absent while nothing is. The times are kept here, so that
	// no restart moves a deadline.
	Over ResourceAmounts `json:"over,omitempty,omitzero"`
	// OverSince is the time of the last notice.
	OverSince *metav1.Time `json:"overSince,omitempty"`
	// DrainDeadline is when it begins to be brought down.
	DrainDeadline *metav1.Time `json:"drainDeadline,omitempty"`
	// Notices are the parts of Over that fall due after drainSeconds: the debt at the time of each notice, oldest
	// first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Notices []QuotaNotice `json:"notices,omitempty"`
	// BurstSince is when the last burst began. One that the low watermark ended counts as begun its full duration
	// before that end, so that the rest is computed from there.
	BurstSince *metav1.Time `json:"burstSince,omitempty"`
	// Parcels are the tenant's shares of each class that any quota names.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Parcels []ParcelShareStatus `json:"parcels,omitempty"`
	// Reason is the tenant's share in one sentence.
	// +kubebuilder:validation:MaxLength=2048
	Reason string `json:"reason,omitempty"`
	// LeaderEpoch is the fencing number of the controller that wrote this status.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
	// Conditions: Accepted, Ready, GuaranteeKept, WithinQuota, Bursting.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// QuotaNotice is what a tenant must give back.
type QuotaNotice struct {
	// Since is the time of the notice, or of the last one that is due by now.
	Since metav1.Time `json:"since"`
	// Online is what the tenant's services owed then, Offline its offline work.
	Online ResourceAmounts `json:"online,omitempty"`
	// Offline: see Online.
	Offline ResourceAmounts `json:"offline,omitempty"`
	// OnlineUsed is what its services requested then, OfflineUsed its offline work: what is requested less since is given back.
	OnlineUsed ResourceAmounts `json:"onlineUsed,omitempty"`
	// OfflineUsed: see OnlineUsed.
	OfflineUsed ResourceAmounts `json:"offlineUsed,omitempty"`
	// Parcels are those that its offline work was to leave.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Parcels []ParcelDebt `json:"parcels,omitempty"`
}

// ParcelDebt is how many parcels of one class a tenant must leave.
type ParcelDebt struct {
	// Class is the kind, and the GPU model where one is named, as in "Node/H100".
	// +kubebuilder:validation:MaxLength=80
	Class string `json:"class"`
	// Owed is how many.
	// +kubebuilder:validation:Minimum=0
	Owed int64 `json:"owed"`
	// Used is how many it was on then: those that it left since are given back.
	// +kubebuilder:validation:Minimum=0
	Used int64 `json:"used"`
}

// ParcelShareStatus is a tenant's share of one class of parcels.
type ParcelShareStatus struct {
	// Class is the kind, and the GPU model where one is named, as in "Node/H100".
	// +kubebuilder:validation:MaxLength=80
	Class string `json:"class"`
	// Entitled is what of the guarantee can be kept.
	// +kubebuilder:validation:Minimum=0
	Entitled int64 `json:"entitled"`
	// Used is how many the tenant's offline pods are on.
	// +kubebuilder:validation:Minimum=0
	Used int64 `json:"used"`
	// Limit is the most that they may be on now.
	// +kubebuilder:validation:Minimum=0
	Limit int64 `json:"limit"`
	// Over is how many of them are to be left by drainDeadline, as others want what is guaranteed to them, or the limits are lower.
	// +kubebuilder:validation:Minimum=0
	Over int64 `json:"over,omitempty"`
}
