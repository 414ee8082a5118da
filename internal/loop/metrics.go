package loop

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

// Metrics are the numbers of the loop. Their labels are bounded: by the objects that exist, or by the enums of this code.
type Metrics struct {
	cycles     *prometheus.HistogramVec
	cycleTotal prometheus.Counter
	finished   prometheus.Gauge
	actions    *prometheus.CounterVec
	evictions  *prometheus.CounterVec
	kills      *prometheus.CounterVec
	recall     *prometheus.HistogramVec
	source     *prometheus.GaugeVec
	etas       *prometheus.CounterVec
	stayed     prometheus.Counter
	broken     *prometheus.CounterVec
	lateBinds  prometheus.Counter
	demanded   *prometheus.HistogramVec
	slo        sloMetrics

	board board
	// The numbers on the board.
	withheld, frozen, leaderEpoch                   *prometheus.Desc
	replicas, fresh, quality, load, fall, contested *prometheus.Desc
	refused, held, rise, standby, paused            *prometheus.Desc
	lift, miss, coverage, skillLost                 *prometheus.Desc
	pool, demand, nodes, loans, overdue             *prometheus.Desc
	strays, changeWindow                            *prometheus.Desc
	drift, lead, overrun                            *prometheus.Desc
	tenant, tenantShort, tenantOverdue              *prometheus.Desc
	tenantParcels                                   *prometheus.Desc
	level, watermark                                *prometheus.Desc
	gangs, bottleneck, waiting, eta                 *prometheus.Desc
	poolWatermark, unfilled, shut                   *prometheus.Desc

	returned map[fleet.LoanID]bool
	// answered are the pods that wait and for which a recall was carried out.
	answered map[fleet.UID]bool
}

// forecastLeads are how far ahead the tide is exported: what a pod's start needs, what a recall needs, and an hour for the chart.
var forecastLeads = [...]struct {
	name string
	d    time.Duration
}{{"5m", 5 * time.Minute}, {"15m", 15 * time.Minute}, {"1h", time.Hour}}

// forecastQuantiles are the quantiles that are exported.
var forecastQuantiles = [...]struct {
	name string
	q    float64
}{{"0.1", 0.1}, {"0.5", 0.5}, {"0.9", 0.9}, {"0.95", 0.95}}

