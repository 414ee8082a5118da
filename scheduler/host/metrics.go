package host

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what operators look at.
type Metrics struct {
	decisions *prometheus.CounterVec
	decide    prometheus.Histogram
	binds     *prometheus.CounterVec
	bindTime  prometheus.Histogram
	latency   prometheus.Histogram
	pending   *prometheus.GaugeVec
	nodes     prometheus.Gauge
	pods      prometheus.Gauge
	classes   prometheus.Gauge
	leader    *prometheus.GaugeVec
	upstream  *prometheus.CounterVec
	gangs     *prometheus.CounterVec
	preempted *prometheus.CounterVec
	claims    *prometheus.GaugeVec
	acks      prometheus.Counter
	ackTime   prometheus.Histogram
	handed    prometheus.Counter
	kubelets  *prometheus.CounterVec
	podGroups prometheus.Gauge
}

// NewMetrics registers the metrics of the scheduler.
func NewMetrics(r prometheus.Registerer) *Metrics {
	const ns = "springtide_scheduler"
	quick := prometheus.ExponentialBuckets(1e-6, 4, 12) // 1 us to 4 s
	slow := prometheus.ExponentialBuckets(1e-3, 2, 18)  // 1 ms to 131 s
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: ns, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: ns, Name: name, Help: help, Buckets: buckets})
	}
	m := &Metrics{
		decisions: counter("decisions_total", "Decisions on pods and gangs, by result: placed, waits, preempts or error.", "result"),
		decide:    histogram("decision_seconds", "Time to decide on one pod or gang.", quick),
		binds:     counter("binds_total", "Answers to bindings, by outcome: bound, refused or gone.", "outcome"),
		bindTime:  histogram("bind_seconds", "Time from decision to the definite answer of the API server.", slow),
		latency:   histogram("pod_seconds", "Time from the creation of a pod to its binding.", slow),
		pending:   gauge("pending_pods", "Pods and gangs that wait, by state: ready, backoff, parked, or volumes: decided, and their volumes and claims are being made.", "state"),
		nodes:     gauge("nodes", "Nodes in the table.").WithLabelValues(),
		pods:      gauge("pods", "Pods in the table, bound and assumed.").WithLabelValues(),
		classes:   gauge("classes", "Kinds of requests that were seen.").WithLabelValues(),
		leader:    gauge("leader", "1 while this process holds the lease of the partition.", "partition"),
		upstream:  counter("upstream_checks_total", "Nodes that upstream's plugins judged, by answer: accepted or refused.", "answer"),
		gangs:     counter("gangs_total", "Gangs by what became of them: placed, waits or timeout.", "result"),
		preempted: counter("preempted_pods_total", "Pods that were evicted for others, or since their gang did not form, by answer: accepted, refused, or held by the disruption ledger of their pool.", "answer"),
		claims:    gauge("claims", "Claims on recalled room by state: held.", "state"),
		acks:      counter("acks_total", "Acknowledged NodeShares.").WithLabelValues(),
		ackTime:   histogram("ack_seconds", "Time from the sight of a NodeShare to its acknowledgement.", slow),
		handed:    counter("handed_on_total", "Pods handed on to the instance that owns the chosen node.").WithLabelValues(),
		kubelets:  counter("kubelet_refusals_total", "Pods that were bound and that the kubelet of their node did not admit, by its reason, or other.", "reason"),
	}
	m.podGroups = gauge("pod_groups_served", "1 where the API server serves PodGroups, 0 where it drops the group of a pod without an error.").WithLabelValues()
	r.MustRegister(m.podGroups, m.decisions, m.decide, m.binds, m.bindTime, m.latency, m.pending, m.nodes, m.pods, m.classes, m.leader, m.upstream, m.gangs,
		m.preempted, m.claims, m.acks, m.ackTime, m.handed, m.kubelets)
	for _, outcome := range []string{"bound", "refused", "gone"} {
		m.binds.WithLabelValues(outcome) // a rate begins at 0, not at the first refusal
	}
	for _, reason := range append([]string{"other"}, refusalReasons...) {
		m.kubelets.WithLabelValues(reason)
	}
	return m
}
