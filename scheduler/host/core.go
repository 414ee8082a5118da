package host

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/host/bind"
	"github.com/springtide/springtide/scheduler/host/queue"
	"github.com/springtide/springtide/scheduler/place"
)

// core is the scheduler's state and its decisions. It has one owner, the goroutine of [core.run]; everything else reaches it through the mailbox.
type core struct {
	c       config.Scheduler
	log     *slog.Logger
	metrics *Metrics
	now     func() time.Time
	after   func(time.Duration) <-chan time.Time
	mail    *mailbox

	table   *place.Table
	queue   *queue.Queue
	tenants *tenants
	pools   pools
	devices *devices
	nodes   map[string]*nodeFacts
	pods    map[types.UID]*pod
	classes map[place.ClassID]asks // those that pods have asked for, with what a kubelet admits them by
	// jobGenerations are those of the ElasticJobs that were read.
	jobGenerations map[string]int64
	dirty          map[string]bool // nodes on which something may have come free since the parked classes were asked
	unbound        int             // bindings that were written and have no definite answer yet
	making         int             // pods whose volumes and claims are being made

	acks    *acks
	judge   *judge
	spreads *spreads
	gangs   *gangs
	claims  *claims
	preempt *preemption
	// kubelets are those that refused pods.
	kubelets *kubelets
	// frozen is why the operator holds everything that takes away; empty while nothing is held.
	frozen string
	byRef  map[place.PodRef]*pod // pods that hold room in the table
	wide   *wide
	tally  tally

	// make has the volumes and claims of a decision made, on a goroutine of its own; done comes with the mail. The
	// returned function ends it early.
	make func(work func(context.Context) error, done func(error)) (stop func())
	// bind hands a decision to the binders; say reports why a pod waits; retract takes that back.
	bind    func(bind.Request)
	say     func(verdict)
	retract func(types.UID)
	// announce records that a pod was bound; it never blocks.
	announce func(o *corev1.Pod, node string)
	// nominate writes the node of a pod whose plugins have writes to make before it is bound; any goroutine calls it.
	nominate func(ctx context.Context, o *corev1.Pod, node string)
	// handPod gives a pod that waits to another partition.
	handPod func(*corev1.Pod, int)
	// handGang gives a gang that waits to another partition, and reports the version of its object after that.
	handGang func(gang owner, group *podGroup, to int, answered func(version uint64, err error))
	// tried is the partition on whose nodes a gang is tried, to see whether it may be handed on; nowhere else.
	tried int
	// elsewhere are the pods that wait and are another partition's to place.
	elsewhere map[types.UID]*corev1.Pod
}

// pod is one pod that is not over.
type pod struct {
	object  *corev1.Pod
	stage   stage
	shape   place.Shape
	class   place.ClassID
	request request
	tenant  string
	key     queue.Key // of the item that it waits in
	node    string    // where it is, or is to be
	cells   []int
	// why is why it is to be there, for its annotation.
	why string
	// ref is its place in the table, while it is assumed or bound.
	ref place.PodRef
	// pinned is the one node that it asks for.
	pinned string
	gang   *gang
	// confined: its shape asks for the domain of its gang too.
	confined bool
	// nowhere is why its gang has no domain that it could be in; empty where it has, or needs none.
	nowhere string
	// trial is what upstream's plugins hold for it, while it is decided.
	trial Trial
	// stop ends the making of its volumes and claims, while they are made.
	stop func()
	// started is when it started on its node; no later than when that was seen, since the clock of the node may be ahead.
	started time.Time
	// undone is how many decisions on it were not carried out.
	undone int
	judged judgement
	// spreadBy are the sets that its spread constraints count; spreadByPlugins: upstream's plugin judges them.
	spreadBy        []string
	spreadByPlugins bool
	// devices: it asks for an extended resource that a device class stands for.
	devices bool
	// handing: it is being given to another partition by its coordinator. comesBack: it was, and none but another partition has a place for it.
	handing, comesBack bool
	// counted are the names under which the tally counts it.
	counted struct{ owner, pool string }
}

