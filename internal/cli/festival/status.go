package festival

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
)

func newFestivalStatusCommand(o *cluster.Options) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:     "status NAME | status -f PLAN.yaml",
		Short:   "Say how far a festival plan is: its phase, and what its services run",
		Example: "  springtide festival status double-eleven\n  springtide festival status -f double-eleven.yaml",
		Long: "Say how far a plan of the cluster is, or the plans of a file are: phase and conditions, and for each lift what the service runs now against its\n" +
			"floor. Exit code 1 when a plan is not there or was not accepted.",
		Args: func(cmd *cobra.Command, args []string) error {
			if path != "" {
				return usage.Exactly()(cmd, args)
			}
			return usage.Exactly("NAME")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				c, err := o.Connect(o)
				if err != nil {
					return err
				}
				return planStatus(cmd.Context(), o, c, args[0], cmd.OutOrStdout())
			}
			return withPlans(o, &path, func(cmd *cobra.Command, c *cluster.Clients, plans []*festivalPlan) error {
				var problems []error
				for _, p := range plans {
					problems = append(problems, planStatus(cmd.Context(), o, c, p.Name, cmd.OutOrStdout()))
				}
				return errors.Join(problems...)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVarP(&path, "filename", "f", "", "file with the plans to look for, or - for standard input")
	o.Completes(cmd, cluster.Festivals)
	o.Cluster(cmd)
	o.Formats(cmd, "text", "json", "yaml")
	return cmd
}

func planStatus(ctx context.Context, o *cluster.Options, c *cluster.Clients, name string, out io.Writer) error {
	plan, err := cluster.Get[v1alpha1.FestivalPlan](ctx, c, cluster.Festivals, fleet.Name{Name: name})
	if apierrors.IsNotFound(err) {
		return usage.Found("FestivalPlan %s is not in the cluster: give it by springtide festival apply", name)
	}
	if err != nil {
		return err
	}
	if o.Output != "text" {
		return screen.Encode(out, o.Output, plan)
	}
	p := &screen.Page{Title: "Plan " + name}
	p.Add("Phase", "%s, approved: %t", cell.OrNone(plan.Status.Phase), plan.Spec.Approved)
	f := occurrence(plan, c.Now())
	p.Add("Time", "%s until %s", cell.Stamp(&metav1.Time{Time: f.Start}), cell.Stamp(&metav1.Time{Time: f.End}))
	var rows [][]string
	for _, l := range f.Lifts {
		if l.Ramp {
			continue
		}
		now, seen := "not there", cell.None
		s, err := cluster.Get[v1alpha1.ElasticService](ctx, c, cluster.Services, fleet.ParseName(string(l.Service)))
		switch {
		case err == nil:
			now, seen = fmt.Sprintf("%s; wanted %s", cell.ReadyPods(&s.Status), cell.Desired(s)), cell.ShortAge(s.Status.ObservedTime, c.Now())
		case !apierrors.IsNotFound(err):
			return err
		}
		rows = append(rows, []string{l.Phase, string(l.Service), liftText(l), now, seen})
	}
	p.Table("Lifts", "", []string{"PHASE", "SERVICE", "LIFT", "REPLICAS", "SEEN"}, rows)
	p.Conditions(plan.Status.Conditions)
	if err := p.Print(out); err != nil {
		return err
	}
	for _, cond := range plan.Status.Conditions {
		if cond.Type == catalog.ConditionAccepted && cond.Status == "False" {
			return usage.Found("FestivalPlan %s was not accepted: %s", name, cond.Message)
		}
	}
	return nil
}
