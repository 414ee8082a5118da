package promql

import (
	"fmt"
	"net/url"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/internal/redact"
)

// Options configures a [History].
type Options struct {
	// Address is the base URL of Prometheus, as in "http://prometheus.monitoring:9090".
	Address string
	// HTTP holds TLS, bearer token, basic auth and proxy settings.
	HTTP config.HTTPClientConfig
	// Timeout bounds one live query. Default 10 s: a cycle of 15 s must not wait for longer.
	Timeout time.Duration
	// HistoryTimeout bounds one range query. Default 60 s.
	HistoryTimeout time.Duration
	// Alive is called whenever a stretch of history was read: a backfill takes minutes. Default nil.
	Alive func()
	// NamespaceLabel is the label that names the namespace in this source; tenants' queries are confined by it. Default "namespace".
	NamespaceLabel string
	// Cluster says which series are this cluster's, where the source holds more.
	Cluster Cluster
	// Step is the grid of history. Default 5 min.
	Step time.Duration
	// ScrapeInterval is how often the sources of live samples are scraped; learned from their newest samples when zero.
	ScrapeInterval time.Duration
	// MaxSamples bounds the samples that one range query returns. Default 500,000: about 15 MB of JSON, or 20 hours of 2,000 workloads.
	MaxSamples int
	// MaxBytes bounds one response. Default 64 MiB.
	MaxBytes int64
	// TenantQueriesPerService and TenantQueriesPerCycle cap the services' own queries: what exceeds the first is never
	// asked, what exceeds the second waits for the next cycle. Levels of the SLO do not count in the first, as the SLO
	// bounds them. Defaults 4 and 100.
	TenantQueriesPerService, TenantQueriesPerCycle int
	// TenantTimeout bounds one tenant's query. Default 2 s.
	TenantTimeout time.Duration
}

func (o Options) withDefaults() Options {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	dur := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	dur(&o.Timeout, 10*time.Second)
	dur(&o.HistoryTimeout, time.Minute)
	dur(&o.Step, 5*time.Minute)
	dur(&o.TenantTimeout, 2*time.Second)
	def(&o.MaxSamples, 500_000)
	def(&o.TenantQueriesPerService, 4)
	def(&o.TenantQueriesPerCycle, 100)
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	if o.NamespaceLabel == "" {
		o.NamespaceLabel = "namespace"
	}
	return o
}

// check refuses what cannot work, with the fix.
func (o Options) check() error {
	u, err := url.Parse(o.Address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("prometheus address %q: want a URL such as http://prometheus.monitoring:9090", redact.URL(o.Address))
	}
	if o.Step < time.Minute || o.Step%time.Second != 0 {
		return fmt.Errorf("prometheus step %v: want whole seconds, at least 1m (recorded series have one sample a minute)", o.Step)
	}
	if o.ScrapeInterval < 0 || o.ScrapeInterval > longestInterval {
		return fmt.Errorf("prometheus scrape interval %v: want at most %v, or 0 to learn it", o.ScrapeInterval, longestInterval)
	}
	if !model.LegacyValidation.IsValidLabelName(o.NamespaceLabel) {
		return fmt.Errorf("prometheus namespace label %q: want a label name such as namespace", o.NamespaceLabel)
	}
	if err := o.HTTP.Validate(); err != nil {
		return fmt.Errorf("prometheus HTTP settings: %w", err)
	}
	return nil
}
