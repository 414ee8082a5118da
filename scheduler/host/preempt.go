package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/eviction"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/host/queue"
	"github.com/springtide/springtide/scheduler/place"
)

// preemption takes the room of pods of lower standing for pods and gangs that find none, on one side of a node alone:
// online pods never take the room that offline holds, and the other way round. The controller recalls the room that is
// short there.
//
// A pod that takes room is nominated for the node: it holds the room that is to come against pods of its own and of lower priority. It stays in the queue
// meanwhile: when the room is there, or room elsewhere, it is decided again, in the order of priority. Pods that leave anyway are room to come, too: where
// they are enough, none is evicted. A nomination whose room does not come any more ends. Victims in pools are charged to the pool's disruption ledger before
// the first of them is evicted.
type preemption struct {
	enabled bool
	// protect is how long after its start a pod is not taken.
	protect time.Duration
	byPod   map[types.UID]*nominee
	// retries are the classes whose pods found nothing to take, and would but for a protection that ends without an event on a node. ends is when the first of
	// those ends that the search under way has met; zero for none.
	retries map[queue.Class]retry
	ends    time.Time
	// takenBy is for whom a victim goes.
	takenBy map[types.UID]*nominee
	// touched are the nodes on which room may have come free for a nominated pod; onNode counts these.
	touched map[string]bool
	onNode  map[string]int
	// leaving are the bound pods that are being deleted, and since when that is known here: their own times are by the clock of the API server.
	leaving map[types.UID]time.Time
	// nothing are the pods and gangs for which room was made that was of no use to them, and when that may be tried again.
	nothing map[queue.Key]vainly
	budgets map[string]*budget // by namespace/name
	// refused remembers who refused an eviction: such a pod is not taken before another try is due.
	refused *eviction.Memory
	evict   func(*corev1.Pod, func(error))
	notice  func(*corev1.Pod, time.Time)
	// report records that a pod was evicted: for others, or why else.
	report func(o *corev1.Pod, why string)
	// rollbacks are the evictions of gangs that did not form in time. They go the way of victims for whom no pod waits.
	rollbacks map[queue.Key]*nominee
	// rests are what is left of gangs that lost a pod to a nomination which ended before all of them were gone.
	rests []*nominee
	// charge writes victims into the ledgers of their pools; it answers on the mailbox, with an error where a ledger holds them back. uncharge takes those
	// back of which nothing came.
	charge   func([]charge, func(error))
	uncharge func([]charge)
}

// retry is when a search that found nothing is worth another try whatever happens, zero for never, and the version of the table that it searched: until
// then it finds nothing there. Of a search on one node alone the version is zero.
type retry struct {
	at      time.Time
	version uint64
}

// nominee is a pod, or a gang, that waits for room to come: that of its victims, or of pods that leave.
type nominee struct {
	pods []*pod
	// at is where each of them is to be.
	at      []spot
	victims map[types.UID]*victim
	since   time.Time
	// judged: upstream's plugins accepted the node without the pods that leave, and are asked again once all of them are gone.
	judged   bool
	charging bool
	// accepted is how many of the victims end by our eviction.
	accepted int
	// why is why they go where no pod waits for them.
	why string
}

// spot is a place that a pod was nominated for, and why.
type spot struct {
	class place.ClassID
	node  fleet.NodeID
	cells []int
	why   string
}

// vainly is how often room was made in vain, and until when it is not made again.
type vainly struct {
	times int
	until time.Time
}

// victim is a pod that is to go.
type victim struct {
	object *corev1.Pod
	// of is for whom, and gang what it leaves behind; nil where it has no gang.
	of   *nominee
	gang *gangLoss
	// deadline is when it is evicted: at once, or after its notice, whose epoch is notice; 0 for none.
	deadline time.Time
	notice   int64
	// asked says that its eviction was asked for and was not refused.
	asked bool
	// charge is what its pool's ledger is charged; an empty pool for none. paid: it was charged. ends: the eviction was accepted, or its answer is not known.
	charge     charge
	paid, ends bool
}

// gangLoss is a gang, or the branch of a tree, of which victims are taken: how many pods it had and needs, and how many evictions were asked for and not refused.
type gangLoss struct {
	size, least, asked int
}

// broken reports whether what is left of it is of no use any more.
func (t *gangLoss) broken() bool { return t != nil && t.asked > 0 && t.size-t.asked < t.least }

// charge is one pod of an owner that is taken from a pool.
type charge struct {
	pool, owner string
	// of is how many pods the owner has, all how many are on the pool's nodes.
	of, all int
	// at is when it was charged.
	at time.Time
}

// budget is a PodDisruptionBudget.
type budget struct {
	namespace string
	selector  labels.Selector
	allowed   int
}

const (
	// patience is how long a nominated pod waits for its victims beyond their grace before the decision is taken back.
	patience = time.Minute
	// refusals is for how long budgets and ledgers may refuse the victims before the decision is taken back.
	refusals = 5 * time.Minute
	// askAgain is the pause between two tries to evict a pod that its budget, or the ledger of its pool, protects, and to take one whose binding is under way.
	askAgain = 5 * time.Second
)

// wanted reports whether pods of a class may find room on a node that changed by taking it from others there.
func (x *preemption) wanted(c *core, class place.ClassID, node string) bool {
	return x.enabled && c.frozen == "" && c.table.MayPreemptOn(class, fleet.NodeID(node))
}

func newPreemption(enabled bool, protect time.Duration) *preemption {
	return &preemption{enabled: enabled, protect: protect, byPod: map[types.UID]*nominee{}, retries: map[queue.Class]retry{}, takenBy: map[types.UID]*nominee{},
		touched: map[string]bool{}, onNode: map[string]int{}, leaving: map[types.UID]time.Time{}, nothing: map[queue.Key]vainly{}, budgets: map[string]*budget{}, refused: eviction.NewMemory(),
		evict: func(*corev1.Pod, func(error)) {}, report: func(*corev1.Pod, string) {}, rollbacks: map[queue.Key]*nominee{}, notice: func(*corev1.Pod, time.Time) {}, charge: func(_ []charge, done func(error)) { done(nil) },
		uncharge: func([]charge) {}}
}

