// Package command is the command line of springtide-scheduler: flags and configuration file in, one running process out. It is a package of its own
// because the lab runs the same command inside of its own binary.
package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/internal/serve/probe"
	"github.com/springtide/springtide/scheduler/host"
	"github.com/springtide/springtide/scheduler/host/upstream"
)

// options are the flags. A flag overrides the file.
type options struct {
	file  string
	flags config.Scheduler
}

// New makes the command.
func New() *cobra.Command {
	o := options{flags: config.DefaultScheduler()}
	cmd := &cobra.Command{
		Use:   "springtide-scheduler",
		Short: "The bundled scheduler of Springtide",
		Long: "The bundled scheduler places pods whose schedulerName is springtide: it chooses node and NUMA cells in one decision,\n" +
			"uses parcels as they are lent and recalled, and places gangs whole or not at all.",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.settle(cmd)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
			defer stop()
			return run(ctx, c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "config", "", "configuration file; flags stand above it")
	f.StringVar(&o.flags.Kubeconfig, "kubeconfig", "", "kubeconfig to use; inside of a cluster the pod's own account")
	f.StringVar(&o.flags.Namespace, "namespace", o.flags.Namespace, "namespace of the controller: the freeze stands on it")
	f.StringVar(&o.flags.LeaseNamespace, "lease-namespace", "", "namespace of the scheduler's leases (default that of the controller)")
	f.StringVar(&o.flags.Identity, "identity", "", "name of this process in the lease (default host name and a random suffix)")
	f.StringSliceVar(&o.flags.Names, "scheduler-name", o.flags.Names, "schedulerName of the pods to place; may be given several times")
	f.IntVar(&o.flags.Partition, "partition", 0, "the partition of the nodes that this process binds to, from 0")
	f.IntVar(&o.flags.Partitions, "partitions", 1, "how many partitions there are")
	f.StringVar(&o.flags.Listen, "listen", o.flags.Listen, "address of metrics, health and readiness")
	f.StringVar(&o.flags.Metrics.Listen, "metrics-listen", "", "TLS address of metrics for callers that may get /metrics; without it they are on the address of --listen")
	f.StringVar(&o.flags.Metrics.CertDir, "metrics-cert-dir", "", "directory with tls.crt and tls.key of that address; the certificate signs itself when empty")
	f.BoolVar(&o.flags.Pprof, "pprof", false, "serve profiles under /debug/pprof")
	f.StringVar(&o.flags.LogLevel, "log-level", o.flags.LogLevel, "debug, info, warn or error")
	return cmd
}

// settle brings file and flags together.
func (o *options) settle(cmd *cobra.Command) (config.Scheduler, error) {
	c, err := config.LoadScheduler(o.file)
	if err != nil {
		return c, err
	}
	for flag, set := range map[string]func(){
		"kubeconfig":       func() { c.Kubeconfig = o.flags.Kubeconfig },
		"namespace":        func() { c.Namespace = o.flags.Namespace },
		"lease-namespace":  func() { c.LeaseNamespace = o.flags.LeaseNamespace },
		"identity":         func() { c.Identity = o.flags.Identity },
		"scheduler-name":   func() { c.Names = o.flags.Names },
		"partition":        func() { c.Partition = o.flags.Partition },
		"partitions":       func() { c.Partitions = o.flags.Partitions },
		"listen":           func() { c.Listen = o.flags.Listen },
		"metrics-listen":   func() { c.Metrics.Listen = o.flags.Metrics.Listen },
		"metrics-cert-dir": func() { c.Metrics.CertDir = o.flags.Metrics.CertDir },
		"pprof":            func() { c.Pprof = o.flags.Pprof },
		"log-level":        func() { c.LogLevel = o.flags.LogLevel },
	} {
		if cmd.Flags().Changed(flag) {
			set()
		}
	}
	if c.LeaseNamespace == "" {
		c.LeaseNamespace = c.Namespace
	}
	if c.Identity == "" {
		name, err := os.Hostname()
		if err != nil {
			return c, fmt.Errorf("the host has no name (%w): give --identity", err)
		}
		// A container that starts again has its former host name: the suffix makes it another candidate.
		c.Identity = name + "-" + rand.Text()[:8]
	}
	var wrong []error
	for _, p := range c.Validate() {
		wrong = append(wrong, fmt.Errorf("%s: %s", p.Field, p.Message))
	}
	return c, errors.Join(wrong...)
}

// run is the scheduler, from its start until ctx ends.
func run(ctx context.Context, c config.Scheduler) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	klog.SetSlogLogger(log) // client-go and upstream's plugins speak through ours
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	guard := rest.CopyConfig(cfg) // asks who reads the metrics: callers from outside must not use up what binds pods
	guard.QPS, guard.Burst = 5, 10
	unlimited(cfg)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s, err := host.New(cfg, c, host.Options{Log: log, Metrics: host.NewMetrics(registry),
		Terms: upstream.NewTerms(), Start: upstream.Start})
	if err != nil {
		return err
	}
	core, err := kubernetes.NewForConfig(guard)
	if err != nil {
		return err
	}
	server, err := probe.Serve(&probe.Options{Listen: c.Listen, Gatherer: registry, Alive: s.Alive, Ready: s.Ready, Profiles: c.Pprof, Log: log,
		More:   map[string]http.Handler{"/explain": http.HandlerFunc(s.ExplainHTTP)},
		Secure: probe.Secure{Listen: c.Metrics.Listen, CertDir: c.Metrics.CertDir, Client: core}})
	if err != nil {
		return err
	}
	defer server.Close()
	return s.Run(ctx)
}

// unlimited leaves the rate of writes to the API server's own priority and fairness: a limit here would be what bounds the pods bound a second.
func unlimited(cfg *rest.Config) {
	cfg.QPS, cfg.Burst = -1, 0
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	cfg.UserAgent = "springtide-scheduler"
}
