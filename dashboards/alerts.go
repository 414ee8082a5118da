package dashboards

import (
	"fmt"
	"strings"
)

// Alert is one alerting rule.
type Alert struct {
	Name, Expr, For, Severity string
	Summary, Description      string
	// Sparse says that its series are there only while there is something to report.
	Sparse bool
}

// Alerts lists the alerts in the order of their urgency.
func Alerts() []Alert {
	return []Alert{
		{Name: "SpringtideRecallLate", Severity: "critical", For: "1m",
			Expr:        `sum by (pool) (springtide_recalls_overdue) > 0`,
			Summary:     "Recalled capacity is not home by its due time",
			Description: "{{ $value }} parcels of pool {{ $labels.pool }} are overdue. `springtide loans` names them and the pods that keep them."},
		{Name: "SpringtideParcelLost", Severity: "critical", For: "0m",
			Expr:        `sum by (pool, phase) (springtide_loans{phase=~"Fenced|WrittenOff"}) > 0`,
			Summary:     "A recalled machine did not come home and was cut off",
			Description: "{{ $value }} parcels of pool {{ $labels.pool }} are {{ $labels.phase }}: their capacity is missing. `springtide loans` names the machines."},
		{Name: "SpringtideCycleStopped", Severity: "critical", For: "2m",
			Expr:        `time() - max(springtide_last_cycle_timestamp_seconds) > 300 or absent(springtide_last_cycle_timestamp_seconds)`,
			Summary:     "No cycle of the controller has finished for five minutes",
			Description: "No controller reports a finished cycle: nothing scales, and nothing comes home. `kubectl -n springtide-system get pods,lease` shows whether one runs and leads."},
		{Name: "SpringtideSLOBurnsFast", Severity: "critical", For: "0m", Sparse: true,
			Expr:    burnsAt(14.4, "1h", "5m") + ` or ` + burnsAt(6, "6h", "30m"),
			Summary: "A service uses up its error budget within days",
			Description: "{{ $labels.namespace }}/{{ $labels.service }} burns its budget {{ $value | humanize }} times faster " +
				"than its objective allows. `springtide slo -n {{ $labels.namespace }}` says what is left, and why minutes were " +
				"bad."},
		{Name: "SpringtideSchedulerStopped", Severity: "critical", For: "2m",
			Expr:        `max by (partition) (springtide_scheduler_leader) == 0`,
			Summary:     "A partition of the bundled scheduler places nothing",
			Description: "No process holds the lease of partition {{ $labels.partition }}: pods that name the bundled scheduler wait. `springtide doctor` counts them, `kubectl -n springtide-system get lease` names the last holder."},
		{Name: "SpringtideBindingsRefused", Severity: "warning", For: "15m",
			Expr:        `sum(rate(springtide_scheduler_binds_total{outcome="refused"}[10m])) > 1`,
			Summary:     "Many bindings of the bundled scheduler are refused",
			Description: "{{ $value }} bindings a second come to nothing and are decided again. The scheduler's log says why: another scheduler binds the same pods, or admission refuses them."},
		{Name: "SpringtideSLOBurnsSlowly", Severity: "warning", For: "0m", Sparse: true,
			Expr:    burnsAt(3, "1d", "2h") + ` or ` + burnsAt(1, "3d", "6h"),
			Summary: "A service uses up its error budget before its window ends",
			Description: "{{ $labels.namespace }}/{{ $labels.service }} burns its budget {{ $value | humanize }} times faster " +
				"than its objective allows, for hours. `springtide slo -n {{ $labels.namespace }}` says what is left, and why " +
				"minutes were bad."},
		{Name: "SpringtideSLOMissed", Severity: "warning", For: "5m", Sparse: true,
			Expr:    `max by (namespace, service) (springtide_slo_budget_left_seconds) < 0`,
			Summary: "A service has missed its objective",
			Description: "{{ $labels.namespace }}/{{ $labels.service }} was bad for longer than its objective allows within " +
				"its window. `springtide slo -n {{ $labels.namespace }}` says for how long, and why."},
		{Name: "SpringtideDataStale", Severity: "warning", For: "5m",
			Expr:        `springtide_service_data_fresh == 0`,
			Summary:     "A service is sized without fresh data",
			Description: "{{ $labels.namespace }}/{{ $labels.service }} scales out and never in until its metrics are back. `springtide explain service` names what is missing."},
		{Name: "SpringtideObjectRefused", Severity: "warning", For: "5m", Sparse: true,
			Expr:        `max by (kind, namespace, name, reason) (springtide_object_refused) == 1`,
			Summary:     "An object is refused, and nothing is done for it",
			Description: "{{ $labels.kind }} {{ $labels.namespace }}/{{ $labels.name }} is refused: {{ $labels.reason }}. Its condition Accepted says what to change; `springtide validate --cluster` finds the same."},
		{Name: "SpringtideSizeHeld", Severity: "warning", For: "15m", Sparse: true,
			Expr:        `max by (kind, namespace, name, reason) (springtide_object_held{reason!="SetToZero"}) == 1`,
			Summary:     "The size of a service or job is in others' hands",
			Description: "{{ $labels.kind }} {{ $labels.namespace }}/{{ $labels.name }} is not the size that is decided: {{ $labels.reason }}. Its condition AbleToScale says who, and what to do."},
		{Name: "SpringtideSourceDown", Severity: "warning", For: "5m",
			Expr:        `springtide_source_up == 0`,
			Summary:     "A source or store of the controller does not answer",
			Description: "{{ $labels.source }} has been down for five minutes."},
		{Name: "SpringtideGatesShut", Severity: "critical", For: "5m", Sparse: true,
			Expr:    `sum(increase(springtide_gate_open_failures_total[5m])) > 0`,
			Summary: "New pods of services with a standby do not become ready",
			Description: "The controller could not open the readiness gates of {{ $value | humanize }} pods within five " +
				"minutes: they run, and get no traffic. Its log says why."},
		{Name: "SpringtideAgentBlind", Severity: "warning", For: "5m", Sparse: true,
			Expr:        `springtide_agent_facts_age_seconds > 120`,
			Summary:     "A node agent does not reach the API server",
			Description: "The agent {{ $labels.instance }} enforces what it knew {{ $value | humanizeDuration }} ago. Nothing of its machine is lent or reported until it reads the API server again."},
		{Name: "SpringtideAgentWriteFails", Severity: "warning", For: "10m", Sparse: true,
			Expr:        `sum by (instance, file) (rate(springtide_agent_cgroup_writes_total{result="error"}[5m])) > 0 or sum by (instance) (increase(springtide_agent_state_errors_total[10m])) > 0`,
			Summary:     "A node agent cannot write what it wants to",
			Description: "The agent {{ $labels.instance }} fails to write {{ if $labels.file }}the cgroup file {{ $labels.file }}: pods may be on CPUs that are not theirs{{ else }}its own state: after a restart without the API server it would not enforce the last share{{ end }}. Its log names file and error."},
		{Name: "SpringtideMachinePressed", Severity: "warning", For: "10m", Sparse: true,
			Expr:        `max by (instance, rule) (springtide_agent_pressure) == 1`,
			Summary:     "Evictions do not relieve a machine",
			Description: "On {{ $labels.instance }} the rule {{ $labels.rule }} has been over its threshold for ten minutes. No reclaimed pod is left that may go, or disruption budgets refuse it."},
		{Name: "SpringtideAgentUnhooked", Severity: "info", For: "30m", Sparse: true,
			Expr:        `springtide_agent_runtime_connected == 0`,
			Summary:     "Containers of a machine start before they are confined",
			Description: "The container runtime of {{ $labels.instance }} has not registered the agent: each container is confined up to a cycle after its start."},
		{Name: "SpringtideForecastSkillLost", Severity: "info", For: "2h",
			Expr:        `springtide_forecast_skill_lost == 1`,
			Summary:     "The forecasts of a service are too far off to be trusted",
			Description: "{{ $labels.namespace }}/{{ $labels.service }} follows its live load alone until its forecasts are good again. `springtide explain service` says by how much they missed."},
		{Name: "SpringtideQuotaOverdue", Severity: "warning", For: "15m",
			Expr:        `springtide_tenant_overdue == 1`,
			Summary:     "A tenant has not given back what was due",
			Description: "Tenant {{ $labels.tenant }} runs beyond its quota after its deadline. `springtide explain quota {{ $labels.tenant }}` says by how much and why."},
		{Name: "SpringtideLoanOverrun", Severity: "warning", For: "30m",
			Expr:        `sum by (pool) (springtide_loans_overrun) > 0`,
			Summary:     "Online keeps machines of an offline pool beyond their due time",
			Description: "{{ $value }} machines of pool {{ $labels.pool }} should be home. Online still needs them, and offline work has as much less. `springtide loans` names them."},
		{Name: "SpringtideShareDrift", Severity: "warning", For: "5m",
			Expr:        `max(springtide_share_drift) > 0`,
			Summary:     "Loans and NodeShares tell different stories",
			Description: "{{ $value }} parcels have a loan without its entry in the NodeShare, or an entry without a loan, for five minutes. The controller repairs both within a cycle or two. `springtide explain node` and the condition LoansAccounted of the pool say what holds it back."},
		{Name: "SpringtideStrayNodes", Severity: "warning", For: "15m",
			Expr:        `sum by (pool, reason) (springtide_stray_nodes) > 0`,
			Summary:     "Machines are used by a borrower without a loan",
			Description: "{{ $value }} machines of pool {{ $labels.pool }} are used without a loan: {{ $labels.reason }}. Their pods get notice and time, and leave. The condition LoansAccounted of the pool names the first machine and what holds it back."},
		{Name: "SpringtideAnotherInstallation", Severity: "warning", For: "10m",
			Expr:        `max by (namespace) (springtide_another_installation) == 1`,
			Summary:     "Two installations of Springtide are in one cluster",
			Description: "A controller waits since another installation leads in the cluster. Event AnotherInstallation on its Lease names the two namespaces: uninstall one."},
		{Name: "SpringtideNewerLeaderWrites", Severity: "warning", For: "15m", Sparse: true,
			Expr:        `sum by (object) (increase(springtide_newer_leader_writes_total[10m])) > 0`,
			Summary:     "Objects are not written since they carry the epoch of a newer leader",
			Description: "Writes to objects of kind {{ $labels.object }} are held back. The condition AbleToScale of the service (reason NewerLeader) and events name the objects: another controller writes them, or their annotation was written by hand."},
		{Name: "SpringtideTenantShort", Severity: "warning", For: "5m",
			Expr:        `springtide_tenant_short{when="now"} == 1`,
			Summary:     "The services of a tenant want more than it may have",
			Description: "The growth of tenant {{ $labels.tenant }} is cut by its quota. `springtide explain quota {{ $labels.tenant }}` names the bound."},
		{Name: "SpringtideLowPriorityLow", Severity: "info", For: "15m",
			Expr:        `springtide_low_priority_level_ratio < on (pool) springtide_low_priority_watermark_ratio{watermark="low"}`,
			Summary:     "Low-priority capacity is below its low watermark",
			Description: "Offline work has {{ $value | humanizePercentage }} of all machines of pools. Bursts of tenants end, and offline work waits."},
		{Name: "SpringtideJobNeverBegins", Severity: "info", For: "30m",
			Expr:        `sum by (reason) (springtide_jobs_waiting{reason=~"Quota|Size"}) > 0`,
			Summary:     "A job waits for what will not come by itself",
			Description: "{{ $value }} jobs wait for {{ $labels.reason }}: their tenant may never use as much, or no machine is large enough. `springtide explain job` says which and what."},
		{Name: "SpringtideTenantShortAhead", Severity: "info", For: "1h",
			Expr:        `springtide_tenant_short{when="ahead"} == 1`,
			Summary:     "A tenant will want more than it may have within the week",
			Description: "Forecasts, windows or festival plans of tenant {{ $labels.tenant }} do not fit its quota. `springtide explain quota {{ $labels.tenant }}` says when."},
		{Name: "SpringtideFrozen", Severity: "info", For: "1h",
			Expr:        `springtide_frozen == 1`,
			Summary:     "All actions have been frozen for an hour",
			Description: "Nothing scales and nothing is recalled. `springtide thaw` ends it."},
	}
}