// run handles what comes and decides, until ctx ends.
func (c *core) run(ctx context.Context, beat func()) {
	var todo []func()
	last := c.now()
	for ctx.Err() == nil {
		beat()
		if now := c.now(); now.Sub(last) >= tick { // also where mail never ends
			last = now
			c.tick(now)
		}
		todo = c.mail.take(todo)
		for i, f := range todo {
			f()
			todo[i] = nil
		}
		if c.decideOne(ctx) {
			continue
		}
		c.gauge()
		c.sleep(ctx)
	}
}

// mostUnbound bounds the decisions that wait for their binding, so that one of a high priority does not stand in line behind thousands.
const mostUnbound = 256

// decideOne decides on the next item; false when there is nothing to decide.
func (c *core) decideOne(ctx context.Context) bool {
	c.claims.unseen(c)
	c.spreads.settle(c)
	c.preempt.settle(c)
	c.wake()
	if c.unbound >= mostUnbound {
		return false
	}
	begin := c.now()
	item, ok := c.queue.Pop(begin)
	if !ok && c.admitMore() {
		item, ok = c.queue.Pop(begin)
	}
	if !ok {
		item, ok = c.queue.Early()
	}
	if !ok {
		return false
	}
	result := c.decide(ctx, item)
	c.metrics.decisions.WithLabelValues(result).Inc()
	c.metrics.decide.Observe(c.now().Sub(begin).Seconds())
	return true
}

// tick is how often it is looked at what times out.
const tick = time.Second

// tick ends what has timed out, and reports what still waits.
func (c *core) tick(now time.Time) {
	c.admitMore() // also where the queue is never empty
	c.gangs.report(c, now)
	c.gangs.expire(c, now)
	c.claims.expire(c, now)
	c.kubelets.expire(c, now)
	c.preempt.expire(c, now)
}

// sleep waits for mail, for the end of a back-off, or for the next tick.
func (c *core) sleep(ctx context.Context) {
	wait := tick
	if next, ok := c.queue.Next(); ok {
		wait = min(wait, max(next.Sub(c.now()), 0))
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-c.mail.signal:
	case <-t.C:
	}
}

// wake makes ready what the changes since the last call can help: for each class that waits, each node that changed is asked once.
func (c *core) wake() {
	c.spreads.wake(c)
	if len(c.dirty) == 0 && !c.judge.changed {
		return
	}
	for _, id := range c.queue.Parked() {
		switch {
		case c.refusedByPlugins(id):
			c.queue.WakeLater(id, c.now())
		case id < 0: // a gang, or a tenant: room on a node does not help a tenant
			c.wakeFor(id, c.gangs.classes(id))
		default:
			c.wakeFor(id, []place.ClassID{place.ClassID(id)})
		}
	}
	clear(c.dirty)
	c.judge.changed = false
}

// judged is where the pods of a class wait which upstream's plugins refused. They are not where the table alone refused pods of the class: of two pods that
// ask for the same of the table one may ask the plugins for more, and other events help it.
const judged queue.Class = 1 << 30

// parkedOn is where a pod waits whose last attempt failed.
func parkedOn(id place.ClassID, byPlugins bool) queue.Class {
	if byPlugins {
		return judged + queue.Class(id)
	}
	return queue.Class(id)
}

// refusedByPlugins reports whether what waits under a name was refused by upstream's plugins. Their criteria are not
// known here, so each event may help.
func (c *core) refusedByPlugins(id queue.Class) bool {
	if id < 0 {
		x := c.gangs.byClass[id]
		return x != nil && x.judged
	}
	return id >= judged
}

// wakeClass makes all pods of a class that wait ready, whether table or plugins refused them.
func (c *core) wakeClass(id queue.Class) {
	c.queue.Wake(id)
	if id >= 0 {
		c.queue.Wake(judged + id)
	}
}

// wakeFor makes what waits under a name ready where a node that changed can help one of its classes: at once where it has room, and after the back-off
// where the room is that of others, who may be protected.
func (c *core) wakeFor(id queue.Class, classes []place.ClassID) {
	taking := false
	for name := range c.dirty {
		for _, class := range classes {
			if c.kubelets.refuses(c, class, name) {
				continue
			}
			if c.table.CanPlaceOn(class, fleet.NodeID(name)) {
				c.queue.Wake(id)
				return
			}
			taking = taking || c.preempt.wanted(c, class, name)
		}
	}
	if taking {
		c.queue.WakeLater(id, c.now())
	}
}

