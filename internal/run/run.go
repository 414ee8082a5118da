// Package run is `springtide run`: it puts the controller together from its adapters and the loop, serves metrics and health, and leads. In
// comes the configuration; out go the controller's acts on the cluster. Nothing of what it imports holds a model of a peer, which the
// commands that compare (backtest --peers, simulate --policies) do.
package run

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/internal/clock"
	"github.com/springtide/springtide/internal/kube"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/serve/probe"
	"github.com/springtide/springtide/store"
	"github.com/springtide/springtide/store/promql"
)

// UsageError marks what the caller can fix by other flags or another configuration.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// Run is the controller, from its start until ctx ends. clockURL names the lab's clock; the controller lives by the wall when it is empty.
func Run(ctx context.Context, c config.Controller, clockURL string) error {
	log, err := newLogger(c.LogLevel)
	if err != nil {
		return UsageError{err}
	}
	cfg, err := restConfig(c.Kubeconfig)
	if err != nil {
		return UsageError{err}
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
	var cluster *kube.Cluster
	health := newHealth(time.Now, func(ctx context.Context) error { return cluster.Answers(ctx) })
	asks := historyOptions(&c.Prometheus)
	asks.Alive = health.step
	history, err := promql.New(asks)
	if err != nil {
		return UsageError{err}
	}
	defer history.Close()
	cluster, err = kube.New(cfg, kube.Options{Namespace: c.Namespace, Identity: c.Identity, Clock: ticks, Freeze: c.Freeze,
		NamespaceLabel: c.Prometheus.NamespaceLabel, CleanMargin: time.Duration(c.CleanMargin), DaemonKinds: daemonKinds(c.DaemonKinds), Log: log, Alive: health.step, Leads: health.lead})
	if err != nil {
		return err
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		history.Collector(), memory.Collector())
	if err := kube.RegisterWrites(registry); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make the client of the TLS ports: %w", err)
	}
	server, err := probe.Serve(&probe.Options{Listen: c.Listen, Gatherer: registry, Alive: health.alive, Ready: health.prepared, Profiles: c.Pprof, Log: log,
		Secure: probe.Secure{Listen: c.Metrics.Listen, CertDir: c.Metrics.CertDir, Client: client}})
	if err != nil {
		return err
	}
	defer server.Close()

	if err := cluster.Start(ctx); err != nil {
		return err
	}
	health.setReady()
	if c.Serving.Listen != "" {
		secure, err := serveTLS(ctx, client, &c, cluster, memory, health, log)
		if err != nil {
			return err
		}
		defer secure.Close()
	}
	log.Info("watching the cluster", "namespace", c.Namespace, "identity", c.Identity)
	o := loop.DefaultOptions()
	o.React = time.Duration(c.Interval)
	o.Portrait.HoldFor = time.Duration(c.FallHold)
	l := loop.New(loop.Ports{Observer: cluster, History: history, Actuator: cluster, Reporter: cluster, Journal: memory, Memory: memory,
		Clock: ticks, Metrics: loop.NewMetrics(registry), Log: log, Alive: health.step}, o)
	err = cluster.Lead(ctx, func(ctx context.Context, epoch int64) error {
		log.Info("leading", "epoch", epoch)
		if wake != nil {
			go forward(ctx, cluster.Wake(), wake)
		}
		return l.Run(ctx, epoch)
	})
	if ctx.Err() != nil {
		return nil // asked to stop
	}
	return err
}

func daemonKinds(list []config.Kind) []kube.Kind {
	var out []kube.Kind
	for _, k := range list {
		out = append(out, kube.Kind(k))
	}
	return out
}

func historyOptions(p *config.Prometheus) promql.Options {
	return promql.Options{Address: p.URL, HTTP: p.HTTP, NamespaceLabel: p.NamespaceLabel,
		Cluster:        promql.Cluster{Matchers: p.Matchers, ReplicaLabels: p.ReplicaLabels},
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
