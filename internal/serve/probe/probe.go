// Package probe serves the metrics, probes and profiles of a process: a registry and two questions come in, a running server goes out. The
// controller, the scheduler and the node agent answer with it, so that the same path means the same in all of them.
package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Question reports why the answer to a probe is no, or nil.
type Question func(ctx context.Context) error

// Mux serves /metrics, /healthz, /readyz and, when asked for, /debug/pprof.
func Mux(g prometheus.Gatherer, alive, ready Question, profiles bool) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{}))
	mux.Handle("/healthz", alive)
	mux.Handle("/readyz", ready)
	if profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// ServeHTTP implements http.Handler.
func (q Question) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := q(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// Serve listens at once, so that an address in use is an error at start and not a line in a log.
func Serve(addr string, h http.Handler, log *slog.Logger) (*http.Server, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", addr, err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := s.Serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics and health are no longer served", "err", err)
		}
	}()
	return s, nil
}
