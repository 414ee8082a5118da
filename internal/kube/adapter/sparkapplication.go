package adapter

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
)

// sparkApplication adapts the Spark operator's SparkApplication, of which nothing is written: any change of its spec
// makes the operator start the application again. Its driver asks for executors and gives them up by itself, between
// the bounds of dynamic allocation, and an executor that is asked to stop moves its blocks to others first
// (decommission). So executors find room as it is lent, and leave it by notice and eviction alone.
type sparkApplication struct{}

// labelSparkRole is "executor" or "driver".
const labelSparkRole = "spark-role"

const (
	sparkExecutor = "executor"
	sparkDriver   = "driver"
)

func (sparkApplication) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "sparkoperator.k8s.io", Version: "v1beta2", Kind: "SparkApplication"}
}

func (s sparkApplication) Resource() schema.GroupVersionResource {
	return s.Kind().GroupVersion().WithResource("sparkapplications")
}

func (sparkApplication) PartOf(labels map[string]string) string { return labels[labelSparkRole] }

func (sparkApplication) Read(u *unstructured.Unstructured) Workload {
	o := object(u.Object)
	w := Workload{What: what(u)}
	state := o.text("status", "applicationState", "state")
	w.Finished = state == "COMPLETED" || state == "FAILED"
	if o.yes("spec", "suspend") {
		refuseSuspended(&w.Refusals, u, "spec.suspend", w.What)
	}
	p := Part{Name: sparkExecutor, SelfSized: true, Active: -1, Ending: -1, Template: executorSpec(o),
		Labels: o.labels("spec", "executor", "labels")}
	// It wants the executors that it asked for: those that wait for room or have it.
	p.Size = liveExecutors(o)
	p.Remaining = p.Size
	if w.Finished {
		p.Remaining = 0 // the last states of executors may still say that they run
	}
	p.Min = Bound{o.number(0, "spec", "dynamicAllocation", "minExecutors"), "spec.dynamicAllocation.minExecutors"}
	if o.has("spec", "dynamicAllocation", "maxExecutors") {
		p.Max = Bound{o.number(0, "spec", "dynamicAllocation", "maxExecutors"), "spec.dynamicAllocation.maxExecutors"}
	}
	p.Refusals = sparkRefusals(o, w.What)
	w.Parts = []Part{p, {Name: sparkDriver, Size: 1, Remaining: -1, Active: -1, Ending: -1, Fixed: "there is one driver",
		Template: o.podSpec("spec", "driver", "template", "spec"),
		Labels:   marked(o.labels("spec", "driver", "labels"), labelSparkRole, sparkDriver)}}
	w.Stopped = stoppedAt(o)
	w.govern(u, sparkApplication{}.Kind(), managedBy(o))
	return w
}

// executorSpec is what an executor's pod will be like: the operator makes it of fields of its own, and of a template
// where there is one. Memory is the heap and what the JVM takes next to it, a tenth of it and 384 MiB at least, by
// Spark's defaults.
func executorSpec(o object) *corev1.PodSpec {
	spec := o.podSpec("spec", "executor", "template", "spec")
	beside := o.podSpec("spec", "executor") // tolerations, affinity and nodeSelector have the names and shapes of a pod's
	spec.Tolerations = append(spec.Tolerations, beside.Tolerations...)
	if beside.Affinity != nil {
		spec.Affinity = beside.Affinity
	}
	if beside.NodeSelector != nil {
		spec.NodeSelector = beside.NodeSelector
	}
	requests := corev1.ResourceList{}
	executor := object(shallow(o, "spec", "executor"))
	requests[corev1.ResourceCPU] = *resource.NewQuantity(int64(executor.number(1, "cores")), resource.DecimalSI)
	if q, err := resource.ParseQuantity(executor.text("coreRequest")); err == nil {
		requests[corev1.ResourceCPU] = q
	}
	heap, ok := jvmSize(executor.text("memory"))
	if !ok {
		heap = 1 << 30
	}
	beyond, ok := jvmSize(executor.text("memoryOverhead"))
	if !ok {
		beyond = max(heap/10, 384<<20)
	}
	requests[corev1.ResourceMemory] = *resource.NewQuantity(heap+beyond, resource.BinarySI)
	spec.Containers = []corev1.Container{{Name: "spark-kubernetes-executor", Resources: corev1.ResourceRequirements{Requests: requests}}}
	return spec
}

// jvmSize reads a size as Spark writes it: a number of MiB, or one with the unit k, m, g or t.
func jvmSize(s string) (int64, bool) {
	s = strings.TrimSuffix(strings.ToLower(s), "b")
	s = strings.TrimSuffix(s, "i")
	unit := int64(1 << 20)
	if i := strings.IndexAny(s, "kmgt"); i >= 0 && i == len(s)-1 {
		unit = map[byte]int64{'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}[s[i]]
		s = s[:i]
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return n * unit, err == nil && n >= 0
}

func liveExecutors(o object) int32 {
	var n int32
	for _, state := range shallow(o, "status", "executorState") {
		if s, _ := state.(string); s == "RUNNING" || s == "PENDING" {
			n++
		}
	}
	return n
}

// sparkRefusals: without dynamic allocation a lost executor is replaced at once and never given up; without decommission what it had
// computed goes with it; and where fetches from decommissioned executors count as failures, the fourth recall of a stage ends the job.
func sparkRefusals(o object, where string) []fleet.Problem {
	var out []fleet.Problem
	conf := shallow(o, "spec", "sparkConf")
	is := func(key, otherwise string) string {
		if s, ok := conf[key].(string); ok {
			return strings.ToLower(s)
		}
		return otherwise
	}
	if !o.yes("spec", "dynamicAllocation", "enabled") {
		refuse(&out, catalog.DynamicAllocationOff, where)
	} else if !o.has("spec", "dynamicAllocation", "maxExecutors") {
		refuse(&out, catalog.DynamicAllocationUnbounded, where)
	}
	for _, key := range []string{"spark.decommission.enabled", "spark.storage.decommission.enabled"} {
		if is(key, "false") != "true" {
			refuse(&out, catalog.DecommissionOff, key, where)
		}
	}
	four := slices.Contains([]string{"4", "5"}, strings.Split(o.text("spec", "sparkVersion"), ".")[0])
	byDefault := "false"
	if four {
		byDefault = "true"
	}
	if is("spark.stage.ignoreDecommissionFetchFailure", byDefault) != "true" {
		refuse(&out, catalog.FetchFailuresFailStages, where)
	}
	if number(is("spark.scheduler.maxRetainedRemovedDecommissionExecutors", "0"), 0) <= 0 {
		refuse(&out, catalog.FetchFailuresForgotten, where)
	}
	// From 3.5 on an executor whose container ends with an error before its pod is seen to be deleted, as one that is killed while it still moves its
	// blocks, counts as failed, and the application ends at the limit. Allocators other than direct count none.
	if v := o.text("spec", "sparkVersion"); countsExecutors(v) && is("spark.kubernetes.allocation.pods.allocator", "direct") == "direct" {
		byDefault := max(2*o.number(0, "spec", "dynamicAllocation", "maxExecutors"), 3)
		if n := number(is("spark.executor.maxNumFailures", ""), byDefault); n < minRestarts {
			refuse(&out, catalog.MaxExecutorFailuresTooLow, where, n, minRestarts)
		}
	}
	return out
}

// countsExecutors reports whether a version of Spark ends an application for its failed executors: 3.5 and later, and versions that cannot be read.
func countsExecutors(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.Atoi(major)
	n, _ := strconv.Atoi(minor)
	return err != nil || m > 3 || m == 3 && n >= 5
}
