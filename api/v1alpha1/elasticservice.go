package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ElasticService states the service level of one online service and how far Springtide may go to keep it cheaply.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=springtide,shortName=esvc
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRef.name`,priority=1
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Paused",type=string,JSONPath=`.status.pause.scope`,priority=1
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.replicas.min`,priority=1
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.replicas.max`,priority=1
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredReplicas`
// +kubebuilder:printcolumn:name="Floor",type=integer,JSONPath=`.status.floorReplicas`,priority=1
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="AbleToScale")].reason`
// +kubebuilder:printcolumn:name="Fresh",type=string,JSONPath=`.status.conditions[?(@.type=="DataFresh")].status`,priority=1
// +kubebuilder:printcolumn:name="Forecast",type=string,JSONPath=`.status.conditions[?(@.type=="ForecastReady")].status`,priority=1
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.status.tide.model`,priority=1
// +kubebuilder:printcolumn:name="Peak",type=integer,JSONPath=`.status.tide.peakReplicas`,priority=1
// +kubebuilder:printcolumn:name="Peak At",type=string,JSONPath=`.status.tide.peakTime`,priority=1
// +kubebuilder:printcolumn:name="Seen",type=date,JSONPath=`.status.observedTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,priority=1
type ElasticService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ElasticServiceSpec   `json:"spec"`
	Status            ElasticServiceStatus `json:"status,omitempty"`
}

// ElasticServiceList is a list of ElasticService.
//
// +kubebuilder:object:root=true
type ElasticServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElasticService `json:"items"`
}

// ElasticServiceSpec is what the operator wants.
//
// +kubebuilder:validation:XValidation:rule="!has(self.linkRatio) || has(self.linkGroup)",message="a link ratio needs a link group",fieldPath=".linkRatio"
// +kubebuilder:validation:XValidation:rule="!has(self.windows) || self.windows.all(w, !has(w.minReplicas) || w.minReplicas <= self.replicas.max)",message="a window's minReplicas above replicas.max can never be reached: raise replicas.max or lower the window",fieldPath=".windows"
// +kubebuilder:validation:XValidation:rule="!has(self.windows) || self.windows.all(w, !has(w.maxReplicas) || w.maxReplicas >= self.replicas.min)",message="a window's maxReplicas below replicas.min would never hold: lower replicas.min or raise the window",fieldPath=".windows"
// +kubebuilder:validation:XValidation:rule="!has(self.scaleIn) || self.targetRef.kind == 'Deployment' && self.actuation != 'HPAFloor'",message="a staged scale-in needs a Deployment under actuation Scale: pods of a StatefulSet leave in their order, and an HPA chooses none",fieldPath=".scaleIn"
// +kubebuilder:validation:XValidation:rule="!has(self.requestsMode) || !(self.requestsMode in ['Recreate', 'InPlace']) || self.targetRef.apiVersion.startsWith('apps/') && self.targetRef.kind in ['Deployment', 'StatefulSet']",message="requests are changed in Deployments and StatefulSets alone: set requestsMode to Recommend or Off",fieldPath=".requestsMode"
// +kubebuilder:validation:XValidation:rule="!has(self.pause) || !has(self.pause.at) || self.pause.scope == 'All' && self.pause.at >= self.replicas.min && self.pause.at <= self.replicas.max",message="pause.at needs scope All, and lies within replicas.min and replicas.max",fieldPath=".pause"
type ElasticServiceSpec struct {
	// TargetRef is the workload to scale: any object of this namespace with a scale subresource, as a Deployment, a
	// StatefulSet, a Rollout or a LeaderWorkerSet.
	// +kubebuilder:validation:XValidation:rule="!(self.kind in ['HorizontalPodAutoscaler', 'ScaledObject'])",message="name the workload itself, not its autoscaler: an HPA that you keep is found by itself under actuation HPAFloor",fieldPath=".kind"
	// +kubebuilder:validation:XValidation:rule="!(self.kind in ['DaemonSet', 'Job', 'CronJob', 'Pod'])",message="this kind has no scale subresource: name a Deployment, a StatefulSet or another kind that has one (batch work is an ElasticJob)",fieldPath=".kind"
	TargetRef TargetRef `json:"targetRef"`
	// Mode is how far Springtide may go: Observe records, Recommend tells, Auto acts.
	// +kubebuilder:validation:Enum=Observe;Recommend;Auto
	// +kubebuilder:default=Observe
	Mode string `json:"mode,omitempty"`
	// Pause holds the service, or one direction of its scaling, with a reason and until a time. Without it nothing is
	// held, unless an annotation pauses it.
	Pause *Pause `json:"pause,omitempty"`
	// Actuation is Scale (write the scale subresource) or HPAFloor (raise and lower minReplicas of the HPA that scales the target).
	// +kubebuilder:validation:Enum=Scale;HPAFloor
	// +kubebuilder:default=Scale
	Actuation string `json:"actuation,omitempty"`
	// SLO is what the service promises, and what sizing protects.
	SLO SLO `json:"slo"`
	// Metrics are the reactive metrics; without any, CPU at the SLO's utilization (or 60 %) is used.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Metrics []Metric `json:"metrics,omitempty"`
	// Replicas bounds the target.
	Replicas ReplicaBounds `json:"replicas"`
	// Windows are levels in time.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Windows []Window `json:"windows,omitempty"`
	// Calendar names days on which the load is unlike that of other days: holidays, festivals, sales. Their effect is
	// learned.
	Calendar *Calendar `json:"calendar,omitempty"`
	// LinkGroup names services of this namespace on one call chain: when one of them needs more, the others are raised with it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a plain name: lower-case letters, digits and '-', with a letter or digit at both ends, as in evening-peak"
	LinkGroup string `json:"linkGroup,omitempty"`
	// LinkRatio is how many replicas of this service the chain needs for one unit of its work, a decimal number as text; the unit is the
	// group's own. Members that state it are scaled by it among each other; for the others the ratio is learned from history.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,12}([.][0-9]{1,9})?$') && double(self) > 0.0",message="must be a positive decimal number in quotes, as in \"12.5\""
	LinkRatio string `json:"linkRatio,omitempty"`
	// Forecast says how the forecast is used.
	Forecast *Forecast `json:"forecast,omitempty"`
	// Behavior bounds how fast the service is scaled, as the behavior of a HorizontalPodAutoscaler does.
	Behavior *Behavior `json:"behavior,omitempty"`
	// ScaleIn says how pods leave. It needs a Deployment under actuation Scale.
	ScaleIn *ScaleIn `json:"scaleIn,omitempty"`
	// RequestsMode says how far the CPU and memory requests of the target's pods may be changed: Off reports nothing,
	// Recommend reports what usage asks for, Recreate changes the template of the target, which rolls its pods over,
	// and InPlace resizes running pods. The latter two need mode Auto, and change CPU only where replicas.min equals
	// replicas.max.
	// +kubebuilder:validation:Enum=Off;Recommend;Recreate;InPlace
	// +kubebuilder:default=Recommend
	RequestsMode string `json:"requestsMode,omitempty"`
	// Startup overrides the learned time from a pod's start on its machine to Ready, as in "90s".
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?$') && duration(self) >= duration('1s') && duration(self) <= duration('2h')",message="must be a duration from 1s to 2h, as in 90s"
	Startup Duration `json:"startup,omitempty"`
}

