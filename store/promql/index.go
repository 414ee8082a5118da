package promql

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
)

// workload names what a recorded series is of.
type workload struct{ namespace, kind, name string }

func workloadOf(m model.Metric) workload {
	return workload{string(m["namespace"]), string(m["workload_kind"]), string(m["workload"])}
}

func targetOf(s *fleet.Service) workload {
	as := s.MeasuredAs()
	return workload{s.Target.Namespace, as.Kind, as.Name}
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

// sample is a value with the time it was scraped at.
type sample = fleet.Known[float64]

// metricKey names a metric that a service measures by a source of its own. The expression is part of it: a sample of an
// edited query says nothing about the new one.
type metricKey struct {
	service      fleet.ServiceID
	metric, expr string
	// level says that the metric is a level of the SLO, of that name.
	level bool
}

// String names the metric as its owner does.
func (k metricKey) String() string {
	if k.level {
		return "level " + k.metric
	}
	return "metric " + k.metric
}

// index holds the newest samples. An entry that is not seen again keeps its value and its old time until it is forgotten: "unknown since
// three minutes" is worth more to a decision than "unknown".
type index struct {
	filled   bool
	cpu      byPod[sample] // cores
	load     byPod[sample] // requests per second
	levels   map[measure]map[workload]sample
	tenant   map[metricKey]sample
	problems map[metricKey]problem
	// unsound are pods with a sample that is no number that a load can have, and what it was.
	unsound byPod[float64]
	// refused are the services for which the last questions got no answer, though others did.
	refused map[fleet.ServiceID]error
	// lacking are the levels that nothing measures; fits are the presets whose series there are of their services, as of
	// fitted.
	lacking map[fleet.ServiceID][]loop.LevelProblem
	fits    map[fleet.ServiceID][]Fit
	fitted  time.Time
}

// byPod are values by pod. They are handed out as they are and copied before the next change: that is once a cycle,
// while the cycle plans.
type byPod[V any] struct {
	values map[fleet.Name]V
	out    bool // the map was handed out
}

// handOut gives the values to readers.
func (b *byPod[V]) handOut() map[fleet.Name]V {
	b.out = true
	return b.values
}

// own gives the values to be changed.
func (b *byPod[V]) own() map[fleet.Name]V {
	if b.out {
		b.values, b.out = maps.Clone(b.values), false
	}
	if b.values == nil {
		b.values = map[fleet.Name]V{}
	}
	return b.values
}

// forgetAfter is when a sample that was not renewed leaves the index. Nothing that decides looks back further.
const forgetAfter = 30 * time.Minute

func newIndex() *index {
	return &index{levels: map[measure]map[workload]sample{}, tenant: map[metricKey]sample{},
		problems: map[metricKey]problem{}}
}

// forget drops what is too old, and, after the clock was set back, what lies in the future.
func (x *index) forget(now time.Time) {
	forgetOld(x.cpu.own(), now)
	forgetOld(x.load.own(), now)
	for _, of := range x.levels {
		forgetOld(of, now)
	}
	forgetOld(x.tenant, now)
}

func forgetOld[K comparable](m map[K]sample, now time.Time) {
	for k, s := range m {
		if now.Sub(s.At) > forgetAfter || s.At.After(now) {
			delete(m, k)
		}
	}
}

// put stores by pod what two queries told: the values, and when their series were scraped. A value without a time is left out: its age
// would be a guess.
func (x *index) put(into *byPod[sample], values, scraped model.Vector) {
	at := make(map[fleet.Name]time.Time, len(scraped))
	for _, s := range scraped {
		if f, ok := finite(s.Value); ok {
			at[podOf(s.Metric)] = fromSeconds(f)
		}
	}
	samples := into.own()
	for _, s := range values {
		pod := podOf(s.Metric)
		f, ok := finite(s.Value)
		t, scraped := at[pod]
		switch {
		case !ok || f < 0:
			x.unsound.own()[pod] = float64(s.Value)
		case scraped && pod.Name != "":
			samples[pod] = fleet.KnownAt(f, t)
		}
	}
}

// fromSeconds brings a Unix time with fractions into a time, to the millisecond that Prometheus keeps.
func fromSeconds(s float64) time.Time { return time.UnixMilli(int64(math.Round(s * 1000))).UTC() }
