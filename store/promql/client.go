package promql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/api"
	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/redact"
)

// History reads services' history and live samples. It is safe for concurrent use.
type History struct {
	// name is the address without credentials, for messages.
	name  string
	o     Options
	own   *narrower
	api   apiv1.API
	http  *http.Client
	meter *meter
	// down is set when the source could not be reached: the next call asks one cheap question first, so that a dead source costs a cycle
	// one short wait and not one timeout for each query.
	down atomic.Bool
	// heavy are the namespaces that are asked alone, manySeries is from how many series on.
	heavy      heavy
	manySeries int
	// prefetching and reading keep calls of one kind from piling up behind a slow source.
	prefetching, reading sync.Mutex

	mu       sync.Mutex
	index    *index
	lastErr  error          // of the last Prefetch
	recorded map[string]int // recorded series found, with their number
	probed   time.Time
	cadence  cadence
	// nextTenant and nextMeasure are where the rounds of services' own sources and of measures go on.
	nextTenant, nextMeasure, nextOwn int
	// loadFailed is when queries of loads failed last.
	loadFailed map[metricKey]time.Time
}

// New returns a reader of the given source. It asks nothing yet.
func New(o Options) (*History, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	own, err := o.Cluster.narrower()
	if err != nil {
		return nil, err
	}
	rt, err := config.NewRoundTripperFromConfig(o.HTTP, "springtide-history")
	if err != nil {
		return nil, fmt.Errorf("prometheus HTTP settings: %w", err)
	}
	m := &meter{next: rt, maxBytes: o.MaxBytes}
	hc := &http.Client{Transport: m}
	client, err := api.NewClient(api.Config{Address: o.Address, Client: hc})
	if err != nil {
		return nil, fmt.Errorf("prometheus address %q: %w", redact.URL(o.Address), withoutURL(err))
	}
	return &History{o: o, own: own, name: redact.URL(o.Address), manySeries: manySeries, api: apiv1.NewAPI(vectorClient{client}), http: hc, meter: m, index: newIndex()}, nil
}

// Close drops idle connections.
func (h *History) Close() { h.http.CloseIdleConnections() }

// instant asks for a vector at a time, of this cluster. what names the query in errors.
func (h *History) instant(ctx context.Context, what, expr string, at time.Time) (model.Vector, error) {
	expr, err := h.own.query(expr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return h.anyCluster(ctx, what, expr, at)
}

// anyCluster asks for a vector of all that the source holds.
func (h *History) anyCluster(ctx context.Context, what, expr string, at time.Time) (model.Vector, error) {
	ctx, cancel := context.WithTimeout(ctx, h.o.Timeout)
	defer cancel()
	var read model.Vector
	v, warnings, _, err := h.api.Query(context.WithValue(ctx, vectorKey{}, &read), expr, at)
	if err := h.outcome(what, warnings, err); err != nil {
		return nil, err
	}
	if read != nil {
		return read, nil
	}
	vec, ok := v.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("prometheus %s: %s: the answer is a %s, want a vector", h.name, what, v.Type())
	}
	return vec, nil
}

// matrix asks for a range, of this cluster.
func (h *History) matrix(ctx context.Context, what, expr string, r apiv1.Range) (model.Matrix, error) {
	expr, err := h.own.query(expr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	ctx, cancel := context.WithTimeout(ctx, h.o.HistoryTimeout)
	defer cancel()
	v, warnings, _, err := h.api.QueryRange(ctx, expr, r)
	if err := h.outcome(what, warnings, err); err != nil {
		return nil, err
	}
	m, ok := v.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("prometheus %s: %s: the answer is a %s, want a matrix", h.name, what, v.Type())
	}
	return m, nil
}

// outcome judges one answer. Warnings of the engine ("PromQL ...") concern the expression; any other means that a federated source
// answered in part, and a missing part would read as a fall of the load, so it counts as a failure.
func (h *History) outcome(what string, warnings apiv1.Warnings, err error) error {
	if err == nil {
		h.down.Store(false)
		for _, w := range warnings {
			if !strings.HasPrefix(w, "PromQL ") {
				err = fmt.Errorf("partial answer: %s", w)
				break
			}
		}
		if err == nil {
			return nil
		}
	} else if unreachable(err) {
		h.down.Store(true)
		err = noAnswer{withoutURL(err)}
	}
	h.meter.failed()
	return fmt.Errorf("prometheus %s: %s: %w", h.name, what, withoutURL(err))
}

