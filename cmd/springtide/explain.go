package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

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
		Long: "Say why a service has the replicas it has, and when a job that waits begins. Say what a tenant may use and must give back, why a machine\n" +
			"is lent or stays, or where a loan stands and what it waits for.\n\n" +
			"The ground is what the controller wrote: status, conditions, history and events. Its journal adds the last decisions, those that were\n" +
			"held back included: the controller answers with it (read API), or --store names its store. -w prints the page again at each change.",
		Example: "  springtide explain service shop/cart\n  springtide explain loan node-17-aa -w",
		Args:    usageIfNone,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []struct {
		use, short, plural, example string
		run                         func(context.Context, *cliOptions, *clients, string) (*explanation, error)
		namespaced                  bool
	}{
		{"service", "Why this service has these replicas", services, "shop/cart", explainService, true},
		{"job", "How many members this job has, and when it begins", jobs, "ml/train", explainJob, true},
		{"quota", "What this tenant may use, lends and must give back", quotas, "shop", explainQuota, false},
		{"node", "Why this machine is lent, moves or stays", nodes, "node-17", explainNode, false},
		{"pod", "Where this pod is and why, or why it waits", "pods", "shop/cart-6d5f-x2x4z", explainPod, true},
		{"loan", "Where this loan stands and what it waits for", loans, "node-17-aa", explainLoan, false},
	} {
		o := *o
		c := &cobra.Command{
			Use:     sub.use + " NAME",
			Short:   sub.short,
			Example: "  springtide explain " + sub.use + " " + sub.example,
			Args:    exactly("NAME"),
			RunE: func(cmd *cobra.Command, args []string) error {
				c, err := o.connect(&o)
				if err != nil {
					return err
				}
				show := func() error {
					e, err := sub.run(cmd.Context(), &o, c, args[0])
					if err != nil {
						return err
					}
					return e.print(cmd.OutOrStdout(), o.output)
				}
				if err := show(); err != nil || !o.watch {
					return err
				}
				return o.again(cmd, c, sub.plural, args[0], show)
			},
		}
		o.cluster(c)
		if sub.namespaced {
			o.namespaced(c, "namespace of a name that is given without one")
		}
		if sub.use == "pod" {
			c.Flags().StringVar(&o.schedulerNamespace, "scheduler-namespace", "springtide-system", "namespace of the bundled scheduler")
		} else {
			o.completes(c, sub.plural)
		}
		o.history(c)
		c.Flags().BoolVarP(&o.watch, "watch", "w", false, "print the page again whenever the object changes, until stopped")
		o.formats(c, "text", "json", "yaml")
		cmd.AddCommand(c)
	}
	return cmd
}

// usageIfNone makes a verb that only has verbs below it say so.
func usageIfNone(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		near := ""
		if found := cmd.SuggestionsFor(args[0]); len(found) > 0 {
			near = ": did you mean " + found[0] + "?"
		}
		return usageError{fmt.Errorf("%s knows no %q%s (see %s --help)", cmd.CommandPath(), args[0], near, cmd.CommandPath())}
	}
	return nil
}

func (e *explanation) print(out io.Writer, format string) error {
	if format != "text" {
		return encode(out, format, e)
	}
	return e.page.print(out)
}

// ground adds what is known next to the object: the events about it, and the decisions about it.
func (e *explanation) ground(ctx context.Context, o *cliOptions, c *clients, kind string, name fleet.Name) error {
	var err error
	if e.Events, err = eventsOf(ctx, c, kind, name); err != nil {
		return err
	}
	e.page.events(c.clocks, e.Events)
	m, done, err := o.remember(ctx, c)
	if err == nil {
		defer done()
		e.Decisions, err = decisionsOf(ctx, m, kind, name)
	}
	if err != nil {
		if o.store != "" {
			return err
		}
		e.page.add("Decisions", "not known: %s", err) // everything else stands in the cluster
		return nil
	}
	e.page.decisions(e.Decisions)
	return nil
}

// again shows a page whenever its object changes, until the context ends.
func (o *cliOptions) again(cmd *cobra.Command, c *clients, plural, arg string, show func() error) error {
	n := fleet.Name{Name: arg}
	r := c.resource(plural, "")
	switch plural {
	case "pods":
		var err error
		if n, err = o.nameOf(c, arg); err != nil {
			return err
		}
		r = c.dyn.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(n.Namespace)
	case nodes:
		r = c.dyn.Resource(corev1.SchemeGroupVersion.WithResource(nodes))
	case services, jobs:
		var err error
		if n, err = o.nameOf(c, arg); err != nil {
			return err
		}
		r = c.resource(plural, n.Namespace)
	}
	w, err := r.Watch(cmd.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + n.Name})
	if err != nil {
		return reading(plural, err)
	}
	defer w.Stop()
	first := true
	for {
		select {
		case <-cmd.Context().Done():
			return nil
		case e, open := <-w.ResultChan():
			if !open || e.Type == watch.Error {
				return fmt.Errorf("the API server ended the watch of %s: start it again", arg)
			}
			if first && e.Type == watch.Added {
				first = false // as it stands, which was shown
				continue
			}
			if e.Type == watch.Deleted {
				return errFound("%s is gone", arg)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "---")
			if err := show(); err != nil {
				return err
			}
		}
	}
}
