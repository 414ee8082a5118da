package config

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/internal/redact"
)

// apiVersion has a group: the kinds of the core group run no pod on each machine.
var (
	apiVersion = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/v[0-9]+((alpha|beta)[0-9]+)?$`)
	kindName   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

var namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Validate says everything that is wrong, each with its field and mend.
func (c *Controller) Validate() []Problem {
	var out []Problem
	wrong := func(field, format string, args ...any) {
		out = append(out, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if !namespaceName.MatchString(c.Namespace) {
		wrong("namespace", "%q is no namespace: write the one the controller lives in, as in springtide-system", c.Namespace)
	}
	if scheme, rest, ok := strings.Cut(c.Store, "://"); !ok || rest == "" || !slices.Contains([]string{"sqlite", "postgres", "postgresql"}, scheme) {
		wrong("store", "%q is no store: write sqlite://PATH or postgres://USER@HOST/DATABASE", redact.URL(c.Store))
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		wrong("listen", "%q is no address: write HOST:PORT, or :PORT for all addresses", c.Listen)
	}
	if _, _, err := net.SplitHostPort(c.Serving.Listen); err != nil && c.Serving.Listen != "" {
		wrong("serving.listen", "%q is no address: write HOST:PORT, or :PORT for all addresses", c.Serving.Listen)
	}
	if !slices.Contains([]string{CertificatesSelf, CertificatesProvided}, c.Serving.Certificates) {
		wrong("serving.certificates", "%q is unknown: write Self or Provided", c.Serving.Certificates)
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel) {
		wrong("logLevel", "%q is unknown: write debug, info, warn or error", c.LogLevel)
	}
	within := func(field string, d Duration, from, to time.Duration) {
		if v := time.Duration(d); v < from || v > to {
			wrong(field, "%s is out of bounds: write %s to %s", d, Duration(from), Duration(to))
		}
	}
	within("interval", c.Interval, 5*time.Second, 5*time.Minute)
	for i, k := range c.DaemonKinds {
		if !apiVersion.MatchString(k.APIVersion) || !kindName.MatchString(k.Kind) {
			wrong(fmt.Sprintf("daemonKinds[%d]", i), "%q of %q is no kind: write one such as {apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet}", k.Kind, k.APIVersion)
		}
	}
	within("fallHold", c.FallHold, 15*time.Minute, 24*time.Hour)
	within("cleanMargin", c.CleanMargin, 5*time.Second, 10*time.Minute)
	c.Prometheus.validate(wrong, within)
	return out
}

func (p *Prometheus) validate(wrong func(field, format string, args ...any), within func(string, Duration, time.Duration, time.Duration)) {
	if u, err := url.Parse(p.URL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		wrong("prometheus.url", "%q is no URL of Prometheus: write one such as http://prometheus.monitoring:9090", redact.URL(p.URL))
	}
	if !model.LegacyValidation.IsValidLabelName(p.NamespaceLabel) {
		wrong("prometheus.namespaceLabel", "%q is no label name: write one such as namespace", p.NamespaceLabel)
	}
	// Prometheus looks back five minutes for a newest sample: at longer intervals there is none half of the time.
	within("prometheus.scrapeInterval", p.ScrapeInterval, 0, 150*time.Second)
	within("prometheus.timeout", p.Timeout, 100*time.Millisecond, time.Minute)
	within("prometheus.historyTimeout", p.HistoryTimeout, time.Second, 10*time.Minute)
	within("prometheus.tenantTimeout", p.TenantTimeout, 100*time.Millisecond, time.Minute)
	for _, n := range []struct {
		field    string
		value    int
		from, to int
	}{
		{"prometheus.tenantQueriesPerService", p.TenantQueriesPerService, 1, 8},
		{"prometheus.tenantQueriesPerCycle", p.TenantQueriesPerCycle, 1, 1000},
	} {
		if n.value < n.from || n.value > n.to {
			wrong(n.field, "%d is out of bounds: write %d to %d", n.value, n.from, n.to)
		}
	}
}
