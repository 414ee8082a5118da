package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/target"
	"github.com/springtide/springtide/internal/kube/watch"
)

// stampWithin bounds how long a new leader stamps before it plans: online pods may wait. Two clients share the work,
// one for our own objects and one for targets, each with 200 writes a second and a burst of 400 (Options.QPS): 25 s are
// 5,400 writes of each. A fleet of 20,000 machines with 2,000 services needs 2,000 writes to targets (10 s), and two
// for each loan in motion: 2,700 loans, every seventh machine, are stamped in time. The rest is not stamped, and
// logged.
const stampWithin = 25 * time.Second

// Moving are the objects of moves under way, as a new leader lists them: an old leader that is still at work would
// write these next.
type Moving struct {
	stamps []ownStamp
	Nodes  map[string]bool
}

// ownStamp is one object of ours that is to carry the epoch.
type ownStamp struct {
	gvr schema.GroupVersionResource
	u   *unstructured.Unstructured
}

// See picks what moves out of a listing of our kinds, loans before shares. Loans at rest are left alone: at 20,000
// machines they are most, and whatever an old leader writes to one of them depends on a version. An epoch that is not
// believed is put right.
func (m *Moving) See(gvr schema.GroupVersionResource, u *unstructured.Unstructured, doubted bool) {
	switch {
	case gvr == object.GVRPools, doubted:
	case gvr == object.GVRLoans:
		if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase == string(fleet.Lent) {
			return
		}
		node, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName")
		m.Nodes[node] = true
	case gvr == object.GVRShares:
		if !m.Nodes[u.GetName()] {
			return
		}
	default:
		return
	}
	m.stamps = append(m.stamps, ownStamp{gvr, u.DeepCopy()}) // a copy: the page that it is of may be dropped
}

