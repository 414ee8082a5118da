package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/scheduler/host/queue"
)

// deepest is how many groups may stand one below another, the PodGroup counted: upstream's WorkloadMaxTreeDepth.
const deepest = 4

// compositeGroups are the versions of CompositePodGroup that are understood, the preferred one first.
func compositeGroups() []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, v := range []string{"v1", "v1beta1", "v1alpha3"} {
		out = append(out, schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: v, Resource: "compositepodgroups"})
	}
	return out
}

// readComposite reads a CompositePodGroup. Its minimum is of groups; with the basic policy one of them is enough, as upstream has it.
func readComposite(u *unstructured.Unstructured) *podGroup {
	return readAs(u, "compositepodgroups", "minGroupCount", true)
}

// full is the name under which a group is kept.
func (g *podGroup) full() string { return g.namespace + "/" + g.name }

// adopt enters a group below its parent; abandon takes it out again.
func (g *gangs) adopt(o *podGroup) {
	clear(g.shapes)
	if o.parent == "" {
		return
	}
	of := o.namespace + "/" + o.parent
	if g.children[of] == nil {
		g.children[of] = map[child]bool{}
	}
	g.children[of][child{o.composite, o.full()}] = true
}

func (g *gangs) abandon(o *podGroup) {
	clear(g.shapes)
	if o.parent == "" {
		return
	}
	of := o.namespace + "/" + o.parent
	if delete(g.children[of], child{o.composite, o.full()}); len(g.children[of]) == 0 {
		delete(g.children, of)
	}
}

// child is a group below a CompositePodGroup.
type child struct {
	composite bool
	name      string
}

// root is the CompositePodGroup at the top of a group's tree. Where the tree cannot be placed there is none, and why says so; invalid where waiting for other
// objects does not help.
func (g *gangs) root(o *podGroup) (top *podGroup, why string, invalid bool) {
	seen := map[string]bool{}
	for top = o; top.parent != ""; {
		full := top.namespace + "/" + top.parent
		next := g.composites[full]
		switch {
		case next == nil:
			return nil, "waits for the CompositePodGroup " + full + ", which does not exist", false
		case seen[full]:
			return nil, "the CompositePodGroup " + full + " is above itself: to fix: end the circle of parents", true
		}
		seen[full] = true
		top = next
	}
	if !top.composite {
		return nil, "", false
	}
	why, known := g.shapes[top.full()]
	if !known {
		why = g.misshapen(top)
		g.shapes[top.full()] = why
	}
	if why != "" {
		return nil, why, true
	}
	return top, "", false
}

// misshapen says what of a tree upstream does not allow, and does not check when the objects are made.
func (g *gangs) misshapen(top *podGroup) (why string) {
	var walk func(o *podGroup, level int)
	walk = func(o *podGroup, level int) {
		switch {
		case level > deepest:
			why = fmt.Sprintf("below the CompositePodGroup %s more than %d groups stand one below another: to fix: use fewer levels", top.full(), deepest)
		case o.workload != top.workload:
			why = fmt.Sprintf("the groups below the CompositePodGroup %s are of two Workloads, %s and %s: to fix: refer to one", top.full(), top.workload, o.workload)
		default:
			for _, c := range g.below(o) {
				walk(c, level+1)
			}
		}
	}
	walk(top, 1)
	return why
}

// below are the groups right below a CompositePodGroup, by name; those that this process knows.
func (g *gangs) below(o *podGroup) []*podGroup {
	if !o.composite {
		return nil
	}
	var out []*podGroup
	for c := range g.children[o.full()] {
		if c.composite {
			out = append(out, g.composites[c.name])
		} else {
			out = append(out, g.groups[c.name])
		}
	}
	slices.SortFunc(out, func(a, b *podGroup) int { return strings.Compare(a.full(), b.full()) })
	return out
}

