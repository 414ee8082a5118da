package model

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/internal/replay"
	"github.com/springtide/springtide/lab/traces"
)

// Step is the longest step that the model may be played at.
const Step = measure.Step

// The queues and latencies of services are those that the simulator computes with too.
type (
	// Queue is the waiting work of one service.
	Queue = measure.Queue
	// Outcome is what one step did to a service.
	Outcome = measure.Outcome
	// Latencies is the distribution of a step's latencies.
	Latencies = measure.Latencies
)

// The constants of every service.
const (
	// headroom is what static provisioning adds to the peak of the last week.
	headroom = 1.2
	// idleShare of a pod's cores is used by a ready pod that serves nothing; it competes with no request.
	idleShare = 0.02
	// startShare of a pod's cores is used while it starts.
	startShare = 0.3
	// jitter is the standard deviation of the logarithm of the load around its minute, drawn once a step: requests do not come evenly
	// within a minute. The figure is chosen, not fitted: no trace here is finer than a minute.
	jitter = 0.03
	// memoryPerCore is what a pod asks for with each core.
	memoryPerCore = 3 * fleet.GiB
)

// Size is the class of a service.
type Size string

// The sizes.
const (
	Small  Size = "small"
	Medium Size = "medium"
	Large  Size = "large"
)

// sizing is what a size means: the weight in the share of the fleet, the pod sizes to draw from, and the range of start-up medians.
type sizing struct {
	size         Size
	weight       float64
	cores        []int
	quick, tardy time.Duration
}

var sizings = []sizing{
	{Small, 1, []int{4, 8}, 20 * time.Second, 45 * time.Second},
	{Medium, 3, []int{8}, 40 * time.Second, 80 * time.Second},
	{Large, 8, []int{16}, 60 * time.Second, 120 * time.Second},
}

// designUtilisation is where the latency SLO of a pod size sits: more cores share their queue better.
func designUtilisation(cores int) float64 {
	switch {
	case cores <= 4:
		return 0.75
	case cores <= 8:
		return 0.80
	}
	return 0.85
}

// utilisationSLO is the SLO of services that export no requests.
const utilisationSLO = 0.85

// Service is one online service: what it asks for, what a request costs, and what it promises.
type Service struct {
	// Name is the workload's, unique in the fleet.
	Name fleet.Name
	// Source is where its load comes from.
	Source traces.Source
	Size   Size
	// Station is what a replica can do and what the service promises.
	measure.Station
	// Request is all that one pod asks for.
	Request fleet.Resources
	// HTTP says whether the service exports requests and latencies. One that does not has a load in cores (one request is one core for
	// one second) and a utilisation SLO.
	HTTP bool
	// Capacity is the rate (requests per second) that one ready replica carries at the SLO.
	Capacity float64
	// Scale is the rate that 1 in Source.Load stands for.
	Scale float64
	// Static are the replicas of static provisioning: ⌈peak of the last week × 1.2 / Capacity⌉.
	Static int
	// StartUp is the median time from a pod's binding to its being ready.
	StartUp time.Duration

	seed uint64
}

// ID is "namespace/name".
func (s *Service) ID() fleet.ServiceID { return fleet.ServiceID(s.Name.String()) }

// promise draws what the service promises and derives the cost of a request from it. A latency limit is one of OpenTelemetry's bucket
// bounds, so that a histogram can tell on which side of it a request was; the cost is such that the limit is met up to the design
// utilisation of the pod's size.
func (s *Service) promise(r *rand.Rand) {
	if !s.HTTP {
		s.CPUSeconds = 1
		s.SLO = fleet.Levels(fleet.CPU(utilisationSLO))
		s.Capacity = (utilisationSLO - idleShare) * float64(s.Cores)
		return
	}
	limits := []time.Duration{100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond}
	s.SLO = fleet.Levels(fleet.Latency(0.99, limits[r.IntN(len(limits))]))
	u := designUtilisation(s.Cores)
	s.CPUSeconds = s.SLO.LatencyLimit().Seconds() / measure.Quantile(s.Cores, u, s.SLO.LatencyQuantile())
	s.Capacity = u * float64(s.Cores) / s.CPUSeconds
}

// StartUpOf is the time from binding to ready of one pod: lognormal around the service's median, with σ = 0.3 (the slowest of a hundred
// takes twice the median), the same for the same pod in every run.
func (s *Service) StartUpOf(pod string) time.Duration {
	z := rand.New(rand.NewPCG(s.seed, replay.Seed("start-up", s.Name.String(), pod))).NormFloat64()
	return time.Duration(float64(s.StartUp) * math.Exp(0.3*clip(z, 3.5)))
}

// StartingCores are the cores that one starting pod uses. They are no load, and a scaler that takes them for load scales on its own doing.
func (s *Service) StartingCores() float64 { return startShare * float64(s.Cores) }

// rate is the true load in the step that holds at, given the source's load in its minute.
func (s *Service) rate(load float64, at time.Time) float64 {
	return load * s.Scale * math.Exp(jitter*normal(s.seed^uint64(at.Unix()/int64(Step/time.Second))))
}

func clip(z, limit float64) float64 { return max(-limit, min(limit, z)) }

// normal is a standard normal number made of a seed alone: cheap, and the same whatever was drawn before. It is the sum of twelve uniform
// numbers less six (σ = 1, tails cut at ±6).
func normal(seed uint64) float64 {
	sum := -6.0
	for range 12 {
		seed = mix(seed)
		sum += float64(seed>>11) / (1 << 53)
	}
	return sum
}

// mix is the step of SplitMix64 (Steele, Lea, Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}
