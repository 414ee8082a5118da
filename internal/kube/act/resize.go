package act

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// setRequests changes the requests in the template of the target, whose own strategy then rolls its pods over. The
// template is read again, since mirrors keep no containers; its version keeps another client's change in between from
// being undone.
func (a *applier) setRequests(ctx context.Context, w *protocol.Write, c *protocol.SetRequests) (written, error) {
	r := w.Action.(*planner.Resize)
	apps := a.c.Core.AppsV1()
	var template *corev1.PodSpec
	var meta metav1.Object
	switch r.Kind {
	case watch.KindDeployment:
		d, err := apps.Deployments(r.Target.Namespace).Get(ctx, r.Target.Name, metav1.GetOptions{})
		if err != nil {
			return written{}, fmt.Errorf("read Deployment %s: %w", r.Target, err)
		}
		template, meta = &d.Spec.Template.Spec, d
	case watch.KindStatefulSet:
		s, err := apps.StatefulSets(r.Target.Namespace).Get(ctx, r.Target.Name, metav1.GetOptions{})
		if err != nil {
			return written{}, fmt.Errorf("read StatefulSet %s: %w", r.Target, err)
		}
		template, meta = &s.Spec.Template.Spec, s
	default:
		return written{}, fmt.Errorf("the requests of kind %s cannot be changed", r.Kind)
	}
	if leader := a.leads.Fencing(leadership.StampOn(meta)); leader > w.If.LeaderEpoch {
		return written{}, object.Stale("%s: %w", r.Target, &protocol.NewerLeaderError{Theirs: leader, Ours: w.If.LeaderEpoch})
	}
	if now := convert.PodRequests(template); !sameSize(now, c.From) {
		return written{}, object.Stale("the template requests %s now, not %s", now, c.From)
	}
	containers, err := resized(template, c.From, c.To)
	if err != nil {
		return written{}, err
	}
	body := object.MergePatch(map[string]any{
		"metadata": map[string]any{"resourceVersion": meta.GetResourceVersion(), "annotations": a.epochNote(meta.GetUID())},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}},
	})
	name, m := r.Target.Name, a.c.Deployments
	var version string
	if r.Kind == watch.KindDeployment {
		now, err := apps.Deployments(r.Target.Namespace).Patch(ctx, name, types.StrategicMergePatchType, body,
			object.PatchOptions())
		if err != nil {
			return written{}, fmt.Errorf("change the requests of Deployment %s: %w", r.Target, err)
		}
		version = now.ResourceVersion
	} else {
		now, err := apps.StatefulSets(r.Target.Namespace).Patch(ctx, name, types.StrategicMergePatchType, body,
			object.PatchOptions())
		if err != nil {
			return written{}, fmt.Errorf("change the requests of StatefulSet %s: %w", r.Target, err)
		}
		version, m = now.ResourceVersion, a.c.StatefulSets
	}
	return written{meta.GetUID(), version, m.Sees(r.Target.Namespace, name, meta.GetUID(), version), fleet.Ledger{}}, nil
}

// resizePod resizes a running pod by its resize subresource. The kubelet defers what has no room yet and refuses what never will; either
// shows as a condition of the pod, whose spec asks for the new amount all the same, so that it is not asked again.
func (a *applier) resizePod(ctx context.Context, w *protocol.Write, c *protocol.ResizePod) (written, error) {
	n := fleet.ParseName(w.Object.Name)
	pods := a.c.Core.CoreV1().Pods(n.Namespace)
	p, err := pods.Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return written{}, fmt.Errorf("read pod %s: %w", n, err)
	}
	// While it shrinks a pod counts for more than it asks for: the plan took it for larger, and it is left alone.
	if fleet.UID(p.UID) != w.If.UID || !sameSize(convert.PodRequests(&p.Spec), c.From) {
		return written{}, object.Stale("pod %s changed", n)
	}
	containers, err := resized(&p.Spec, c.From, c.To)
	if err != nil {
		return written{}, err
	}
	body := object.MergePatch(map[string]any{
		"metadata": map[string]any{"resourceVersion": p.ResourceVersion},
		"spec":     map[string]any{"containers": containers},
	})
	now, err := pods.Patch(ctx, p.Name, types.StrategicMergePatchType, body, object.PatchOptions(), "resize")
	if err != nil {
		return written{}, fmt.Errorf("resize pod %s: %w", n, err)
	}
	return written{now.UID, now.ResourceVersion, a.c.Pods.Sees(now.Namespace, now.Name, now.UID, now.ResourceVersion),
		fleet.Ledger{}}, nil
}

// sameSize compares requests as they were when the plan was made. GPUs are left out: those of DRA do not stand in the spec, and none is resized.
func sameSize(now, then fleet.Resources) bool {
	now.GPU, then.GPU = 0, 0
	return now == then
}

// resized are the containers of a strategic merge patch that brings the requests of a pod from one amount to another. Usage is known of
// the pod as a whole, so each container keeps its share of it; limits keep their ratio to requests, and with it the quality of service.
func resized(spec *corev1.PodSpec, from, to fleet.Resources) ([]any, error) {
	if spec.Resources != nil && len(spec.Resources.Requests) > 0 {
		return nil, fmt.Errorf("the pod has requests of its own next to its containers': those are not changed yet; set requestsMode to Recommend")
	}
	factor := map[corev1.ResourceName]float64{}
	total := corev1.ResourceList{}
	for i := range spec.Containers {
		for name, q := range spec.Containers[i].Resources.Requests {
			sum := total[name]
			sum.Add(q)
			total[name] = sum
		}
	}
	// Init containers, sidecars and overhead stay as they are; the containers take what is left.
	if cpu := float64(facts.Milli(total.Cpu())); to.CPU != from.CPU && cpu > 0 {
		factor[corev1.ResourceCPU] = (cpu + float64(to.CPU-from.CPU)) / cpu
	}
	if memory := float64(facts.Count(total.Memory())); to.Memory != from.Memory && memory > 0 {
		factor[corev1.ResourceMemory] = (memory + float64(to.Memory-from.Memory)) / memory
	}
	if len(factor) == 0 {
		return nil, fmt.Errorf("no container requests what is to be changed")
	}
	var out []any
	for i := range spec.Containers {
		c := &spec.Containers[i]
		changed := map[string]any{}
		for kind, list := range map[string]corev1.ResourceList{"requests": c.Resources.Requests, "limits": c.Resources.Limits} {
			amounts := map[string]any{}
			for name, f := range factor {
				if q, ok := list[name]; ok {
					if !(f > 0) {
						return nil, fmt.Errorf("init containers or overhead alone request more %s than is wanted", name)
					}
					amounts[string(name)] = scaled(name, q, f)
				}
			}
			if len(amounts) > 0 {
				changed[kind] = amounts
			}
		}
		if len(changed) > 0 {
			out = append(out, map[string]any{"name": c.Name, "resources": changed})
		}
	}
	return out, nil
}

// scaled is a quantity times a factor, rounded to whole millicores or bytes.
func scaled(name corev1.ResourceName, q resource.Quantity, factor float64) string {
	if name == corev1.ResourceCPU {
		return resource.NewMilliQuantity(int64(float64(facts.Milli(&q))*factor+0.5), resource.DecimalSI).String()
	}
	return resource.NewQuantity(int64(float64(facts.Count(&q))*factor+0.5), resource.BinarySI).String()
}
