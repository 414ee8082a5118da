package dashboards

import (
	"fmt"
	"strings"
)

// recording is one recording rule.
type recording struct {
	record, why, expr string
	labels            [][2]string
}

// named gives series of a service the labels by which Sloth's and Pyrra's dashboards find an SLO.
func named(expr string) string {
	for _, label := range []string{"slo", "sloth_service", "sloth_id"} {
		expr = fmt.Sprintf(`label_join(%s, %q, "/", "namespace", "service")`, expr, label)
	}
	return expr
}

// of is a metric of each service, whichever process exports it.
func of(metric string) string { return fmt.Sprintf("max by (namespace, service) (%s)", metric) }

const (
	allowed = `(1 - max by (namespace, service) (springtide_slo_objective_ratio))`
	minutes = `sum by (namespace, service) (springtide_slo_judged_seconds_total{result=~%q}) / 60`
)

// sloRules are the recording rules under which the tools of others know each service's promise. The names and labels
// are those that Sloth writes (slo:..., sloth_slo_info), and those of Pyrra's generic rules (pyrra_...). An event is
// a minute, since it is minutes that are good or bad.
func sloRules() []recording {
	var out []recording
	add := func(record, why, expr string, labels ...[2]string) {
		labels = append([][2]string{{"sloth_slo", "springtide"}}, labels...)
		out = append(out, recording{record, why, named(expr), labels})
	}
	for _, w := range []string{"5m", "30m", "1h", "2h", "6h", "1d", "3d"} {
		add("slo:sli_error:ratio_rate"+w, "Share of bad minutes within "+w+".",
			of(fmt.Sprintf("springtide_slo_burn_rate{window=%q}", w))+" * on (namespace, service) "+allowed,
			[2]string{"sloth_window", w})
	}
	add("slo:objective:ratio", "Share of minutes that must be good.", of("springtide_slo_objective_ratio"))
	add("slo:error_budget:ratio", "Share of minutes that may be bad.", allowed)
	add("slo:time_period:days", "Days of the window.", of("springtide_slo_window_seconds")+" / 86400")
	add("slo:current_burn_rate:ratio", "Burn of now.", of(`springtide_slo_burn_rate{window="5m"}`))
	add("slo:period_burn_rate:ratio", "Burn over the window.",
		"(1 - "+of("springtide_slo_met_ratio")+") / on (namespace, service) "+allowed)
	add("slo:period_error_budget_remaining:ratio", "Share of the budget that is left.",
		of("springtide_slo_budget_left_seconds")+" / on (namespace, service) ("+of("springtide_slo_window_seconds")+
			" * on (namespace, service) "+allowed+")")
	add("sloth_slo_info", "The promise, as dashboards list it.", of("springtide_slo_objective_ratio")+" ^ 0",
		[2]string{"sloth_mode", "springtide"}, [2]string{"sloth_spec", "springtide.dev/v1alpha1"})
	add("pyrra_objective", "Share of minutes that must be good.", of("springtide_slo_objective_ratio"))
	add("pyrra_window", "Seconds of the window.", of("springtide_slo_window_seconds"))
	add("pyrra_availability", "Share of known minutes that were good.", of("springtide_slo_met_ratio"))
	add("pyrra_requests_total", "Known minutes.", fmt.Sprintf(minutes, "good|bad"))
	add("pyrra_errors_total", "Bad minutes.", fmt.Sprintf(minutes, "bad"))
	return out
}

// SLORulesYAML renders them as a Prometheus rule file. It is optional: the alerts do not read it.
func SLORulesYAML() []byte {
	var b strings.Builder
	b.WriteString("# Generated from dashboards/slorules.go: make generate.\n" +
		"groups:\n- name: springtide-slo\n  interval: 1m\n  rules:\n")
	for _, r := range sloRules() {
		fmt.Fprintf(&b, "  # %s\n  - record: %s\n    expr: %s\n    labels:\n", r.why, r.record, r.expr)
		for _, l := range r.labels {
			fmt.Fprintf(&b, "      %s: %s\n", l[0], l[1])
		}
	}
	return []byte(b.String())
}