// serves reports whether the pod names this scheduler.
func (c *core) serves(p *corev1.Pod) bool {
	for _, n := range c.c.Names {
		if p.Spec.SchedulerName == n {
			return true
		}
	}
	return false
}

// podChanged takes a pod over as it is now.
func (c *core) podChanged(o *corev1.Pod) {
	delete(c.elsewhere, o.UID)
	p := c.pods[o.UID]
	if o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed {
		if p != nil {
			p.object = o
			c.kubelets.note(c, o)
		}
		c.podGone(o.UID)
		return
	}
	switch {
	case o.Spec.NodeName != "":
		c.podBound(p, o)
	case p != nil && p.stage == assumed, p != nil && p.stage == making && o.DeletionTimestamp == nil:
		p.object = o // the binding is under way
	case p != nil && p.stage == nominated && o.DeletionTimestamp == nil:
		c.podNominated(p, o)
	case !c.serves(o) && o.Status.NominatedNodeName != "" && o.DeletionTimestamp == nil:
		c.podForeign(p, o)
	case !c.serves(o) || o.DeletionTimestamp != nil || len(o.Spec.SchedulingGates) > 0:
		c.podGone(o.UID)
	case !c.mine(o):
		c.podGone(o.UID)
		c.elsewhere[o.UID] = o
		c.wide.away(c, o)
	default:
		c.podWaits(p, o)
	}
}

// podWaits puts a pod of ours into the queue.
func (c *core) podWaits(p *pod, o *corev1.Pod) {
	if p == nil || !p.handing {
		c.wide.back(c, o.UID)
	}
	if p == nil {
		p = &pod{}
		c.pods[o.UID] = p
	} else if asksTheSame(p.object, o) {
		p.object = o // its status changed, mostly by us
		return
	}
	c.describe(p, o)
	p.stage = waits
	c.enqueue(p)
	c.queue.Again(p.key) // of what changed, upstream's plugins may look at more than its class says
}

// podNominated follows a pod that waits for room to come. One that asks for something else now is decided again: the room that it waits for is that of another
// pod.
func (c *core) podNominated(p *pod, o *corev1.Pod) {
	if asksTheSame(p.object, o) {
		p.object = o
		return
	}
	n := c.preempt.byPod[o.UID]
	c.preempt.forget(c, n)
	c.preempt.takeBack(c, n)
	c.podWaits(p, o)
}

// asksTheSame reports whether a pod that is not bound asks for the same in two versions.
func asksTheSame(a, b *corev1.Pod) bool {
	return a.Generation == b.Generation && sameLabels(a, b) && len(a.Status.ResourceClaimStatuses) == len(b.Status.ResourceClaimStatuses)
}

// describe reads what a pod asks for.
func (c *core) describe(p *pod, o *corev1.Pod) {
	p.object = o
	p.request = c.requestOf(o)
	p.tenant = c.tenants.tenant(o.Namespace)
	p.pinned = pinnedTo(o)
	p.shape = shapeOf(o, &p.request, c.claims.claimantOf(o))
	p.shape.ClaimantPool = c.claims.poolOf(c, p)
	if c.isFiller(o) {
		// It tolerates all marks, and holds what online keeps. The pool that it names is that of its machine.
		p.shape.Side, p.shape.Holder = fleet.Online, ""
	}
	p.shape.Daemon = c.isDaemon(o, p.pinned)
	p.shape.Priority = c.gangs.priorityOf(o)
	p.devices, p.judged = c.devices.ask(&p.request, &p.shape), judgement{}
	c.spreads.describe(p)
	p.class = c.classify(p)
	p.confined, p.nowhere = false, ""
}

// classify interns the shape of a pod.
func (c *core) classify(p *pod) place.ClassID {
	id := c.table.Class(p.shape)
	if _, ok := c.classes[id]; !ok {
		c.classes[id] = asksOf(&p.shape)
	}
	return id
}

func (c *core) enqueue(p *pod) {
	if p.confined {
		c.describe(p, p.object) // its gang may be elsewhere by now
	}
	if c.gangs.enqueue(c, p) {
		return
	}
	c.gangs.confine(c, p)
	p.key = queue.Key(p.object.UID)
	c.queue.Add(queue.Item{Key: p.key, Priority: p.shape.Priority, Tenant: p.tenant, Class: queue.Class(p.class), Since: p.object.CreationTimestamp.Time})
}

