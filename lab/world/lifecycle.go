package world

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/internal/replay"
)

// lifecycle is what the kubelets of the fleet would write by now: pods whose start-up is over become ready, pods whose grace is over
// end. It is empty again once everything was written.
func (w *World) lifecycle(now time.Time) []write {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	var writes []write
	for _, p := range w.table.pods {
		switch {
		case p.object.Spec.NodeName == "" || p.gone || p.real || p.kubelet:
		case !p.goneAt.IsZero():
			if p.goneAt.After(now) {
				continue
			}
			if j := w.jobByName[p.owner]; p.kind == offline && j != nil && !p.ended {
				p.ended = true
				j.play.End(p.object.Name, p.goneAt)
			}
			writes = append(writes, w.finish(p))
		case !p.ready && !p.finished() && !p.readyAt.After(now):
			writes = append(writes, w.makeReady(p))
		case w.restarts(p, now):
			writes = append(writes, w.restart(p, now))
		}
	}
	return writes
}

// restartsADay is how often the container of an online pod starts again. It is back within a step, so no request notices.
const restartsADay = 1

// restarts draws whether the container of a pod starts again in the minute that begins at now. It does so where metrics are scraped as a real
// cluster's are.
func (w *World) restarts(p *pod, now time.Time) bool {
	if !w.options.scrapes().OwnTimes || !now.Truncate(time.Minute).Equal(now) || p.kind != online || !p.exports || !p.serves() {
		return false
	}
	draw := rand.New(rand.NewPCG(w.options.Seed, replay.Seed("restart", p.object.Name, now.Format(time.RFC3339))))
	return draw.Float64() < restartsADay/(24*60.0)
}

// restart writes what a kubelet writes when a container ended and runs again: Ready has a new time, long after the pod's start.
func (w *World) restart(p *pod, now time.Time) write {
	count := p.restarted + 1
	patch := w.patchStatus(p.object, w.running(p, now, now, count))
	return func(ctx context.Context) error {
		if err := patch(ctx); err != nil {
			return err
		}
		w.table.mark(func() { p.restarted, p.readyAt = count, now })
		return nil
	}
}

// podStatus is the part of a pod's status that the world writes; a strategic merge keeps what others wrote.
type podStatus struct {
	Phase      corev1.PodPhase          `json:"phase"`
	StartTime  *metav1.Time             `json:"startTime,omitempty"`
	Conditions []corev1.PodCondition    `json:"conditions,omitempty"`
	Containers []corev1.ContainerStatus `json:"containerStatuses,omitempty"`
}

// makeReady writes what a kubelet writes when the containers answer their probes. The times are virtual.
func (w *World) makeReady(p *pod) write {
	patch := w.patchStatus(p.object, w.running(p, p.boundAt, p.readyAt, 0))
	return func(ctx context.Context) error {
		if err := patch(ctx); err != nil {
			return err
		}
		w.table.mark(func() { p.ready = true })
		return nil
	}
}

// running is the status of a pod whose containers run since a time and answer their probes since another one.
func (w *World) running(p *pod, since, ready time.Time, restarts int32) podStatus {
	bound, started, answered, up := metav1.NewTime(p.boundAt), metav1.NewTime(since), metav1.NewTime(ready), true
	status := podStatus{Phase: corev1.PodRunning, StartTime: &bound}
	for _, t := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: answered})
	}
	for i := range p.object.Spec.Containers {
		c := &p.object.Spec.Containers[i]
		status.Containers = append(status.Containers, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &up, RestartCount: restarts,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		})
	}
	return status
}

// finish writes what a kubelet writes when the grace is over: the containers have stopped, and the pod may be forgotten. A Job's pod ends
// in phase Failed first, so that the Job counts it and, with podReplacementPolicy Failed, replaces it only now.
func (w *World) finish(p *pod) write {
	var patch write
	if p.kind == offline && !p.finished() {
		patch = w.patchStatus(p.object, w.ended(p, corev1.PodFailed, p.goneAt))
	}
	remove := w.remove(p.object)
	return func(ctx context.Context) error {
		if patch != nil {
			if err := patch(ctx); err != nil {
				return err
			}
		}
		if err := remove(ctx); err != nil {
			return err
		}
		w.table.mark(func() { p.gone = true })
		return nil
	}
}

// ended is the status of a pod whose containers have stopped.
func (w *World) ended(p *pod, phase corev1.PodPhase, at time.Time) podStatus {
	started, stopped := metav1.NewTime(p.boundAt), metav1.NewTime(at)
	status := podStatus{Phase: phase, Conditions: []corev1.PodCondition{
		{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodFailed", LastTransitionTime: stopped},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "PodFailed", LastTransitionTime: stopped},
	}}
	code, reason := int32(143), "Error" // 128 + SIGTERM
	if phase == corev1.PodSucceeded {
		code, reason = 0, "Completed"
		for i := range status.Conditions {
			status.Conditions[i].Reason = "PodCompleted"
		}
	}
	for i := range p.object.Spec.Containers {
		c := &p.object.Spec.Containers[i]
		status.Containers = append(status.Containers, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: code, Reason: reason, StartedAt: started, FinishedAt: stopped,
			}},
		})
	}
	return status
}

// patchStatus merges a status into a pod's, if it still is that pod.
func (w *World) patchStatus(o *corev1.Pod, status podStatus) write {
	patch := mustJSON(map[string]any{"metadata": map[string]any{"uid": o.UID}, "status": status})
	return func(ctx context.Context) error {
		_, err := w.api.core.CoreV1().Pods(o.Namespace).Patch(ctx, o.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("write the status of pod %s/%s: %w", o.Namespace, o.Name, err)
		}
		return nil
	}
}

// remove deletes a pod at once, if it still is that pod.
func (w *World) remove(o *corev1.Pod) write {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = &metav1.Preconditions{UID: &o.UID}
	return func(ctx context.Context) error {
		if err := w.api.core.CoreV1().Pods(o.Namespace).Delete(ctx, o.Name, *options); err != nil {
			return fmt.Errorf("remove pod %s/%s: %w", o.Namespace, o.Name, err)
		}
		return nil
	}
}

// mustJSON encodes a value that is made of our own types alone.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("world: encode %T: %v", v, err))
	}
	return data
}
