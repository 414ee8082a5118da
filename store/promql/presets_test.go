package promql

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// buckets are the series of a classic histogram that counts at a rate: so many requests a scrape are at most as long as
// each bound.
func buckets(metric, labels string, counts map[string]int) string {
	var b strings.Builder
	most := 0
	for le, n := range counts {
		fmt.Fprintf(&b, "  %s_bucket{%s, le=%q} 0+%dx60\n", metric, labels, le, n)
		most = max(most, n)
	}
	fmt.Fprintf(&b, "  %s_bucket{%s, le=\"+Inf\"} 0+%dx60\n  %s_count{%s} 0+%dx60\n", metric, labels, most, metric, labels,
		most)
	return b.String()
}

// exporter is what a system exports of the Deployment shop/cart, next to what it exports of others, and how its own
// dashboards ask for it.
type exporter struct {
	preset, series string
	// histogram selects the buckets of cart, in milliseconds where ms is set; bad and total select the counters.
	histogram, bad, total string
	ms                    bool
}

// owners are pods of the Deployments shop/cart and shop/other.
var owners = "\nload 15s\n" + owned("pod", "cart-1-a", "ReplicaSet", "cart-1") + owned("pod", "cart-1-b", "ReplicaSet",
	"cart-1") +
	owned("replicaset", "cart-1", "Deployment", "cart") + owned("pod", "other-0", "StatefulSet", "other")

// owned says what owns an object, as kube-state-metrics does.
func owned(object, name, kind, owner string) string {
	return fmt.Sprintf("  kube_%[1]s_owner{namespace=\"shop\", %[1]s=%[2]q, owner_kind=%[3]q, owner_name=%[4]q, "+
		"owner_is_controller=\"true\", instance=\"ksm\"} 1x60\n", object, name, kind, owner)
}