// TakeOver stamps the epoch of a new leader on what moves before its first plan: loans that are not at rest, the shares
// of their machines, pools (the ledgers) and the targets of services in mode Auto. From then on the API server refuses
// what the leader before writes to them: by the rule on leaderEpoch, and by the version, which each of its writes
// carries and each stamp changes.
func (c *Elector) TakeOver(ctx context.Context, m *Moving, l leadership.Held) error {
	begun, epoch := time.Now(), l.Epoch
	var seen object.Sights
	// Facts that cannot be read are for the cycle to report: a controller that ended for them would say nothing.
	targets, unread := c.targetStamps(l, &seen)
	limit, cancel := context.WithTimeout(ctx, stampWithin)
	defer cancel()
	own := make([]func(context.Context) error, len(m.stamps))
	for i, s := range m.stamps {
		own[i] = func(ctx context.Context) error { return c.stampOwn(ctx, s, epoch, &seen) }
	}
	var missed [2]int
	var errs [2]error
	var wg sync.WaitGroup
	for i, todo := range [][]func(context.Context) error{own, targets} {
		wg.Go(func() { missed[i], errs[i] = stampAll(limit, todo, c.Options.Writers) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	// A write of a newer leader is one of the errors: this leadership is over before it began.
	if err := c.Fence.Cause(); err != nil {
		return err
	}
	seen.Await(ctx, c.Options.SeeWithin, c.Options.Log)
	c.Options.Log.Info("what moves is stamped", "epoch", epoch, "objects", len(own), "targets", len(targets), "missed",
		missed[0]+missed[1],
		"took", time.Since(begun).Round(time.Millisecond))
	if err := errors.Join(unread, errs[0], errs[1]); err != nil {
		c.Options.Log.Warn("some objects do not carry the epoch of this leader: an earlier one that is still at work is "+
			"refused there by versions alone",
			"missed", missed[0]+missed[1], "first", err)
	}
	return nil
}

// stampAll makes the stamps side by side. It counts those that were not made, and returns the first error.
func stampAll(ctx context.Context, todo []func(context.Context) error, writers int) (missed int, first error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan func(context.Context) error)
	for range min(writers, len(todo)) {
		wg.Go(func() {
			for do := range next {
				if err := do(ctx); err != nil {
					mu.Lock()
					missed++
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	for _, do := range todo {
		next <- do
	}
	close(next)
	wg.Wait()
	return missed, first
}

// stampOwn writes the epoch into one object of ours, whatever else of it changes meanwhile.
func (c *Elector) stampOwn(ctx context.Context, s ownStamp, epoch int64, seen *object.Sights) error {
	client := c.Dyn.Resource(s.gvr)
	u := s.u
	for again := 0; ; again++ {
		if on := EpochOn(u); on >= epoch && leadership.Believable(on, epoch) {
			return nil
		}
		var got *unstructured.Unstructured
		var err error
		if s.gvr == object.GVRShares {
			err = unstructured.SetNestedField(u.Object, epoch, "spec", "leaderEpoch")
			if err == nil {
				got, err = client.Update(ctx, u, object.UpdateOptions())
			}
		} else {
			err = unstructured.SetNestedField(u.Object, epoch, "status", "leaderEpoch")
			if err == nil && s.gvr == object.GVRPools {
				err = unstructured.SetNestedField(u.Object, c.Options.Namespace, "status", "leaderNamespace")
			}
			if err == nil {
				got, err = client.UpdateStatus(ctx, u, object.UpdateOptions())
			}
		}
		switch {
		case err == nil:
			seen.See(c.seesOwn(s.gvr, got))
			return nil
		case apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err) || again == 3:
			return fmt.Errorf("stamp %s %s: %w", object.KindOf(s.gvr), u.GetName(), err)
		}
		if u, err = client.Get(ctx, s.u.GetName(), metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("stamp %s %s: %w", object.KindOf(s.gvr), s.u.GetName(), err)
		}
	}
}

// seesOwn is the sight of a stamp on one of our objects.
func (c *Elector) seesOwn(gvr schema.GroupVersionResource, u *unstructured.Unstructured) object.Sight {
	switch gvr {
	case object.GVRLoans:
		return c.Loans.Sees("", u.GetName(), u.GetUID(), u.GetResourceVersion())
	case object.GVRShares:
		return c.Shares.Sees("", u.GetName(), u.GetUID(), u.GetResourceVersion())
	}
	return c.Pools.Sees("", u.GetName(), u.GetUID(), u.GetResourceVersion())
}

// patchFunc writes a patch of an object, and returns it as it is then.
type patchFunc func(ctx context.Context, body []byte) (metav1.Object, error)

// stamping is the write of one stamp. An object that is gone needs none.
func (c *Elector) stamping(l leadership.Held, seen *object.Sights, what string, h *object.Header, patch patchFunc,
	sees func(version string) object.Sight) func(context.Context) error {
	// The UID in a patch is a precondition; no version: the stamp holds whatever else changes.
	body := object.MergePatch(map[string]any{"metadata": map[string]any{"uid": string(h.UID),
		"annotations": map[string]any{v1alpha1.AnnotationLeaderEpoch: leadership.StampText(l.Epoch, l.Lease, h.UID)}}})
	return func(ctx context.Context) error {
		got, err := patch(ctx, body)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("stamp %s %s/%s: %w", what, h.Namespace, h.Name, err)
		}
		seen.See(sees(got.GetResourceVersion()))
		c.Term.NoteStamp(h.UID)
		return nil
	}
}

// targetStamps are the stamps on what services in mode Auto scale. A HorizontalPodAutoscaler is stamped once it was
// adopted: before, it carries no mark of ours, and raising its floor takes nothing away.
func (c *Elector) targetStamps(l leadership.Held, seen *object.Sights) ([]func(context.Context) error, error) {
	s, err := c.observe()
	if err != nil {
		return nil, err
	}
	var out []func(context.Context) error
	add := func(what string, h *object.Header, leader leadership.Stamp, patch patchFunc, sees func(string) object.Sight) {
		if l.Fencing(leader) < l.Epoch {
			out = append(out, c.stamping(l, seen, what, h, patch, sees))
		}
	}
	for i := range s.Services {
		svc := &s.Services[i]
		if !svc.Mode.Acts() || !svc.TargetFound {
			continue
		}
		if svc.Actuation == fleet.ByScale {
			if m, w, patch := c.targetOf(svc); w != nil {
				add(svc.TargetKind, &w.Header, w.Leader, patch,
					func(version string) object.Sight { return m.Sees(w.Namespace, w.Name, w.UID, version) })
			}
		}
		if svc.HPA == nil || svc.Actuation != fleet.ByHPAFloor {
			continue
		}
		if h, ok := c.HPAs.Get(svc.Target.Namespace, svc.HPA.Name); ok && h.Adopted.OK {
			add("HorizontalPodAutoscaler", &h.Header, h.Leader, func(ctx context.Context, body []byte) (metav1.Object, error) {
				return c.Core.AutoscalingV2().HorizontalPodAutoscalers(h.Namespace).Patch(ctx, h.Name, types.MergePatchType,
					body, object.PatchOptions())
			}, func(version string) object.Sight { return c.HPAs.Sees(h.Namespace, h.Name, h.UID, version) })
		}
	}
	return out, nil
}

// targetOf finds the target of a service, where it is seen and how it is patched; nil where there is none to be scaled.
func (c *Elector) targetOf(svc *fleet.Service) (*object.Mirror[*watch.WorkloadFacts], *watch.WorkloadFacts, patchFunc) {
	n := fleet.ParseName(string(svc.ID))
	o, ok := c.Services.Get(n.Namespace, n.Name)
	if !ok {
		return nil, nil, nil
	}
	ref := &o.Facts.Target
	w, _ := c.Target(n.Namespace, ref)
	m, gvr := c.TargetMirror(ref)
	switch {
	case w == nil || m == nil || w.Other != nil && w.Other.Unscalable.Any():
		return nil, nil, nil
	case !target.Builtin(ref):
		return m, w, func(ctx context.Context, body []byte) (metav1.Object, error) {
			return c.Dyn.Resource(gvr).Namespace(w.Namespace).Patch(ctx, w.Name, types.MergePatchType, body,
				object.PatchOptions())
		}
	case ref.Kind == watch.KindStatefulSet:
		return m, w, func(ctx context.Context, body []byte) (metav1.Object, error) {
			return c.Core.AppsV1().StatefulSets(w.Namespace).Patch(ctx, w.Name, types.MergePatchType, body,
				object.PatchOptions())
		}
	}
	return m, w, func(ctx context.Context, body []byte) (metav1.Object, error) {
		return c.Core.AppsV1().Deployments(w.Namespace).Patch(ctx, w.Name, types.MergePatchType, body, object.PatchOptions())
	}
}
