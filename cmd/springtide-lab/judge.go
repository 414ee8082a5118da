package main

import (
	"github.com/spf13/cobra"

	"github.com/springtide/springtide/lab/judge/watch"
)

// judgeRun is the judge of a run, as a process of its own: the world starts it.
func judgeRun() *cobra.Command {
	var o watch.Options
	cmd := &cobra.Command{
		Use:    "judge",
		Short:  "Judge a run of the lab by what an operator was promised",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return watch.Run(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of a user who may read everything")
	f.StringVar(&o.Audit, "audit", "", "the API server's audit log")
	f.StringVar(&o.Clock, "clock", "", "URL of the lab's clock")
	f.StringVar(&o.Truth, "truth", "", "URL of the world's truth")
	f.StringVar(&o.Prometheus, "prometheus", "", "URL of the metrics that the controllers ask for")
	f.StringVar(&o.Namespace, "namespace", "springtide-system", "the controllers' namespace")
	f.StringVar(&o.Lease, "lease", "springtide-controller", "the controllers' lease")
	f.StringVar(&o.Controller, "controller", "", "the controllers' account")
	f.StringSliceVar(&o.Ours, "ours", nil, "accounts of all components")
	f.StringVar(&o.Report, "report", "", "file to write the report to")
	return cmd
}
