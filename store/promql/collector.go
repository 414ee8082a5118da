package promql

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	descQueries = prometheus.NewDesc("springtide_history_queries_total",
		"Queries sent to the metrics source.", nil, nil)
	descTenantQueries = prometheus.NewDesc("springtide_history_tenant_queries_total",
		"Queries sent to the metrics source for the services' own metrics.", nil, nil)
	descBytes = prometheus.NewDesc("springtide_history_response_bytes_total",
		"Bytes of the answers, after decompression.", nil, nil)
	descErrors = prometheus.NewDesc("springtide_history_query_errors_total",
		"Queries that failed.", nil, nil)
	descProblems = prometheus.NewDesc("springtide_history_tenant_query_problems",
		"Services' own queries that yield no value.", nil, nil)
	descRecorded = prometheus.NewDesc("springtide_history_recorded",
		"1 where the recording rules are installed.", nil, nil)
	descInterval = prometheus.NewDesc("springtide_history_scrape_interval_seconds",
		"How far apart the samples of a source are, lost scrapes included; windows of live rates are four times that.", []string{"source"}, nil)
	descCycleQueries = prometheus.NewDesc("springtide_history_cycle_queries",
		"Queries of the last complete cycle.", nil, nil)
	descCycleBytes = prometheus.NewDesc("springtide_history_cycle_response_bytes",
		"Bytes of the answers of the last complete cycle.", nil, nil)
)

// Collector exports [History.Stats].
func (h *History) Collector() prometheus.Collector { return collector{h} }

type collector struct{ h *History }

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descQueries, descTenantQueries, descBytes, descErrors, descProblems, descRecorded, descInterval, descCycleQueries, descCycleBytes} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	s, recorded := c.h.Stats(), 0.0
	if s.Recorded {
		recorded = 1
	}
	counter := func(d *prometheus.Desc, v int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	counter(descQueries, s.Total.Queries)
	counter(descTenantQueries, s.Total.TenantQueries)
	counter(descBytes, s.Total.Bytes)
	counter(descErrors, s.Errors)
	gauge(descProblems, float64(len(s.Problems)))
	gauge(descRecorded, recorded)
	for _, i := range []struct {
		source string
		every  time.Duration
	}{{"cadvisor", s.CPUInterval}, {"requests", s.LoadInterval}} {
		if i.every > 0 {
			ch <- prometheus.MustNewConstMetric(descInterval, prometheus.GaugeValue, i.every.Seconds(), i.source)
		}
	}
	gauge(descCycleQueries, float64(s.Last.Queries))
	gauge(descCycleBytes, float64(s.Last.Bytes))
}
