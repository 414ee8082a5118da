package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/config"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/springtide/springtide/internal/clock"
	"github.com/springtide/springtide/internal/kube"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/store"
	"github.com/springtide/springtide/store/promql"
)

// runOptions are the flags of `springtide run`.
type runOptions struct {
	kubeconfig, namespace, identity string
	prometheus, store, listen       string
	clock                           string
	pprof                           bool
	logLevel                        string
}

func newRunCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the controller",
		Long: "Run the controller: it observes, learns, forecasts, plans and acts, in a cycle of 15 s, for as long as it holds the lease.\n" +
			"Objects in mode Observe, the default, are only looked at.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	host, _ := os.Hostname()
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig to use; inside of a cluster the pod's own account")
	f.StringVar(&o.namespace, "namespace", "springtide-system", "namespace of the controller: its lease, fillers and the freeze live there")
	f.StringVar(&o.identity, "identity", fmt.Sprintf("%s-%d", host, os.Getpid()), "name of this process in the lease")
	f.StringVar(&o.prometheus, "prometheus", "", "URL of the Prometheus HTTP API")
	f.StringVar(&o.store, "store", "sqlite://springtide.db", "where portraits, decisions and the journal are kept: sqlite://PATH or postgres://...")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address of metrics, health and readiness")
	f.BoolVar(&o.pprof, "pprof", false, "serve profiles under /debug/pprof")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.clock, "clock", "", "URL of the lab's clock")
	_ = f.MarkHidden("clock")
	_ = cmd.MarkFlagRequired("prometheus")
	return cmd
}

func (o *runOptions) run(ctx context.Context) error {
	log, err := newLogger(o.logLevel)
	if err != nil {
		return usageError{err}
	}
	cfg, err := restConfig(o.kubeconfig)
	if err != nil {
		return usageError{err}
	}
	ticks, wake, err := o.newClock(ctx)
	if err != nil {
		return err
	}
	memory, err := store.Open(ctx, o.store, store.Options{Log: log})
	if err != nil {
		return err
	}
	defer memory.Close()
	history, err := promql.New(promql.Options{Address: o.prometheus, HTTP: config.DefaultHTTPClientConfig})
	if err != nil {
		return usageError{err}
	}
	cluster, err := kube.New(cfg, kube.Options{Namespace: o.namespace, Identity: o.identity, Clock: ticks, Log: log})
	if err != nil {
		return err
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(history.Collector())
	health := newHealth()
	server, err := serve(o.listen, newMux(registry, health, o.pprof))
	if err != nil {
		return err
	}
	defer server.Close()

	if err := cluster.Start(ctx); err != nil {
		return err
	}
	health.setReady()
	log.Info("watching the cluster", "namespace", o.namespace, "identity", o.identity)
	l := loop.New(loop.Ports{Observer: cluster, History: history, Actuator: cluster, Reporter: cluster, Journal: memory, Memory: memory,
		Clock: ticks, Metrics: loop.NewMetrics(registry), Log: log}, loop.DefaultOptions())
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

// newClock returns the clock to live by, and what wakes it early. The lab's clock is not woken: it stands still while a cycle runs, and a
// cycle of virtual 15 s is as good as at once.
func (o *runOptions) newClock(ctx context.Context) (loop.Clock, func(), error) {
	if o.clock == "" {
		w := clock.NewWall()
		return w, w.Wake, nil
	}
	r, err := clock.NewRemote(ctx, o.clock)
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