var exporters = []exporter{
	{
		preset: "otel",
		series: buckets("http_server_request_duration_seconds", `namespace="shop", pod="cart-1-a", `+
			`instance="10.0.0.1:80", http_response_status_code="200"`, map[string]int{"0.1": 900, "0.25": 990, "1": 1000}) +
			buckets("http_server_request_duration_seconds", `namespace="shop", pod="cart-1-b", instance="10.0.0.2:80", `+
				`http_response_status_code="503"`, map[string]int{"0.1": 2, "0.25": 3, "1": 4}) +
			buckets("http_server_request_duration_seconds", `namespace="shop", pod="other-0", instance="10.0.0.3:80", `+
				`http_response_status_code="500"`, map[string]int{"0.1": 1, "0.25": 3, "1": 4000}),
		histogram: `http_server_request_duration_seconds_bucket{namespace="shop", pod=~"cart-.*"}`,
		bad: `http_server_request_duration_seconds_count{namespace="shop", pod=~"cart-.*", ` +
			`http_response_status_code=~"5.."}`,
		total: `http_server_request_duration_seconds_count{namespace="shop", pod=~"cart-.*"}`,
	}, {
		preset: "grpc-otel",
		series: buckets("rpc_server_duration_milliseconds", `namespace="shop", pod="cart-1-a", rpc_grpc_status_code="0"`,
			map[string]int{"10": 900, "25": 990, "100": 1000}) +
			buckets("rpc_server_duration_milliseconds", `namespace="shop", pod="cart-1-a", rpc_grpc_status_code="14"`,
				map[string]int{"10": 9, "25": 10, "100": 11}) +
			buckets("rpc_server_duration_milliseconds", `namespace="shop", pod="cart-1-b", rpc_grpc_status_code="5"`,
				map[string]int{"10": 20, "25": 20, "100": 20}),
		histogram: `rpc_server_duration_milliseconds_bucket{namespace="shop", pod=~"cart-.*"}`, ms: true,
		bad:   `rpc_server_duration_milliseconds_count{namespace="shop", pod=~"cart-.*", rpc_grpc_status_code="14"}`,
		total: `rpc_server_duration_milliseconds_count{namespace="shop", pod=~"cart-.*"}`,
	}, {
		preset: "grpc-otel", // the stable names, in seconds
		series: buckets("rpc_server_call_duration_seconds", `namespace="shop", pod="cart-1-a", rpc_response_status_code="OK"`,
			map[string]int{"0.01": 900, "0.025": 990, "0.1": 1000}) +
			buckets("rpc_server_call_duration_seconds", `namespace="shop", pod="cart-1-a", `+
				`rpc_response_status_code="UNAVAILABLE"`, map[string]int{"0.01": 9, "0.025": 10, "0.1": 11}) +
			buckets("rpc_server_call_duration_seconds", `namespace="shop", pod="cart-1-a", rpc_response_status_code="NOT_FOUND"`,
				map[string]int{"0.01": 9, "0.025": 10, "0.1": 11}),
		histogram: `rpc_server_call_duration_seconds_bucket{namespace="shop", pod=~"cart-.*"}`,
		bad: `rpc_server_call_duration_seconds_count{namespace="shop", pod=~"cart-.*", ` +
			`rpc_response_status_code="UNAVAILABLE"}`,
		total: `rpc_server_call_duration_seconds_count{namespace="shop", pod=~"cart-.*"}`,
	}, {
		preset: "spring",
		series: buckets("http_server_requests_seconds", `namespace="shop", pod="cart-1-a", uri="/cart", status="200", `+
			`outcome="SUCCESS"`, map[string]int{"0.1": 900, "0.25": 990, "1": 1000}) +
			buckets("http_server_requests_seconds", `namespace="shop", pod="cart-1-a", uri="/cart", status="500", `+
				`outcome="SERVER_ERROR"`, map[string]int{"0.1": 1, "0.25": 1, "1": 7}) +
			buckets("http_server_requests_seconds", `namespace="shop", pod="cart-1-a", uri="/actuator/health", `+
				`status="200", outcome="SUCCESS"`, map[string]int{"0.1": 70, "0.25": 80, "1": 90}),
		histogram: `http_server_requests_seconds_bucket{namespace="shop", pod=~"cart-.*", uri="/cart"}`,
		bad:       `http_server_requests_seconds_count{namespace="shop", pod=~"cart-.*", uri="/cart", status="500"}`,
		total:     `http_server_requests_seconds_count{namespace="shop", pod=~"cart-.*", uri="/cart"}`,
	}, {
		preset: "istio",
		series: istio("destination", "shop", "shop", `response_code="200", grpc_response_status=""`, 1000) +
			istio("destination", "shop", "shop", `response_code="503", grpc_response_status=""`, 3) +
			istio("destination", "shop", "shop", `response_code="200", grpc_response_status="14"`, 5) +
			istio("destination", "shop", "shop", `response_code="200", grpc_response_status="5"`, 7) +
			istio("source", "front", "shop", `response_code="200", grpc_response_status=""`, 50_000) +
			// Another tenant's pod exports series under the names of this one.
			istio("destination", "bad", "shop", `response_code="500", grpc_response_status=""`, 90_000),
		histogram: `istio_request_duration_milliseconds_bucket{reporter="destination", namespace="shop", ` +
			`destination_workload="cart", destination_workload_namespace="shop"}`, ms: true,
		bad: `istio_requests_total{reporter="destination", namespace="shop", destination_workload="cart", ` +
			`response_code="503"} or istio_requests_total{reporter="destination", namespace="shop", grpc_response_status="14"}`,
		total: `istio_requests_total{reporter="destination", namespace="shop", destination_workload="cart"}`,
	}, {
		preset: "linkerd",
		series: buckets("response_latency_ms", `namespace="shop", pod="cart-1-a", deployment="cart", `+
			`direction="inbound", status_code="200"`, map[string]int{"10": 900, "50": 990, "200": 1000}) +
			buckets("response_latency_ms", `namespace="shop", pod="cart-1-a", deployment="cart", direction="outbound", `+
				`status_code="200"`, map[string]int{"10": 0, "50": 0, "200": 5000}) +
			`  response_total{namespace="shop", pod="cart-1-a", direction="inbound", classification="success"} 0+995x60
  response_total{namespace="shop", pod="cart-1-a", direction="inbound", classification="failure"} 0+5x60
  response_total{namespace="shop", pod="cart-1-a", direction="outbound", classification="failure"} 0+500x60
`,
		histogram: `response_latency_ms_bucket{namespace="shop", deployment="cart", direction="inbound"}`, ms: true,
		bad:   `response_total{namespace="shop", pod=~"cart-.*", direction="inbound", classification="failure"}`,
		total: `response_total{namespace="shop", pod=~"cart-.*", direction="inbound"}`,
	}, {
		preset: "envoy-gateway",
		series: envoy("httproute/shop/cart/rule/0", 1000, 4) + envoy("httproute/shop/cart/rule/1", 300, 2) +
			envoy("httproute/shop/cart2/rule/0", 5000, 900) + envoy("httproute/bad/cart/rule/0", 7000, 900) +
			envoy("httproute/shop/other/rule/0", 70, 9) + envoy("prometheus_stats", 10, 1),
		histogram: `envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name=~"httproute/shop/cart/rule/.*"}`, ms: true,
		bad: `envoy_cluster_upstream_rq_xx{envoy_cluster_name=~"httproute/shop/cart/rule/.*", ` +
			`envoy_response_code_class="5"}`,
		total: `envoy_cluster_upstream_rq_xx{envoy_cluster_name=~"httproute/shop/cart/rule/.*"}`,
	}, {
		preset: "ingress-nginx",
		series: ingress(`exported_namespace="shop", exported_service="cart", namespace="ingress-nginx", `+
			`service="ingress-nginx-controller-metrics"`) + ingress(`exported_namespace="shop", exported_service="other", `+
			`namespace="ingress-nginx", service="ingress-nginx-controller-metrics"`),
		histogram: `nginx_ingress_controller_request_duration_seconds_bucket{exported_namespace="shop", ` +
			`exported_service="cart"}`,
		bad:   `nginx_ingress_controller_requests{exported_namespace="shop", exported_service="cart", status="502"}`,
		total: `nginx_ingress_controller_requests{exported_namespace="shop", exported_service="cart"}`,
	}, {
		preset: "ingress-nginx", // the scrape honors labels
		series: ingress(`namespace="shop", service="cart"`) + ingress(`namespace="bad", service="cart"`) +
			ingress(`namespace="shop", service="other"`),
		histogram: `nginx_ingress_controller_request_duration_seconds_bucket{namespace="shop", service="cart"}`,
		bad:       `nginx_ingress_controller_requests{namespace="shop", service="cart", status="502"}`,
		total:     `nginx_ingress_controller_requests{namespace="shop", service="cart"}`,
	},
}

