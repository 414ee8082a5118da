// Package doctor looks for what keeps Springtide from working.
package doctor

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/examine"
	"github.com/springtide/springtide/internal/cli/prom"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/store/promql"
)

// doctor is the examination of `springtide doctor`, with what its own checks need.
type doctor struct {
	*examine.Examination
	prometheus string
	// namespaceLabel is the one of the source, http how it is reached, cluster which of its series are this cluster's.
	namespaceLabel string
	http           prom.HTTP
	cluster        promql.Cluster
	// away are the machines that may be lent to offline.
	away []*corev1.Node
}

// NewCommand makes `springtide doctor`.
func NewCommand(o *cluster.Options) *cobra.Command {
	var prometheus, label string
	var reach prom.HTTP
	var own prom.Cluster
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Say what is missing: API server, definitions, rights, metrics, agents, store",
		Example: "  springtide doctor --prometheus http://prometheus.monitoring:9090",
		Long: "Look for what keeps Springtide from working, or from working well, and say how to fix it.\n\n" +
			"It looks at the API server's version, and at definitions that are missing or of another release. It asks for the rights of the user who\n" +
			"runs it: run it with the controller's account by --as, or inside of its pod. It looks at pauses\n" +
			"that ended or have no end, and at pools, machines and node agents. It looks at offline\n" +
			"work that cannot land on lent machines, at stable members that may, and at disruption budgets that can " +
			"never be met.\n" +
			"With --prometheus it looks for the metrics that forecasts need, and with --store at the store. Exit code 1 " +
			"when there is a problem; advice alone is no problem.",
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.Connect(o)
			if err != nil {
				return err
			}
			d := &doctor{Examination: &examine.Examination{Clients: c, Namespace: o.Namespace, Store: cmp.Or(o.Store, c.Store)},
				prometheus: prometheus, namespaceLabel: label, http: reach, cluster: own.Cluster()}
			d.Examine(cmd.Context(), d.checks())
			return d.Print(cmd.OutOrStdout(), o.Output)
		},
	}
	o.Cluster(cmd)
	o.Controller(cmd)
	o.History(cmd)
	cmd.Flags().StringVar(&prometheus, "prometheus", "", "URL of the Prometheus HTTP API, to run the controller's queries against")
	cmd.Flags().StringVar(&label, "namespace-label", "namespace", "label that names the namespace in this Prometheus")
	reach.Flags(cmd.Flags())
	own.Flags(cmd.Flags())
	o.Formats(cmd, "table", "json", "yaml")
	return cmd
}

// checks are all checks of `springtide doctor`, in the order of its answer.
func (d *doctor) checks() []examine.Check {
	own := func(run func(context.Context, *doctor) error) func(context.Context, *examine.Examination) error {
		return func(ctx context.Context, _ *examine.Examination) error { return run(ctx, d) }
	}
	return []examine.Check{
		{Name: "API server", Run: examine.CheckServer},
		{Name: "definitions", Run: own(checkDefinitions)},
		{Name: "rights", Run: own(checkRights)},
		{Name: "targets", Run: own(checkTargets)},
		{Name: "controller", Run: own(checkController)},
		{Name: "objects", Run: examine.CheckObjects},
		{Name: "pauses", Run: own(checkPauses)},
		{Name: "machines", Run: own(checkMachines)},
		{Name: "agents", Run: own(checkAgents)},
		{Name: "offline work", Run: own(checkOffline)},
		{Name: "budgets", Run: own(checkBudgets)},
		{Name: "neighbours", Run: own(checkNeighbours)},
		{Name: "schedulers", Run: own(checkSchedulers)},
		{Name: "gangs", Run: own(checkGangs)},
		{Name: "metrics", Run: own(checkMetrics)},
		{Name: "store", Run: examine.CheckStore},
	}
}
