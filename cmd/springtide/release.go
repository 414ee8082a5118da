package main

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

func newReleaseCommand(o *cliOptions) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "release SERVICE",
		Short: "Give the HorizontalPodAutoscaler of a service back to its owner",
		Long: "Take Springtide's hands off a service: its mode is set to Observe first, so that the controller does not raise the floor again, then\n" +
			"the HPA gets the minReplicas that it had before the first floor, and loses every mark of ours. With --delete the ElasticService goes\n" +
			"too. A service under actuation Scale has no HPA to give back: its mode is set to Observe, and it keeps its replicas.",
		Args: exactly("SERVICE"),
		RunE: o.about(func(cmd *cobra.Command, c *clients, name fleet.Name) error { return o.release(cmd, c, name, remove) }),
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "delete the ElasticService as well")
	return o.changing(cmd)
}

func (o *cliOptions) release(cmd *cobra.Command, c *clients, name fleet.Name, remove bool) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	s, err := get[v1alpha1.ElasticService](ctx, c, services, name)
	if err != nil {
		return err
	}
	if s.Spec.Mode != string(fleet.Observe) {
		if o.dryRun != dryRunClient {
			body, err := mergePatch(map[string]any{"spec": map[string]any{"mode": string(fleet.Observe)}})
			if err != nil {
				return err
			}
			if _, err := c.resource(services, name.Namespace).Patch(ctx, name.Name, types.MergePatchType, body, o.patch()); err != nil {
				return fmt.Errorf("set the mode of %s: %w", name, err)
			}
		}
		if err := say(out, o, fmt.Sprintf("ElasticService %s: mode %s -> Observe", name, s.Spec.Mode)); err != nil {
			return err
		}
	}
	if s.Spec.Actuation == string(fleet.ByHPAFloor) {
		if err := o.giveBack(cmd, c, s); err != nil {
			return err
		}
	}
	if !remove {
		return nil
	}
	if o.dryRun != dryRunClient {
		if err := c.resource(services, name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{DryRun: o.serverDryRun()}); err != nil {
			return fmt.Errorf("delete ElasticService %s: %w", name, err)
		}
	}
	return say(out, o, fmt.Sprintf("ElasticService %s deleted", name))
}

// giveBack returns the HPAs of a service's target that carry our mark.
func (o *cliOptions) giveBack(cmd *cobra.Command, c *clients, s *v1alpha1.ElasticService) error {
	hpas, err := hpasOf(cmd.Context(), c, s.Namespace, s.Spec.TargetRef)
	if err != nil {
		return err
	}
	for _, h := range hpas {
		was, adopted := h.Annotations[v1alpha1.AnnotationAdopted]
		if !adopted {
			continue
		}
		if o.dryRun == dryRunNone {
			if err := c.giveBack(cmd.Context(), fleet.Name{Namespace: h.Namespace, Name: h.Name}); err != nil {
				return err
			}
		}
		what := fmt.Sprintf("HorizontalPodAutoscaler %s/%s: minReplicas %s -> %s, given back", h.Namespace, h.Name, boundText(h.Spec.MinReplicas), was)
		if err := say(cmd.OutOrStdout(), o, what); err != nil {
			return err
		}
	}
	return nil
}
