package promql

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
)

// The recorded series. The series of workloads carry the labels namespace, workload_kind and workload.
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
	// ruleWindow is the window of recorded rates, wideWindow the one for pods that have no two scrapes in it: at an interval of a minute
	// five scrapes, of which two may be lost and one may be late.
	ruleWindow = 2 * time.Minute
	wideWindow = 5 * time.Minute
)

// scope limits selectors to some namespaces. The zero scope is the whole fleet.
type scope struct {
	matcher string
	// names are the namespaces, joined by a bar; out says that all others are meant.
	names string
	out   bool
}

// maxScoped is how many namespaces are named in a matcher. Beyond it, one alternation over most of the fleet costs Prometheus more than
// it saves.
const maxScoped = 50

// scopeOf is the scope of the namespaces that the services' targets live in.
func scopeOf(services []fleet.Service) scope {
	names := namespacesOf(services)
	if len(names) == 0 || len(names) > maxScoped {
		return scope{}
	}
	return scopeIn(names)
}

// scopeIn is the scope of some namespaces.
func scopeIn(names []string) scope {
	all := strings.Join(names, "|")
	return scope{matcher: "namespace=~" + strconv.Quote(all), names: all}
}

// but leaves namespaces out of a scope that names none.
func (s scope) but(names []string) scope {
	if s.matcher != "" || len(names) == 0 {
		return s
	}
	all := strings.Join(names, "|")
	return scope{matcher: "namespace!~" + strconv.Quote(all), names: all, out: true}
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

// lookback is how long Prometheus, as it is shipped, answers with a sample that no newer one followed.
const lookback = 5 * time.Minute

// held is a selector's series, with those of targets whose last scrape failed as they were last seen. A failed scrape ends all series of its target at
// once: without this no pod has an owner after one lost scrape of kube-state-metrics, and every workload is without rates and latency until the next.
// A series that is gone while its target still brings others has ended. The label instance names a target.
func held(selector string) string {
	return fmt.Sprintf("(%[1]s or (last_over_time(%[1]s[%[2]s]) unless on (instance) %[1]s))", selector, promDuration(lookback))
}

// ownerExpr maps each pod to its workload: through the ReplicaSet to what owns that, else to the pod's own owner. kube-state-metrics writes "<none>" (older
// versions: nothing) for no owner. Each pod and each ReplicaSet has at most one owner here: a second one would make every join many-to-many, which is an error for the
// whole fleet. Only the controller counts, of which the API server admits one; of two under one name, one of which is seen no more, the one that is seen.
// topk chooses among what is equal even then, as forged series are.
func ownerExpr(s scope) string {
	const controls = `owner_is_controller!="false"` // very old versions of kube-state-metrics do not say it
	return fmt.Sprintf(`max by (namespace, pod, workload_kind, workload) (
  label_replace(
    label_replace(
        label_replace(%[1]s, "replicaset", "$1", "owner_name", "(.+)")
      * on (namespace, replicaset) group_left (owner_kind, owner_name)
        %[2]s
      or on (namespace, pod)
        %[3]s,
      "workload_kind", "$1", "owner_kind", "(.+)"
    ),
    "workload", "$1", "owner_name", "(.+)"
  )
) ^ 0`,
		oneOwner("pod", s.sel("kube_pod_owner", `owner_kind="ReplicaSet"`, controls)),
		oneOwner("replicaset", s.sel("kube_replicaset_owner", `owner_kind!~"|<none>"`, controls)),
		oneOwner("pod", s.sel("kube_pod_owner", `owner_kind!~"|<none>"`, controls)))
}

// oneOwner is the owner of each object of a kind. Series that are seen now are worth more than those that [held] keeps; their own values, which are 1
// where nothing forged them, do not count.
func oneOwner(object, selector string) string {
	return fmt.Sprintf(`topk by (namespace, %[1]s) (1, max by (namespace, %[1]s, owner_kind, owner_name) (%[2]s ^ 0 + 1 or %[3]s ^ 0))`, object, selector, held(selector))
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

// byContainer are the labels that distinguish the containers of pods. A container that started again, and a second job
// that scrapes the same kubelet, bring a second series of the same container: the larger one counts, not the sum. Old
// kubelets write one series for each CPU.
const byContainer = "namespace, pod, container, cpu"

// cpuByPod is the CPU in use, in cores. Series without a container are the pod's and the node's cgroups, which count it again.
func cpuByPod(s scope, window time.Duration) string {
	return fmt.Sprintf("sum by (namespace, pod) (max by (%s) (rate(%s[%s])))", byContainer, cpuCounter(s), promDuration(window))
}

func cpuCounter(s scope) string {
	return s.sel("container_cpu_usage_seconds_total", `container!=""`, `container!="POD"`)
}

// memoryByPod is the largest memory of a pod within a window, in bytes: the working set, which is what the kernel cannot take back and what
// the kubelet evicts by.
func memoryByPod(s scope, window time.Duration) string {
	return fmt.Sprintf("sum by (namespace, pod) (max by (namespace, pod, container) (max_over_time(%s[%s])))",
		s.sel("container_memory_working_set_bytes", `container!=""`, `container!="POD"`), promDuration(window))
}

// scrapers are the labels that say who scraped a series and not what it counts: two scrape jobs of one port, a
// ServiceMonitor next to a PodMonitor, a pair of Prometheus servers. The largest of their rates counts, not the sum.
// The label instance is not among them: two ports of a pod count different requests. [Cluster.ReplicaLabels] are added
// to each list after the word "without".
const scrapers = "job, service, endpoint, prometheus, prometheus_replica, replica, __replica__"

// loadByPod is the load in requests per second.
func loadByPod(s scope, window time.Duration) string {
	return fmt.Sprintf("sum by (namespace, pod) (max without (%s) (rate(%s[%s])))", scrapers, loadCounter(s), promDuration(window))
}

func loadCounter(s scope) string { return s.sel("http_server_request_duration_seconds_count") }

// bucketsByPod is the rate of requests by latency bucket.
func bucketsByPod(s scope, window time.Duration) string {
	return fmt.Sprintf("sum by (namespace, pod, le) (max without (%s) (rate(%s[%s])))", scrapers, s.sel("http_server_request_duration_seconds_bucket"), promDuration(window))
}

// atAnyInterval is a rate by pod that holds for scrape intervals of up to a minute: over the short window, and over the wide one for pods
// that have no two scrapes in the short one.
func atAnyInterval(byPod func(scope, time.Duration) string, s scope) string {
	return fmt.Sprintf("(\n    %s\n  or on (namespace, pod)\n    %s\n)", byPod(s, ruleWindow), byPod(s, wideWindow))
}

// readyByPod is 1 for each ready pod.
func readyByPod(s scope) string {
	return fmt.Sprintf("max by (namespace, pod) (%s)", held(s.sel("kube_pod_status_ready", `condition="true"`)))
}

// sampledByPod is the time of the newest sample that the rate over the window of a pod's counter stands on. cAdvisor sends times of its own,
// so a container that ended keeps its last sample for five minutes: the oldest series would make its pod look unmeasured all that time, and
// the newest one, of a container that was scraped once, has no rate yet.
func sampledByPod(counter string, window time.Duration) string {
	return fmt.Sprintf("max by (namespace, pod) (timestamp(%[1]s) and rate(%[1]s[%[2]s]))", counter, promDuration(window))
}

// startUpByPod is the time in seconds from the start on its machine to Ready of each pod that became ready in the
// window that ends now. Its wait for a machine is left out: room that is missing once would make every later lead
// longer. So is a pod with a container that started again, and one that was ready at any time in the half hour before
// the window: they became ready once more, long after their start. Of a pod that lost and regained its readiness within
// the window the first time counts. An earlier readiness is known only of pods that were seen from their start on: with
// since, pods that started before it do not count, as kube-state-metrics was not there then.
func startUpByPod(s scope, window time.Duration, since time.Time) string {
	ready, started := s.sel("kube_pod_status_ready_time"), s.sel("kube_pod_start_time")
	if !since.IsZero() {
		started += fmt.Sprintf(" >= %d", since.Unix())
	}
	return fmt.Sprintf(`(
  (min by (namespace, pod) (min_over_time(%[1]s[%[2]s])) > time() - %[3]d) - on (namespace, pod) max by (namespace, pod) (%[4]s)
  unless on (namespace, pod) (max by (namespace, pod) (%[5]s) > 0)
  unless on (namespace, pod) (max by (namespace, pod) (max_over_time(%[1]s[%[6]s] offset %[2]s)))
)`, ready, promDuration(window), int64(window/time.Second), started,
		s.sel("kube_pod_container_status_restarts_total"), promDuration(longestStartUp))
}

func promDuration(d time.Duration) string { return model.Duration(d).String() }

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }
