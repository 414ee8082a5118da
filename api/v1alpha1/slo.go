package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// SLO is what the service promises: any of its levels together. The service is sized by the level that asks for most,
// and each is judged
// by itself.
//
// +kubebuilder:validation:XValidation:rule="has(self.latency) || has(self.errors) || has(self.throughput) || has(self.backlog) || has(self.utilization)",message="an SLO needs at least one of latency, errors, throughput, backlog and utilization"
type SLO struct {
	// Latency bounds percentiles of the response time, each percentile once.
	// +listType=map
	// +listMapKey=percentile
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Latency []LatencyLevel `json:"latency,omitempty"`
	// Errors bounds the share of requests that fail.
	Errors *ErrorLevel `json:"errors,omitempty"`
	// Throughput is work that arrives and is to be done as it arrives, for workers and consumers.
	Throughput *ThroughputLevel `json:"throughput,omitempty"`
	// Backlog is work that waits and is to be done in time, for queues.
	Backlog *BacklogLevel `json:"backlog,omitempty"`
	// Utilization bounds usage as a share of the requests.
	Utilization *UtilizationLevels `json:"utilization,omitempty"`
	// Objective is how many minutes must be good: minutes in which no level is broken. Without one, "99.5%" over "28d" is
	// the objective.
	Objective *Objective `json:"objective,omitempty"`
	// Explore is Off or Slow; Off where it is left out. With Slow the service approaches its knee in quiet hours, by
	// steps of 5 %, while more than three quarters of the budget are left. At the first broken minute it steps back.
	// +kubebuilder:validation:Enum=Off;Slow
	Explore Explore `json:"explore,omitempty"`
}

// Explore says whether a service may approach the load at which its levels break, to learn where that is.
type Explore string

// The ways to explore.
const (
	ExploreOff  Explore = "Off"
	ExploreSlow Explore = "Slow"
)

// LatencyLevel bounds a percentile of the response time.
type LatencyLevel struct {
	// Percentile is text from "50" to "99.99", as in "99.9".
	// +kubebuilder:validation:XValidation:rule="self.matches('^[5-9][0-9]([.][0-9]?[1-9])?$')",message="must be a percentile from \"50\" to \"99.99\" without trailing zeros, as in \"99.9\""
	Percentile Percentile `json:"percentile"`
	// Under is what the percentile must stay under, as in "250ms".
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?$') && duration(self) >= duration('1ms') && duration(self) <= duration('10m')",message="must be a duration from 1ms to 10m, as in 250ms or 2s"
	Under Duration `json:"under"`
	// Source says how it is measured; the preset otel where it is left out.
	Source *LatencySource `json:"source,omitempty"`
}

// LatencySource says how a latency is measured.
//
// +kubebuilder:validation:XValidation:rule="[has(self.preset), has(self.histogram), has(self.query)].filter(x, x).size() == 1",message="a source needs exactly one of preset, histogram and query"
type LatencySource struct {
	// Preset names the exporter whose histogram is read: otel, istio, envoy-gateway, ingress-nginx, linkerd, spring or
	// grpc-otel.
	// +kubebuilder:validation:Enum=otel;istio;envoy-gateway;ingress-nginx;linkerd;spring;grpc-otel
	Preset string `json:"preset,omitempty"`
	// Histogram is one of your own, classic or native.
	Histogram *Histogram `json:"histogram,omitempty"`
	// Query is PromQL that gives the percentile in seconds; it only ever sees this namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Query string `json:"query,omitempty"`
}

// Histogram is a classic or native histogram of response times with the labels namespace and pod.
type Histogram struct {
	// Name is the metric's, without _bucket.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_:][a-zA-Z0-9_:.]*$')",message="must be a metric's name, as in http_server_request_duration_seconds"
	Name string `json:"name"`
	// Unit is what its values are in: s or ms.
	// +kubebuilder:validation:Enum=s;ms
	// +kubebuilder:default=s
	Unit string `json:"unit,omitempty"`
	// Matchers narrow it further, each as PromQL has it: 'route="/cart"'.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=256
	Matchers []string `json:"matchers,omitempty"`
}

// ErrorLevel bounds the share of requests that fail.
type ErrorLevel struct {
	// AtMost is the largest share of the requests that may fail, as in "0.1%".
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,2}([.][0-9]{1,4})?%$') && double(self.replace('%', '')) > 0.0 && double(self.replace('%', '')) <= 50.0",message="must be a percentage above 0% and up to 50%, as in \"0.1%\""
	AtMost Percent `json:"atMost"`
	// Source says how it is measured; the preset otel where it is left out.
	Source *ErrorSource `json:"source,omitempty"`
}

// ErrorSource says how failed requests are counted.
//
// +kubebuilder:validation:XValidation:rule="has(self.preset) ? !has(self.bad) && !has(self.total) : has(self.bad) && has(self.total)",message="a source needs a preset, or the queries bad and total"
type ErrorSource struct {
	// Preset names the exporter whose requests are counted: otel, istio, envoy-gateway, ingress-nginx, linkerd, spring or
	// grpc-otel.
	// +kubebuilder:validation:Enum=otel;istio;envoy-gateway;ingress-nginx;linkerd;spring;grpc-otel
	Preset string `json:"preset,omitempty"`
	// Bad is PromQL that gives the failed requests a second; it only ever sees this namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Bad string `json:"bad,omitempty"`
	// Total is PromQL that gives all requests a second; it only ever sees this namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Total string `json:"total,omitempty"`
}

