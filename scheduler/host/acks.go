package host

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
)

// acks answer NodeShares: an instance acknowledges the generation of a share when every binding that it decided before
// it saw that generation has a definite answer. Its later decisions know the share.
type acks struct {
	// sentTo are the bindings without an answer, by node.
	sentTo map[string]map[types.UID]bool
	owed   map[string]*owed
	write  func(share ackOf)
	// instance is the name of the partition's Lease.
	instance string
}

// owed is an acknowledgement that waits for answers.
type owed struct {
	ack    ackOf
	waits  map[types.UID]bool
	seenAt time.Time
}

// ackOf names what is acknowledged.
type ackOf struct {
	name       string
	uid        types.UID
	generation int64
}

func newAcks(instance string, write func(ackOf)) *acks {
	return &acks{instance: instance, sentTo: map[string]map[types.UID]bool{}, owed: map[string]*owed{}, write: write}
}

// sent notes a binding that is under way.
func (a *acks) sent(node string, uid types.UID) {
	to := a.sentTo[node]
	if to == nil {
		to = map[types.UID]bool{}
		a.sentTo[node] = to
	}
	to[uid] = true
}

// seen notes that the table follows a share from now on.
func (a *acks) seen(c *core, node string, s *v1alpha1.NodeShare) {
	if !moving(s) || acknowledged(s, a.instance) {
		delete(a.owed, node) // the controller waits for no answer
		return
	}
	o := &owed{ack: ackOf{s.Name, s.UID, s.Generation}, waits: map[types.UID]bool{}, seenAt: c.now()}
	for uid := range a.sentTo[node] {
		o.waits[uid] = true
	}
	a.owed[node] = o
	a.settle(c, node, o)
}

// reported takes over that the status of a share changed. An acknowledgement that is written and not there any more is given again: the controller waits for
// it as long as this instance lives.
func (a *acks) reported(c *core, node string, s *v1alpha1.NodeShare) {
	if s != nil && a.owed[node] == nil {
		a.seen(c, node, s)
	}
}

// forget ends what is owed to a share that is gone.
func (a *acks) forget(node string) { delete(a.owed, node) }

func acknowledged(s *v1alpha1.NodeShare, instance string) bool {
	for i := range s.Status.Acks {
		if a := &s.Status.Acks[i]; a.Instance == instance {
			return a.Generation >= s.Generation
		}
	}
	return false
}

// moving reports whether a parcel of the share is to change hands.
func moving(s *v1alpha1.NodeShare) bool {
	for i := range s.Spec.Parcels {
		if s.Spec.Parcels[i].Next != "" {
			return true
		}
	}
	return false
}

// answered notes the definite answer to a binding.
func (a *acks) answered(c *core, node string, uid types.UID) {
	if to := a.sentTo[node]; to != nil {
		delete(to, uid)
		if len(to) == 0 {
			delete(a.sentTo, node)
		}
	}
	if o := a.owed[node]; o != nil {
		delete(o.waits, uid)
		a.settle(c, node, o)
	}
}

func (a *acks) settle(c *core, node string, o *owed) {
	if len(o.waits) > 0 {
		return
	}
	delete(a.owed, node)
	c.metrics.ackTime.Observe(c.now().Sub(o.seenAt).Seconds())
	a.write(o.ack)
}

// ackPause bounds the wait between two tries to write an acknowledgement. The controller waits for it as long as this instance lives.
const ackPause = 5 * time.Second

// ackFirstPause is the first such wait; each further one is twice as long.
const ackFirstPause = 100 * time.Millisecond

// ackWriter writes acknowledgements on the NodeShare's status, each as the one entry of this partition, until one is taken or the lease is lost. The
// decision loop does not wait for the write. Each share has one writer at a time, and it writes the newest generation: a late try for an older one would
// take the acknowledgement back, and the controller would wait for good.
func (s *Scheduler) ackWriter(ctx context.Context, mayWrite func() bool) func(ackOf) {
	var mu sync.Mutex
	newest := map[types.UID]ackOf{} // of the shares that have a writer
	return func(a ackOf) {
		mu.Lock()
		defer mu.Unlock()
		_, writes := newest[a.uid]
		newest[a.uid] = a
		if writes {
			return
		}
		go func() {
			done, pause := int64(0), ackFirstPause
			for {
				mu.Lock()
				a := newest[a.uid]
				if a.generation == done || ctx.Err() != nil || !mayWrite() {
					delete(newest, a.uid)
					mu.Unlock()
					return
				}
				mu.Unlock()
				err := s.applyAck(ctx, a)
				if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // another share of the name, or none
					done, pause = a.generation, ackFirstPause
					continue
				}
				s.o.Log.Warn("acknowledge a NodeShare", "node", a.name, "err", err)
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
				pause = min(2*pause, ackPause)
			}
		}()
	}
}

func (s *Scheduler) applyAck(ctx context.Context, a ackOf) error {
	instance := leaseName(s.c.Partition)
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "NodeShare",
		"metadata": map[string]any{"name": a.name, "uid": string(a.uid)},
		"status":   map[string]any{"acks": []any{map[string]any{"instance": instance, "generation": a.generation}}},
	}}
	resource := s.dynamic.Resource(v1alpha1.GroupVersion.WithResource("nodeshares"))
	_, err := resource.ApplyStatus(ctx, a.name, o, metav1.ApplyOptions{FieldManager: instance, Force: true})
	if err == nil {
		s.o.Metrics.acks.Inc()
	}
	return err
}
