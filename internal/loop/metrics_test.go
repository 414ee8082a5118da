package loop_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/looptest"
)

// measured is a world whose loop exports metrics.
func measured(o looptest.Options) (*looptest.World, *loop.Loop, *prometheus.Registry) {
	w := looptest.New(o)
	r := prometheus.NewPedanticRegistry()
	ports := w.Ports()
	ports.Metrics = loop.NewMetrics(r)
	return w, loop.New(ports, loop.DefaultOptions()), r
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	o := smallWorld()
	o.Start = o.Start.Add(21 * time.Hour)
	w, l, r := measured(o)
	if n, err := testutil.GatherAndCount(r, "springtide_frozen", "springtide_service_replicas"); n != 0 || err != nil {
		t.Errorf("before the first cycle %d numbers are shown (%v): what is not known is not zero", n, err)
	}
	goOn(t, w, l, 3, 2*time.Hour)
	problems, err := testutil.GatherAndLint(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		// A tide is a set of quantiles, and nothing else than that label says so.
		if !strings.Contains(p.Text, `"quantile"`) || p.Metric != "springtide_forecast_load" && p.Metric != "springtide_pool_demand_cores" {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for name, want := range map[string]int{
		"springtide_service_replicas":         4 * o.Services,
		"springtide_service_data_fresh":       o.Services,
		"springtide_portrait_quality_ratio":   o.Services,
		"springtide_forecast_load":            4 * 3 * o.Services,
		"springtide_forecast_miss_ratio":      3 * o.Services,
		"springtide_forecast_coverage_ratio":  3 * o.Services,
		"springtide_forecast_skill_lost":      o.Services,
		"springtide_pool_demand_cores":        4 * 3,
		"springtide_pool_cpu_cores":           9,
		"springtide_pool_nodes":               1,
		"springtide_recalls_overdue":          1,
		"springtide_loans":                    2 * len(fleet.Phases()),
		"springtide_source_up":                3,
		"springtide_cycles_total":             1,
		"springtide_leader_epoch":             1,
		"springtide_share_drift":              1,
		"springtide_recall_lead_seconds":      5,
		"springtide_pool_watermark_ratio":     2,
		"springtide_loans_overrun":            1,
		"springtide_frozen":                   1,
		"springtide_actions_withheld":         1,
		"springtide_slo_judged_seconds_total": 3 * o.Services,
		"springtide_slo_objective_ratio":      o.Services,
		"springtide_slo_met_ratio":            o.Services,
		"springtide_slo_budget_left_seconds":  o.Services,
		"springtide_slo_burn_rate":            7 * o.Services,
		"springtide_slo_quantile_ratio":       o.Services,
	} {
		if n, err := testutil.GatherAndCount(r, name); n != want || err != nil {
			t.Errorf("%s has %d series, want %d (%v)", name, n, want, err)
		}
	}
	want := fmt.Sprintf(`# HELP springtide_leader_epoch The fencing number of this leader.
# TYPE springtide_leader_epoch gauge
springtide_leader_epoch 3
# HELP springtide_cycles_total Cycles that were planned.
# TYPE springtide_cycles_total counter
springtide_cycles_total %d
`, len(w.Records))
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "springtide_leader_epoch", "springtide_cycles_total"); err != nil {
		t.Error(err)
	}
}

// gaugeBy reads a gauge by one of its labels.
func gaugeBy(t *testing.T, r prometheus.Gatherer, name, label string) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label {
					out[l.GetValue()] = m.GetGauge().GetValue()
				}
			}
		}
	}
	return out
}

func TestSourcesDownAreShown(t *testing.T) {
	t.Parallel()
	w, l, r := measured(smallWorld())
	turn := func() { goOn(t, w, l, 1, time.Nanosecond) }
	sources := func() map[string]float64 { return gaugeBy(t, r, "springtide_source_up", "source") }
	turn()
	if up := sources(); up["cluster"] != 1 || up["history"] != 1 || up["store"] != 1 {
		t.Errorf("all is well and shown as %v", up)
	}
	w.ObserveErr, w.HistoryErr, w.StoreErr = looptest.ErrDown, looptest.ErrDown, looptest.ErrDown
	turn()
	if up := sources(); up["cluster"] != 0 {
		t.Errorf("the cluster cannot be read and is shown as %v", up)
	}
	if n, _ := testutil.GatherAndCount(r, "springtide_service_replicas"); n == 0 {
		t.Error("the numbers of the last cycle are gone")
	}
	w.ObserveErr = nil
	turn()
	if up := sources(); up["cluster"] != 1 || up["history"] != 0 || up["store"] != 0 {
		t.Errorf("history and store are down and shown as %v", up)
	}
}

// A scrape that comes while a cycle sets its numbers sees those of one cycle, all of them.
func TestAScrapeSeesWholeCycles(t *testing.T) {
	t.Parallel()
	o := smallWorld()
	o.Services = 6
	w, l, r := measured(o)
	goOn(t, w, l, 1, time.Nanosecond)
	stop := make(chan struct{})
	var scrapes sync.WaitGroup
	scrapes.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if n, err := testutil.GatherAndCount(r, "springtide_service_replicas"); n != 4*o.Services || err != nil {
				t.Errorf("a scrape saw %d of %d series (%v)", n, 4*o.Services, err)
				return
			}
		}
	})
	goOn(t, w, l, 1, 10*time.Minute)
	close(stop)
	scrapes.Wait()
}
