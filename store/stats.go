package store

import "github.com/prometheus/client_golang/prometheus"

// Stats says what waits and what was lost.
type Stats struct {
	// Waiting counts journal records held in memory, Dropped those given up since the start.
	Waiting int
	Dropped int64
	// Aside counts damaged files that were set aside since the start.
	Aside int
}

// Stats returns the counters.
func (s *Store) Stats() Stats {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.health.Lock()
	defer s.health.Unlock()
	return Stats{Waiting: len(s.journal.pending), Dropped: s.journal.dropped, Aside: s.aside}
}

var (
	descUp = prometheus.NewDesc("springtide_store_up",
		"1 while the store takes what it is given.", nil, nil)
	descWaiting = prometheus.NewDesc("springtide_store_waiting_records",
		"Journal records held in memory until the store is back.", nil, nil)
	descAside = prometheus.NewDesc("springtide_store_set_aside_total",
		"Damaged files of the embedded store that were set aside.", nil, nil)
	descDropped = prometheus.NewDesc("springtide_store_dropped_records_total",
		"Journal records given up because the store was down for too long.", nil, nil)
)

// Collector exports [Store.Stats] and [Store.Healthy].
func (s *Store) Collector() prometheus.Collector { return collector{s} }

type collector struct{ s *Store }

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descUp, descWaiting, descAside, descDropped} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	st, up := c.s.Stats(), 1.0
	if c.s.Healthy() != nil {
		up = 0
	}
	ch <- prometheus.MustNewConstMetric(descUp, prometheus.GaugeValue, up)
	ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, float64(st.Waiting))
	ch <- prometheus.MustNewConstMetric(descAside, prometheus.CounterValue, float64(st.Aside))
	ch <- prometheus.MustNewConstMetric(descDropped, prometheus.CounterValue, float64(st.Dropped))
}