func istio(reporter, scraped, namespace, labels string, n int) string {
	who := fmt.Sprintf(`reporter=%q, namespace=%q, pod="p", destination_workload="cart", `+
		`destination_workload_namespace=%q, %s`, reporter, scraped, namespace, labels)
	return buckets("istio_request_duration_milliseconds", who, map[string]int{"10": n * 7 / 10, "25": n * 9 / 10,
		"50": n * 99 / 100, "100": n}) +
		fmt.Sprintf("  istio_requests_total{%s} 0+%dx60\n", who, n)
}

func envoy(cluster string, n, bad int) string {
	who := fmt.Sprintf(`envoy_cluster_name=%q, namespace="envoy-gateway-system", pod="envoy-0"`, cluster)
	return buckets("envoy_cluster_upstream_rq_time", who, map[string]int{"10": n * 7 / 10, "25": n * 9 / 10,
		"50": n * 99 / 100, "100": n}) +
		fmt.Sprintf("  envoy_cluster_upstream_rq_xx{%[1]s, envoy_response_code_class=\"2\"} 0+%[2]dx60\n  "+
			"envoy_cluster_upstream_rq_xx{%[1]s, envoy_response_code_class=\"5\"} 0+%[3]dx60\n", who, n-bad, bad)
}

func ingress(who string) string {
	n := 1000 + 10*len(who)
	return buckets("nginx_ingress_controller_request_duration_seconds", who+`, ingress="shop", status="200"`,
		map[string]int{"0.1": n * 7 / 10, "0.25": n * 9 / 10, "1": n}) +
		fmt.Sprintf("  nginx_ingress_controller_requests{%[1]s, status=\"200\"} 0+%[2]dx60\n  "+
			"nginx_ingress_controller_requests{%[1]s, status=\"502\"} 0+3x60\n", who, n)
}

