package run

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// stuckAfter is how long a leader may pass no step before it counts as stuck: five times the bound on the actions of a plan.
const stuckAfter = 5 * time.Minute

// health is the answer to the probes. The process is ready when it has read the cluster once, leader or not, so that a standby is no failure. It is
// alive unless it leads and is stuck.
type health struct {
	ready atomic.Bool
	// now is the wall clock.
	now func() time.Time
	// asks the API server for a sign of life. A leader that waits for an API server that is down is not stuck: a restart would not help it.
	asks func(ctx context.Context) error

	mu      sync.Mutex // guards what follows
	leads   bool
	stepped time.Time
}

func newHealth(now func() time.Time, asks func(ctx context.Context) error) *health {
	return &health{now: now, asks: asks}
}

func (h *health) setReady() { h.ready.Store(true) }

// lead says whether this process leads from now on. The time of its steps begins with the lead.
func (h *health) lead(leads bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leads, h.stepped = leads, h.now()
}

// leading reports whether this process leads.
func (h *health) leading() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leads
}

// step notes that the leader passed a step.
func (h *health) step() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stepped = h.now()
}

// alive reports why the process should be restarted, or nil.
func (h *health) alive(ctx context.Context) error {
	h.mu.Lock()
	still := h.now().Sub(h.stepped)
	leads := h.leads
	h.mu.Unlock()
	answers := func() bool { return h.asks(ctx) == nil }
	if !leads || still < stuckAfter || !answers() {
		return nil
	}
	return fmt.Errorf("the leader passed no step for %s while the API server answers", still.Truncate(time.Second))
}

// newMux serves /metrics, /healthz, /readyz and, when asked for, /debug/pprof.
func newMux(g prometheus.Gatherer, h *health, profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := h.alive(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !h.ready.Load() {
			http.Error(w, "the cluster has not been read yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	if profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

func listen(addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", addr, err)
	}
	return ln, nil
}
