package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FestivalPlan lifts named services while a festival lasts.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=springtide,shortName=fest
// +kubebuilder:printcolumn:name="Start",type=string,JSONPath=`.status.start`
// +kubebuilder:printcolumn:name="End",type=string,JSONPath=`.status.end`
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

// FestivalPlanSpec is what the operator wants. Its times are of the wall clock of its time zone.
//
// +kubebuilder:validation:XValidation:rule="!has(self.takeStable) || !self.takeStable || (has(self.approved) && self.approved)",message="takeStable takes work below its minimum and needs approved: true",fieldPath=".takeStable"
// +kubebuilder:validation:XValidation:rule="!has(self.phases[0].start) && self.phases.filter(p, !has(p.start)).size() == 1",message="the first phase begins with the plan and has no start; each other phase needs one, as in start: {at: \"20:00\"}",fieldPath=".phases"
// +kubebuilder:validation:XValidation:rule="self.phases.exists(p, (has(p.lifts) && p.lifts.size() > 0) || (has(p.freeze) && p.freeze))",message="no phase lifts a service or freezes: add lifts to a phase",fieldPath=".phases"
type FestivalPlanSpec struct {
	// TimeZone is the IANA zone of all times of the plan, as in "Asia/Shanghai".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone"`
	// When is the time of the festival: dates, or a day of the calendar.
	When FestivalWhen `json:"when"`
	// Phases follow each other: each lasts until the next one begins, the last until the plan ends.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Phases []FestivalPhase `json:"phases"`
	// Priority lets two plans lift one service at one time: the higher one speaks for the service while it lifts it. Plans
	// of one priority exclude each other; 0 by default.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`
	// Approved lets the plan act; a plan that is not approved is only computed.
	Approved bool `json:"approved,omitempty"`
	// TakeStable lets online also borrow machines whose jobs fall below their minimum, or whose members are stable. It
	// holds while the plan is in force and an hour before.
	TakeStable bool `json:"takeStable,omitempty"`
}

// FestivalWhen is from one time to another, or a day of the calendar with the days before and after it.
//
// +kubebuilder:validation:XValidation:rule="has(self.from) == has(self.to)",message="from needs to, and to needs from"
// +kubebuilder:validation:XValidation:rule="has(self.from) != has(self.day)",message="a festival has from and to, or a day, and not both"
// +kubebuilder:validation:XValidation:rule="!has(self.from) || self.from < self.to",message="from must be before to",fieldPath=".to"
// +kubebuilder:validation:XValidation:rule="has(self.day) ? has(self.year) != (has(self.yearly) && self.yearly) : !has(self.year) && !has(self.yearly)",message="a day needs a year, or yearly: true; dates have neither"
// +kubebuilder:validation:XValidation:rule="has(self.day) || (!has(self.region) && !has(self.before) && !has(self.after))",message="region, before and after belong to a day: dates have from and to alone"
type FestivalWhen struct {
	// From is when the festival begins, as in "2026-11-10T20:00".
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]$')",message="must be a local time such as 2026-11-10T20:00: the zone is timeZone"
	From string `json:"from,omitempty"`
	// To is when it is over.
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]$')",message="must be a local time such as 2026-11-10T20:00: the zone is timeZone"
	To string `json:"to,omitempty"`
	// Day is a date of each year ("11-11"), a weekday of a month ("last Friday of November"), or the name of a day of the
	// region's calendar ("Spring Festival").
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=63
	Day string `json:"day,omitempty"`
	// Region is the country by ISO 3166 whose calendar names the day.
	// +kubebuilder:validation:Enum=AT;BE;BR;CA;CH;CN;CZ;DE;DK;ES;FR;GB;IE;IT;JP;NL;NO;NZ;PL;SE;US;ZA
	Region string `json:"region,omitempty"`
	// Before is how many days before the day the festival begins, at midnight.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=30
	Before int32 `json:"before,omitempty"`
	// After is how many days after the day it ends, at midnight.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=30
	After int32 `json:"after,omitempty"`
	// Year is the year of the day.
	// +kubebuilder:validation:Minimum=2000
	// +kubebuilder:validation:Maximum=2099
	Year *int32 `json:"year,omitempty"`
	// Yearly makes the festival come each year.
	Yearly bool `json:"yearly,omitempty"`
}

// FestivalPhase is a part of the festival with lifts of its own.
//
// +kubebuilder:validation:XValidation:rule="has(self.lifts) || (!has(self.rampUp) && !has(self.rampDown))",message="a phase without lifts has no ramps: add lifts, or take the ramps out"
type FestivalPhase struct {
	// Name of the phase, as in "peak".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a plain name: lower-case letters, digits and '-', with a letter or digit at both ends, as in evening-peak"
	Name string `json:"name"`
	// Start is when the phase begins; the first phase begins with the plan.
	Start *FestivalStart `json:"start,omitempty"`
	// RampUp is how long the lifts grow before the phase begins, as in "30m".
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="must be a duration from 1m to 24h, as in 30m"
	RampUp Duration `json:"rampUp,omitempty"`
	// RampDown is how long they fall after the phase.
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="must be a duration from 1m to 24h, as in 30m"
	RampDown Duration `json:"rampDown,omitempty"`
	// Freeze holds loans, scale-in and new requests while the phase lasts, as a window of change with budget 0 does.
	Freeze bool `json:"freeze,omitempty"`
	// Lifts raise services.
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=service
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	Lifts []FestivalLift `json:"lifts,omitempty"`
}

// FestivalStart is a time of a day.
type FestivalStart struct {
	// Day is counted from the festival's first day, or from its named one: -1 is the eve. 0 by default.
	// +kubebuilder:validation:Minimum=-31
	// +kubebuilder:validation:Maximum=31
	Day int32 `json:"day,omitempty"`
	// At is the time of that day, as in "20:00".
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="must be a time such as \"20:00\""
	At string `json:"at"`
}

// FestivalLift raises one service.
//
// +kubebuilder:validation:XValidation:rule="has(self.factor) || has(self.replicas)",message="a lift needs factor or replicas, or both"
type FestivalLift struct {
	// Namespace of the service.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`
	// Service names an ElasticService.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Service string `json:"service"`
	// Factor multiplies the forecast load, as in 1.5x.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=6
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]?([.][0-9]{1,2})?x$')",message="must be a factor from 1x to 99.99x, as in 1.5x"
	Factor string `json:"factor,omitempty"`
	// Replicas is a least number of replicas.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Replicas *int32 `json:"replicas,omitempty"`
}

// FestivalPlanStatus is what Springtide saw.
type FestivalPlanStatus struct {
	// ObservedGeneration is the generation of the spec that this status answers.
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Start is when the festival that lasts or comes next begins, its ramp included.
	Start *metav1.Time `json:"start,omitempty"`
	// End is when that festival is over.
	End *metav1.Time `json:"end,omitempty"`
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
