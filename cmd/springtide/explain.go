package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/fleet"
)

// explanation is what explain says of one thing: for people the page, for machines what it was made from.
type explanation struct {
	page *page

	Object    any            `json:"object"`
	Related   any            `json:"related,omitempty"`
	Events    []corev1.Event `json:"events,omitempty"`
	Decisions []pastAction   `json:"decisions,omitempty"`
}

func newExplainCommand(o *cliOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain service|job|quota|node|loan|pod NAME",
		Short: "Say why: what was decided about a service, a job, a tenant, a node, a loan or a pod, and on what ground",
		Long: "Say why a service has the replicas it has, when a job that waits begins, what a tenant may use and must give back, why a machine is lent\n" +
			"or stays, or where a loan stands and what it waits for.\n\n" +
			"The ground is what the controller wrote: status, conditions, history and events. With --store its journal adds the last decisions,\n" +
			"those that were held back included.",
		Args: usageIfNone,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []struct {
		use, short, plural string
		run                func(context.Context, *cliOptions, *clients, string) (*explanation, error)
		namespaced         bool
	}{
		{"service", "Why this service has these replicas", services, explainService, true},
		{"job", "How many members this job has, and when it begins", jobs, explainJob, true},
		{"quota", "What this tenant may use, lends and must give back", quotas, explainQuota, false},
		{"node", "Why this machine is lent, moves or stays", nodes, explainNode, false},
		{"pod", "Where this pod is and why, or why it waits", "pods", explainPod, true},
		{"loan", "Where this loan stands and what it waits for", loans, explainLoan, false},
	} {
		o := *o
		c := &cobra.Command{
			Use:   sub.use + " NAME",
			Short: sub.short,
			Args:  exactly("NAME"),
			RunE: func(cmd *cobra.Command, args []string) error {
				c, err := o.connect(&o)
				if err != nil {
					return err
				}
				e, err := sub.run(cmd.Context(), &o, c, args[0])
				if err != nil {
					return err
				}
				return e.print(cmd.OutOrStdout(), o.output)
			},
		}
		o.cluster(c)
		if sub.namespaced {
			o.namespaced(c, "namespace of a name that is given without one")
		} else {
			o.controller(c)
		}
		if sub.use == "pod" {
			c.Flags().StringVar(&o.schedulerNamespace, "scheduler-namespace", "springtide-system", "namespace of the bundled scheduler")
		} else {
			o.completes(c, sub.plural)
		}
		o.history(c)
		o.formats(c, "text", "json", "yaml")
		cmd.AddCommand(c)
	}
	return cmd
}

// usageIfNone makes a verb that only has verbs below it say so.
func usageIfNone(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s knows no %q (see %s --help)", cmd.CommandPath(), args[0], cmd.CommandPath())}
	}
	return nil
}

func (e *explanation) print(out io.Writer, format string) error {
	if format != "text" {
		return encode(out, format, e)
	}
	return e.page.print(out)
}

// ground adds what is known beside the object: the events about it, and the decisions about it when a store was named.
func (e *explanation) ground(ctx context.Context, o *cliOptions, c *clients, kind string, name fleet.Name) error {
	var err error
	if e.Events, err = eventsOf(ctx, c, kind, name); err != nil {
		return err
	}
	e.page.events(e.Events)
	if o.store == "" {
		return nil
	}
	if e.Decisions, err = decisionsOf(ctx, o.store, kind, name); err != nil {
		return err
	}
	e.page.decisions(e.Decisions)
	return nil
}
