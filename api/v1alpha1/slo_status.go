package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SLOStatus is what became of what the service promises. A minute is bad when any level is broken in it, and unknown
// when nothing measured one of them.
type SLOStatus struct {
	// Objective is how many minutes must be good.
	Objective ObjectiveStatus `json:"objective"`
	// Met is the share of the known minutes of the window that were good; unset while none is known.
	// +kubebuilder:validation:MaxLength=16
	Met string `json:"met,omitempty"`
	// BudgetMinutes is how many minutes of the window may be bad.
	// +kubebuilder:validation:Minimum=0
	BudgetMinutes int32 `json:"budgetMinutes,omitempty"`
	// BudgetLeftMinutes is how many of them are left; negative once the objective is missed, unset
	// while nothing was judged.
	// +kubebuilder:validation:Minimum=-1000000
	BudgetLeftMinutes *int32 `json:"budgetLeftMinutes,omitempty"`
	// UnknownMinutes is how many minutes of the window are not known.
	// +kubebuilder:validation:Minimum=0
	UnknownMinutes int32 `json:"unknownMinutes,omitempty"`
	// Burn1h is how many times faster than allowed the budget was used up over an hour, as in "2.4"; unset while
	// nothing of it is known.
	// +kubebuilder:validation:MaxLength=16
	Burn1h string `json:"burn1h,omitempty"`
	// Burn6h is the same over six hours.
	// +kubebuilder:validation:MaxLength=16
	Burn6h string `json:"burn6h,omitempty"`
	// Quantile is the quantile of the tide that the service is sized for, as in "0.95".
	// +kubebuilder:validation:MaxLength=8
	Quantile string `json:"quantile,omitempty"`
	// QuantileReason is why it is what it is, in one word.
	// +kubebuilder:validation:MaxLength=64
	QuantileReason string `json:"quantileReason,omitempty"`
	// QuantileMessage is the same in a sentence.
	// +kubebuilder:validation:MaxLength=1024
	QuantileMessage string `json:"quantileMessage,omitempty"`
	// CapacityPerReplica is the load that one replica carries while the levels hold; unset while it is not learned.
	// +kubebuilder:validation:MaxLength=32
	CapacityPerReplica string `json:"capacityPerReplica,omitempty"`
	// CapacityBasis says what that figure is taken from.
	// +kubebuilder:validation:MaxLength=256
	CapacityBasis string `json:"capacityBasis,omitempty"`
	// Since is the first minute that counts.
	Since *metav1.Time `json:"since,omitempty"`
	// Levels are the levels that the service states.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Levels []SLOLevelStatus `json:"levels,omitempty"`
	// Causes say why minutes were bad, the largest first.
	// +listType=map
	// +listMapKey=cause
	// +kubebuilder:validation:MaxItems=16
	Causes []SLOCauseStatus `json:"causes,omitempty"`
}

// ObjectiveStatus is the objective in force.
type ObjectiveStatus struct {
	// GoodMinutes is the share of the minutes.
	GoodMinutes Percent `json:"goodMinutes"`
	// Over is the window that rolls.
	Over Duration `json:"over"`
	// Default says that the spec states no objective.
	Default bool `json:"default,omitempty"`
}

// SLOLevelStatus is what became of one level.
type SLOLevelStatus struct {
	// Name is the level's: latency-p99, errors, throughput, backlog, cpu, memory or gpu.
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// Source is what measures it: a preset, a histogram or a query.
	// +kubebuilder:validation:MaxLength=160
	Source string `json:"source,omitempty"`
	// BadMinutes is how many minutes of the window it was broken in.
	// +kubebuilder:validation:Minimum=0
	BadMinutes int32 `json:"badMinutes"`
	// CapacityPerReplica is the load that one replica carries while this level holds; unset while it is not learned.
	// +kubebuilder:validation:MaxLength=32
	CapacityPerReplica string `json:"capacityPerReplica,omitempty"`
	// Curve is how often the level held by the load of a replica, from low loads to high ones.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=12
	Curve []SLOCurvePoint `json:"curve,omitempty"`
}

// SLOCurvePoint is a load of a replica, and how often a level held at it.
type SLOCurvePoint struct {
	// Load is that of one replica.
	// +kubebuilder:validation:MaxLength=32
	Load string `json:"load"`
	// Held is the share of minutes in which the level held.
	Held Percent `json:"held"`
}

// SLOCauseStatus is how many minutes were bad for one cause.
type SLOCauseStatus struct {
	// Cause is Lending, Room, Bounds, Quota, StartUp, Forecast, Service or Unwatched.
	// +kubebuilder:validation:MaxLength=32
	Cause string `json:"cause"`
	// BadMinutes is how many minutes of the window it made bad.
	// +kubebuilder:validation:Minimum=0
	BadMinutes int32 `json:"badMinutes"`
}