// may reports whether a pod may take the room of others.
func (x *preemption) may(c *core, p *pod) bool {
	if !c.gangs.mayPreempt(p.object) {
		return false
	}
	if c.frozen != "" {
		x.endsAt(c.now()) // at the thaw
		return false
	}
	return true
}

// mayWait reports whether a pod or a gang may be nominated now. A freeze does not keep it from room that comes without a victim.
func (x *preemption) mayWait(c *core, key queue.Key) bool {
	if end := x.nothing[key].until; c.now().Before(end) {
		x.endsAt(end)
		return false
	}
	return x.enabled
}

// endsAt notes that a protection which the search under way met ends then.
func (x *preemption) endsAt(t time.Time) {
	if x.ends.IsZero() || t.Before(x.ends) {
		x.ends = t
	}
}

// vain reports whether a class was searched for in the table as it is, and no protection has ended since.
func (x *preemption) vain(c *core, class queue.Class) bool {
	r, ok := x.retries[class]
	return ok && r.version == c.table.Version() && (r.at.IsZero() || c.now().Before(r.at))
}

// found ends a search for a class: one that failed is tried again when the first protection that it met ends. Where it searched all nodes it need not be
// searched for again until the table changes.
func (x *preemption) found(c *core, class queue.Class, all, ok bool) {
	r := x.retries[class]
	if all {
		delete(x.retries, class)
		r = retry{version: c.table.Version()}
	}
	if !x.ends.IsZero() && (r.at.IsZero() || x.ends.Before(r.at)) {
		r.at = x.ends
	}
	if x.ends = (time.Time{}); !ok && r != (retry{}) {
		x.retries[class] = r
	}
}

// tryAgain wakes the classes for which a protection has ended.
func (x *preemption) tryAgain(c *core, now time.Time) {
	if c.frozen != "" {
		return
	}
	for _, class := range sortedKeys(x.retries) {
		if at := x.retries[class].at; !at.IsZero() && !now.Before(at) {
			delete(x.retries, class)
			c.wakeClass(class)
		}
	}
}

// try nominates a pod for a node where room is to come, or whose pods of lower standing can make room; false when nothing can be gained.
func (x *preemption) try(ctx context.Context, c *core, p *pod) (resultOf string, ok bool) {
	class, judged := queue.Class(p.class), c.judge.needed(p)
	all := !judged && p.pinned == ""
	if all && x.vain(c, class) {
		return "", false
	}
	defer func() { x.found(c, class, all, ok) }()
	if !x.mayWait(c, p.key) {
		return "", false
	}
	facts := x.facts(c)
	if judged {
		trial := c.judge.begin(ctx, p)
		if trial == nil {
			return "", false
		}
		facts.Also = c.judge.without(ctx, c, trial, nil)
	}
	facts.Also = andKubelets(c, p, facts.Also)
	found, ok := x.search(c, p, facts)
	if !ok {
		return "", false
	}
	n, ok := x.nominee(c, found.Victims)
	if !ok {
		return "", false
	}
	n.judged = judged
	x.hold(c, n, p, c.table.Nominate(found), found.Class)
	c.queue.Park(p.key, parkedOn(p.class, judged))
	x.begin(c, n)
	return resultPreempts, true
}

// andKubelets says of a node what another judge says, nil for none, but for nodes whose kubelets refused such a pod a moment ago.
func andKubelets(c *core, p *pod, also func(string, []place.PodRef) bool) func(string, []place.PodRef) bool {
	if !c.kubelets.known(c, p.class) {
		return also
	}
	return func(node string, gone []place.PodRef) bool {
		return !c.kubelets.refuses(c, p.class, node) && (also == nil || also(node, gone))
	}
}

// search finds room to come for a pod, and where there is none, victims.
func (x *preemption) search(c *core, p *pod, facts *place.PreemptionFacts) (found place.Preemption, ok bool) {
	if p.pinned != "" {
		if found, ok = c.table.AwaitOn(p.class, fleet.NodeID(p.pinned), facts); !ok && x.may(c, p) {
			found, ok = c.table.PreemptOn(p.class, fleet.NodeID(p.pinned), facts)
		}
		return found, ok
	}
	own := c.ownClass(p)
	if found, ok = c.table.Await(own, facts); !ok && x.may(c, p) {
		found, ok = c.table.Preempt(own, facts)
	}
	return found, ok
}

// tryGang nominates the minimum of a gang, in one domain where it asks for that; nil when that cannot be done by room to come and by taking pods of lower
// standing. Of the domains that help the one with the fewest victims is taken; those in which the pods share what they prefer most come before all others.
// Each pod takes the best room that is left to it, the largest pod first.
func (x *preemption) tryGang(ctx context.Context, c *core, g *gangs, of *gang, want *draft) (n *nominee) {
	defer func() { x.found(c, of.class, true, n != nil) }()
	if !x.mayWait(c, of.key) {
		return nil
	}
	may := true
	for _, p := range want.chosen {
		may = x.may(c, p) && may
	}
	var best *gangTrial
	for _, domains := range g.domainsToTake(c, of, want.chosen) {
		for _, d := range domains {
			if t := x.gangIn(ctx, c, g.deal(of, want), d); t != nil && (may || len(t.victims) == 0) && (best == nil || len(t.victims) < len(best.victims)) {
				best = t
			}
		}
		if best != nil {
			break
		}
	}
	return x.take(c, of, best)
}

// tryTree is [preemption.tryGang] for a branch of a tree, inside of a domain: each group that has a topology key is in one domain of it, as in the decision that is to
// follow.
func (x *preemption) tryTree(ctx context.Context, c *core, g *gangs, of *gang, b *branch, in domain) (n *nominee) {
	defer func() { x.found(c, of.class, true, n != nil) }()
	first := slices.IndexFunc(b.pods(), func(p *pod) bool { return p.stage == waits })
	if first < 0 || !x.mayWait(c, of.key) {
		return nil
	}
	best := x.trial(ctx, c, b.pods()[first].class, func(a *attempt) bool { return a.branch(g, of, b, in) })
	if best == nil || len(best.victims) > 0 && slices.ContainsFunc(best.pods, func(p *pod) bool { return !x.may(c, p) }) {
		return nil
	}
	return x.take(c, of, best)
}

