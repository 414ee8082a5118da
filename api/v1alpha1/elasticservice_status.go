package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ElasticServiceStatus is what Springtide saw and did.
type ElasticServiceStatus struct {
	// ObservedGeneration is the generation of the spec that this status answers.
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ObservedTime is when what stands here was seen. Numbers that change all the time are written with the next change that matters,
	// and every ten minutes.
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`
	// Replicas is what the target runs.
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas,omitempty"`
	// Standby is what is out of traffic by a staged scale-in; absent while nothing is.
	Standby *StandbyStatus `json:"standby,omitempty"`
	// Windows say of each window whether it is open, and when it opened last and opens next.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Windows []WindowStatus `json:"windows,omitempty"`
	// Pause is the pause in force; absent while there is none.
	Pause *PauseStatus `json:"pause,omitempty"`
	// ReadyReplicas is what is ready.
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// DesiredReplicas is what Springtide wants (or would want).
	// +kubebuilder:validation:Minimum=0
	DesiredReplicas int32 `json:"desiredReplicas,omitempty"`
	// FloorReplicas is the forecast's demand with the lead included.
	// +kubebuilder:validation:Minimum=0
	FloorReplicas int32 `json:"floorReplicas,omitempty"`
	// Reason is the last decision in one sentence.
	// +kubebuilder:validation:MaxLength=2048
	Reason string `json:"reason,omitempty"`
	// LastScaleTime is when the target was changed last.
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`
	// Takeovers are the writes of another manager that undid those of Springtide; unset before the first.
	Takeovers *TakeoverStatus `json:"takeovers,omitempty"`
	// Portrait is the state of learning.
	Portrait *PortraitStatus `json:"portrait,omitempty"`
	// Recommendation says what one replica should request by its usage.
	Recommendation *RecommendationStatus `json:"recommendation,omitempty"`
	// Tide is the forecast in short.
	Tide *TideStatus `json:"tide,omitempty"`
	// Link is how the service follows its link group; unset where it has none.
	Link *LinkStatus `json:"link,omitempty"`
	// SLO is what became of what the service promises; unset where it promises nothing.
	SLO *SLOStatus `json:"slo,omitempty"`
	// Summary says what the last two weeks would have been under Auto.
	Summary *SummaryStatus `json:"summary,omitempty"`
	// LeaderEpoch is the fencing number of the controller that wrote this status.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
	// Conditions: Accepted, AbleToScale, ScalingActive, ScalingLimited, ForecastReady, ForecastSkillLost, DataFresh,
	// SLOMeasured, ChainBottleneck, FallUnconfirmed, RiseUnconfirmed, Paused.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TakeoverStatus counts how often another manager took a size back: spec.replicas of a service's target, or the size of a job's member. After the third
// time within an hour it is not written until that manager has left it alone for an hour, or no longer writes it.
type TakeoverStatus struct {
	// Manager is the field manager that wrote.
	// +kubebuilder:validation:MaxLength=128
	Manager string `json:"manager"`
	// Count is how often, each within an hour of the one before.
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`
	// LastTime is when it wrote last, by the managed fields of the target.
	LastTime metav1.Time `json:"lastTime"`
}

// WindowStatus is one window in time.
type WindowStatus struct {
	// Name is the window's.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// OpenUntil is until when it is open; unset while it is closed.
	OpenUntil *metav1.Time `json:"openUntil,omitempty"`
	// LastTime is when it opened last; unset where it never did within eight years.
	LastTime *metav1.Time `json:"lastTime,omitempty"`
	// NextTime is when it opens next; unset where it does not within five years.
	NextTime *metav1.Time `json:"nextTime,omitempty"`
}

// PauseStatus is a pause in force.
type PauseStatus struct {
	// Scope is what it holds: All, or of a service In (scale-in) or Out (scale-out).
	// +kubebuilder:validation:MaxLength=16
	Scope string `json:"scope"`
	// Source is where the pause stands: spec.pause, or an annotation of the object or of its namespace.
	// +kubebuilder:validation:MaxLength=128
	Source string `json:"source"`
	// By is who asked for it; unset where that is not known.
	// +kubebuilder:validation:MaxLength=128
	By string `json:"by,omitempty"`
	// Reason is why.
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// At is the size at which the service stays; unset where it stays as it is.
	// +kubebuilder:validation:Minimum=0
	At *int32 `json:"at,omitempty"`
	// Since is when it was asked for; unset where that is not known.
	Since *metav1.Time `json:"since,omitempty"`
	// Until is when it ends by itself; unset where it lasts until it is removed.
	Until *metav1.Time `json:"until,omitempty"`
}