// enqueueTree puts a pod that waits into the queue as a part of its tree; false for one that needs nothing more of the others.
func (g *gangs) enqueueTree(c *core, x *gang, p *pod) bool {
	if x.missing > 0 {
		g.forms(c, x, p)
		return true
	}
	t := g.tree(x)
	if t == nil {
		g.forms(c, x, p)
		return true
	}
	alone := t.alone()
	if alone[p] {
		return false
	}
	switch {
	case t.met || !g.hasTime(x):
		x.since = time.Time{}
	case x.since.IsZero():
		x.since = c.now()
	}
	x.missing = 0
	if !slices.ContainsFunc(t.due(), func(b *branch) bool { return b.ready }) {
		if !t.met { // then no pod that comes stands alone
			x.missing = t.missing
		}
		g.forms(c, x, p)
		return true
	}
	g.whole(c, x, p, alone)
	return true
}

// branch is a group of a tree with what of it is there.
type branch struct {
	group *podGroup
	below []*branch
	// there are its pods that have a node, or are to have one; waiting those that wait with their gang. Of a PodGroup alone.
	there, waiting []*pod
	// met: its minimum has nodes. ready: it has, or could have with the pods that wait. missing is how many pods must come at least until it is ready.
	met, ready bool
	missing    int
}

// tree is the tree of a gang; nil where its CompositePodGroup is not known any more.
func (g *gangs) tree(x *gang) *branch { return g.treeWith(x, x.runs) }

// treeWith is the tree of a gang with the pods that count as those that have a node.
func (g *gangs) treeWith(x *gang, counts func(*pod) bool) *branch {
	top := g.composites[x.composite]
	if top == nil || x.composite == "" {
		return nil
	}
	pods := map[string][]*pod{}
	for _, p := range x.members {
		full := groupName(p.object)
		pods[full] = append(pods[full], p)
	}
	return g.branch(top, pods, counts)
}

func (g *gangs) branch(o *podGroup, pods map[string][]*pod, counts func(*pod) bool) *branch {
	b := &branch{group: o}
	if !o.composite {
		for _, p := range pods[o.full()] {
			if counts(p) {
				b.there = append(b.there, p)
			} else {
				b.waiting = append(b.waiting, p)
			}
		}
		b.missing = max(o.minCount-len(b.there)-len(b.waiting), 0)
		b.met, b.ready = len(b.there) >= o.minCount, b.missing == 0
		return b
	}
	met := 0
	var missing []int
	for _, c := range g.below(o) {
		next := g.branch(c, pods, counts)
		b.below = append(b.below, next)
		missing = append(missing, next.missing)
		if next.met {
			met++
		}
	}
	b.missing = least(missing, o.minCount)
	b.met, b.ready = met >= o.minCount, b.missing == 0
	return b
}

// least is the sum of the n smallest numbers. A group that does not exist yet needs one pod at least.
func least(of []int, n int) (sum int) {
	for len(of) < n {
		of = append(of, 1)
	}
	slices.Sort(of)
	for _, k := range of[:n] {
		sum += k
	}
	return sum
}

// inOrder sorts a branch as it is gone through: pods by age. Of groups what has nodes comes first, so that a composite counts it before it looks for others; then
// the largest pods, since what they leave fits the small ones more often than the other way round.
func (b *branch) inOrder() (largest *pod) {
	slices.SortFunc(b.waiting, byAge)
	for _, p := range b.waiting {
		if largest == nil || largestFirst(p, largest) < 0 {
			largest = p
		}
	}
	of := map[*branch]*pod{}
	for _, c := range b.below {
		of[c] = c.inOrder()
		if p := of[c]; p != nil && (largest == nil || largestFirst(p, largest) < 0) {
			largest = p
		}
	}
	slices.SortStableFunc(b.below, func(x, y *branch) int {
		one, other := of[x], of[y]
		switch {
		case x.met != y.met && x.met:
			return -1
		case x.met != y.met:
			return 1
		case one == nil || other == nil:
			return 0
		}
		return largestFirst(one, other)
	})
	return largest
}