// take nominates the pods of a trial; nil where there is none.
func (x *preemption) take(c *core, of *gang, best *gangTrial) *nominee {
	if best == nil {
		return nil
	}
	n, ok := x.nominee(c, best.victims)
	if !ok {
		return nil
	}
	n.judged = slices.ContainsFunc(best.pods, c.judge.needed)
	for _, ref := range best.victims {
		c.table.Leaving(ref)
	}
	for i, p := range best.pods {
		d := best.at[i]
		x.hold(c, n, p, c.table.Hold(best.classes[i], d.Node, d.Cells), best.classes[i])
	}
	c.queue.Park(of.key, of.class)
	x.begin(c, n)
	return n
}

// gangTrial is how a gang could be placed.
type gangTrial struct {
	pods    []*pod
	classes []place.ClassID
	at      []place.Decision
	victims []place.PodRef
	// undo ends what upstream's plugins hold for the trial, in the order in which it began.
	undo []func()
}

// gangIn tries a gang in one domain.
func (x *preemption) gangIn(ctx context.Context, c *core, pods *deal, in domain) *gangTrial {
	return x.trial(ctx, c, pods.todo[0].class, func(a *attempt) bool { return a.place(pods, in) })
}

// attempt is a trial that goes on.
type attempt struct {
	x   *preemption
	ctx context.Context
	c   *core
	// facts are what protects the victims that may be added, coming what leaves in any case, and more what the quotas are asked for.
	facts  *place.PreemptionFacts
	coming []place.PodRef
	more   map[string]amount
	out    *gangTrial
}

// trial tries pods that are placed together, and leaves the table as it is. Upstream's plugins reserve as for a decision, and see the pods that were placed before as
// assumed: else two members would be given one device, and victims would go for a gang that has no place then. Room that is to come for a class counts.
func (x *preemption) trial(ctx context.Context, c *core, class place.ClassID, do func(*attempt) bool) *gangTrial {
	a := &attempt{x: x, ctx: ctx, c: c, facts: x.facts(c), more: map[string]amount{}, out: &gangTrial{}}
	end := c.judge.gang()
	defer func() {
		a.undo(0)
		end()
	}()
	ok := c.table.Would(func() bool {
		a.coming = c.table.Coming(class)
		for _, ref := range a.coming {
			c.table.Remove(ref)
		}
		return do(a)
	})
	if !ok {
		return nil
	}
	return a.out
}

// undo gives back what upstream's plugins hold since there was so much of it.
func (a *attempt) undo(from int) {
	for _, f := range slices.Backward(a.out.undo[from:]) {
		f()
	}
	a.out.undo = a.out.undo[:from]
}

// part does all of do or nothing.
func (a *attempt) part(do func() bool) bool {
	pods, victims, undo, more := len(a.out.pods), len(a.out.victims), len(a.out.undo), maps.Clone(a.more)
	if a.c.table.Try(do) {
		return true
	}
	a.undo(undo)
	out := a.out
	out.pods, out.classes, out.at, out.victims, a.more = out.pods[:pods], out.classes[:pods], out.at[:pods], out.victims[:victims], more
	a.facts = a.x.facts(a.c)
	for _, ref := range out.victims {
		a.x.gone(a.facts, ref)
	}
	return false
}

// place tries the pods of a draft in one domain.
func (a *attempt) place(pods *deal, in domain) bool {
	placed, c := 0, a.c
	for p := range pods.pods {
		if c.tenants.refuses(p.tenant, p.request.amount(), a.more) != "" {
			continue
		}
		id, d, ok := a.x.placeOrTake(a.ctx, c, p, in, a.facts, a.coming, a.out)
		if !ok {
			continue
		}
		pods.took()
		placed++
		c.tenants.addTo(a.more, p.tenant, p.request.amount())
		a.out.pods, a.out.classes, a.out.at = append(a.out.pods, p), append(a.out.classes, id), append(a.out.at, d)
		if c.judge.plugins != nil {
			c.judge.plugins.Assume(p.object, string(d.Node))
			a.out.undo = append(a.out.undo, func() { c.judge.plugins.RemovePod(p.object.UID) })
		}
	}
	return pods.made(placed)
}

// branch tries what makes a branch whole, in the domain with the fewest victims; of equal ones in the first, as [gangs.placeBranch] does.
func (a *attempt) branch(g *gangs, of *gang, b *branch, in domain) bool {
	if b.met || !b.ready {
		return b.met
	}
	domains := a.c.domainsOf(b, in)
	var best domain
	fewest := -1
	for _, d := range domains {
		n, before := -1, len(a.out.victims)
		a.part(func() bool {
			if a.inside(g, of, b, d) {
				n = len(a.out.victims) - before
			}
			return false
		})
		if n >= 0 && (fewest < 0 || n < fewest) {
			best, fewest = d, n
		}
		if n == 0 {
			break
		}
	}
	return fewest >= 0 && a.part(func() bool { return a.inside(g, of, b, best) })
}

// inside is branch in one domain of it.
func (a *attempt) inside(g *gangs, of *gang, b *branch, in domain) bool {
	if !b.keyed() {
		want, _ := g.draftOf(a.c, of, b)
		return want != nil && a.place(g.deal(of, want), in)
	}
	have := 0
	for _, next := range b.below {
		if have < b.group.minCount && a.branch(g, of, next, in) {
			have++
		}
	}
	return have >= b.group.minCount
}

