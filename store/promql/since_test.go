package promql

import (
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// read collects what Since yields.
func read(t *testing.T, h *History, services []fleet.Service, from, to time.Time) map[fleet.ServiceID]portrait.Batch {
	t.Helper()
	seq, err := h.Since(t.Context(), services, from, to)
	if err != nil {
		t.Fatal(err)
	}
	out := map[fleet.ServiceID]portrait.Batch{}
	for id, b := range seq {
		if _, twice := out[id]; twice {
			t.Errorf("%s is yielded twice", id)
		}
		out[id] = b
	}
	return out
}

func constant(start time.Duration, n int, v float64) series.Series {
	s := series.New(at(start), 5*time.Minute, n)
	for i := range s.Values {
		s.Values[i] = v
	}
	return s
}

// TestSince reads an hour of the script, with and without the rules, and with rules that were installed in the middle of it. Pod b's CPU
// counter is reset at minute 30, which must not show.
func TestSince(t *testing.T) {
	long(t)
	for name, from := range map[string]time.Duration{"raw": time.Hour, "recorded": time.Minute, "rules came late": 31 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			p := newProm(t, shop, 1e6)
			p.record(at(from), at(59*time.Minute))
			services := []fleet.Service{cart(), stock(), {ID: "shop/new", Target: fleet.Name{Namespace: "shop", Name: "new"}, TargetKind: "Deployment"}}
			// From 2:00 the grid begins at 5:00; at 58:30 the cell that began at 55:00 is not over.
			got := read(t, p.history(Options{}), services, at(2*time.Minute), at(58*time.Minute+30*time.Second))
			// The spike of one replica in minute 11 is the peak of the cell that it falls into.
			memory := constant(5*time.Minute, 10, 350e6)
			memory.Values[1] = 900e6
			want := map[fleet.ServiceID]portrait.Batch{
				"shop/cart": {
					Load: constant(5*time.Minute, 10, 200), CPU: constant(5*time.Minute, 10, 3.5), Ready: constant(5*time.Minute, 10, 2),
					Memory: memory, StartUps: []time.Duration{42 * time.Second},
				},
				"shop/stock": {CPU: constant(5*time.Minute, 10, 0.2), Ready: constant(5*time.Minute, 10, 1)},
			}
			// Levels have a grid of their own, which TestLevelHistory reads: here each service has those that it states.
			for id, b := range got {
				if n := len(b.Levels.Of); (id == "shop/cart") != (n == 1) {
					t.Errorf("%s has %d levels", id, n)
				}
				b.Levels = portrait.Levels{}
				got[id] = b
			}
			// A reset costs rate() what was counted between the last scrape before and the first after it: at most a scrape in five minutes.
			tolerant := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 0.02*max(a, b) })
			if d := cmp.Diff(want, got, tolerant); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestSinceContinues: reading cell by cell gives what reading at once gives, and no cell twice.
func TestSinceContinues(t *testing.T) {
	p := newProm(t, shop, 1e6)
	p.record(at(time.Minute), at(59*time.Minute))
	h := p.history(Options{})
	services := []fleet.Service{cart()}
	whole := read(t, h, services, at(0), at(50*time.Minute))["shop/cart"].Load
	end := at(0)
	var parts []float64
	for now := at(7 * time.Minute); !now.After(at(53 * time.Minute)); now = now.Add(3 * time.Minute) {
		b, ok := read(t, h, services, end, now)["shop/cart"]
		if !ok {
			continue
		}
		if b.Load.Start.Before(end) {
			t.Fatalf("at %v: cell %v was read before", now, b.Load.Start)
		}
		parts, end = append(parts, b.Load.Values...), b.Load.End()
	}
	if d := cmp.Diff(whole.Values, parts, approx); d != "" {
		t.Errorf("at once and in parts (-+):\n%s", d)
	}
}

// TestSinceGaps: scrapes that failed are gaps, never zero; what may still arrive is left off.
func TestSinceGaps(t *testing.T) {
	p := newProm(t, `
load 1m
  springtide:workload_cpu_usage_cores:sum{namespace="shop", workload_kind="Deployment", workload="cart"} _x10 2x9 _x20 4x9 _x30
  springtide:workload_ready_replicas:sum{namespace="shop", workload_kind="Deployment", workload="cart"} _x10 NaN NaN NaN _x60
`, 1e6)
	got := read(t, p.history(Options{}), []fleet.Service{cart()}, at(0), at(75*time.Minute))["shop/cart"]
	got.Levels = portrait.Levels{}
	nan := math.NaN()
	want := portrait.Batch{
		// The sample of minute 10 is of the time before it, so it falls into the cell that began at minute 5.
		CPU:   series.Series{Start: at(5 * time.Minute), Step: 5 * time.Minute, Values: []float64{2, 2, 2, nan, nan, nan, 4, 4, 4, nan, nan, nan}},
		Ready: series.Series{Start: at(5 * time.Minute), Step: 5 * time.Minute, Values: []float64{nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan}},
	}
	if d := cmp.Diff(want, got, approx); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestSinceIsChunked: no answer has more samples than allowed, the chunks join without a seam, and a source that still refuses is asked
// in halves.
func TestSinceIsChunked(t *testing.T) {
	long(t)
	script := "load 5m\n"
	var services []fleet.Service
	for i := range 20 {
		script += fmt.Sprintf("  springtide:workload_cpu_usage_cores:sum{namespace=\"shop\", workload_kind=\"Deployment\", workload=\"w%d\"} %d+1x2015\n", i, i)
		services = append(services, fleet.Service{ID: fleet.ServiceID(fmt.Sprintf("shop/w%d", i)), TargetKind: "Deployment",
			Target: fleet.Name{Namespace: "shop", Name: fmt.Sprintf("w%d", i)}})
	}
	week := at(7 * 24 * time.Hour)
	for name, tc := range map[string]struct {
		maxSamples int // ours
		engine     int // Prometheus'
		least      int // CPU queries
	}{
		"at once":           {1e6, 1e6, 1},
		"in chunks":         {4000, 1e6, 11},
		"asked too much of": {1e6, 25_000, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProm(t, script, tc.engine)
			h := p.history(Options{MaxSamples: tc.maxSamples})
			got := read(t, h, services, at(0), week)
			if len(got) != len(services) {
				t.Fatalf("%d services, want %d", len(got), len(services))
			}
			for i := range services {
				cpu := got[services[i].ID].CPU
				if cpu.Len() != 2015 || !cpu.Start.Equal(at(0)) {
					t.Fatalf("%s: %d cells from %v, want 2015 from the start", services[i].ID, cpu.Len(), cpu.Start)
				}
				for j, v := range cpu.Values {
					if want := float64(i + j + 1); v != want {
						t.Fatalf("%s: cell %d is %v, want %v", services[i].ID, j, v, want)
					}
				}
			}
			n := 0
			for _, q := range p.asked() {
				if q == `avg_over_time(`+recordedCPU+`{namespace=~"shop"}[5m])` {
					n++
				}
			}
			if n < tc.least {
				t.Errorf("%d queries of CPU, want at least %d", n, tc.least)
			}
		})
	}
}

// TestSinceFailsWhole: a part that cannot be read fails the call, since a hole folded into a portrait would stay.
func TestSinceFailsWhole(t *testing.T) {
	p := newProm(t, shop, 1e6)
	n := 0
	p.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if n++; n < 4 {
			return false
		}
		http.Error(w, "gone", http.StatusInternalServerError)
		return true
	})
	if seq, err := p.history(Options{MaxSamples: 20}).Since(t.Context(), []fleet.Service{cart()}, at(0), at(time.Hour)); err == nil || seq != nil {
		t.Errorf("got a history and error %v, want the error alone", err)
	}
}

