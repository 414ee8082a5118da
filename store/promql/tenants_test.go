package promql

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
)

// tenant is a service with queries of its own, named by the letters of the alphabet.
func tenant(id fleet.ServiceID, queries ...string) fleet.Service {
	s := fleet.Service{ID: id}
	for i, q := range queries {
		s.Metrics = append(s.Metrics, fleet.Metric{Name: string(rune('a' + i)), Type: fleet.MetricQuery, Query: q})
	}
	return s
}

// TestTenantProblems: a query without a value is unknown, and its tenant's status says why; no other tenant is
// affected.
func TestTenantProblems(t *testing.T) {
	p := newProm(t, shop+"  ended{namespace=\"shop\"} 7x20\n", 1e6)
	h := p.history(Options{TenantTimeout: 100 * time.Millisecond, TenantQueriesPerService: 12})
	p.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.FormValue("query"), "slow") {
			<-r.Context().Done() // as slow as it gets
			return true
		}
		return false
	})
	now := at(12 * time.Minute)
	services := []fleet.Service{
		tenant("shop/cart", "sum(requests_in_queue)", "requests_in_queue", "requests_in_queue{queue=\"x\"}", "sum(slow)", "up{namespace=\"bank\"}",
			"scalar(sum(requests_in_queue)) / 2", "sum(requests_in_queue) / 0", "-sum(requests_in_queue)", "sum(requests_in_queue * 0) / sum(requests_in_queue * 0)", "sum(requests_in_queue > 1000)",
			"sum(ended)", "sum(rate(ended[5m])) / sum(requests_in_queue)", "sum(requests_in_queue) * 2"),
		tenant("bank/pay", "sum(requests_in_queue)"),
	}
	if err := h.Prefetch(t.Context(), services, now); err != nil {
		t.Fatal(err)
	}
	live, err := observed(h, services, now)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]fleet.Known[float64]{"a": fleet.KnownAt(42.0, now), "f": fleet.KnownAt(21.0, now)}, live["shop/cart"].Signals); d != "" {
		t.Errorf("signals (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]fleet.Known[float64]{"a": fleet.KnownAt(5000.0, now)}, live["bank/pay"].Signals); d != "" {
		t.Errorf("another tenant's signals (-want +got):\n%s", d)
	}
	want := []Problem{
		{"shop/cart", "b", loop.CauseSeveralValues, `more than one value, as of queue="a" and "b": aggregate it, as in ` +
			`sum(...)`, false},
		{"shop/cart", "c", loop.CauseNoSeries, `no value: no series of the last hour match ` +
			`requests_in_queue{namespace="shop",queue="x"}; correct the name and the labels, or scrape it with the label ` +
			`namespace`, false},
		{"shop/cart", "d", loop.CauseNoAnswer, "no answer within 100ms: make the query cheaper", false},
		{"shop/cart", "e", loop.CauseWrongNamespace, `the selector up{namespace="bank"} reads another namespace: a query ` +
			`sees its own (shop) alone; drop the matcher namespace="bank"`, false},
		{"shop/cart", "g", loop.CauseNotFinite, "the value is +Inf, as of a division by zero: say what that means, as in " +
			"(QUERY) < Inf or vector(0)", false},
		{"shop/cart", "h", loop.CauseNegative, "the value is -42: want a number that is not negative", false},
		{"shop/cart", "i", loop.CauseNotFinite, "the value is NaN, as of 0 / 0 or a quantile of no requests: say what " +
			"that means, as in (QUERY) >= 0 or vector(0)", false},
		{"shop/cart", "j", loop.CauseNoValue, "no value: the series are there, and the query leaves none of them, as a " +
			"comparison or a join does; say what that means, as in (QUERY) or vector(0)", false},
		{"shop/cart", "k", loop.CauseSamplesTooOld, `no value: the newest samples of ended{namespace="shop"} are older ` +
			`than 2m0s; look whether its target is still scraped`, false},
		{"shop/cart", "l", loop.CauseSamplesTooOld, `no value: the newest samples of ended{namespace="shop"} are older ` +
			`than 2m0s; look whether its target is still scraped`, false},
		{"shop/cart", "m", loop.CauseQueryRefused, "not asked: a service may have 12 queries; remove some", false},
	}
	if d := cmp.Diff(want, h.Stats().Problems); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
	if got := h.QueryProblems()["shop/cart"]; got.Cause != loop.CauseSeveralValues || !strings.HasPrefix(got.Message, "metric b: more than one value, as of queue=\"a\" and \"b\": aggregate it, as in sum(...); metric c: no value") {
		t.Errorf("the service is told %q", got)
	}
	// An edited query takes its problem and its sample along.
	services[0] = tenant("shop/cart", "sum(requests_in_queue) + 1")
	if live, _ := observed(h, services, now); live["shop/cart"].Signals["a"].OK {
		t.Error("a sample of the former query answers for the new one")
	}
	if err := h.Prefetch(t.Context(), services, now); err != nil {
		t.Fatal(err)
	}
	if got := h.Stats().Problems; len(got) != 0 {
		t.Errorf("problems that are mended: %+v", got)
	}
}