// placeOrTake takes the best room for a member that is free in a trial, or that of others, and what upstream's plugins hold there.
func (x *preemption) placeOrTake(ctx context.Context, c *core, p *pod, in domain, facts *place.PreemptionFacts, coming []place.PodRef, out *gangTrial) (id place.ClassID, d place.Decision, ok bool) {
	id = c.table.Class(in.narrow(c.ownShape(p)))
	facts.Also = nil
	var trial Trial
	if c.judge.needed(p) {
		if trial = c.judge.begin(ctx, p); trial == nil {
			return id, d, false
		}
		facts.Also = c.judge.without(ctx, c, trial, slices.Concat(coming, out.victims))
	}
	facts.Also = andKubelets(c, p, facts.Also)
	var victims []place.PodRef
	ok = c.table.Try(func() bool {
		if d, ok = free(c, id, facts.Also); !ok {
			found, some := c.table.Preempt(id, facts)
			if !some {
				return false
			}
			victims = found.Victims
			for _, ref := range victims {
				c.table.Remove(ref)
			}
			if d, ok = c.table.Assume(id, found.Node); !ok {
				return false
			}
		}
		if trial == nil {
			return true
		}
		// The reservation is the last one found for the node.
		if !facts.Also(string(d.Node), victims) || trial.Reserve(ctx, string(d.Node)) != nil {
			c.judge.refusals++
			return false
		}
		out.undo = append(out.undo, func() { trial.Unreserve(ctx, string(d.Node)) })
		return true
	})
	if !ok {
		return id, d, false
	}
	for _, ref := range victims {
		x.gone(facts, ref)
	}
	out.victims = append(out.victims, victims...)
	return id, d, true
}

// free takes the best room that is free, on a machine that also accepts where that is asked.
func free(c *core, id place.ClassID, accepts func(string, []place.PodRef) bool) (place.Decision, bool) {
	if accepts == nil {
		return c.table.Decide(id)
	}
	return assumeAccepted(c, id, accepts)
}

// assumeAccepted takes the room of the best machine that also accepts.
func assumeAccepted(c *core, id place.ClassID, accepts func(string, []place.PodRef) bool) (place.Decision, bool) {
	for candidate := range c.table.Candidates(id) {
		if accepts(candidate.Name, nil) {
			return c.table.Assume(id, candidate.Node)
		}
	}
	return place.Decision{}, false
}

// gone takes a victim out of what the next preemption must know.
func (x *preemption) gone(f *place.PreemptionFacts, ref place.PodRef) {
	for _, b := range f.Pod(ref).Budgets {
		f.Allowed[b]--
	}
	for i := range f.Gangs {
		f.Gangs[i].Members = slices.DeleteFunc(f.Gangs[i].Members, func(m place.PodRef) bool { return m == ref })
	}
}

// nominee is who waits for some victims; false when one of them left in this very moment.
func (x *preemption) nominee(c *core, refs []place.PodRef) (*nominee, bool) {
	n := &nominee{victims: map[types.UID]*victim{}, since: c.now()}
	units := map[unit]*gangLoss{}
	for _, ref := range refs {
		v := c.byRef[ref]
		if v == nil {
			return nil, false
		}
		var gang *gangLoss
		if v.gang != nil {
			u := c.gangs.unitOf(v)
			if gang = units[u]; gang == nil {
				members, least := c.gangs.together(u)
				gang = &gangLoss{least: least}
				for _, m := range members {
					if m.stage == bound && m.object.DeletionTimestamp == nil {
						gang.size++
					}
				}
				units[u] = gang
			}
		}
		n.victims[v.object.UID] = &victim{object: v.object, of: n, gang: gang, deadline: c.now().Add(c.noticeOf(v.object)), charge: charge{pool: c.poolOf(v.node), owner: c.ownerOf(v.object)}}
	}
	for _, v := range n.victims {
		if v.charge.pool != "" {
			v.charge.of, v.charge.all = c.tally.of(c, v.charge.owner, v.charge.pool)
		}
	}
	return n, true
}

// hold nominates a pod for the room of a decision.
func (x *preemption) hold(c *core, n *nominee, p *pod, d place.Decision, class place.ClassID) {
	c.hold(p, d, nominated)
	n.pods, n.at = append(n.pods, p), append(n.at, spot{class: class, node: d.Node, cells: d.Cells})
	x.byPod[p.object.UID] = n
	x.onNode[p.node]++
	x.touch(p.node)
}

// begin announces what is taken: to the victims, and on the pods that wait.
func (x *preemption) begin(c *core, n *nominee) {
	var names []string
	for _, uid := range sortedKeys(n.victims) {
		x.takenBy[uid] = n
		names = append(names, name(n.victims[uid].object))
	}
	x.announce(c, n)
	slices.Sort(names)
	if len(names) > 3 {
		names = append(names[:3], fmt.Sprintf("%d more", len(names)-3))
	}
	for i, p := range n.pods {
		takes := fmt.Sprintf("takes the room of %s on node %s", strings.Join(names, ", "), p.node)
		n.at[i].why = decisionText("no room was free, so it " + takes)
		if len(names) == 0 {
			takes = "takes room on node " + p.node + " that pods leave, or that is kept for pods of lower priority"
			n.at[i].why = decisionText("no room was free, so it " + takes)
		}
		c.reportWait(p, takes+", and waits until they are gone")
	}
	x.ask(c, n)
}

// announce writes the notices of the victims that may save their work.
func (x *preemption) announce(c *core, n *nominee) {
	for _, uid := range sortedKeys(n.victims) {
		if v := n.victims[uid]; !v.asked && v.deadline.After(c.now()) {
			v.notice = noticeEpoch(v.deadline)
			x.notice(v.object, v.deadline)
		}
	}
}

// noticeOf is how long a pod may save its work before it is evicted: as long as its job asks for.
func (c *core) noticeOf(o *corev1.Pod) time.Duration { return c.gangs.checkpoints[workloadOf(o)] }

// workloadOf is the name of a pod's controller in the maps of [gangs]; empty for none.
func workloadOf(o *corev1.Pod) string {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return o.Namespace + "/" + owner.Kind + "/" + owner.Name
	}
	return ""
}

// poolOf is the pool of a node; empty for none.
func (c *core) poolOf(node string) string {
	if n := c.nodes[node]; n != nil {
		return n.pool
	}
	return ""
}

// ownerOf is the name under which a ledger counts a pod, in the words of the controller.
func (c *core) ownerOf(o *corev1.Pod) string {
	if service := c.claims.claimantOf(o); service != "" {
		return "service " + service
	}
	if job := c.jobOf(o); job != "" {
		return "job " + job
	}
	return "pod " + name(o)
}

// jobOf is the ElasticJob of a pod; empty for none.
func (c *core) jobOf(o *corev1.Pod) string { return c.gangs.jobOf[workloadOf(o)] }

