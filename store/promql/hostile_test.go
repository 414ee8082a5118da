package promql

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
)

// neighbour is the namespace next to a hostile one, as its own exporters show it.
const neighbour = `
  kube_pod_owner{namespace="shop", pod="stock-0", owner_kind="StatefulSet", owner_name="stock", owner_is_controller="true", instance="ksm-0"} 1x60
  kube_pod_status_ready{namespace="shop", pod="stock-0", condition="true", instance="ksm-0"} 1x60
  container_cpu_usage_seconds_total{namespace="shop", pod="stock-0", container="db", cpu="total"} 0+3x60
  container_memory_working_set_bytes{namespace="shop", pod="stock-0", container="db"} 100e6x60
  http_server_request_duration_seconds_count{namespace="shop", pod="stock-0"} 0+150x60
  http_server_request_duration_seconds_bucket{namespace="shop", pod="stock-0", le="0.1"} 0+150x60
  http_server_request_duration_seconds_bucket{namespace="shop", pod="stock-0", le="+Inf"} 0+150x60
`

// TestHostileSeries: what one namespace writes into the source changes no series of another one: every rule is evaluated, and records of the neighbour what
// it records of it alone. Each pod of the hostile namespace belongs to one workload at most.
func TestHostileSeries(t *testing.T) {
	var bomb strings.Builder
	for i := range 300 {
		fmt.Fprintf(&bomb, "  container_cpu_usage_seconds_total{namespace=\"bad\", pod=\"p\", container=\"c%d\", cpu=\"total\", junk=\"%s\"} 0+1x60\n", i, strings.Repeat("x", i))
		fmt.Fprintf(&bomb, "  http_server_request_duration_seconds_bucket{namespace=\"bad\", pod=\"p\", le=\"%d\"} 0+1x60\n", i)
	}
	owner := func(pod, kind, name, controls, instance, values string) string {
		return fmt.Sprintf("  kube_pod_owner{namespace=\"bad\", pod=%q, owner_kind=%q, owner_name=%q, owner_is_controller=%q, instance=%q} %s\n", pod, kind, name, controls, instance, values)
	}
	replicaSet := func(kind, name, controls string) string {
		return fmt.Sprintf("  kube_replicaset_owner{namespace=\"bad\", replicaset=\"rs\", owner_kind=%q, owner_name=%q, owner_is_controller=%q, instance=\"ksm-0\"} 1x60\n", kind, name, controls)
	}
	each := func(value string) string { return strings.Repeat(" "+value, 60) }
	cases := []struct {
		name, series string
		// owner is the workload of the pod "p" of the hostile namespace; empty where any one is right.
		owner string
	}{
		{"a controller and a second owner", owner("p", "StatefulSet", "db", "true", "ksm-0", "1x60") + owner("p", "ConfigMap", "aaa", "false", "ksm-0", "1x60"), "db"},
		{"a ReplicaSet with two owners", owner("p", "ReplicaSet", "rs", "true", "ksm-0", "1x60") + replicaSet("Deployment", "web", "true") + replicaSet("Rollout", "aaa", "false"), "web"},
		{"a pod of two ReplicaSets, one of them a Deployment's", owner("p", "ReplicaSet", "rs", "true", "ksm-0", "1x60") + owner("p", "ReplicaSet", "other", "false", "ksm-0", "1x60") + replicaSet("Deployment", "web", "true"), "web"},
		{"no owner is the controller", owner("p", "ConfigMap", "a", "false", "ksm-0", "1x60") + owner("p", "ConfigMap", "b", "false", "ksm-0", "1x60"), "none"},
		{"made again under its name by another owner, while one of two kube-state-metrics is gone",
			owner("p", "StatefulSet", "old", "true", "ksm-1", "1x55 stale") + owner("p", "StatefulSet", "young", "true", "ksm-0", "_x56 1x4"), "young"},
		{"forged controllers", owner("p", "StatefulSet", "a", "true", "ksm-0", "1x60") + owner("p", "DaemonSet", "b", "true", "forged", each("NaN")) +
			owner("p", "ReplicaSet", "rs", "true", "forged", "7x60") + replicaSet("Deployment", "web", "true") + replicaSet("Deployment", "web2", "true"), ""},
		{"negative, infinite and missing numbers", owner("p", "StatefulSet", "db", "true", "ksm-0", "1x60") + `  kube_pod_status_ready{namespace="bad", pod="p", condition="true", instance="ksm-0"}` + each("-Inf") + `
  container_cpu_usage_seconds_total{namespace="bad", pod="p", container="a", cpu="total"}` + each("Inf") + `
  container_memory_working_set_bytes{namespace="bad", pod="p", container="a"}` + each("NaN") + `
  http_server_request_duration_seconds_count{namespace="bad", pod="p"} -1e300-1e300x60
`, "db"},
		{"a histogram without +Inf", owner("p", "StatefulSet", "db", "true", "ksm-0", "1x60") + `  http_server_request_duration_seconds_bucket{namespace="bad", pod="p", le="0.1"} 0+150x60
  http_server_request_duration_seconds_bucket{namespace="bad", pod="p", le="banana"} 0+150x60
`, "db"},
		{"label bombs", owner("p", "StatefulSet", "db", "true", "ksm-0", "1x60") + bomb.String(), "db"},
	}
	alone := newProm(t, "load 15s"+neighbour, 1e6)
	alone.record(at(10*time.Minute), at(15*time.Minute))
	records := func(p *prom, name string) map[string]float64 {
		return p.evaluate(fmt.Sprintf(`{__name__=%q, namespace="shop"}`, name), at(15*time.Minute))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newProm(t, "load 15s"+neighbour+c.series, 1e6)
			p.record(at(10*time.Minute), at(15*time.Minute))
			for _, r := range recordingRules() {
				want, got := records(alone, r.record), records(p, r.record)
				if len(want) == 0 || !maps.Equal(got, want) {
					t.Errorf("%s of the neighbour is %v, alone %v", r.record, got, want)
				}
			}
			owners := p.evaluate(recordedOwner+`{namespace="bad", pod="p"}`, at(15*time.Minute))
			var want int
			if c.owner != "none" {
				want = 1
			}
			if len(owners) != want {
				t.Errorf("the pod belongs to %v, want %d workload", owners, want)
			}
			for series, v := range owners {
				if v != 1 || c.owner != "" && !strings.Contains(series, fmt.Sprintf("workload=%q", c.owner)) {
					t.Errorf("the pod belongs to %s at %v, want %s at 1", series, v, c.owner)
				}
			}
		})
	}
}

