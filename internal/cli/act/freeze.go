package act

import (
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/usage"
)

// NewFreezeCommand makes `springtide freeze`.
func NewFreezeCommand(o *cluster.Options) *cobra.Command {
	var reason string
	var force bool
	cmd := &cobra.Command{
		Use:   "freeze",
		Short: "Hold every action of the controller, in the whole cluster",
		Long: "Hold every action of the controller within one cycle: nothing is scaled, lent, recalled or evicted, and\n" +
			"phases stay where they are.\n" +
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
		body, err := cluster.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			v1alpha1.AnnotationFreeze: value}}})
		if err != nil {
			return err
		}
		if _, err := namespaces.Patch(cmd.Context(), o.Namespace, types.MergePatchType, body, o.Patch()); err != nil {
			return fmt.Errorf("annotate namespace %s: %w", o.Namespace, err)
		}
	}
	return cluster.Say(cmd.OutOrStdout(), o, what)
}