// podBound takes a pod over that is on a node, by whichever scheduler.
func (c *core) podBound(p *pod, o *corev1.Pod) {
	c.wide.gone(c, o.UID)
	if p == nil {
		p = &pod{}
		c.pods[o.UID] = p
	}
	was := p.stage
	if was == bound && p.node == o.Spec.NodeName {
		c.boundChanged(p, o)
		return
	}
	if was == waits {
		c.unqueue(p)
	}
	if was.decided() && p.node == o.Spec.NodeName {
		c.stopMaking(p)
		p.object, p.stage = o, bound
		c.kubelets.runs(p)
		c.table.Confirm(p.ref, fleet.UID(o.UID))
		c.tally.own(c, p)
		c.judge.setPod(o)
		c.wide.seen(c, o.UID)
		c.resized(p, o) // while its binding was under way
		c.gangs.formed(c, p)
		c.starts(p)
		c.leaving(p)
		return
	}
	if was == nominated {
		c.unqueueAlone(p)
		c.preempt.left(c, o.UID) // another scheduler was quicker
	}
	if was != 0 && was != waits {
		c.dirty[p.node] = true
		c.unassume(p)
	}
	c.describe(p, o)
	p.stage, p.node, p.cells = bound, o.Spec.NodeName, cellsAnnotated(o, c.serves(o) && p.shape.Cells != place.Float)
	p.ref = c.table.Bound(p.shape, fleet.NodeID(p.node), fleet.UID(o.UID), p.cells)
	c.byRef[p.ref] = p
	c.tally.enter(c, p)
	c.tally.own(c, p)
	c.count(p, 1)
	c.judge.setPod(o)
	c.judge.change()
	c.gangs.join(p)
	c.gangs.formed(c, p)
	c.starts(p)
	c.leaving(p)
	c.preempt.touch(p.node)
}

// podForeign holds the room that another scheduler makes for a pod of its own, until the pod is bound or the name of the node is taken back.
func (c *core) podForeign(p *pod, o *corev1.Pod) {
	if p != nil && p.stage == foreign && p.node == o.Status.NominatedNodeName {
		p.object = o
		return
	}
	c.podGone(o.UID)
	p = &pod{}
	c.pods[o.UID] = p
	c.describe(p, o)
	p.stage, p.node = foreign, o.Status.NominatedNodeName
	p.ref = c.table.Bound(p.shape, fleet.NodeID(p.node), fleet.UID(o.UID), nil)
	c.byRef[p.ref] = p
	c.tally.enter(c, p)
	c.count(p, 1)
}

// leaving notes that a bound pod is being deleted: it holds its room until it is gone, and counts no more for spreading. Its room is to come.
func (c *core) leaving(p *pod) {
	if _, known := c.preempt.leaving[p.object.UID]; known || p.object.DeletionTimestamp == nil {
		return
	}
	c.preempt.leaving[p.object.UID] = c.now()
	c.table.Leaving(p.ref)
	c.table.Late(p.ref, c.preempt.isLate(p.object, c.now()))
	c.judge.change()                  // the plugins' spread and affinity do not count it
	if c.preempt.onNode[p.node] > 0 { // who is nominated there holds less of what is free
		c.touch(p.node)
	}
}

// starts notes when a bound pod started.
func (c *core) starts(p *pod) {
	if s := p.object.Status.StartTime; s == nil {
		p.started = time.Time{}
	} else if now := c.now(); p.started.IsZero() {
		if p.started = s.Time; s.After(now) {
			p.started = now
		}
	}
}

// boundChanged follows a pod that stays where it is: its labels, and its requests when it is resized.
func (c *core) boundChanged(p *pod, o *corev1.Pod) {
	before := p.object
	p.object = o
	c.kubelets.runs(p)
	c.starts(p)
	c.leaving(p)
	if !maps.Equal(before.Labels, o.Labels) {
		c.judge.change()
		c.podRelabelled(o.UID)
	}
	if before.ResourceVersion != o.ResourceVersion {
		c.judge.setPod(o)
	}
	c.resized(p, o)
}

