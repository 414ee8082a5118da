package process

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
)

// podStatus is the part of a pod's status that a runner writes; a strategic merge keeps what others wrote.
type podStatus struct {
	Phase      corev1.PodPhase          `json:"phase"`
	Message    string                   `json:"message,omitempty"`
	StartTime  *metav1.Time             `json:"startTime,omitempty"`
	Conditions []corev1.PodCondition    `json:"conditions,omitempty"`
	Containers []corev1.ContainerStatus `json:"containerStatuses,omitempty"`
}

// podPatch is a change of one pod; the UID in it keeps it from another of the same name.
type podPatch struct {
	Metadata struct {
		UID         types.UID         `json:"uid"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Status *podStatus `json:"status,omitempty"`
}

// writeRunning says that the process runs. There is no probe: who runs is ready.
func (r *Runner) writeRunning(ctx context.Context, p *corev1.Pod, born time.Time) error {
	up := true
	return r.writeStatus(ctx, p, podStatus{
		Phase: corev1.PodRunning, StartTime: stamp(born),
		Conditions: conditions(corev1.ConditionTrue, "", r.o.Now(), corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady),
		Containers: []corev1.ContainerStatus{{
			Name: p.Spec.Containers[0].Name, Image: p.Spec.Containers[0].Image, Ready: true, Started: &up,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *stamp(born)}},
		}},
	})
}

// writeEnd says how the process ended. As with a kubelet, 0 is a success also of a pod that was asked to stop.
func (r *Runner) writeEnd(ctx context.Context, p *corev1.Pod, born time.Time, code int) error {
	now := r.o.Now()
	phase, why, reason := corev1.PodFailed, "PodFailed", "Error"
	if code == 0 {
		phase, why, reason = corev1.PodSucceeded, "PodCompleted", "Completed"
	}
	return r.writeStatus(ctx, p, podStatus{
		Phase: phase, StartTime: stamp(born),
		Conditions: conditions(corev1.ConditionFalse, why, now, corev1.ContainersReady, corev1.PodReady),
		Containers: []corev1.ContainerStatus{{
			Name: p.Spec.Containers[0].Name, Image: p.Spec.Containers[0].Image,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: int32(code), Reason: reason, StartedAt: *stamp(born), FinishedAt: *stamp(now),
			}},
		}},
	})
}

// writeFailure says why there never was a process.
func (r *Runner) writeFailure(ctx context.Context, p *corev1.Pod, born time.Time, why error) error {
	return r.writeStatus(ctx, p, podStatus{
		Phase: corev1.PodFailed, Message: why.Error(), StartTime: stamp(born),
		Conditions: conditions(corev1.ConditionFalse, "PodFailed", r.o.Now(), corev1.ContainersReady, corev1.PodReady),
	})
}

func stamp(t time.Time) *metav1.Time {
	s := metav1.NewTime(t)
	return &s
}

func conditions(status corev1.ConditionStatus, reason string, at time.Time, types ...corev1.PodConditionType) []corev1.PodCondition {
	out := make([]corev1.PodCondition, len(types))
	for i, t := range types {
		out[i] = corev1.PodCondition{Type: t, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(at)}
	}
	return out
}

// writeStatus merges a status into a pod's.
func (r *Runner) writeStatus(ctx context.Context, p *corev1.Pod, s podStatus) error {
	return r.patch(ctx, p, types.StrategicMergePatchType, podPatch{Status: &s}, "status")
}

// annotate writes one annotation of a pod.
func (r *Runner) annotate(ctx context.Context, p *corev1.Pod, key, value string) error {
	body := podPatch{}
	body.Metadata.Annotations = map[string]string{key: value}
	return r.patch(ctx, p, types.MergePatchType, body)
}

// patch changes a pod, if it still is that pod; one that is gone wants nothing any more.
func (r *Runner) patch(ctx context.Context, p *corev1.Pod, kind types.PatchType, body podPatch, subresources ...string) error {
	body.Metadata.UID = p.UID
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = r.o.Core.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, kind, data, metav1.PatchOptions{}, subresources...)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("write pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// announce says on the pod's ElasticJob when work was saved last.
func (r *Runner) announce(ctx context.Context, p *corev1.Pod, at string) error {
	name := p.Labels[JobLabel]
	if name == "" {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AnnotationCheckpoint: at}}})
	if err != nil {
		return err
	}
	_, err = r.o.Dynamic.Resource(v1alpha1.GroupVersion.WithResource("elasticjobs")).Namespace(p.Namespace).
		Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("announce a checkpoint of job %s/%s: %w", p.Namespace, name, err)
	}
	return nil
}

// remove ends the object of a pod whose process has ended.
func (r *Runner) remove(ctx context.Context, p *corev1.Pod) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = &metav1.Preconditions{UID: &p.UID}
	err := r.o.Core.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, *options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("remove pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}
