package run

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/springtide/springtide/internal/serve/probe"
)

// A leader that passes no step for five minutes while the API server answers is restarted; a standby, and a leader without an API server, never.
func TestLiveness(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	var down error
	h := newHealth(func() time.Time { return now }, func(context.Context) error { return down })
	mux := (&probe.Options{Gatherer: prometheus.NewRegistry(), Alive: h.alive, Ready: h.prepared}).Plain()
	is := func(when string, want int) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", http.NoBody))
		if w.Code != want {
			t.Errorf("%s: /healthz answers %d, want %d: %s", when, w.Code, want, w.Body)
		}
	}
	is("at the start", http.StatusOK)
	now = now.Add(time.Hour)
	is("a standby of an hour", http.StatusOK)
	h.lead(true)
	is("a new leader", http.StatusOK)
	now = now.Add(stuckAfter - time.Second)
	is("just before", http.StatusOK)
	h.step()
	now = now.Add(stuckAfter - time.Second)
	is("a step was passed", http.StatusOK)
	now = now.Add(time.Second)
	is("stuck", http.StatusServiceUnavailable)
	down = errors.New("connection refused")
	is("the API server is down", http.StatusOK)
	down = nil
	h.step()
	is("it goes on", http.StatusOK)
	now = now.Add(stuckAfter)
	h.lead(false)
	is("it leads no more", http.StatusOK)
}