// NewMetrics registers the loop's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		cycles: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "springtide_cycle_step_duration_seconds",
			Help: "Wall time of each step of the cycle.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)}, []string{"step"}),
		cycleTotal: prometheus.NewCounter(prometheus.CounterOpts{Name: "springtide_cycles_total", Help: "Cycles that were planned."}),
		finished: prometheus.NewGauge(prometheus.GaugeOpts{Name: "springtide_last_cycle_timestamp_seconds",
			Help: "When the last cycle finished, in Unix time; 0 in a process that finished none, as a standby."}),
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_actions_total",
			Help: "Actions by kind and by what became of them (Done, Stale, Failed)."}, []string{"action", "outcome"}),
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_evictions_total",
			Help: "Offline pods that were evicted for a recall, by what became of the eviction."}, []string{"outcome"}),
		kills: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_kills_total",
			Help: "Offline pods that were not gone in time, by what became of their deletion with no grace."}, []string{"outcome"}),
		recall: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "springtide_recall_duration_seconds",
			Help:    "Time from the first notice of a recall to the Clean report, by pool and whether it came after its due time.",
			Buckets: []float64{15, 30, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1800, 3600}}, []string{"pool", "late"}),
		source: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "springtide_source_up",
			Help: "1 while what the loop depends on answers: the cluster, the history, the store."}, []string{"source"}),
		etas: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_job_eta_total",
			Help: "Jobs that waited and began, by how that compares with the band that was first reported: Early, Within, Late."}, []string{"verdict"}),
		lateBinds: prometheus.NewCounter(prometheus.CounterOpts{Name: "springtide_late_binds_total",
			Help: "Lent machines without a node agent that were recalled since an online pod was bound to them after the margin."}),
		stayed: prometheus.NewCounter(prometheus.CounterOpts{Name: "springtide_leavers_stayed_total",
			Help: "Pods that a scale-in was steered to and that stayed: others went in their place, so that their machines are not emptied."}),
		broken: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_terms_broken_total",
			Help: "Notices that came before the time that the loan promised its borrower (status.expectedUntil), by pool that recalls."}, []string{"pool"}),
		demanded: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "springtide_demand_notice_seconds",
			Help:    "Time from the scheduler's word that a pod waits for room to the cycle that recalls a parcel for it, by pool.",
			Buckets: []float64{0.25, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600}}, []string{"pool"}),
		returned: map[fleet.LoanID]bool{},
	}
	b, service := &m.board, []string{"namespace", "service"}
	m.withheld = b.gauge("actions_withheld", "Actions that the last cycle decided and a mode, freeze, pause or budget held back.")
	m.frozen = b.gauge("frozen", "1 while the cluster-wide freeze holds all actions.")
	m.leaderEpoch = b.gauge("leader_epoch", "The fencing number of this leader.")
	m.replicas = b.gauge("service_replicas", "Replicas of a service: current (spec), ready, desired, and the forecast's floor.", append(service, "kind")...)
	m.standby = b.gauge("standby_pods",
		"Pods of a service that a staged scale-in took out of traffic, and that are not deleted yet.", service...)
	m.held = b.gauge("object_held", "1 for each accepted service or job whose size cannot be what is decided, for what others do: Contested, PodsRefused, SetToZero. Its condition AbleToScale says who, and what to do.", "kind", "namespace", "name", "reason")
	m.paused = b.gauge("paused", "1 for each service, pool or job that a pause holds, by what it holds (All, In, Out) "+
		"and whether it ends by itself. The condition Paused says who asked for it, why, and until when.",
		"kind", "namespace", "name", "holds", "ends")
	m.refused = b.gauge("object_refused", "1 for each object that is not accepted, so that nothing is done for it. Its condition Accepted says why.", "kind", "namespace", "name", "reason")
	m.fresh = b.gauge("service_data_fresh", "1 while every live signal that a scale-in needs is fresh.", service...)
	m.quality = b.gauge("portrait_quality_ratio", "How far a service's portrait can be trusted, 0 to 1.", service...)
	m.fall = b.gauge("service_fall_unconfirmed",
		"1 while a fall of the load that no other source confirms is held (state Held), or bounds the rate of scale-in (state Eased).", append(service, "state")...)
	m.rise = b.gauge("service_rise_unconfirmed",
		"1 while a measured load is not believed, since the replicas could not have served it (state NotBelieved), or rose faster than history and is not learned yet (state NotLearned).",
		append(service, "state")...)
	m.contested = b.gauge("service_contested", "1 while a service is not scaled, since another writer keeps taking spec.replicas of its target back.", service...)
	m.load = b.gauge("forecast_load", "The tide's load (requests per second, or cores) at a lead from now.", append(service, "quantile", "lead")...)
	m.lift = b.gauge("calendar_lift_ratio", "Factor of calendar days on a service's forecast now: 1 on ordinary days.", service...)
	m.miss = b.gauge("forecast_miss_ratio", "Usual distance of the load from the median forecast at a horizon, over a day's mean load.", append(service, "horizon")...)
	m.coverage = b.gauge("forecast_coverage_ratio", "Share of the loads at or below the 0.9 quantile that was forecast at a horizon: nominally 0.9.",
		append(service, "horizon")...)
	m.skillLost = b.gauge("forecast_skill_lost", "1 while the newest forecasts of a service were too far off to be trusted.", service...)
	m.pool = b.gauge("pool_cpu_cores",
		"CPU of a pool by kind: capacity, requested by online pods, lent, borrowed from offline pools; promised by what is on its way home, released of it, lost with parcels that did not come home; needed by its services' targets now and ahead.", "pool", "kind")
	m.demand = b.gauge("pool_demand_cores",
		"CPU that a pool's services are forecast to need at a lead, summed over the services' own quantiles.", "pool", "quantile", "lead")
	m.shut = b.gauge("pool_shut_machines", "Machines of a pool on which no online pod may land, by what keeps it off (Taint, Cordon, Deletion, Kubelet). They are no room.", "pool", "by")
	m.unfilled = b.gauge("pool_unfilled_ratio",
		"Room that the machines of a pool must hold beyond the requests of its services, over those requests: pods of their sizes leave a part of each machine.", "pool")
	m.nodes = b.gauge("pool_nodes", "Machines of a pool.", "pool")
	m.poolWatermark = b.gauge("pool_watermark_ratio", "The watermarks of an online pool: machines are lent above high, and recalled below low.", "pool", "watermark")
	m.loans = b.gauge("loans", "Loans by lending pool, kind of parcel and phase.", "pool", "kind", "phase")
	m.overdue = b.gauge("recalls_overdue", "Recalled parcels that are not home by the due time of their first notice.", "pool")
	m.overrun = b.gauge("loans_overrun", "Machines of offline pools that online keeps beyond their due time, by lending pool.", "pool")
	m.lead = b.gauge("recall_lead_seconds",
		"How long a recall of a pool is estimated to take, by part (notice, drain, clean, start_up, cycle): 0.95 quantiles of what was measured.", "pool", "part")
	m.changeWindow = b.gauge("change_window_open",
		"1 while a window of change of a pool is open, 0 while it is closed.", "pool", "window")
	m.drift = b.gauge("share_drift", "Parcels on which Loan and NodeShare disagree: 0 but for one cycle after a crash.")
	m.strays = b.gauge("stray_nodes", "Machines of a pool that a borrower uses although no loan says so, by reason: LoanGone (the loan was deleted), StrayPods (offline pods are on room that is home).", "pool", "reason")
	m.tenant = b.gauge("tenant_cpu_cores", "CPU of a tenant: guarantee, entitled (what of it can be kept), limit of its services, used, borrowed, lent, and over the quota.",
		"tenant", "kind")
	m.tenantParcels = b.gauge("tenant_parcels", "Machines and sockets that a tenant's offline work is on, by class: entitled, limit, used, and over, which it gives back.",
		"tenant", "class", "kind")
	m.tenantShort = b.gauge("tenant_short", "1 while a tenant's services want more than it may have: now, or within the week ahead.", "tenant", "when")
	m.tenantOverdue = b.gauge("tenant_overdue", "1 while a tenant has not given back what was due.", "tenant")
	m.level = b.gauge("low_priority_level_ratio", "CPU at the disposal of low-priority work, its own machines and what is lent to it, over that of all machines of pools.", "pool")
	m.watermark = b.gauge("low_priority_watermark_ratio", "The watermarks of that level: bursts of tenants end below low and begin above high.", "pool", "watermark")
	m.bottleneck = b.gauge("link_bottleneck", "1 for the member of a link group that is held back the most, by its maximum or its quota.", service...)
	m.gangs = b.gauge("job_gangs", "Jobs with a minimum that works as a whole, by how it stands (Waiting, Forming, Whole, BackedOff).", "phase")
	m.waiting = b.gauge("jobs_waiting", "Jobs that wait to begin, by what they wait for (Tide, StableRoom, Quota, QuotaRoom, Size, Room, Unforeseen, BackedOff).", "reason")
	m.eta = b.gauge("job_eta_seconds", "How long from now until a waiting job is expected to begin: the bounds of its band and the middle. A bound beyond the week ahead is left out.",
		"namespace", "job", "bound")
	m.slo.declare(b, service)
	r.MustRegister(m.slo.judged, m.cycles, m.cycleTotal, m.finished, m.actions, m.evictions, m.kills, m.recall,
		m.source, m.etas, m.stayed, m.broken, m.lateBinds, m.demanded, b)
	return m
}

