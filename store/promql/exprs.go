package promql

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
)

// The recorded series. Those of workloads carry the labels namespace, workload_kind and workload.
const (
	recordedOwner   = "springtide:pod_workload:info"
	recordedCPU     = "springtide:workload_cpu_usage_cores:sum"
	recordedLoad    = "springtide:workload_http_requests:rate2m"
	recordedReady   = "springtide:workload_ready_replicas:sum"
	recordedMemory  = "springtide:workload_memory_working_set_bytes:max"
	recordedBuckets = "springtide:workload_http_request_duration_seconds_bucket:rate2m"
	recordedP99     = "springtide:workload_latency_seconds:p99"
	recordedPrefix  = "springtide:"
)

const (
	// liveWindow is the window of live rates. It must hold two scrapes, so it suits scrape intervals of up to 30 s; a longer one would
	// answer a flood later.
	liveWindow = time.Minute
	// ruleWindow is the window of recorded rates: two scrapes at the slowest usual interval of a minute.
	ruleWindow = 2 * time.Minute
)

// scope limits selectors to some namespaces. The zero scope is the whole fleet.
type scope struct{ matcher string }

// maxScoped is how many namespaces are named in a matcher. Beyond it, one alternation over most of the fleet costs Prometheus more than
// it saves.
const maxScoped = 50

// scopeOf is the scope of the namespaces that the services' targets live in.
func scopeOf(services []fleet.Service) scope {
	names := namespacesOf(services)
	if len(names) == 0 || len(names) > maxScoped {
		return scope{}
	}
	return scope{matcher: "namespace=~" + strconv.Quote(strings.Join(names, "|"))}
}

// sel renders a selector of the metric with the given matchers and the scope's.
func (s scope) sel(metric string, matchers ...string) string {
	if s.matcher != "" {
		matchers = append(matchers, s.matcher)
	}
	if len(matchers) == 0 {
		return metric
	}
	return metric + "{" + strings.Join(matchers, ", ") + "}"
}

// byWorkload are the labels that name a workload.
const byWorkload = "namespace, workload_kind, workload"

// ownerExpr maps each pod to its workload: through the ReplicaSet to what owns that, else to the pod's own owner. kube-state-metrics
// writes "<none>" (older versions: nothing) for no owner. Aggregations by max make it hold with several kube-state-metrics replicas.
func ownerExpr(s scope) string {
	return fmt.Sprintf(`max by (namespace, pod, workload_kind, workload) (
  label_replace(
    label_replace(
        label_replace(%[1]s, "replicaset", "$1", "owner_name", "(.+)")
      * on (namespace, replicaset) group_left (owner_kind, owner_name)
        topk by (namespace, replicaset) (1, max by (namespace, replicaset, owner_kind, owner_name) (%[2]s))
      or on (namespace, pod)
        %[3]s,
      "workload_kind", "$1", "owner_kind", "(.+)"
    ),
    "workload", "$1", "owner_name", "(.+)"
  )
)`,
		s.sel("kube_pod_owner", `owner_kind="ReplicaSet"`),
		s.sel("kube_replicaset_owner", `owner_kind!~"|<none>"`),
		s.sel("kube_pod_owner", `owner_kind!~"|<none>"`))
}

// joined brings an expression by pod to workloads, as the sum over the pods. owner is ownerExpr, or the series recorded from it.
func joined(byPod, owner, extra string) string { return joinedBy("sum", byPod, owner, extra) }

// joinedBy is joined with another aggregation than the sum.
func joinedBy(aggregation, byPod, owner, extra string) string {
	return fmt.Sprintf(`%s by (%s%s) (
    %s
  * on (namespace, pod) group_left (workload_kind, workload)
    %s
)`, aggregation, byWorkload, extra, indent(byPod), indent(owner))
}

// cpuByPod is the CPU in use, in cores. Series without a container are the pod's and the node's cgroups, which count it again.
func cpuByPod(s scope, window time.Duration) string {
	return fmt.Sprintf("sum by (namespace, pod) (rate(%s[%s]))", cpuCounter(s), promDuration(window))
}

func cpuCounter(s scope) string {
	return s.sel("container_cpu_usage_seconds_total", `container!=""`, `container!="POD"`)
}

// memoryByPod is the largest memory of a pod within a window, in bytes: the working set, which is what the kernel cannot take back and what
// the kubelet evicts by.
func memoryByPod(s scope, window time.Duration) string {
	return fmt.Sprintf("sum by (namespace, pod) (max_over_time(%s[%s]))",
		s.sel("container_memory_working_set_bytes", `container!=""`, `container!="POD"`), promDuration(window))
}

// loadByPod is the load in requests per second.
func loadByPod(s scope, window time.Duration) string {
	return fmt.Sprintf("sum by (namespace, pod) (rate(%s[%s]))", loadCounter(s), promDuration(window))
}

func loadCounter(s scope) string { return s.sel("http_server_request_duration_seconds_count") }

// bucketsByPod is the rate of requests by latency bucket.
func bucketsByPod(s scope, window time.Duration) string {
	return fmt.Sprintf("sum by (namespace, pod, le) (rate(%s[%s]))", s.sel("http_server_request_duration_seconds_bucket"), promDuration(window))
}

// readyByPod is 1 for each ready pod.
func readyByPod(s scope) string {
	return fmt.Sprintf("max by (namespace, pod) (%s)", s.sel("kube_pod_status_ready", `condition="true"`))
}

// sampledByPod is the time at which a counter was scraped last. The oldest of a pod's series counts.
func sampledByPod(counter string) string {
	return fmt.Sprintf("min by (namespace, pod) (timestamp(%s))", counter)
}

// startUpByPod is the time in seconds from the start on its machine to Ready of each pod that became ready in the window that ends now. What it
// waited for a machine is left out: room that is missing once would make every later lead longer.
func startUpByPod(s scope, window time.Duration) string {
	ready := fmt.Sprintf("max by (namespace, pod) (%s)", s.sel("kube_pod_status_ready_time"))
	return fmt.Sprintf("((%s > time() - %d) - on (namespace, pod) max by (namespace, pod) (%s))",
		ready, int64(window/time.Second), s.sel("kube_pod_start_time"))
}

func promDuration(d time.Duration) string { return model.Duration(d).String() }

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }
