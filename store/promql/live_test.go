package promql

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
)

// cart is the ElasticService of the script's Deployment: two pods are ready since long, one is not.
func cart() fleet.Service {
	ready := func(name string, ok bool) fleet.Pod {
		return fleet.Pod{Name: fleet.Name{Namespace: "shop", Name: name}, Ready: ok, ReadySince: fleet.Known[time.Time]{Value: at(0), OK: ok}}
	}
	return fleet.Service{
		ID: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, TargetKind: "Deployment",
		SLO:  fleet.Levels(fleet.Latency(0.99, 200*time.Millisecond)),
		Pods: []fleet.Pod{ready("cart-7d-a", true), ready("cart-7d-b", true), ready("cart-7d-c", false)},
		Metrics: []fleet.Metric{
			{Name: "rps", Type: fleet.MetricRequests, Target: 100},
			{Name: "queue", Type: fleet.MetricQuery, Target: 10, Query: "sum(requests_in_queue)"},
		},
	}
}

// stock is the script's StatefulSet, which exports no requests.
func stock() fleet.Service {
	s := fleet.Service{ID: "shop/stock", Target: fleet.Name{Namespace: "shop", Name: "stock"}, TargetKind: "StatefulSet"}
	s.Pods = []fleet.Pod{{Name: fleet.Name{Namespace: "shop", Name: "stock-0"}, Ready: true}}
	return s
}