// facts are what protects a pod, with the gangs and budgets of the pods that are asked about: where no machine could help, none is.
func (x *preemption) facts(c *core) *place.PreemptionFacts {
	f := &place.PreemptionFacts{}
	var budgets []string
	gangs, units := map[unit]int{}, map[types.UID]unit{}
	f.Pod = func(ref place.PodRef) place.PodFacts {
		if budgets == nil {
			budgets = sortedKeys(x.budgets)
			for _, full := range budgets {
				f.Allowed = append(f.Allowed, x.budgets[full].allowed)
			}
		}
		var u unit
		if p := c.byRef[ref]; p != nil && p.gang != nil {
			var known bool
			if u, known = units[p.object.UID]; !known {
				u = c.gangs.unitOf(p)
				units[p.object.UID] = u
			}
		}
		if u.gang != nil && gangs[u] == 0 {
			members, least := c.gangs.together(u)
			facts := place.GangFacts{Min: least}
			for _, m := range members {
				// One whose binding is under way is no victim yet: the gang is not taken without it.
				if m.stage != waits && m.stage != nominated {
					facts.Members = append(facts.Members, m.ref)
				}
			}
			f.Gangs = append(f.Gangs, facts)
			gangs[u] = len(f.Gangs)
		}
		return x.protects(c, ref, gangs[u], budgets)
	}
	return f
}

// unit is what is taken together: a gang, or a branch of the tree that it is.
type unit struct {
	gang   *gang
	branch *podGroup // nil where the gang is no tree
}

// unitOf is the unit of a pod that has a gang.
func (g *gangs) unitOf(p *pod) unit {
	if t := g.tree(p.gang); t != nil {
		if b := t.lostWith(groupName(p.object)); b != nil {
			return unit{p.gang, b.group}
		}
	}
	return unit{gang: p.gang}
}

// together are the pods of a unit, and how many of them it needs.
func (g *gangs) together(u unit) (members []*pod, least int) {
	x := u.gang
	if t := g.tree(x); t != nil && u.branch != nil {
		b := t.find(u.branch)
		members = b.pods()
		slices.SortFunc(members, func(a, b *pod) int { return strings.Compare(string(a.object.UID), string(b.object.UID)) })
		if least = len(members); !u.branch.composite && !u.branch.whole {
			least = u.branch.minCount
		}
		return members, least
	}
	for _, uid := range sortedKeys(x.members) {
		members = append(members, x.members[uid])
	}
	return members, g.minimum(x)
}

// minimum is how many pods a gang needs that is no tree.
func (g *gangs) minimum(x *gang) int {
	n := 0
	if job := g.jobs[x.job]; job != nil {
		for _, r := range job.roles {
			n += r.min
		}
	}
	if group := g.groups[x.group]; group != nil {
		if n = max(n, group.minCount); group.whole {
			n = len(x.members) // where one goes all go
		}
	}
	return n
}

// protects says what keeps a pod from being taken: our own components, the system's pods, bindings under way, and a start a moment ago.
func (x *preemption) protects(c *core, ref place.PodRef, gang int, budgets []string) place.PodFacts {
	p := c.byRef[ref]
	if p == nil || p.stage != bound || p.object.DeletionTimestamp != nil {
		if p != nil && p.stage != bound {
			x.endsAt(c.now().Add(askAgain))
		}
		return place.PodFacts{Protected: true}
	}
	o := p.object
	out := place.PodFacts{Gang: gang}
	claim := facts.ClaimOf(o)
	out.Protected = o.Namespace == c.c.Namespace && claim.Component != "" || claim.Standing(witness{c, claim.Owner.UID}) == facts.IsSystem
	if !p.started.IsZero() {
		out.Started = p.started.Unix()
		if end := p.started.Add(x.protect); !out.Protected && c.now().Before(end) {
			out.Protected = true
			x.endsAt(end)
		}
	}
	for i, full := range budgets {
		if b := x.budgets[full]; b.namespace == o.Namespace && b.selector.Matches(labels.Set(o.Labels)) {
			out.Budgets = append(out.Budgets, i)
		}
	}
	if r := x.refused.Refused(o.UID, c.now()); !out.Protected && r.Holds(c.now()) {
		out.Protected = true
		x.endsAt(r.Until)
	}
	return out
}

// witness finds what proves that a pod is of the system, as the controller and the node agents do. The scheduler watches no DaemonSets: outside of
// tenants' namespaces it believes the pod, whose owner has the UID daemon. That spares at most a pod too many.
type witness struct {
	c      *core
	daemon types.UID
}

func (w witness) IsTenant(namespace string) bool {
	return w.c.tenants.namespaces[namespace][v1alpha1.LabelTenant] == "true"
}

func (witness) IsDaemonKind(facts.Kind) bool { return false }

func (w witness) DaemonUID(facts.Kind, string, string) types.UID { return w.daemon }

func (w witness) NodeUID(name string) types.UID {
	if n := w.c.nodes[name]; n != nil && n.node != nil {
		return n.node.UID
	}
	return ""
}

// ask evicts the victims whose notice is over, once the ledgers of their pools were charged for them. A freeze holds it.
func (x *preemption) ask(c *core, n *nominee) {
	if n.charging || c.frozen != "" {
		return
	}
	now := c.now()
	var due []*victim
	var owed []charge
	for _, uid := range sortedKeys(n.victims) {
		v := n.victims[uid]
		if v.asked || v.deadline.After(now) && !acknowledgedNotice(c.pods[uid], v.notice) {
			continue
		}
		due = append(due, v)
		if v.charge.pool != "" && !v.paid {
			v.charge.at = now
			owed = append(owed, v.charge)
		}
	}
	if len(owed) > 0 {
		n.charging = true
		x.charge(owed, func(err error) {
			n.charging = false
			if len(n.victims) == 0 { // the nomination is over, or nothing has to go for it any more
				if err == nil {
					x.uncharge(owed)
				}
				return
			}
			for _, v := range due {
				if err == nil {
					v.paid = v.charge.pool != ""
				} else {
					v.deadline = c.now().Add(askAgain)
				}
			}
			if err != nil {
				c.metrics.preempted.WithLabelValues("held").Inc()
				for _, p := range n.pods {
					c.reportWait(p, "waits to take room on node "+p.node+": "+err.Error())
				}
				return
			}
			x.ask(c, n)
		})
		return
	}
	// While none has ended, one is asked at a time, and first those that budgets protect: where one is refused, no other has lost its work for nothing.
	slices.SortStableFunc(due, func(a, b *victim) int { return fleet.TrueFirst(x.budgeted(a.object), x.budgeted(b.object)) })
	for _, v := range due {
		switch {
		case v.asked, n.victims[v.object.UID] == nil:
			continue
		case (n.accepted == 0 || x.budgeted(v.object)) && x.asking(n):
			return // its answer asks for the next
		}
		v.asked = true
		if v.gang != nil {
			v.gang.asked++
		}
		x.evict(v.object, func(err error) { x.answered(c, v, err) })
	}
}

