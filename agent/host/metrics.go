package host

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the agent's own.
type Metrics struct {
	cycles     prometheus.Histogram
	writes     *prometheus.CounterVec
	calls      *prometheus.CounterVec
	repaired   prometheus.Counter
	problems   prometheus.Gauge
	capability *prometheus.GaugeVec
	parcels    *prometheus.GaugeVec
	apiWrites  *prometheus.CounterVec
	factsAge   prometheus.Gauge
	connected  prometheus.Gauge
	lost       prometheus.Counter
	pods       *prometheus.GaugeVec
	skipped    prometheus.Gauge
	stateError prometheus.Counter
	relays     *prometheus.CounterVec
	quota      prometheus.Gauge
	boxBytes   prometheus.Gauge
	offer      *prometheus.GaugeVec
	stale      prometheus.Gauge
	indicator  *prometheus.GaugeVec
	pressure   *prometheus.GaugeVec
	movedPods  prometheus.Gauge
	reclaims   *prometheus.CounterVec
	evictions  *prometheus.CounterVec
}

// NewMetrics makes the metrics, and registers them where there is a registry.
func NewMetrics(r prometheus.Registerer) *Metrics {
	const ns = "springtide_agent_"
	m := &Metrics{
		cycles: prometheus.NewHistogram(prometheus.HistogramOpts{Name: ns + "cycle_seconds", Help: "Time of one cycle: observe, decide, write, report.",
			Buckets: []float64{.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5}}),
		writes:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: ns + "cgroup_writes_total", Help: "Values written to cgroups, by file, way (file or nri) and result."}, []string{"file", "via", "result"}),
		calls:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: ns + "runtime_updates_total", Help: "Updates of containers asked of the runtime, by result."}, []string{"result"}),
		repaired:   prometheus.NewCounter(prometheus.CounterOpts{Name: ns + "runtime_repairs_total", Help: "Values that the runtime was asked for and did not set; they were written as files."}),
		problems:   prometheus.NewGauge(prometheus.GaugeOpts{Name: ns + "problems", Help: "Wishes of pods that cannot be met now; the log names them."}),
		capability: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ns + "capability", Help: "1 where the machine offers a capability, 0 where it is skipped."}, []string{"capability"}),
		parcels:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ns + "parcels_waiting", Help: "Parcels that are not clean, by what they wait for."}, []string{"wait"}),
		apiWrites:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: ns + "api_writes_total", Help: "Writes to the API server, by kind and result."}, []string{"kind", "result"}),
		factsAge:   prometheus.NewGauge(prometheus.GaugeOpts{Name: ns + "facts_age_seconds", Help: "Age of what the agent knows of the API server; it grows while the last share on disk is enforced."}),
		connected:  prometheus.NewGauge(prometheus.GaugeOpts{Name: ns + "runtime_connected", Help: "1 while the runtime has the agent registered as an NRI plugin."}),
		lost:       prometheus.NewCounter(prometheus.CounterOpts{Name: ns + "runtime_disconnects_total", Help: "Lost connections to the runtime."}),
		pods:       prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ns + "pods", Help: "Pods with a cgroup, by class."}, []string{"class"}),
		skipped:    prometheus.NewGauge(prometheus.GaugeOpts{Name: ns + "skipped_values", Help: "Wanted values whose cgroup file is not there."}),
		stateError: prometheus.NewCounter(prometheus.CounterOpts{Name: ns + "state_errors_total", Help: "Failed writes of the last share or of the journal."}),
		relays:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: ns + "notices_total", Help: "Outcomes of notices: shown as a file, hook called, hook_error, ack and heartbeat carried back, error."}, []string{"event"}),
		quota:      prometheus.NewGauge(prometheus.GaugeOpts{Name: ns + "reclaimed_quota_cores", Help: "CPU quota of reclaimed pods as a whole."}),
		boxBytes:   prometheus.NewGauge(prometheus.GaugeOpts{Name: ns + "reclaimed_memory_limit_bytes", Help: "Memory limit of reclaimed pods as a whole."}),
		offer:      prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ns + "reclaimed_offer", Help: "Idle capacity that the node offers: cores of cpu, bytes of memory."}, []string{"resource"}),
		stale:      prometheus.NewGauge(prometheus.GaugeOpts{Name: ns + "stale_signals", Help: "Signals that are missing or old; while there is one, reclaimed work gets no more."}),
		indicator:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ns + "indicator", Help: "Value of an indicator of how online fares."}, []string{"indicator"}),
		pressure:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ns + "pressure", Help: "1 for each eviction rule whose threshold is passed."}, []string{"rule"}),
		movedPods:  prometheus.NewGauge(prometheus.GaugeOpts{Name: ns + "moved_pods", Help: "Reclaimed pods that keep their memory off cells where little is free; the log names them."}),
		reclaims:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: ns + "memory_reclaims_total", Help: "Requests to the kernel for memory of reclaimed pods, and for page cache on cells that change hands: all, part, or error."}, []string{"result"}),
		evictions:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: ns + "evictions_total", Help: "Evictions of reclaimed pods, by rule and result: ok, refused by the API server (a budget, a webhook, a policy, a missing right), error."}, []string{"rule", "result"}),
	}
	if r != nil {
		r.MustRegister(m.cycles, m.writes, m.calls, m.repaired, m.problems, m.capability, m.parcels, m.apiWrites, m.factsAge, m.connected, m.lost, m.pods, m.skipped, m.stateError, m.relays,
			m.quota, m.boxBytes, m.offer, m.stale, m.indicator, m.pressure, m.movedPods, m.reclaims, m.evictions)
	}
	return m
}
