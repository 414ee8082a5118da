package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube"
)

func newFestivalStatusCommand(o *cliOptions) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:     "status NAME | status -f PLAN.yaml",
		Short:   "Say how far a festival plan is: its phase, and what its services run",
		Example: "  springtide festival status double-eleven\n  springtide festival status -f double-eleven.yaml",
		Long: "Say how far a plan of the cluster is, or the plans of a file are: phase and conditions, and for each lift what the service runs now against its\n" +
			"floor. Exit code 1 when a plan is not there or was not accepted.",
		Args: func(cmd *cobra.Command, args []string) error {
			if path != "" {
				return exactly()(cmd, args)
			}
			return exactly("NAME")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				c, err := o.connect(o)
				if err != nil {
					return err
				}
				return o.planStatus(cmd.Context(), c, args[0], cmd.OutOrStdout())
			}
			return o.withPlans(&path, func(cmd *cobra.Command, c *clients, plans []*festivalPlan) error {
				var problems []error
				for _, p := range plans {
					problems = append(problems, o.planStatus(cmd.Context(), c, p.Name, cmd.OutOrStdout()))
				}
				return errors.Join(problems...)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVarP(&path, "filename", "f", "", "file with the plans to look for, or - for standard input")
	o.completes(cmd, festivals)
	o.cluster(cmd)
	o.formats(cmd, "text", "json", "yaml")
	return cmd
}

func (o *cliOptions) planStatus(ctx context.Context, c *clients, name string, out io.Writer) error {
	plan, err := get[v1alpha1.FestivalPlan](ctx, c, festivals, fleet.Name{Name: name})
	if apierrors.IsNotFound(err) {
		return errFound("FestivalPlan %s is not in the cluster: give it by springtide festival apply", name)
	}
	if err != nil {
		return err
	}
	if o.output != "text" {
		return encode(out, o.output, plan)
	}
	p := &page{title: "Plan " + name}
	p.add("Phase", "%s, approved: %t", orNone(plan.Status.Phase), plan.Spec.Approved)
	p.add("Time", "%s until %s", stamp(&plan.Spec.Start), stamp(&plan.Spec.End))
	lifts := kube.FestivalOf(plan).Lifts
	rows := make([][]string, len(lifts))
	for i, l := range lifts {
		now, seen := "not there", none
		s, err := get[v1alpha1.ElasticService](ctx, c, services, fleet.ParseName(string(l.Service)))
		switch {
		case err == nil:
			now, seen = fmt.Sprintf("%s; wanted %s", readyPods(&s.Status), desiredText(s)), shortAge(s.Status.ObservedTime, c.now())
		case !apierrors.IsNotFound(err):
			return err
		}
		rows[i] = []string{string(l.Service), liftText(l), now, seen}
	}
	p.table("Lifts", "", []string{"SERVICE", "LIFT", "REPLICAS", "SEEN"}, rows)
	p.conditions(plan.Status.Conditions)
	if err := p.print(out); err != nil {
		return err
	}
	for _, cond := range plan.Status.Conditions {
		if cond.Type == v1alpha1.ConditionAccepted && cond.Status == "False" {
			return errFound("FestivalPlan %s was not accepted: %s", name, cond.Message)
		}
	}
	return nil
}
