package promql

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
)

// The loop asks for both by these interfaces.
var (
	_ loop.Metered  = (*History)(nil)
	_ loop.Doubtful = (*History)(nil)
	_ loop.Levelled = (*History)(nil)

	_ loop.MinuteHistory = (*History)(nil)
)

// Cost is what asking took.
type Cost struct {
	// Queries counts HTTP requests, Bytes the bytes of their answers after decompression.
	Queries, Bytes int64
	// TenantQueries are those of Queries that tenants asked for.
	TenantQueries int64
}

// Problem is a tenant's query that yields no value.
type Problem struct {
	Service fleet.ServiceID
	Metric  string
	Cause   loop.Cause
	Message string
	// Level says that Metric is a level of the SLO.
	Level bool
}

// named is what the problem is of, as its owner names it.
func (p *Problem) named() string {
	kind := "metric"
	if p.Level {
		kind = "level"
	}
	return kind + " " + strconv.Quote(p.Metric)
}

// text is the problem under the name of what it is of.
func (p *Problem) text() string {
	return metricKey{metric: p.Metric, level: p.Level}.String() + ": " + p.Message
}

// Stats says what the source costs and how it is.
type Stats struct {
	// Cycle is the cost since the last [History.Prefetch] began; Last that of the cycle before; Total everything.
	Cycle, Last, Total Cost
	// Errors counts failed queries.
	Errors int64
	// Recorded says whether the recording rules were found.
	Recorded bool
	// CPUInterval and LoadInterval are how often the sources of live rates are sampled, lost scrapes included; 0 while unknown.
	CPUInterval, LoadInterval time.Duration
	// Problems are the tenants' queries without a value, sorted by service and metric.
	Problems []Problem
}

// Stats returns the counters.
func (h *History) Stats() Stats {
	h.meter.mu.Lock()
	s := Stats{Cycle: h.meter.cycle, Last: h.meter.last, Total: h.meter.total, Errors: h.meter.errors}
	h.meter.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Recorded = h.recorded[recordedOwner] > 0
	s.CPUInterval, s.LoadInterval = h.cadence.cpu.every, h.cadence.load.every
	for k, p := range h.index.problems {
		s.Problems = append(s.Problems, Problem{Service: k.service, Metric: k.metric, Cause: p.Cause, Message: p.Message,
			Level: k.level})
	}
	slices.SortFunc(s.Problems, func(a, b Problem) int {
		if c := strings.Compare(string(a.Service), string(b.Service)); c != 0 {
			return c
		}
		return strings.Compare(a.Metric, b.Metric)
	})
	return s
}

const refusedText = "the metrics source cannot answer for this namespace, though it answers for others; to fix: look for an exporter here with too many series; " +
	"the controller's log has the error"

// QueryProblems implements loop.Doubtful: why the source cannot answer for a service at all while it answers for
// others, and why the service's own queries yield no value. The first cause is the reason; the message names all.
func (h *History) QueryProblems() map[fleet.ServiceID]loop.DataProblem {
	out := map[fleet.ServiceID]loop.DataProblem{}
	h.mu.Lock()
	for id := range h.index.refused {
		out[id] = loop.DataProblem{Cause: loop.CauseNamespaceRefused, Message: refusedText} // tenants read it: addresses and errors of the source are the operators'
	}
	h.mu.Unlock()
	for _, p := range h.Stats().Problems {
		text := p.text()
		before, ok := out[p.Service]
		if ok {
			text = before.Message + "; " + text
		}
		out[p.Service] = loop.DataProblem{Cause: cmp.Or(before.Cause, p.Cause), Message: text}
	}
	return out
}

// Cost returns the queries and bytes since the last Prefetch began: what one cycle costs, for its line in the log.
func (h *History) Cost() (queries, bytes int64) {
	h.meter.mu.Lock()
	defer h.meter.mu.Unlock()
	return h.meter.cycle.Queries, h.meter.cycle.Bytes
}

// errTooLarge says that a response was cut off; a range query is then asked in halves.
var errTooLarge = errors.New("response too large")

// meter counts requests and bytes, and cuts off responses that are too large to hold.
type meter struct {
	next     http.RoundTripper
	maxBytes int64

	mu                 sync.Mutex
	cycle, last, total Cost
	errors             int64
}

// RoundTrip implements [http.RoundTripper].
func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	m.add(Cost{Queries: 1})
	resp, err := m.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &meteredBody{ReadCloser: resp.Body, meter: m, left: m.maxBytes}
	return resp, nil
}

func (m *meter) add(c Cost) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range []*Cost{&m.cycle, &m.total} {
		t.Queries += c.Queries
		t.Bytes += c.Bytes
		t.TenantQueries += c.TenantQueries
	}
}

func (m *meter) failed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.errors++
}

// turn begins a new cycle.
func (m *meter) turn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.cycle = m.cycle, Cost{}
}

type meteredBody struct {
	io.ReadCloser
	meter *meter
	left  int64
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.meter.add(Cost{Bytes: int64(n)})
	if b.left -= int64(n); b.left < 0 {
		return n, fmt.Errorf("%w: more than %d bytes", errTooLarge, b.meter.maxBytes)
	}
	return n, err
}
