package host

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
)

// reporter says on pods why they wait: the condition PodScheduled and an event, with the same sentence. A write
// replaces the earlier sentence, so a pod for which several sentences come in a short time gets the last one alone.
type reporter struct {
	client   kubernetes.Interface
	recorder events.EventRecorder
	log      *slog.Logger
	// mayWrite says whether the lease of the partition still holds: another instance may say something else by now.
	mayWrite func() bool

	mu     sync.Mutex
	cond   *sync.Cond
	latest map[types.UID]verdict
	order  []types.UID
	shut   bool
	wait   sync.WaitGroup
}

// verdict is what the scheduler reports on a pod.
type verdict struct {
	pod     *corev1.Pod
	reason  string
	message string
	// nominated is the node that is being made free for it; empty for none.
	nominated string
	// gangTimedOut: its gang did not become whole in time. The controller reads it.
	gangTimedOut bool
	at           time.Time
}

const reportWorkers = 8

func newReporter(ctx context.Context, client kubernetes.Interface, recorder events.EventRecorder, log *slog.Logger, mayWrite func() bool) *reporter {
	r := &reporter{client: client, recorder: recorder, log: log, mayWrite: mayWrite, latest: map[types.UID]verdict{}}
	r.cond = sync.NewCond(&r.mu)
	for range reportWorkers {
		r.wait.Go(func() { r.work(ctx) })
	}
	return r
}

// say queues a sentence about a pod. One that its condition says already is not written again.
func (r *reporter) say(v verdict) {
	if c := scheduledCondition(v.pod); c != nil && c.Status == corev1.ConditionFalse && c.Reason == v.reason && c.Message == v.message && !v.gangTimedOut {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before, queued := r.latest[v.pod.UID]
	if !queued {
		r.order = append(r.order, v.pod.UID)
	}
	v.gangTimedOut = v.gangTimedOut || before.gangTimedOut // another sentence does not take it back
	r.latest[v.pod.UID] = v
	r.cond.Signal()
}

// drop takes back what is not written yet: the pod was placed.
func (r *reporter) drop(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.latest, uid)
}

// close ends the workers; what is not written is lost, and said again by the next process.
func (r *reporter) close() {
	r.mu.Lock()
	r.shut = true
	r.mu.Unlock()
	r.cond.Broadcast()
	r.wait.Wait()
}

func (r *reporter) next() (verdict, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for len(r.order) == 0 && !r.shut {
			r.cond.Wait()
		}
		if r.shut {
			return verdict{}, false
		}
		uid := r.order[0]
		r.order = r.order[1:]
		if v, ok := r.latest[uid]; ok {
			delete(r.latest, uid)
			return v, true
		}
	}
}

func (r *reporter) work(ctx context.Context) {
	for {
		v, ok := r.next()
		if !ok {
			return
		}
		if err := r.write(ctx, v); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			r.log.Warn("write the condition of a pod", "pod", v.pod.Namespace+"/"+v.pod.Name, "err", err)
		}
	}
}

// record records an event of the table: what it is on, what it is about, which step of the scheduler it is of, and
// what its words take.
func record(r events.EventRecorder, on, about runtime.Object, step string, e *catalog.Event, args ...any) {
	r.Eventf(on, about, e.Type(), e.Reason(), step, "%s", e.Text(args...))
}

func (r *reporter) write(ctx context.Context, v verdict) error {
	if !r.mayWrite() {
		return nil
	}
	if r.recorder != nil {
		why := catalog.EventFailedScheduling
		if v.gangTimedOut {
			why = catalog.EventGangTimeout
		}
		record(r.recorder, v.pod, nil, "Scheduling", why, v.message)
	}
	since := metav1.NewTime(v.at)
	if c := scheduledCondition(v.pod); c != nil && c.Status == corev1.ConditionFalse {
		since = c.LastTransitionTime
	}
	conditions := []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: v.reason, Message: v.message,
		LastTransitionTime: since, ObservedGeneration: v.pod.Generation,
	}}
	if v.gangTimedOut {
		conditions = append(conditions, corev1.PodCondition{Type: v1alpha1.PodGangTimedOut, Status: corev1.ConditionTrue,
			Reason:  catalog.EventGangTimeout.Reason(),
			Message: v.message, LastTransitionTime: metav1.NewTime(v.at), ObservedGeneration: v.pod.Generation})
	}
	status := map[string]any{"conditions": conditions}
	if v.nominated != v.pod.Status.NominatedNodeName {
		status["nominatedNodeName"] = v.nominated
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": v.pod.UID}, // another pod of this name is left alone
		"status":   status,
	})
	if err != nil {
		return err
	}
	_, err = r.client.CoreV1().Pods(v.pod.Namespace).Patch(ctx, v.pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// nominate writes where a pod is to be bound.
func (r *reporter) nominate(ctx context.Context, o *corev1.Pod, node string) error {
	if o.Status.NominatedNodeName == node {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.UID}, "status": map[string]any{"nominatedNodeName": node}})
	if err != nil {
		return err
	}
	_, err = r.client.CoreV1().Pods(o.Namespace).Patch(ctx, o.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func scheduledCondition(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodScheduled {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}