// unobserved notes a cycle that had no facts: the numbers of the last one stay up, and this one says that they are old.
func (m *Metrics) unobserved() { m.source.WithLabelValues("cluster").Set(0) }

func (m *Metrics) observe(s *fleet.Snapshot, plan *planner.Plan, receipt *Receipt, portraits map[fleet.ServiceID]portrait.Portrait,
	tides map[fleet.ServiceID]forecast.Tide, kept *promises, t *timer, historyErr, storeErr error) {
	m.cycleTotal.Inc()
	for _, lap := range t.steps {
		m.cycles.WithLabelValues(lap.name).Observe(lap.took.Seconds())
	}
	m.terms(s, plan, receipt)
	m.demands(s, plan, receipt)
	passed := map[string]bool{}
	for i := range plan.Unmarks {
		passed[plan.Unmarks[i].Pod.Name.String()] = plan.Unmarks[i].Passed
	}
	late := map[string]bool{}
	for i := range plan.Moves {
		if x := &plan.Moves[i]; x.Kind == planner.MoveRecall && x.Why.Code == reason.LateBind {
			late[string(x.Before.ID)] = true
		}
	}
	for i := range receipt.Results {
		r := &receipt.Results[i]
		if r.Action == planner.ActionMove && r.Outcome == Done && late[r.Subject] {
			m.lateBinds.Inc()
		}
		if r.Action == planner.ActionUnmark && r.Outcome == Done && passed[r.Subject] {
			m.stayed.Inc() // once: the mark by which it is known is gone
		}
		m.actions.WithLabelValues(string(r.Action), string(r.Outcome)).Inc()
		switch r.Action {
		case planner.ActionEvict:
			m.evictions.WithLabelValues(string(r.Outcome)).Inc()
		case planner.ActionKill:
			m.kills.WithLabelValues(string(r.Outcome)).Inc()
		}
	}
	m.source.WithLabelValues("cluster").Set(1)
	m.source.WithLabelValues("history").Set(bit(historyErr == nil))
	m.source.WithLabelValues("store").Set(bit(storeErr == nil))

	perService := 13 + 14 + len(forecastQuantiles)*len(forecastLeads)
	p := make(page, 0, 64+perService*len(s.Services)+64*len(s.Pools))
	p.set(m.withheld, float64(len(plan.Withheld)))
	p.set(m.frozen, bit(s.Frozen != ""))
	p.set(m.leaderEpoch, float64(s.LeaderEpoch))
	p.set(m.drift, float64(planner.Drift(s)))
	m.unaccounted(&p, s, plan)
	m.services(&p, s, plan, portraits, tides)
	m.pools(&p, s, plan)
	m.lent(&p, s, plan)
	m.refusals(&p, s)
	m.pauses(&p, s)
	m.windows(&p, s)
	m.tenants(&p, s, plan)
	m.jobs(&p, plan)
	m.links(&p, plan)
	m.slo.show(&p, s, kept)
	m.board.show(p)
}