// TestRestartsTeachNoStartUp: a pod whose container started again becomes ready once more, long after its start; so does one that was ready
// before, also where it was not ready when the window began (d). Of one that lost its readiness in the window (e) the first time counts.
func TestRestartsTeachNoStartUp(t *testing.T) {
	p := newProm(t, `
load 15s
  kube_pod_owner{namespace="shop", pod="cart-7d-a", owner_kind="StatefulSet", owner_name="cart", owner_is_controller="true"} 1x80
  kube_pod_owner{namespace="shop", pod="cart-7d-b", owner_kind="StatefulSet", owner_name="cart", owner_is_controller="true"} 1x80
  kube_pod_owner{namespace="shop", pod="cart-7d-c", owner_kind="StatefulSet", owner_name="cart", owner_is_controller="true"} 1x80
  kube_pod_status_ready{namespace="shop", pod="cart-7d-a", condition="true"} 1x80
  kube_pod_start_time{namespace="shop", pod="cart-7d-a"} 620x80
  kube_pod_status_ready_time{namespace="shop", pod="cart-7d-a"} _x44 650x36
  kube_pod_container_status_restarts_total{namespace="shop", pod="cart-7d-a", container="app"} 0x80
  kube_pod_start_time{namespace="shop", pod="cart-7d-b"} 430x80
  kube_pod_status_ready_time{namespace="shop", pod="cart-7d-b"} _x44 661x36
  kube_pod_container_status_restarts_total{namespace="shop", pod="cart-7d-b", container="app"} 2x80
  kube_pod_start_time{namespace="shop", pod="cart-7d-c"} 10x80
  kube_pod_status_ready_time{namespace="shop", pod="cart-7d-c"} 40x44 661x36
  kube_pod_container_status_restarts_total{namespace="shop", pod="cart-7d-c", container="app"} 0x80
  kube_pod_owner{namespace="shop", pod="cart-7d-d", owner_kind="StatefulSet", owner_name="cart", owner_is_controller="true"} 1x80
  kube_pod_start_time{namespace="shop", pod="cart-7d-d"} 10x80
  kube_pod_status_ready_time{namespace="shop", pod="cart-7d-d"} 40x30 _x14 661x36
  kube_pod_container_status_restarts_total{namespace="shop", pod="cart-7d-d", container="app"} 0x80
  kube_pod_owner{namespace="shop", pod="cart-7d-e", owner_kind="StatefulSet", owner_name="cart", owner_is_controller="true"} 1x80
  kube_pod_start_time{namespace="shop", pod="cart-7d-e"} 610x80
  kube_pod_status_ready_time{namespace="shop", pod="cart-7d-e"} _x42 635x5 _x4 770x28
  kube_pod_container_status_restarts_total{namespace="shop", pod="cart-7d-e", container="app"} 0x80
`, 1e6)
	s := cart()
	s.TargetKind = "StatefulSet"
	batches, err := p.history(Options{}).Since(t.Context(), []fleet.Service{s}, at(10*time.Minute), at(15*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	var got []time.Duration
	for _, b := range batches {
		got = append(got, b.StartUps...)
	}
	if d := cmp.Diff([]time.Duration{25 * time.Second, 30 * time.Second}, got); d != "" {
		t.Errorf("times to Ready (-want +got):\n%s", d)
	}
}

// TestRestartOfKubeStateMetrics: what kube-state-metrics does not see is no start-up of a pod: a pod that lost and regained its readiness while it was away did not take that long to
// start. Start-ups that it saw whole count, before and after.
func TestRestartOfKubeStateMetrics(t *testing.T) {
	for _, c := range []struct {
		name string
		// away is when kube-state-metrics is away; in it comes back under another address.
		from, until time.Duration
		// ready is when the pod becomes ready for the first time, and again when it was not in between.
		start, ready, again time.Duration
		want                []time.Duration
	}{
		{"it was there", 0, 0, 40 * time.Minute, 41 * time.Minute, 0, []time.Duration{time.Minute}},
		{"it was away long before", 0, 5 * time.Minute, 40 * time.Minute, 41 * time.Minute, 0, []time.Duration{time.Minute}},
		{"a short restart, and a pod that is long ready", 40 * time.Minute, 42 * time.Minute, time.Minute, 2 * time.Minute, 0, nil},
		{"a long absence, and a pod that is long ready", 10 * time.Minute, 42 * time.Minute, 12 * time.Minute, 13 * time.Minute, 0, nil},
		{"ready again during a short restart", 37 * time.Minute, 42 * time.Minute, 30 * time.Minute, 31 * time.Minute, 41 * time.Minute, nil},
		{"ready again, and the first time was not seen", 15 * time.Minute, 43 * time.Minute, 20 * time.Minute, 21 * time.Minute, 42 * time.Minute, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			series := func(value func(at time.Duration) string) (before, after string) {
				for now := time.Duration(0); now <= 45*time.Minute; now += 15 * time.Second {
					v := value(now)
					switch {
					case now < c.from:
						before, after = before+" "+v, after+" _"
					case now < c.until:
						before, after = before+" stale", after+" _"
					default:
						before, after = before+" _", after+" "+v
					}
				}
				return before, after
			}
			script := "load 15s\n"
			add := func(metric, labels string, value func(at time.Duration) string) {
				for i, s := range func() []string { a, b := series(value); return []string{a, b} }() {
					script += fmt.Sprintf("  %s{namespace=\"shop\", pod=\"stock-0\", %sinstance=\"10.0.0.%d:8080\"}%s\n", metric, labels, i, s)
				}
			}
			since := func(begin time.Duration, text func(at time.Duration) string) func(time.Duration) string {
				return func(at time.Duration) string {
					if at < begin {
						return "_"
					}
					return text(at)
				}
			}
			add("kube_pod_owner", `owner_kind="StatefulSet", owner_name="stock", owner_is_controller="true", `, since(c.start, func(time.Duration) string { return "1" }))
			add("kube_pod_start_time", "", since(c.start, func(time.Duration) string { return fmt.Sprint(c.start.Seconds()) }))
			add("kube_pod_status_ready", `condition="true", `, since(c.ready, func(time.Duration) string { return "1" }))
			add("kube_pod_status_ready_time", "", since(c.ready, func(now time.Duration) string {
				if c.again > 0 && now >= c.again {
					return fmt.Sprint(c.again.Seconds())
				}
				return fmt.Sprint(c.ready.Seconds())
			}))
			// Other pods are there all the time.
			add("kube_pod_start_time", `uid="other", `, func(time.Duration) string { return "1" })
			h := newProm(t, script, 1e6).history(Options{})
			got := read(t, h, []fleet.Service{stock()}, at(40*time.Minute), at(45*time.Minute))["shop/stock"].StartUps
			if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("start-ups (-want +got):\n%s", d)
			}
		})
	}
}