func TestLive(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		t.Run(fmt.Sprintf("recorded=%v", recorded), func(t *testing.T) {
			p := newProm(t, shop, 1e6)
			if recorded {
				p.record(at(10*time.Minute), at(12*time.Minute))
			}
			h := p.history(Options{})
			now := at(12*time.Minute + 5*time.Second)
			services := []fleet.Service{cart(), stock()}
			if err := h.Prefetch(t.Context(), services, now); err != nil {
				t.Fatal(err)
			}
			got, err := observed(h, services, now)
			if err != nil {
				t.Fatal(err)
			}
			scraped := at(12 * time.Minute) // the scrape before now, not now
			pod := func(name string) fleet.Name { return fleet.Name{Namespace: "shop", Name: name} }
			want := map[fleet.ServiceID]hpa.Live{
				"shop/cart": {
					CPU: map[fleet.Name]fleet.Known[fleet.MilliCPU]{
						pod("cart-7d-a"): fleet.KnownAt[fleet.MilliCPU](2500, scraped), pod("cart-7d-b"): fleet.KnownAt[fleet.MilliCPU](1000, scraped),
					},
					Load: fleet.KnownAt(200.0, scraped), LoadSignal: portrait.Requests,
					Levels:  map[string]fleet.Known[float64]{"latency-p99": fleet.KnownAt(0.18, scraped)},
					Latency: fleet.KnownAt(180*time.Millisecond, scraped),
					Signals: map[string]fleet.Known[float64]{"rps": fleet.KnownAt(200.0, scraped), "queue": fleet.KnownAt(42.0,
						scraped)},
					Window: time.Minute,
				},
				"shop/stock": {
					CPU:  map[fleet.Name]fleet.Known[fleet.MilliCPU]{pod("stock-0"): fleet.KnownAt[fleet.MilliCPU](200, scraped)},
					Load: fleet.KnownAt(0.2, scraped), LoadSignal: portrait.CPU,
					Signals: map[string]fleet.Known[float64]{}, Window: time.Minute,
				},
			}
			if d := cmp.Diff(want, got, approx, approxDuration); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if s := h.Stats(); s.Recorded != recorded || s.Cycle.TenantQueries != 1 || s.Cycle.Bytes == 0 || s.Errors != 0 || s.Problems != nil {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

// approxDuration allows for floats on the way.
var approxDuration = cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() <= time.Microsecond })

// TestQueriesAreFixed: the number of default queries does not grow with the services.
func TestQueriesAreFixed(t *testing.T) {
	p := newProm(t, shop, 1e6)
	now := at(12 * time.Minute)
	count := func(n int) int {
		var services []fleet.Service
		for i := range n {
			s := cart()
			s.Metrics = nil
			s.ID = fleet.ServiceID(fmt.Sprintf("shop/cart-%d", i))
			s.Target.Name = fmt.Sprintf("cart-%d", i)
			s.SLO = fleet.Levels(fleet.Latency([]float64{0.5, 0.9, 0.95, 0.98, 0.99, 0.999}[i%6], 200*time.Millisecond))
			services = append(services, s)
		}
		h := p.history(Options{})
		p.asked()
		if err := h.Prefetch(t.Context(), services, now); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Since(t.Context(), services, now.Add(-10*time.Minute), now); err != nil {
			t.Fatal(err)
		}
		return len(p.asked())
	}
	few, many := count(6), count(600)
	if few != many || few > 40 { // six quantiles live and in history, and seven presets that are looked for
		t.Errorf("%d queries for 6 services, %d for 600: want the same, few", few, many)
	}
}

// TestQuantilesTakeTurns: more SLO quantiles than are asked for in one cycle are all known after two.
func TestQuantilesTakeTurns(t *testing.T) {
	p := newProm(t, shop, 1e6)
	h := p.history(Options{})
	var services []fleet.Service
	for i, q := range []float64{0.5, 0.55, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.98, 0.99} {
		s := cart()
		s.ID = fleet.ServiceID(fmt.Sprintf("shop/cart-%d", i))
		s.SLO = fleet.Levels(fleet.Latency(q, 200*time.Millisecond))
		services = append(services, s)
	}
	now := at(12 * time.Minute)
	known := func() (n int) {
		if err := h.Prefetch(t.Context(), services, now); err != nil {
			t.Fatal(err)
		}
		live, err := observed(h, services, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range live {
			if l.Latency.OK {
				n++
			}
		}
		return n
	}
	if first, second := known(), known(); first != measuresPerCycle || second != len(services) {
		t.Errorf("known quantiles %d, then %d: want %d, then %d", first, second, measuresPerCycle, len(services))
	}
}

// TestSourceDown: what is known stays, aged; a dead source costs one question a cycle; all is well again after.
func TestSourceDown(t *testing.T) {
	p := newProm(t, shop, 1e6)
	h := p.history(Options{})
	services := []fleet.Service{cart()}
	first := at(12 * time.Minute)
	if err := h.Prefetch(t.Context(), services, first); err != nil {
		t.Fatal(err)
	}
	p.intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "gone", http.StatusBadGateway)
		return true
	})
	for i := range 3 {
		p.asked()
		now := first.Add(time.Duration(i+1) * time.Minute)
		if err := h.Prefetch(t.Context(), services, now); err == nil || !strings.Contains(err.Error(), p.URL) {
			t.Fatalf("prefetch from a dead source: %v; want an error that names it", err)
		}
		if n := len(p.asked()); i > 0 && n > 2 { // the client falls back from POST to GET once
			t.Errorf("%d queries to a source that is known to be down", n)
		}
		live, err := observed(h, services, now)
		if err == nil {
			t.Error("Live says nothing of the dead source")
		}
		l := live["shop/cart"]
		if !cmp.Equal(l.Load, fleet.KnownAt(200.0, first), approx) || !l.Latency.OK || len(l.CPU) != 2 {
			t.Errorf("after %d min: %+v; want the last samples with their own time", i+1, l)
		}
		if _, err := h.Since(t.Context(), services, at(0), now); err == nil {
			t.Error("history from a dead source without an error")
		}
	}
	later := first.Add(forgetAfter + time.Minute)
	_ = h.Prefetch(t.Context(), services, later)
	live, _ := observed(h, services, later)
	if l := live["shop/cart"]; l.Load.OK || len(l.CPU) != 0 {
		t.Errorf("samples are kept for ever: %+v", l)
	}
	p.intercept(nil)
	if err := h.Prefetch(t.Context(), services, later); err != nil {
		t.Fatal(err)
	}
	live, err := observed(h, services, later)
	if l := live["shop/cart"]; err != nil || !l.Load.Fresh(later, time.Minute) {
		t.Errorf("after the source came back: %+v, %v", l, err)
	}
}

