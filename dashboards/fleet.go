package dashboards

// Fleet is the dashboard of the fleet's capacity.
func Fleet() Dashboard {
	return Dashboard{
		UID: "springtide-fleet", Title: "Springtide / Fleet capacity",
		Description: "Demand and its forecast, replicas, pools, loans and recalls of the whole fleet.",
		Rows: []Row{
			{Title: "Tide", Panels: []Panel{
				{Title: "Demand of online services", Kind: "timeseries", Unit: "cores", Width: 16,
					Description: "What online pods request, what the services are forecast to need 15 minutes ahead (the services' quantiles, summed), and the pool.",
					Queries: []Query{
						{`sum(springtide_pool_cpu_cores{kind="capacity"})`, "capacity"},
						{`sum(springtide_pool_cpu_cores{kind="requested"})`, "requested"},
						{`sum(springtide_pool_demand_cores{lead="15m",quantile="0.5"})`, "forecast +15m, median"},
						{`sum(springtide_pool_demand_cores{lead="15m",quantile="0.95"})`, "forecast +15m, 95 %"},
						{`sum(springtide_pool_cpu_cores{kind="lent"})`, "lent"},
					}},
				{Title: "CPU in use", Kind: "timeseries", Unit: "percentunit", Width: 8,
					Description: "Used CPU of all containers over what the machines can hold.",
					Queries: []Query{
						{`sum(rate(container_cpu_usage_seconds_total{container!="",container!="POD"}[5m])) / sum(kube_node_status_allocatable{resource="cpu"})`, "in use"},
					}},
			}},
			{Title: "Services", Panels: []Panel{
				{Title: "Replicas", Kind: "timeseries", Unit: "short", Width: 12, Description: "Replicas of all services: ready, desired, and the forecast's floor.",
					Queries: []Query{{`sum by (kind) (springtide_service_replicas)`, "{{kind}}"}}},
				{Title: "Desired above ready", Kind: "timeseries", Unit: "short", Width: 6, Description: "The services that wait for most replicas.",
					Queries: []Query{{`topk(5, springtide_service_replicas{kind="desired"} - ignoring(kind) springtide_service_replicas{kind="ready"})`, "{{namespace}}/{{service}}"}}},
				{Title: "Services without fresh data", Kind: "stat", Unit: "short", Width: 6, Description: "They scale out and never in.",
					Queries: []Query{{`count(springtide_service_data_fresh == 0) or vector(0)`, "stale"}}},
				{Title: "Chains held back", Kind: "timeseries", Unit: "short", Width: 8, Sparse: true,
					Description: "The member of each link group that its maximum or its quota holds back the most: the others scale, and it is where requests queue.",
					Queries:     []Query{{`springtide_link_bottleneck`, "{{namespace}}/{{service}}"}}},
				{Title: "Lift by the calendar", Kind: "timeseries", Unit: "short", Width: 8, Sparse: true,
					Description: "What the days of the calendar multiply forecasts by now, the furthest from 1: above on a festival, below on a holiday.",
					Queries: []Query{
						{`topk(5, springtide_calendar_lift_ratio > 1)`, "{{namespace}}/{{service}}"},
						{`bottomk(5, springtide_calendar_lift_ratio < 1)`, "{{namespace}}/{{service}}"},
					}},
				{Title: "Quality of portraits", Kind: "timeseries", Unit: "percentunit", Width: 8,
					Description: "How far portraits can be trusted: the median service, and the one of ten with the least. Young services begin at zero.",
					Queries: []Query{
						{`quantile(0.5, springtide_portrait_quality_ratio)`, "median"},
						{`quantile(0.1, springtide_portrait_quality_ratio)`, "least of ten"},
					}},
			}},
			{Title: "Forecasts", Panels: []Panel{
				{Title: "Coverage of the 0.9 quantile", Kind: "timeseries", Unit: "percentunit", Width: 8,
					Description: "Share of the loads at or below the 0.9 quantile as it was forecast, mean of the services: 90 % is promised.",
					Queries:     []Query{{`avg by (horizon) (springtide_forecast_coverage_ratio)`, "{{horizon}} ahead"}}},
				{Title: "Usual miss", Kind: "timeseries", Unit: "percentunit", Width: 8,
					Description: "Distance of the load from the median that was forecast, over a day's mean load: median of the services.",
					Queries:     []Query{{`quantile by (horizon) (0.5, springtide_forecast_miss_ratio)`, "{{horizon}} ahead"}}},
				{Title: "Forecast skill lost", Kind: "stat", Unit: "short", Width: 8,
					Description: "Services whose newest forecasts were too far off to be trusted. They scale out and never in.",
					Queries:     []Query{{`sum(springtide_forecast_skill_lost) or vector(0)`, "lost"}}},
			}},
			{Title: "Loans", Panels: []Panel{
				{Title: "Loans by phase", Kind: "timeseries", Unit: "short", Width: 12, Stacked: true, Description: "Parcels that are away or on their way.",
					Queries: []Query{{`sum by (phase) (springtide_loans)`, "{{phase}}"}}},
				{Title: "Recall time", Kind: "timeseries", Unit: "s", Width: 6, Description: "From the first notice to Clean, over an hour.",
					Queries: []Query{
						{`histogram_quantile(0.5, sum by (le) (rate(springtide_recall_duration_seconds_bucket[1h])))`, "p50"},
						{`histogram_quantile(0.99, sum by (le) (rate(springtide_recall_duration_seconds_bucket[1h])))`, "p99"},
					}},
				{Title: "Recalls overdue", Kind: "stat", Unit: "short", Width: 6, Description: "Recalled parcels that are not home by their due time.",
					Queries: []Query{{`sum(springtide_recalls_overdue)`, "overdue"}}},
				{Title: "Room ahead and watermarks", Kind: "timeseries", Unit: "percentunit", Width: 12,
					Description: "What online pools have left of their CPU beyond what is lent and what their services will need within the lead of a recall. Above the high watermark machines are lent, below the low one they are called home.",
					Queries: []Query{
						{`(sum by (pool) (springtide_pool_cpu_cores{kind="capacity"}) - sum by (pool) (springtide_pool_cpu_cores{kind=~"lent|needed_ahead"})) / sum by (pool) (springtide_pool_cpu_cores{kind="capacity"}) and on (pool) springtide_pool_watermark_ratio{watermark="low"}`, "{{pool}}"},
						{`springtide_pool_watermark_ratio`, "{{pool}} {{watermark}}"},
					}},
				{Title: "Lead of a recall", Kind: "timeseries", Unit: "s", Width: 6, Stacked: true,
					Description: "What a recall is reckoned to take, part by part, in the pool where it takes longest: recalls begin this long before the room is needed. Compare with the recall time above.",
					Queries:     []Query{{`max by (part) (springtide_recall_lead_seconds)`, "{{part}}"}}},
				{Title: "Recalls that came late", Kind: "timeseries", Unit: "short", Width: 6,
					Description: "Within a day: parcels that came home after the due time of their first notice, of all that were recalled.",
					Queries: []Query{
						{`sum(increase(springtide_recall_duration_seconds_count{late="true"}[1d])) or vector(0)`, "late"},
						{`sum(increase(springtide_recall_duration_seconds_count[1d])) or vector(0)`, "all"},
					}},
				{Title: "On its way home, and lost", Kind: "timeseries", Unit: "cores", Width: 12,
					Description: "What recalled parcels will bring, what of it is free already, and what is held by parcels that did not come home.",
					Queries:     []Query{{`sum by (kind) (springtide_pool_cpu_cores{kind=~"promised|released|lost"})`, "{{kind}}"}}},
				{Title: "Lent by offline to online", Kind: "timeseries", Unit: "cores", Width: 6,
					Description: "What online pools hold of offline pools, for a peak, a burst or a festival.",
					Queries:     []Query{{`sum by (pool) (springtide_pool_cpu_cores{kind="borrowed"})`, "{{pool}}"}}},
				{Title: "Kept beyond their due time", Kind: "stat", Unit: "short", Width: 6,
					Description: "Machines of offline pools that online was to give back by now, and still needs.",
					Queries:     []Query{{`sum(springtide_loans_overrun)`, "overrun"}}},
				{Title: "Machines that pods do not fill", Kind: "timeseries", Unit: "percentunit", Width: 12,
					Description: "What machines must hold beyond what services request, since pods of their sizes leave a part of each: room that is neither used nor lent. Requests that divide a machine evenly leave none.",
					Queries:     []Query{{`springtide_pool_unfilled_ratio`, "{{pool}}"}}},
				{Title: "Leavers that stayed", Kind: "timeseries", Unit: "short", Width: 12, Sparse: true,
					Description: "Pods an hour that a scale-in was steered to and that stayed, since the controller of their target took others: machines are not emptied as planned. Events LeaverStayed name them.",
					Queries:     []Query{{`increase(springtide_leavers_stayed_total[1h])`, "stayed"}}},
			}},
			{Title: "Offline jobs", Panels: []Panel{
				{Title: "Minima of jobs", Kind: "timeseries", Unit: "short", Width: 8, Stacked: true,
					Description: "Jobs with a minimum that works as a whole: Waiting has no room for all of it, Forming was asked for, Whole runs, BackedOff was rolled back as it did not form in time.",
					Queries:     []Query{{`sum by (phase) (springtide_job_gangs)`, "{{phase}}"}}},
				{Title: "Jobs that wait, by what for", Kind: "timeseries", Unit: "short", Width: 8, Stacked: true,
					Description: "Tide comes by itself, StableRoom and QuotaRoom as other jobs end (or a slice opens beyond the week), Room not within the week. Quota and Size never do: the tenant may not use as much, or no machine is large enough.",
					Queries:     []Query{{`sum by (reason) (springtide_jobs_waiting)`, "{{reason}}"}}},
				{Title: "When they begin", Kind: "timeseries", Unit: "s", Width: 8, Sparse: true,
					Description: "The jobs that will wait longest, and their bands: how long from now, at the earliest and at the latest.",
					Queries: []Query{
						{`topk(3, springtide_job_eta_seconds{bound="latest"})`, "{{namespace}}/{{job}} latest"},
						{`springtide_job_eta_seconds{bound="earliest"} and on (namespace, job) topk(3, springtide_job_eta_seconds{bound="latest"})`, "{{namespace}}/{{job}} earliest"},
					}},
				{Title: "Bands that held", Kind: "timeseries", Unit: "short", Width: 8, Sparse: true,
					Description: "Jobs that began within a day, by how that compares with the band they were told first: four of five should be Within.",
					Queries:     []Query{{`sum by (verdict) (increase(springtide_job_eta_total[1d]))`, "{{verdict}}"}}},
				{Title: "Pods told to go", Kind: "timeseries", Unit: "short", Width: 16, Sparse: true,
					Description: "Offline pods a minute: evicted, and killed as they outlasted what their loan announced, by what became of it. A budget that forbids an eviction is Failed.",
					Queries: []Query{
						{`sum by (outcome) (rate(springtide_evictions_total[15m])) * 60`, "evicted {{outcome}}"},
						{`sum by (outcome) (rate(springtide_kills_total[15m])) * 60`, "killed {{outcome}}"},
					}},
			}},
			{Title: "Tenants", Panels: []Panel{
				{Title: "CPU of tenants", Kind: "timeseries", Unit: "cores", Width: 8,
					Description: "What all tenants are entitled to, use, borrow, and must give back.",
					Queries:     []Query{{`sum by (kind) (springtide_tenant_cpu_cores{kind=~"entitled|used|borrowed|over"})`, "{{kind}}"}}},
				{Title: "Parcels of tenants", Kind: "timeseries", Unit: "short", Width: 6, Sparse: true,
					Description: "Machines and sockets that tenants' offline work is entitled to, is on, and must leave, by class.",
					Queries:     []Query{{`sum by (class, kind) (springtide_tenant_parcels{kind=~"entitled|used|over"})`, "{{class}} {{kind}}"}}},
				{Title: "Low-priority capacity", Kind: "timeseries", Unit: "percentunit", Width: 6,
					Description: "CPU at the disposal of offline work over that of all machines, and its watermarks: bursts end below low and begin above high.",
					Queries:     []Query{{`springtide_low_priority_level_ratio`, "level"}, {`springtide_low_priority_watermark_ratio`, "{{watermark}}"}}},
				{Title: "Tenants short", Kind: "stat", Unit: "short", Width: 4, Description: "Tenants whose services want more than they may have, now or within the week.",
					Queries: []Query{{`sum by (when) (springtide_tenant_short) or vector(0)`, "{{when}}"}}},
			}},
			{Title: "Controller", Panels: []Panel{
				{Title: "Cycle", Kind: "timeseries", Unit: "s", Width: 8, Description: "Wall time of each step, 99th percentile.",
					Queries: []Query{{`histogram_quantile(0.99, sum by (le, step) (rate(springtide_cycle_step_duration_seconds_bucket[15m])))`, "{{step}}"}}},
				{Title: "Actions", Kind: "timeseries", Unit: "short", Width: 8, Description: "Actions a minute, by kind and outcome.",
					Queries: []Query{{`sum by (action, outcome) (rate(springtide_actions_total[5m])) * 60`, "{{action}} {{outcome}}"}}},
				{Title: "Sources", Kind: "timeseries", Unit: "short", Width: 8, Description: "1 while history and store answer; actions withheld; freeze; parcels on which Loan and NodeShare disagree.",
					Queries: []Query{
						{`springtide_source_up`, "{{source}}"}, {`springtide_actions_withheld`, "withheld"}, {`springtide_frozen`, "frozen"},
						{`springtide_share_drift`, "drift"},
					}},
			}},
		},
	}
}

// All lists every dashboard by the name of its file.
func All() map[string]Dashboard {
	return map[string]Dashboard{"fleet.json": Fleet()}
}
