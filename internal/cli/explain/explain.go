// Package explain says why: the page of one service, job, tenant, machine, pod or loan.
package explain

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
)

// explanation is what explain says of one thing: for people the page, for machines what it was made from.
type explanation struct {
	page *screen.Page

	Object    any            `json:"object"`
	Related   any            `json:"related,omitempty"`
	Events    []corev1.Event `json:"events,omitempty"`
	Decisions []pastAction   `json:"decisions,omitempty"`
}

// NewCommand makes `springtide explain` and a command below it for each kind.
func NewCommand(o *cluster.Options) *cobra.Command {
	cmd := usage.Group(&cobra.Command{
		Use:   "explain service|job|quota|node|loan|pod NAME",
		Short: "Say why: what was decided about a service, a job, a tenant, a node, a loan or a pod, and on what ground",
		Long: "Say why a service has the replicas it has, and when a job that waits begins. Say what a tenant may use and must give back, why a machine\n" +
			"is lent or stays, or where a loan stands and what it waits for.\n\n" +
			"The ground is what the controller wrote: status, conditions, history and events. Its journal adds the last decisions, those that were\n" +
			"held back included: the controller answers with it (read API), or --store names its store. -w prints the page again at each change.",
		Example: "  springtide explain service shop/cart\n  springtide explain loan node-17-aa -w",
	})
	for _, sub := range []struct {
		use, short, plural, example string
		run                         func(context.Context, *cluster.Options, *cluster.Clients, string) (*explanation, error)
		namespaced                  bool
	}{
		{"service", "Why this service has these replicas", cluster.Services, "shop/cart", explainService, true},
		{"job", "How many members this job has, and when it begins", cluster.Jobs, "ml/train", explainJob, true},
		{"quota", "How much this tenant may use, lends and must give back", cluster.Quotas, "shop", explainQuota, false},
		{"node", "Why this machine is lent, moves or stays", cluster.Nodes, "node-17", explainNode, false},
		{"pod", "Where this pod is and why, or why it waits", "pods", "shop/cart-6d5f-x2x4z", explainPod, true},
		{"loan", "Where this loan stands and what it waits for", cluster.Loans, "node-17-aa", explainLoan, false},
	} {
		o := *o
		c := &cobra.Command{
			Use:     sub.use + " NAME",
			Short:   sub.short,
			Example: "  springtide explain " + sub.use + " " + sub.example,
			Args:    usage.Exactly("NAME"),
			RunE: func(cmd *cobra.Command, args []string) error {
				c, err := o.Connect(&o)
				if err != nil {
					return err
				}
				show := func() error {
					e, err := sub.run(cmd.Context(), &o, c, args[0])
					if err != nil {
						return err
					}
					return e.print(cmd.OutOrStdout(), o.Output)
				}
				if err := show(); err != nil || !o.Watch {
					return err
				}
				return again(&o, cmd, c, sub.plural, args[0], show)
			},
		}
		o.Cluster(c)
		if sub.namespaced {
			o.Namespaced(c, "namespace of a name that is given without one")
		}
		if sub.use == "pod" {
			c.Flags().StringVar(&o.SchedulerNamespace, "scheduler-namespace", "springtide-system", "namespace of the bundled scheduler")
		} else {
			o.Completes(c, sub.plural)
		}
		o.History(c)
		c.Flags().BoolVarP(&o.Watch, "watch", "w", false, "print the page again whenever the object changes, until stopped")
		o.Formats(c, "text", "json", "yaml")
		cmd.AddCommand(c)
	}
	return cmd
}

func (e *explanation) print(out io.Writer, format string) error {
	if format != "text" {
		return screen.Encode(out, format, e)
	}
	return e.page.Print(out)
}

// ground adds what is known next to the object: the events about it, and the decisions about it.
func (e *explanation) ground(ctx context.Context, o *cluster.Options, c *cluster.Clients, kind string, name fleet.Name) error {
	var err error
	if e.Events, err = eventsOf(ctx, c, kind, name); err != nil {
		return err
	}
	events(e.page, c.Clocks, e.Events)
	m, done, err := o.Remember(ctx, c)
	if err == nil {
		defer done()
		e.Decisions, err = decisionsOf(ctx, m, kind, name)
	}
	if err != nil {
		if o.Store != "" {
			return err
		}
		e.page.Add("Decisions", "not known: %s", err) // everything else stands in the cluster
		return nil
	}
	decisions(e.page, e.Decisions)
	return nil
}

// again shows a page whenever its object changes, until the context ends.
func again(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, plural, arg string, show func() error) error {
	n := fleet.Name{Name: arg}
	r := c.Resource(plural, "")
	switch plural {
	case "pods":
		var err error
		if n, err = o.NameOf(c, arg); err != nil {
			return err
		}
		r = c.Dyn.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(n.Namespace)
	case cluster.Nodes:
		r = c.Dyn.Resource(corev1.SchemeGroupVersion.WithResource(cluster.Nodes))
	case cluster.Services, cluster.Jobs:
		var err error
		if n, err = o.NameOf(c, arg); err != nil {
			return err
		}
		r = c.Resource(plural, n.Namespace)
	}
	w, err := r.Watch(cmd.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + n.Name})
	if err != nil {
		return cluster.Reading(plural, err)
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
				return usage.Found("%s is gone", arg)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "---")
			if err := show(); err != nil {
				return err
			}
		}
	}
}
