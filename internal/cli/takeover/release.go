package takeover

import (
	"cmp"
	"context"
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
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
)

// Release sets a service to Observe and gives its autoscaler back; remove deletes the ElasticService as well.
func Release(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, name fleet.Name, remove bool) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	s, err := cluster.Get[v1alpha1.ElasticService](ctx, c, cluster.Services, name)
	if cluster.IsUnserved(err) || apierrors.IsNotFound(err) {
		return releaseByMarks(o, cmd, c, name)
	}
	if err != nil {
		return err
	}
	done := 0
	if s.Spec.Mode != string(fleet.Observe) {
		done++
		if o.DryRun != cluster.DryRunClient {
			if err := SetMode(ctx, o, c, name, fleet.Observe); err != nil {
				return err
			}
		}
		if err := cluster.Say(out, o, fmt.Sprintf("ElasticService %s: mode %s -> Observe", name, s.Spec.Mode)); err != nil {
			return err
		}
	}
	its := func(kind, target string) bool {
		return kind == s.Spec.TargetRef.Kind && target == s.Spec.TargetRef.Name
	}
	if s.Spec.Actuation == string(fleet.ByHPAFloor) { // otherwise the HPA is another service's, or the controller gives it back
		given, err := giveBack(o, cmd, c, name.Namespace, its)
		if err != nil {
			return err
		}
		done += given
	}
	resumed, err := resumeScaledObjects(o, cmd, c, name.Namespace, its)
	if err != nil {
		return err
	}
	done += resumed
	if remove {
		if o.DryRun != cluster.DryRunClient {
			if err := c.Resource(cluster.Services, name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{DryRun: o.ServerDryRun()}); err != nil {
				return fmt.Errorf("delete ElasticService %s: %w", name, err)
			}
		}
		return cluster.Say(out, o, fmt.Sprintf("ElasticService %s deleted", name))
	}
	if done == 0 {
		return cluster.Say(out, o, fmt.Sprintf("ElasticService %s: nothing to give back: it is in mode Observe, and no autoscaler carries our mark", name))
	}
	return nil
}

// releaseByMarks releases a service that is gone, or whose definition is: what it took over carries our marks. Its name is taken for that of its target.
func releaseByMarks(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, name fleet.Name) error {
	others := map[string]bool{}
	done, err := GiveBackMarked(o, cmd, c, name.Namespace, func(kind, target string) bool {
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

// GiveBackMarked returns the autoscalers of some targets that carry our marks to their owners, and counts them. An empty namespace stands for all.
func GiveBackMarked(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, namespace string, of func(kind, target string) bool) (int, error) {
	given, err := giveBack(o, cmd, c, namespace, of)
	if err != nil {
		return given, err
	}
	resumed, err := resumeScaledObjects(o, cmd, c, namespace, of)
	return given + resumed, err
}

// GiveBack returns HPAs that carry our mark.
func giveBack(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, namespace string, of func(kind, target string) bool) (int, error) {
	n := 0
	err := EachPage(cmd.Context(), func(page metav1.ListOptions) (string, error) {
		found, err := c.Core.AutoscalingV2().HorizontalPodAutoscalers(namespace).List(cmd.Context(), page)
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
			if o.DryRun == cluster.DryRunNone {
				if err := c.GiveBack(cmd.Context(), fleet.Name{Namespace: h.Namespace, Name: h.Name}); err != nil {
					return "", err
				}
			}
			if err := cluster.Say(cmd.OutOrStdout(), o, fmt.Sprintf("HorizontalPodAutoscaler %s/%s: minReplicas %s -> %s, given back", h.Namespace, h.Name, cell.Bound(h.Spec.MinReplicas), was)); err != nil {
				return "", err
			}
		}
		return found.Continue, nil
	})
	return n, err
}

// StaysPaused is the mark on a ScaledObject that its owner had paused before `springtide adopt` took it over: it stays paused.
const StaysPaused = "paused"

// resumeScaledObjects lets ScaledObjects go on that we paused, and takes the mark off those that their owner had paused.
func resumeScaledObjects(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, namespace string, of func(kind, target string) bool) (int, error) {
	r := c.Dyn.Resource(Resources[ScaledObject])
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
		if mark != StaysPaused {
			notes[v1alpha1.AnnotationKEDAPaused], what = nil, "goes on"
		}
		if o.DryRun != cluster.DryRunClient {
			body, err := cluster.MergePatch(map[string]any{"metadata": map[string]any{"annotations": notes}})
			if err != nil {
				return n, err
			}
			if _, err := r.Namespace(u.GetNamespace()).Patch(cmd.Context(), u.GetName(), types.MergePatchType, body, o.Patch()); err != nil {
				return n, fmt.Errorf("release ScaledObject %s/%s: %w", u.GetNamespace(), u.GetName(), err)
			}
		}
		if err := cluster.Say(cmd.OutOrStdout(), o, fmt.Sprintf("ScaledObject %s/%s %s", u.GetNamespace(), u.GetName(), what)); err != nil {
			return n, err
		}
	}
	return n, nil
}

// SetMode changes the mode of a service.
func SetMode(ctx context.Context, o *cluster.Options, c *cluster.Clients, service fleet.Name, mode fleet.Mode) error {
	body, err := cluster.MergePatch(map[string]any{"spec": map[string]any{"mode": string(mode)}})
	if err != nil {
		return err
	}
	if _, err := c.Resource(cluster.Services, service.Namespace).Patch(ctx, service.Name, types.MergePatchType, body, o.Patch()); err != nil {
		return fmt.Errorf("set the mode of %s: %w", service, err)
	}
	return nil
}

// EachPage reads a list in parts.
func EachPage(ctx context.Context, read func(metav1.ListOptions) (next string, err error)) error {
	o := metav1.ListOptions{Limit: 500}
	for ctx.Err() == nil {
		next, err := read(o)
		if err != nil || next == "" {
			return err
		}
		o.Continue = next
	}
	return ctx.Err()
}
