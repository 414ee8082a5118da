package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/springtide/springtide/agent/host"
)

// serve answers probes and metrics until ctx ends; the function that it returns waits for its end.
func serve(ctx context.Context, address string, registry *prometheus.Registry, a *host.Agent, log *slog.Logger) func() error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	answer := func(check func(time.Time) error) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if err := check(time.Now()); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write([]byte("ok\n"))
		}
	}
	mux.HandleFunc("/healthz", answer(a.Alive))
	mux.HandleFunc("/readyz", answer(a.Ready))
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() {
		err := server.ListenAndServe()
		if err != nil && !errors.Is(err, http.ErrServerClosed) {
			// Pods are confined all the same; the probes say that nothing answers.
			log.Error("metrics and probes are not served", "address", address, "err", err)
		}
		failed <- err
	}()
	return func() error {
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		err := server.Shutdown(stop)
		<-failed
		return err
	}
}
