package model

import (
	"math"
	"time"

	"github.com/springtide/springtide/series"
)

// Recorded is one recorded series of a service's past, as the shipped recording rules would have written it.
type Recorded struct {
	Labels []Label
	Series series.Series
}

// The names of the recorded series; they are the product's (deploy/rules), and a test of the lab reads them back through it.
const (
	recordedCPU   = "springtide:workload_cpu_usage_cores:sum"
	recordedLoad  = "springtide:workload_http_requests:rate2m"
	recordedReady = "springtide:workload_ready_replicas:sum"
	recordedP99   = "springtide:workload_latency_seconds:p99"
)

// History plays the service's past at its static replicas and returns what the recording rules would have kept of it,
// in steps of one minute. A value stamped t depends on the two minutes before t alone, as a rate over two minutes does,
// so nothing after until is in it.
//
// One minute is one step here, without jitter within it (a run takes 15 s): the past is only looked at through rates over two minutes. A minute without a known
// load leaves a gap, and the queue waits.
func (s *Service) History(until time.Time) []Recorded {
	load := s.Source.Load
	n := max(0, min(load.Len(), load.Index(until)))
	begin := load.Start.Add(load.Step)
	cpu, rate := series.New(begin, load.Step, n), series.New(begin, load.Step, n)
	ready, p99 := series.New(begin, load.Step, n), series.New(begin, load.Step, n)
	var q Queue
	var before minuteSums
	for i := range n {
		if math.IsNaN(load.Values[i]) {
			before = minuteSums{}
			continue
		}
		o := s.Step(&q, load.Values[i]*s.Scale, s.Static, load.Step)
		now := minuteSums{known: 1, cpu: o.UsedCores(), served: o.Served, latencies: o.Latencies()}
		both := now.plus(&before)
		cpu.Values[i] = both.cpu / both.known
		rate.Values[i] = both.served / both.known
		ready.Values[i] = float64(s.Static)
		p99.Values[i] = both.latencies.Quantile(0.99)
		before = now
	}
	out := []Recorded{s.recorded(recordedCPU, cpu), s.recorded(recordedReady, ready)}
	if s.HTTP {
		out = append(out, s.recorded(recordedLoad, rate), s.recorded(recordedP99, p99))
	}
	return out
}

func (s *Service) recorded(name string, values series.Series) Recorded {
	return Recorded{
		Labels: []Label{{"__name__", name}, {"namespace", s.Name.Namespace}, {"workload", s.Name.Name}, {"workload_kind", "Deployment"}},
		Series: values,
	}
}

// minuteSums are what a rate over two minutes adds up.
type minuteSums struct {
	known, cpu, served float64
	latencies          Latencies
}

func (m minuteSums) plus(o *minuteSums) minuteSums {
	for i := range m.latencies.UpTo {
		m.latencies.UpTo[i] = m.latencies.UpTo[i]*m.served + o.latencies.UpTo[i]*o.served
	}
	m.latencies.Mean = m.latencies.Mean*m.served + o.latencies.Mean*o.served
	m.known, m.cpu, m.served = m.known+o.known, m.cpu+o.cpu, m.served+o.served
	if m.served > 0 {
		for i := range m.latencies.UpTo {
			m.latencies.UpTo[i] /= m.served
		}
		m.latencies.Mean /= m.served
	}
	return m
}
