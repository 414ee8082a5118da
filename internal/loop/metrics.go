package loop

import (
	"math"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
)

// Metrics are the numbers of the loop. Their labels are bounded: by the objects that exist, or by the enums of this code.
type Metrics struct {
	cycles      *prometheus.HistogramVec
	cycleTotal  prometheus.Counter
	actions     *prometheus.CounterVec
	withheld    prometheus.Gauge
	frozen      prometheus.Gauge
	leaderEpoch prometheus.Gauge
	source      *prometheus.GaugeVec

	replicas  *prometheus.GaugeVec
	fresh     *prometheus.GaugeVec
	quality   *prometheus.GaugeVec
	load      *prometheus.GaugeVec
	pool      *prometheus.GaugeVec
	demand    *prometheus.GaugeVec
	nodes     *prometheus.GaugeVec
	loans     *prometheus.GaugeVec
	late      *prometheus.GaugeVec
	evictions *prometheus.CounterVec
	recall    *prometheus.HistogramVec
	returned  map[fleet.LoanID]bool
}

// forecastLeads are how far ahead the tide is exported: what a pod's start needs, what a recall needs, and an hour for the chart.
var forecastLeads = []struct {
	name string
	d    time.Duration
}{{"5m", 5 * time.Minute}, {"15m", 15 * time.Minute}, {"1h", time.Hour}}

// forecastQuantiles are the quantiles that are exported.
var forecastQuantiles = []float64{0.1, 0.5, 0.9, 0.95}

// NewMetrics registers the loop's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	service := []string{"namespace", "service"}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "springtide_" + name, Help: help}, labels)
		r.MustRegister(g)
		return g
	}
	single := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "springtide_" + name, Help: help})
		r.MustRegister(g)
		return g
	}
	m := &Metrics{
		cycles: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "springtide_cycle_step_duration_seconds",
			Help: "Wall time of each step of the cycle.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)}, []string{"step"}),
		cycleTotal: prometheus.NewCounter(prometheus.CounterOpts{Name: "springtide_cycles_total", Help: "Cycles that were planned."}),
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_actions_total",
			Help: "Actions by kind and by what became of them (Done, Stale, Failed)."}, []string{"action", "outcome"}),
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_evictions_total",
			Help: "Offline pods that were told to go, by what became of the eviction."}, []string{"outcome"}),
		recall: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "springtide_recall_duration_seconds",
			Help:    "Time from the first notice of a recall to the Clean report, by pool and whether it came after its due time.",
			Buckets: []float64{15, 30, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1800, 3600}}, []string{"pool", "late"}),
		withheld:    single("actions_withheld", "Actions that the last cycle decided and a mode, freeze, pause or budget held back."),
		frozen:      single("frozen", "1 while the cluster-wide freeze holds all actions."),
		leaderEpoch: single("leader_epoch", "The fencing number of this leader."),
		source:      gauge("source_up", "1 while a source or store that the loop depends on answers.", "source"),
		replicas:    gauge("service_replicas", "Replicas of a service: current (spec), ready, desired, and the forecast's floor.", append(service, "kind")...),
		fresh:       gauge("service_data_fresh", "1 while every signal that a scale-in needs is fresh.", service...),
		quality:     gauge("portrait_quality_ratio", "How far a service's portrait can be trusted, 0 to 1.", service...),
		load:        gauge("forecast_load", "The tide's load (requests per second, or cores) at a lead from now.", append(service, "quantile", "lead")...),
		pool:        gauge("pool_cpu_cores", "CPU of a pool: capacity, requested by online pods, and lent.", "pool", "kind"),
		demand: gauge("pool_demand_cores",
			"CPU that a pool's services are forecast to need at a lead, summed over the services' own quantiles.", "pool", "quantile", "lead"),
		nodes: gauge("pool_nodes", "Machines of a pool.", "pool"),
		loans: gauge("loans", "Loans by lending pool, kind of parcel and phase.", "pool", "kind", "phase"),
		late:  gauge("recalls_overdue", "Recalled parcels that are not home by the due time of their first notice.", "pool"),

		returned: map[fleet.LoanID]bool{},
	}
	r.MustRegister(m.cycles, m.cycleTotal, m.actions, m.evictions, m.recall)
	return m
}

func (m *Metrics) observe(s *fleet.Snapshot, plan *planner.Plan, receipt *Receipt, portraits map[fleet.ServiceID]portrait.Portrait,
	tides map[fleet.ServiceID]forecast.Tide, t *timer, historyErr, storeErr error) {
	m.cycleTotal.Inc()
	for _, lap := range t.steps {
		m.cycles.WithLabelValues(lap.name).Observe(lap.took.Seconds())
	}
	for i := range receipt.Results {
		r := &receipt.Results[i]
		m.actions.WithLabelValues(r.Action, string(r.Outcome)).Inc()
		if r.Action == "Evict" {
			m.evictions.WithLabelValues(string(r.Outcome)).Inc()
		}
	}
	m.withheld.Set(float64(len(plan.Withheld)))
	m.frozen.Set(bit(s.Frozen != ""))
	m.leaderEpoch.Set(float64(s.LeaderEpoch))
	m.source.WithLabelValues("history").Set(bit(historyErr == nil))
	m.source.WithLabelValues("store").Set(bit(storeErr == nil))
	m.services(s, plan, portraits, tides)
	m.pools(s, plan, tides)
}

