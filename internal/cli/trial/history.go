// Package trial plays what a service did through the real sizing, next to what sizes it today, for the verbs that show
// it.
package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/config"
	"github.com/spf13/cobra"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/prom"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/validate"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/store/promql"
)

// History are the flags that say where the history of services is read, and how much of it.
type History struct {
	// Optional says that a verb does without; Given reports whether it must.
	Optional bool
	// Source reads in place of Prometheus, for tests.
	Source func(services []fleet.Service, from, to time.Time) map[fleet.ServiceID]portrait.Batch
	// Fitting says which presets fit services in place of Prometheus, where Source reads.
	Fitting func(services []fleet.Service) map[fleet.ServiceID][]promql.Fit

	url            string
	http           prom.HTTP
	own            prom.Cluster
	namespaceLabel string
	days           int
	step           time.Duration
}

// Flags adds the flags.
func (h *History) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&h.url, "prometheus", "", "base URL of Prometheus, as in http://prometheus.monitoring:9090")
	f.IntVar(&h.days, "days", 14, "days of history, 9 to 28: the first week only teaches")
	f.DurationVar(&h.step, "step", time.Minute, "grid of the history, from 1m to 5m")
	f.StringVar(&h.namespaceLabel, "prometheus-namespace-label", validate.DefaultNamespaceLabel,
		"label that names the namespace in this Prometheus")
	h.http.Flags(f)
	h.own.Flags(f)
	usage.Before(cmd, func(*cobra.Command, []string) error {
		switch {
		case h.url == "" && !h.Optional:
			return usage.Error{Err: errors.New("--prometheus is missing: give the base URL of Prometheus")}
		case h.days < 9 || h.days > 28:
			return usage.Error{Err: fmt.Errorf("--days %d: write 9 to 28", h.days)}
		case h.step < time.Minute || h.step > 5*time.Minute:
			return usage.Error{Err: fmt.Errorf("--step %s: write 1m to 5m", h.step)}
		}
		return nil
	})
}

// Given reports whether a Prometheus was named.
func (h *History) Given() bool { return h.url != "" }

// NamespaceLabel is the label that names the namespace.
func (h *History) NamespaceLabel() string { return h.namespaceLabel }

// Days is how many days are read.
func (h *History) Days() int { return h.days }

// Read reads what services did up to now.
func (h *History) Read(ctx context.Context, services []fleet.Service,
	now time.Time) (map[fleet.ServiceID]portrait.Batch,
	error) {
	from := now.Add(-time.Duration(h.days) * 24 * time.Hour)
	if h.Source != nil {
		return h.Source(services, from, now), nil
	}
	source, err := h.open()
	if err != nil {
		return nil, err
	}
	defer source.Close()
	found, err := source.Since(ctx, services, from, now)
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	out := map[fleet.ServiceID]portrait.Batch{}
	for id, b := range found {
		out[id] = b
	}
	return out, nil
}

// Fits are the presets whose series exist for services now.
func (h *History) Fits(ctx context.Context, services []fleet.Service,
	now time.Time) (map[fleet.ServiceID][]promql.Fit, error) {
	if h.Source != nil {
		if h.Fitting == nil {
			return nil, nil
		}
		return h.Fitting(services), nil
	}
	source, err := h.open()
	if err != nil {
		return nil, err
	}
	defer source.Close()
	out, err := source.Fits(ctx, services, now)
	if err != nil {
		return nil, fmt.Errorf("look for the series of presets: %w", err)
	}
	return out, nil
}

func (h *History) open() (*promql.History, error) {
	settings, err := h.http.Over(config.DefaultHTTPClientConfig)
	if err != nil {
		return nil, err
	}
	source, err := promql.New(promql.Options{Address: h.url, HTTP: settings, NamespaceLabel: h.namespaceLabel,
		Cluster: h.own.Cluster(), Step: h.step})
	if err != nil {
		return nil, fmt.Errorf("--prometheus: %w", err)
	}
	return source, nil
}
