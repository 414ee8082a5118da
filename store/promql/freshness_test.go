package promql

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	engine "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// alive are series of one namespace at 12 minutes: one goes on, one ended, one began late and has two samples.
const alive = `
load 15s
  live{namespace="shop", queue="a"} 7x60
  grows{namespace="shop"} 0+15x60
  ended{namespace="shop", queue="a"} 3x20
  stopped{namespace="shop"} 0+15x20 stale
  filled{namespace="bank"} 9x60
`

// TestFreshness: what a query makes of series that ended is unknown, whatever hides their age. Each case is asked as a
// metric and as a level.
func TestFreshness(t *testing.T) {
	p := newProm(t, alive, 1e6)
	now := at(12*time.Minute + 7*time.Second)
	const unknown = -1
	for _, c := range []struct {
		query         string
		metric, level float64
	}{
		{`sum(live)`, 7, 7},
		{`sum(rate(grows[5m]))`, 1, 1},
		{`sum(live) or vector(0)`, 7, 7},
		{`sum(live > 100) or vector(0)`, 0, 0}, // the series are there, and the comparison leaves none
		{`max_over_time(live[1h])`, 7, 7},
		{`sum(live) + 0 * time()`, 7, 7},
		{`sum(never) or 0 * sum(live)`, 0, 0},
		{`sum(live) or sum(ended)`, 7, 7},
		{`sum(live unless on (queue) ended)`, 7, 7},
		{`scalar(sum(live)) / 7`, 1, 1},
		{`sum(live / (live offset 5m))`, 1, unknown},
		{`max_over_time(sum(live)[10m:1m])`, 7, 7},
		{`max_over_time(live[20h])`, 7, unknown},

		{`sum(ended)`, unknown, unknown},
		{`sum(ended) or vector(0)`, unknown, unknown},
		{`sum(never) or vector(0)`, unknown, unknown},
		{`vector(0) or sum(live)`, unknown, unknown},
		{`(sum(never) or sum(ended)) or vector(3)`, unknown, unknown},
		{`last_over_time(ended[1h])`, unknown, unknown},
		{`last_over_time(ended[20h])`, unknown, unknown},
		{`last_over_time(ended[1h]) or 0 * sum(live)`, unknown, unknown},
		{`last_over_time(ended[1h]) or vector(1)`, unknown, unknown},
		{`sum(last_over_time(ended[1h])) + sum(live)`, unknown, unknown},
		{`sum(live) + sum(last_over_time(ended[1h]))`, unknown, unknown},
		{`sum(increase(stopped[1h]))`, unknown, unknown},
		{`max_over_time(sum(ended)[10m:30s])`, unknown, unknown},
		{`max_over_time((sum(ended) or vector(0))[10m:30s])`, unknown, unknown},
		{`scalar(ended) >= bool 1`, unknown, unknown},
		{`scalar(sum(never)) < bool 1`, unknown, unknown},
		{`vector(scalar(ended)) > bool 1`, unknown, unknown},
		{`absent(live)`, unknown, unknown},
		{`absent(ended)`, unknown, unknown},
		{`absent_over_time(ended[5m])`, unknown, unknown},
		{`clamp_min(scalar(absent(ended)), 5)`, unknown, unknown},
		{`clamp_min(scalar(ended), 5)`, unknown, unknown},
		{`sum(ended offset 8m)`, unknown, unknown},
		{`sum(live offset 8m)`, unknown, unknown},
		{`sum(live @ 300)`, unknown, unknown},
		{`sum(live @ end())`, unknown, unknown},
		{`max_over_time(live[5m:1m] @ 300)`, unknown, unknown},
		{`vector(1)`, unknown, unknown},
		{`time()`, unknown, unknown},
		{`sum(filled)`, unknown, unknown},
		{`label_replace(vector(time()), "springtide_is", "time", "", "") or sum(never)`, unknown, unknown},
		{`label_replace(sum(last_over_time(ended[1h])), "springtide_is", "time", "", "")`, unknown, unknown},
		{`timestamp(ended) or vector(1)`, unknown, unknown},
	} {
		for _, level := range []bool{false, true} {
			h := p.history(Options{ScrapeInterval: 15 * time.Second})
			s, want := tenant("shop/cart", c.query), c.metric
			if level {
				s, want = fleet.Service{ID: "shop/cart"}, c.level
				s.SLO = fleet.Levels(fleet.Level{Kind: fleet.LevelThroughput, Name: "a", Source: fleet.Source{Query: c.query}})
			}
			if err := h.Prefetch(t.Context(), []fleet.Service{s}, now); err != nil {
				t.Fatal(err)
			}
			live, err := observed(h, []fleet.Service{s}, now)
			if err != nil {
				t.Fatal(err)
			}
			got := live["shop/cart"].Signals["a"]
			if level {
				got = live["shop/cart"].Levels["a"]
			}
			problems := h.Stats().Problems
			switch {
			case want == unknown && (got.OK || len(problems) != 1):
				t.Errorf("%s (level %v) is %+v, with problems %v; want it unknown, and why", c.query, level, got, problems)
			case want != unknown && (!got.OK || math.Abs(got.Value-want) > 1e-9 || !got.At.Equal(at(12*time.Minute))):
				t.Errorf("%s (level %v) is %+v, want %v as of the last scrape; %v", c.query, level, got, want, problems)
			}
		}
	}
}