// unaccounted puts up how many machines of each pool are used without a loan.
func (m *Metrics) unaccounted(p *page, s *fleet.Snapshot, plan *planner.Plan) {
	type key struct {
		pool fleet.PoolID
		why  reason.Code
	}
	n := map[key]int{}
	for i := range plan.Strays {
		n[key{plan.Strays[i].Pool, plan.Strays[i].Why.Code}]++
	}
	for i := range s.Pools {
		for _, why := range [...]reason.Code{reason.LoanGone, reason.StrayPods} {
			p.set(m.strays, float64(n[key{s.Pools[i].ID, why}]), string(s.Pools[i].ID), string(why))
		}
	}
}

// terms counts the promises that recalls of this cycle broke.
func (m *Metrics) terms(s *fleet.Snapshot, plan *planner.Plan, receipt *Receipt) {
	recalled := map[string]fleet.PoolID{}
	for i := range plan.Moves {
		if x := &plan.Moves[i]; x.Kind == planner.MoveRecall && s.At.Before(x.Before.ExpectedUntil) && !s.FromOffline(&x.Before) {
			recalled[string(x.Before.ID)] = x.Before.From
		}
	}
	for i := range receipt.Results {
		r := &receipt.Results[i]
		if pool, ok := recalled[r.Subject]; ok && r.Action == "Move" && r.Outcome == Done {
			m.broken.WithLabelValues(string(pool)).Inc()
		}
	}
}

