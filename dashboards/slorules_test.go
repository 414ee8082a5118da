package dashboards

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// The rules give what Sloth's and Pyrra's dashboards read, for a service that has used up half of its budget.
func TestSLORules(t *testing.T) {
	file, errs := rulefmt.Parse(SLORulesYAML(), false, model.UTF8Validation, parser.NewParser(parser.Options{}),
		slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	service := `{namespace="shop",service="cart"`
	store := promqltest.LoadedStorage(t, "load 1m\n"+strings.Join([]string{
		"springtide_slo_objective_ratio" + service + ",pod=\"a\"} 0.999x10",
		"springtide_slo_objective_ratio" + service + ",pod=\"b\"} 0.999x10",
		"springtide_slo_window_seconds" + service + "} 2419200x10", "springtide_slo_met_ratio" + service + "} 0.9995x10",
		"springtide_slo_budget_left_seconds" + service + "} 1209.6x10",
		"springtide_slo_burn_rate" + service + ",window=\"5m\"} 4x10",
		"springtide_slo_burn_rate" + service + ",window=\"3d\"} 0.5x10",
		"springtide_slo_judged_seconds_total" + service + ",result=\"good\"} 0+60x10",
		"springtide_slo_judged_seconds_total" + service + ",result=\"bad\"} 120x10",
		"springtide_slo_judged_seconds_total" + service + ",result=\"unknown\"} 6000x10"}, "\n"))
	defer store.Close()
	engine := promqltest.NewTestEngine(t, false, 0, 1e6)
	want := map[string]float64{"slo:sli_error:ratio_rate5m": 0.004, "slo:sli_error:ratio_rate3d": 0.0005,
		"slo:objective:ratio": 0.999, "slo:error_budget:ratio": 0.001,
		"slo:time_period:days": 28, "slo:current_burn_rate:ratio": 4, "slo:period_burn_rate:ratio": 0.5,
		"slo:period_error_budget_remaining:ratio": 0.5, "sloth_slo_info": 1,
		"pyrra_objective": 0.999, "pyrra_window": 2419200, "pyrra_availability": 0.9995, "pyrra_requests_total": 12,
		"pyrra_errors_total": 2}
	for _, r := range file.Groups[0].Rules {
		q, err := engine.NewInstantQuery(t.Context(), store, nil, r.Expr, time.Unix(600, 0))
		if err != nil {
			t.Fatal(err)
		}
		v, err := q.Exec(t.Context()).Vector()
		if err != nil {
			t.Fatalf("%s: %v", r.Record, err)
		}
		value, known := want[r.Record]
		if !known {
			if len(v) != 0 {
				t.Errorf("%s: %v", r.Record, v)
			}
			continue
		}
		delete(want, r.Record)
		if len(v) != 1 || math.Abs(v[0].F-value) > 1e-9 {
			t.Errorf("%s: %v, want %v", r.Record, v, value)
			continue
		}
		for _, label := range []string{"sloth_id", "sloth_service", "slo"} {
			if got := v[0].Metric.Get(label); got != "shop/cart" {
				t.Errorf("%s: %s is %q", r.Record, label, got)
			}
		}
		if r.Labels["sloth_slo"] == "" {
			t.Errorf("%s has no label sloth_slo", r.Record)
		}
		q.Close()
	}
	for name := range want {
		t.Errorf("no rule records %s", name)
	}
}
