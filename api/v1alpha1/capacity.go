package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CapacityPool is a group of machines of one class, and the terms on which it lends them.
type CapacityPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              CapacityPoolSpec   `json:"spec"`
	Status            CapacityPoolStatus `json:"status,omitempty"`
}

// CapacityPoolList is a list of CapacityPool.
type CapacityPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityPool `json:"items"`
}

// CapacityPoolSpec is what the operator wants.
type CapacityPoolSpec struct {
	// Class is Online or Offline.
	Class string `json:"class"`
	// Mode is how far Springtide may go with loans: Observe, Recommend or Auto.
	Mode string `json:"mode,omitempty"`
	// NodeSelector picks the pool's machines; a machine picked by two pools belongs to neither, and both say so.
	NodeSelector metav1.LabelSelector `json:"nodeSelector"`
	// LendableUnit is Node or Socket.
	LendableUnit string `json:"lendableUnit,omitempty"`
	// LowWatermarkPercent and HighWatermarkPercent bound the headroom: recall below the low one, lend only above the high one.
	LowWatermarkPercent  *int32 `json:"lowWatermarkPercent,omitempty"`
	HighWatermarkPercent *int32 `json:"highWatermarkPercent,omitempty"`
	// NoticeSeconds is what a borrower gets to save its work; heartbeats extend it up to NoticeMaxSeconds.
	NoticeSeconds    *int32 `json:"noticeSeconds,omitempty"`
	NoticeMaxSeconds *int32 `json:"noticeMaxSeconds,omitempty"`
	// MinimumTermSeconds is the least time for which a loan must be expected to last.
	MinimumTermSeconds *int32     `json:"minimumTermSeconds,omitempty"`
	Moves              MoveBudget `json:"moves,omitempty"`
	// Disruptions bounds evictions.
	Disruptions DisruptionBudget `json:"disruptions,omitempty"`
}

// MoveBudget bounds loans.
type MoveBudget struct {
	// AtOnce is the number of parcels that may be in motion together.
	AtOnce *int32 `json:"atOnce,omitempty"`
	// PerHour is the number of loans that may begin in an hour.
	PerHour *int32 `json:"perHour,omitempty"`
}

// DisruptionBudget bounds evictions.
type DisruptionBudget struct {
	EvictionsPerMinute *int32 `json:"evictionsPerMinute,omitempty"`
	ServicePercent     *int32 `json:"servicePercent,omitempty"`
	FleetPercent       *int32 `json:"fleetPercent,omitempty"`
}

// CapacityPoolStatus is what Springtide saw and did.
type CapacityPoolStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	Nodes              int32 `json:"nodes,omitempty"`
	// Capacity is what the pool's machines can hold, Requested what online pods ask for, Lent what is away.
	Capacity    ResourceAmounts `json:"capacity,omitempty"`
	Requested   ResourceAmounts `json:"requested,omitempty"`
	Lent        ResourceAmounts `json:"lent,omitempty"`
	LentNodes   int32           `json:"lentNodes,omitempty"`
	LentSockets int32           `json:"lentSockets,omitempty"`
	Moving      int32           `json:"moving,omitempty"`
	// Pinned are machines that could not be emptied, the first few by name.
	Pinned []PinnedNode `json:"pinned,omitempty"`
	// Disruptions is the ledger: written with its resourceVersion before the act.
	Disruptions DisruptionLedger   `json:"disruptions,omitempty"`
	LeaderEpoch int64              `json:"leaderEpoch,omitempty"`
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
}

// ResourceAmounts are amounts of capacity.
type ResourceAmounts struct {
	CPU    resource.Quantity `json:"cpu,omitempty"`
	Memory resource.Quantity `json:"memory,omitempty"`
	GPU    int64             `json:"gpu,omitempty"`
}

// PinnedNode is one machine that stays, and what keeps it.
type PinnedNode struct {
	Node string `json:"node"`
	By   string `json:"by"`
}

// DisruptionLedger counts disruptions of the running window.
type DisruptionLedger struct {
	WindowStart metav1.Time `json:"windowStart,omitempty"`
	Evictions   int32       `json:"evictions,omitempty"`
	Recalls     int32       `json:"recalls,omitempty"`
}

// CapacityQuota is one tenant.
type CapacityQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              CapacityQuotaSpec   `json:"spec"`
	Status            CapacityQuotaStatus `json:"status,omitempty"`
}

// CapacityQuotaList is a list of CapacityQuota.
type CapacityQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityQuota `json:"items"`
}

// CapacityQuotaSpec is what the operator wants.
type CapacityQuotaSpec struct {
	// Parent names the quota above; empty for a root.
	Parent string `json:"parent,omitempty"`
	// NamespaceSelector picks the tenant's namespaces.
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
	// Guarantee is what the tenant always gets back.
	Guarantee ResourceAmounts `json:"guarantee"`
	// LendingLimit is how much of the guarantee others may use, BorrowingLimit how much the tenant may use beyond it; absent = no limit.
	LendingLimit   *ResourceAmounts `json:"lendingLimit,omitempty"`
	BorrowingLimit *ResourceAmounts `json:"borrowingLimit,omitempty"`
	// Slices lift the guarantee in windows.
	Slices []QuotaSlice `json:"slices,omitempty"`
	Burst  *Burst       `json:"burst,omitempty"`
	// HighestJobPriority is Low or High.
	HighestJobPriority string `json:"highestJobPriority,omitempty"`
}

// QuotaSlice lifts a guarantee while its window is open.
type QuotaSlice struct {
	Name      string          `json:"name"`
	Start     string          `json:"start"`
	Duration  metav1.Duration `json:"duration"`
	TimeZone  string          `json:"timeZone"`
	Guarantee ResourceAmounts `json:"guarantee"`
}

// Burst lets a tenant exceed its quota for a bounded time.
type Burst struct {
	Percent         int32 `json:"percent"`
	DurationSeconds int32 `json:"durationSeconds"`
}

// CapacityQuotaStatus is what Springtide saw.
type CapacityQuotaStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Namespaces         int32              `json:"namespaces,omitempty"`
	Entitled           ResourceAmounts    `json:"entitled,omitempty"`
	Used               ResourceAmounts    `json:"used,omitempty"`
	Borrowed           ResourceAmounts    `json:"borrowed,omitempty"`
	Lent               ResourceAmounts    `json:"lent,omitempty"`
	LeaderEpoch        int64              `json:"leaderEpoch,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}
