package promql

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
)

// TestSeriesOfOnePod: however many series one pod exports, what the controller is answered does not grow with them, and the namespace next to it is read as ever. It prints what
// a cycle costs; SERIES=1000000 plays a million.
func TestSeriesOfOnePod(t *testing.T) {
	long(t)
	many := 5_000
	if n, err := strconv.Atoi(os.Getenv("SERIES")); err == nil {
		many = n
	}
	cost := func(series int) (time.Duration, int64, uint64) {
		p := newProm(t, "load 15s"+neighbour, 50_000_000) // the engine's limit as Prometheus is shipped
		for i := range 21 {
			now := at(10*time.Minute + time.Duration(i)*15*time.Second)
			app := p.storage.Appender(t.Context())
			for k := range series {
				for _, metric := range []string{"http_server_request_duration_seconds_count", "container_cpu_usage_seconds_total"} {
					l := labels.FromStrings("__name__", metric, "namespace", "bad", "pod", "p", "container", "app", "id", strconv.Itoa(k))
					if _, err := app.Append(0, l, now.UnixMilli(), float64(i)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		h := p.history(Options{ScrapeInterval: 15 * time.Second, Timeout: time.Minute})
		var services []fleet.Service
		for _, name := range []string{"bad/p", "shop/stock-0"} {
			n := fleet.ParseName(name)
			services = append(services, fleet.Service{ID: fleet.ServiceID(name), Target: n, TargetKind: "StatefulSet", Pods: []fleet.Pod{{Name: n, Ready: true}}})
		}
		now := at(15 * time.Minute)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		if err := h.Prefetch(t.Context(), services, now); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		live, err := observed(h, services, now)
		if err != nil || !live["shop/stock-0"].Load.OK || live["shop/stock-0"].Load.Value < 9.9 || live["shop/stock-0"].Load.Value > 10.1 {
			t.Errorf("the neighbour has the load %+v, %v", live["shop/stock-0"].Load, err)
		}
		return took, h.Stats().Cycle.Bytes, after.TotalAlloc - before.TotalAlloc
	}
	_, few, _ := cost(1)
	took, bytes, alloc := cost(many)
	t.Logf("%d series of each of two metrics of one pod: a cycle takes %v, answers of %d bytes, and %d MB allocated in Prometheus and here", many, took, bytes, alloc>>20)
	most := few + few/10
	if many >= manySeries {
		most += 1 << 10 // the namespace is named as a heavy one, and asked alone
	}
	if bytes > most {
		t.Errorf("answers of %d bytes, of %d with one series: they grow with the series of a pod", bytes, few)
	}
}

// TestHeavyNamespaceIsAskedAlone: questions about a namespace with very many series time out. That takes the metrics and the history of no other namespace, is tried once in a
// few minutes, and ends when the series are gone.
func TestHeavyNamespaceIsAskedAlone(t *testing.T) {
	for _, namespaces := range []int{1, 3, 60} {
		t.Run(fmt.Sprint(namespaces), func(t *testing.T) {
			script, services := oneBadTenant(50, namespaces)
			p := newProm(t, script, 1e6)
			heals := false
			asked := 0
			p.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
				q := r.FormValue("query")
				about := strings.Contains(q, `namespace=~"bad`) || !strings.Contains(q, "namespace=~") && !strings.Contains(q, "namespace!~")
				if heals || !about || !strings.Contains(q, "container_cpu") || strings.Contains(q, "count by (namespace)") {
					return false
				}
				asked++
				<-r.Context().Done()
				return true
			})
			h := p.history(Options{Step: 5 * time.Minute, Timeout: 200 * time.Millisecond, HistoryTimeout: 500 * time.Millisecond})
			h.manySeries = 20
			look := func(now time.Time) map[fleet.ServiceID]bool {
				t.Helper()
				if err := h.Prefetch(t.Context(), services, now); err != nil {
					t.Fatalf("the source is called broken: %v", err)
				}
				live, err := observed(h, services, now)
				if err != nil {
					t.Fatal(err)
				}
				known := map[fleet.ServiceID]bool{}
				for id, l := range live {
					if l.Load.Fresh(now, time.Minute) {
						known[id] = true
					}
				}
				return known
			}
			for i := range 3 {
				now := at(12*time.Minute + time.Duration(i)*15*time.Second)
				if known := look(now); len(known) != namespaces || known["bad/db"] || h.QueryProblems()["bad/db"].Cause != loop.CauseNamespaceRefused {
					t.Errorf("%d services are measured, want %d; problem %q", len(known), namespaces, h.QueryProblems()["bad/db"])
				}
			}
			if asked > 2 { // the client asks by POST and then by GET
				t.Errorf("a question that took too long was put %d times", asked)
			}
			batches, err := h.Since(t.Context(), services, at(0), at(12*time.Minute))
			var unread *loop.UnreadError
			if !errors.As(err, &unread) || len(unread.Services) != 1 || unread.Services["bad/db"] == nil {
				t.Fatalf("history says %v", err)
			}
			n := 0
			for range batches {
				n++
			}
			if n != namespaces {
				t.Errorf("history of %d services, want %d", n, namespaces)
			}
			heals = true
			if known := look(at(18 * time.Minute)); len(known) != namespaces+1 || h.QueryProblems()["bad/db"].Cause != "" {
				t.Errorf("afterwards %d services are measured: %q", len(known), h.QueryProblems()["bad/db"])
			}
		})
	}
}