// demands measures how soon pods that wait for room are answered by a recall, from the first of those that no earlier recall answered.
func (m *Metrics) demands(s *fleet.Snapshot, plan *planner.Plan, receipt *Receipt) {
	answered := map[fleet.UID]bool{}
	for i := range s.Services {
		for k := range s.Services[i].Pods {
			if p := &s.Services[i].Pods[k]; p.Unschedulable && m.answered[p.ID] {
				answered[p.ID] = true
			}
		}
	}
	m.answered = answered
	for i := range plan.Moves {
		x := &plan.Moves[i]
		if x.Kind != planner.MoveRecall || x.After.Claimant == "" || !receipt.done(planner.KeyOf(x)) {
			continue
		}
		svc := s.Service(x.After.Claimant)
		if svc == nil {
			continue
		}
		var first fleet.Known[time.Time]
		for k := range svc.Pods {
			p := &svc.Pods[k]
			if !p.Unschedulable || !p.UnschedulableSince.OK || m.answered[p.ID] {
				continue
			}
			m.answered[p.ID] = true
			if !first.OK || p.UnschedulableSince.Value.Before(first.Value) {
				first = p.UnschedulableSince
			}
		}
		if first.OK {
			m.demanded.WithLabelValues(string(x.Before.From)).Observe(s.At.Sub(first.Value).Seconds())
		}
	}
}

// services puts up what is known of each service, and what the services of each pool are forecast to ask for. The sum of quantiles is no
// quantile of the sum: it is what the pool would need if every service took its own at once, an upper bound for quantiles above the
// median.
func (m *Metrics) services(p *page, s *fleet.Snapshot, plan *planner.Plan, portraits map[fleet.ServiceID]portrait.Portrait,
	tides map[fleet.ServiceID]forecast.Tide) {
	home := planner.PoolsOf(s)
	type sum struct {
		cores float64
		known bool
	}
	type sums [len(forecastLeads)][len(forecastQuantiles)]sum
	demand := map[fleet.PoolID]*sums{}
	for i := range s.Services {
		svc, target := &s.Services[i], &plan.Targets[i]
		n := fleet.ParseName(string(svc.ID))
		p.set(m.replicas, float64(target.Current), n.Namespace, n.Name, "current")
		p.set(m.replicas, float64(svc.Ready()), n.Namespace, n.Name, "ready")
		if !svc.Blocked.Any() { // what is refused is not sized: no target, and no signal that it would need
			p.set(m.replicas, float64(target.Replicas), n.Namespace, n.Name, "desired")
			p.set(m.replicas, float64(target.Floor), n.Namespace, n.Name, "floor")
			p.set(m.fresh, bit(len(target.LiveMissing()) == 0), n.Namespace, n.Name)
		}
		p.set(m.quality, portraits[svc.ID].Quality.Score, n.Namespace, n.Name)
		if h := portraits[svc.ID].Doubt; h.Held() {
			p.set(m.fall, 1, n.Namespace, n.Name, "Held")
		} else if h.Eased {
			p.set(m.fall, 1, n.Namespace, n.Name, "Eased")
		}
		switch h := portraits[svc.ID].Doubt; {
		case len(target.Unconfirmed) > 0:
			p.set(m.rise, 1, n.Namespace, n.Name, "NotBelieved")
		case h.Rise && h.Quarantined():
			p.set(m.rise, 1, n.Namespace, n.Name, "NotLearned")
		}
		if svc.Standby > 0 {
			p.set(m.standby, float64(len(svc.StandingBy())), n.Namespace, n.Name)
		}
		if svc.Contested(s.At) {
			p.set(m.contested, 1, n.Namespace, n.Name)
		}
		m.skill(p, n, portraits[svc.ID])
		pool := demand[home[svc.ID]]
		if pool == nil {
			pool = new(sums)
			demand[home[svc.ID]] = pool
		}
		tide := tides[svc.ID]
		if lift := tide.Lift(s.At); !svc.Calendar.Empty() && !math.IsNaN(lift) {
			p.set(m.lift, lift, n.Namespace, n.Name)
		}
		for j, lead := range forecastLeads {
			for k, q := range forecastQuantiles {
				v := tide.At(s.At.Add(lead.d), q.q)
				if math.IsNaN(v) {
					continue
				}
				p.set(m.load, v, n.Namespace, n.Name, q.name, lead.name)
				if target.CapacityPerReplica > 0 {
					pool[j][k].cores += math.Ceil(v/target.CapacityPerReplica) * svc.Request.CPU.Cores()
					pool[j][k].known = true
				}
			}
		}
	}
	for id, pool := range demand {
		for j, lead := range forecastLeads {
			for k, q := range forecastQuantiles {
				if pool[j][k].known {
					p.set(m.demand, pool[j][k].cores, string(id), q.name, lead.name)
				}
			}
		}
	}
}