// pods are all pods of a branch.
func (b *branch) pods() []*pod {
	out := slices.Concat(b.there, b.waiting)
	for _, c := range b.below {
		out = append(out, c.pods()...)
	}
	return out
}

// running are the pods of a branch that have a node.
func (b *branch) running() []*pod {
	out := slices.Clone(b.there)
	for _, c := range b.below {
		out = append(out, c.running()...)
	}
	return out
}

// lacks is how many pods a branch needs at least until its minimum has nodes.
func (b *branch) lacks() int {
	if !b.group.composite {
		return max(b.group.minCount-len(b.there), 0)
	}
	var each []int
	for _, c := range b.below {
		each = append(each, c.lacks())
	}
	return least(each, b.group.minCount)
}

// due are the branches that are placed next, each whole or not at all: the tree where its minimum has no nodes, and else what of it has none below branches that
// have.
func (b *branch) due() []*branch {
	if !b.met {
		return []*branch{b}
	}
	var out []*branch
	for _, c := range b.below {
		out = append(out, c.due()...)
	}
	return out
}

// alone are the pods that wait and need nothing more of the others: their group has its minimum, and so has each one above it.
func (b *branch) alone() map[*pod]bool {
	out := map[*pod]bool{}
	var walk func(b *branch)
	walk = func(b *branch) {
		if !b.met {
			return
		}
		for _, p := range b.waiting {
			out[p] = true
		}
		for _, c := range b.below {
			walk(c)
		}
	}
	walk(b)
	return out
}

// needs is what a branch lacks, by PodGroup, where it takes the first groups that can have their minimum, and the pods that may make that.
func (b *branch) needs() (need shortage, from []*pod) {
	need.roles = map[string]int{}
	if !b.group.composite {
		need.roles[b.group.full()] = b.lacks()
		return need, b.waiting
	}
	left := b.group.minCount
	for _, c := range b.below {
		if c.met {
			left--
		}
	}
	for _, c := range b.below {
		if left > 0 && !c.met && c.ready {
			left--
			more, pods := c.needs()
			maps.Copy(need.roles, more.roles)
			from = append(from, pods...)
		}
	}
	slices.SortFunc(from, byAge)
	return need, from
}

// draftOf picks the pods that a branch is placed with; nil and the reason where a quota admits too few of them.
func (g *gangs) draftOf(c *core, x *gang, b *branch) (*draft, string) {
	need, from := b.needs()
	want, by := g.draft(c, x, from, need)
	if want == nil {
		return nil, usedUp(from[0].tenant, by, "gang")
	}
	return want, ""
}

// strict reports whether a branch has one way to be placed: it needs all of its groups that could be, and no group below it has a domain of its own.
func (b *branch) strict() bool {
	ready := 0
	for _, c := range b.below {
		if !c.ready {
			continue
		}
		ready++
		if c.group.topologyKey != "" || !c.strict() {
			return false
		}
	}
	return ready <= b.group.minCount || !b.group.composite
}

// keyed reports whether a group below a branch has a domain of its own.
func (b *branch) keyed() bool {
	return slices.ContainsFunc(b.below, func(c *branch) bool { return c.group.topologyKey != "" || c.keyed() })
}

// domains are those in which a branch may be, inside of another one: one where it runs already.
func (c *core) domainsOf(b *branch, in domain) []domain {
	key := b.group.topologyKey
	if key == "" {
		return []domain{in}
	}
	var out []domain
	for _, value := range c.domains(key, slices.Values(b.running()), in) {
		out = append(out, append(slices.Clone(in), domainOf(key, value)...))
	}
	return out
}

