package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/host/queue"
	"github.com/springtide/springtide/scheduler/place"
	"github.com/springtide/springtide/scheduler/rules"
)

// The results of a decision, as the metric names them.
const (
	resultPlaced   = "placed"
	resultWaits    = "waits"
	resultPreempts = "preempts"
	resultHanded   = "handed"
	resultError    = "error"
)

// decide places an item, or sets it aside with the reason.
func (c *core) decide(ctx context.Context, item queue.Item) string {
	if g := c.gangs.byKey[item.Key]; g != nil {
		c.spreads.decides(g.class, slices.Collect(maps.Values(g.members))...)
		var result string
		c.judge.whole(ctx, func() bool {
			result = c.gangs.decide(ctx, c, g)
			return result == resultPlaced
		})
		return result
	}
	p := c.pods[types.UID(item.Key)]
	if p == nil || p.stage != waits && p.stage != nominated {
		c.queue.Remove(item.Key)
		return resultError
	}
	if p.nowhere != "" {
		c.enqueue(p) // its gang may be in one domain by now, or may need it
		if p.key == item.Key && p.nowhere != "" {
			c.park(p, p.nowhere, true) // any pod that goes, or node that changes, may end that
		}
		if p.key != item.Key || p.nowhere != "" {
			return resultWaits
		}
	}
	c.spreads.decides(queue.Class(p.class), p)
	if c.wide.wait(c, p) {
		return resultWaits
	}
	n := c.preempt.byPod[p.object.UID]
	if n != nil {
		c.preempt.lift(c, n)
	}
	if by := c.tenants.refuses(p.tenant, p.request.amount(), nil); by != "" {
		c.queue.Park(p.key, c.tenants.class(p.tenant))
		c.reportWait(p, usedUp(p.tenant, by, "pod"))
		c.preempt.drop(c, n)
		return resultWaits
	}
	asked := c.judge.refusals
	d, err := c.choose(ctx, p)
	var refused *refusal
	if err != nil && n != nil && c.preempt.goesOn(c, n, errors.As(err, &refused)) {
		if refused != nil {
			c.queue.Park(p.key, parkedOn(p.class, n.judged))
			return resultWaits
		}
		c.log.Warn("decide on a nominated pod", "pod", name(p.object), "err", err)
		c.queue.Retry(p.key, c.now())
		return resultError
	}
	switch {
	case err == nil:
	case errors.As(err, &refused):
		if result, ok := c.handOn(ctx, p); ok {
			return result
		}
		if result, ok := c.preempt.try(ctx, c, p); ok {
			return result
		}
		if p.comesBack { // no event says when the other partition has room
			p.comesBack = false
			c.reportWait(p, refused.message)
			c.queue.Retry(p.key, c.now())
			return resultWaits
		}
		c.park(p, refused.message, c.judge.refusals != asked)
		return resultWaits
	case errors.Is(err, errStarting):
		c.park(p, "waits for upstream's plugins, which judge its volumes, claims or affinity: "+c.judge.starting, true) // they wake it
		return resultWaits
	default:
		c.log.Warn("decide on a pod", "pod", name(p.object), "err", err)
		c.reportWait(p, "the decision failed and is tried again: "+err.Error())
		c.queue.Retry(p.key, c.now())
		return resultError
	}
	c.queue.Remove(p.key)
	c.assume(p, d)
	c.preempt.tookOver(c, n, []*pod{p})
	c.submit(p)
	return resultPlaced
}

// refusal says that no node will do now.
type refusal struct{ message string }

func (r *refusal) Error() string { return r.message }

// choose finds the best node of this partition, or of the one that is tried, and takes its room in the table.
func (c *core) choose(ctx context.Context, p *pod) (place.Decision, error) {
	if c.c.Partitions <= 1 || p.pinned != "" {
		return c.chooseAny(ctx, p)
	}
	return c.within(p, domainOf(v1alpha1.LabelPartition, c.ownPartition()), func() (place.Decision, error) { return c.chooseAny(ctx, p) })
}

