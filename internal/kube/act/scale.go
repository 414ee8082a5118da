package act

import (
	"context"
	"fmt"
	"strconv"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applyautoscaling "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	"k8s.io/client-go/dynamic"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/target"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// scaleClient is the part of a typed client that scales one kind.
type scaleClient interface {
	ApplyScale(ctx context.Context, name string, s *applyautoscaling.ScaleApplyConfiguration,
		o metav1.ApplyOptions) (*autoscalingv1.Scale, error)
}

// scaler scales one target: the client that writes, the mirror that shows it, what is known of it, and how it is read
// again.
type scaler struct {
	client scaleClient
	mirror *object.Mirror[*watch.WorkloadFacts]
	seen   func() (*watch.WorkloadFacts, bool)
	read   func(ctx context.Context) (*watch.WorkloadFacts, error)
}

func (c *Actuator) scalerOf(s *planner.Scale) (scaler, error) {
	ref, err := c.targetOf(s)
	if err != nil {
		return scaler{}, err
	}
	mirror, gvr := c.TargetMirror(&ref)
	if mirror == nil {
		return scaler{}, object.Stale("objects %s of %s are not watched", ref.Kind, ref.APIVersion)
	}
	out := scaler{mirror: mirror, seen: func() (*watch.WorkloadFacts, bool) {
		w, problem := c.Target(s.Target.Namespace, &ref)
		return w, w != nil && !problem.Any()
	}}
	switch {
	case !target.Builtin(&ref):
		out.client = anyScale{c.Dyn.Resource(gvr).Namespace(s.Target.Namespace)}
		out.read = func(ctx context.Context) (*watch.WorkloadFacts, error) { return c.ReadOther(ctx, gvr, s.Target) }
	case ref.Kind == watch.KindDeployment:
		deployments := c.Core.AppsV1().Deployments(s.Target.Namespace)
		out.client, out.read = deployments, func(ctx context.Context) (*watch.WorkloadFacts, error) {
			d, err := deployments.Get(ctx, s.Target.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return watch.NewDeploymentFacts(d), nil
		}
	default:
		sets := c.Core.AppsV1().StatefulSets(s.Target.Namespace)
		out.client, out.read = sets, func(ctx context.Context) (*watch.WorkloadFacts, error) {
			x, err := sets.Get(ctx, s.Target.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return watch.NewStatefulSetFacts(x), nil
		}
	}
	return out, nil
}

// targetOf is the reference of the service that a scale is about: the plan knows the kind, and not its group.
func (c *Actuator) targetOf(s *planner.Scale) (v1alpha1.TargetRef, error) {
	n := fleet.ParseName(string(s.Service))
	o, ok := c.Services.Get(n.Namespace, n.Name)
	if !ok {
		return v1alpha1.TargetRef{}, object.Stale("the ElasticService is gone")
	}
	if ref := o.Facts.Target; ref.Kind == s.Kind && ref.Name == s.Target.Name {
		return ref, nil
	}
	return v1alpha1.TargetRef{}, object.Stale("the target is another one now")
}

// anyScale writes the Scale of objects of any kind. The API server applies no Scale of a custom resource, so it is a
// patch, which takes the field over as an apply with force does, and is recorded in the managed fields.
type anyScale struct{ client dynamic.ResourceInterface }

// ApplyScale implements scaleClient.
func (a anyScale) ApplyScale(ctx context.Context, name string, s *applyautoscaling.ScaleApplyConfiguration,
	_ metav1.ApplyOptions) (*autoscalingv1.Scale, error) {
	body := object.MergePatch(map[string]any{
		"metadata": map[string]any{"resourceVersion": *s.ResourceVersion},
		"spec":     map[string]any{"replicas": *s.Spec.Replicas},
	})
	got, err := a.client.Patch(ctx, name, types.MergePatchType, body, object.PatchOptions(), target.Subresource)
	if err != nil {
		return nil, err
	}
	out := &autoscalingv1.Scale{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, out); err != nil {
		return nil, fmt.Errorf("read the Scale of %s: %w", name, err)
	}
	return out, nil
}

// targetFact is what preconditions ask of a target. A newer leader stamps the targets that it may scale: the stamp
// changes the version, so that no write of an older leader passes without a look at the leader epoch.
func (a *applier) targetFact(w *watch.WorkloadFacts) protocol.Fact {
	return protocol.Fact{Exists: true, UID: fleet.UID(w.UID), Version: w.ResourceVersion,
		Size: fleet.KnownAt(w.Replicas, a.plan.At), LeaderEpoch: a.leads.Fencing(w.Leader)}
}

// setSize owns spec.replicas by server-side apply on the scale subresource, so that a foreign writer shows in the
// managed fields. The resourceVersion makes it fail when the target changed since it was read.
func (a *applier) setSize(ctx context.Context, w *protocol.Write) (written, error) {
	s := w.Action.(*planner.Scale)
	by, err := a.c.scalerOf(s)
	if err != nil {
		return written{}, err
	}
	t, ok := by.seen()
	if !ok {
		return written{}, object.Stale("the target changed")
	}
	version := w.If.Version
	if version == "" { // not read again yet
		now := a.targetFact(t)
		if err := w.If.Holds(&now); err != nil {
			return written{}, object.Stale("the target changed: %w", err)
		}
		version = now.Version
	}
	scale, err := applyReplicas(ctx, by.client, s, version)
	if err != nil {
		return written{}, fmt.Errorf("scale %s to %d: %w", s.Target, s.To, err)
	}
	a.c.NoteSize(t, scale.Spec.Replicas, scale.ResourceVersion)
	return written{t.UID, scale.ResourceVersion, by.mirror.Sees(s.Target.Namespace, s.Target.Name, t.UID,
		scale.ResourceVersion), fleet.Ledger{}}, nil
}

// readTarget reads a target again, for a write that met a conflict: targets change all the time while pods start.
func (a *applier) readTarget(ctx context.Context, service string) (protocol.Fact, error) {
	s := a.scaleOf(fleet.ServiceID(service))
	by, err := a.c.scalerOf(s)
	if err != nil {
		return protocol.Fact{}, err
	}
	now, err := by.read(ctx)
	if err != nil {
		return protocol.Fact{}, err
	}
	if t, ok := by.mirror.Get(s.Target.Namespace, s.Target.Name); !ok || t.UID != now.UID {
		return protocol.Fact{}, object.Stale("the target is another one now")
	}
	return a.targetFact(now), nil
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

func applyReplicas(ctx context.Context, client scaleClient, s *planner.Scale,
	version string) (*autoscalingv1.Scale, error) {
	want := applyautoscaling.Scale().WithName(s.Target.Name).WithNamespace(s.Target.Namespace).
		WithResourceVersion(version).
		WithSpec(applyautoscaling.ScaleSpec().WithReplicas(s.To))
	return client.ApplyScale(ctx, s.Target.Name, want, metav1.ApplyOptions{FieldManager: v1alpha1.FieldManager,
		Force: true})
}

// setFloor writes minReplicas of the HPA that the user keeps. The owner's value stands in an annotation from the first
// write on, and no floor of ours is ever below it: that is what it was before, or what another writer wrote over ours
// since.
func (a *applier) setFloor(ctx context.Context, w *protocol.Write, c *protocol.SetFloor) (written, error) {
	s := w.Action.(*planner.Scale)
	h, ok := a.c.HPAs.Get(s.Target.Namespace, s.Target.Name)
	if !ok {
		return written{}, object.Stale("the HorizontalPodAutoscaler is gone")
	}
	now := protocol.Fact{Exists: true, Size: fleet.KnownAt(h.Min, a.plan.At), LeaderEpoch: a.leads.Fencing(h.Leader)}
	if err := w.If.Holds(&now); err != nil {
		return written{}, object.Stale("HorizontalPodAutoscaler %s: %w", s.Target, err)
	}
	notes := a.epochNote(h.UID)
	own := h.Own()
	notes[v1alpha1.AnnotationAdopted] = strconv.Itoa(int(own))
	body := object.MergePatch(map[string]any{
		"metadata": map[string]any{"resourceVersion": h.ResourceVersion, "annotations": notes},
		"spec":     map[string]any{"minReplicas": max(c.To, own)},
	})
	got, err := a.c.Core.AutoscalingV2().HorizontalPodAutoscalers(h.Namespace).Patch(ctx, h.Name, types.MergePatchType,
		body, object.PatchOptions())
	if err != nil {
		return written{}, fmt.Errorf("set minReplicas of %s: %w", s.Target, err)
	}
	return written{h.UID, got.ResourceVersion, a.c.HPAs.Sees(h.Namespace, h.Name, h.UID, got.ResourceVersion),
		fleet.Ledger{}}, nil
}