// resized counts a pod that holds room as large as it is now, and in the sets that it is in now. No version says whether that changed: the kubelet confirms one resize in several writes of the
// status, and gives one up by a condition alone.
func (c *core) resized(p *pod, o *corev1.Pod) {
	if r := c.requestOf(o); r.equal(&p.request) && slices.Equal(c.spreads.in(o), p.sets()) {
		return
	}
	c.reshape(p, o)
	c.touch(p.node)
}

// reshape reads again what a pod asks for that holds room in the table.
func (c *core) reshape(p *pod, o *corev1.Pod) {
	c.count(p, -1)
	c.describe(p, o)
	delete(c.byRef, p.ref)
	p.ref = c.table.Resize(p.ref, p.shape)
	c.byRef[p.ref] = p
	c.count(p, 1)
}

// touch notes that something may have come free on a node.
func (c *core) touch(node string) {
	c.dirty[node] = true
	c.preempt.touch(node)
}

// cellsAnnotated are the cells that our own binding wrote; the annotation of a pod of another scheduler, or of one that asks for no cells, is not obeyed.
func cellsAnnotated(o *corev1.Pod, ours bool) []int {
	text := o.Annotations[v1alpha1.AnnotationCells]
	if text == "" || !ours {
		return nil
	}
	cells, err := v1alpha1.ParseCells(text)
	if err != nil {
		return nil
	}
	return cells
}

// podGone forgets a pod that is over, deleted, or not ours to place.
func (c *core) podGone(uid types.UID) {
	delete(c.elsewhere, uid)
	c.wide.gone(c, uid)
	p := c.pods[uid]
	if p == nil {
		return
	}
	switch p.stage {
	case waits:
		c.unqueue(p)
	case nominated, making, assumed, bound, foreign:
		c.kubelets.ended(c, p)
		if p.stage == nominated {
			c.unqueueAlone(p)
		}
		c.release(p)
		c.dirty[p.node] = true
		c.judge.change()
	}
	c.stopMaking(p)
	c.judge.removePod(p)
	delete(c.pods, uid)
	c.spreads.gone(p)
	c.gangs.gone(c, p)
	c.preempt.left(c, uid)
	c.retract(uid)
}

// count adds a pod to what its tenant uses.
func (c *core) count(p *pod, times int64) {
	if p.tenant == "" {
		return
	}
	c.queue.SetShare(p.tenant, c.tenants.use(p.tenant, p.request.amount(), times))
	if times < 0 {
		c.tenants.wakeTree(p.tenant)
	}
}

// admitMore makes ready what waits for the quota of its tenant, of the tenants whose quota may admit more: in the order of the queue, as much as the
// quota admits together. It reports whether there were such tenants.
func (c *core) admitMore() bool {
	if len(c.tenants.wake) == 0 {
		return false
	}
	more := map[string]amount{} // by quota
	for _, tenant := range c.tenants.woken() {
		c.queue.WakeIf(c.tenants.class(tenant), func(i queue.Item) bool {
			p := c.pods[types.UID(i.Key)]
			if p == nil {
				return true
			}
			if c.tenants.refuses(tenant, p.request.amount(), more) != "" {
				return false
			}
			if !c.queue.HasParked(i.Class) && !c.queue.HasParked(judged+i.Class) { // else it will wait with its class for room, and leave the quota to others
				c.tenants.addTo(more, tenant, p.request.amount())
			}
			return true
		})
	}
	clear(c.tenants.wake)
	return true
}

// unqueue takes a pod that waits out of the queue; its gang is looked at again by who takes it out.
func (c *core) unqueue(p *pod) { c.queue.Remove(p.key) }

// unqueueAlone takes a pod out of the queue that waits by itself; of a gang the others wait on.
func (c *core) unqueueAlone(p *pod) {
	if p.key == queue.Key(p.object.UID) {
		c.unqueue(p)
	}
}

