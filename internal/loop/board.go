package loop

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// board shows the numbers of one cycle at a time. Gauges that are cleared and filled again would let a scrape that comes in between see half
// of the services; here a scrape sees all numbers of one cycle or all of another. A controller that has not planned yet shows none.
type board struct {
	descs []*prometheus.Desc
	shown atomic.Pointer[page]
}

// page is every number of one cycle. Metrics are made of it by the scrape, so that a cycle pays for the numbers alone.
type page []sample

// sample is one number with the values of its labels, of which there are at most four.
type sample struct {
	desc   *prometheus.Desc
	value  float64
	labels [4]string
	used   int
}

// gauge declares one kind of number.
func (b *board) gauge(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("springtide_"+name, help, labels, nil)
	b.descs = append(b.descs, d)
	return d
}

func (p *page) set(d *prometheus.Desc, value float64, labels ...string) {
	s := sample{desc: d, value: value}
	s.used = copy(s.labels[:], labels)
	*p = append(*p, s)
}

// show puts a page up. It must not be changed afterwards.
func (b *board) show(p page) { b.shown.Store(&p) }

// Describe implements prometheus.Collector.
func (b *board) Describe(out chan<- *prometheus.Desc) {
	for _, d := range b.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (b *board) Collect(out chan<- prometheus.Metric) {
	p := b.shown.Load()
	if p == nil {
		return
	}
	for i := range *p {
		s := &(*p)[i]
		out <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, s.value, s.labels[:s.used]...)
	}
}