// asking reports whether an eviction has no answer yet.
func (x *preemption) asking(n *nominee) bool {
	for _, v := range n.victims {
		if v.asked && !v.ends {
			return true
		}
	}
	return false
}

// budgeted reports whether a budget may refuse a pod's eviction.
func (x *preemption) budgeted(o *corev1.Pod) bool { return x.budgetsOf(o) != "" }

// budgetsOf names the budgets that select a pod.
func (x *preemption) budgetsOf(o *corev1.Pod) string {
	var out []string
	for _, full := range sortedKeys(x.budgets) {
		if b := x.budgets[full]; b.namespace == o.Namespace && b.selector.Matches(labels.Set(o.Labels)) {
			out = append(out, full)
		}
	}
	return strings.Join(out, " and ")
}

// answered takes the answer to an eviction over. Where the API server denied it, its charge is returned and the pod is not taken before another try is due.
// The decision is taken back at once, so that other victims are looked for, unless some have ended already: then the rest is waited for.
func (x *preemption) answered(c *core, v *victim, err error) {
	n := v.of
	if errors.Is(err, errNotOurs) { // nothing was sent
		v.refused()
		v.deadline = c.now().Add(askAgain)
		return
	}
	a := eviction.Classify(v.object.Namespace, err)
	if a.Cause == fleet.RefusedByBudgets {
		a.By = x.budgetsOf(v.object)
	}
	refusal := x.refused.Note(v.object.UID, v.object.Namespace, a, c.now())
	_, waited := n.victims[v.object.UID]
	if a.Done() {
		c.metrics.preempted.WithLabelValues("accepted").Inc()
		v.ends = true
		if err == nil {
			x.report(v.object, n.why)
		}
		if n.accepted++; len(n.victims) > 0 {
			x.ask(c, n)
		}
		return
	}
	c.metrics.preempted.WithLabelValues("refused").Inc()
	c.log.Info("an eviction was refused", "pod", name(v.object), "by", refusal.Who(), "again", refusal.Until, "err", err)
	v.refused()
	switch {
	case !a.Definite(): // the pod may end, so its charge stays
		v.charge = charge{}
	case v.paid:
		x.uncharge([]charge{v.charge})
	}
	v.paid = false
	if !waited {
		return
	}
	if v.deadline = refusal.Until; n.accepted > 0 || !a.Definite() {
		return
	}
	text := fmt.Sprintf("%s refused to evict %s", refusal.Who(), name(v.object))
	if fix := refusal.Fix(); fix != "" {
		text += "; to fix: " + fix
	}
	pods := n.pods
	x.forget(c, n)
	x.takeBack(c, n)
	for _, p := range pods {
		c.reportWait(p, text)
	}
}

// refused notes that the eviction came to nothing.
func (v *victim) refused() {
	if v.asked = false; v.gang != nil {
		v.gang.asked--
	}
}

// thawed announces the notices again that ran while all was frozen.
func (x *preemption) thawed(c *core) {
	for _, n := range x.all() {
		n.since = c.now()
		for uid, v := range n.victims {
			if p := c.pods[uid]; p != nil && !v.asked {
				v.deadline = c.now().Add(c.noticeOf(p.object))
			}
		}
		x.announce(c, n)
		x.ask(c, n)
	}
	x.tryAgain(c, c.now())
}

// preemptionNotice stands for the loan in the notice of a preemption.
const preemptionNotice = "preemption"

// noticeEpoch is the epoch of the notice of a preemption. A pod may have answered the notice of an earlier one, of which nothing came.
func noticeEpoch(deadline time.Time) int64 { return deadline.Unix() }

func acknowledgedNotice(p *pod, epoch int64) bool {
	return p != nil && epoch > 0 && strings.Contains(p.object.Annotations[v1alpha1.AnnotationNotice], `"`+preemptionNotice+`"`) &&
		p.object.Annotations[v1alpha1.AnnotationAck] == strconv.FormatInt(epoch, 10)
}

// touch notes that room may have come free on a node.
func (x *preemption) touch(node string) {
	if x.onNode[node] > 0 {
		x.touched[node] = true
	}
}

// forget ends a nomination: it is carried out, or taken back. Victims that were not evicted stay, and an answer that is still to come evicts none. But of a
// gang that lost a pod to it and is of no use without, the others go all the same: they are asked one after another, and the room may be there, or not be
// wanted any more, before their turn came.
func (x *preemption) forget(c *core, n *nominee) {
	for i, p := range n.pods {
		delete(x.byPod, p.object.UID)
		node := string(n.at[i].node)
		c.dirty[node] = true // also where the pod went elsewhere: others may have its room
		if x.onNode[node]--; x.onNode[node] == 0 {
			delete(x.onNode, node)
		}
	}
	var back []charge // for what was never asked, or was refused
	rest := &nominee{victims: map[types.UID]*victim{}, since: c.now(), accepted: n.accepted, why: n.why}
	for _, uid := range sortedKeys(n.victims) {
		if v := n.victims[uid]; len(n.pods) > 0 && v.gang.broken() {
			v.of, rest.victims[uid], x.takenBy[uid] = rest, v, rest
			continue
		}
		delete(x.takenBy, uid)
		if v := c.pods[uid]; v != nil && v.stage == bound && v.object.DeletionTimestamp == nil {
			c.table.Stays(v.ref)
		}
		if v := n.victims[uid]; v.paid && !v.asked {
			back = append(back, v.charge)
		}
	}
	if len(rest.victims) > 0 {
		x.rests = append(x.rests, rest)
	}
	if len(back) > 0 {
		x.uncharge(back)
	}
	clear(n.victims)
	maps.DeleteFunc(x.rollbacks, func(_ queue.Key, of *nominee) bool { return of == n })
	x.rests = slices.DeleteFunc(x.rests, func(of *nominee) bool { return of == n })
}

