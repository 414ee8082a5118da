package host

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/scheduler/host/bind"
	"github.com/springtide/springtide/scheduler/place"
)

// The life of a pod after the decision. From the decision on it holds its room in the table, and with the plugins, until it is gone or the decision is
// given up. Giving up wakes what the room can help.
//
//	waits ◀──▶ nominated
//	  │ ▲         │
//	  ▼ │         ▼
//	making ──▶ assumed ──▶ bound
//
// A nominated pod waits too: for room that is to come on one node. It is decided again when that is there, or other room is.

// stage is where a pod stands.
type stage uint8

const (
	waits     stage = iota + 1 // ours, and not decided
	nominated                  // ours, and nominated for a node where room is to come
	making                     // decided: its volumes and claims are being made, which may take minutes
	assumed                    // decided, and its binding is written: that has no definite answer yet
	bound                      // on a node, by whichever scheduler
	foreign                    // another scheduler's, and nominated by it for a node
)

// decided reports whether the pod is to be bound to its node as soon as may be.
func (s stage) decided() bool { return s == making || s == assumed }

// hold notes the room that a pod holds in the table.
func (c *core) hold(p *pod, d place.Decision, s stage) {
	p.stage, p.ref, p.node, p.cells = s, d.Pod, string(d.Node), d.Cells
	c.byRef[d.Pod] = p
	c.tally.enter(c, p)
	c.count(p, 1)
	c.preempt.touch(p.node)
}

// release gives back the room that a pod holds.
func (c *core) release(p *pod) {
	c.table.Remove(p.ref)
	delete(c.byRef, p.ref)
	c.tally.leave(p)
	c.count(p, -1)
	c.preempt.touch(p.node)
	c.wide.seen(c, p.object.UID)
}

// assume notes a decision, whose room the table holds already.
func (c *core) assume(p *pod, d place.Decision) {
	c.hold(p, d, assumed)
	c.judge.assume(p)
	c.wide.decided(c, p)
}

// unassume takes a decision back.
func (c *core) unassume(p *pod) {
	c.release(p)
	c.judge.removePod(p)
	c.stopMaking(p)
	p.stage, p.node, p.cells, p.why = waits, "", nil, ""
}

// submit carries a decision out: what upstream's plugins have to write comes first, and then the binding.
func (c *core) submit(p *pod) {
	c.retract(p.object.UID)
	if p.trial == nil {
		c.write(p)
		return
	}
	p.stage = making
	c.making++
	trial, o, node := p.trial, p.object, p.node
	p.stop = c.make(func(ctx context.Context) error {
		return trial.PreBind(ctx, node, func() { c.nominate(ctx, o, node) })
	}, func(err error) {
		if p.stage == making && p.trial == trial && c.pods[o.UID] == p {
			c.made(p, err)
		}
	})
}

// made goes on with a pod whose volumes and claims are there. That may have taken minutes, so the node is asked once more: its parcels may have changed
// hands, and no binding may follow the acknowledgement of that.
func (c *core) made(p *pod, err error) {
	c.stopMaking(p)
	if errors.Is(err, ErrAgain) {
		if err = c.judge.again(context.Background(), p); err == nil {
			c.submit(p)
			return
		}
	}
	if err == nil && !c.table.Settle(p.ref) {
		err = errors.New("the node does not admit the pod any more, or has no room for it")
	}
	if err != nil {
		c.log.Info("the volumes or claims of a pod are not made", "pod", name(p.object), "node", p.node, "err", err)
		c.giveUp(p)
		return
	}
	p.stage = assumed
	c.write(p)
}

// stopMaking ends the making of volumes and claims, where it is under way.
func (c *core) stopMaking(p *pod) {
	if p.stop != nil {
		p.stop()
		p.stop = nil
		c.making--
	}
}

// write hands a decision to the binders.
func (c *core) write(p *pod) {
	r := bind.Request{UID: string(p.object.UID), Namespace: p.object.Namespace, Name: p.object.Name, Node: p.node}
	r.Annotations = map[string]string{}
	if len(p.cells) > 0 {
		r.Annotations[v1alpha1.AnnotationCells] = v1alpha1.FormatCells(p.cells)
	}
	if p.why != "" {
		r.Annotations[v1alpha1.AnnotationDecision] = p.why
	}
	c.unbound++
	c.acks.sent(p.node, p.object.UID)
	c.bind(r)
}

// answered takes the definite answer to a binding.
func (c *core) answered(r bind.Result) {
	c.unbound--
	c.metrics.binds.WithLabelValues(r.Outcome.String()).Inc()
	c.metrics.bindTime.Observe(r.Took.Seconds())
	uid := types.UID(r.Request.UID)
	c.acks.answered(c, r.Request.Node, uid)
	p := c.pods[uid]
	if p != nil && r.Outcome == bind.Bound {
		c.metrics.latency.Observe(c.now().Sub(p.object.CreationTimestamp.Time).Seconds())
		if c.c.Events == config.EventsBound {
			c.announce(p.object, r.Request.Node)
		}
	}
	if p == nil || p.stage != assumed || p.node != r.Request.Node {
		return // the watch was quicker, or the pod is gone
	}
	switch r.Outcome {
	case bind.Bound:
		return // the watch brings it
	case bind.Refused:
		c.log.Info("a binding was refused", "pod", p.object.Namespace+"/"+p.object.Name, "node", p.node, "err", r.Err)
	case bind.Gone: // the watch says what became of it
	}
	c.giveUp(p)
}

// giveUp takes a decision back that was not carried out: the room is there for others, and the pod is decided again as it is now, after a back-off that grows
// with each such decision: what refuses it may never change. One that is being deleted never runs.
func (c *core) giveUp(p *pod) {
	if p.object.DeletionTimestamp != nil {
		c.podGone(p.object.UID)
		return
	}
	node := p.node
	c.unassume(p)
	c.dirty[node] = true
	c.judge.change()
	c.describe(p, p.object)
	c.enqueue(p)
	p.undone++
	c.queue.LaterAfter(p.key, p.undone, c.now())
}
