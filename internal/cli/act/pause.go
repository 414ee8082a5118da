// Package act holds the verbs that hold or change what the controller does: pause and resume, freeze and thaw, recall, node forget-agent.
package act

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/usage"
)

// NewPauseCommand makes `springtide pause`.
func NewPauseCommand(o *cluster.Options) *cobra.Command {
	var in, out bool
	cmd := &cobra.Command{
		Use:   "pause SERVICE",
		Short: "Stop the scaling of one service, or only one direction of it",
		Long: "Stop the scaling of one service: all of it, only scale-in (--in), or only scale-out (--out). It goes on being observed, so that\n" +
			"springtide services shows what would be done. springtide resume ends the pause.",
		Example: "  springtide pause shop/cart --in",
		Args:    usage.Exactly("SERVICE"),
		RunE: o.About(func(cmd *cobra.Command, c *cluster.Clients, name fleet.Name) error {
			pause := fleet.PauseAll
			switch {
			case in && out:
			case in:
				pause = fleet.PauseIn
			case out:
				pause = fleet.PauseOut
			}
			return setPause(o, cmd, c, name, pause)
		}),
	}
	cmd.Flags().BoolVar(&in, "in", false, "stop scale-in alone")
	cmd.Flags().BoolVar(&out, "out", false, "stop scale-out alone")
	return o.Changing(cmd)
}

// NewResumeCommand makes `springtide resume`.
func NewResumeCommand(o *cluster.Options) *cobra.Command {
	return o.Changing(&cobra.Command{
		Use:     "resume SERVICE",
		Short:   "End the pause of one service",
		Example: "  springtide resume shop/cart",
		Args:    usage.Exactly("SERVICE"),
		RunE: o.About(func(cmd *cobra.Command, c *cluster.Clients, name fleet.Name) error {
			return setPause(o, cmd, c, name, fleet.PauseNone)
		}),
	})
}

func setPause(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, name fleet.Name, pause fleet.Pause) error {
	s, err := cluster.Get[v1alpha1.ElasticService](cmd.Context(), c, cluster.Services, name)
	if err != nil {
		return err
	}
	was := cmp.Or(s.Spec.Pause, v1alpha1.DefaultPause)
	what := fmt.Sprintf("ElasticService %s: pause %s -> %s", name, was, pause)
	if was == string(pause) {
		return cluster.Say(cmd.OutOrStdout(), o, fmt.Sprintf("ElasticService %s: pause is %s already", name, pause))
	}
	if o.DryRun != cluster.DryRunClient {
		body, err := cluster.MergePatch(map[string]any{"spec": map[string]any{"pause": string(pause)}})
		if err != nil {
			return err
		}
		if _, err := c.Resource(cluster.Services, name.Namespace).Patch(cmd.Context(), name.Name, types.MergePatchType, body, o.Patch()); err != nil {
			return fmt.Errorf("pause %s: %w", name, err)
		}
	}
	return cluster.Say(cmd.OutOrStdout(), o, what)
}

// NewFreezeCommand makes `springtide freeze`.
func NewFreezeCommand(o *cluster.Options) *cobra.Command {
	var reason string
	var force bool
	cmd := &cobra.Command{
		Use:   "freeze",
		Short: "Hold every action of the controller, in the whole cluster",
		Long: "Hold every action of the controller within one cycle: nothing is scaled, lent, recalled or evicted, and phases stay where they are.\n" +
			"Observation and forecasts go on. On springtide thaw, deadlines are announced again.\n" +
			"Where a freeze is in force, its reason is shown and kept; --force takes the new one in its place.",
		Example: `  springtide freeze --reason "switch maintenance, see INC-1234"`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return usage.Error{Err: fmt.Errorf("--reason is empty: say why, it is shown wherever an action is held")}
			}
			return setFreeze(o, cmd, reason, force)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; shown wherever an action is held")
	cmd.Flags().BoolVar(&force, "force", false, "replace the reason of a freeze that is in force")
	usage.Require(cmd, "reason")
	return switching(o, cmd)
}

// NewThawCommand makes `springtide thaw`.
func NewThawCommand(o *cluster.Options) *cobra.Command {
	return switching(o, &cobra.Command{
		Use:     "thaw",
		Short:   "End a freeze",
		Example: "  springtide thaw",
		Args:    usage.Exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return setFreeze(o, cmd, "", false) },
	})
}

// switching adds the flags of a verb that concerns the controller itself.
func switching(o *cluster.Options, cmd *cobra.Command) *cobra.Command {
	o.Cluster(cmd)
	o.Controller(cmd)
	o.Dry(cmd)
	return cmd
}

func setFreeze(o *cluster.Options, cmd *cobra.Command, reason string, force bool) error {
	c, err := o.Connect(o)
	if err != nil {
		return err
	}
	namespaces := c.Core.CoreV1().Namespaces()
	ns, err := namespaces.Get(cmd.Context(), o.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return usage.Error{Err: fmt.Errorf("there is no namespace %s: name the controller's with -n", o.Namespace)}
	}
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", o.Namespace, err)
	}
	was, frozen := ns.Annotations[v1alpha1.AnnotationFreeze]
	var value any // null takes the annotation away
	what := "frozen: " + reason
	if reason == "" {
		if !frozen {
			return cluster.Say(cmd.OutOrStdout(), o, "not frozen")
		}
		what = "thawed; it was frozen: " + was
	} else {
		if frozen && was == reason {
			return cluster.Say(cmd.OutOrStdout(), o, "frozen already: "+was)
		}
		if frozen && !force {
			return usage.Found("frozen already: %s; give --force to replace that reason", was)
		}
		if frozen {
			what += " (before: " + was + ")"
		}
		value = reason
	}
	if o.DryRun != cluster.DryRunClient {
		body, err := cluster.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationFreeze: value}}})
		if err != nil {
			return err
		}
		if _, err := namespaces.Patch(cmd.Context(), o.Namespace, types.MergePatchType, body, o.Patch()); err != nil {
			return fmt.Errorf("annotate namespace %s: %w", o.Namespace, err)
		}
	}
	return cluster.Say(cmd.OutOrStdout(), o, what)
}
