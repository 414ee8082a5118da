package promql

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
)

// workload names what a recorded series is of.
type workload struct{ namespace, kind, name string }

func workloadOf(m model.Metric) workload {
	return workload{string(m["namespace"]), string(m["workload_kind"]), string(m["workload"])}
}

func targetOf(s *fleet.Service) workload {
	return workload{s.Target.Namespace, s.TargetKind, s.Target.Name}
}

func podOf(m model.Metric) fleet.Name {
	return fleet.Name{Namespace: string(m["namespace"]), Name: string(m["pod"])}
}

func namespacesOf(services []fleet.Service) []string {
	var names []string
	for i := range services {
		names = append(names, services[i].Target.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// shareKey names a total: of a service's requests, or of its CPU.
type shareKey struct {
	service fleet.ServiceID
	signal  portrait.Signal
}

// sample is a value with the time it was scraped at.
type sample struct {
	value float64
	at    time.Time
}

type latencyKey struct {
	workload workload
	quantile float64
}

// metricKey names a tenant's metric. The expression is part of it: a sample of an edited query says nothing about the new one.
type metricKey struct {
	service      fleet.ServiceID
	metric, expr string
}

// index holds the newest samples. An entry that is not seen again keeps its value and its old time until it is forgotten: "unknown since
// three minutes" is worth more to a decision than "unknown".
type index struct {
	filled   bool
	cpu      map[fleet.Name]sample // cores
	load     map[fleet.Name]sample // requests per second
	latency  map[latencyKey]sample // seconds
	tenant   map[metricKey]sample
	problems map[metricKey]problem
	// causes say why live samples of a service's own pods are missing.
	causes map[fleet.ServiceID]loop.DataProblem
	// strange are pods with a sample that is no number that a load can have, and what it was.
	strange map[fleet.Name]model.SampleValue
	// shares are what pods that were never measured are taken to carry, by service and signal.
	shares map[shareKey]share
	// refused are the services for which the last questions got no answer, though others did.
	refused map[fleet.ServiceID]error
}

// forgetAfter is when a sample that was not renewed leaves the index. Nothing that decides looks back further.
const forgetAfter = 30 * time.Minute

func newIndex() *index {
	return &index{
		cpu: map[fleet.Name]sample{}, load: map[fleet.Name]sample{}, latency: map[latencyKey]sample{},
		tenant: map[metricKey]sample{}, problems: map[metricKey]problem{}, causes: map[fleet.ServiceID]loop.DataProblem{}, strange: map[fleet.Name]model.SampleValue{}, shares: map[shareKey]share{},
	}
}

// forget drops what is too old, and, after the clock was set back, what lies in the future.
func (x *index) forget(now time.Time) {
	forgetOld(x.cpu, now)
	forgetOld(x.load, now)
	forgetOld(x.latency, now)
	forgetOld(x.tenant, now)
	for k, s := range x.shares {
		if now.Sub(s.at) > forgetAfter || s.at.After(now) {
			delete(x.shares, k)
		}
	}
}

func forgetOld[K comparable](m map[K]sample, now time.Time) {
	for k, s := range m {
		if now.Sub(s.at) > forgetAfter || s.at.After(now) {
			delete(m, k)
		}
	}
}

// put stores by pod what two queries told: the values, and when their series were scraped. A value without a time is left out: its age
// would be a guess.
func (x *index) put(into map[fleet.Name]sample, values, scraped model.Vector) {
	at := make(map[fleet.Name]time.Time, len(scraped))
	for _, s := range scraped {
		if f, ok := finite(s.Value); ok {
			at[podOf(s.Metric)] = fromSeconds(f)
		}
	}
	for _, s := range values {
		pod := podOf(s.Metric)
		f, ok := finite(s.Value)
		t, scraped := at[pod]
		switch {
		case !ok || f < 0:
			x.strange[pod] = s.Value
		case scraped && pod.Name != "":
			into[pod] = sample{value: f, at: t}
		}
	}
}

// fromSeconds brings a Unix time with fractions into a time, to the millisecond that Prometheus keeps.
func fromSeconds(s float64) time.Time { return time.UnixMilli(int64(math.Round(s * 1000))).UTC() }

// The bounds of a total over a service's pods.
const (
	// missingAfter is the age from which a pod's sample counts as missing, where the window of its rate is no longer: eight scrapes of 15 s.
	missingAfter = 2 * time.Minute
	// youngFor is how long after Ready a pod without samples is taken to carry nothing: a rate needs two scrapes and the first request,
	// so it is longer where the window of the rate is, and until then the load that the pod took over still stands in the rates of the others.
	youngFor = 2 * time.Minute
)

// share is what is taken to be carried by pods that were never measured: the total at the last look, and their part as a multiple of what is measured.
type share struct {
	total, part float64
	at          time.Time
}

// total sums the samples of a service's pods. A ready pod that was measured once and has no fresh sample is imputed at the largest value known of any
// pod, the bias being towards more replicas. Where fewer than half of the pods have fresh samples the total is what the old ones say, at the age of
// the oldest, and so is fresh to nobody; with nothing old to stand on it is unknown. countUnready says whether pods that are not ready
// count: requests reach them until they are gone, but their CPU is start-up and no load.
//
// Pods that were never measured took what they carry from the others: they carry what these lost since the last look, at most as much each as the busiest one, and their
// part follows what is measured from then on. So a pod that is added adds no load: otherwise each replica that nothing scrapes, or that gets no requests, asks for the next.
// Where there was no last look, they carry the most.
//
// window is the window of the rates: a sample is as old as that when a rate over it is still made of two.
func total(s *fleet.Service, samples map[fleet.Name]sample, last share, window time.Duration, now time.Time, countUnready bool) (fleet.Known[float64], share) {
	var pods, missing, fresh int
	var freshSum, oldSum, largest float64
	var freshAt, oldAt time.Time
	for i := range s.Pods {
		p := &s.Pods[i]
		v, ok := samples[p.Name]
		isFresh := ok && now.Sub(v.at) <= max(missingAfter, window) && (p.Ready || countUnready)
		if !isFresh && !mustReport(p, max(youngFor, window), now) {
			continue
		}
		pods++
		largest = max(largest, v.value)
		switch {
		case isFresh:
			fresh++
			freshSum += v.value
			freshAt = earlier(freshAt, v.at)
		case ok:
			oldSum += v.value
			oldAt = earlier(oldAt, v.at)
		default:
			missing++
		}
	}
	switch {
	case fresh > 0 && 2*fresh >= pods:
		measured, part := freshSum+float64(pods-fresh-missing)*largest, 0.0
		if measured > 0 {
			part = float64(missing) * largest / measured
			if !last.at.IsZero() {
				part = min(part, max(last.part, last.total/measured-1))
			}
		}
		sum := measured * (1 + part)
		return finiteAt(sum, freshAt), share{sum, part, now}
	case !oldAt.IsZero():
		return finiteAt(freshSum+oldSum+float64(missing)*largest, oldAt), last
	}
	return fleet.Known[float64]{}, last
}

// finiteAt is a total that is a number: sums of forged samples may be none.
func finiteAt(v float64, at time.Time) fleet.Known[float64] {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return fleet.Known[float64]{}
	}
	return fleet.KnownAt(v, at)
}

// mustReport reports whether a pod carries load that ought to have been measured by now.
func mustReport(p *fleet.Pod, young time.Duration, now time.Time) bool {
	return p.Ready && !p.Deleting && !(p.ReadySince.OK && now.Sub(p.ReadySince.Value) < young)
}

// earlier is the earlier of two times, where the zero time stands for none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
