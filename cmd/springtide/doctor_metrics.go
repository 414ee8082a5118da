package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/config"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/store"
	"github.com/springtide/springtide/store/promql"
)

// checkMetrics runs the controller's own queries over the services that exist.
func checkMetrics(ctx context.Context, d *doctor) error {
	if d.prometheus == "" {
		d.advise("give --prometheus URL", "not looked at")
		return nil
	}
	settings, err := d.http.over(config.DefaultHTTPClientConfig)
	if err != nil {
		return err
	}
	history, err := promql.New(promql.Options{Address: d.prometheus, HTTP: settings, NamespaceLabel: d.namespaceLabel, Cluster: d.cluster})
	if err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	defer history.Close()
	var services []fleet.Service
	if d.c != nil && d.c.facts != nil {
		snapshot, err := d.c.facts(ctx)
		if err != nil {
			d.advise("see the message", "the services could not be read, so their metrics were not looked for one by one: %v", err)
		} else {
			services = snapshot.Services
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for _, f := range history.Examine(ctx, services) {
		mend := f.Fix
		if f.Config != "" {
			mend += "\n" + f.Config
		}
		d.found = append(d.found, finding{Severity: severities[f.Weight], Message: f.Message, Mend: mend})
	}
	return nil
}

// severities are the doctor's words for how much a finding about the source matters.
var severities = map[promql.Weight]severity{promql.FindingFine: fine, promql.FindingAdvice: advice, promql.FindingProblem: problem}

// checkStore opens the store as the controller does, but creates nothing.
func checkStore(ctx context.Context, d *doctor) error {
	if d.store == "" {
		d.advise("give --store", "not looked at")
		return nil
	}
	s, err := store.Open(ctx, d.store, store.Options{ReadOnly: true})
	if err != nil {
		d.report("start the database, or correct the address; until then the controller goes on without a memory", "%v", err)
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
