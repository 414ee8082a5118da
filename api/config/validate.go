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

// problems collects what is wrong with a configuration.
type problems []Problem

func (ps *problems) wrong(field, format string, args ...any) {
	*ps = append(*ps, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (ps *problems) within(field string, d Duration, from, to time.Duration) {
	if v := time.Duration(d); v < from || v > to {
		ps.wrong(field, "%s is out of bounds: write %s to %s", d, Duration(from), Duration(to))
	}
}

func (ps *problems) between(field string, n, from, to int) {
	if n < from || n > to {
		ps.wrong(field, "%d is out of bounds: write %d to %d", n, from, to)
	}
}

// oneOf takes at least two values.
func (ps *problems) oneOf(field, v string, values ...string) {
	if last := len(values) - 1; !slices.Contains(values, v) {
		ps.wrong(field, "%q is unknown: write %s or %s", v, strings.Join(values[:last], ", "), values[last])
	}
}

// process judges the fields that every process has.
func (ps *problems) process(namespace, listen, logLevel string) {
	if !namespaceName.MatchString(namespace) {
		ps.wrong("namespace", "%q is no namespace: write the one the controller lives in, as in springtide-system", namespace)
	}
	ps.address("listen", listen)
	ps.oneOf("logLevel", logLevel, "debug", "info", "warn", "error")
}

func (ps *problems) metrics(m Metrics) {
	if m.Listen != "" {
		ps.address("metrics.listen", m.Listen)
	} else if m.CertDir != "" {
		ps.wrong("metrics.certDir", "a certificate without metrics.listen serves nothing: write both, or none")
	}
}

func (ps *problems) address(field, v string) {
	if _, _, err := net.SplitHostPort(v); err != nil {
		ps.wrong(field, "%q is no address: write HOST:PORT, or :PORT for all addresses", v)
	}
}

// Validate says everything that is wrong, each with its field and how to fix it.
func (c *Controller) Validate() []Problem {
	var out problems
	out.process(c.Namespace, c.Listen, c.LogLevel)
	out.metrics(c.Metrics)
	if scheme, rest, ok := strings.Cut(c.Store, "://"); !ok || rest == "" || !slices.Contains([]string{"sqlite", "postgres", "postgresql"}, scheme) {
		out.wrong("store", "%q is no store: write sqlite://PATH or postgres://USER@HOST/DATABASE", redact.URL(c.Store))
	}
	if c.Serving.Listen != "" {
		out.address("serving.listen", c.Serving.Listen)
	}
	out.oneOf("serving.certificates", c.Serving.Certificates, CertificatesSelf, CertificatesProvided)
	out.within("interval", c.Interval, 5*time.Second, 5*time.Minute)
	out.kinds("daemonKinds", c.DaemonKinds)
	out.within("fallHold", c.FallHold, 15*time.Minute, 24*time.Hour)
	out.within("cleanMargin", c.CleanMargin, 5*time.Second, 10*time.Minute)
	c.Prometheus.validate(&out)
	return out
}

// kinds checks a list of kinds.
func (ps *problems) kinds(field string, list []Kind) {
	for i, k := range list {
		if !apiVersion.MatchString(k.APIVersion) || !kindName.MatchString(k.Kind) {
			ps.wrong(fmt.Sprintf("%s[%d]", field, i), "%q of %q is no kind: write one such as {apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet}", k.Kind, k.APIVersion)
		}
	}
}

// matcher is one matcher of PromQL: whether its regular expression compiles is judged when the source is opened.
var matcher = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*\s*(=|!=|=~|!~)\s*"([^"\\]|\\.)*"$`)

func (p *Prometheus) validate(out *problems) {
	if u, err := url.Parse(p.URL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		out.wrong("prometheus.url", "%q is no URL of Prometheus: write one such as http://prometheus.monitoring:9090", redact.URL(p.URL))
	}
	if !model.LegacyValidation.IsValidLabelName(p.NamespaceLabel) {
		out.wrong("prometheus.namespaceLabel", "%q is no label name: write one such as namespace", p.NamespaceLabel)
	}
	for i, m := range p.Matchers {
		if !matcher.MatchString(m) {
			out.wrong(fmt.Sprintf("prometheus.matchers[%d]", i), "%q is no matcher: write one such as cluster=\"prod-eu\"", m)
		}
	}
	for i, l := range p.ReplicaLabels {
		if !model.LegacyValidation.IsValidLabelName(l) {
			out.wrong(fmt.Sprintf("prometheus.replicaLabels[%d]", i), "%q is no label name: write one such as replica", l)
		}
	}
	// Prometheus looks back five minutes for a newest sample: at longer intervals there is none half of the time.
	out.within("prometheus.scrapeInterval", p.ScrapeInterval, 0, 150*time.Second)
	out.within("prometheus.timeout", p.Timeout, 100*time.Millisecond, time.Minute)
	out.within("prometheus.historyTimeout", p.HistoryTimeout, time.Second, 10*time.Minute)
	out.within("prometheus.tenantTimeout", p.TenantTimeout, 100*time.Millisecond, time.Minute)
	out.between("prometheus.tenantQueriesPerService", p.TenantQueriesPerService, 1, 8)
	out.between("prometheus.tenantQueriesPerCycle", p.TenantQueriesPerCycle, 1, 1000)
}
