// Package run is the command of the controller: its file, with flags above it.
package run

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/internal/cli/prom"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/run"
)

// runOptions are the flags of `springtide run`. A flag overrides the file.
type runOptions struct {
	file  string
	flags config.Controller
	http  prom.HTTP
	own   prom.Cluster
	clock string
}

// NewCommand makes `springtide run`.
func NewCommand() *cobra.Command {
	o := runOptions{flags: config.DefaultController()}
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Run the controller",
		Example: "  springtide run --prometheus http://prometheus.monitoring:9090 --store sqlite://springtide.db",
		Long: "Run the controller: it observes, learns, forecasts, plans and acts, in a cycle of 15 s, for as long as it holds the lease.\n" +
			"Objects in mode Observe, the default, are only looked at.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.settle(cmd)
			if err != nil {
				return usage.Error{Err: err}
			}
			err = run.Run(cmd.Context(), c, o.clock)
			var wrong run.UsageError
			if errors.As(err, &wrong) {
				return usage.Error{Err: err}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "config", "", "configuration file; flags stand above it")
	f.StringVar(&o.flags.Kubeconfig, "kubeconfig", "", "kubeconfig to use; inside of a cluster the pod's own account")
	f.StringVar(&o.flags.Namespace, "namespace", o.flags.Namespace, "namespace of the controller: its lease, fillers and the freeze live there")
	f.StringVar(&o.flags.Identity, "identity", "", "name of this process in the lease (default host name and a random suffix)")
	f.StringVar(&o.flags.Prometheus.URL, "prometheus", "", "URL of the Prometheus HTTP API")
	o.http.Flags(f)
	o.own.Flags(f)
	f.StringVar(&o.flags.Store, "store", o.flags.Store, "where portraits, decisions and the journal are kept: sqlite://PATH or postgres://...")
	f.StringVar(&o.flags.Listen, "listen", o.flags.Listen, "address of metrics, health and readiness")
	f.StringVar(&o.flags.Serving.Listen, "serve", "", "TLS address of the webhook and the read API; nothing is served when empty")
	f.StringVar(&o.flags.Metrics.Listen, "metrics-listen", "", "TLS address of metrics for callers that may get /metrics; without it they are on the address of --listen")
	f.StringVar(&o.flags.Metrics.CertDir, "metrics-cert-dir", "", "directory with tls.crt and tls.key of that address; the certificate signs itself when empty")
	f.BoolVar(&o.flags.Pprof, "pprof", false, "serve profiles under /debug/pprof")
	f.StringVar(&o.flags.LogLevel, "log-level", o.flags.LogLevel, "debug, info, warn or error")
	f.StringVar(&o.clock, "clock", "", "URL of the lab's clock")
	_ = f.MarkHidden("clock")
	return cmd
}

// settle brings file and flags together.
func (o *runOptions) settle(cmd *cobra.Command) (config.Controller, error) {
	c, err := config.Load(o.file)
	if err != nil {
		return c, err
	}
	changed := cmd.Flags().Changed
	for _, f := range []struct {
		flag     string
		from, to *string
	}{
		{"kubeconfig", &o.flags.Kubeconfig, &c.Kubeconfig}, {"namespace", &o.flags.Namespace, &c.Namespace},
		{"identity", &o.flags.Identity, &c.Identity}, {"prometheus", &o.flags.Prometheus.URL, &c.Prometheus.URL},
		{"store", &o.flags.Store, &c.Store}, {"listen", &o.flags.Listen, &c.Listen}, {"serve", &o.flags.Serving.Listen, &c.Serving.Listen}, {"log-level", &o.flags.LogLevel, &c.LogLevel},
		{"metrics-listen", &o.flags.Metrics.Listen, &c.Metrics.Listen}, {"metrics-cert-dir", &o.flags.Metrics.CertDir, &c.Metrics.CertDir},
	} {
		if changed(f.flag) {
			*f.to = *f.from
		}
	}
	if c.Prometheus.HTTP, err = o.http.Over(c.Prometheus.HTTP); err != nil {
		return c, err
	}
	c.Prometheus.Matchers, c.Prometheus.ReplicaLabels = o.own.Over(c.Prometheus.Matchers, c.Prometheus.ReplicaLabels)
	if changed("pprof") {
		c.Pprof = o.flags.Pprof
	}
	if c.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return c, fmt.Errorf("the host has no name (%w): give --identity", err)
		}
		// A container that starts again has its former host name and process id: the suffix makes it another candidate.
		c.Identity = host + "-" + rand.Text()[:8]
	}
	if c.Prometheus.URL == "" {
		return c, errors.New("no source of history: give --prometheus, or prometheus.url in the file of --config")
	}
	var wrong []error
	for _, p := range c.Validate() {
		wrong = append(wrong, fmt.Errorf("%s: %s", p.Field, p.Message))
	}
	return c, errors.Join(wrong...)
}