// Pause is a pause of the spec.
type Pause struct {
	// Reason is shown wherever a change is held.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason"`
	// Scope is what it holds: All, In (scale-in) or Out (scale-out). Each of them holds changes of requests.
	// +kubebuilder:validation:Enum=All;In;Out
	// +kubebuilder:default=All
	Scope string `json:"scope,omitempty"`
	// Until is when the pause ends by itself; without it, it lasts until spec.pause is removed.
	Until *metav1.Time `json:"until,omitempty"`
	// At is the number of replicas while the pause lasts, within replicas.min and replicas.max; without it, the service
	// stays as it is. It needs scope All. Under actuation HPAFloor it is the floor.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	At *int32 `json:"at,omitempty"`
}

// ScaleIn says how pods that a scale-in takes leave.
type ScaleIn struct {
	// Standby is how long they stay out of traffic, with a squeezed CPU request, before they are deleted, as in "15m".
	// They come back within one cycle if the tide returns. Their template needs the readiness gate
	// springtide.dev/in-service.
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && duration(self) >= duration('1m') && duration(self) <= duration('2h')",message="must be a duration from 1m to 2h, as in 15m"
	Standby Duration `json:"standby"`
}

// Calendar names days on which the load of a service is unlike that of other days.
//
// +kubebuilder:validation:XValidation:rule="has(self.regions) || has(self.days)",message="a calendar needs regions or days, or both"
type Calendar struct {
	// TimeZone is the IANA zone in which days begin, as in "Asia/Shanghai".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone"`
	// Regions are countries by ISO 3166 whose holidays, festivals and sales count.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Enum=AT;BE;BR;CA;CH;CN;CZ;DE;DK;ES;FR;GB;IE;IT;JP;NL;NO;NZ;PL;SE;US;ZA
	Regions []string `json:"regions,omitempty"`
	// Days are days of your own: the same name at another date is another occurrence of one day.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Days []CalendarDay `json:"days,omitempty"`
}

