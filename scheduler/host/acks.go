package host

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
)

// acks answer NodeShares: an instance acknowledges the generation of a share when every binding that it decided before it saw that generation has a
// definite answer. What it decides later knows the share.
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

// ackWriter writes acknowledgements on the NodeShare's status, each as the one entry of this partition, until one is taken or the lease is lost. The
// decision loop does not wait for the write.
func (s *Scheduler) ackWriter(ctx context.Context, mayWrite func() bool) func(ackOf) {
	instance := leaseName(s.c.Partition)
	gvr := v1alpha1.GroupVersion.WithResource("nodeshares")
	return func(a ackOf) {
		go func() {
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha1.GroupVersion.String(), "kind": "NodeShare",
				"metadata": map[string]any{"name": a.name, "uid": string(a.uid)},
				"status":   map[string]any{"acks": []any{map[string]any{"instance": instance, "generation": a.generation}}},
			}}
			for pause := 100 * time.Millisecond; mayWrite(); pause = min(2*pause, ackPause) {
				_, err := s.dynamic.Resource(gvr).ApplyStatus(ctx, a.name, o, metav1.ApplyOptions{FieldManager: instance, Force: true})
				if err == nil {
					s.o.Metrics.acks.Inc()
					return
				}
				if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || ctx.Err() != nil {
					return // another share of the name, or none
				}
				s.o.Log.Warn("acknowledge a NodeShare", "node", a.name, "err", err)
				select {
				case <-ctx.Done():
					return
				case <-time.After(pause):
				}
			}
		}()
	}
}