// TestScrapersCountOnce: who scrapes an exporter twice does not double its load, in what is recorded and in what is read raw, and two ports of a pod are two sources.
func TestScrapersCountOnce(t *testing.T) {
	const owner = `
load 15s
  kube_pod_owner{namespace="shop", pod="stock-0", owner_kind="StatefulSet", owner_name="stock", owner_is_controller="true", instance="ksm-0"} 1x60
`
	requests := func(labels string, rate int) string {
		return fmt.Sprintf("  http_server_request_duration_seconds_count{namespace=\"shop\", pod=\"stock-0\", %s} 0+%dx60\n", labels, 15*rate)
	}
	for _, c := range []struct {
		name, series string
		want         float64
	}{
		{"one job", requests(`job="a", instance="10.0.0.1:80", method="GET"`, 10) + requests(`job="a", instance="10.0.0.1:80", method="POST"`, 5), 15},
		{"two jobs", requests(`job="a", instance="10.0.0.1:80"`, 10) + requests(`job="b", instance="10.0.0.1:80"`, 10), 10},
		{"a pair of servers", requests(`prometheus_replica="0", instance="10.0.0.1:80"`, 10) + requests(`prometheus_replica="1", instance="10.0.0.1:80"`, 9), 10},
		{"a ServiceMonitor and a PodMonitor", requests(`job="a", service="stock", endpoint="http", instance="10.0.0.1:80"`, 10) + requests(`job="m/stock", endpoint="web", instance="10.0.0.1:80"`, 10), 10},
		{"two ports", requests(`job="a", instance="10.0.0.1:80"`, 10) + requests(`job="a", instance="10.0.0.1:81"`, 10), 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProm(t, owner+c.series, 1e6)
			p.record(at(10*time.Minute), at(12*time.Minute))
			for _, query := range []string{recordedLoad, joined(loadByPod(scope{}, ruleWindow), ownerExpr(scope{}), "")} {
				got := p.evaluate("sum("+query+")", at(12*time.Minute))
				if v := got["{}"]; v < 0.99*c.want || v > 1.01*c.want {
					t.Errorf("%s is %v, want %v", query, v, c.want)
				}
			}
		})
	}
}

