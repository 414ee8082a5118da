package world

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/process"
)

// heads counts the pods of one workload.
type heads struct {
	live    int32 // without notice and not finished
	leaving int32 // with a notice, not finished
	untold  int32 // finished, and the Job does not know yet
}

// pending says what the control plane has still to do before time may move; empty when it is quiet.
//
// Quiet means: every Deployment's newest spec was observed and has its pods; every Job has the pods its parallelism asks for (one that
// ends still counts, since its replacement waits for its end) and has counted those that ended; every pod is bound, found unschedulable
// (and there still is no room for it), gated, or gone.
func (t *table) pending() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	count := make(map[fleet.Name]*heads, len(t.deployments)+len(t.jobs))
	for _, p := range t.pods {
		if s := placing(p.object); s != "" {
			return s
		}
		if s := p.kubeletsTurn(time.Now()); s != "" {
			return s
		}
		if p.kind == online || p.kind == offline {
			h := count[p.owner]
			if h == nil {
				h = &heads{}
				count[p.owner] = h
			}
			h.add(p)
		}
	}
	var none heads
	for name, d := range t.deployments {
		h := count[name]
		if h == nil {
			h = &none
		}
		if s := h.behindDeployment(d); s != "" {
			return fmt.Sprintf("deployment %s: %s", name, s)
		}
	}
	for name, j := range t.jobs {
		if t.runner != nil && process.Runs(&j.Spec.Template.Spec) {
			continue // what processes do takes its time by the wall, and a crash its back-off
		}
		h := count[name]
		if h == nil {
			h = &none
		}
		if s := h.behindJob(j); s != "" {
			return fmt.Sprintf("job %s: %s", name, s)
		}
	}
	if s := t.agentsTurn(time.Now()); s != "" {
		return s
	}
	return t.retried()
}

// agentsTurn says that the real machine's agent has still to answer the share, or to wait for its margin; the caller holds the lock. Both take
// seconds by the wall.
func (t *table) agentsTurn(now time.Time) string {
	o := t.shares[t.realMachine]
	if o == nil {
		return ""
	}
	what := ""
	if o.Status.ObservedGeneration < o.Generation {
		what = "has not answered the share"
	}
	for i := range o.Spec.Parcels {
		p := &o.Spec.Parcels[i]
		for j := range o.Status.Parcels {
			if r := &o.Status.Parcels[j]; p.Next != "" && r.LoanUID == p.LoanUID && r.Epoch == p.Epoch && !r.Clean && r.Waits == string(share.WaitMargin) {
				what = "waits for the margin of loan " + p.LoanName
			}
		}
	}
	if what == "" || t.agentWaitedFor != o.Generation {
		t.agentWaitedFor, t.agentWaitedSince = o.Generation, now
	}
	if what == "" || now.Sub(t.agentWaitedSince) > podPatience {
		return ""
	}
	return fmt.Sprintf("the agent of %s %s", o.Name, what)
}

// placing says that the scheduler has not yet judged the pod.
func placing(o *corev1.Pod) string {
	if o.Spec.NodeName != "" || o.DeletionTimestamp != nil || o.Status.Phase != corev1.PodPending || judged(o) {
		return ""
	}
	return fmt.Sprintf("pod %s/%s: the scheduler has not judged it", o.Namespace, o.Name)
}

// kubeletsTurn says that the real machine's kubelet has still to start the pod, or to end it. The clock waits: the seconds that a virtual machine
// takes would be most of an hour of a replayed day. A pod that does not get anywhere is not waited for any longer.
func (p *pod) kubeletsTurn(now time.Time) string {
	starting := p.goneAt.IsZero() && !p.ready && !p.finished()
	if !p.kubelet || p.kind == stranger || !starting && p.goneAt.IsZero() {
		p.waitedSince = time.Time{}
		return ""
	}
	if p.waitedSince.IsZero() {
		p.waitedSince = now
	}
	if now.Sub(p.waitedSince) > podPatience {
		return ""
	}
	what := "ended"
	if starting {
		what = "started"
	}
	return fmt.Sprintf("pod %s/%s: the real kubelet has not %s it", p.object.Namespace, p.object.Name, what)
}

// judged reports whether the pod was found unschedulable, or is held back by a gate.
func judged(o *corev1.Pod) bool {
	reason := refused(o)
	return reason == corev1.PodReasonUnschedulable || reason == corev1.PodReasonSchedulingGated
}

// refused is why the pod is not scheduled; empty while nothing says so.
func refused(o *corev1.Pod) string {
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason
		}
	}
	return ""
}

func (h *heads) add(p *pod) {
	switch {
	case p.finished():
		for _, f := range p.object.Finalizers {
			if f == batchv1.JobTrackingFinalizer {
				h.untold++
			}
		}
	case p.object.DeletionTimestamp != nil:
		h.leaving++
	default:
		h.live++
	}
}

func (h *heads) behindDeployment(d *appsv1.Deployment) string {
	if d.Status.ObservedGeneration < d.Generation {
		return fmt.Sprintf("generation %d not observed", d.Generation)
	}
	if want := *d.Spec.Replicas; h.live != want {
		return fmt.Sprintf("%d pods where %d are wanted", h.live, want)
	}
	return ""
}

func (h *heads) behindJob(j *batchv1.Job) string {
	if h.untold > 0 {
		return fmt.Sprintf("%d ended pods not counted", h.untold)
	}
	for i := range j.Status.Conditions {
		if c := &j.Status.Conditions[i]; (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	want := *j.Spec.Parallelism
	if j.Spec.Completions != nil {
		want = min(want, *j.Spec.Completions-j.Status.Succeeded)
	}
	if j.Spec.Suspend != nil && *j.Spec.Suspend {
		want = 0
	}
	if h.live > want || h.live+h.leaving < want {
		return fmt.Sprintf("%d pods (%d leaving) where %d are wanted", h.live, h.leaving, want)
	}
	return ""
}
