package kube

import (
	"context"
	"fmt"
	"strconv"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyautoscaling "k8s.io/client-go/applyconfigurations/autoscaling/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// scaleClient is the part of a typed client that scales one kind.
type scaleClient interface {
	GetScale(ctx context.Context, name string, o metav1.GetOptions) (*autoscalingv1.Scale, error)
	ApplyScale(ctx context.Context, name string, s *applyautoscaling.ScaleApplyConfiguration, o metav1.ApplyOptions) (*autoscalingv1.Scale, error)
}

// scalerOf is the client that scales a target, and the mirror that shows it.
func (c *Cluster) scalerOf(s *planner.Scale) (scaleClient, *mirror[*workloadFacts], error) {
	switch s.Kind {
	case kindDeployment:
		return c.core.AppsV1().Deployments(s.Target.Namespace), c.deployments, nil
	case kindStatefulSet:
		return c.core.AppsV1().StatefulSets(s.Target.Namespace), c.statefulSets, nil
	}
	return nil, nil, fmt.Errorf("targets of kind %s cannot be scaled", s.Kind)
}

// setSize owns spec.replicas by server-side apply on the scale subresource, so that a foreign writer shows in the managed fields. The
// resourceVersion makes it fail when the target changed since it was read.
func (a *applier) setSize(ctx context.Context, w *protocol.Write) (written, error) {
	s := w.Action.(*planner.Scale)
	client, m, err := a.c.scalerOf(s)
	if err != nil {
		return written{}, err
	}
	t, ok := m.get(s.Target.Namespace, s.Target.Name)
	if !ok || w.If.Version == "" && t.replicas != w.If.Size.Value {
		return written{}, stale("the target changed")
	}
	version := w.If.Version
	if version == "" {
		version = t.ResourceVersion
	}
	scale, err := applyReplicas(ctx, client, s, version)
	if err != nil {
		return written{}, fmt.Errorf("scale %s to %d: %w", s.Target, s.To, err)
	}
	return written{t.UID, scale.ResourceVersion, m.sees(s.Target.Namespace, s.Target.Name, t.UID, scale.ResourceVersion), fleet.Ledger{}}, nil
}

// readScale reads the replicas of a target again, for a write that met a conflict: targets change all the time while pods start.
func (a *applier) readScale(ctx context.Context, service string) (protocol.Fact, error) {
	s := a.scaleOf(fleet.ServiceID(service))
	client, m, err := a.c.scalerOf(s)
	if err != nil {
		return protocol.Fact{}, err
	}
	now, err := client.GetScale(ctx, s.Target.Name, metav1.GetOptions{})
	if err != nil {
		return protocol.Fact{}, err
	}
	if t, ok := m.get(s.Target.Namespace, s.Target.Name); !ok || t.UID != now.UID {
		return protocol.Fact{}, stale("the target is another one now")
	}
	return protocol.Fact{Exists: true, UID: fleet.UID(now.UID), Version: now.ResourceVersion, Size: fleet.KnownAt(now.Spec.Replicas, a.plan.At)}, nil
}

// scaleOf is the plan's scale of a service.
func (a *applier) scaleOf(id fleet.ServiceID) *planner.Scale {
	for _, list := range [][]planner.Scale{a.plan.Lowers, a.plan.Raises} {
		for i := range list {
			if list[i].Service == id {
				return &list[i]
			}
		}
	}
	panic("no scale of the plan is about service " + string(id))
}

func applyReplicas(ctx context.Context, client scaleClient, s *planner.Scale, version string) (*autoscalingv1.Scale, error) {
	want := applyautoscaling.Scale().WithName(s.Target.Name).WithNamespace(s.Target.Namespace).WithResourceVersion(version).
		WithSpec(applyautoscaling.ScaleSpec().WithReplicas(s.To))
	return client.ApplyScale(ctx, s.Target.Name, want, metav1.ApplyOptions{FieldManager: v1alpha1.FieldManager, Force: true})
}

// setFloor writes minReplicas of the HPA that the user keeps. What it was before stands in an annotation from the first write on, and
// no floor of ours is ever below it.
func (a *applier) setFloor(ctx context.Context, w *protocol.Write, c *protocol.SetFloor) (written, error) {
	s := w.Action.(*planner.Scale)
	h, ok := a.c.hpas.get(s.Target.Namespace, s.Target.Name)
	if !ok || h.min != w.If.Size.Value {
		return written{}, stale("the HorizontalPodAutoscaler changed")
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
		"spec":     map[string]any{"minReplicas": max(c.To, own)},
	})
	now, err := a.c.core.AutoscalingV2().HorizontalPodAutoscalers(h.Namespace).Patch(ctx, h.Name, types.MergePatchType, body, patchOptions())
	if err != nil {
		return written{}, fmt.Errorf("set minReplicas of %s: %w", s.Target, err)
	}
	return written{h.UID, now.ResourceVersion, a.c.hpas.sees(h.Namespace, h.Name, h.UID, now.ResourceVersion), fleet.Ledger{}}, nil
}
