package gates

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
)

// Opener writes the condition of pods that have the gate and no condition. A condition that stands is never touched, so
// any number of processes may open gates side by side.
type Opener struct {
	c     *watch.Watcher
	core  kubernetes.Interface
	queue workqueue.TypedRateLimitingInterface[fleet.Name]
}

// New makes an opener. Its client must not wait for the leadership: pods start with or without a leader.
func New(c *watch.Watcher, core kubernetes.Interface) *Opener {
	return &Opener{c: c, core: core, queue: workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[fleet.Name](100*time.Millisecond, 15*time.Second))}
}

// Failures counts the openings that failed.
var Failures = prometheus.NewCounter(prometheus.CounterOpts{Name: "springtide_gate_open_failures_total",
	Help: "Readiness gates of new pods that could not be opened at the first try. While it grows, new pods of services " +
		"with a standby do not become ready."})

// openers is how many gates are opened side by side.
const openers = 4

// Start opens gates until ctx ends. The watches must have been read once.
func (o *Opener) Start(ctx context.Context) error {
	err := o.c.Pods.OnChange(func(_, after *watch.PodFacts) {
		if after != nil && after.Shut && !after.Finished && after.DeletionTimestamp == nil {
			o.queue.Add(fleet.Name{Namespace: after.Namespace, Name: after.Name})
		}
	})
	if err != nil {
		return fmt.Errorf("gates: %w", err)
	}
	context.AfterFunc(ctx, o.queue.ShutDown)
	var wg sync.WaitGroup
	for range openers {
		wg.Go(func() {
			for o.next(ctx) {
			}
		})
	}
	return nil
}

// next opens one gate, and reports whether there may be another.
func (o *Opener) next(ctx context.Context) bool {
	n, over := o.queue.Get()
	if over {
		return false
	}
	defer o.queue.Done(n)
	err := o.open(ctx, n)
	switch {
	case err == nil:
		o.queue.Forget(n)
	case ctx.Err() == nil:
		Failures.Inc()
		o.c.Options.Log.Warn("a readiness gate was not opened", "pod", n.String(), "err", err)
		o.queue.AddRateLimited(n)
	}
	return true
}

// open opens the gate of a pod that still waits for it. The version that was seen goes along: another writer of the
// condition would have changed it.
func (o *Opener) open(ctx context.Context, n fleet.Name) error {
	p, ok := o.c.Pods.Get(n.Namespace, n.Name)
	if !ok || !p.Shut || p.Finished || p.DeletionTimestamp != nil {
		return nil
	}
	seen := map[string]any{"uid": string(p.UID), "resourceVersion": p.ResourceVersion}
	_, err := o.core.CoreV1().Pods(n.Namespace).Patch(ctx, n.Name, types.StrategicMergePatchType, convert.GatePatch(seen,
		corev1.ConditionTrue, convert.InServiceOpened, "The pod is new.", o.c.Options.Clock.Now()),
		object.PatchOptions(), "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another pod, or a newer version: its change comes in by the watch
	}
	return err
}
