package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/config"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/examine"
	"github.com/springtide/springtide/store/promql"
)

// checkMetrics runs the controller's own queries over the services that exist.
func checkMetrics(ctx context.Context, d *doctor) error {
	if d.prometheus == "" {
		d.Advise("give --prometheus URL", "not looked at")
		return nil
	}
	settings, err := d.http.Over(config.DefaultHTTPClientConfig)
	if err != nil {
		return err
	}
	history, err := promql.New(promql.Options{Address: d.prometheus, HTTP: settings, NamespaceLabel: d.namespaceLabel, Cluster: d.cluster})
	if err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	defer history.Close()
	var services []fleet.Service
	if d.Clients != nil && d.Clients.Facts != nil {
		snapshot, err := d.Clients.Facts(ctx)
		if err != nil {
			d.Advise("see the message", "the services could not be read, so their metrics were not looked for one by one: %v", err)
		} else {
			services = snapshot.Services
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for _, f := range history.Examine(ctx, services) {
		fix := f.Fix
		if f.Config != "" {
			fix += "\n" + f.Config
		}
		d.Found = append(d.Found, examine.Finding{Severity: severities[f.Weight], Message: f.Message, Fix: fix})
	}
	return nil
}

// severities are the doctor's words for how much a finding about the source matters.
var severities = map[promql.Weight]examine.Severity{promql.FindingFine: examine.Fine, promql.FindingAdvice: examine.Advice, promql.FindingProblem: examine.Problem}
