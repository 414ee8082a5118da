package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

func newPauseCommand(o *cliOptions) *cobra.Command {
	var in, out bool
	cmd := &cobra.Command{
		Use:   "pause SERVICE",
		Short: "Stop the scaling of one service, or only one direction of it",
		Long: "Stop the scaling of one service: all of it, only scale-in (--in), or only scale-out (--out). It goes on being observed, so that\n" +
			"springtide services shows what would be done. springtide resume ends the pause.",
		Example: "  springtide pause shop/cart --in",
		Args:    exactly("SERVICE"),
		RunE: o.about(func(cmd *cobra.Command, c *clients, name fleet.Name) error {
			pause := fleet.PauseAll
			switch {
			case in && out:
			case in:
				pause = fleet.PauseIn
			case out:
				pause = fleet.PauseOut
			}
			return o.setPause(cmd, c, name, pause)
		}),
	}
	cmd.Flags().BoolVar(&in, "in", false, "stop scale-in alone")
	cmd.Flags().BoolVar(&out, "out", false, "stop scale-out alone")
	return o.changing(cmd)
}

func newResumeCommand(o *cliOptions) *cobra.Command {
	return o.changing(&cobra.Command{
		Use:     "resume SERVICE",
		Short:   "End the pause of one service",
		Example: "  springtide resume shop/cart",
		Args:    exactly("SERVICE"),
		RunE: o.about(func(cmd *cobra.Command, c *clients, name fleet.Name) error {
			return o.setPause(cmd, c, name, fleet.PauseNone)
		}),
	})
}

// changing adds the flags of a verb that changes a namespaced object.
func (o *cliOptions) changing(cmd *cobra.Command) *cobra.Command {
	o.cluster(cmd)
	o.namespaced(cmd, "namespace of a name that is given without one")
	o.dry(cmd)
	o.completes(cmd, services)
	return cmd
}

func (o *cliOptions) setPause(cmd *cobra.Command, c *clients, name fleet.Name, pause fleet.Pause) error {
	s, err := get[v1alpha1.ElasticService](cmd.Context(), c, services, name)
	if err != nil {
		return err
	}
	was := cmp.Or(s.Spec.Pause, v1alpha1.DefaultPause)
	what := fmt.Sprintf("ElasticService %s: pause %s -> %s", name, was, pause)
	if was == string(pause) {
		return say(cmd.OutOrStdout(), o, fmt.Sprintf("ElasticService %s: pause is %s already", name, pause))
	}
	if o.dryRun != dryRunClient {
		body, err := mergePatch(map[string]any{"spec": map[string]any{"pause": string(pause)}})
		if err != nil {
			return err
		}
		if _, err := c.resource(services, name.Namespace).Patch(cmd.Context(), name.Name, types.MergePatchType, body, o.patch()); err != nil {
			return fmt.Errorf("pause %s: %w", name, err)
		}
	}
	return say(cmd.OutOrStdout(), o, what)
}

func newFreezeCommand(o *cliOptions) *cobra.Command {
	var reason string
	var force bool
	cmd := &cobra.Command{
		Use:   "freeze",
		Short: "Hold every action of the controller, in the whole cluster",
		Long: "Hold every action of the controller within one cycle: nothing is scaled, lent, recalled or evicted, and phases stay where they are.\n" +
			"Observation and forecasts go on. On springtide thaw, deadlines are announced again.\n" +
			"Where a freeze is in force, its reason is shown and kept; --force takes the new one in its place.",
		Example: `  springtide freeze --reason "switch maintenance, see INC-1234"`,
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return usageError{fmt.Errorf("--reason is empty: say why, it is shown wherever an action is held")}
			}
			return o.setFreeze(cmd, reason, force)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; shown wherever an action is held")
	cmd.Flags().BoolVar(&force, "force", false, "replace the reason of a freeze that is in force")
	required(cmd, "reason")
	return o.switching(cmd)
}

func newThawCommand(o *cliOptions) *cobra.Command {
	return o.switching(&cobra.Command{
		Use:     "thaw",
		Short:   "End a freeze",
		Example: "  springtide thaw",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.setFreeze(cmd, "", false) },
	})
}

// switching adds the flags of a verb that concerns the controller itself.
func (o *cliOptions) switching(cmd *cobra.Command) *cobra.Command {
	o.cluster(cmd)
	o.controller(cmd)
	o.dry(cmd)
	return cmd
}

func (o *cliOptions) controller(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", controllerNamespace, "namespace of the controller")
	o.completesNamespaces(cmd)
}

func (o *cliOptions) setFreeze(cmd *cobra.Command, reason string, force bool) error {
	c, err := o.connect(o)
	if err != nil {
		return err
	}
	namespaces := c.core.CoreV1().Namespaces()
	ns, err := namespaces.Get(cmd.Context(), o.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return usageError{fmt.Errorf("there is no namespace %s: name the controller's with -n", o.namespace)}
	}
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", o.namespace, err)
	}
	was, frozen := ns.Annotations[v1alpha1.AnnotationFreeze]
	var value any // null takes the annotation away
	what := "frozen: " + reason
	if reason == "" {
		if !frozen {
			return say(cmd.OutOrStdout(), o, "not frozen")
		}
		what = "thawed; it was frozen: " + was
	} else {
		if frozen && was == reason {
			return say(cmd.OutOrStdout(), o, "frozen already: "+was)
		}
		if frozen && !force {
			return errFound("frozen already: %s; give --force to replace that reason", was)
		}
		if frozen {
			what += " (before: " + was + ")"
		}
		value = reason
	}
	if o.dryRun != dryRunClient {
		body, err := mergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationFreeze: value}}})
		if err != nil {
			return err
		}
		if _, err := namespaces.Patch(cmd.Context(), o.namespace, types.MergePatchType, body, o.patch()); err != nil {
			return fmt.Errorf("annotate namespace %s: %w", o.namespace, err)
		}
	}
	return say(cmd.OutOrStdout(), o, what)
}

func (o *cliOptions) patch() metav1.PatchOptions {
	return metav1.PatchOptions{FieldManager: "springtide-cli", DryRun: o.serverDryRun()}
}

// say tells what was done, or what would have been.
func say(out io.Writer, o *cliOptions, what string) error {
	if o.dryRun != dryRunNone {
		what += " (dry run)"
	}
	_, err := fmt.Fprintln(out, what)
	return err
}

// mergePatch renders a JSON merge patch.
func mergePatch(v map[string]any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("render the patch: %w", err)
	}
	return body, nil
}