// StandbyStatus is what a staged scale-in took out of traffic.
type StandbyStatus struct {
	// Replicas is how many pods stand by. They are in status.replicas, and not in readyReplicas.
	// +kubebuilder:validation:Minimum=1
	Replicas int32 `json:"replicas"`
	// EndTime is when the standby of the first of them is over.
	EndTime *metav1.Time `json:"endTime,omitempty"`
}

// LinkStatus is how a service follows its link group.
type LinkStatus struct {
	// Group is the link group.
	// +kubebuilder:validation:MaxLength=63
	Group string `json:"group"`
	// Source is Declared, Learned or Refused.
	// +kubebuilder:validation:Enum=Declared;Learned;Refused
	Source string `json:"source"`
	// Note says what the ratio is and how well it fits, or why there is none.
	// +kubebuilder:validation:MaxLength=1024
	Note string `json:"note,omitempty"`
}

// PortraitStatus is the state of learning.
type PortraitStatus struct {
	// Signal is what the portrait is of: requests or cores.
	// +kubebuilder:validation:MaxLength=63
	Signal string `json:"signal,omitempty"`
	// QualityPercent says how far the portrait can be trusted.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	QualityPercent int32 `json:"qualityPercent"`
	// Points are the samples learned from.
	// +kubebuilder:validation:Minimum=0
	Points int32 `json:"points"`
	// PointsNeeded are the samples that a forecast needs.
	// +kubebuilder:validation:Minimum=0
	PointsNeeded int32 `json:"pointsNeeded"`
	// Class is the kind of load: new, steady, tidal, bursty or unpredictable.
	// +kubebuilder:validation:MaxLength=63
	Class string `json:"class,omitempty"`
	// Periods are the seasons that were found in the history, as in "24h"; they are looked for four times a day.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=24
	Periods []string `json:"periods,omitempty"`
	// Gaps are the holes in the history.
	// +kubebuilder:validation:Minimum=0
	Gaps int32 `json:"gaps,omitempty"`
	// ReadyTime is when the portrait can carry a forecast, as far as is known.
	ReadyTime *metav1.Time `json:"readyTime,omitempty"`
	// StartupSeconds is the learned time from a pod's start on its machine to Ready, which nine in ten keep.
	// +kubebuilder:validation:Minimum=0
	StartupSeconds int32 `json:"startupSeconds,omitempty"`
	// StartupImagePresentSeconds is the same where the machine had the images already.
	// +kubebuilder:validation:Minimum=0
	StartupImagePresentSeconds int32 `json:"startupImagePresentSeconds,omitempty"`
	// StartupImageAbsentSeconds is the same where an image had to be pulled.
	// +kubebuilder:validation:Minimum=0
	StartupImageAbsentSeconds int32 `json:"startupImageAbsentSeconds,omitempty"`
	// NoisePercent is the usual miss of a forecast one step ahead, as a share of the load.
	// +kubebuilder:validation:Minimum=0
	NoisePercent int32 `json:"noisePercent,omitempty"`
	// Accuracy is how good the forecasts were, as they were said, by how far ahead they looked.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	Accuracy []ForecastAccuracy `json:"accuracy,omitempty"`
	// Cost is what one unit of load costs, with its standard error.
	// +kubebuilder:validation:MaxLength=128
	Cost string `json:"cost,omitempty"`
	// LastError is the newest failure to read the history, and when it was.
	// +kubebuilder:validation:MaxLength=1024
	LastError string `json:"lastError,omitempty"`
	// Note says what keeps the portrait from being better.
	// +kubebuilder:validation:MaxLength=1024
	Note string `json:"note,omitempty"`
}

// ForecastAccuracy is how good the forecasts of one time ahead were, over the last ten days.
type ForecastAccuracy struct {
	// HorizonSeconds is how far ahead they looked.
	// +kubebuilder:validation:Minimum=1
	HorizonSeconds int32 `json:"horizonSeconds"`
	// Judged counts the forecasts that were compared with what came.
	// +kubebuilder:validation:Minimum=0
	Judged int32 `json:"judged"`
	// MissPercent is the usual distance of the load from the median that was forecast, as a share of a day's mean load.
	// +kubebuilder:validation:Minimum=0
	MissPercent int32 `json:"missPercent"`
	// Coverage is what the upper end of the band held.
	Coverage ForecastCoverage `json:"coverage"`
}

