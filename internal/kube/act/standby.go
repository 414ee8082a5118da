package act

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop/protocol"
)

// noteCPU writes on a pod what its containers request, for when it comes back.
func (a *applier) noteCPU(ctx context.Context, w *protocol.Write) (written, error) {
	p, err := a.podOf(ctx, w)
	if err != nil {
		return written{}, err
	}
	notes := a.epochNote(p.UID)
	notes[v1alpha1.AnnotationInServiceCPU] = convert.CPUNote(&p.Spec)
	if p, err = a.patchPod(ctx, w, notes); err != nil {
		return written{}, fmt.Errorf("note the requests of pod %s: %w", w.Object.Name, err)
	}
	return a.wrotePod(p), nil
}

// setInService writes the condition that is the pod's readiness gate.
func (a *applier) setInService(ctx context.Context, w *protocol.Write, c *protocol.SetInService) (written, error) {
	n := fleet.ParseName(w.Object.Name)
	status, reason := corev1.ConditionFalse, convert.InServiceStandby
	if c.In {
		status, reason = corev1.ConditionTrue, convert.InServiceReturned
	}
	p, err := a.c.Core.CoreV1().Pods(n.Namespace).Patch(ctx, n.Name, types.StrategicMergePatchType,
		convert.GatePatch(map[string]any{"uid": string(w.If.UID)}, status, reason, c.Why, a.c.Options.Clock.Now()),
		object.PatchOptions(), "status")
	if apierrors.IsInvalid(err) && namesUID(err) {
		return written{}, object.Stale("it is another pod of that name now")
	}
	if err != nil {
		return written{}, fmt.Errorf("write the condition %s of pod %s: %w", v1alpha1.PodInService, n, err)
	}
	return a.wrotePod(p), nil
}

// lowerCPU lowers the CPU requests of a pod that stands by. Limits stay, so that the pod is not throttled when it comes
// back and its kubelet still acts. The class of a Guaranteed pod ties the two, and no resize may change it: such a pod
// stays as it is.
func (a *applier) lowerCPU(ctx context.Context, w *protocol.Write) (written, error) {
	return a.resizeCPU(ctx, w, func(p *corev1.Pod, c *corev1.Container) (resource.Quantity, bool) {
		q, ok := c.Resources.Requests[corev1.ResourceCPU]
		if !ok || p.Status.QOSClass == corev1.PodQOSGuaranteed {
			return q, false
		}
		return *resource.NewMilliQuantity(int64(fleet.StandbyCPU(fleet.MilliCPU(facts.Milli(&q)))), resource.DecimalSI), true
	})
}

// restoreCPU brings the CPU requests of a pod back to what was noted before it stood by.
func (a *applier) restoreCPU(ctx context.Context, w *protocol.Write) (written, error) {
	return a.resizeCPU(ctx, w, func(p *corev1.Pod, c *corev1.Container) (resource.Quantity, bool) {
		q, ok := convert.NotedCPU(p)[c.Name]
		return q, ok
	})
}

// resizeCPU resizes the containers of a running pod to the CPU requests that want says. Where all of them are so
// already, nothing is sent: the kubelet acts on the spec.
func (a *applier) resizeCPU(ctx context.Context, w *protocol.Write,
	want func(*corev1.Pod, *corev1.Container) (resource.Quantity, bool)) (written, error) {
	p, err := a.podOf(ctx, w)
	if err != nil {
		return written{}, err
	}
	var containers []any
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if q, ok := want(p, c); ok && q.Cmp(*c.Resources.Requests.Cpu()) != 0 {
			containers = append(containers, map[string]any{"name": c.Name,
				"resources": map[string]any{"requests": map[string]any{"cpu": q.String()}}})
		}
	}
	if len(containers) == 0 || p.Spec.NodeName == "" {
		return a.wrotePod(p), nil
	}
	body := object.MergePatch(map[string]any{"metadata": map[string]any{"resourceVersion": p.ResourceVersion},
		"spec": map[string]any{"containers": containers}})
	if p, err = a.c.Core.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, body,
		object.PatchOptions(), "resize"); err != nil {
		return written{}, fmt.Errorf("resize pod %s: %w", w.Object.Name, err)
	}
	return a.wrotePod(p), nil
}

// podOf reads the pod that a write is for.
func (a *applier) podOf(ctx context.Context, w *protocol.Write) (*corev1.Pod, error) {
	n := fleet.ParseName(w.Object.Name)
	p, err := a.c.Core.CoreV1().Pods(n.Namespace).Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read pod %s: %w", n, err)
	}
	if fleet.UID(p.UID) != w.If.UID {
		return nil, object.Stale("it is another pod of that name now")
	}
	return p, nil
}

func (a *applier) wrotePod(p *corev1.Pod) written {
	return written{p.UID, p.ResourceVersion, a.c.Pods.Sees(p.Namespace, p.Name, p.UID, p.ResourceVersion), fleet.Ledger{}}
}