// TestIntervals: the window of live rates is four of the intervals at which a source's samples come, lost scrapes included; before ten
// minutes were seen it holds for a minute; and a configured interval is not asked for.
func TestIntervals(t *testing.T) {
	long(t)
	for name, tc := range map[string]struct {
		script string
		at     time.Duration
		o      Options
		want   time.Duration
	}{
		"15 s":               {"load 15s\n" + `container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app"} 0+15x100`, 20 * time.Minute, Options{}, time.Minute},
		"30 s":               {"load 30s\n" + `container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app"} 0+30x60`, 20 * time.Minute, Options{}, 2 * time.Minute},
		"60 s":               {"load 1m\n" + `container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app"} 0+60x60`, 20 * time.Minute, Options{}, 4 * time.Minute},
		"60 s, a fifth lost": {"load 1m\n" + `container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app"} 0+60x3 _ 300+60x3 _ 600+60x3 _ 900+60x3 _ 1200+60x3`, 20 * time.Minute, Options{}, 5 * time.Minute},
		"too young to say":   {"load 15s\n" + `container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app"} 0+15x100`, 3 * time.Minute, Options{}, 4 * time.Minute},
		"stated":             {"load 15s\n" + `container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app"} 0+15x100`, 20 * time.Minute, Options{ScrapeInterval: 30 * time.Second}, 2 * time.Minute},
		"a rollout": {"load 15s\n" + `container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-old", container="app"} 0+15x60` + "\n" +
			`container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-older", container="app"} 0+15x50` + "\n" +
			`container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app"} 0+15x100`, 20 * time.Minute, Options{}, time.Minute},
		"longer than followed": {"load 5m\n" + `container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app"} 0+300x60`, 30 * time.Minute, Options{}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			h := newProm(t, tc.script, 1e6).history(tc.o)
			services := []fleet.Service{cart()}
			if err := h.Prefetch(t.Context(), services, at(tc.at)); err != nil {
				t.Fatal(err)
			}
			live, err := observed(h, services, at(tc.at))
			if got := live["shop/cart"].Window; err != nil || got != tc.want {
				t.Errorf("window %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

// TestIntervalsOfTeams: where namespaces are scraped at intervals of their own, each has the window that fits it, and every service is measured.
func TestIntervalsOfTeams(t *testing.T) {
	script := "load 15s\n"
	for _, ns := range []string{"shop", "pay", "slow"} {
		step, points := "0+15x100", ""
		if ns == "slow" {
			for i := 0; i <= 25; i++ {
				points += fmt.Sprintf("%d _x3 ", 60*i)
			}
			step = points
		}
		script += fmt.Sprintf("  container_cpu_usage_seconds_total{namespace=%q, pod=\"cart-7d-a\", container=\"app\"} %s\n", ns, step)
	}
	h := newProm(t, script, 1e6).history(Options{})
	var services []fleet.Service
	for _, ns := range []string{"shop", "pay", "slow"} {
		s := cart()
		s.ID, s.Target.Namespace, s.Pods = fleet.ServiceID(ns+"/cart"), ns, s.Pods[:1]
		s.Pods[0].Name.Namespace = ns
		services = append(services, s)
	}
	now := at(20*time.Minute + 45*time.Second) // the slow one's newest sample is 45 s old
	if err := h.Prefetch(t.Context(), services, now); err != nil {
		t.Fatal(err)
	}
	live, err := observed(h, services, now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range services {
		s, want := &services[i], time.Minute
		if s.Target.Namespace == "slow" {
			want = 4 * time.Minute
		}
		l := live[s.ID]
		if cpu := l.CPU[s.Pods[0].Name]; l.Window != want || !cpu.OK || cpu.Value != 1000 || !l.Load.OK {
			t.Errorf("%s: a window of %v, want %v; CPU %+v, load %+v", s.ID, l.Window, want, cpu, l.Load)
		}
	}
	if every, namespace := h.paces().cpu.slowest(); every != time.Minute || namespace != "slow" {
		t.Errorf("the slowest is %v in %q", every, namespace)
	}
}

// TestRestartedContainer: the dead container's series lives on for five minutes, since cAdvisor sends times of its own. The pod's sample is as
// new as that of the container that has a rate, its CPU is not the sum of both, and a container that was scraped once has none yet.
func TestRestartedContainer(t *testing.T) {
	p := newProm(t, `
load 15s
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app", id="/first"} 0+15x80
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app", id="/second"} _x81 0+30x20
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="migrate", id="/init"} 0+1x76
  container_memory_working_set_bytes{namespace="shop", pod="cart-7d-a", container="app", id="/first"} 100x80
  container_memory_working_set_bytes{namespace="shop", pod="cart-7d-a", container="app", id="/second"} _x81 80x20
`, 1e6)
	s := cart()
	s.Pods = s.Pods[:1]
	for after, want := range map[time.Duration]time.Duration{
		15 * time.Second: 0, 30 * time.Second: 30 * time.Second, 2 * time.Minute: 2 * time.Minute, 4 * time.Minute: 4 * time.Minute,
	} {
		h := p.history(Options{ScrapeInterval: 15 * time.Second})
		now := at(20*time.Minute + after)
		if err := h.Prefetch(t.Context(), []fleet.Service{s}, now); err != nil {
			t.Fatal(err)
		}
		live, err := observed(h, []fleet.Service{s}, now)
		got := live["shop/cart"].CPU[s.Pods[0].Name]
		if err != nil || !got.At.Equal(at(20*time.Minute+want)) || got.Value > 2100 {
			t.Errorf("%v after the restart: %+v, %v; want the sample of %v after it, of at most 2.1 cores", after, got, err, want)
		}
	}
	memory := p.evaluate(memoryByPod(scope{}, 5*time.Minute), at(21*time.Minute))
	if got := memory[`{namespace="shop", pod="cart-7d-a"}`]; got != 100 {
		t.Errorf("memory of %v bytes: want the larger of the container's two lives, not their sum", got)
	}
}

// TestEndedContainers: an init container that ended before the app began, and an ephemeral one that an operator ended, leave series that stop, with
// times of their own. The pod is as fresh as its app, the window stays that of the app's scrapes, and once no rate of theirs is left they cost nothing.
func TestEndedContainers(t *testing.T) {
	p := newProm(t, `
load 15s
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="migrate", id="/init"} 0+30x3
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app", id="/app"} _x4 0+15x120
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="debugger-x2x4z", id="/ephemeral"} _x60 0+30x12
`, 1e6)
	s := cart()
	s.Pods = s.Pods[:1]
	h := p.history(Options{})
	for now := at(3 * time.Minute); now.Before(at(25 * time.Minute)); now = now.Add(30 * time.Second) {
		if err := h.Prefetch(t.Context(), []fleet.Service{s}, now); err != nil {
			t.Fatal(err)
		}
		live, err := observed(h, []fleet.Service{s}, now)
		l := live["shop/cart"]
		got := l.CPU[s.Pods[0].Name]
		if err != nil || !got.OK || !got.At.Equal(now) {
			t.Errorf("at %v: %+v, %v; want a sample of now", now.Sub(at(0)), got, err)
		}
		// The ephemeral container ran from 15:00 to 18:00, and counts until the window has passed it. A window that begins at the first sample counts
		// up to one scrape of what it does not see.
		debugged := now.After(at(15*time.Minute)) && now.Before(at(19*time.Minute))
		if settled := now.After(at(11 * time.Minute)); settled && !debugged && (got.Value < 990 || got.Value > 1010 || l.Window != time.Minute) {
			t.Errorf("at %v: %v millicores over %v, want the app's 1000 over 1m", now.Sub(at(0)), got.Value, l.Window)
		}
	}
}

// TestScrapedTwice: a second job that scrapes the same kubelet does not double the CPU.
func TestScrapedTwice(t *testing.T) {
	p := newProm(t, `
load 15s
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app", job="kubelet"} 0+15x80
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app", job="cadvisor"} 0+15x80
`, 1e6)
	if got := p.evaluate(cpuByPod(scope{}, time.Minute), at(10*time.Minute))[`{namespace="shop", pod="cart-7d-a"}`]; !cmp.Equal(got, 1.0, approx) {
		t.Errorf("%v cores: want 1", got)
	}
}

func TestLiveBeforePrefetch(t *testing.T) {
	h := newProm(t, shop, 1e6).history(Options{})
	live, err := observed(h, []fleet.Service{cart()}, at(0))
	if err == nil || live["shop/cart"].Load.OK {
		t.Errorf("got %+v, %v; want nothing known and an error", live, err)
	}
}

// TestPartialAnswer: a federated source that answers in part must not look like a fall of the load.
func TestPartialAnswer(t *testing.T) {
	p := newProm(t, shop, 1e6)
	p.intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["store gateway 3 is unreachable"]}`)
		return true
	})
	err := p.history(Options{}).Prefetch(t.Context(), []fleet.Service{cart()}, at(12*time.Minute))
	if err == nil || !strings.Contains(err.Error(), "store gateway 3") {
		t.Errorf("got %v, want the warning as an error", err)
	}
}

// TestRawSamples: what is handed out is what was scraped, and the total is made of it afterwards: of a pod without a
// sample, one whose samples ended, one that became ready just now, and series that a pair of scrapers brings twice.
func TestRawSamples(t *testing.T) {
	series := func(pod, labels, values string) string {
		return fmt.Sprintf("  http_server_request_duration_seconds_count{namespace=\"shop\", pod=\"cart-7d-%s\"%s} %s\n",
			pod, labels, values)
	}
	const each100, each50, ended = "0+1500x120", "0+750x120", "0+900x60" // 100 and 50 a second until 30:00, 60 until 15:00
	old, now := at(15*time.Minute), at(21*time.Minute)
	known := func(v float64, at time.Time) fleet.Known[float64] { return fleet.KnownAt(v, at) }
	for name, c := range map[string]struct {
		script string
		young  bool // the third pod is ready since half a minute
		raw    map[string]fleet.Known[float64]
		want   fleet.Known[float64]
	}{
		"all measured": {series("a", "", each100) + series("b", "", each50) + series("c", "", each50), false,
			map[string]fleet.Known[float64]{"a": known(100, now), "b": known(50, now), "c": known(50, now)}, known(200, now)},
		"one without a sample": {series("a", "", each100) + series("b", "", each50), false,
			map[string]fleet.Known[float64]{"a": known(100, now), "b": known(50, now)}, known(250, now)},
		"one stale": {series("a", "", each100) + series("b", "", each50) + series("c", "", ended), false,
			map[string]fleet.Known[float64]{"a": known(100, now), "b": known(50, now), "c": known(60, old)}, known(250, now)},
		"one young": {series("a", "", each100) + series("b", "", each50), true,
			map[string]fleet.Known[float64]{"a": known(100, now), "b": known(50, now)}, known(150, now)},
		"a pair of scrapers": {series("a", `, prometheus_replica="0"`, each100) +
			series("a", `, prometheus_replica="1"`, each100) + series("b", "", each50), true,
			map[string]fleet.Known[float64]{"a": known(100, now), "b": known(50, now)}, known(150, now)},
		"most stale": {series("a", "", each100) + series("b", "", ended) + series("c", "", ended), false,
			map[string]fleet.Known[float64]{"a": known(100, now), "b": known(60, old), "c": known(60, old)}, known(220, old)},
	} {
		t.Run(name, func(t *testing.T) {
			h := newProm(t, "load 15s\n"+c.script, 1e6).history(Options{ScrapeInterval: 15 * time.Second})
			s := cart()
			s.Pods[2].Ready, s.Pods[2].ReadySince = true, fleet.KnownAt(at(0), at(0))
			if c.young {
				s.Pods[2].ReadySince = fleet.KnownAt(now.Add(-30*time.Second), now)
			}
			s.Metrics = s.Metrics[:1]
			services := []fleet.Service{s}
			for _, at := range []time.Time{old, now} {
				if err := h.Prefetch(t.Context(), services, at); err != nil {
					t.Fatal(err)
				}
			}
			samples, err := h.Live(t.Context(), services, now)
			if err != nil {
				t.Fatal(err)
			}
			raw := map[string]fleet.Known[float64]{}
			for pod, v := range samples.Requests {
				raw[strings.TrimPrefix(pod.Name, "cart-7d-")] = v
			}
			if d := cmp.Diff(c.raw, raw, approx); d != "" {
				t.Errorf("samples -want +got:\n%s", d)
			}
			live, err := observed(h, services, now)
			if err != nil {
				t.Fatal(err)
			}
			l := live["shop/cart"]
			if !cmp.Equal(l.Load, c.want, approx) || l.LoadSignal != portrait.Requests || l.Signals["rps"] != l.Load {
				t.Errorf("load %+v in %s, metric %+v; want %+v", l.Load, l.LoadSignal, l.Signals["rps"], c.want)
			}
		})
	}
}

// TestSamplesHoldWhileTheNextAreRead: what was handed out is not changed by the next reading.
func TestSamplesHoldWhileTheNextAreRead(t *testing.T) {
	h := newProm(t, shop, 1e6).history(Options{})
	services, first := []fleet.Service{cart()}, at(12*time.Minute)
	if err := h.Prefetch(t.Context(), services, first); err != nil {
		t.Fatal(err)
	}
	samples, err := h.Live(t.Context(), services, first)
	if err != nil {
		t.Fatal(err)
	}
	before := maps.Clone(samples.CPU)
	for _, now := range []time.Time{first.Add(time.Minute), first.Add(2 * forgetAfter)} {
		if err := h.Prefetch(t.Context(), services, now); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(before, samples.CPU); len(before) == 0 || d != "" {
		t.Errorf("-before +after:\n%s", d)
	}
}

// TestCauses: why the load of a service is missing is named, and what is well has no cause.
func TestCauses(t *testing.T) {
	for _, c := range []struct {
		name, series string
		at           time.Duration
		cause        loop.Cause
		says         string
	}{
		{"all is well", "0+30x80", 12 * time.Minute, "", ""},
		{"no series", "", 12 * time.Minute, loop.CauseNoSeries, "no series of CPU or requests"},
		{"the samples end", "0+30x40", 16 * time.Minute, loop.CauseSamplesTooOld, "of 00:10:00 UTC"},
		{"samples that are no numbers", strings.Repeat(" NaN", 80), 12 * time.Minute, loop.CauseNotFinite, "the rate of pod cart-7d-a is NaN"},
		{"infinite samples", strings.Repeat(" Inf", 80), 12 * time.Minute, loop.CauseNotFinite, "which no load is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := "load 15s\n  up{namespace=\"shop\"} 1x80\n"
			if c.series != "" {
				script += `  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app"} ` + c.series + "\n"
			}
			h := newProm(t, script, 1e6).history(Options{ScrapeInterval: 15 * time.Second})
			s := cart()
			s.Pods, s.Metrics = s.Pods[:1], nil
			services := []fleet.Service{s}
			turn := newTurns(h, services)
			for _, now := range []time.Time{at(c.at - 6*time.Minute), at(c.at), at(c.at)} { // a cycle reads for the next one
				turn.cycle(t, now)
			}
			if got := turn.report.QueryProblems["shop/cart"]; got.Cause != c.cause || !strings.Contains(got.Message, c.says) {
				t.Errorf("%+v: want %s, %q", got, c.cause, c.says)
			}
		})
	}
}
