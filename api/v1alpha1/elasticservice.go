package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ElasticService states the service level of one online service and how far Springtide may go to keep it cheaply.
type ElasticService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ElasticServiceSpec   `json:"spec"`
	Status            ElasticServiceStatus `json:"status,omitempty"`
}

// ElasticServiceList is a list of ElasticService.
type ElasticServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElasticService `json:"items"`
}

// ElasticServiceSpec is what the operator wants.
type ElasticServiceSpec struct {
	// TargetRef is the workload to scale: anything of this namespace with a scale subresource.
	TargetRef TargetRef `json:"targetRef"`
	// Mode is how far Springtide may go: Observe records, Recommend tells, Auto acts.
	Mode string `json:"mode,omitempty"`
	// Pause stops parts of the scaling: None, All, In or Out.
	Pause string `json:"pause,omitempty"`
	// Actuation is Scale (write the scale subresource) or HPAFloor (raise and lower minReplicas of the HPA that scales the target).
	Actuation string `json:"actuation,omitempty"`
	// SLO is what sizing protects.
	SLO SLO `json:"slo"`
	// Metrics are the reactive metrics; without any, CPU at the SLO's utilisation (or 60 %) is used.
	Metrics []Metric `json:"metrics,omitempty"`
	// Replicas bounds the target.
	Replicas ReplicaBounds `json:"replicas"`
	// Windows are levels in time.
	Windows []Window `json:"windows,omitempty"`
	// LinkGroup names services on one call chain.
	LinkGroup string `json:"linkGroup,omitempty"`
	// ForecastPercent is the quantile of the tide that sizing must cover, in percent; 95 by default.
	ForecastPercent int32 `json:"forecastPercent,omitempty"`
	// StartupSeconds overrides the learned time from a pod's creation to Ready.
	StartupSeconds *int32 `json:"startupSeconds,omitempty"`
	// ScaleInStabilisationSeconds is how long every part must agree before a scale-in; 300 by default.
	ScaleInStabilisationSeconds *int32 `json:"scaleInStabilisationSeconds,omitempty"`
}

// TargetRef names a workload of the same namespace.
type TargetRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// SLO is a service level; exactly one of latency and utilisation is set.
type SLO struct {
	Latency     *LatencySLO     `json:"latency,omitempty"`
	Utilisation *UtilisationSLO `json:"utilisation,omitempty"`
}

// LatencySLO bounds a latency quantile.
type LatencySLO struct {
	// Percentile in percent, e.g. 99.
	Percentile int32 `json:"percentile"`
	// ThresholdMilliseconds is what the percentile must stay under.
	ThresholdMilliseconds int32 `json:"thresholdMilliseconds"`
}

// UtilisationSLO bounds the CPU utilisation of the requests.
type UtilisationSLO struct {
	// Percent of the requested CPU that must not be exceeded.
	Percent int32 `json:"percent"`
}

// Metric is one reactive metric.
type Metric struct {
	// Name is unique within the service.
	Name string `json:"name"`
	// Type is CPU, Requests or Query.
	Type string `json:"type"`
	// TargetPercent is the CPU utilisation to hold (type CPU).
	TargetPercent *int32 `json:"targetPercent,omitempty"`
	// TargetPerReplica is the value a replica may carry (types Requests and Query), a decimal number as text.
	TargetPerReplica string `json:"targetPerReplica,omitempty"`
	// Query is a PromQL expression with one value; it only ever sees this namespace (type Query).
	Query string `json:"query,omitempty"`
}

// ReplicaBounds bounds a target.
type ReplicaBounds struct {
	Min int32 `json:"min"`
	Max int32 `json:"max"`
}

// Window is a level in time: from each start for a duration, in its zone.
type Window struct {
	Name string `json:"name"`
	// Start is a five-field cron expression: when the window opens.
	Start string `json:"start"`
	// Duration is how long it stays open, as in "4h30m".
	Duration metav1.Duration `json:"duration"`
	// TimeZone is an IANA zone, as in "Asia/Shanghai".
	TimeZone string `json:"timeZone"`
	// MinReplicas and MaxReplicas bound the target while the window is open.
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
}

// ElasticServiceStatus is what Springtide saw and did.
type ElasticServiceStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is what the target runs, ReadyReplicas what is ready, DesiredReplicas what Springtide wants (or would want).
	Replicas        int32 `json:"replicas,omitempty"`
	ReadyReplicas   int32 `json:"readyReplicas,omitempty"`
	DesiredReplicas int32 `json:"desiredReplicas,omitempty"`
	// FloorReplicas is the forecast's demand with the lead included.
	FloorReplicas int32 `json:"floorReplicas,omitempty"`
	// Reason is the last decision in one sentence.
	Reason string `json:"reason,omitempty"`
	// LastScaleTime is when the target was changed last.
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`
	// Portrait is the state of learning.
	Portrait *PortraitStatus `json:"portrait,omitempty"`
	// Tide is the forecast in short.
	Tide *TideStatus `json:"tide,omitempty"`
	// Summary says what the last two weeks would have been under Auto.
	Summary *SummaryStatus `json:"summary,omitempty"`
	// LeaderEpoch is the fencing number of the controller that wrote this status.
	LeaderEpoch int64              `json:"leaderEpoch,omitempty"`
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
}

// PortraitStatus is the state of learning.
type PortraitStatus struct {
	Signal         string       `json:"signal,omitempty"`
	QualityPercent int32        `json:"qualityPercent"`
	Points         int32        `json:"points"`
	PointsNeeded   int32        `json:"pointsNeeded"`
	Periods        []string     `json:"periods,omitempty"`
	Gaps           int32        `json:"gaps,omitempty"`
	ReadyTime      *metav1.Time `json:"readyTime,omitempty"`
	StartupSeconds int32        `json:"startupSeconds,omitempty"`
	Note           string       `json:"note,omitempty"`
}

// TideStatus is the forecast in short.
type TideStatus struct {
	Model string `json:"model,omitempty"`
	// PeakReplicas is the largest demand of the coming day at the service's quantile, PeakTime when.
	PeakReplicas int32        `json:"peakReplicas"`
	PeakTime     *metav1.Time `json:"peakTime,omitempty"`
	LowReplicas  int32        `json:"lowReplicas"`
	LowTime      *metav1.Time `json:"lowTime,omitempty"`
}

// SummaryStatus compares the last two weeks under Auto with static provisioning.
type SummaryStatus struct {
	From                   metav1.Time `json:"from"`
	To                     metav1.Time `json:"to"`
	CoreHours              int64       `json:"coreHours"`
	CoreHoursStatic        int64       `json:"coreHoursStatic"`
	ViolationMinutes       int32       `json:"violationMinutes"`
	ViolationMinutesStatic int32       `json:"violationMinutesStatic"`
	Verdict                string      `json:"verdict"`
}