// placeBranch assumes what makes a branch whole, inside of a domain, and as many of the groups below it as can be; or nothing, with the reason. It goes
// through the groups in order and takes back those that do not fit, as upstream does.
func (g *gangs) placeBranch(ctx context.Context, c *core, x *gang, b *branch, in domain, whys map[*branch]string) (placed []*pod, ok bool) {
	if b.met && !b.group.composite {
		return nil, true
	}
	if !b.ready && !b.group.composite {
		whys[b] = fmt.Sprintf("its PodGroup has %d of the %d pods that it needs", len(b.there)+len(b.waiting), b.group.minCount)
		return nil, false
	}
	whys[b] = "no node has the label " + b.group.topologyKey
	for _, d := range c.domainsOf(b, in) {
		if placed, ok = g.placeInside(ctx, c, x, b, d, whys); ok {
			delete(whys, b)
			return placed, true
		}
	}
	return nil, false
}

// placeInside is placeBranch in one domain of the branch.
func (g *gangs) placeInside(ctx context.Context, c *core, x *gang, b *branch, in domain, whys map[*branch]string) (placed []*pod, ok bool) {
	if !b.group.composite {
		var want *draft
		if want, whys[b] = g.draftOf(c, x, b); want == nil {
			return nil, false
		}
		placed, whys[b] = g.placeIn(ctx, c, x, want, in)
		if whys[b] != "" && len(in) > 0 {
			whys[b] = fmt.Sprintf("in %s=%s, %s", in[len(in)-1].Key, in[len(in)-1].Value, whys[b])
		}
		return placed, placed != nil
	}
	changed := c.judge.changed
	have, left := 0, len(b.below)
	for _, next := range b.below {
		if have+left < b.group.minCount {
			break
		}
		left--
		got, ok := g.placeBranch(ctx, c, x, next, in, whys)
		if placed = append(placed, got...); ok {
			have++
		}
	}
	if have >= b.group.minCount {
		return placed, true
	}
	g.takeBack(c, placed)
	c.judge.changed = changed // all is as it was: nothing that waits is helped
	whys[b] = fmt.Sprintf("%d of the %d groups that the CompositePodGroup %s needs have room", have, b.group.minCount, b.group.full())
	for _, next := range b.below {
		if why := whys[next]; why != "" {
			whys[b] += ", and " + next.group.name + " has none: " + why
			break
		}
	}
	return nil, false
}

// decideTree places the tree of a CompositePodGroup: its minimum whole or nothing, and of what is beyond that each group whole or not at all.
func (g *gangs) decideTree(ctx context.Context, c *core, x *gang) string {
	n := c.preempt.of(x)
	if n != nil {
		c.preempt.lift(c, n)
	}
	t := g.tree(x)
	if t == nil || !slices.ContainsFunc(t.due(), func(b *branch) bool { return b.ready }) {
		c.preempt.drop(c, n)
		c.queue.Remove(x.key)
		if t != nil {
			g.loosen(c, x)
		}
		return resultWaits
	}
	t.inOrder()
	asked := c.judge.refusals
	var placed []*pod
	whys := map[*branch]string{}
	var first *branch // that could be placed, and was not
	for _, b := range t.due() {
		if !b.ready {
			continue
		}
		var got []*pod
		ok := false
		if b == t && t.strict() {
			got, ok = g.placeAtOnce(ctx, c, x, t, whys)
		} else {
			path := t.path(b)
			in, nowhere := c.home(path[:len(path)-1])
			if whys[b] = nowhere; nowhere == "" {
				got, ok = g.placeBranch(ctx, c, x, b, in, whys)
			}
		}
		if placed = append(placed, got...); !ok && first == nil {
			first = b
		}
	}
	if len(placed) > 0 {
		c.preempt.tookOver(c, n, placed)
		result := g.placed(c, x, placed)
		g.answer(g.tree(x), whys, "")
		return result
	}
	if n != nil && c.preempt.goesOn(c, n, true) {
		c.queue.Park(x.key, x.class)
		g.follow(c, x, n)
		return resultWaits
	}
	want, why := g.draftOf(c, x, first)
	if want == nil {
		tenant := g.waiting(x)[0].tenant
		c.queue.Park(x.key, c.tenants.class(tenant))
		g.sayWaits(c, t, why)
		c.preempt.drop(c, n)
		return resultWaits
	}
	if first == t && t.strict() && g.handOn(ctx, c, x, want) {
		c.metrics.gangs.WithLabelValues(resultHanded).Inc()
		return resultHanded
	}
	for _, b := range t.due() {
		path := t.path(b)
		in, nowhere := c.home(path[:len(path)-1])
		if !b.ready || nowhere != "" {
			continue // it could not be placed in the room that it would take
		}
		if n := c.preempt.tryTree(ctx, c, g, x, b, in); n != nil {
			g.follow(c, x, n)
			c.metrics.gangs.WithLabelValues(resultPreempts).Inc()
			return resultPreempts
		}
	}
	why = whys[first]
	x.judged = c.judge.refusals != asked
	c.queue.Park(x.key, x.class)
	g.sayWaits(c, t, "no room for all of its gang at once: "+why)
	c.metrics.gangs.WithLabelValues(resultWaits).Inc()
	g.answer(t, whys, why)
	return resultWaits
}

