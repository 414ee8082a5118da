package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

func newReleaseCommand(o *cliOptions) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "release SERVICE",
		Short: "Give the autoscaler of a service back to its owner",
		Long: "Take Springtide's hands off a service: its mode is set to Observe first, so that the controller does not scale it again. Then its HPA gets\n" +
			"the minReplicas that it had before the first floor, and loses every mark of ours; a ScaledObject that springtide adopt paused goes on. With\n" +
			"--delete the ElasticService goes too. A service without an autoscaler keeps its replicas. A CronHorizontalPodAutoscaler that was deleted is\n" +
			"applied again by its owner.",
		Example: "  springtide release shop/cart --dry-run\n  springtide release shop/cart --delete",
		Args:    exactly("SERVICE"),
		RunE:    o.about(func(cmd *cobra.Command, c *clients, name fleet.Name) error { return o.release(cmd, c, name, remove) }),
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
	done := 0
	if s.Spec.Mode != string(fleet.Observe) {
		done++
		if o.dryRun != dryRunClient {
			if err := o.setMode(ctx, c, name, fleet.Observe); err != nil {
				return err
			}
		}
		if err := say(out, o, fmt.Sprintf("ElasticService %s: mode %s -> Observe", name, s.Spec.Mode)); err != nil {
			return err
		}
	}
	given, err := o.giveBack(cmd, c, s)
	if err != nil {
		return err
	}
	resumed, err := o.resumeScaledObjects(cmd, c, s)
	if err != nil {
		return err
	}
	done += given + resumed
	if remove {
		if o.dryRun != dryRunClient {
			if err := c.resource(services, name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{DryRun: o.serverDryRun()}); err != nil {
				return fmt.Errorf("delete ElasticService %s: %w", name, err)
			}
		}
		return say(out, o, fmt.Sprintf("ElasticService %s deleted", name))
	}
	if done == 0 {
		return say(out, o, fmt.Sprintf("ElasticService %s: nothing to give back: it is in mode Observe, and no autoscaler carries our mark", name))
	}
	return nil
}

// giveBack returns the HPAs of a service's target that carry our mark, and counts them.
func (o *cliOptions) giveBack(cmd *cobra.Command, c *clients, s *v1alpha1.ElasticService) (int, error) {
	if s.Spec.Actuation != string(fleet.ByHPAFloor) {
		return 0, nil
	}
	hpas, err := hpasOf(cmd.Context(), c, s.Namespace, s.Spec.TargetRef)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, h := range hpas {
		was, adopted := h.Annotations[v1alpha1.AnnotationAdopted]
		if !adopted {
			continue
		}
		n++
		if o.dryRun == dryRunNone {
			if err := c.giveBack(cmd.Context(), fleet.Name{Namespace: h.Namespace, Name: h.Name}); err != nil {
				return n, err
			}
		}
		what := fmt.Sprintf("HorizontalPodAutoscaler %s/%s: minReplicas %s -> %s, given back", h.Namespace, h.Name, boundText(h.Spec.MinReplicas), was)
		if err := say(cmd.OutOrStdout(), o, what); err != nil {
			return n, err
		}
	}
	return n, nil
}

// resumeScaledObjects lets the ScaledObjects of a service's target go on that we paused, and counts them.
func (o *cliOptions) resumeScaledObjects(cmd *cobra.Command, c *clients, s *v1alpha1.ElasticService) (int, error) {
	r := c.dyn.Resource(scalerResources[scalerScaledObject]).Namespace(s.Namespace)
	raw, err := r.List(cmd.Context(), metav1.ListOptions{})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return 0, nil // KEDA is not installed
	}
	if err != nil {
		return 0, fmt.Errorf("read the ScaledObjects of %s: %w", s.Namespace, err)
	}
	ours := slices.DeleteFunc(raw.Items, func(u unstructured.Unstructured) bool {
		target, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "name")
		return u.GetAnnotations()[v1alpha1.AnnotationTakenOver] == "" || target != s.Spec.TargetRef.Name
	})
	for i := range ours {
		if o.dryRun != dryRunClient {
			body, err := mergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationKEDAPaused: nil, v1alpha1.AnnotationTakenOver: nil}}})
			if err != nil {
				return i, err
			}
			if _, err := r.Patch(cmd.Context(), ours[i].GetName(), types.MergePatchType, body, o.patch()); err != nil {
				return i, fmt.Errorf("let ScaledObject %s/%s go on: %w", s.Namespace, ours[i].GetName(), err)
			}
		}
		if err := say(cmd.OutOrStdout(), o, fmt.Sprintf("ScaledObject %s/%s goes on", s.Namespace, ours[i].GetName())); err != nil {
			return i, err
		}
	}
	return len(ours), nil
}
