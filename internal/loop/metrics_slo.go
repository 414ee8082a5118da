package loop

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/slo"
)

// sloMetrics are the numbers of promises. A service has 15 series, and one more for each cause and each level of which
// minutes were bad.
type sloMetrics struct {
	judged *prometheus.CounterVec

	objective, window, met, left, burn, quantile *prometheus.Desc
	causes, levels                               *prometheus.Desc
}

func (m *sloMetrics) declare(b *board, service []string) {
	m.judged = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_slo_judged_seconds_total",
		Help: "Judged minutes: good, bad or unknown."},
		append(service, "result"))
	m.objective = b.gauge("slo_objective_ratio", "Share of minutes to be good.", service...)
	m.window = b.gauge("slo_window_seconds", "Window of the objective.", service...)
	m.met = b.gauge("slo_met_ratio", "Share of known minutes that were good.", service...)
	m.left = b.gauge("slo_budget_left_seconds",
		"Time that may still be bad.", service...)
	m.burn = b.gauge("slo_burn_rate",
		"Burn of the budget over a window.",
		append(service, "window")...)
	m.quantile = b.gauge("slo_quantile_ratio", "Quantile of the tide in force.", service...)
	m.causes = b.gauge("slo_bad_seconds", "Bad minutes by cause.",
		append(service, "cause")...)
	m.levels = b.gauge("slo_level_bad_seconds", "Minutes in which a level was broken.",
		append(service, "level")...)
}

// burnWindows are the windows as labels have them.
var burnWindows = [...]struct {
	name string
	d    time.Duration
}{{"5m", 5 * time.Minute}, {"30m", 30 * time.Minute}, {"1h", time.Hour}, {"2h", 2 * time.Hour}, {"6h", 6 * time.Hour},
	{"1d", 24 * time.Hour}, {"3d", 72 * time.Hour}}

// show puts up what became of each promise.
func (m *sloMetrics) show(p *page, s *fleet.Snapshot, kept *promises) {
	if kept == nil {
		return
	}
	for i := range s.Services {
		svc := &s.Services[i]
		a := kept.accounts[svc.ID]
		if a == nil || len(svc.SLO.Levels) == 0 {
			continue
		}
		n := fleet.ParseName(string(svc.ID))
		good, over := Objective(svc)
		p.set(m.objective, good, n.Namespace, n.Name)
		p.set(m.window, over.Seconds(), n.Namespace, n.Name)
		p.set(m.quantile, svc.Quantile, n.Namespace, n.Name)
		p.set(m.left, 60*a.Budget.Left(good, over), n.Namespace, n.Name)
		if met := a.Budget.Met(); met.OK {
			p.set(m.met, met.Value, n.Namespace, n.Name)
		}
		for _, w := range burnWindows {
			if burn := a.Budget.Burn(w.d, good); burn.OK {
				p.set(m.burn, burn.Value, n.Namespace, n.Name, w.name)
			}
		}
		m.named(p, m.causes, n, a.Budget.ByCause())
		m.named(p, m.levels, n, a.Budget.ByLevel())
	}
	m.count(s, kept)
}

func (m *sloMetrics) named(p *page, d *prometheus.Desc, n fleet.Name, bad []slo.Named) {
	for _, x := range bad {
		if x.Bad > 0 {
			p.set(d, 60*float64(x.Bad), n.Namespace, n.Name, x.Name)
		}
	}
}

// count adds the minutes that this cycle finished. All results of a service begin at zero, so that the first bad
// minute is an increase.
func (m *sloMetrics) count(s *fleet.Snapshot, kept *promises) {
	for _, id := range kept.gone {
		n := fleet.ParseName(string(id))
		m.judged.DeletePartialMatch(prometheus.Labels{"namespace": n.Namespace, "service": n.Name})
	}
	for _, c := range kept.counted {
		n := fleet.ParseName(string(c.service))
		for _, state := range []slo.State{slo.Good, slo.Bad, slo.Unknown} {
			add := 0.0
			if state == c.minute.All {
				add = 60
			}
			m.judged.WithLabelValues(n.Namespace, n.Name, state.String()).Add(add)
		}
	}
}