// measured is shop/cart with levels, and a neighbour that has the same ones.
func measured(levels ...fleet.Level) []fleet.Service {
	since := fleet.KnownAt(at(0), at(0))
	s := fleet.Service{ID: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, TargetKind: "Deployment",
		SLO: fleet.Levels(levels...),
		Pods: []fleet.Pod{{Name: fleet.Name{Namespace: "shop", Name: "cart-1-a"}, Ready: true, ReadySince: since},
			{Name: fleet.Name{Namespace: "shop", Name: "cart-1-b"}, Ready: true, ReadySince: since}}}
	return []fleet.Service{s}
}

func presetLevels(preset string) []fleet.Level {
	source := fleet.Source{Preset: preset}
	out := []fleet.Level{{Kind: fleet.LevelErrors, Name: fleet.LevelNameErrors, Limit: 0.01, Source: source}}
	for _, q := range []float64{0.5, 0.95, 0.99, 0.999, 0.9999} {
		out = append(out, fleet.Level{Kind: fleet.LevelLatency, Name: fleet.LatencyName(q), Quantile: q, Limit: 0.2,
			Source: source})
	}
	return out
}

// TestPresets: each preset reads of its system's series what a query by hand says of the workload, and nothing of its
// neighbours; live and in history, and also where more namespaces are asked about than a matcher names.
func TestPresets(t *testing.T) {
	for _, e := range exporters {
		t.Run(e.preset, func(t *testing.T) {
			p := newProm(t, owners+e.series, 1e6)
			services := measured(presetLevels(e.preset)...)
			now := at(12*time.Minute + 5*time.Second)
			h := p.history(Options{ScrapeInterval: 15 * time.Second})
			if err := h.Prefetch(t.Context(), services, now); err != nil {
				t.Fatal(err)
			}
			live, err := observed(h, services, now)
			if err != nil {
				t.Fatal(err)
			}
			got := live["shop/cart"].Levels
			check := func(name, query string) {
				t.Helper()
				want := p.evaluate(query, now)["{}"]
				if !(want > 0) {
					t.Fatalf("the query by hand says %v: %s", want, query)
				}
				if v := got[name]; !v.OK || math.Abs(v.Value/want-1) > 1e-9 || !v.At.Equal(at(12*time.Minute)) {
					t.Errorf("%s is %+v, by hand %v", name, v, want)
				}
			}
			for _, l := range services[0].SLO.Levels {
				if l.Kind != fleet.LevelLatency {
					continue
				}
				unit := 1
				if e.ms {
					unit = 1000
				}
				check(l.Name, fmt.Sprintf("histogram_quantile(%g, sum by (le) (rate(%s[2m]))) / %d", l.Quantile, e.histogram, unit))
			}
			bad := strings.ReplaceAll(e.bad, "} or ", "}[2m]) or rate(")
			check("errors", fmt.Sprintf("sum(rate(%s[2m])) / sum(rate(%s[2m]))", bad, e.total))
			load := p.evaluate(fmt.Sprintf("sum(rate(%s[2m]))", e.total), now)["{}"]
			if l := live["shop/cart"].Load; e.preset != "otel" && (math.Abs(l.Value/load-1) > 1e-9 ||
				live["shop/cart"].LoadSignal != "requests") {
				t.Errorf("the load is %+v in %s, by hand %v requests", l, live["shop/cart"].LoadSignal, load)
			}
			fits, err := h.Fits(t.Context(), services, now)
			if err != nil || len(fits["shop/cart"]) != 1 || fits["shop/cart"][0] != (Fit{e.preset, true, true}) {
				t.Errorf("fits: %v, %v", fits, err)
			}
			if ps := h.LevelProblems(); len(ps) > 0 {
				t.Errorf("problems %v", ps)
			}
			for _, sc := range []scope{{}, scopeIn([]string{"shop", "front"}), scope{}.but([]string{"bad"})} {
				for _, m := range measuresOf(services) {
					answer, err := h.instant(t.Context(), "", h.timed(m, sc), now)
					if v, ok := lookUp(&services[0], measuredOf(answer)); err != nil || !ok || !(v.Value > 0) {
						t.Errorf("%s within %v: %v, %v", m, sc, v, err)
					}
				}
			}
			none, err := h.instant(t.Context(), "", h.timed(measuresOf(services)[0], scopeIn([]string{"nowhere"})), now)
			if err != nil || len(none) > 0 {
				t.Errorf("of a namespace without series: %v, %v", none, err)
			}
		})
	}
}