// ForecastCoverage sets what a quantile held next to what it promised.
type ForecastCoverage struct {
	// NominalPercent is the quantile.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=99
	NominalPercent int32 `json:"nominalPercent"`
	// AchievedPercent is the share of the loads that were at or below it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	AchievedPercent int32 `json:"achievedPercent"`
}

// RecommendationStatus says what one replica should request, computed as the VerticalPodAutoscaler's recommender does.
type RecommendationStatus struct {
	// CPUMillicores is the CPU.
	CPUMillicores *RequestBounds `json:"cpuMillicores,omitempty"`
	// MemoryBytes is the memory.
	MemoryBytes *RequestBounds `json:"memoryBytes,omitempty"`
	// HistoryHours is how much usage stands behind it.
	// +kubebuilder:validation:Minimum=0
	HistoryHours int32 `json:"historyHours"`
	// AppliedTime is when requests were changed last.
	AppliedTime *metav1.Time `json:"appliedTime,omitempty"`
	// Note says what of it is applied, or what stands in the way.
	// +kubebuilder:validation:MaxLength=1024
	Note string `json:"note,omitempty"`
}

// RequestBounds is one amount of a recommendation.
//
// +kubebuilder:validation:XValidation:rule="self.lower <= self.target && self.target <= self.upper",message="lower <= target <= upper must hold"
type RequestBounds struct {
	// Current is what the template of the target requests.
	// +kubebuilder:validation:Minimum=0
	Current int64 `json:"current"`
	// Lower is the least that is good enough.
	// +kubebuilder:validation:Minimum=0
	Lower int64 `json:"lower"`
	// Target is what to request.
	// +kubebuilder:validation:Minimum=0
	Target int64 `json:"target"`
	// Upper is the most that is not wasted.
	// +kubebuilder:validation:Minimum=0
	Upper int64 `json:"upper"`
}

// TideStatus is the forecast in short.
type TideStatus struct {
	// Model names the model that spoke last in the fall-back chain.
	// +kubebuilder:validation:MaxLength=63
	Model string `json:"model,omitempty"`
	// PeakReplicas is the largest demand of the coming day at the service's quantile.
	// +kubebuilder:validation:Minimum=0
	PeakReplicas int32 `json:"peakReplicas"`
	// PeakTime is when it comes.
	PeakTime *metav1.Time `json:"peakTime,omitempty"`
	// LowReplicas is the smallest demand of the coming day at the service's quantile.
	// +kubebuilder:validation:Minimum=0
	LowReplicas int32 `json:"lowReplicas"`
	// LowTime is when it comes.
	LowTime *metav1.Time `json:"lowTime,omitempty"`
	// Days are the days of the calendar that lift the forecast.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Days []LiftedDay `json:"days,omitempty"`
}

// LiftedDay is a day of the calendar that lifts, or lowers, the forecast.
type LiftedDay struct {
	// Name is the day's, as in "Spring Festival, day 2".
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// From is its first moment.
	From metav1.Time `json:"from"`
	// Percent is what its most unusual hour is forecast at, in percent of an ordinary day's.
	// +kubebuilder:validation:Minimum=0
	Percent int32 `json:"percent"`
	// Kin says that only other services of the same calendar have seen such a day.
	Kin bool `json:"kin,omitempty"`
}

// SummaryStatus compares the last two weeks under Auto with static provisioning.
type SummaryStatus struct {
	// From is where the time looked at begins.
	From metav1.Time `json:"from"`
	// To is where it ends.
	To metav1.Time `json:"to"`
	// CoreHours is what Auto would have requested.
	// +kubebuilder:validation:Minimum=0
	CoreHours int64 `json:"coreHours"`
	// Today is what it is compared with: the service's autoscaler, else a static count.
	// +kubebuilder:validation:MaxLength=320
	Today string `json:"today,omitempty"`
	// CoreHoursToday is what that requested.
	// +kubebuilder:validation:Minimum=0
	CoreHoursToday int64 `json:"coreHoursToday"`
	// ViolationMinutes is how long the SLO would have been broken under Auto.
	// +kubebuilder:validation:Minimum=0
	ViolationMinutes int32 `json:"violationMinutes"`
	// ViolationMinutesToday is how long it would have been broken under that.
	// +kubebuilder:validation:Minimum=0
	ViolationMinutesToday int32 `json:"violationMinutesToday"`
	// Verdict says in one sentence whether Auto would have been better.
	// +kubebuilder:validation:MaxLength=1024
	Verdict string `json:"verdict"`
}
