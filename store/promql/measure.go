package promql

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
)

// quantity is what a measure counts.
type quantity string

const (
	quantityLatency  quantity = "latency"  // a quantile of the response times, in seconds
	quantityErrors   quantity = "errors"   // the share of requests that fail
	quantityRequests quantity = "requests" // a second
	quantityMemory   quantity = "memory"   // a share of the requests
	quantityGPU      quantity = "gpu"      // a share of the time
)

// measure is one thing that one query measures of many workloads: the number of queries follows the measures in use and
// not the services.
type measure struct {
	quantity quantity
	preset   string
	quantile float64
}

func (m measure) String() string {
	switch m.quantity {
	case quantityLatency:
		return fmt.Sprintf("latency quantile %g of %s", m.quantile, m.preset)
	case quantityMemory, quantityGPU:
		return string(m.quantity)
	}
	return fmt.Sprintf("%s of %s", m.quantity, m.preset)
}

// measureOf is the measure of a level; false of one that needs no query of ours: CPU is measured by pod, and a
// histogram or query of the service's own belongs to it alone.
func measureOf(l *fleet.Level) (measure, bool) {
	preset := l.Source.Preset
	switch {
	case l.Name == fleet.LevelNameMemory:
		return measure{quantity: quantityMemory}, true
	case l.Name == fleet.LevelNameGPU:
		return measure{quantity: quantityGPU}, true
	case presetOf(preset) == nil:
		return measure{}, false
	case l.Kind == fleet.LevelLatency && l.Quantile > 0 && l.Quantile < 1:
		return measure{quantityLatency, preset, l.Quantile}, true
	case l.Kind == fleet.LevelErrors:
		return measure{quantity: quantityErrors, preset: preset}, true
	}
	return measure{}, false
}

// loadOf is the measure of a service's requests where a preset counts them as one: that of its first latency, else of
// its errors. The requests of OpenTelemetry's HTTP metric are read by pod for all services.
func loadOf(s *fleet.Service) (measure, bool) {
	for i := range s.SLO.Levels {
		l := &s.SLO.Levels[i]
		m, ok := measureOf(l)
		if ok && m.preset != "" {
			return measure{quantity: quantityRequests, preset: m.preset}, m.preset != fleet.PresetOTel
		}
		if l.Kind == fleet.LevelLatency && !ok {
			break // the histogram or query of the first latency counts no requests
		}
	}
	return measure{}, false
}

// measuresOf are the measures that services need, in order.
func measuresOf(services []fleet.Service) []measure {
	seen := map[measure]bool{}
	for i := range services {
		for k := range services[i].SLO.Levels {
			if m, ok := measureOf(&services[i].SLO.Levels[k]); ok {
				seen[m] = true
			}
		}
		if m, ok := loadOf(&services[i]); ok {
			seen[m] = true
		}
	}
	return inOrder(seen)
}

func inOrder(set map[measure]bool) []measure {
	out := make([]measure, 0, len(set))
	for m := range set {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b measure) int {
		return cmp.Or(cmp.Compare(a.quantity, b.quantity), cmp.Compare(a.preset, b.preset), cmp.Compare(a.quantile,
			b.quantile))
	})
	return out
}

// value and sampled are the expressions of a measure by workload, and of the time of its newest sample.
func (m measure) value(r *reading) string {
	switch m.quantity {
	case quantityLatency:
		return presetOf(m.preset).latency(m.quantile, r)
	case quantityErrors:
		return presetOf(m.preset).errors(r)
	case quantityMemory:
		return memoryShare(r)
	case quantityGPU:
		return gpuShare(r)
	}
	return presetOf(m.preset).requests(r)
}

func (m measure) sampled(r *reading) string {
	switch m.quantity {
	case quantityMemory:
		return memorySampled(r)
	case quantityGPU:
		return gpuSampled(r)
	}
	return presetOf(m.preset).sampled(r)
}

// timed asks for values and for the times of their samples at once: what comes back says by its label which of both it
// is.
func timed(value, sampled string) string {
	return fmt.Sprintf("%s or %s", marked(value, isValue), marked(sampled, isTime))
}