// burnsAt is where a budget burns at a rate or faster over a long window, and still does over a short one, so that
// the alert ends soon after what it is for (the SRE workbook, chapter 5: multiwindow, multi-burn-rate alerts). Of
// two processes that export the same budget, after one took over from the other, the one that says more counts.
func burnsAt(rate float64, long, short string) string {
	over := func(window string) string {
		return fmt.Sprintf(`max by (namespace, service) (springtide_slo_burn_rate{window=%q}) > %v`, window, rate)
	}
	return fmt.Sprintf("(%s and %s)", over(long), over(short))
}

// runbooks is where the page of each alert is, under the alert's name.
const runbooks = "https://github.com/springtide/springtide/blob/main/docs/runbooks/"

// AlertsYAML renders the alerts as a Prometheus rule file.
func AlertsYAML() []byte {
	var b strings.Builder
	b.WriteString("# Generated from dashboards/alerts.go: make generate.\ngroups:\n- name: springtide-alerts\n  rules:\n")
	for _, a := range Alerts() {
		fmt.Fprintf(&b, "  - alert: %s\n    expr: %s\n    for: %s\n    labels:\n      severity: %s\n    annotations:\n      summary: %q\n      description: %q\n      runbook_url: %q\n",
			a.Name, a.Expr, a.For, a.Severity, a.Summary, a.Description, runbooks+a.Name+".md")
	}
	return []byte(b.String())
}
