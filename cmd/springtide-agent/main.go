// Command springtide-agent is the agent of one node: it confines pods to their cells, reports the topology and what parcels wait for, and passes
// notices on.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/springtide/springtide/agent/host"
	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/serve/probe"
)

var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var file string
	var dryRun bool
	flags := config.DefaultAgent()
	cmd := &cobra.Command{
		Use:   "springtide-agent",
		Short: "The agent of one node",
		Long: "The agent of one node. It confines pods to the cells of their side, isolates reclaimed work, passes checkpoint notices on, and reports the\n" +
			"topology and what parcels wait for. Without it whole machines are lent, and no sockets.",
		Version: version, Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadAgent(file)
			if err != nil {
				return err
			}
			for _, f := range []struct {
				flag     string
				from, to *string
			}{
				{"kubeconfig", &flags.Kubeconfig, &c.Kubeconfig}, {"namespace", &flags.Namespace, &c.Namespace}, {"node", &flags.Node, &c.Node},
				{"listen", &flags.Listen, &c.Listen}, {"log-level", &flags.LogLevel, &c.LogLevel}, {"state-dir", &flags.StateDir, &c.StateDir},
				{"metrics-listen", &flags.Metrics.Listen, &c.Metrics.Listen}, {"metrics-cert-dir", &flags.Metrics.CertDir, &c.Metrics.CertDir},
			} {
				if cmd.Flags().Changed(f.flag) {
					*f.to = *f.from
				}
			}
			if c.Node == "" {
				return errors.New("the node has no name: give --node, from the pod's spec.nodeName")
			}
			var wrong []error
			for _, p := range c.Validate() {
				wrong = append(wrong, fmt.Errorf("%s: %s", p.Field, p.Message))
			}
			if err := errors.Join(wrong...); err != nil {
				return err
			}
			return run(cmd.Context(), c, dryRun, cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration file; flags stand above it")
	f.StringVar(&flags.Kubeconfig, "kubeconfig", "", "kubeconfig to use; inside of a cluster the pod's own account")
	f.StringVar(&flags.Namespace, "namespace", flags.Namespace, "namespace of the controller: the agent's Lease lives there")
	f.StringVar(&flags.Node, "node", "", "name of the agent's node")
	f.StringVar(&flags.Listen, "listen", flags.Listen, "address of metrics, health and readiness")
	f.StringVar(&flags.Metrics.Listen, "metrics-listen", "", "TLS address of metrics for callers that may get /metrics; without it they are on the address of --listen")
	f.StringVar(&flags.Metrics.CertDir, "metrics-cert-dir", "", "directory with tls.crt and tls.key of that address; the certificate signs itself when empty")
	f.StringVar(&flags.LogLevel, "log-level", flags.LogLevel, "debug, info, warn or error")
	f.StringVar(&flags.StateDir, "state-dir", flags.StateDir, "the agent's own directory: the last share and the journal")
	f.BoolVar(&dryRun, "dry-run", false, "print what would be written to cgroups, and why, and end")
	return cmd
}

// run wires the agent.
func run(ctx context.Context, c config.Agent, dryRun bool, cmd *cobra.Command) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	klog.SetSlogLogger(log)
	rc, err := restConfig(c.Kubeconfig)
	if err != nil {
		return err
	}
	rc.UserAgent = "springtide-agent/" + version
	// One node's agent needs little: a renewal each ten seconds, and a report when something changed.
	rc.QPS, rc.Burst = 5, 20
	core, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(rc)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	o := options(c, registry, log)
	o.DryRun, o.Stdout, o.API = dryRun, cmd.OutOrStdout(), rc
	if c.CRISocket != "" {
		if o.Exec, err = host.CRIExec(c.CRISocket); err != nil {
			return err
		}
	}
	a, err := host.New(o)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }()
	var kinds []facts.Kind
	for _, k := range c.DaemonKinds {
		kinds = append(kinds, facts.Kind(k))
	}
	cluster := host.NewCluster(core, dyn, c.Node, c.Namespace, kinds...)
	if dryRun {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return a.Run(ctx, cluster)
	}
	// Each caller of the metrics costs a question to the API server. Its own client has a limit of its own, so that no caller holds the Lease up.
	reviews, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return err
	}
	at := func(check func(time.Time) error) probe.Question {
		return func(context.Context) error { return check(time.Now()) }
	}
	server, err := probe.Serve(&probe.Options{Listen: c.Listen, Gatherer: registry, Alive: at(a.Alive), Ready: at(a.Ready), Log: log,
		Secure: probe.Secure{Listen: c.Metrics.Listen, CertDir: c.Metrics.CertDir, Client: reviews}})
	if err != nil {
		log.Error("metrics and probes are not served; pods are confined all the same", "err", err)
	} else {
		defer server.Close()
	}
	log.Info("the agent starts", "node", c.Node, "version", version, "sockets", len(a.Topology().Sockets()), "cells", len(a.Topology().Cells), "cpus", len(a.Topology().CPUs))
	return a.Run(ctx, cluster)
}

func options(c config.Agent, registry prometheus.Registerer, log *slog.Logger) host.Options {
	advice, evictions := shape.DefaultAdvice(), shape.DefaultEvictions()
	o, e := &c.Overlap, &c.Evictions
	advice.Period, advice.Floor, advice.Growth = time.Duration(o.Period), fleet.MilliCPU(o.FloorMilliCPU), 1+float64(o.HeadroomPercent)/100
	advice.ReleaseEvery, advice.Smooth = time.Duration(o.ReleaseEvery), time.Duration(o.Smooth)
	evictions.Period, evictions.Stall, evictions.Grace = time.Duration(o.Period), float64(e.StallPercent)/100, time.Duration(e.Grace)
	evictions.DisturbedFor = time.Duration(e.DisturbedFor)
	evictions.Tolerance, evictions.StarvedFor, evictions.Overuse, evictions.OveruseFor = e.Tolerance, time.Duration(e.StarvedFor), e.Overuse, time.Duration(e.OveruseFor)
	evictions.DiskFree, evictions.PerMinute, evictions.Hold = float64(e.DiskFreePercent)/100, e.PerMinute, time.Duration(e.Hold)
	return host.Options{
		Node: c.Node, Namespace: c.Namespace,
		Roots:        host.Roots{Sys: c.SysRoot, Proc: c.ProcRoot, Cgroup: c.CgroupRoot, Kubelet: c.KubeletRoot, State: c.StateDir},
		CgroupParent: c.CgroupParent, NRI: c.NRISocket, Interval: time.Duration(c.Interval), Topology: c.Topology,
		Knobs:        shape.Knobs{CPUSets: c.CPUSets, Idle: c.CPUIdle, Weights: c.CPUWeights, Protect: c.ProtectMemory, IOWeight: c.IOWeight, IOMax: c.IOMax, IOCostQoS: c.IOCostQoS, IOCostModel: c.IOCostModel},
		CachePercent: c.CachePercent, BandwidthPercent: c.BandwidthPercent,
		Overlap: host.OverlapOptions{Box: o.MemoryBox, Quota: o.CPUQuota, Offer: o.Offer, Advice: advice, Evict: e.Enabled, Evictions: evictions},
		Margin:  time.Duration(c.CleanMargin), MemoryLeft: fleet.Bytes(c.MemoryLeftMiB) << 20,
		LeaseSeconds: int32(time.Duration(c.LeaseDuration) / time.Second), Registry: registry, Log: log,
	}
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
