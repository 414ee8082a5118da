// Package promote moves services from looking on to acting, one step at a time.
package promote

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/takeover"
	"github.com/springtide/springtide/internal/cli/trial"
	"github.com/springtide/springtide/internal/cli/usage"
)

// steps are the modes in the order in which a service is trusted with more.
var steps = []fleet.Mode{fleet.Observe, fleet.Recommend, fleet.Auto}

// NewCommand makes `springtide promote`.
func NewCommand(o *cluster.Options) *cobra.Command { return newCommand(o, trial.History{}) }

func newCommand(o *cluster.Options, from trial.History) *cobra.Command {
	return usage.Group(&cobra.Command{
		Use:     "promote",
		Short:   "Let a service act: from Observe to Recommend to Auto",
		Long:    "Promote a service by one mode, after showing what it would have done and what it changes first.",
		Example: "  springtide promote service shop/cart --prometheus http://localhost:9090",
	}, newServiceCommand(o, from))
}

// promotion is how it was called.
type promotion struct {
	from  trial.History
	force bool
}

func newServiceCommand(o *cluster.Options, from trial.History) *cobra.Command {
	p := promotion{from: from}
	cmd := &cobra.Command{
		Use:   "service NAME",
		Short: "Promote an ElasticService by one mode",
		Long: "Show what the last weeks would have been (springtide whatif), then what changes first, and set the next " +
			"mode: Recommend after\n" +
			"Observe, Auto after Recommend. A service that would have had more bad minutes than today is promoted with " +
			"--force alone.\n\n" +
			"With --dry-run=client -o yaml the change is printed for a repository, and nothing is written.",
		Example: "  springtide promote service shop/cart --prometheus http://localhost:9090\n" +
			"  springtide promote service cart -n shop --prometheus http://localhost:9090 --dry-run=client -o yaml > cart-mode.yaml",
		Args: usage.Exactly("NAME"),
		RunE: o.About(func(cmd *cobra.Command, c *cluster.Clients, name fleet.Name) error {
			s, err := cluster.Get[v1alpha1.ElasticService](cmd.Context(), c, cluster.Services, name)
			if err != nil {
				return err
			}
			return p.run(cmd, o, c, s)
		}),
	}
	p.from.Flags(cmd)
	o.Changing(cmd)
	o.Formats(cmd, "table", "yaml")
	cmd.Flags().BoolVar(&p.force, "force", false, "promote though the service would have had more bad minutes than today")
	o.Completes(cmd, cluster.Services)
	return cmd
}

// next is the mode after one; false where there is none.
func next(mode string) (fleet.Mode, bool) {
	for i, m := range steps[:len(steps)-1] {
		if string(m) == mode || mode == "" && i == 0 {
			return steps[i+1], true
		}
	}
	return "", false
}

func (p *promotion) run(cmd *cobra.Command, o *cluster.Options, c *cluster.Clients, s *v1alpha1.ElasticService) error {
	name := fleet.Name{Namespace: s.Namespace, Name: s.Name}
	to, ok := next(s.Spec.Mode)
	if !ok {
		return usage.Found("ElasticService %s is in mode %s already: there is no mode after it", name, s.Spec.Mode)
	}
	t, err := trial.Of(cmd.Context(), c, &p.from, s)
	if err != nil {
		return err
	}
	// The patch alone goes to standard output, so that it can be redirected.
	out := cmd.OutOrStdout()
	if o.Output == "yaml" {
		out = cmd.ErrOrStderr()
	}
	if err := t.Print(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", first(s, to))
	if was, now := t.Cases[0], t.Cases[1]; now.BadMinutes > was.BadMinutes && !p.force {
		return usage.Found("ElasticService %s is not promoted: it would have had %d bad minutes, and has %d today; add "+
			"--force to "+
			"do so nonetheless", name, now.BadMinutes, was.BadMinutes)
	}
	if o.DryRun == cluster.DryRunClient && o.Output == "yaml" {
		return screen.Encode(cmd.OutOrStdout(), "yaml", map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "ElasticService",
			"metadata": map[string]any{"namespace": s.Namespace, "name": s.Name},
			"spec":     map[string]any{"mode": string(to)}})
	}
	if o.DryRun != cluster.DryRunClient {
		if err := takeover.SetMode(cmd.Context(), o, c, name, to); err != nil {
			return err
		}
	}
	return cluster.Say(out, o, fmt.Sprintf("ElasticService %s is in mode %s", name, to))
}

// first says what changes first, by what the controller last thought.
func first(s *v1alpha1.ElasticService, to fleet.Mode) string {
	want := cell.Desired(s)
	switch {
	case want == cell.None:
		return "The first change is not known: the controller has not sized it yet (springtide explain service)."
	case to == fleet.Recommend:
		return "In mode Recommend nothing is changed: each change that would be made is an event. Now it would want " + want +
			" replicas."
	}
	return fmt.Sprintf("In mode Auto %s is set first, to %s: replicas are %s.", written(s), want,
		cell.ReadyPods(&s.Status))
}

// written is what will be written.
func written(s *v1alpha1.ElasticService) string {
	if s.Spec.Actuation == string(fleet.ByHPAFloor) {
		return "minReplicas of its HorizontalPodAutoscaler"
	}
	return "spec.replicas of " + s.Spec.TargetRef.Kind + " " + s.Spec.TargetRef.Name
}