// placeAtOnce assumes all pods of a tree that has one way to be placed: the table takes the best domain for all of them.
func (g *gangs) placeAtOnce(ctx context.Context, c *core, x *gang, t *branch, whys map[*branch]string) ([]*pod, bool) {
	want, _ := g.draftOf(c, x, t)
	if want == nil {
		return nil, false // the caller says so
	}
	placed, why := g.place(ctx, c, x, want)
	whys[t] = why
	return placed, placed != nil
}

// home is the domain in which a branch of a tree that has nodes is, by the groups above it and by its own; nowhere says why it has none. As upstream has it, nothing
// joins a group that is in two domains already.
func (c *core) home(path []*branch) (in domain, nowhere string) {
	for _, b := range path {
		key := b.group.topologyKey
		if key == "" {
			continue
		}
		value, one := c.domainWhere(key, slices.Values(b.running()))
		if !one || value == "" {
			return nil, inTwo(b.group.full(), key)
		}
		in = append(in, domainOf(key, value)...)
	}
	return in, ""
}

// path are the branches from one down to another one, both counted.
func (b *branch) path(to *branch) []*branch {
	if b == to {
		return []*branch{b}
	}
	for _, c := range b.below {
		if p := c.path(to); p != nil {
			return append([]*branch{b}, p...)
		}
	}
	return nil
}

// leaf is the branch of a pod's PodGroup; nil for none.
func (b *branch) leaf(full string) *branch {
	if !b.group.composite && b.group.full() == full {
		return b
	}
	for _, c := range b.below {
		if found := c.leaf(full); found != nil {
			return found
		}
	}
	return nil
}

// sayWaits says why on the pods of a tree that wait for others of it.
func (g *gangs) sayWaits(c *core, t *branch, why string) {
	alone := t.alone()
	for _, p := range t.pods() {
		if p.stage == waits && !alone[p] {
			c.reportWait(p, why)
		}
	}
}

// answer says on each group of a tree how it stands: scheduled where it has its minimum, and so has each one above it.
func (g *gangs) answer(t *branch, whys map[*branch]string, why string) {
	said := map[string]string{}
	for b, text := range whys {
		said[b.group.full()] = text
	}
	var walk func(b *branch, held bool)
	walk = func(b *branch, held bool) {
		switch {
		case b.met && !held:
			g.result(b.group, true, fmt.Sprintf("%d pods have a node", len(b.running())))
		case said[b.group.full()] != "":
			g.result(b.group, false, said[b.group.full()])
		case why != "":
			g.result(b.group, false, why)
		}
		for _, c := range b.below {
			walk(c, held || !b.met)
		}
	}
	walk(t, false)
}

// forming says why the pods of a tree do not go into the queue yet.
func (t *branch) forming() string {
	ready := 0
	for _, c := range t.below {
		if c.ready {
			ready++
		}
	}
	if t.met {
		return "waits for more pods of its PodGroup, or for more groups next to it: each group is placed whole or not at all"
	}
	return fmt.Sprintf("waits for the other pods of the CompositePodGroup %s, which is placed whole or not at all: %d of the %d groups that it needs have their pods",
		t.group.full(), ready, t.group.minCount)
}