// chooseAny finds the best node of all that the pod's class admits.
func (c *core) chooseAny(ctx context.Context, p *pod) (place.Decision, error) {
	if c.judge.needed(p) {
		return c.judge.choose(ctx, c, p)
	}
	if p.pinned != "" {
		return c.chooseOn(p, p.pinned)
	}
	if node := c.nominatedFor(p); node != "" && !c.kubelets.refuses(c, p.class, node) {
		if d, ok := c.table.Assume(p.class, fleet.NodeID(node)); ok {
			p.why = decisionText(node + " was nominated for it")
			return d, nil
		}
	}
	e := c.table.Explain(p.class)
	d, ok := c.kubelets.best(c, p.class)
	if !ok {
		return d, &refusal{notAvailable(&e) + c.kubelets.text(c, p.class)}
	}
	p.why = decisionText(fitting(&e), why(&e, d.Name))
	return d, nil
}

// nominatedFor is the node that is tried first for a pod: where room was to come for it, or where another component made room, or will.
func (c *core) nominatedFor(p *pod) string {
	if c.preempt.byPod[p.object.UID] != nil {
		return p.node
	}
	return p.object.Status.NominatedNodeName
}

// chooseOn takes room on one node.
func (c *core) chooseOn(p *pod, node string) (place.Decision, error) {
	if c.isFiller(p.object) && c.table.Known(fleet.NodeID(node)) {
		// The controller asks for the room that online keeps of the node, behind the marks that close it.
		return place.Decision{Pod: c.table.Bound(p.shape, fleet.NodeID(node), fleet.UID(p.object.UID), nil), Node: fleet.NodeID(node), Name: node}, nil
	}
	if x := c.kubelets.of(c, p.class, node); x != nil && c.now().Before(x.until) {
		return place.Decision{}, &refusal{"0 of 1 nodes are available: the pod is for node " + node + " alone, whose kubelet refused such a pod a moment ago: " + x.reason}
	}
	d, ok := c.table.Assume(p.class, fleet.NodeID(node))
	if !ok {
		return d, &refusal{"0 of 1 nodes are available: the pod is for node " + node + " alone, which has no room for it or does not admit it"}
	}
	p.why = decisionText("the pod is for " + node + " alone")
	return d, nil
}

// isFiller reports whether a pod is one of the controller's that hold room: there are some where a pool does not say that this scheduler serves it.
func (c *core) isFiller(o *corev1.Pod) bool {
	return o.Namespace == c.c.Namespace && o.Labels[v1alpha1.LabelComponent] == v1alpha1.ComponentFiller
}

// isDaemon reports whether a pod is of the machine for which it is made: of the system, and past the marks that keep
// others off. It may take room of either side.
func (c *core) isDaemon(o *corev1.Pod, pinned string) bool {
	if pinned == "" {
		return false
	}
	claim, t := facts.ClaimOf(o), facts.HolderTaint()
	holder := facts.Taint(&t)
	return claim.Standing(witness{c, claim.Owner.UID}) == facts.IsSystem && rules.Admits(facts.Tolerations(o.Spec.Tolerations), []rules.Taint{holder}, false)
}

// whyNot says in one sentence why a pod of a class fits nowhere.
func (c *core) whyNot(id place.ClassID) string {
	e := c.table.Explain(id)
	return notAvailable(&e)
}

func notAvailable(e *place.Explanation) string {
	text := fmt.Sprintf("0 of %d nodes are available", e.Machines)
	if removed := removedBy(e); removed != "" {
		text += ": " + removed
	}
	return text
}

// park sets a pod aside with a sentence, until an event can help those of its class that were refused as it was: by upstream's plugins too, or by the table.
func (c *core) park(p *pod, message string, byPlugins bool) {
	c.queue.Park(p.key, parkedOn(p.class, byPlugins))
	c.reportWait(p, message)
	if p.tenant != "" {
		c.tenants.wakeTree(p.tenant) // what the quota would have given this pod, it may give another one
	}
}

// reportWait says on a pod why it waits.
func (c *core) reportWait(p *pod, message string) {
	v := verdict{pod: p.object, reason: corev1.PodReasonUnschedulable, message: message, at: c.now()}
	if p.stage == nominated {
		v.nominated = p.node
	}
	c.say(v)
}

func name(o *corev1.Pod) string { return o.Namespace + "/" + o.Name }
