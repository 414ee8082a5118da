package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/store"
)

// neededMetrics are the series that default queries read, by who exports them.
var neededMetrics = []struct {
	name, exporter, mend string
	required             bool
}{
	{"container_cpu_usage_seconds_total", "cAdvisor", "scrape the kubelets' /metrics/cadvisor", true},
	{"kube_pod_owner", "kube-state-metrics", "install kube-state-metrics and scrape it", true},
	{"kube_replicaset_owner", "kube-state-metrics", "install kube-state-metrics and scrape it", true},
	{"kube_pod_status_ready", "kube-state-metrics", "install kube-state-metrics and scrape it", true},
	{"kube_pod_start_time", "kube-state-metrics", "install kube-state-metrics and scrape it", true},
	{"kube_pod_status_ready_time", "kube-state-metrics", "install kube-state-metrics 2.9 or later: start-up times are learned from it", false},
	{"http_server_request_duration_seconds_count", "OpenTelemetry", "let services export OpenTelemetry's HTTP server metrics; without them CPU stands for the load", false},
	{"http_server_request_duration_seconds_bucket", "OpenTelemetry", "let services export OpenTelemetry's HTTP server metrics; latency SLOs need them", false},
}

// checkMetrics asks Prometheus for the series that default queries read, and for the recording rules.
func checkMetrics(ctx context.Context, d *doctor) error {
	if d.prometheus == "" {
		d.advise("give --prometheus URL", "not looked at")
		return nil
	}
	client, err := api.NewClient(api.Config{Address: d.prometheus})
	if err != nil {
		return fmt.Errorf("--prometheus %s: %w", d.prometheus, err)
	}
	prom := apiv1.NewAPI(client)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	there := 0
	for _, m := range neededMetrics {
		n, err := seriesCount(ctx, prom, m.name)
		switch {
		case err != nil:
			return fmt.Errorf("ask %s for %s: %w", d.prometheus, m.name, err)
		case n > 0:
			there++
		case m.required:
			d.report(m.mend, "no series %s (of %s)", m.name, m.exporter)
		default:
			d.advise(m.mend, "no series %s (of %s)", m.name, m.exporter)
		}
	}
	d.ok("%d of %d needed metrics are there", there, len(neededMetrics))
	return d.recordingRules(ctx, prom)
}

func seriesCount(ctx context.Context, prom apiv1.API, metric string) (int, error) {
	value, _, _, err := prom.Query(ctx, fmt.Sprintf("count(%s)", metric), time.Time{})
	if err != nil {
		return 0, err
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return 0, errors.New("the answer is no vector: is this a Prometheus?")
	}
	if len(vector) == 0 {
		return 0, nil
	}
	return int(vector[0].Value), nil
}

// recordingRules looks for ours: without them every cycle aggregates the raw series anew.
func (d *doctor) recordingRules(ctx context.Context, prom apiv1.API) error {
	rules, err := prom.Rules(ctx, nil)
	if err != nil {
		d.advise("the source has no rules API: load deploy/rules where its rules are", "recording rules could not be looked for: %v", err)
		return nil
	}
	for _, g := range rules.Groups {
		if strings.HasPrefix(g.Name, "springtide") {
			d.ok("the recording rules are loaded")
			return nil
		}
	}
	d.advise("load deploy/rules/springtide.rules.yaml into Prometheus", "our recording rules are not loaded: each cycle aggregates raw series")
	return nil
}

// checkStore opens the store as the controller does, but creates nothing.
func checkStore(ctx context.Context, d *doctor) error {
	if d.store == "" {
		d.advise("give --store", "not looked at")
		return nil
	}
	s, err := store.Open(ctx, d.store, store.Options{ReadOnly: true})
	if err != nil {
		d.report("start the database, or mend the address; until then the controller goes on without a memory", "%v", err)
		return nil
	}
	defer s.Close()
	last, err := s.Last(ctx, 1)
	switch {
	case err != nil:
		return err
	case len(last) == 0:
		d.ok("it answers, and holds no cycle yet")
	default:
		d.ok("it answers; the last cycle it holds is of %s", last[0].Until.UTC().Format(time.RFC3339))
	}
	return nil
}
