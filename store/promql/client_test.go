package promql

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/config"

	"github.com/springtide/springtide/fleet"
)

func TestNewRefuses(t *testing.T) {
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{}, "want a URL"},
		{Options{Address: "prometheus:9090"}, "want a URL"},
		{Options{Address: "ftp://prometheus"}, "want a URL"},
		{Options{Address: "http://p", Step: time.Second}, "at least 1m"},
		{Options{Address: "http://p", NamespaceLabel: "a b"}, "want a label name"},
		{Options{Address: "http://p", HTTP: config.HTTPClientConfig{BearerToken: "x", BearerTokenFile: "y"}}, "HTTP settings"},
		{Options{Address: "http://p", HTTP: config.HTTPClientConfig{TLSConfig: config.TLSConfig{CAFile: "/no/such/file"}}}, "/no/such/file"},
	} {
		if _, err := New(tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("New(%+v): %v, want an error with %q", tc.o, err, tc.want)
		}
	}
}

// TestAuthorised: TLS with a private authority, and a token that is read from a file again, as Kubernetes rotates it.
func TestAuthorised(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	want := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+want {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := New(Options{Address: server.URL, HTTP: config.HTTPClientConfig{
		TLSConfig: config.TLSConfig{CAFile: ca}, Authorization: &config.Authorization{CredentialsFile: token}}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, want = range []string{"first", "second"} {
		if err := os.WriteFile(token, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := h.Prefetch(t.Context(), []fleet.Service{cart()}, at(0)); err != nil {
			t.Errorf("with token %s: %v", want, err)
		}
	}
	if err := os.WriteFile(token, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Prefetch(t.Context(), []fleet.Service{cart()}, at(0)); err == nil {
		t.Error("a wrong token passed")
	}
}

// TestHangs: a source that takes the question and never answers costs one timeout, and the cycle after it one short wait.
func TestHangs(t *testing.T) {
	p := newProm(t, shop, 1e6)
	p.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	h := p.history(Options{Timeout: 500 * time.Millisecond, HistoryTimeout: 50 * time.Millisecond}) // the question itself takes its time on a busy machine
	for range 2 {
		p.asked()
		if err := h.Prefetch(t.Context(), []fleet.Service{cart()}, at(0)); err == nil {
			t.Error("no answer is no error")
		}
		if n := len(p.asked()); n != 1 {
			t.Errorf("%d questions to a source that does not answer, want 1", n)
		}
	}
	if _, err := h.Since(t.Context(), []fleet.Service{cart()}, at(0), at(time.Hour)); err == nil {
		t.Error("no answer is no error")
	}
}

// TestTooLarge: an answer beyond the bound is cut off; history is then asked for in halves.
func TestTooLarge(t *testing.T) {
	p := newProm(t, shop, 1e6)
	p.record(at(time.Minute), at(59*time.Minute))
	services := []fleet.Service{cart()}
	whole := read(t, p.history(Options{Step: time.Minute}), services, at(0), at(59*time.Minute))["shop/cart"]
	halves := read(t, p.history(Options{Step: time.Minute, MaxBytes: 1200}), services, at(0), at(59*time.Minute))["shop/cart"]
	if whole.CPU.Len() != halves.CPU.Len() || whole.CPU.Known() != halves.CPU.Known() || whole.CPU.Known() < 55 {
		t.Errorf("at once %d of %d cells are known, in halves %d of %d", whole.CPU.Known(), whole.CPU.Len(), halves.CPU.Known(), halves.CPU.Len())
	}
	err := p.history(Options{MaxBytes: 10}).Prefetch(t.Context(), services, at(12*time.Minute))
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("an answer of more than 10 bytes: %v", err)
	}
}

// TestBusy: a call that comes while one of its kind is under way does not queue up.
func TestBusy(t *testing.T) {
	p := newProm(t, shop, 1e6)
	h := p.history(Options{})
	arrived, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	p.intercept(func(http.ResponseWriter, *http.Request) bool {
		first.Do(func() {
			close(arrived)
			<-release
		})
		return false
	})
	done := make(chan error)
	go func() { done <- h.Prefetch(t.Context(), []fleet.Service{cart()}, at(12*time.Minute)) }()
	<-arrived
	if err := h.Prefetch(t.Context(), []fleet.Service{cart()}, at(12*time.Minute)); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("a second prefetch: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCollector(t *testing.T) {
	p := newProm(t, shop, 1e6)
	p.record(at(10*time.Minute), at(12*time.Minute))
	h := p.history(Options{})
	for range 2 {
		if err := h.Prefetch(t.Context(), []fleet.Service{cart()}, at(12*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	// 1 probe, 1 of the series by namespace and 2 for the intervals, 2 of CPU, 2 of load, 2 of latency, 1 of the tenant; the second cycle needs no probe.
	err := testutil.CollectAndCompare(h.Collector(), strings.NewReader(`
# HELP springtide_history_cycle_queries Queries of the last complete cycle.
# TYPE springtide_history_cycle_queries gauge
springtide_history_cycle_queries 10
# HELP springtide_history_queries_total Queries sent to the metrics source.
# TYPE springtide_history_queries_total counter
springtide_history_queries_total 16
# HELP springtide_history_recorded 1 where the recording rules are installed.
# TYPE springtide_history_recorded gauge
springtide_history_recorded 1
`), "springtide_history_cycle_queries", "springtide_history_queries_total", "springtide_history_recorded")
	if err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(h.Collector()); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}