// TestPresetsHaveATest: no preset is without a row of series, and the API's list of names is the table's.
func TestPresetsHaveATest(t *testing.T) {
	played := map[string]bool{}
	for _, e := range exporters {
		played[e.preset] = true
	}
	for _, p := range Presets() {
		if !played[p.Name] {
			t.Errorf("the preset %s is not played", p.Name)
		}
	}
	if len(played) != len(presets) {
		t.Errorf("%d presets are played, the table has %d", len(played), len(presets))
	}
	api, err := os.ReadFile("../../api/v1alpha1/slo.go")
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`Enum=(otel;.*)`).FindAllStringSubmatch(string(api), -1)
	if len(lists) != 2 {
		t.Errorf("the API has %d lists of presets, want those of latency and of errors", len(lists))
	}
	for _, list := range lists {
		names := strings.Split(list[1], ";")
		slices.Sort(names)
		if want := slices.Sorted(maps.Keys(played)); !slices.Equal(names, want) {
			t.Errorf("the API admits %v, the table has %v", names, want)
		}
	}
}

// TestNativeHistograms: presets and histograms of a service's own are read from native histograms, too. The arithmetic
// is by hand: half of the requests lie in (0.5, 1], half in (1, 2], so that on the exponential scale the 75th
// percentile is at the middle of (1, 2], the square root of 2.
func TestNativeHistograms(t *testing.T) {
	native := func(metric, labels string, n int) string {
		one := fmt.Sprintf("{{schema:0 count:%d sum:%d offset:0 buckets:[%d %d]}}", 2*n, 2*n, n, n)
		return fmt.Sprintf("  %s{%s} %s+%sx60\n", metric, labels, one, one)
	}
	own := fleet.Level{Kind: fleet.LevelLatency, Name: "latency-p75", Quantile: 0.75,
		Source: fleet.Source{Histogram: fleet.Histogram{Name: "lat", Unit: "s", Matchers: `route="/cart"`}}}
	dotted := own
	dotted.Source.Histogram = fleet.Histogram{Name: "lat.dur", Unit: "s"}
	otel := own
	otel.Source = fleet.Source{Preset: "otel"}
	linkerd := own
	linkerd.Source = fleet.Source{Preset: "linkerd"}
	p := newProm(t, owners+native("lat", `namespace="shop", pod="cart-1-a", route="/cart"`, 30)+native("lat",
		`namespace="shop", pod="cart-1-b", route="/cart"`, 60)+
		strings.ReplaceAll(native("N", `namespace="shop", pod="cart-1-a"`, 30), `N{`, `{"lat.dur", `)+
		native("http_server_request_duration_seconds", `namespace="shop", pod="cart-1-a", http_response_status_code="200"`,
			30)+
		native("http_server_request_duration_seconds", `namespace="shop", pod="cart-1-a", http_response_status_code="500"`,
			10)+
		native("response_latency_ms", `namespace="shop", pod="cart-1-a", direction="inbound"`, 30), 1e6)
	now := at(12 * time.Minute)
	for _, c := range []struct {
		level fleet.Level
		want  float64
	}{{own, math.Sqrt2}, {dotted, math.Sqrt2}, {otel, math.Sqrt2}, {linkerd, math.Sqrt2 / 1000}} {
		h := p.history(Options{ScrapeInterval: 15 * time.Second})
		services := measured(c.level, fleet.Level{Kind: fleet.LevelErrors, Name: "errors",
			Source: fleet.Source{Preset: "otel"}})
		if err := h.Prefetch(t.Context(), services, now); err != nil {
			t.Fatal(err)
		}
		live, err := observed(h, services, now)
		if err != nil {
			t.Fatal(err)
		}
		levels := live["shop/cart"].Levels
		if v := levels["latency-p75"]; !v.OK || math.Abs(v.Value/c.want-1) > 1e-6 || !v.At.Equal(now) {
			t.Errorf("%s%s: %+v, want %v; %v", c.level.Source.Preset, c.level.Source.Histogram.Name, v, c.want,
				h.Stats().Problems)
		}
		if v := levels["errors"]; math.Abs(v.Value-0.25) > 1e-9 {
			t.Errorf("errors of a native histogram: %+v, want a quarter", v)
		}
	}
}

