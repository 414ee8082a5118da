package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/internal/clock"
	"github.com/springtide/springtide/internal/kube"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/store"
	"github.com/springtide/springtide/store/promql"
)

// runOptions are the flags of `springtide run`. What a flag says stands above what the file says.
type runOptions struct {
	file  string
	flags config.Controller
	http  promHTTP
	clock string
}

func newRunCommand() *cobra.Command {
	o := runOptions{flags: config.DefaultController()}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the controller",
		Long: "Run the controller: it observes, learns, forecasts, plans and acts, in a cycle of 15 s, for as long as it holds the lease.\n" +
			"Objects in mode Observe, the default, are only looked at.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.settle(cmd)
			if err != nil {
				return usageError{err}
			}
			return run(cmd.Context(), c, o.clock)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "config", "", "configuration file; flags stand above it")
	f.StringVar(&o.flags.Kubeconfig, "kubeconfig", "", "kubeconfig to use; inside of a cluster the pod's own account")
	f.StringVar(&o.flags.Namespace, "namespace", o.flags.Namespace, "namespace of the controller: its lease, fillers and the freeze live there")
	f.StringVar(&o.flags.Identity, "identity", "", "name of this process in the lease (default host name and a random suffix)")
	f.StringVar(&o.flags.Prometheus.URL, "prometheus", "", "URL of the Prometheus HTTP API")
	o.http.flags(f)
	f.StringVar(&o.flags.Store, "store", o.flags.Store, "where portraits, decisions and the journal are kept: sqlite://PATH or postgres://...")
	f.StringVar(&o.flags.Listen, "listen", o.flags.Listen, "address of metrics, health and readiness")
	f.BoolVar(&o.flags.Pprof, "pprof", false, "serve profiles under /debug/pprof")
	f.StringVar(&o.flags.LogLevel, "log-level", o.flags.LogLevel, "debug, info, warn or error")
	f.StringVar(&o.clock, "clock", "", "URL of the lab's clock")
	_ = f.MarkHidden("clock")
	return cmd
}

// settle brings file and flags together.
func (o *runOptions) settle(cmd *cobra.Command) (config.Controller, error) {
	c := config.DefaultController()
	if o.file != "" {
		var err error
		if c, err = config.Load(o.file); err != nil {
			return c, err
		}
	}
	changed := cmd.Flags().Changed
	for _, f := range []struct {
		flag     string
		from, to *string
	}{
		{"kubeconfig", &o.flags.Kubeconfig, &c.Kubeconfig}, {"namespace", &o.flags.Namespace, &c.Namespace},
		{"identity", &o.flags.Identity, &c.Identity}, {"prometheus", &o.flags.Prometheus.URL, &c.Prometheus.URL},
		{"store", &o.flags.Store, &c.Store}, {"listen", &o.flags.Listen, &c.Listen}, {"log-level", &o.flags.LogLevel, &c.LogLevel},
	} {
		if changed(f.flag) {
			*f.to = *f.from
		}
	}
	var err error
	if c.Prometheus.HTTP, err = o.http.over(c.Prometheus.HTTP); err != nil {
		return c, err
	}
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

func run(ctx context.Context, c config.Controller, clockURL string) error {
	log, err := newLogger(c.LogLevel)
	if err != nil {
		return usageError{err}
	}
	cfg, err := restConfig(c.Kubeconfig)
	if err != nil {
		return usageError{err}
	}
	ticks, wake, err := newClock(ctx, clockURL)
	if err != nil {
		return err
	}
	memory, err := store.Open(ctx, c.Store, store.Options{Log: log})
	if err != nil {
		return err
	}
	defer memory.Close()
	history, err := promql.New(historyOptions(&c.Prometheus))
	if err != nil {
		return usageError{err}
	}
	defer history.Close()
	cluster, err := kube.New(cfg, kube.Options{Namespace: c.Namespace, Identity: c.Identity, Clock: ticks, Freeze: c.Freeze,
		NamespaceLabel: c.Prometheus.NamespaceLabel, Log: log})
	if err != nil {
		return err
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		history.Collector(), memory.Collector())
	health := newHealth()
	server, err := serve(c.Listen, newMux(registry, health, c.Pprof))
	if err != nil {
		return err
	}
	defer server.Close()

	if err := cluster.Start(ctx); err != nil {
		return err
	}
	health.setReady()
	log.Info("watching the cluster", "namespace", c.Namespace, "identity", c.Identity)
	o := loop.DefaultOptions()
	o.React = time.Duration(c.Interval)
	l := loop.New(loop.Ports{Observer: cluster, History: history, Actuator: cluster, Reporter: cluster, Journal: memory, Memory: memory,
		Clock: ticks, Metrics: loop.NewMetrics(registry), Log: log}, o)
	err = cluster.Lead(ctx, func(ctx context.Context, epoch int64) error {
		log.Info("leading", "epoch", epoch)
		if wake != nil {
			go forward(ctx, cluster.Wake(), wake)
		}
		return l.Run(ctx, epoch)
	})
	if ctx.Err() != nil {
		return nil // told to stop
	}
	return err
}

func historyOptions(p *config.Prometheus) promql.Options {
	return promql.Options{Address: p.URL, HTTP: p.HTTP, NamespaceLabel: p.NamespaceLabel,
		ScrapeInterval: time.Duration(p.ScrapeInterval), Timeout: time.Duration(p.Timeout),
		HistoryTimeout: time.Duration(p.HistoryTimeout), TenantTimeout: time.Duration(p.TenantTimeout),
		TenantQueriesPerService: p.TenantQueriesPerService, TenantQueriesPerCycle: p.TenantQueriesPerCycle}
}

// newClock returns the clock to live by, and what wakes it early. The lab's clock is not woken: it stands still while a cycle runs, and a
// cycle of virtual 15 s is as good as at once.
func newClock(ctx context.Context, url string) (loop.Clock, func(), error) {
	if url == "" {
		w := clock.NewWall()
		return w, w.Wake, nil
	}
	r, err := clock.NewRemote(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	return r, nil, nil
}

func forward(ctx context.Context, from <-chan struct{}, to func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-from:
			to()
		}
	}
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster: %w: give --kubeconfig, or run inside of a cluster", err)
	}
	return cfg, nil
}

func newLogger(level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l}))
	klog.SetSlogLogger(log)
	return log, nil
}

// serve listens at once, so that an address in use is an error at start and not a line in a log.
func serve(addr string, h http.Handler) (*http.Server, error) {
	ln, err := listen(addr)
	if err != nil {
		return nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := s.Serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
			slog.Error("metrics and health are no longer served", "err", err)
		}
	}()
	return s, nil
}
