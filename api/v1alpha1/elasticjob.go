package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ElasticJob lets Springtide resize offline workloads that exist between their bounds as capacity comes and goes.
type ElasticJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ElasticJobSpec   `json:"spec"`
	Status            ElasticJobStatus `json:"status,omitempty"`
}

// ElasticJobList is a list of ElasticJob.
type ElasticJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElasticJob `json:"items"`
}

// ElasticJobSpec is what the operator wants.
type ElasticJobSpec struct {
	// Priority is Low or High.
	Priority string      `json:"priority,omitempty"`
	Members  []JobMember `json:"members"`
	// Checkpoint is how the job saves its work.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
}

// JobMember is one role of the job.
type JobMember struct {
	Role        string    `json:"role"`
	WorkloadRef TargetRef `json:"workloadRef"`
	Min         int32     `json:"min"`
	Max         int32     `json:"max"`
	// Stable members never run on lent capacity.
	Stable bool `json:"stable,omitempty"`
}

// Checkpoint is how the job saves its work.
type Checkpoint struct {
	// Seconds that a member needs to save its work after a notice.
	Seconds int32 `json:"seconds"`
}

// ElasticJobStatus is what Springtide saw and did.
type ElasticJobStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Members            []JobMemberStatus  `json:"members,omitempty"`
	LastRecallTime     *metav1.Time       `json:"lastRecallTime,omitempty"`
	Reason             string             `json:"reason,omitempty"`
	LeaderEpoch        int64              `json:"leaderEpoch,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// JobMemberStatus is what one role runs.
type JobMemberStatus struct {
	Role    string `json:"role"`
	Desired int32  `json:"desired"`
	Active  int32  `json:"active"`
}

// FestivalPlan lifts named services while a festival lasts.
type FestivalPlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FestivalPlanSpec   `json:"spec"`
	Status            FestivalPlanStatus `json:"status,omitempty"`
}

// FestivalPlanList is a list of FestivalPlan.
type FestivalPlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FestivalPlan `json:"items"`
}

// FestivalPlanSpec is what the operator wants.
type FestivalPlanSpec struct {
	// Start and End bound the festival.
	Start metav1.Time `json:"start"`
	End   metav1.Time `json:"end"`
	// Approved lets the plan act; a plan that is not approved is only reckoned.
	Approved bool `json:"approved,omitempty"`
	// TakeStable lets the plan take members below their minimum.
	TakeStable bool           `json:"takeStable,omitempty"`
	Lifts      []FestivalLift `json:"lifts"`
}

// FestivalLift raises one service.
type FestivalLift struct {
	Namespace string `json:"namespace"`
	// Service names an ElasticService.
	Service string `json:"service"`
	// LoadPercent is the load expected, in percent of the forecast (150 = half as much again).
	LoadPercent *int32 `json:"loadPercent,omitempty"`
	// FloorReplicas is a least number of replicas.
	FloorReplicas *int32 `json:"floorReplicas,omitempty"`
	// Start and End narrow the festival for this lift.
	Start *metav1.Time `json:"start,omitempty"`
	End   *metav1.Time `json:"end,omitempty"`
}

// FestivalPlanStatus is what Springtide saw.
type FestivalPlanStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is Waiting, Lifting or Over.
	Phase       string             `json:"phase,omitempty"`
	LeaderEpoch int64              `json:"leaderEpoch,omitempty"`
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
}