// TestUtilization: memory is a share of what the same pods request, GPUs of their time.
func TestUtilization(t *testing.T) {
	series := func(metric, labels, value string) string {
		return fmt.Sprintf("  %s{%s} %sx60\n", metric, labels, value)
	}
	gpuOf := func(metric, namespace, pod, value string) string {
		return series(metric, fmt.Sprintf(`gpu="0", exported_namespace=%q, exported_pod=%q, namespace="gpu-operator", `+
			`pod="dcgm-0", instance="10.0.0.9:9400"`, namespace, pod), value)
	}
	memory := series("container_memory_working_set_bytes", `namespace="shop", pod="cart-1-a", container="app"`, "300e6") +
		series("container_memory_working_set_bytes", `namespace="shop", pod="cart-1-a", container="log"`, "50e6") +
		series("container_memory_working_set_bytes", `namespace="shop", pod="cart-1-b", container="app"`, "350e6") +
		series("kube_pod_container_resource_requests", `namespace="shop", pod="cart-1-a", container="app", `+
			`resource="memory", unit="byte"`, "400e6") +
		series("kube_pod_container_resource_requests", `namespace="shop", pod="cart-1-a", container="log", `+
			`resource="memory", unit="byte"`, "100e6") +
		series("kube_pod_container_resource_requests", `namespace="shop", pod="cart-1-a", container="app", `+
			`resource="cpu", unit="core"`, "1") +
		series("kube_pod_container_resource_requests", `namespace="shop", pod="cart-1-b", container="app", `+
			`resource="memory", unit="byte"`, "500e6") +
		// Of a pod that waits nothing is used.
		series("kube_pod_container_resource_requests", `namespace="shop", pod="cart-1-c", container="app", `+
			`resource="memory", unit="byte"`, "500e6")
	for _, c := range []struct {
		name, series string
		gpu          float64
	}{
		{"in percent", gpuOf(gpuUtil, "shop", "cart-1-a", "80") + gpuOf(gpuUtil, "shop", "cart-1-b", "40") + gpuOf(gpuUtil,
			"shop", "other-0", "99"), 0.6},
		{"as a share, which counts first", gpuOf(gpuActive, "shop", "cart-1-a", "0.9") + gpuOf(gpuUtil, "shop", "cart-1-a",
			"10"), 0.9},
		{"labels are honored", series(gpuUtil, `gpu="0", UUID="a", namespace="shop", pod="cart-1-a"`, "20") + series(gpuUtil,
			`gpu="1", UUID="b", namespace="shop", pod="cart-1-a"`, "60"), 0.4},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProm(t, owners+memory+c.series, 1e6)
			h := p.history(Options{ScrapeInterval: 15 * time.Second})
			services := measured(fleet.Level{Kind: fleet.LevelUtilization, Name: "memory", Limit: 0.8},
				fleet.Level{Kind: fleet.LevelUtilization, Name: "gpu", Limit: 0.8})
			now := at(12 * time.Minute)
			if err := h.Prefetch(t.Context(), services, now); err != nil {
				t.Fatal(err)
			}
			live, err := observed(h, services, now)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]float64{"memory": 0.7, "gpu": c.gpu} {
				if v := live["shop/cart"].Levels[name]; !v.OK || math.Abs(v.Value-want) > 1e-9 || cmp.Compare(v.At.Unix(),
					now.Unix()) != 0 {
					t.Errorf("%s is %+v, want %v", name, v, want)
				}
			}
		})
	}
}