// ThroughputLevel is work that arrives.
type ThroughputLevel struct {
	// Query is PromQL that gives the work that arrives a second; it only ever sees this namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Query string `json:"query"`
	// PerReplica is how much of it one replica does a second, as in "250"; learned where it is left out.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0')) && !quantity(string(self)).isGreaterThan(quantity('1P'))",message="must be a positive amount, as in 250, \"12.5\" or 500m"
	PerReplica *resource.Quantity `json:"perReplica,omitempty"`
}

// BacklogLevel is work that waits.
type BacklogLevel struct {
	// Query is PromQL that gives the work that waits; it only ever sees this namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Query string `json:"query"`
	// DrainWithin is the time in which it must be done, as in "5m".
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a duration from 1s to 24h, as in 5m"
	DrainWithin Duration `json:"drainWithin"`
}

// UtilizationLevels bound usage as a share of what the pods request.
//
// +kubebuilder:validation:XValidation:rule="has(self.cpu) || has(self.memory) || has(self.gpu)",message="utilization needs at least one of cpu, memory and gpu"
type UtilizationLevels struct {
	// CPU is the share of the requested CPU, as in "70%".
	// +kubebuilder:validation:XValidation:rule="self.matches('^(100|[0-9]{1,2}([.][0-9]{1,4})?)%$') && double(self.replace('%', '')) >= 1.0",message="must be a percentage from 1% to 100%, as in \"70%\""
	CPU Percent `json:"cpu,omitempty"`
	// Memory is the share of the requested memory, as in "80%".
	// +kubebuilder:validation:XValidation:rule="self.matches('^(100|[0-9]{1,2}([.][0-9]{1,4})?)%$') && double(self.replace('%', '')) >= 1.0",message="must be a percentage from 1% to 100%, as in \"70%\""
	Memory Percent `json:"memory,omitempty"`
	// GPU is the share of the GPUs' time, as in "80%".
	// +kubebuilder:validation:XValidation:rule="self.matches('^(100|[0-9]{1,2}([.][0-9]{1,4})?)%$') && double(self.replace('%', '')) >= 1.0",message="must be a percentage from 1% to 100%, as in \"70%\""
	GPU Percent `json:"gpu,omitempty"`
}

// Objective is how many minutes must be good.
type Objective struct {
	// GoodMinutes is the share of the minutes, as in "99.9%".
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,2}([.][0-9]{1,4})?%$') && double(self.replace('%', '')) >= 50.0 && double(self.replace('%', '')) <= 99.99",message="must be a percentage from 50% to 99.99%, as in \"99.9%\""
	// +kubebuilder:default="99.5%"
	GoodMinutes Percent `json:"goodMinutes,omitempty"`
	// Over is the window that rolls, in whole days: "7d", "28d".
	// +kubebuilder:validation:XValidation:rule="self.matches('^([1-9]|[1-8][0-9]|90)d$')",message="must be a whole number of days from 1d to 90d, as in 28d"
	// +kubebuilder:default="28d"
	Over Duration `json:"over,omitempty"`
}

// Forecast says how the forecast is used.
type Forecast struct {
	// Quantile of the tide that sizing covers, decimal text from "0.5" to "0.999", as in "0.95"; chosen by Springtide
	// where it is left
	// out.
	// +kubebuilder:validation:XValidation:rule="self.matches('^0[.][0-9]{1,4}$') && double(self) >= 0.5 && double(self) <= 0.999",message="must be a quantile from \"0.5\" to \"0.999\", as in \"0.95\""
	Quantile Quantile `json:"quantile,omitempty"`
}

// Behavior bounds how fast the service is scaled. Its fields, words and units are those of a HorizontalPodAutoscaler's
// behavior.
type Behavior struct {
	// ScaleUp bounds scale-out. Left out, live signals double the replicas or add 4 in 15 seconds, and the forecast is not
	// bounded.
	// Policies that stand here bound both; replicas.min, windows and festival plans are never bounded.
	ScaleUp *ScalingRules `json:"scaleUp,omitempty"`
	// ScaleDown bounds scale-in. Left out, the larger of 20 percent and 2 replicas leaves a minute, after 300 seconds of
	// agreement.
	ScaleDown *ScalingRules `json:"scaleDown,omitempty"`
}

// ScalingRules bound one direction.
type ScalingRules struct {
	// StabilizationWindowSeconds is how far back past recommendations are looked at: the smallest of them counts for
	// scale-out, the largest for
	// scale-in. 0 by default for scale-out, 300 for scale-in.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	StabilizationWindowSeconds *int32 `json:"stabilizationWindowSeconds,omitempty"`
	// SelectPolicy says which policy counts: Max allows the largest change, Min the smallest, Disabled none.
	// +kubebuilder:validation:Enum=Max;Min;Disabled
	SelectPolicy string `json:"selectPolicy,omitempty"`
	// Policies each allow a change in a period.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Policies []ScalingPolicy `json:"policies,omitempty"`
	// Tolerance is the part by which a metric may miss its target before it asks for another size, as in "0.05"; "0.1" by
	// default.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && !quantity(string(self)).isLessThan(quantity('0')) && !quantity(string(self)).isGreaterThan(quantity('1'))",message="must be an amount from 0 to 1, as in \"0.05\""
	Tolerance *resource.Quantity `json:"tolerance,omitempty"`
}

// ScalingPolicy allows a change in a period.
type ScalingPolicy struct {
	// Type is Pods or Percent.
	// +kubebuilder:validation:Enum=Pods;Percent
	Type string `json:"type"`
	// Value is the change: a number of pods, or percent of the replicas at the beginning of the period.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Value int32 `json:"value"`
	// PeriodSeconds is how long the period is.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1800
	PeriodSeconds int32 `json:"periodSeconds"`
}
