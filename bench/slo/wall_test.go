package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/springtide/springtide/lab/prom"
)

// wall is how the reality check is played. A minute lasts three seconds: Prometheus is given a clock that runs twenty
// times as fast, and times of requests are as they are.
var wall = struct {
	quota  quota
	minute time.Duration
	scrape int // a minute
	// objective is the share of minutes that must be good, of which truth sees that many at each load.
	objective     float64
	tides, steps  int // of the load that is learned from: up and down again
	hold          int // minutes at each step
	truth, settle int // minutes at each load of the bisection, and those before them that do not count
	grid          int // loads that the bisection may try
}{quota: quota{each: 30 * time.Millisecond, period: 100 * time.Millisecond}, minute: 3 * time.Second, scrape: 4,
	objective: 0.95,
	tides:     2, steps: 20, hold: 8, truth: 60, settle: 3, grid: 64}

// limits are the thresholds of the 99th percentile.
var limits = []time.Duration{50 * time.Millisecond, 250 * time.Millisecond, 1000 * time.Millisecond}

// meanWork is the mean of work.
const meanWork = 475 * time.Microsecond

// work is what a request costs: nine in ten are cheap, and one is ten times as dear.
func work(r *rand.Rand) time.Duration {
	mean := 250 * time.Microsecond
	if r.IntN(10) == 0 {
		mean *= 10
	}
	return time.Duration(r.ExpFloat64() * float64(mean))
}

// most is the rate that the quota would serve if requests cost nothing but their work.
func most() float64 {
	return wall.quota.each.Seconds() / wall.quota.period.Seconds() / meanWork.Seconds()
}

// TestCapacityByTheWall measures a real server. It takes about half an hour; `make bench-slo` runs it.
func TestCapacityByTheWall(t *testing.T) {
	path := os.Getenv("SPRINGTIDE_BENCH_SLO")
	if path == "" {
		t.Skip("measures by the wall's clock: make bench-slo")
	}
	if os.Getenv("SHORT") != "" {
		wall.tides, wall.steps, wall.hold, wall.truth, wall.grid = 1, 8, 2, 8, 16
	}
	m := measured{Objective: wall.objective, Limits: limits,
		Cores: wall.quota.each.Seconds() / wall.quota.period.Seconds()}
	m.Observations = observe(t)
	m.Truths = bisect(t)
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// observe lets the load rise and fall as tides do, and reads each minute off Prometheus.
func observe(t *testing.T) []observation {
	t.Helper()
	url := begin(t)
	g := newGenerator(t, url, 1, work)
	start := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	db, err := prom.Open(t.TempDir(), prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out []observation
	at := start
	job := labels.FromStrings("job", "slo")
	for _, share := range tides() {
		for range wall.hold {
			scraped := make(chan error, 1)
			go func(at time.Time) { scraped <- scrapes(t, db, url, at, job) }(at)
			g.send(share*most(), wall.minute)
			if err := <-scraped; err != nil {
				t.Fatal(err)
			}
			at = at.Add(time.Minute)
			o, ok := read(t, db, at)
			if o.Offered = share * most(); ok {
				out = append(out, o)
			}
			g.take()
		}
		if n := len(out); n > 0 {
			t.Logf("offered %.0f/s, served %.0f/s, p99 %.0f ms", share*most(), out[n-1].Load, 1000*out[n-1].P99)
		}
	}
	g.drain()
	return out
}

// tides are the loads of the steps as shares of the most.
func tides() []float64 {
	const low, high = 0.2, 0.8 // what HTTP costs comes on top: the quota is used up at 0.8
	var out []float64
	for range wall.tides {
		for k := range 2 * wall.steps {
			up := k
			if k >= wall.steps {
				up = 2*wall.steps - 1 - k
			}
			out = append(out, low+(high-low)*float64(up)/float64(wall.steps-1))
		}
	}
	return out
}

// scrapes are those of one minute, each at its time of the quick clock.
func scrapes(t *testing.T, db *prom.Prom, url string, at time.Time, job labels.Labels) error {
	begun := time.Now()
	for k := range wall.scrape {
		part := time.Duration(k + 1)
		time.Sleep(time.Until(begun.Add(part * wall.minute / time.Duration(wall.scrape))))
		if err := db.Scrape(t.Context(), url+"/metrics", at.Add(part*time.Minute/time.Duration(wall.scrape)),
			job); err != nil {
			return err
		}
	}
	return nil
}

// read asks Prometheus for the minute that ends at a time.
func read(t *testing.T, db *prom.Prom, at time.Time) (observation, bool) {
	t.Helper()
	one := func(expr string) (float64, bool) {
		v, err := db.Query(t.Context(), expr, at)
		if err != nil {
			t.Fatal(err)
		}
		if len(v) != 1 || v[0].Value != v[0].Value {
			return 0, false
		}
		return v[0].Value, true
	}
	const buckets = `sum by (le) (increase(http_server_request_duration_seconds_bucket{job="slo"}[1m]))`
	p99, ok := one("histogram_quantile(0.99, " + buckets + ")")
	load, some := one(`sum(rate(http_server_request_duration_seconds_count{job="slo"}[1m]))`)
	cpu, used := one(`rate(process_cpu_seconds_total{job="slo"}[1m])`)
	faster := float64(time.Minute / wall.minute)
	return observation{Load: load * faster, P99: p99, CPU: cpu * faster}, ok && some && used
}

// bisect finds where each limit breaks by other loads, other seeds and the times that the server took, without
// Prometheus. Loads that another limit tried already are not tried again.
func bisect(t *testing.T) []truth {
	t.Helper()
	url := begin(t)
	tried := map[int]truth{}
	try := func(i int) truth {
		if x, ok := tried[i]; ok {
			return x
		}
		x := try(t, url, float64(i)/float64(wall.grid)*most(), uint64(100+i))
		tried[i] = x
		t.Logf("%.0f/s: %s", x.Load, fmt.Sprint(x.Holds))
		return x
	}
	for l := range limits {
		lo, hi := wall.grid/8, wall.grid
		for hi-lo > 1 {
			if mid := (lo + hi) / 2; try(mid).Holds[l] >= wall.objective {
				lo = mid
			} else {
				hi = mid
			}
		}
		try(lo)
		try(hi)
	}
	var out []truth
	for i := range wall.grid + 1 {
		if x, ok := tried[i]; ok {
			out = append(out, x)
		}
	}
	return out
}

// try measures one load.
func try(t *testing.T, url string, rate float64, seed uint64) truth {
	t.Helper()
	g := newGenerator(t, url, seed, work)
	g.send(rate, time.Duration(wall.settle)*wall.minute)
	g.take()
	out, held := truth{Load: rate, Minutes: wall.truth}, make([]int, len(limits))
	for range wall.truth {
		g.send(rate, wall.minute)
		p99 := slowest(g.take(), 0.99)
		for l, limit := range limits {
			if p99 <= limit {
				held[l]++
			}
		}
	}
	for _, n := range held {
		out.Holds = append(out.Holds, float64(n)/float64(wall.truth))
	}
	g.drain()
	return out
}