// noAnswer is the error of a question that the source did not answer. Questions are asked side by side: whether the
// source is down now says nothing of one of them.
type noAnswer struct{ error }

func (e noAnswer) Unwrap() error { return e.error }

// answered reports whether the source answered a question, if only with an error.
func answered(err error) bool {
	var e noAnswer
	return !errors.As(err, &e)
}

// withoutURL takes the address out of an error of the HTTP client: it may hold credentials, and the source is named without them.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// unreachable distinguishes a source that does not answer from one that answers with an error.
func unreachable(err error) bool {
	var e *apiv1.Error
	if errors.As(err, &e) {
		return e.Type == apiv1.ErrServer
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, errTooLarge)
}

// tooMuch reports an error that a smaller question might not meet.
func tooMuch(err error) bool {
	var e *apiv1.Error
	if errors.As(err, &e) {
		return e.Type == apiv1.ErrExec || e.Type == apiv1.ErrTimeout
	}
	return errors.Is(err, errTooLarge)
}

// pingTimeout is how long a source that was down may take to show life.
const pingTimeout = 2 * time.Second

// reachable asks a source that was down for a sign of life.
func (h *History) reachable(ctx context.Context, now time.Time) error {
	if !h.down.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err := h.instant(ctx, "sign of life", "vector(1)", now)
	return err
}

// probeEvery is how often the recorded series are looked for: rules may be installed or dropped at any time.
const probeEvery = 5 * time.Minute

// probeSoon is how often they are looked for while a source's interval is unknown.
const probeSoon = time.Minute

// probe finds out which recorded series exist and how many there are, and how often the sources are scraped.
func (h *History) probe(ctx context.Context, services []fleet.Service, now time.Time) error {
	h.mu.Lock()
	every := probeEvery
	if h.cadence.cpu.every == 0 {
		every = probeSoon
	}
	due := h.recorded == nil || now.Sub(h.probed) >= every || now.Before(h.probed)
	h.mu.Unlock()
	if !due {
		return nil
	}
	v, err := h.instant(ctx, "probe of recorded series", `count by (__name__) ({__name__=~"`+recordedPrefix+`.+"})`, now)
	if err != nil {
		return err
	}
	found := make(map[string]int, len(v))
	for _, s := range v {
		found[string(s.Metric[model.MetricNameLabel])] = int(s.Value)
	}
	if err := h.weigh(ctx, now); err != nil {
		return err
	}
	// Too many series of one namespace hide no interval of the others: a value that is unknown now stays as it was.
	if err := h.learnIntervals(ctx, namespacesOf(services), now); err != nil && !ofTheQuestion(err) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorded, h.probed = found, now
	return nil
}

// weigh finds the namespaces with so many series that each is asked alone. Without an answer they stay as they are.
func (h *History) weigh(ctx context.Context, now time.Time) error {
	v, err := h.instant(ctx, "series by namespace", fmt.Sprintf(`topk(%d, count by (namespace) ({__name__=~"container_cpu_usage_seconds_total|http_server_request_duration_seconds_(count|bucket)", `+
		`namespace!=""}) > %d)`, mostHeavy, h.manySeries), now)
	if err != nil {
		if ofTheQuestion(err) || errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		return err
	}
	var names []string
	for _, s := range v {
		names = append(names, string(s.Metric["namespace"]))
	}
	h.heavy.set(names)
	return nil
}

// has reports how many series of a recorded name the last probe found.
func (h *History) has(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.recorded[name]
}

// finite returns the value of a sample, and whether it is a number. NaN and ±Inf come from divisions by zero and empty histograms.
func finite(v model.SampleValue) (float64, bool) {
	f := float64(v)
	return f, !math.IsNaN(f) && !math.IsInf(f, 0)
}