func sameLabels(a, b *corev1.Pod) bool {
	if len(a.Labels) != len(b.Labels) || len(a.Annotations) != len(b.Annotations) {
		return false
	}
	for k, v := range a.Labels {
		if b.Labels[k] != v {
			return false
		}
	}
	for _, k := range []string{v1alpha1.AnnotationTopologyPolicy, v1alpha1.AnnotationCellsExclusive, v1alpha1.AnnotationOneRoot, fleet.AnnotationNUMA, fleet.AnnotationKatalystMemory, v1alpha1.AnnotationPartition} {
		if a.Annotations[k] != b.Annotations[k] {
			return false
		}
	}
	return true
}

// nodeChanged brings the table in line with what is known of a node.
func (c *core) nodeChanged(name string) {
	n := c.nodes[name]
	if n == nil || n.node == nil {
		return
	}
	m := n.machine(c.pools, c.devices)
	if c.c.Partitions > 1 {
		m.Labels = withLabel(m.Labels, v1alpha1.LabelPartition, strconv.Itoa(partitionOf(name, c.c.Partitions)))
	}
	c.tenants.all.add(n.counted, -1)
	n.counted = amount{cpu: int64(m.Allocatable.CPU), memory: int64(m.Allocatable.Memory), gpu: m.Allocatable.GPU}
	c.tenants.all.add(n.counted, 1)
	pool := ""
	if home := c.pools.homeOf(n.node.Labels); home != nil {
		pool = home.name
	}
	if n.pool != pool {
		n.pool, c.tally.valid = pool, false
	}
	c.table.SetMachine(m)
	c.touch(name)
}

// node finds what is known of a node, or begins to know it.
func (c *core) node(name string) *nodeFacts {
	n := c.nodes[name]
	if n == nil {
		n = &nodeFacts{}
		c.nodes[name] = n
	}
	return n
}

// setNode takes a node over.
func (c *core) setNode(o *corev1.Node) {
	n := c.node(o.Name)
	c.kubelets.nodeChanged(n.node, o)
	n.node = o
	c.nodeChanged(o.Name)
	c.judge.setNode(o)
}

// removeNode forgets a node. Its share and topology may still be there, and count again when a node of the name comes back.
func (c *core) removeNode(name string) {
	if n := c.nodes[name]; n != nil {
		c.tenants.all.add(n.counted, -1)
		c.kubelets.nodeChanged(n.node, nil)
		n.node, n.counted = nil, amount{}
		if n.pool != "" {
			n.pool, c.tally.valid = "", false
		}
		if n.share == nil && n.inside.Cells == nil {
			delete(c.nodes, name)
		}
	}
	c.table.RemoveMachine(fleet.NodeID(name))
	c.preempt.touch(name)
	c.judge.removeNode(name)
	c.judge.change() // a spread over fewer domains asks for less
}

// setShare takes a NodeShare over, or with nil its end. Its consequences hold from here on, and is acknowledged once
// nothing older is under way.
func (c *core) setShare(name string, s *v1alpha1.NodeShare) {
	n := c.node(name)
	before := n.share
	n.share = s
	c.nodeChanged(name)
	c.claims.cameHome(c, n, before)
	switch {
	case s == nil:
		c.acks.forget(name)
	case before == nil || before.Generation != s.Generation:
		c.acks.seen(c, name, s)
	}
}

// setInside takes the topology of a node over.
func (c *core) setInside(name string, inside facts.Topology) {
	c.node(name).inside = inside
	c.nodeChanged(name)
}

// setPool takes a pool over, or with nil its end. Which nodes it has may have changed for all of them.
func (c *core) setPool(name string, p *poolFacts) {
	if p == nil {
		delete(c.pools, name)
	} else {
		c.pools[name] = p
	}
	c.claims.first, c.claims.several = c.pools.online()
	for name := range c.nodes {
		c.nodeChanged(name)
	}
}

// gauge shows how many there are of what.
func (c *core) gauge() {
	ready, off, parked := c.queue.Count()
	c.metrics.pending.WithLabelValues("ready").Set(float64(ready))
	c.metrics.pending.WithLabelValues("backoff").Set(float64(off))
	c.metrics.pending.WithLabelValues("parked").Set(float64(parked))
	c.metrics.pending.WithLabelValues("volumes").Set(float64(c.making))
	c.metrics.nodes.Set(float64(len(c.nodes)))
	c.metrics.pods.Set(float64(len(c.pods)))
	c.metrics.classes.Set(float64(len(c.classes)))
}