// sampledIn is the time that a query claims, where it is accepted and has a value; zero where not.
func sampledIn(t interface{ Fatalf(string, ...any) }, p *prom, query string, now time.Time) time.Time {
	confined, err := Confine(query, "namespace", "shop")
	if err != nil {
		return time.Time{}
	}
	expr, err := timedQuery(confined)
	if err != nil {
		t.Fatalf("%s became %s, which has no time: %v", query, confined, err)
	}
	q, err := p.engine.NewInstantQuery(context.Background(), p.storage, engine.NewPrometheusQueryOpts(false,
		2*time.Minute), expr, now)
	if err != nil {
		t.Fatalf("%s became %s: %v", query, expr, err)
	}
	defer q.Close()
	v, err := q.Exec(context.Background()).Vector()
	if err != nil {
		return time.Time{}
	}
	values := 0
	var at time.Time
	for _, s := range v {
		switch s.Metric.Get(answerIs) {
		case isValue:
			values++
		case isTime:
			if when, ok := known(s.F); ok {
				at = when
			}
		default:
			t.Fatalf("%s brings %v", expr, s.Metric)
		}
	}
	if values == 0 {
		return time.Time{}
	}
	return at
}

// TestNothingIsFreshOfWhatEnded: of series that all ended no query is known, whatever it is made of: the properties'
// own, and every expression of Prometheus' tests with their metrics renamed. While they go on, none is newer than they.
func TestNothingIsFreshOfWhatEnded(t *testing.T) {
	p := newProm(t, alive, 1e6)
	newest := at(60 * 15 * time.Second)
	check := func(t interface{ Fatalf(string, ...any) }, query string) {
		if when := sampledIn(t, p, query, newest.Add(5*time.Minute)); !when.IsZero() {
			t.Fatalf("%s is of %v, when all series had ended", query, when)
		}
		if when := sampledIn(t, p, query, newest.Add(30*time.Second)); when.After(newest) {
			t.Fatalf("%s is of %v, and the newest sample of %v", query, when, newest)
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t, drawQuery(t, 2)) })
	if testing.Short() {
		return
	}
	exprs, err := promqltest.GetBuiltInExprs()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exprs {
		for _, metric := range []string{"http_requests", "metric", "data", "testmetric", "node_cpu"} {
			e = strings.ReplaceAll(e, metric+"{", "live{")
			e = strings.ReplaceAll(e, metric+"[", "live[")
		}
		check(t, e)
	}
}

// drawQuery draws an expression of the series of alive.
func drawQuery(t *rapid.T, depth int) string {
	leaves := []string{"live", "ended", "grows", "never", "sum(live)", "rate(grows[5m])", "last_over_time(ended[1h])",
		"vector(1)", "vector(time())", "absent(never)",
		"ended offset 8m", "max_over_time(live[1h])", "scalar(ended) + vector(0)", "vector(scalar(live))"}
	if depth == 0 {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	next := func() string { return drawQuery(t, depth-1) }
	switch rapid.IntRange(0, 6).Draw(t, "form") {
	case 0:
		return "(" + next() + " or " + next() + ")"
	case 1:
		return "(" + next() + " unless on () " + next() + ")"
	case 2:
		return "(sum(" + next() + ") + on () sum(" + next() + "))"
	case 3:
		return "max_over_time((" + next() + ")[10m:1m])"
	case 4:
		return "(" + next() + " and on () " + next() + ")"
	case 5:
		return "clamp_min(max(" + next() + "), 3)"
	}
	return rapid.SampledFrom(leaves).Draw(t, "leaf")
}

// FuzzFreshness: the same of any text.
func FuzzFreshness(f *testing.F) {
	for _, e := range []string{`sum(live) or vector(0)`, `last_over_time(ended[1h]) or 0 * sum(live)`,
		`scalar(ended) >= bool 1`, `absent(live) or time() - timestamp(live)`,
		`max_over_time((sum(ended) or vector(0))[10m:30s])`, `label_replace(live, "springtide_is", "time", "", "")`,
		`topk(1, live) unless ended offset 5m`} {
		f.Add(e)
	}
	storage := promqltest.LoadedStorage(f, alive)
	p := &prom{storage: storage, engine: promqltest.NewTestEngine(f, false, 0, 100_000)}
	newest := at(60 * 15 * time.Second)
	f.Fuzz(func(t *testing.T, query string) {
		if when := sampledIn(t, p, query, newest.Add(5*time.Minute)); !when.IsZero() {
			t.Fatalf("%s is of %v, when all series had ended", query, when)
		}
	})
}