// marked names what an expression is.
func marked(expr, what string) string {
	return fmt.Sprintf(`label_replace(%s, %q, %q, "", "")`, expr, answerIs, what)
}

// answerIs is the label of an answer that says what a sample is.
const (
	answerIs = "springtide_is"
	isValue  = "value"
	isTime   = "time"
)

// measuredOf are the values of an answer by workload, each as old as its newest sample. A series that was scraped in
// another namespace than the workload's does not count. NaN is a quantile of no requests, and left out.
func measuredOf(answer model.Vector) map[workload]sample {
	at := map[workload]time.Time{}
	for _, s := range answer {
		if w, ok := homeOf(s.Metric); ok && s.Metric[answerIs] == isTime {
			at[w] = fromSeconds(float64(s.Value))
		}
	}
	out := make(map[workload]sample, len(at))
	for _, s := range answer {
		w, ok := homeOf(s.Metric)
		f, number := finite(s.Value)
		t, sampled := at[w]
		if ok && s.Metric[answerIs] == isValue && sampled && number && f >= 0 {
			out[w] = fleet.KnownAt(f, t)
		}
	}
	return out
}

// homeOf is the workload that an answer is about; false where another namespace speaks of it.
func homeOf(m model.Metric) (workload, bool) {
	from := m[scrapedIn]
	return workloadOf(m), from == "" || from == m["namespace"]
}

// answers looks a service up in what was measured: by its kind where pods say what they belong to, else by its name
// alone.
func lookUp[V any](s *fleet.Service, of map[workload]V) (V, bool) {
	w := targetOf(s)
	v, ok := of[w]
	if !ok {
		w.kind = ""
		v, ok = of[w]
	}
	return v, ok
}

// ownQuery is one question that belongs to a service alone: a query of it, or its histogram.
type ownQuery struct {
	key       metricKey
	target    workload
	histogram fleet.Histogram
	quantile  float64
}

// ownQueries are the questions of a level that a service measures by itself; of its errors the failed requests and all.
func ownQueries(s *fleet.Service, l *fleet.Level) []ownQuery {
	q := ownQuery{key: metricKey{service: s.ID, metric: l.Name, level: true}, target: targetOf(s)}
	src := &l.Source
	switch {
	case src.Histogram.Name != "":
		q.histogram, q.quantile = src.Histogram, l.Quantile
		q.key.expr = fmt.Sprintf("%g of %+v", l.Quantile, src.Histogram)
		return []ownQuery{q}
	case src.Query != "":
		q.key.expr = src.Query
		return []ownQuery{q}
	case src.Bad != "" && src.Total != "":
		total := q
		q.key.expr, total.key.expr = src.Bad, src.Total
		return []ownQuery{q, total}
	}
	return nil
}

// ownForm is the form of a service's own histogram, whose series have the labels of the scraped pod.
func ownForm(h *fleet.Histogram) (form, error) {
	f := form{histogram: h.Name, unit: h.Unit, place: scrapedPod}
	if h.Matchers != "" {
		f.matchers = []string{h.Matchers}
	}
	if err := f.check(); err != nil {
		return form{}, err
	}
	return f, nil
}

// check refuses a name or matchers that make another selector than one of the named metric.
func (f *form) check() error {
	metric := f.histogram + "_bucket"
	ms, err := tenantParser.ParseMetricSelector(selector(metric, f.matchers))
	if err != nil {
		return fmt.Errorf("the histogram %s is not PromQL: %w", f.histogram, err)
	}
	names := 0
	for _, m := range ms {
		switch {
		case m.Name == model.MetricNameLabel && m.Value == metric:
			names++
		case slices.Contains(keptLabels, m.Name):
			return fmt.Errorf("the histogram %s has the matcher %s, which Springtide sets: remove it", f.histogram, m)
		}
	}
	if names != 1 {
		return fmt.Errorf("the histogram %q: write the metric's name alone", f.histogram)
	}
	return nil
}