// TestTenantsTakeTurns: each cycle asks no more than its share, and every query has its turn.
func TestTenantsTakeTurns(t *testing.T) {
	p := newProm(t, shop, 1e6)
	h := p.history(Options{TenantQueriesPerCycle: 3})
	var services []fleet.Service
	for i := range 8 {
		services = append(services, tenant(fleet.ServiceID(fmt.Sprintf("shop/s%d", i)), fmt.Sprintf("sum(requests_in_queue) + %d", i)))
	}
	for i, known := range []int{3, 6, 8, 8} {
		now := at(12*time.Minute + time.Duration(i)*15*time.Second)
		if err := h.Prefetch(t.Context(), services, now); err != nil {
			t.Fatal(err)
		}
		if n := h.Stats().Cycle.TenantQueries; n != 3 {
			t.Errorf("cycle %d: %d queries of tenants, want 3", i, n)
		}
		live, err := observed(h, services, now)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, l := range live {
			n += len(l.Signals)
		}
		if n != known {
			t.Errorf("cycle %d: %d signals are known, want %d", i, n, known)
		}
	}
}

// TestTenantSamplesAge: a gauge that is not scraped any more is unknown after two minutes, not after Prometheus' five.
func TestTenantSamplesAge(t *testing.T) {
	p := newProm(t, `
load 30s
  requests_in_queue{namespace="shop"} 7x10
`, 1e6)
	h := p.history(Options{})
	services := []fleet.Service{tenant("shop/cart", "sum(requests_in_queue)")}
	for after, want := range map[time.Duration]bool{90 * time.Second: true, 150 * time.Second: false} {
		now := at(5*time.Minute + after)
		if err := h.Prefetch(t.Context(), services, now); err != nil {
			t.Fatal(err)
		}
		live, err := observed(h, services, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := live["shop/cart"].Signals["a"]; got.Fresh(now, h.tenantLookback()) != want {
			t.Errorf("%v after the last scrape: %+v", after, got)
		}
	}
}

// TestOneTenantsQueryIsNoOutage: a query that makes the source, or a proxy before it, answer with a server error is its tenant's problem while the
// source answers our own question. The error's address, which may hold credentials, reaches no tenant.
func TestOneTenantsQueryIsNoOutage(t *testing.T) {
	p := newProm(t, shop, 1e6)
	h := p.history(Options{TenantTimeout: time.Second})
	p.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.FormValue("query"), "heavy") {
			http.Error(w, "out of memory", http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	now := at(12 * time.Minute)
	services := []fleet.Service{tenant("shop/cart", "sum(heavy)"), tenant("bank/pay", "sum(requests_in_queue)")}
	if err := h.Prefetch(t.Context(), services, now); err != nil {
		t.Fatalf("one query took the source down for all: %v", err)
	}
	live, err := observed(h, services, now)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]fleet.Known[float64]{"a": fleet.KnownAt(5000.0, now)}, live["bank/pay"].Signals); d != "" {
		t.Errorf("another tenant's signals (-want +got):\n%s", d)
	}
	problems := h.Stats().Problems
	if len(problems) != 1 || problems[0].Service != "shop/cart" || !strings.Contains(problems[0].Message, "did not answer this query") || strings.Contains(problems[0].Message, "http") {
		t.Errorf("problems %+v", problems)
	}
}

// TestOneTenantsQueryNextToOthersAnswers: the same while other questions, which are asked side by side, are answered.
func TestOneTenantsQueryNextToOthersAnswers(t *testing.T) {
	for name, fail := range map[string]func(http.ResponseWriter){
		"server error": func(w http.ResponseWriter) { http.Error(w, "out of memory", http.StatusServiceUnavailable) },
		"bad gateway":  func(w http.ResponseWriter) { http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway) },
		"cut off":      func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProm(t, shop, 1e6)
			h := p.history(Options{TenantTimeout: time.Second})
			p.intercept(func(w http.ResponseWriter, r *http.Request) bool {
				heavy := strings.Contains(r.FormValue("query"), "heavy")
				if heavy {
					fail(w)
				}
				return heavy
			})
			done := make(chan struct{})
			var others sync.WaitGroup
			others.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						_ = h.outcome("another question", nil, nil)
					}
				}
			})
			for range 5 {
				if err := h.Prefetch(t.Context(), []fleet.Service{tenant("shop/cart", "sum(heavy)")},
					at(12*time.Minute)); err != nil {
					t.Fatal(err)
				}
				if ps := h.Stats().Problems; len(ps) != 1 || !strings.Contains(ps[0].Message,
					"did not answer this query") || strings.Contains(ps[0].Message, "http") {
					t.Errorf("problems %+v", ps)
				}
			}
			close(done)
			others.Wait()
		})
	}
}

// TestCredentialsStayInside: neither the address's password nor a token of it is in an error, wherever it comes from.
func TestCredentialsStayInside(t *testing.T) {
	h, err := New(Options{Address: "http://me:s3cret@127.0.0.1:1/x?token=s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Prefetch(t.Context(), []fleet.Service{tenant("shop/cart", "sum(x)")}, at(0)); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"ftp://me:s3cret@host", "http://me:s3cret@ho st", "http://me:s3cret@"} {
		if _, err := New(Options{Address: bad}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