// refusals puts up the objects that are not accepted, and those whose size is in others' hands; a cluster without any shows none.
func (m *Metrics) refusals(p *page, s *fleet.Snapshot) {
	show := func(kind, name string, why fleet.Problem) {
		if !why.Any() {
			return
		}
		n := fleet.ParseName(name)
		p.set(m.refused, 1, kind, n.Namespace, n.Name, why.Reason)
	}
	held := func(kind, name, reason string) {
		n := fleet.ParseName(name)
		p.set(m.held, 1, kind, n.Namespace, n.Name, reason)
	}
	for i := range s.Services {
		svc := &s.Services[i]
		show("ElasticService", string(svc.ID), svc.Blocked)
		switch {
		case svc.Blocked.Any() || !svc.Mode.Acts():
		case svc.SetToZero != "":
			held("ElasticService", string(svc.ID), "SetToZero")
		case svc.Contested(s.At):
			held("ElasticService", string(svc.ID), "Contested")
		case svc.PodsRefused != "":
			held("ElasticService", string(svc.ID), "PodsRefused")
		}
	}
	for i := range s.Pools {
		show("CapacityPool", string(s.Pools[i].ID), s.Pools[i].Refused)
	}
	for i := range s.Tenants {
		show("CapacityQuota", string(s.Tenants[i].ID), s.Tenants[i].Refused)
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		show("ElasticJob", string(j.ID), j.Blocked)
		if !j.Blocked.Any() && j.PodsRefused() != nil {
			held("ElasticJob", string(j.ID), "PodsRefused")
		}
	}
}

// pauses puts up what is paused; a cluster without any shows none.
func (m *Metrics) pauses(p *page, s *fleet.Snapshot) {
	show := func(kind, name string, all fleet.Pause, h *fleet.Hold) {
		if h.Any() {
			n := fleet.ParseName(name)
			p.set(m.paused, 1, kind, n.Namespace, n.Name, string(all), strconv.FormatBool(!h.Until.IsZero()))
		}
	}
	for i := range s.Services {
		show("ElasticService", string(s.Services[i].ID), s.Services[i].Pause, &s.Services[i].Hold)
	}
	for i := range s.Pools {
		show("CapacityPool", string(s.Pools[i].ID), s.Pools[i].Hold.Pause, &s.Pools[i].Hold)
	}
	for i := range s.Jobs {
		show("ElasticJob", string(s.Jobs[i].ID), s.Jobs[i].Hold.Pause, &s.Jobs[i].Hold)
	}
}

// windows puts up which windows of change are open; pools without any show none.
func (m *Metrics) windows(p *page, s *fleet.Snapshot) {
	for i := range s.Pools {
		for k := range s.Pools[i].Changes {
			w := &s.Pools[i].Changes[k]
			_, open := hpa.ChangeOpenUntil(w, s.At)
			p.set(m.changeWindow, bit(open), string(s.Pools[i].ID), w.Name)
		}
	}
}

// skill puts up how good the forecasts of a service were. Forecasts that were never judged are not shown.
func (m *Metrics) skill(p *page, n fleet.Name, of portrait.Portrait) {
	records := forecast.Accuracies(&of)
	for _, a := range records {
		horizon := fmt.Sprintf("%.0fm", a.Horizon.Minutes())
		switch {
		case a.Horizon%(24*time.Hour) == 0:
			horizon = fmt.Sprintf("%dd", a.Horizon/(24*time.Hour))
		case a.Horizon%time.Hour == 0:
			horizon = fmt.Sprintf("%dh", a.Horizon/time.Hour)
		}
		p.set(m.miss, a.Miss, n.Namespace, n.Name, horizon)
		p.set(m.coverage, a.Achieved, n.Namespace, n.Name, horizon)
	}
	if len(records) > 0 {
		p.set(m.skillLost, bit(of.Record.Skill.Lost), n.Namespace, n.Name)
	}
}

