package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyautoscaling "k8s.io/client-go/applyconfigurations/autoscaling/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// leaverCost is below the cost of every pod that nobody marked (0), so that a ReplicaSet takes the leavers first.
const leaverCost = -1000

func (a *applier) lowers() []action { return a.scales(a.plan.Lowers, a.door.CheckScale) }
func (a *applier) raises() []action { return a.scales(a.plan.Raises, a.door.Raises(a.plan)) }

// scales are written into the ledgers of the pools whose machines they help to empty before the first of them is done.
func (a *applier) scales(list []planner.Scale, check func(*planner.Scale) error) []action {
	l := newLedgers(a)
	for i := range list {
		l.scale(&list[i])
	}
	out := make([]action, len(list))
	for i := range list {
		s := &list[i]
		out[i] = action{name: actionScale, subject: string(s.Service), group: string(s.Service),
			check: func() error { return check(s) },
			do: func(ctx context.Context) error {
				if err := l.charge(ctx, string(s.Service)); err != nil {
					return err
				}
				return a.scale(ctx, s)
			},
		}
	}
	return out
}

func (a *applier) scale(ctx context.Context, s *planner.Scale) error {
	if s.By == fleet.ByHPAFloor {
		return a.raiseFloor(ctx, s)
	}
	if s.To < s.From {
		if err := a.unmarkStayers(ctx, s); err != nil {
			return err
		}
	}
	for _, l := range s.Leavers {
		if err := a.markLeaver(ctx, l, s.To); err != nil {
			return fmt.Errorf("mark pod %s as a leaver: %w", l.Name, err)
		}
	}
	return a.writeReplicas(ctx, s)
}

func (a *applier) unmarks() []action {
	out := make([]action, len(a.plan.Unmarks))
	for i := range a.plan.Unmarks {
		u := &a.plan.Unmarks[i]
		out[i] = action{name: actionUnmark, subject: u.Pod.Name.String(), group: u.Pod.Name.String(),
			check: func() error { return a.door.CheckUnmark(u) },
			do:    func(ctx context.Context) error { return a.unmark(ctx, a.door.Pod(u.Pod.ID)) },
		}
	}
	return out
}

// unmark takes the deletion cost of a leaver back, and the note for which scale-in it was written. A cost that another wrote over ours stays.
func (a *applier) unmark(ctx context.Context, p *fleet.Pod) error {
	notes := map[string]any{v1alpha1.AnnotationLeavesAt: nil}
	if p.DeletionCost == leaverCost {
		notes[corev1.PodDeletionCost] = nil
	}
	got, err := a.patchPod(ctx, planner.PodRef{Name: p.Name, ID: p.ID}, notes)
	if err != nil {
		return fmt.Errorf("take the deletion cost of pod %s back: %w", p.Name, err)
	}
	a.see(a.c.pods.sees(got.Namespace, got.Name, got.UID, got.ResourceVersion))
	return nil
}