// setComposite takes a CompositePodGroup over, or with nil its end.
func (c *core) setComposite(full string, o *podGroup) {
	g := c.gangs
	was := g.composites[full]
	if was != nil {
		g.abandon(was)
	}
	if o == nil {
		delete(g.composites, full)
	} else {
		g.composites[full] = o
		g.adopt(o)
	}
	if was != nil && o != nil && was.uid == o.uid {
		o.scheduled = o.scheduled || was.scheduled // the write that says so may be under way
	}
	if was != nil && o != nil && was.asksAs(o) {
		return
	}
	c.regroupTrees(full, o)
}

// regroupTrees looks at the trees of a namespace again after a group of one came, went or changed: pods may be of another tree now, and a tree may be whole. The tree
// of the group asks for something else now, so that it is decided again wherever it waits.
func (c *core) regroupTrees(full string, changed *podGroup) {
	namespace, _, _ := strings.Cut(full, "/")
	g := c.gangs
	trees := map[queue.Key]*gang{}
	for _, uid := range sortedKeys(c.pods) {
		p := c.pods[uid]
		if o := g.groups[groupName(p.object)]; p.object.Namespace != namespace || o == nil || o.parent == "" {
			continue
		}
		if key, _, _, _ := g.named(p.object); p.gang == nil || p.gang.key != key || p.shape.Priority != g.priorityOf(p.object) {
			c.regroup(p)
		}
		if p.gang != nil {
			trees[p.gang.key] = p.gang
		}
	}
	for _, key := range sortedKeys(trees) {
		trees[key].missing = 0
		g.look(c, trees[key]) // what runs may have joined after what waits
		if t := g.tree(trees[key]); t != nil && changed != nil && t.find(changed) != nil {
			c.queue.Again(key)
		}
	}
	c.rehome()
}

// groupName is the PodGroup that a pod names, with its namespace; empty for none.
func groupName(o *corev1.Pod) string {
	if s := o.Spec.SchedulingGroup; s != nil && s.PodGroupName != nil {
		return o.Namespace + "/" + *s.PodGroupName
	}
	return ""
}

// objectOf is the object that says what a gang asks for: its PodGroup, or the CompositePodGroup at the top of its tree; nil for a gang by an ElasticJob.
func (g *gangs) objectOf(x *gang) *podGroup {
	if x.composite != "" {
		return g.composites[x.composite]
	}
	return g.groups[x.group]
}

// withoutTree says why a PodGroup with a parent has no tree, on the pods and on the groups.
func (g *gangs) withoutTree(o *podGroup) string {
	_, why, invalid := g.root(o)
	seen := map[*podGroup]bool{}
	for ; o != nil && !seen[o]; o = g.composites[o.namespace+"/"+o.parent] {
		seen[o] = true
		o.invalid = invalid
		g.result(o, false, why)
	}
	return why
}

// find is the branch of a group; nil for none.
func (b *branch) find(o *podGroup) *branch {
	if b.group == o {
		return b
	}
	for _, c := range b.below {
		if found := c.find(o); found != nil {
			return found
		}
	}
	return nil
}

// lostWith is the branch that is of no use any more once the PodGroup of a pod is not: the highest one above it that cannot lose the branch below, or that is
// disrupted as one. nil where the PodGroup is not in the tree.
func (b *branch) lostWith(full string) *branch {
	leaf := b.leaf(full)
	if leaf == nil {
		return nil
	}
	path := b.path(leaf)
	lost := leaf
	for i := len(path) - 2; i >= 0; i-- {
		above, have := path[i], 0
		for _, c := range path[i].below {
			if c.met {
				have++
			}
		}
		switch {
		case above.group.whole:
			lost = above
		case lost == path[i+1] && have <= above.group.minCount:
			lost = above
		}
	}
	return lost
}