// left notes that a pod is over: a victim, or one that waits. A gang that lost a pod is decided again as a whole.
func (x *preemption) left(c *core, uid types.UID) {
	if n := x.byPod[uid]; n != nil {
		x.forget(c, n)
		n.pods = slices.DeleteFunc(n.pods, func(p *pod) bool { return p.object.UID == uid })
		x.takeBack(c, n)
	}
	x.refused.Forget(uid)
	delete(x.leaving, uid)
	delete(x.nothing, queue.Key(uid))
	if n := x.takenBy[uid]; n != nil {
		delete(n.victims, uid)
		delete(x.takenBy, uid)
		if len(n.pods) > 0 {
			x.touch(n.pods[0].node)
		}
	}
}

// all are those who wait for victims, each once: pods and gangs in the order of their pods, and then those for whom no pod waits.
func (x *preemption) all() (out []*nominee) {
	seen := map[*nominee]bool{}
	for _, uid := range sortedKeys(x.byPod) {
		if n := x.byPod[uid]; !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	for _, key := range sortedKeys(x.rollbacks) {
		out = append(out, x.rollbacks[key])
	}
	return append(out, x.rests...)
}

// rollBack evicts what is bound of a gang that did not form, all of it or none, as victims are evicted: not in a freeze, not a moment after a start, charged
// to the ledgers, and with notice. It is asked again and again while the gang lacks pods.
func (x *preemption) rollBack(c *core, key queue.Key, pods []*pod, why string) {
	if x.rollbacks[key] != nil || c.frozen != "" {
		return
	}
	var refs []place.PodRef
	for _, p := range pods {
		if x.takenBy[p.object.UID] != nil || x.isProtected(c, p) {
			return
		}
		refs = append(refs, p.ref)
	}
	n, ok := x.nominee(c, refs)
	if !ok {
		return
	}
	n.why = why
	for uid := range n.victims {
		x.takenBy[uid] = n
	}
	for _, ref := range refs {
		c.table.Leaving(ref)
	}
	x.rollbacks[key] = n
	x.announce(c, n)
	x.ask(c, n)
}

// isProtected reports whether a pod must not be taken now, outside of a search.
func (x *preemption) isProtected(c *core, p *pod) bool {
	ends := x.ends
	defer func() { x.ends = ends }()
	return x.protects(c, p.ref, 0, nil).Protected
}

// keepRollbacks ends those of gangs that formed, or are gone.
func (x *preemption) keepRollbacks(c *core, goesOn func(queue.Key) bool) {
	for _, key := range sortedKeys(x.rollbacks) {
		if n := x.rollbacks[key]; len(n.victims) == 0 || !goesOn(key) {
			x.forget(c, n)
		}
	}
}

// settle has the nominated pods decided whose room has come free, and ends the nominations whose room is not to come any more: those of the lowest priority
// first, of equal ones the latest, since each of them may have been in the way of another.
func (x *preemption) settle(c *core) {
	for _, n := range x.rests {
		x.ask(c, n)
	}
	if len(x.touched) == 0 {
		return
	}
	var changed []*nominee
	for _, uid := range sortedKeys(x.byPod) {
		n := x.byPod[uid]
		if slices.ContainsFunc(n.pods, func(p *pod) bool { return x.touched[p.node] }) && !slices.Contains(changed, n) {
			changed = append(changed, n)
		}
	}
	clear(x.touched)
	slices.SortStableFunc(changed, func(a, b *nominee) int {
		return cmp.Or(cmp.Compare(a.pods[0].shape.Priority, b.pods[0].shape.Priority), b.since.Compare(a.since))
	})
	for _, n := range changed {
		switch {
		case slices.ContainsFunc(n.pods, func(p *pod) bool { return !c.table.Comes(p.ref) }):
			x.forget(c, n)
			x.takeBack(c, n)
		case x.isHere(c, n):
			c.queue.Again(n.pods[0].key)
		}
	}
}

// isHere reports whether the room of a nomination has come. Upstream's plugins are asked once all pods that leave are gone: the table alone does not know what
// was in their way.
func (x *preemption) isHere(c *core, n *nominee) bool {
	return !slices.ContainsFunc(n.pods, func(p *pod) bool { return !c.table.Settle(p.ref) || n.judged && c.table.Empties(fleet.NodeID(p.node)) })
}

// lift takes a nomination out of the table for as long as its pods are decided.
func (x *preemption) lift(c *core, n *nominee) {
	for _, p := range n.pods {
		c.release(p)
		p.stage = waits
	}
}

// goesOn puts a nomination back that was lifted, as the decision placed its pods nowhere. It returns false where it ends: its room is not to come any more,
// or it is there and was refused. That is remembered, so that no more pods are evicted for nothing.
func (x *preemption) goesOn(c *core, n *nominee, refused bool) bool {
	for i, p := range n.pods {
		s := &n.at[i]
		c.hold(p, c.table.Hold(s.class, s.node, s.cells), nominated)
	}
	key, here := n.pods[0].key, refused && x.isHere(c, n)
	if !here && !slices.ContainsFunc(n.pods, func(p *pod) bool { return !c.table.Comes(p.ref) }) {
		return true
	}
	if here {
		v := x.nothing[key]
		v.until = c.now().Add(min(refusals<<min(v.times, 4), time.Hour))
		v.times++
		x.nothing[key] = v
	}
	x.forget(c, n)
	for _, p := range n.pods {
		c.unassume(p)
	}
	return false
}

// of is the nomination of a gang; nil for none.
func (x *preemption) of(g *gang) *nominee {
	for uid, p := range g.members {
		if n := x.byPod[uid]; n != nil && p.key == g.key {
			return n
		}
	}
	return nil
}

// drop ends a nomination that was lifted; nil for none.
func (x *preemption) drop(c *core, n *nominee) {
	if n == nil {
		return
	}
	x.forget(c, n)
	for _, p := range n.pods {
		p.node, p.cells, p.why = "", nil, ""
	}
}

// tookOver ends a nomination, nil for none, whose pods are placed: where they were nominated they say whose room that was.
func (x *preemption) tookOver(c *core, n *nominee, placed []*pod) {
	if n == nil {
		return
	}
	x.forget(c, n)
	for _, p := range placed {
		i := slices.Index(n.pods, p)
		switch {
		case i < 0 || n.at[i].node != fleet.NodeID(p.node):
		case n.judged:
			p.why = decisionText(n.at[i].why, p.why)
		default:
			p.why = n.at[i].why
		}
	}
}

// expire evicts those whose notice is over, and takes decisions back whose victims do not go.
func (x *preemption) expire(c *core, now time.Time) {
	x.rests = slices.DeleteFunc(x.rests, func(n *nominee) bool { return len(n.victims) == 0 })
	for _, n := range x.all() {
		if len(n.victims) == 0 {
			continue // without victims it ends when its room is not to come any more
		}
		// A refusal moves the deadline on, so a victim that is always refused is given up after its notice and some refusals.
		last, most := n.since, refusals
		for _, v := range n.victims {
			if end := v.deadline.Add(graceOf(v.object)); end.After(last) {
				last = end
			}
			needs := c.noticeOf(v.object)
			if v.asked {
				needs += graceOf(v.object)
			}
			most = max(most, refusals+needs)
		}
		if c.frozen == "" && x.inVain(n, now) {
			x.forget(c, n)
			x.takeBack(c, n)
			continue
		}
		if now.Sub(n.since) < patience || c.frozen != "" || now.Before(last.Add(patience)) {
			x.ask(c, n)
			if now.Sub(n.since) < most {
				continue
			}
		}
		x.forget(c, n)
		x.takeBack(c, n)
	}
	x.lateness(c, now)
	x.tryAgain(c, now)
}

// lateness says of the pods that leave whether their room is to come: of those that should be gone by now, and of those with minutes left, it is not.
func (x *preemption) lateness(c *core, now time.Time) {
	for _, uid := range sortedKeys(x.leaving) {
		if p := c.pods[uid]; p != nil && c.table.Late(p.ref, x.isLate(p.object, now)) {
			c.touch(p.node)
		}
	}
	maps.DeleteFunc(x.nothing, func(_ queue.Key, v vainly) bool { return now.After(v.until.Add(time.Hour)) })
}

// isLate reports whether a pod that leaves should be gone by now, or has minutes left. A victim with minutes left is waited for: no other one is sooner gone, and
// to give it up would take one pod after another.
func (x *preemption) isLate(o *corev1.Pod, now time.Time) bool {
	grace := graceOf(o)
	if s := o.DeletionGracePeriodSeconds; s != nil {
		grace = seconds(*s)
	}
	end := x.leaving[o.UID].Add(grace)
	return now.After(end.Add(patience)) || x.takenBy[o.UID] == nil && end.After(now.Add(refusals))
}

// inVain reports whether all victims that are left were refused in a way that no wait ends: the others are gone, and other victims are looked for.
func (x *preemption) inVain(n *nominee, now time.Time) bool {
	for uid, v := range n.victims {
		if r := x.refused.Refused(uid, now); v.ends || !r.Never {
			return false
		}
	}
	return len(n.victims) > 0 && !n.charging
}

// takeBack gives up the room that a pod or a gang was nominated for, and wakes those whom it helps.
func (x *preemption) takeBack(c *core, n *nominee) {
	for _, p := range n.pods {
		c.dirty[p.node] = true
		c.unassume(p)
	}
	for _, p := range n.pods {
		c.enqueue(p)
		c.queue.Later(p.key, c.now())
	}
}

func graceOf(o *corev1.Pod) time.Duration {
	if s := o.Spec.TerminationGracePeriodSeconds; s != nil {
		return seconds(*s)
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// seconds is a number of seconds from outside: of what no duration holds it is a year.
func seconds(n int64) time.Duration {
	return time.Duration(min(n, 365*24*60*60)) * time.Second
}

// setBudget takes a PodDisruptionBudget over.
func (c *core) setBudget(o *policyv1.PodDisruptionBudget) {
	s, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		s = labels.Everything()
	}
	was := c.preempt.budgets[o.Namespace+"/"+o.Name]
	is := &budget{namespace: o.Namespace, selector: s, allowed: int(o.Status.DisruptionsAllowed)}
	c.preempt.budgets[o.Namespace+"/"+o.Name] = is
	selects := was == nil || was.selector.String() != s.String()
	if selects || is.allowed > 0 && was.allowed <= 0 {
		c.budgetChanged(o.Namespace, selects)
	}
}

func (c *core) removeBudget(o *policyv1.PodDisruptionBudget) {
	delete(c.preempt.budgets, o.Namespace+"/"+o.Name)
	c.budgetChanged(o.Namespace, true)
}

// budgetChanged makes another try due for pods that a budget refused, and wakes what might take their room.
func (c *core) budgetChanged(namespace string, selects bool) {
	x := c.preempt
	if x.refused.BudgetChanged(namespace, selects, c.now()) {
		x.retrySoon(c)
	}
}

// podRelabelled makes another try due for a refused pod whose labels changed: other budgets may select it now.
func (c *core) podRelabelled(uid types.UID) {
	if c.preempt.refused.PodChanged(uid, c.now()) {
		c.preempt.retrySoon(c)
	}
}

// retrySoon wakes the classes that wait for another try.
func (x *preemption) retrySoon(c *core) {
	for _, class := range sortedKeys(x.retries) {
		r := x.retries[class]
		if at := c.now().Add(eviction.Least); r.at.IsZero() || at.Before(r.at) {
			r.at = at
		}
		x.retries[class] = r
	}
}

// writeNotice announces on a pod when it will be evicted, in the words of the checkpoint notice of a recall.
func (s *Scheduler) writeNotice(ctx context.Context, o *corev1.Pod, deadline time.Time) error {
	text, err := json.Marshal(map[string]any{"loan": preemptionNotice, "epoch": noticeEpoch(deadline), "deadline": deadline.UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	// An answer that is there is to another notice.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.UID, "annotations": map[string]any{v1alpha1.AnnotationNotice: string(text), v1alpha1.AnnotationAck: nil}}})
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().Pods(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
