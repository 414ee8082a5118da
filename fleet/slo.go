package fleet

import (
	"math"
	"strconv"
	"time"
)

// LevelKind says what a level bounds.
type LevelKind string

// The kinds of levels, each with the unit of its limit.
const (
	LevelLatency     LevelKind = "Latency"     // a quantile of the response time stays under the limit, in seconds
	LevelErrors      LevelKind = "Errors"      // at most the limit, a share (0..1) of the requests, fails
	LevelThroughput  LevelKind = "Throughput"  // arriving work is done as it arrives; it has no limit of its own
	LevelBacklog     LevelKind = "Backlog"     // waiting work is done within DrainWithin; it has no limit of its own
	LevelUtilization LevelKind = "Utilization" // usage stays under the limit, a share (0..1] of the request
)

// Names of the levels that a service states at most once. A latency's name depends on its quantile, see [LatencyName].
const (
	LevelNameErrors     = "errors"
	LevelNameThroughput = "throughput"
	LevelNameBacklog    = "backlog"
	LevelNameCPU        = "cpu"
	LevelNameMemory     = "memory"
	LevelNameGPU        = "gpu"
)

// PresetOTel is the preset of a latency or an error rate without a source: OpenTelemetry's HTTP server metric.
const PresetOTel = "otel"

// LatencyName is the name of the latency level at a quantile: latency-p99 at 0.99, latency-p99.9 at 0.999.
func LatencyName(quantile float64) string {
	// Percentiles have at most two decimals, so rounding to four takes away what the division by 100 added.
	return "latency-p" + strconv.FormatFloat(math.Round(quantile*1e6)/1e4, 'f', -1, 64)
}

// Level is one thing that a service promises. Levels are comparable: equal ones are measured in the same way.
type Level struct {
	Kind LevelKind
	// Name is unique within the service and the key of the level everywhere: latency-p99, errors, throughput, backlog,
	// cpu, memory, gpu.
	Name string
	// Quantile (0..1) is that of a latency.
	Quantile float64
	// Limit is in the unit of the kind; 0 for throughput and backlog.
	Limit float64
	// PerReplica is how much arriving work one replica does a second, by the operator; 0 means learned.
	PerReplica float64
	// DrainWithin is the time in which a backlog must be done.
	DrainWithin time.Duration
	// Source says how the level is measured; the zero Source for utilization, which the kubelet and the GPU exporter
	// measure.
	Source Source
}

// Source says where the values of a level come from: exactly one of a preset, a histogram, a query and a pair of
// queries.
type Source struct {
	// Preset is a name in the source's own table, as in "otel".
	Preset string
	// Histogram is the operator's own.
	Histogram Histogram
	// Query is PromQL that gives the value: seconds, work a second, or waiting work.
	Query string
	// Bad and Total are PromQL for failed requests and all requests a second.
	Bad, Total string
}

// Presets whose series an ingress writes: they count what arrives, whether or not a pod answers it.
const (
	PresetEnvoyGateway = "envoy-gateway"
	PresetIngressNginx = "ingress-nginx"
)

// AtIngress reports whether an ingress writes the series.
func (s *Source) AtIngress() bool {
	return s.Preset == PresetEnvoyGateway || s.Preset == PresetIngressNginx
}

// Histogram is a classic or native histogram of response times.
type Histogram struct {
	// Name is that of the metric, without _bucket.
	Name string
	// Unit is "s" or "ms".
	Unit string
	// Matchers narrow it further, as PromQL text without braces: `route="/cart",code!~"5.."`.
	Matchers string
}

// Objective is the share of minutes that must be good: in which no level is broken.
type Objective struct {
	// GoodMinutes is a share (0..1) of the minutes of the window Over.
	GoodMinutes float64
	Over        time.Duration
	// Default says that the operator stated none.
	Default bool
}

// SLO is the service level that sizing protects: the service is sized by the level that asks for most, and each level
// is judged by itself.
type SLO struct {
	// Levels have unique names. Order: latencies by quantile, then errors, throughput, backlog, cpu, memory, gpu.
	Levels    []Level
	Objective Objective
	// Explore lets the service approach its knee in quiet hours, to learn what a replica carries.
	Explore bool
}

// Levels is an SLO of these levels, without an objective.
func Levels(levels ...Level) SLO { return SLO{Levels: levels} }

// Latency is the level of a response time at a quantile, from the default source.
func Latency(quantile float64, limit time.Duration) Level {
	return Level{Kind: LevelLatency, Name: LatencyName(quantile), Quantile: quantile, Limit: limit.Seconds(),
		Source: Source{Preset: PresetOTel}}
}

// CPU is the level of the CPU utilization, a share (0..1] of the requests.
func CPU(limit float64) Level {
	return Level{Kind: LevelUtilization, Name: LevelNameCPU, Limit: limit}
}

// Level returns the level of a name; nil where the service does not state it.
func (s *SLO) Level(name string) *Level {
	for i := range s.Levels {
		if s.Levels[i].Name == name {
			return &s.Levels[i]
		}
	}
	return nil
}

// CPULimit is the share (0..1] of the requested CPU that must not be exceeded; 0 where the service does not state it.
func (s *SLO) CPULimit() float64 {
	if l := s.Level(LevelNameCPU); l != nil {
		return l.Limit
	}
	return 0
}

// TightestLatency is the latency level of the highest quantile, that is of the requests that suffer first; nil where
// the service states none.
func (s *SLO) TightestLatency() *Level {
	var out *Level
	for i := range s.Levels {
		if l := &s.Levels[i]; l.Kind == LevelLatency && (out == nil || l.Quantile > out.Quantile) {
			out = l
		}
	}
	return out
}

// LatencyLimit is the limit of [SLO.TightestLatency]; 0 where there is none.
func (s *SLO) LatencyLimit() time.Duration {
	if l := s.TightestLatency(); l != nil {
		return l.Duration()
	}
	return 0
}

// LatencyQuantile is the quantile of [SLO.TightestLatency]; 0 where there is none.
func (s *SLO) LatencyQuantile() float64 {
	if l := s.TightestLatency(); l != nil {
		return l.Quantile
	}
	return 0
}

// Duration is the limit of a latency.
func (l *Level) Duration() time.Duration {
	return time.Duration(math.Round(l.Limit * float64(time.Second)))
}