// services sets what is known of each service, and drops the services that are gone.
func (m *Metrics) services(s *fleet.Snapshot, plan *planner.Plan, portraits map[fleet.ServiceID]portrait.Portrait, tides map[fleet.ServiceID]forecast.Tide) {
	for _, v := range []*prometheus.GaugeVec{m.replicas, m.fresh, m.quality, m.load} {
		v.Reset()
	}
	for i := range s.Services {
		svc, target := &s.Services[i], &plan.Targets[i]
		n := fleet.ParseName(string(svc.ID))
		for kind, v := range map[string]int32{"current": target.Current, "ready": svc.Ready(), "desired": target.Replicas, "floor": target.Floor} {
			m.replicas.WithLabelValues(n.Namespace, n.Name, kind).Set(float64(v))
		}
		m.fresh.WithLabelValues(n.Namespace, n.Name).Set(bit(target.DataFresh))
		m.quality.WithLabelValues(n.Namespace, n.Name).Set(portraits[svc.ID].Quality.Score)
		tide := tides[svc.ID]
		for _, q := range forecastQuantiles {
			for _, lead := range forecastLeads {
				if v := tide.At(s.At.Add(lead.d), q); !math.IsNaN(v) {
					m.load.WithLabelValues(n.Namespace, n.Name, strconv.FormatFloat(q, 'g', -1, 64), lead.name).Set(v)
				}
			}
		}
	}
}

// pools sets what is known of each pool and its loans.
func (m *Metrics) pools(s *fleet.Snapshot, plan *planner.Plan, tides map[fleet.ServiceID]forecast.Tide) {
	for _, v := range []*prometheus.GaugeVec{m.pool, m.demand, m.nodes, m.loans, m.late} {
		v.Reset()
	}
	for i := range plan.Pools {
		p := &plan.Pools[i]
		id := string(p.Pool)
		m.nodes.WithLabelValues(id).Set(float64(p.Nodes))
		for kind, r := range map[string]fleet.Resources{"capacity": p.Capacity, "requested": p.Requested, "lent": p.LentCapacity,
			"needed": p.Need, "needed_ahead": p.NeedAhead} {
			m.pool.WithLabelValues(id, kind).Set(r.CPU.Cores())
		}
		m.late.WithLabelValues(id).Set(0)
		for _, kind := range []fleet.ParcelKind{fleet.KindNode, fleet.KindSocket} {
			for _, phase := range fleet.Phases() {
				m.loans.WithLabelValues(id, string(kind), string(phase)).Set(0)
			}
		}
	}
	seen := make(map[fleet.LoanID]bool, len(s.Loans))
	for i := range s.Loans {
		l := &s.Loans[i]
		m.loans.WithLabelValues(string(l.From), string(l.Kind), string(l.Phase)).Inc()
		if l.Phase.Away() && l.Late(s.At) {
			m.late.WithLabelValues(string(l.From)).Inc()
		}
		if l.Phase == fleet.Returned && !l.FirstNotice.IsZero() {
			seen[l.ID] = true
			if !m.returned[l.ID] {
				m.recall.WithLabelValues(string(l.From), strconv.FormatBool(l.Late(s.At))).Observe(l.CleanAt.Sub(l.FirstNotice).Seconds())
			}
		}
	}
	m.returned = seen
	m.poolDemand(s, plan, tides)
}

// poolDemand sums the services' demand for CPU at each quantile and lead. The sum of quantiles is no quantile of the sum: it is what the
// pool would need if every service took its own at once, an upper bound for quantiles above the median.
func (m *Metrics) poolDemand(s *fleet.Snapshot, plan *planner.Plan, tides map[fleet.ServiceID]forecast.Tide) {
	home := planner.Homes(s)
	type key struct {
		pool fleet.PoolID
		q    float64
		lead string
	}
	sums := map[key]float64{}
	for i := range s.Services {
		svc := &s.Services[i]
		tide := tides[svc.ID]
		for _, q := range forecastQuantiles {
			for _, lead := range forecastLeads {
				v := tide.At(s.At.Add(lead.d), q)
				if math.IsNaN(v) || plan.Targets[i].CapacityPerReplica <= 0 {
					continue
				}
				sums[key{home[svc.ID], q, lead.name}] += math.Ceil(v/plan.Targets[i].CapacityPerReplica) * svc.Request.CPU.Cores()
			}
		}
	}
	for k, v := range sums {
		m.demand.WithLabelValues(string(k.pool), strconv.FormatFloat(k.q, 'g', -1, 64), k.lead).Set(v)
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
