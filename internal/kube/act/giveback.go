package act

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop/protocol"
)

func (a *applier) returnFloor(ctx context.Context, w *protocol.Write) (written, error) {
	n := fleet.ParseName(w.Object.Name)
	h, ok := a.c.HPAs.Get(n.Namespace, n.Name)
	if !ok || fleet.UID(h.UID) != w.If.UID || !h.Adopted.OK {
		return written{}, object.Stale("the HorizontalPodAutoscaler changed")
	}
	now, err := a.c.giveBack(ctx, h)
	if err != nil {
		return written{}, err
	}
	return written{h.UID, now.ResourceVersion, a.c.HPAs.Sees(h.Namespace, h.Name, h.UID, now.ResourceVersion),
		fleet.Ledger{}}, nil
}

// GiveBack returns an adopted HPA to its owner: minReplicas as they were before the first floor, and no mark of ours. An HPA that was never
// adopted is left alone.
func (c *Actuator) GiveBack(ctx context.Context, hpa fleet.Name) error {
	h, err := c.Core.AutoscalingV2().HorizontalPodAutoscalers(hpa.Namespace).Get(ctx, hpa.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("give back HorizontalPodAutoscaler %s: %w", hpa, err)
	}
	f := watch.NewHPAFacts(h)
	if !f.Adopted.OK {
		return nil
	}
	_, err = c.giveBack(ctx, f)
	return err
}

// giveBack writes minReplicas and takes our annotations off in one patch. The write itself leaves us among the owners of the field, at
// which the owner's next server-side apply would stop, so a second patch takes us off those. Stopped between the two, nothing is lost but
// that.
func (c *Actuator) giveBack(ctx context.Context, h *watch.ScalerFacts) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	client := c.Core.AutoscalingV2().HorizontalPodAutoscalers(h.Namespace)
	write := func(metadata, body map[string]any) (*autoscalingv2.HorizontalPodAutoscaler, error) {
		body["metadata"] = metadata
		now, err := client.Patch(ctx, h.Name, types.MergePatchType, object.MergePatch(body), object.PatchOptions())
		if err != nil {
			return nil, fmt.Errorf("give back HorizontalPodAutoscaler %s/%s: %w", h.Namespace, h.Name, err)
		}
		return now, nil
	}
	now, err := write(map[string]any{"resourceVersion": h.ResourceVersion,
		"annotations": map[string]any{v1alpha1.AnnotationAdopted: nil, v1alpha1.AnnotationLeaderEpoch: nil}},
		map[string]any{"spec": map[string]any{"minReplicas": h.Adopted.Value}})
	if err != nil {
		return nil, err
	}
	others := []metav1.ManagedFieldsEntry{}
	for _, e := range now.ManagedFields {
		if e.Manager != v1alpha1.FieldManager {
			others = append(others, e)
		}
	}
	if len(others) == len(now.ManagedFields) {
		return now, nil
	}
	if len(others) == 0 {
		others = []metav1.ManagedFieldsEntry{{}} // an empty list would leave all as they are
	}
	return write(map[string]any{"resourceVersion": now.ResourceVersion, "managedFields": others}, map[string]any{})
}
