package model

import (
	"slices"
	"strconv"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/measure"
)

// Label is one name and value of a series.
type Label struct{ Name, Value string }

// Handle names one series of an Exporter for good; handles count up from 0 and are never used again.
type Handle int32

// Series is a series that came to be: its labels are sorted by name, "__name__" among them.
type Series struct {
	Handle Handle
	Labels []Label
}

// Sample is one value of one series.
type Sample struct {
	Handle Handle
	Value  float64
}

// Exporter plays the exporters of a real cluster: cAdvisor, kube-state-metrics, and the services' own OpenTelemetry metrics. A pod, node or
// workload registers its series once; a step then yields handles and values, in the order of registration. Counters are cumulative and
// belong to one pod: they begin at zero with it and end with it.
//
// The three exporters are read apart, since they are scraped apart: a fault may silence one of them.
type Exporter struct {
	pods      []exportedPod // free slots have no name
	free      []PodRef
	nodes     []exportedNode
	workloads []exportedWorkload
	owners    map[fleet.Name]Handle // of ReplicaSets
	ownerList []ownedReplicaSet     // in order, for State

	next  Handle
	fresh []Series
	gone  []Handle
}

// NewExporter returns an exporter of nothing.
func NewExporter() *Exporter { return &Exporter{owners: map[fleet.Name]Handle{}} }

// PodRef names a pod of an Exporter until it is removed.
type PodRef int

// PodMeta is what the labels of a pod's series say.
type PodMeta struct {
	Name fleet.Name
	UID  string
	// Node may be empty until Bound.
	Node string
	// OwnerKind and OwnerName name the controller: a ReplicaSet for services, a Job for offline work.
	OwnerKind, OwnerName string
	Container            string
	Request              fleet.Resources
	// HTTP says that the pod exports requests and latencies.
	HTTP    bool
	Created time.Time
}

// The handles of a pod's series, counted from its first one.
const (
	offCPU = iota
	offMemory
	offRequestCPU
	offRequestMemory
	offInfo
	offOwner
	offCreated
	offReadyTrue
	offReadyFalse
	offReadyUnknown
	offStarted
	offReadyTime
	offRestarts
	offPlain // the number of series of a pod without HTTP

	offBuckets = offPlain
	offInf     = offBuckets + len(measure.Bounds)
	offCount   = offInf + 1
	offSum     = offCount + 1
	offHTTP    = offSum + 1
)

type exportedPod struct {
	meta       PodMeta
	first      Handle
	bound      bool
	started    float64
	ready      bool
	readySince float64
	restarts   int
	// usage is the first of the two handles of cAdvisor's series, which a container that started again has again.
	usage Handle

	cpu, memory, cores float64
	buckets            [len(measure.Bounds)]float64
	count, sum         float64
}

// AddPod registers a pod. Its usage and requests are exported once it is bound.
func (e *Exporter) AddPod(m PodMeta) PodRef {
	p := exportedPod{meta: m, first: e.next, usage: e.next + offCPU}
	e.registerPod(&m)
	if n := len(e.free); n > 0 {
		ref := e.free[n-1]
		e.free = e.free[:n-1]
		e.pods[ref] = p
		return ref
	}
	e.pods = append(e.pods, p)
	return PodRef(len(e.pods) - 1)
}

// RemovePod ends a pod's series.
func (e *Exporter) RemovePod(ref PodRef) {
	p := &e.pods[ref]
	n := offPlain
	if p.meta.HTTP {
		n = offHTTP
	}
	e.gone = append(e.gone, p.usage, p.usage+1) // cAdvisor's stand first
	for i := offRequestCPU; i < n; i++ {
		e.gone = append(e.gone, p.first+Handle(i))
	}
	e.pods[ref] = exportedPod{}
	e.free = append(e.free, ref)
}

// registerPod makes the series of a pod in the order of the offsets.
func (e *Exporter) registerPod(m *PodMeta) {
	ns, pod, uid := Label{"namespace", m.Name.Namespace}, Label{"pod", m.Name.Name}, Label{"uid", m.UID}
	box := Label{"container", m.Container}
	node := Label{"node", m.Node}
	e.register("container_cpu_usage_seconds_total", ns, pod, box, node, Label{"cpu", "total"})
	e.register("container_memory_working_set_bytes", ns, pod, box, node)
	e.register("kube_pod_container_resource_requests", ns, pod, uid, box, node, Label{"resource", "cpu"}, Label{"unit", "core"})
	e.register("kube_pod_container_resource_requests", ns, pod, uid, box, node, Label{"resource", "memory"}, Label{"unit", "byte"})
	e.register("kube_pod_info", ns, pod, uid, node, Label{"created_by_kind", m.OwnerKind}, Label{"created_by_name", m.OwnerName})
	e.register("kube_pod_owner", ns, pod, uid, Label{"owner_kind", m.OwnerKind}, Label{"owner_name", m.OwnerName}, Label{"owner_is_controller", "true"})
	e.register("kube_pod_created", ns, pod, uid)
	for _, c := range [...]string{"true", "false", "unknown"} {
		e.register("kube_pod_status_ready", ns, pod, uid, Label{"condition", c})
	}
	e.register("kube_pod_start_time", ns, pod, uid)
	e.register("kube_pod_status_ready_time", ns, pod, uid)
	e.register("kube_pod_container_status_restarts_total", ns, pod, uid, box)
	if !m.HTTP {
		return
	}
	method, status := Label{"http_request_method", "GET"}, Label{"http_response_status_code", "200"}
	for _, b := range measure.Bounds {
		e.register("http_server_request_duration_seconds_bucket", ns, pod, method, status, Label{"le", formatBound(b)})
	}
	e.register("http_server_request_duration_seconds_bucket", ns, pod, method, status, Label{"le", "+Inf"})
	e.register("http_server_request_duration_seconds_count", ns, pod, method, status)
	e.register("http_server_request_duration_seconds_sum", ns, pod, method, status)
}