// pools puts up what the plan saw of each pool.
func (m *Metrics) pools(p *page, s *fleet.Snapshot, plan *planner.Plan) {
	for i := range plan.Pools {
		v := &plan.Pools[i]
		id := string(v.Pool)
		p.set(m.nodes, float64(v.Nodes), id)
		if pool := s.Pool(v.Pool); pool != nil && pool.Class == fleet.Online {
			p.set(m.poolWatermark, pool.LowWatermark, id, "low")
			p.set(m.poolWatermark, pool.HighWatermark, id, "high")
			p.set(m.unfilled, v.Unfilled, id)
			shut := map[fleet.ShutBy]int{}
			for _, x := range v.Shut {
				shut[x.By.By] += x.Nodes
			}
			for _, by := range []fleet.ShutBy{fleet.ShutByTaint, fleet.ShutByCordon, fleet.ShutByDeletion, fleet.ShutByKubelet} {
				p.set(m.shut, float64(shut[by]), id, string(by))
			}
		}
		p.set(m.pool, v.Capacity.CPU.Cores(), id, "capacity")
		p.set(m.pool, v.Requested.CPU.Cores(), id, "requested")
		p.set(m.pool, v.LentCapacity.CPU.Cores(), id, "lent")
		p.set(m.pool, v.Borrowed.CPU.Cores(), id, "borrowed")
		for _, x := range []struct {
			part string
			took time.Duration
		}{{"notice", v.Lead.Notice}, {"drain", v.Lead.Drain}, {"clean", v.Lead.Clean}, {"start_up", v.Lead.StartUp}, {"cycle", v.Lead.Cycle}} {
			p.set(m.lead, x.took.Seconds(), id, x.part)
		}
		p.set(m.pool, v.Promised.CPU.Cores(), id, "promised")
		p.set(m.pool, v.Released.CPU.Cores(), id, "released")
		p.set(m.pool, v.Lost.CPU.Cores(), id, "lost")
		p.set(m.pool, v.Need.CPU.Cores(), id, "needed")
		p.set(m.pool, v.NeedAhead.CPU.Cores(), id, "needed_ahead")
	}
}

// lent puts up the loans of each pool, those that do not exist as zeros, and counts each recall once when it is home.
func (m *Metrics) lent(p *page, s *fleet.Snapshot, plan *planner.Plan) {
	type kindPhase struct {
		kind  fleet.ParcelKind
		phase fleet.Phase
	}
	type lent struct {
		loans            map[kindPhase]int
		overdue, overrun int
	}
	pools := map[fleet.PoolID]*lent{}
	of := func(id fleet.PoolID) *lent {
		if pools[id] == nil {
			pools[id] = &lent{loans: map[kindPhase]int{}}
		}
		return pools[id]
	}
	for i := range plan.Pools {
		of(plan.Pools[i].Pool)
	}
	seen := make(map[fleet.LoanID]bool, len(s.Loans))
	for i := range s.Loans {
		l := &s.Loans[i]
		pool := of(l.From)
		pool.loans[kindPhase{l.Kind, l.Phase}]++
		if from := s.Pool(l.From); from != nil && from.Class == fleet.Offline {
			if l.Phase.Away() && !l.Due.IsZero() && s.At.After(l.Due) {
				pool.overrun++
			}
			continue
		}
		if l.Phase.Away() && l.Late(s.At) {
			pool.overdue++
		}
		if l.Phase == fleet.Returned && !l.FirstNotice.IsZero() {
			seen[l.ID] = true
			if !m.returned[l.ID] {
				m.recall.WithLabelValues(string(l.From), strconv.FormatBool(l.Late(s.At))).Observe(l.CleanAt.Sub(l.FirstNotice).Seconds())
			}
		}
	}
	m.returned = seen
	for id, pool := range pools {
		p.set(m.overdue, float64(pool.overdue), string(id))
		p.set(m.overrun, float64(pool.overrun), string(id))
		for _, kind := range []fleet.ParcelKind{fleet.KindNode, fleet.KindSocket} {
			for _, phase := range fleet.Phases() {
				p.set(m.loans, float64(pool.loans[kindPhase{kind, phase}]), string(id), string(kind), string(phase))
			}
		}
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
