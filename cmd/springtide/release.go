package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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
			"the minReplicas that it had before the first floor, and loses every mark of ours; a ScaledObject that springtide adopt paused goes on, and\n" +
			"one that its owner had paused before stays paused. With --delete the ElasticService goes too. A service without an autoscaler keeps its\n" +
			"replicas. A CronHorizontalPodAutoscaler that was deleted is applied again by its owner.\n\n" +
			"Where the ElasticService, or its definition, is gone already, name its target: its autoscalers are found by our marks.",
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
	if isUnserved(err) || apierrors.IsNotFound(err) {
		return o.releaseByMarks(cmd, c, name)
	}
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
	its := func(kind, target string) bool {
		return kind == s.Spec.TargetRef.Kind && target == s.Spec.TargetRef.Name
	}
	if s.Spec.Actuation == string(fleet.ByHPAFloor) { // otherwise the HPA is another service's, or the controller gives it back
		given, err := o.giveBack(cmd, c, name.Namespace, its)
		if err != nil {
			return err
		}
		done += given
	}
	resumed, err := o.resumeScaledObjects(cmd, c, name.Namespace, its)
	if err != nil {
		return err
	}
	done += resumed
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

// releaseByMarks releases a service that is gone, or whose definition is: what it took over carries our marks. Its name is taken for that of its target.
func (o *cliOptions) releaseByMarks(cmd *cobra.Command, c *clients, name fleet.Name) error {
	others := map[string]bool{}
	done, err := o.giveBackMarked(cmd, c, name.Namespace, func(kind, target string) bool {
		if target != name.Name {
			others[target] = true
		}
		return target == name.Name
	})
	if err != nil || done > 0 {
		return err
	}
	text := fmt.Sprintf("there is no ElasticService %s, and no autoscaler of a target %s carries a mark of Springtide", name, name.Name)
	if len(others) > 0 {
		text += fmt.Sprintf("; autoscalers of other targets do: to fix, name the target, as in springtide release %s/%s", name.Namespace, slices.Sorted(maps.Keys(others))[0])
	}
	return errors.New(text)
}

// giveBackMarked returns the autoscalers of some targets that carry our marks to their owners, and counts them. An empty namespace stands for all.
func (o *cliOptions) giveBackMarked(cmd *cobra.Command, c *clients, namespace string, of func(kind, target string) bool) (int, error) {
	given, err := o.giveBack(cmd, c, namespace, of)
	if err != nil {
		return given, err
	}
	resumed, err := o.resumeScaledObjects(cmd, c, namespace, of)
	return given + resumed, err
}

// giveBack returns HPAs that carry our mark.
func (o *cliOptions) giveBack(cmd *cobra.Command, c *clients, namespace string, of func(kind, target string) bool) (int, error) {
	n := 0
	err := eachPage(cmd.Context(), func(page metav1.ListOptions) (string, error) {
		found, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(namespace).List(cmd.Context(), page)
		if err != nil {
			return "", fmt.Errorf("read the HorizontalPodAutoscalers: %w", err)
		}
		for i := range found.Items {
			h := &found.Items[i]
			was, adopted := h.Annotations[v1alpha1.AnnotationAdopted]
			if !adopted || !of(h.Spec.ScaleTargetRef.Kind, h.Spec.ScaleTargetRef.Name) {
				continue
			}
			n++
			if o.dryRun == dryRunNone {
				if err := c.giveBack(cmd.Context(), fleet.Name{Namespace: h.Namespace, Name: h.Name}); err != nil {
					return "", err
				}
			}
			if err := say(cmd.OutOrStdout(), o, fmt.Sprintf("HorizontalPodAutoscaler %s/%s: minReplicas %s -> %s, given back", h.Namespace, h.Name, boundText(h.Spec.MinReplicas), was)); err != nil {
				return "", err
			}
		}
		return found.Continue, nil
	})
	return n, err
}

// takenPaused is the mark on a ScaledObject that its owner had paused before `springtide adopt` took it over: it stays paused.
const takenPaused = "paused"

// resumeScaledObjects lets ScaledObjects go on that we paused, and takes the mark off those that their owner had paused.
func (o *cliOptions) resumeScaledObjects(cmd *cobra.Command, c *clients, namespace string, of func(kind, target string) bool) (int, error) {
	r := c.dyn.Resource(scalerResources[scalerScaledObject])
	raw, err := r.Namespace(namespace).List(cmd.Context(), metav1.ListOptions{})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return 0, nil // KEDA is not installed
	}
	if err != nil {
		return 0, fmt.Errorf("read the ScaledObjects: %w", err)
	}
	n := 0
	for i := range raw.Items {
		u := &raw.Items[i]
		mark := u.GetAnnotations()[v1alpha1.AnnotationTakenOver]
		target, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "name")
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "kind")
		if mark == "" || !of(cmp.Or(kind, "Deployment"), target) {
			continue
		}
		n++
		notes, what := map[string]any{v1alpha1.AnnotationTakenOver: nil}, "stays paused, as its owner had it before the adoption"
		if mark != takenPaused {
			notes[v1alpha1.AnnotationKEDAPaused], what = nil, "goes on"
		}
		if o.dryRun != dryRunClient {
			body, err := mergePatch(map[string]any{"metadata": map[string]any{"annotations": notes}})
			if err != nil {
				return n, err
			}
			if _, err := r.Namespace(u.GetNamespace()).Patch(cmd.Context(), u.GetName(), types.MergePatchType, body, o.patch()); err != nil {
				return n, fmt.Errorf("release ScaledObject %s/%s: %w", u.GetNamespace(), u.GetName(), err)
			}
		}
		if err := say(cmd.OutOrStdout(), o, fmt.Sprintf("ScaledObject %s/%s %s", u.GetNamespace(), u.GetName(), what)); err != nil {
			return n, err
		}
	}
	return n, nil
}
