package promql

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

var update = flag.Bool("update", false, "rewrite generated files and expected output")

func TestRulesFile(t *testing.T) {
	want := Rules()
	if *update {
		if err := os.WriteFile(rulesFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what Rules() renders; run go test ./store/promql -run TestRulesFile -update\n%s", rulesFile, cmp.Diff(string(got), string(want)))
	}
	groups, errs := rulefmt.Parse(got, false, model.LegacyValidation, parser.NewParser(parser.Options{}), promslog.NewNopLogger())
	if len(errs) > 0 {
		t.Fatalf("%s: %v", rulesFile, errs)
	}
	if n := len(groups.Groups); n != 1 || time.Duration(groups.Groups[0].Interval) != time.Minute {
		t.Errorf("want one group, evaluated every minute, in the order of its rules; got %d", n)
	}
}

// shop is a small fleet under the names of real exporters, scraped every 15 s for an hour: a Deployment with two ready pods and one that
// is not ready, a StatefulSet, and a bare pod. kube-state-metrics runs twice, as it may in a user's cluster.
const shop = `
load 15s
  kube_pod_owner{namespace="shop", pod="cart-7d-a", owner_kind="ReplicaSet", owner_name="cart-7d", owner_is_controller="true", instance="ksm-0"} 1x240
  kube_pod_owner{namespace="shop", pod="cart-7d-a", owner_kind="ReplicaSet", owner_name="cart-7d", owner_is_controller="true", instance="ksm-1"} 1x240
  kube_pod_owner{namespace="shop", pod="cart-7d-b", owner_kind="ReplicaSet", owner_name="cart-7d", owner_is_controller="true", instance="ksm-0"} 1x240
  kube_pod_owner{namespace="shop", pod="cart-7d-c", owner_kind="ReplicaSet", owner_name="cart-7d", owner_is_controller="true", instance="ksm-0"} 1x240
  kube_pod_owner{namespace="shop", pod="stock-0", owner_kind="StatefulSet", owner_name="stock", owner_is_controller="true", instance="ksm-0"} 1x240
  kube_pod_owner{namespace="shop", pod="alone", owner_kind="<none>", owner_name="<none>", owner_is_controller="<none>", instance="ksm-0"} 1x240
  kube_replicaset_owner{namespace="shop", replicaset="cart-7d", owner_kind="Deployment", owner_name="cart", owner_is_controller="true", instance="ksm-0"} 1x240
  kube_replicaset_owner{namespace="shop", replicaset="cart-7d", owner_kind="Deployment", owner_name="cart", owner_is_controller="true", instance="ksm-1"} 1x240
  kube_pod_status_ready{namespace="shop", pod="cart-7d-a", condition="true", instance="ksm-0"} 1x240
  kube_pod_status_ready{namespace="shop", pod="cart-7d-a", condition="true", instance="ksm-1"} 1x240
  kube_pod_status_ready{namespace="shop", pod="cart-7d-b", condition="true", instance="ksm-0"} 1x240
  kube_pod_status_ready{namespace="shop", pod="cart-7d-c", condition="true", instance="ksm-0"} 0x240
  kube_pod_status_ready{namespace="shop", pod="cart-7d-c", condition="false", instance="ksm-0"} 1x240
  kube_pod_status_ready{namespace="shop", pod="stock-0", condition="true", instance="ksm-0"} 1x240
  kube_pod_start_time{namespace="shop", pod="cart-7d-a", instance="ksm-0"} 600x240
  kube_pod_status_ready_time{namespace="shop", pod="cart-7d-a", instance="ksm-0"} _x43 642x197
  kube_pod_start_time{namespace="shop", pod="cart-7d-b", instance="ksm-0"} 30x240
  kube_pod_status_ready_time{namespace="shop", pod="cart-7d-b", instance="ksm-0"} 61x240
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app", cpu="total"} 0+30x240
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="proxy", cpu="total"} 0+7.5x240
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="", cpu="total"} 0+37.5x240
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="POD", cpu="total"} 0+1x240
  container_memory_working_set_bytes{namespace="shop", pod="cart-7d-a", container="app"} 300e6x240
  container_memory_working_set_bytes{namespace="shop", pod="cart-7d-a", container="proxy"} 50e6x240
  container_memory_working_set_bytes{namespace="shop", pod="cart-7d-a", container=""} 350e6x240
  container_memory_working_set_bytes{namespace="shop", pod="cart-7d-b", container="app"} 280e6x46 900e6 280e6x193
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-b", container="app", cpu="total"} 0+15x120 0+15x119
  container_cpu_usage_seconds_total{namespace="shop", pod="stock-0", container="db", cpu="total"} 0+3x240
  http_server_request_duration_seconds_count{namespace="shop", pod="cart-7d-a", http_request_method="GET"} 0+1500x240
  http_server_request_duration_seconds_count{namespace="shop", pod="cart-7d-a", http_request_method="POST"} 0+150x240
  http_server_request_duration_seconds_count{namespace="shop", pod="cart-7d-b", http_request_method="GET"} 0+1350x240
  http_server_request_duration_seconds_bucket{namespace="shop", pod="cart-7d-a", le="0.1"} 0+1500x240
  http_server_request_duration_seconds_bucket{namespace="shop", pod="cart-7d-a", le="0.2"} 0+1650x240
  http_server_request_duration_seconds_bucket{namespace="shop", pod="cart-7d-a", le="+Inf"} 0+1650x240
  http_server_request_duration_seconds_bucket{namespace="shop", pod="cart-7d-b", le="0.1"} 0+1350x240
  http_server_request_duration_seconds_bucket{namespace="shop", pod="cart-7d-b", le="0.2"} 0+1350x240
  http_server_request_duration_seconds_bucket{namespace="shop", pod="cart-7d-b", le="+Inf"} 0+1350x240
  requests_in_queue{namespace="shop", queue="a"} 12x240
  requests_in_queue{namespace="shop", queue="b"} 30x240
  requests_in_queue{namespace="bank", queue="c"} 5000x240
`

// TestRules evaluates the shipped rules over raw exporter series. Every number is worked out by hand from the script above.
func TestRules(t *testing.T) {
	p := newProm(t, shop, 1e6)
	p.record(at(10*time.Minute), at(12*time.Minute))
	for query, want := range map[string]map[string]float64{
		recordedOwner: {
			`{__name__="springtide:pod_workload:info", namespace="shop", pod="cart-7d-a", workload="cart", workload_kind="Deployment"}`: 1,
			`{__name__="springtide:pod_workload:info", namespace="shop", pod="cart-7d-b", workload="cart", workload_kind="Deployment"}`: 1,
			`{__name__="springtide:pod_workload:info", namespace="shop", pod="cart-7d-c", workload="cart", workload_kind="Deployment"}`: 1,
			`{__name__="springtide:pod_workload:info", namespace="shop", pod="stock-0", workload="stock", workload_kind="StatefulSet"}`: 1,
		},
		recordedReady: {
			`{__name__="springtide:workload_ready_replicas:sum", namespace="shop", workload="cart", workload_kind="Deployment"}`:   2,
			`{__name__="springtide:workload_ready_replicas:sum", namespace="shop", workload="stock", workload_kind="StatefulSet"}`: 1,
		},
		// (30 + 7.5 + 15) s of CPU in 15 s: the pod's own cgroup and the pause container do not count again.
		recordedCPU: {
			`{__name__="springtide:workload_cpu_usage_cores:sum", namespace="shop", workload="cart", workload_kind="Deployment"}`:   3.5,
			`{__name__="springtide:workload_cpu_usage_cores:sum", namespace="shop", workload="stock", workload_kind="StatefulSet"}`: 0.2,
		},
		// The larger of two replicas, all its containers; the spike of the other at 11m45s counts while the window holds it.
		recordedMemory: {
			`{__name__="springtide:workload_memory_working_set_bytes:max", namespace="shop", workload="cart", workload_kind="Deployment"}`: 900e6,
		},
		recordedLoad: {
			`{__name__="springtide:workload_http_requests:rate2m", namespace="shop", workload="cart", workload_kind="Deployment"}`: 200,
		},
		// 190 of 200 requests take up to 0.1 s; the 99th percentile is 8/10 into the bucket from 0.1 to 0.2.
		recordedP99: {
			`{__name__="springtide:workload_latency_seconds:p99", namespace="shop", workload="cart", workload_kind="Deployment"}`: 0.18,
		},
	} {
		got := p.evaluate(query, at(12*time.Minute))
		if d := cmp.Diff(want, got, approx); d != "" {
			t.Errorf("%s (-want +got):\n%s", query, d)
		}
	}
}

// TestRawEqualsRecorded: a cluster without the rules sees what one with them sees.
func TestRawEqualsRecorded(t *testing.T) {
	p := newProm(t, shop, 1e6)
	p.record(at(10*time.Minute), at(12*time.Minute))
	for recorded, raw := range map[string]string{
		recordedCPU:    joined(cpuByPod(scope{}, ruleWindow), ownerExpr(scope{}), ""),
		recordedLoad:   joined(loadByPod(scope{}, ruleWindow), ownerExpr(scope{}), ""),
		recordedReady:  joined(readyByPod(scope{}), ownerExpr(scope{}), ""),
		recordedMemory: joinedBy("max", memoryByPod(scope{}, ruleWindow), ownerExpr(scope{}), ""),
	} {
		want := p.evaluate(`sum by (namespace, workload_kind, workload) (`+recorded+`)`, at(12*time.Minute))
		got := p.evaluate(raw, at(12*time.Minute))
		if d := cmp.Diff(want, got, approx); d != "" || len(got) == 0 {
			t.Errorf("%s (-recorded +raw):\n%s", recorded, d)
		}
	}
}

// TestRulesAtEveryInterval: the shipped rules record a rate at intervals of 15, 30 and 60 s, a fifth of the scrapes lost: a pod without two samples in
// two minutes is read over five. No workload may go missing in any minute, least of all in one whose scrape of kube-state-metrics was lost: that ends
// all series of the target, as a stale marker does here. cAdvisor sends times of its own, so its lost scrapes are gaps.
func TestRulesAtEveryInterval(t *testing.T) {
	long(t)
	for _, step := range []int{15, 30, 60} {
		for _, lossy := range []bool{false, true} {
			cpu, info := "", ""
			for i := 0; i <= 20*60/step; i++ {
				if lossy && i%5 == 4 {
					cpu, info = cpu+" _", info+" stale"
					continue
				}
				cpu, info = fmt.Sprintf("%s %d", cpu, i*step), info+" 1"
			}
			p := newProm(t, fmt.Sprintf(`
load %ds
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-a", container="app"}%s
  kube_pod_owner{namespace="shop", pod="cart-7d-a", owner_kind="ReplicaSet", owner_name="cart-7d"}%s
  kube_replicaset_owner{namespace="shop", replicaset="cart-7d", owner_kind="Deployment", owner_name="cart"}%s
  kube_pod_status_ready{namespace="shop", pod="cart-7d-a", condition="true"}%s
`, step, cpu, info, info, info), 1e6)
			p.record(at(10*time.Minute), at(19*time.Minute))
			for m := 10; m <= 19; m++ {
				for _, record := range []string{recordedCPU, recordedReady} {
					// Recorded series are looked at as of their minute: in the next one a gap would be filled by what stood before.
					got := p.evaluate(record+" and timestamp("+record+") == time()", at(time.Duration(m)*time.Minute))
					series := fmt.Sprintf(`{__name__=%q, namespace="shop", workload="cart", workload_kind="Deployment"}`, record)
					// Where the first or last scrape of a window is lost, rate() does not stretch over the whole of it.
					least := 0.99
					if lossy && record == recordedCPU {
						least = 0.6
					}
					if v := got[series]; v < least || v > 1.01 {
						t.Errorf("scrapes every %d s, some lost %v, minute %d: %s is %v, want 1: %v", step, lossy, m, record, v, got)
					}
				}
			}
		}
	}
}

// TestEndedPodsHaveNoOwner: what a lost scrape of one kube-state-metrics hides is still known, what a scrape shows to be gone is not.
func TestEndedPodsHaveNoOwner(t *testing.T) {
	p := newProm(t, `
load 15s
  kube_pod_owner{namespace="shop", pod="ended", owner_kind="StatefulSet", owner_name="stock", instance="ksm-0"} 1x40 stale
  kube_pod_owner{namespace="shop", pod="runs", owner_kind="StatefulSet", owner_name="stock", instance="ksm-0"} 1x41
  kube_pod_owner{namespace="shop", pod="hidden", owner_kind="StatefulSet", owner_name="stock", instance="ksm-1"} 1x40 stale
`, 1e6)
	got := p.evaluate(ownerExpr(scope{}), at(41*15*time.Second))
	owned := func(pod string) string {
		return fmt.Sprintf(`{namespace="shop", pod=%q, workload="stock", workload_kind="StatefulSet"}`, pod)
	}
	if want := map[string]float64{owned("runs"): 1, owned("hidden"): 1}; !maps.Equal(got, want) {
		t.Errorf("owners %v, want %v", got, want)
	}
}
