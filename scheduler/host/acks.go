package host

import (
	"time"

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

func newAcks(write func(ackOf)) *acks {
	return &acks{sentTo: map[string]map[types.UID]bool{}, owed: map[string]*owed{}, write: write}
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
	if !moving(s) {
		delete(a.owed, node) // nobody waits for an answer
		return
	}
	o := &owed{ack: ackOf{s.Name, s.UID, s.Generation}, waits: map[types.UID]bool{}, seenAt: c.now()}
	for uid := range a.sentTo[node] {
		o.waits[uid] = true
	}
	a.owed[node] = o
	a.settle(c, node, o)
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