// TestRefusedNamespace: where the source cannot answer for one namespace, as its engine's limit is reached there, the services of all others have their metrics
// and their history, the source is not called broken, and those of the namespace say why they have none. With 60 namespaces questions are about the whole fleet.
func TestRefusedNamespace(t *testing.T) {
	for _, c := range []struct {
		namespaces, containers int
		interval               time.Duration // 0 is learned
	}{{1, 1000, 15 * time.Second}, {3, 1000, 15 * time.Second}, {60, 1000, 15 * time.Second}, {3, 2500, 0}, {60, 2500, 0}} {
		namespaces := c.namespaces
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			script, services := oneBadTenant(c.containers, namespaces)
			p := newProm(t, script, 3000)
			// Two CPU samples a cell of an hour of one namespace's raw history are few, those of a thousand containers are too many.
			h := p.history(Options{Step: 5 * time.Minute, ScrapeInterval: c.interval})
			now := at(15 * time.Minute)
			if err := h.Prefetch(t.Context(), services, now); err != nil {
				t.Fatalf("the source is called broken: %v", err)
			}
			live, err := observed(h, services, now)
			if err != nil {
				t.Fatal(err)
			}
			for i := range services {
				id := services[i].ID
				if strings.Contains(h.QueryProblems()[id].Message, p.URL) {
					t.Errorf("tenants read the source's address: %s", h.QueryProblems()[id])
				}
				if bad := id == "bad/db"; live[id].Load.OK == bad || (h.QueryProblems()[id].Cause == loop.CauseNamespaceRefused) != bad {
					t.Errorf("%s has the load %v and the problem %q", id, live[id].Load, h.QueryProblems()[id])
				}
			}
			if asked := len(p.asked()); asked > 150 {
				t.Errorf("%d questions in one cycle", asked)
			}
			batches, err := h.Since(t.Context(), services, at(0), now)
			var unread *loop.UnreadError
			if !errors.As(err, &unread) || len(unread.Services) != 1 || unread.Services["bad/db"] == nil {
				t.Fatalf("history says %v, want that the services of one namespace could not be read", err)
			}
			n := 0
			for id, b := range batches {
				if n++; b.CPU.Known() == 0 || id == "bad/db" {
					t.Errorf("history of %s has %d known values", id, b.CPU.Known())
				}
			}
			if n != namespaces {
				t.Errorf("history of %d services, want %d", n, namespaces)
			}
			// A reading of that namespace alone, as of a service that is new there.
			if _, err := h.Since(t.Context(), services[:1], at(0), now); !errors.As(err, &unread) || unread.Services["bad/db"] == nil {
				t.Errorf("its history alone says %v", err)
			}
		})
	}
}

// oneBadTenant is a service of one pod in the namespace bad, with some containers, and one of one container in each of some other namespaces, for twenty minutes.
func oneBadTenant(containers, good int) (script string, services []fleet.Service) {
	var b strings.Builder
	b.WriteString("load 15s\n")
	workload := func(namespace string, containers int) {
		fmt.Fprintf(&b, "  kube_pod_owner{namespace=%q, pod=\"db-0\", owner_kind=\"StatefulSet\", owner_name=\"db\", owner_is_controller=\"true\", instance=\"ksm-0\"} 1x80\n", namespace)
		for k := range containers {
			fmt.Fprintf(&b, "  container_cpu_usage_seconds_total{namespace=%q, pod=\"db-0\", container=\"c%d\", cpu=\"total\"} 0+3x80\n", namespace, k)
		}
		services = append(services, fleet.Service{ID: fleet.ServiceID(namespace + "/db"), Target: fleet.Name{Namespace: namespace, Name: "db"}, TargetKind: "StatefulSet",
			Pods: []fleet.Pod{{Name: fleet.Name{Namespace: namespace, Name: "db-0"}, Ready: true}}})
	}
	workload("bad", containers)
	for i := range good {
		workload(fmt.Sprintf("good-%02d", i), 1)
	}
	return b.String(), services
}