// TestFits: a level that nothing measures says so, with the preset that would measure it; no requests are no problem.
func TestFits(t *testing.T) {
	mesh := `reporter="destination", namespace="shop", destination_workload="cart", destination_workload_namespace="shop"`
	idle := fmt.Sprintf("  istio_requests_total{%s, response_code=\"200\"} 7x60\n", mesh) +
		fmt.Sprintf("  istio_request_duration_milliseconds_bucket{%s, le=\"+Inf\"} 7x60\n", mesh)
	spring := `  http_server_requests_seconds_count{namespace="shop", pod="cart-1-a", uri="/", status="200"} 0+10x60
  http_server_requests_seconds{namespace="shop", pod="cart-1-a", uri="/", status="200", quantile="0.99"} 0.1x60
`
	p99 := func(preset string) fleet.Level {
		return fleet.Level{Kind: fleet.LevelLatency, Name: "latency-p99", Quantile: 0.99, Limit: 1,
			Source: fleet.Source{Preset: preset}}
	}
	query := fleet.Level{Kind: fleet.LevelThroughput, Name: "throughput", Source: fleet.Source{Query: "sum(nothing)"}}
	for _, c := range []struct {
		name, series string
		level        fleet.Level
		preset, say  string
	}{
		{"another preset", idle, p99("otel"), "istio", "no series of the preset otel " +
			"(http_server_request_duration_seconds) belong to it, and series of the preset istio do; to fix: set source: " +
			"{preset: istio}"},
		{"no requests", idle, p99("istio"), "", ""},
		{"no series at all", "", p99("linkerd"), "", "no series of the preset linkerd (response_latency_ms) belong to " +
			"it; to fix: export them, or state another source"},
		{"no buckets", spring, p99("spring"), "", "the preset spring counts its requests and has no histogram of " +
			"response times (http_server_requests_seconds); to fix: turn its buckets on"},
		{"a summary is no histogram", spring, p99("otel"), "", "export them, or state another source"},
		{"errors of a preset without buckets", spring, fleet.Level{Kind: fleet.LevelErrors, Name: "errors",
			Source: fleet.Source{Preset: "otel"}}, "spring", "set source: {preset: spring}"},
		{"a query", "", query, "", "no series of the last hour match nothing"},
		{"memory", "", fleet.Level{Kind: fleet.LevelUtilization, Name: "memory"}, "", "let its pods request memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProm(t, owners+c.series, 1e6)
			h := p.history(Options{ScrapeInterval: 15 * time.Second})
			services := measured(c.level)
			now := at(12 * time.Minute)
			for range 2 {
				if err := h.Prefetch(t.Context(), services, now); err != nil {
					t.Fatal(err)
				}
			}
			got := h.LevelProblems()["shop/cart"]
			if c.say == "" {
				if len(got) > 0 {
					t.Errorf("%+v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].Level != c.level.Name || got[0].Preset != c.preset || !strings.Contains(got[0].Message,
				c.say) {
				t.Errorf("%+v, want the preset %q and %q", got, c.preset, c.say)
			}
			asked := 0
			for _, q := range p.asked() {
				if strings.Contains(q, "springtide_is") && strings.Contains(q, `"requests"`) {
					asked++
				}
			}
			if asked != len(presets) {
				t.Errorf("%d questions about presets in two cycles, want %d", asked, len(presets))
			}
		})
	}
}
