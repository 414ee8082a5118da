package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/store/promql"
)

// severity tells what keeps Springtide from working from what only makes it work less well.
type severity string

const (
	fine    severity = "OK"
	advice  severity = "Advice"
	problem severity = "Problem"
)

// finding is one answer of the doctor.
type finding struct {
	Check    string   `json:"check"`
	Severity severity `json:"severity"`
	Message  string   `json:"message"`
	// Mend says what to do; empty when all is well.
	Mend string `json:"mend,omitempty"`
}

// doctor holds what the checks need, and what they found.
type doctor struct {
	c          *clients
	namespace  string
	prometheus string
	// namespaceLabel is the one of the source, http how it is reached, cluster which of its series are this cluster's.
	namespaceLabel string
	http           promHTTP
	cluster        promql.Cluster
	store          string
	// away are the machines that may be lent to offline.
	away  []*corev1.Node
	found []finding
}

func newDoctorCommand(o *cliOptions) *cobra.Command {
	var prometheus, label string
	var reach promHTTP
	var own promCluster
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Say what is missing: API server, definitions, rights, metrics, agents, store",
		Example: "  springtide doctor --prometheus http://prometheus.monitoring:9090",
		Long: "Look for what keeps Springtide from working, or from working well, and say how to fix it.\n\n" +
			"It looks at the API server's version, and at definitions that are missing or of another release. It asks for the rights of the user who\n" +
			"runs it: run it with the controller's account by --as, or inside of its pod. It looks at pools, machines and node agents. It looks at offline\n" +
			"work that cannot land on lent machines, at stable members that may, and at disruption budgets that can never be met. With --prometheus\n" +
			"it looks for the metrics that forecasts need, and with --store at the store. Exit code 1 when there is a problem; advice alone is no problem.",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.connect(o)
			if err != nil {
				return err
			}
			d := &doctor{c: c, namespace: o.namespace, prometheus: prometheus, namespaceLabel: label, http: reach, cluster: own.cluster(), store: cmp.Or(o.store, c.store)}
			d.examine(cmd.Context(), doctorChecks())
			return d.print(cmd.OutOrStdout(), o.output)
		},
	}
	o.cluster(cmd)
	o.controller(cmd)
	o.history(cmd)
	cmd.Flags().StringVar(&prometheus, "prometheus", "", "URL of the Prometheus HTTP API, to run the controller's queries against")
	cmd.Flags().StringVar(&label, "namespace-label", "namespace", "label that names the namespace in this Prometheus")
	reach.flags(cmd.Flags())
	own.flags(cmd.Flags())
	o.formats(cmd, "table", "json", "yaml")
	return cmd
}

// check is one question to the cluster.
type check struct {
	name string
	run  func(context.Context, *doctor) error
}

// doctorChecks are all checks of `springtide doctor`, in the order of its answer.
func doctorChecks() []check {
	return []check{
		{"API server", checkServer},
		{"definitions", checkDefinitions},
		{"rights", checkRights},
		{"controller", checkController},
		{"objects", checkObjects},
		{"machines", checkMachines},
		{"agents", checkAgents},
		{"offline work", checkOffline},
		{"budgets", checkBudgets},
		{"neighbours", checkNeighbours},
		{"schedulers", checkSchedulers},
		{"gangs", checkGangs},
		{"metrics", checkMetrics},
		{"store", checkStore},
	}
}

// examine runs checks. A check that fails is a finding like any other: the rest still runs.
func (d *doctor) examine(ctx context.Context, checks []check) {
	for _, check := range checks {
		before := len(d.found)
		if err := check.run(ctx, d); err != nil {
			d.found = append(d.found, finding{check.name, problem, err.Error(), "see the message; then run springtide doctor again"})
		}
		for i := before; i < len(d.found); i++ {
			d.found[i].Check = check.name
		}
	}
}

func (d *doctor) ok(format string, args ...any) {
	d.found = append(d.found, finding{Severity: fine, Message: fmt.Sprintf(format, args...)})
}

func (d *doctor) advise(mend, format string, args ...any) {
	d.found = append(d.found, finding{Severity: advice, Message: fmt.Sprintf(format, args...), Mend: mend})
}

func (d *doctor) report(mend, format string, args ...any) {
	d.found = append(d.found, finding{Severity: problem, Message: fmt.Sprintf(format, args...), Mend: mend})
}

func (d *doctor) print(out io.Writer, format string) error {
	problems := 0
	for _, f := range d.found {
		if f.Severity == problem {
			problems++
		}
	}
	if format != "table" {
		if err := encode(out, format, d.found); err != nil {
			return err
		}
	} else {
		var b strings.Builder
		for _, f := range d.found {
			fmt.Fprintf(&b, "%-8s %-13s %s\n", f.Severity, f.Check, f.Message)
			if f.Mend != "" {
				fmt.Fprintf(&b, "%-8s %-13s -> %s\n", "", "", strings.ReplaceAll(f.Mend, "\n", "\n"+strings.Repeat(" ", 26)))
			}
		}
		if _, err := io.WriteString(out, b.String()); err != nil {
			return err
		}
	}
	if problems > 0 {
		return errFound("%s", count(problems, "problem"))
	}
	return nil
}
