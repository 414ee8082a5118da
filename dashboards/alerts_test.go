package dashboards

import (
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// alertCase is a story of series, one sample a minute, and what an alert makes of it at its end.
type alertCase struct {
	// series in promqltest's notation; at is the minute of the last evaluation.
	series string
	at     int
	// fires are the labels of the alerts that fire, without the name and the severity; silent when empty.
	fires []string
	// says is part of the description of each of them.
	says string
}

// alertCases has for each alert at least one story in which it fires, and one next to it in which it is silent.
var alertCases = map[string][]alertCase{
	"SpringtideRecallLate": {
		{series: `springtide_recalls_overdue{pool="online"} 0 0 2x10`, at: 5, fires: []string{`{pool="online"}`}, says: "2 parcels of pool online"},
		{series: `springtide_recalls_overdue{pool="online"} 0 0 1 0x10`, at: 5},
	},
	"SpringtideParcelLost": {
		{series: `springtide_loans{pool="online",kind="Node",phase="Fenced"} 0 1x5`, at: 2, fires: []string{`{phase="Fenced", pool="online"}`}, says: "1 parcels of pool online are Fenced"},
		{series: `springtide_loans{pool="online",kind="Socket",phase="WrittenOff"} 0 1x5`, at: 2, fires: []string{`{phase="WrittenOff", pool="online"}`}},
		{series: `springtide_loans{pool="online",kind="Node",phase="Draining"} 3x5`, at: 2},
	},
	"SpringtideCycleStopped": {
		{series: `springtide_last_cycle_timestamp_seconds{pod="a"} 0 60 120 120x20`, at: 12, fires: []string{`{}`}, says: "No controller reports a finished cycle"},
		{series: `up{job="other"} 1x20`, at: 5, fires: []string{`{}`}},
		// The standby has finished none, and the leader works.
		{series: "springtide_last_cycle_timestamp_seconds{pod=\"a\"} 0+60x20\n  springtide_last_cycle_timestamp_seconds{pod=\"b\"} 0x20", at: 12},
	},
	"SpringtideSLOBurnsFast": {
		{series: burning("1h", "20x10") + burning("5m", "15x10"), at: 0,
			fires: []string{`{namespace="shop", service="cart"}`}, says: "shop/cart burns its budget 20 times faster"},
		{series: burning("6h", "7x10") + burning("30m", "9x10"), at: 3,
			fires: []string{`{namespace="shop", service="cart"}`}, says: "7 times faster"},
		// Over: nothing burns any more, or not yet for long enough.
		{series: burning("1h", "20x10") + burning("5m", "0x10"), at: 3},
		{series: burning("1h", "14x10") + burning("5m", "200x10"), at: 3},
		{series: burning("6h", "7x10") + burning("30m", "5x10"), at: 3},
		{series: burning("1h", "13x10") + burning("30m", "13x10"), at: 3},
		// Another service does not stand in for the short window.
		{series: burning("1h", "20x10") + `springtide_slo_burn_rate{namespace="shop",service="pay",window="5m"} 20x10`,
			at: 3},
		// The process before exported less, and is gone.
		{series: burning("1h", "20x10") + burning("5m",
			"20x10") + `springtide_slo_burn_rate{namespace="shop",service="cart",window="1h",pod="old"} 1x10`, at: 3,
			fires: []string{`{namespace="shop", service="cart"}`}},
	},
	"SpringtideSLOBurnsSlowly": {
		{series: burning("1d", "3.5x10") + burning("2h", "4x10"), at: 0,
			fires: []string{`{namespace="shop", service="cart"}`}, says: "3.5 times faster"},
		{series: burning("3d", "1.2x10") + burning("6h", "2x10"), at: 3,
			fires: []string{`{namespace="shop", service="cart"}`}},
		{series: burning("1d", "3.5x10") + burning("2h", "1x10") + burning("3d", "2x10") + burning("6h", "0.9x10"), at: 3},
		{series: burning("3d", "1x10") + burning("6h", "9x10"), at: 3},
	},
	"SpringtideSLOMissed": {
		{series: `springtide_slo_budget_left_seconds{namespace="shop",service="cart"} 60 -60x10`, at: 7,
			fires: []string{`{namespace="shop", service="cart"}`}, says: "shop/cart was bad for longer"},
		{series: `springtide_slo_budget_left_seconds{namespace="shop",service="cart"} 60 0x10`, at: 7},
	},
	"SpringtideSchedulerStopped": {
		{series: `springtide_scheduler_leader{partition="0",pod="a"} 1 0x10`, at: 6, fires: []string{`{partition="0"}`}, says: "partition 0"},
		// One of two processes holds the lease.
		{series: "springtide_scheduler_leader{partition=\"0\",pod=\"a\"} 0x10\n  springtide_scheduler_leader{partition=\"0\",pod=\"b\"} 1x10", at: 6},
	},
	"SpringtideBindingsRefused": {
		{series: `springtide_scheduler_binds_total{outcome="refused"} 0+120x40`, at: 30, fires: []string{`{}`}, says: "2 bindings a second"},
		{series: "springtide_scheduler_binds_total{outcome=\"refused\"} 0+30x40\n  springtide_scheduler_binds_total{outcome=\"bound\"} 0+6000x40", at: 30},
	},
	"SpringtideDataStale": {
		{series: `springtide_service_data_fresh{namespace="shop",service="cart"} 1 0x10`, at: 7, fires: []string{`{namespace="shop", service="cart"}`}, says: "shop/cart scales out and never in"},
		{series: `springtide_service_data_fresh{namespace="shop",service="cart"} 1 0 0 0 1x10`, at: 7},
	},
	"SpringtideObjectRefused": {
		{series: `springtide_object_refused{kind="CapacityQuota",namespace="",name="team-a",reason="ParentCycle"} 1x10`, at: 6,
			fires: []string{`{kind="CapacityQuota", name="team-a", reason="ParentCycle"}`}, says: "is refused: ParentCycle"},
		{series: `springtide_object_refused{kind="CapacityQuota",name="team-a",reason="ParentCycle"} 1 1 stale`, at: 6},
	},
	"SpringtideSizeHeld": {
		{series: `springtide_object_held{kind="ElasticJob",namespace="ml",name="train",reason="PodsRefused"} 1x20`, at: 16,
			fires: []string{`{kind="ElasticJob", name="train", namespace="ml", reason="PodsRefused"}`}, says: "not the size that is decided: PodsRefused"},
		{series: `springtide_object_held{kind="ElasticService",namespace="shop",name="off",reason="SetToZero"} 1x20`, at: 16},
	},
	"SpringtideSourceDown": {
		{series: `springtide_source_up{source="history"} 1 0x10`, at: 7, fires: []string{`{source="history"}`}, says: "history has been down"},
		{series: `springtide_source_up{source="history"} 0 0 0 1x10`, at: 7},
	},
	"SpringtideGatesShut": {
		{series: `springtide_gate_open_failures_total{pod="a"} 0x3 0+4x30`, at: 15, fires: []string{`{}`},
			says: "they run, and get no traffic"},
		{series: `springtide_gate_open_failures_total{pod="a"} 0x3 4x30`, at: 15},
	},
	"SpringtideAgentBlind": {
		{series: `springtide_agent_facts_age_seconds{instance="m"} 5 5 300x20`, at: 8, fires: []string{`{instance="m"}`}, says: "what it knew 5m 0s ago"},
		{series: `springtide_agent_facts_age_seconds{instance="m"} 5 5 300 300 5x20`, at: 8},
	},
	"SpringtideAgentWriteFails": {
		{series: `springtide_agent_cgroup_writes_total{instance="m",file="cpuset.cpus",via="file",result="error"} 0+3x30`, at: 20,
			fires: []string{`{file="cpuset.cpus", instance="m"}`}, says: "The agent m fails to write the cgroup file cpuset.cpus: pods"},
		{series: `springtide_agent_state_errors_total{instance="m"} 0+1x30`, at: 20, fires: []string{`{instance="m"}`}, says: "The agent m fails to write its own state: after"},
		{series: "springtide_agent_cgroup_writes_total{instance=\"m\",file=\"cpuset.cpus\",via=\"file\",result=\"ok\"} 0+3x30\n" +
			"  springtide_agent_cgroup_writes_total{instance=\"m\",file=\"cpuset.cpus\",via=\"file\",result=\"error\"} 2x30", at: 20},
	},
	"SpringtideMachinePressed": {
		{series: `springtide_agent_pressure{instance="m",rule="MemoryLow"} 1x20`, at: 12, fires: []string{`{instance="m", rule="MemoryLow"}`}, says: "On m the rule MemoryLow"},
		{series: `springtide_agent_pressure{instance="m",rule="MemoryLow"} 1 1 1 stale`, at: 12},
	},
	"SpringtideAgentUnhooked": {
		{series: `springtide_agent_runtime_connected{instance="m"} 0x40`, at: 32, fires: []string{`{instance="m"}`}, says: "runtime of m"},
		{series: `springtide_agent_runtime_connected{instance="m"} 0x20 1x20`, at: 32},
	},
	"SpringtideForecastSkillLost": {
		{series: `springtide_forecast_skill_lost{namespace="shop",service="cart"} 1x180`, at: 125, fires: []string{`{namespace="shop", service="cart"}`}, says: "shop/cart follows its live load"},
		{series: `springtide_forecast_skill_lost{namespace="shop",service="cart"} 1x60 0x120`, at: 125},
	},
	"SpringtideQuotaOverdue": {
		{series: `springtide_tenant_overdue{tenant="train"} 1x20`, at: 17, fires: []string{`{tenant="train"}`}, says: "Tenant train"},
		{series: `springtide_tenant_overdue{tenant="train"} 1x10 0x10`, at: 17},
	},
	"SpringtideLoanOverrun": {
		{series: `springtide_loans_overrun{pool="batch"} 2x40`, at: 32, fires: []string{`{pool="batch"}`}, says: "2 machines of pool batch"},
		{series: `springtide_loans_overrun{pool="batch"} 2x20 0x20`, at: 32},
	},
	"SpringtideShareDrift": {
		{series: `springtide_share_drift 1x20`, at: 7, fires: []string{`{}`}, says: "1 parcels have a loan without"},
		{series: `springtide_share_drift 1x2 0x20`, at: 7},
	},
	"SpringtideStrayNodes": {
		{series: `springtide_stray_nodes{pool="web",reason="StrayPods"} 3x30`, at: 17, fires: []string{`{pool="web", reason="StrayPods"}`}, says: "3 machines of pool web are used without a loan: StrayPods"},
		{series: `springtide_stray_nodes{pool="web",reason="LoanGone"} 1x10 0x20`, at: 17},
	},
	"SpringtideAnotherInstallation": {
		{series: `springtide_another_installation{namespace="b"} 1x20`, at: 12, fires: []string{`{namespace="b"}`}, says: "another installation leads"},
		{series: `springtide_another_installation{namespace="b"} 1x5 0x20`, at: 12},
	},
	"SpringtideNewerLeaderWrites": {
		{series: `springtide_newer_leader_writes_total{object="target"} 0+4x40`, at: 30, fires: []string{`{object="target"}`}, says: "objects of kind target"},
		{series: `springtide_newer_leader_writes_total{object="target"} 0x5 4x40`, at: 30},
	},
	"SpringtideTenantShort": {
		{series: `springtide_tenant_short{tenant="shop",when="now"} 1x10`, at: 7, fires: []string{`{tenant="shop", when="now"}`}, says: "tenant shop"},
		{series: `springtide_tenant_short{tenant="shop",when="ahead"} 1x10`, at: 7},
	},
	"SpringtideLowPriorityLow": {
		{series: "springtide_low_priority_level_ratio{pool=\"batch\"} 0.05x20\n  springtide_low_priority_watermark_ratio{pool=\"batch\",watermark=\"low\"} 0.1x20", at: 17,
			fires: []string{`{pool="batch"}`}, says: "Offline work has 5%"},
		{series: "springtide_low_priority_level_ratio{pool=\"batch\"} 0.15x20\n  springtide_low_priority_watermark_ratio{pool=\"batch\",watermark=\"low\"} 0.1x20\n" +
			"  springtide_low_priority_watermark_ratio{pool=\"batch\",watermark=\"high\"} 0.2x20", at: 17},
	},
	"SpringtideJobNeverBegins": {
		{series: `springtide_jobs_waiting{reason="Size"} 1x40`, at: 32, fires: []string{`{reason="Size"}`}, says: "1 jobs wait for Size"},
		{series: `springtide_jobs_waiting{reason="Tide"} 5x40`, at: 32},
	},
	"SpringtideTenantShortAhead": {
		{series: `springtide_tenant_short{tenant="shop",when="ahead"} 1x90`, at: 65, fires: []string{`{tenant="shop", when="ahead"}`}, says: "tenant shop do not fit"},
		{series: `springtide_tenant_short{tenant="shop",when="now"} 1x90`, at: 65},
	},
	"SpringtideFrozen": {
		{series: `springtide_frozen 1x90`, at: 65, fires: []string{`{}`}, says: "springtide thaw"},
		{series: `springtide_frozen 1x90`, at: 50},
	},
}

// burning is the burn of a service over a window.
func burning(window, values string) string {
	return fmt.Sprintf("springtide_slo_burn_rate{namespace=\"shop\",service=\"cart\",window=%q} %s\n  ", window, values)
}

// TestAlertsFire plays each alert as Prometheus does: the rule of alerts.yaml is evaluated each minute on the engine.
func TestAlertsFire(t *testing.T) {
	file, errs := rulefmt.Parse(AlertsYAML(), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	seen := map[string]bool{}
	for _, r := range file.Groups[0].Rules {
		seen[r.Alert] = true
		fires, silent := 0, 0
		for _, c := range alertCases[r.Alert] {
			if len(c.fires) > 0 {
				fires++
			} else {
				silent++
			}
			got, texts := play(t, r, c)
			if !slices.Equal(got, c.fires) {
				t.Errorf("%s on\n  %s\nfires at minute %d: %v, want %v", r.Alert, c.series, c.at, got, c.fires)
			}
			for _, text := range texts {
				if !strings.Contains(text, c.says) || strings.Contains(text, "<error") {
					t.Errorf("%s says %q, want %q in it", r.Alert, text, c.says)
				}
			}
		}
		if fires == 0 || silent == 0 {
			t.Errorf("%s has %d stories in which it fires and %d in which it is silent: it needs one of each", r.Alert, fires, silent)
		}
	}
	for name := range alertCases {
		if !seen[name] {
			t.Errorf("stories of %s, which is no alert", name)
		}
	}
}

// play evaluates a rule each minute, and lists what fires at the end, with the descriptions.
func play(t *testing.T, r rulefmt.Rule, c alertCase) (fires, texts []string) {
	t.Helper()
	store := promqltest.LoadedStorage(t, "load 1m\n  "+c.series)
	defer store.Close()
	engine := promqltest.NewTestEngine(t, false, 0, 1e6)
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
	if err != nil {
		t.Fatal(err)
	}
	rule := rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), 0, labels.FromMap(r.Labels), labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	for minute := range c.at + 1 {
		if _, err := rule.Eval(t.Context(), 0, time.Unix(0, 0).Add(time.Duration(minute)*time.Minute), rules.EngineQueryFunc(engine, store), &url.URL{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range rule.ActiveAlerts() {
		if a.State != rules.StateFiring {
			continue
		}
		fires = append(fires, labels.NewBuilder(a.Labels).Del("alertname", "severity").Labels().String())
		texts = append(texts, a.Annotations.Get("description"))
	}
	slices.Sort(fires)
	return fires, texts
}

// TestRunbookURLs: each alert links its page, which is there.
func TestRunbookURLs(t *testing.T) {
	file, errs := rulefmt.Parse(AlertsYAML(), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, r := range file.Groups[0].Rules {
		page, ok := strings.CutPrefix(r.Annotations["runbook_url"], runbooks)
		if _, err := os.Stat(filepath.Join("..", "docs", "runbooks", page)); !ok || page == "" || err != nil {
			t.Errorf("%s: runbook_url %q: %v", r.Alert, r.Annotations["runbook_url"], err)
		}
		for _, needed := range []string{"summary", "description"} {
			if r.Annotations[needed] == "" {
				t.Errorf("%s has no %s; its annotations are %v", r.Alert, needed, slices.Sorted(maps.Keys(r.Annotations)))
			}
		}
	}
}