// unmarkStayers takes the deletion cost back from pods that a scale-in which never came about had chosen: they would go first now, in
// the place of those that are chosen today. Those of a scale-in that the ReplicaSet is still at go by it, and what bears no note of ours is
// somebody else's.
func (a *applier) unmarkStayers(ctx context.Context, s *planner.Scale) error {
	svc := a.door.Facts().Service(s.Service)
	for i := range svc.Pods {
		p := &svc.Pods[i]
		leaves := slices.ContainsFunc(s.Leavers, func(l planner.PodRef) bool { return l.ID == p.ID })
		if !p.LeavesAt.OK || p.Deleting || leaves || svc.Shrinking() && svc.Goes(p) {
			continue
		}
		if err := a.unmark(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// markLeaver writes the deletion cost of one pod, and the size at which it is to be gone. The UID in a patch is a precondition: a pod made anew
// under the name is another pod.
func (a *applier) markLeaver(ctx context.Context, l planner.PodRef, at int32) error {
	if p := a.door.Pod(l.ID); p != nil && p.DeletionCost == leaverCost && p.LeavesAt.OK && p.LeavesAt.Value == at {
		return nil
	}
	_, err := a.patchPod(ctx, l, map[string]any{corev1.PodDeletionCost: strconv.Itoa(leaverCost), v1alpha1.AnnotationLeavesAt: strconv.Itoa(int(at))})
	return err
}

// patchPod sets annotations on one pod.
func (a *applier) patchPod(ctx context.Context, pod planner.PodRef, annotations map[string]any) (*corev1.Pod, error) {
	body := mergePatch(map[string]any{"metadata": map[string]any{"uid": string(pod.ID), "annotations": annotations}})
	p, err := a.c.core.CoreV1().Pods(pod.Name.Namespace).Patch(ctx, pod.Name.Name, types.MergePatchType, body, patchOptions())
	// Another UID is an immutable field that would change, hence Invalid rather than Conflict; the answer names the field, so nothing is read.
	if apierrors.IsInvalid(err) && namesUID(err) {
		return nil, stale("pod %s is another one now", pod.Name)
	}
	return p, err
}

// namesUID reports whether an answer refuses a change of metadata.uid.
func namesUID(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// scaleClient is the part of a typed client that scales one kind.
type scaleClient interface {
	GetScale(ctx context.Context, name string, o metav1.GetOptions) (*autoscalingv1.Scale, error)
	ApplyScale(ctx context.Context, name string, s *applyautoscaling.ScaleApplyConfiguration, o metav1.ApplyOptions) (*autoscalingv1.Scale, error)
}

// writeReplicas owns spec.replicas by server-side apply on the scale subresource, so that a foreign writer shows in the managed fields.
// The resourceVersion makes it fail when the target changed since it was read. Targets change all the time while pods start, so a
// conflict is looked at once: when the replicas are still those that the decision started from, it holds.
func (a *applier) writeReplicas(ctx context.Context, s *planner.Scale) error {
	var client scaleClient
	m := a.c.deployments
	switch s.Kind {
	case kindDeployment:
		client = a.c.core.AppsV1().Deployments(s.Target.Namespace)
	case kindStatefulSet:
		client, m = a.c.core.AppsV1().StatefulSets(s.Target.Namespace), a.c.statefulSets
	default:
		return fmt.Errorf("targets of kind %s cannot be scaled", s.Kind)
	}
	w, ok := m.get(s.Target.Namespace, s.Target.Name)
	if !ok || w.replicas != s.From {
		return stale("the target changed")
	}
	version := w.ResourceVersion
	scale, err := applyReplicas(ctx, client, s, version)
	if apierrors.IsConflict(err) {
		now, get := client.GetScale(ctx, s.Target.Name, metav1.GetOptions{})
		if get != nil {
			return fmt.Errorf("read the scale of %s again: %w", s.Target, get)
		}
		if now.UID != w.UID || now.Spec.Replicas != s.From {
			return stale("replicas are %d now, not %d", now.Spec.Replicas, s.From)
		}
		scale, err = applyReplicas(ctx, client, s, now.ResourceVersion)
	}
	if err != nil {
		return fmt.Errorf("scale %s to %d: %w", s.Target, s.To, err)
	}
	a.see(m.sees(s.Target.Namespace, s.Target.Name, w.UID, scale.ResourceVersion))
	return nil
}

func applyReplicas(ctx context.Context, client scaleClient, s *planner.Scale, version string) (*autoscalingv1.Scale, error) {
	want := applyautoscaling.Scale().WithName(s.Target.Name).WithNamespace(s.Target.Namespace).WithResourceVersion(version).
		WithSpec(applyautoscaling.ScaleSpec().WithReplicas(s.To))
	return client.ApplyScale(ctx, s.Target.Name, want, metav1.ApplyOptions{FieldManager: v1alpha1.FieldManager, Force: true})
}

// raiseFloor writes minReplicas of the HPA that the user keeps. What it was before stands in an annotation from the first write on, and
// no floor of ours is ever below it.
func (a *applier) raiseFloor(ctx context.Context, s *planner.Scale) error {
	h, ok := a.c.hpas.get(s.Target.Namespace, s.Target.Name)
	if !ok {
		return stale("the HorizontalPodAutoscaler is gone")
	}
	notes := a.epochNote()
	own := h.min
	if h.adopted.OK {
		own = h.adopted.Value
	} else {
		notes[v1alpha1.AnnotationAdopted] = strconv.Itoa(int(h.min))
	}
	body := mergePatch(map[string]any{
		"metadata": map[string]any{"resourceVersion": h.ResourceVersion, "annotations": notes},
		"spec":     map[string]any{"minReplicas": max(s.To, own)},
	})
	now, err := a.c.core.AutoscalingV2().HorizontalPodAutoscalers(h.Namespace).Patch(ctx, h.Name, types.MergePatchType, body, patchOptions())
	if err != nil {
		return fmt.Errorf("set minReplicas of %s: %w", s.Target, err)
	}
	a.see(a.c.hpas.sees(h.Namespace, h.Name, h.UID, now.ResourceVersion))
	return nil
}