// formatBound writes 10 as "10.0", as client libraries do.
func formatBound(b float64) string {
	s := strconv.FormatFloat(b, 'f', -1, 64)
	if b == float64(int(b)) {
		s += ".0"
	}
	return s
}

func (e *Exporter) register(name string, labels ...Label) Handle {
	labels = append(labels, Label{"__name__", name})
	slices.SortFunc(labels, func(a, b Label) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	})
	h := e.next
	e.next++
	e.fresh = append(e.fresh, Series{h, labels})
	return h
}

// Fresh returns the series that came to be since the last call, and forgets them.
func (e *Exporter) Fresh() []Series {
	out := e.fresh
	e.fresh = nil
	return out
}

// Gone returns the series that ended since the last call, and forgets them. Some of them may never have had a sample.
func (e *Exporter) Gone() []Handle {
	out := e.gone
	e.gone = nil
	return out
}

// Started says that the pod's container runs since a time: from now on its usage is exported. A pod that was added before it was bound
// must be removed and added again with its node, since a label cannot change.
func (e *Exporter) Started(ref PodRef, at time.Time) {
	e.pods[ref].bound, e.pods[ref].started = true, seconds(at)
}

// Ready says whether the pod is ready, and since when.
func (e *Exporter) Ready(ref PodRef, ready bool, since time.Time) {
	e.pods[ref].ready, e.pods[ref].readySince = ready, seconds(since)
}

// Use adds the CPU that a pod used in a step. Its memory follows: a third of the request, and as much again at full CPU.
func (e *Exporter) Use(ref PodRef, cores float64, dt time.Duration) {
	p := &e.pods[ref]
	p.cores = cores
	p.cpu += cores * dt.Seconds()
	p.memory = float64(p.meta.Request.Memory) / 3
	if asked := p.meta.Request.CPU.Cores(); asked > 0 {
		p.memory *= 1 + min(1, cores/asked)
	}
}

// Serve adds the requests that a pod answered in a step.
func (e *Exporter) Serve(ref PodRef, requests float64, l *Latencies) {
	p := &e.pods[ref]
	for i, share := range l.UpTo {
		p.buckets[i] += requests * share
	}
	p.count += requests
	p.sum += requests * l.Mean
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// Restart says that the pod's container ended and another one began: its counters start at zero, and cAdvisor's under a new id.
func (e *Exporter) Restart(ref PodRef) {
	p := &e.pods[ref]
	p.restarts++
	e.gone = append(e.gone, p.usage, p.usage+1)
	m := &p.meta
	ns, pod, box, node := Label{"namespace", m.Name.Namespace}, Label{"pod", m.Name.Name}, Label{"container", m.Container}, Label{"node", m.Node}
	id := Label{"id", "/" + m.UID + "/" + strconv.Itoa(p.restarts)}
	p.usage = e.register("container_cpu_usage_seconds_total", ns, pod, box, node, id, Label{"cpu", "total"})
	e.register("container_memory_working_set_bytes", ns, pod, box, node, id)
	p.cpu, p.count, p.sum = 0, 0, 0
	clear(p.buckets[:])
}

// UsageByPod calls yield with the samples of cAdvisor of each running pod, its labels, and the cores that it uses at the moment.
func (e *Exporter) UsageByPod(yield func(m *PodMeta, cores float64, cpu, memory Sample)) {
	for i := range e.pods {
		if p := &e.pods[i]; p.bound {
			yield(&p.meta, p.cores, Sample{p.usage, p.cpu}, Sample{p.usage + 1, p.memory})
		}
	}
}

// HTTPByPod calls yield with the samples of each pod's own metrics; they are valid during the call.
func (e *Exporter) HTTPByPod(yield func(m *PodMeta, samples []Sample)) {
	var out []Sample
	for i := range e.pods {
		p := &e.pods[i]
		// A histogram appears with its first observation.
		if !p.meta.HTTP || p.count == 0 {
			continue
		}
		out = out[:0]
		for k, v := range p.buckets {
			out = append(out, Sample{p.first + offBuckets + Handle(k), v})
		}
		out = append(out, Sample{p.first + Handle(offInf), p.count}, Sample{p.first + Handle(offCount), p.count}, Sample{p.first + Handle(offSum), p.sum})
		yield(&p.meta, out)
	}
}

// Usage appends the samples of cAdvisor.
func (e *Exporter) Usage(out []Sample) []Sample {
	e.UsageByPod(func(_ *PodMeta, _ float64, cpu, memory Sample) { out = append(out, cpu, memory) })
	return out
}

// HTTP appends the samples of the services' own metrics.
func (e *Exporter) HTTP(out []Sample) []Sample {
	e.HTTPByPod(func(_ *PodMeta, samples []Sample) { out = append(out, samples...) })
	return out
}