// CalendarDay is a day, or a feast of several.
type CalendarDay struct {
	// Name is the same for all occurrences, as in "anniversary sale".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Date is the first day: 2026-08-08 for that day alone, 08-08 for that day of every year.
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="self.matches('^((19|20)[0-9]{2}-)?(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$')",message="must be a date such as 2026-08-08, or 08-08 for every year"
	Date string `json:"date"`
	// Days is how many days it lasts; 1 by default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31
	Days *int32 `json:"days,omitempty"`
}

// TargetRef names a workload of the same namespace.
type TargetRef struct {
	// APIVersion is the workload's group and version, as in "apps/v1".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?$')",message="must be a group and version, as in apps/v1"
	APIVersion string `json:"apiVersion"`
	// Kind is the workload's kind, as in "Deployment".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="must be a kind, as in Deployment"
	Kind string `json:"kind"`
	// Name is the workload's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be an object's name: lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
	Name string `json:"name"`
}

// Metric is one reactive metric.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'CPU' || (has(self.targetUtilization) && !has(self.targetPerReplica) && !has(self.query))",message="a CPU metric needs targetUtilization, and neither targetPerReplica nor query"
// +kubebuilder:validation:XValidation:rule="self.type != 'Requests' || (has(self.targetPerReplica) && !has(self.targetUtilization) && !has(self.query))",message="a Requests metric needs targetPerReplica (requests per second), and neither targetUtilization nor query"
// +kubebuilder:validation:XValidation:rule="self.type != 'Query' || (has(self.query) && has(self.targetPerReplica) && !has(self.targetUtilization))",message="a Query metric needs query and targetPerReplica, and no targetUtilization"
type Metric struct {
	// Name is unique within the service.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a plain name: lower-case letters, digits and '-', with a letter or digit at both ends, as in evening-peak"
	Name string `json:"name"`
	// Type is CPU, Requests or Query.
	// +kubebuilder:validation:Enum=CPU;Requests;Query
	Type string `json:"type"`
	// TargetUtilization is the share of the requested CPU to hold, as in "60%" (type CPU).
	// +kubebuilder:validation:XValidation:rule="self.matches('^(100|[0-9]{1,2}([.][0-9]{1,4})?)%$') && double(self.replace('%', '')) >= 1.0",message="must be a percentage from 1% to 100%, as in \"70%\""
	TargetUtilization Percent `json:"targetUtilization,omitempty"`
	// TargetPerReplica is the amount that a replica may carry, as in "250" (types Requests and Query).
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0')) && !quantity(string(self)).isGreaterThan(quantity('1P'))",message="must be a positive amount, as in 250, \"12.5\" or 500m"
	TargetPerReplica *resource.Quantity `json:"targetPerReplica,omitempty"`
	// Query is a PromQL expression with one value; it only ever sees this namespace (type Query).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Query string `json:"query,omitempty"`
}

// ReplicaBounds bounds a target.
//
// +kubebuilder:validation:XValidation:rule="self.min <= self.max",message="replicas.min must not exceed replicas.max"
type ReplicaBounds struct {
	// Min is the least number of replicas at any time. At 0 the service scales to zero, where a signal wakes it that is
	// read without its pods: a metric of type Query, slo.throughput, slo.backlog, or the preset of an ingress. Without one
	// a replica stays. No floor goes below the minReplicas that the owner of a HorizontalPodAutoscaler set.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Min int32 `json:"min"`
	// Max is the largest number of replicas at any time.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Max int32 `json:"max"`
}

// Window is a level in time: from each start for a duration, in its zone.
//
// +kubebuilder:validation:XValidation:rule="has(self.minReplicas) || has(self.maxReplicas)",message="a window needs minReplicas or maxReplicas, or both"
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="a window's minReplicas must not exceed its maxReplicas"
type Window struct {
	// Name is unique within the service.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a plain name: lower-case letters, digits and '-', with a letter or digit at both ends, as in evening-peak"
	Name string `json:"name"`
	// Start is a five-field cron expression: when the window opens.
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
	// MinReplicas bounds the target from below while the window is open.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// MaxReplicas bounds the target from above while the window is open.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
}
