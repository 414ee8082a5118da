package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/eviction"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/host/queue"
	"github.com/springtide/springtide/scheduler/place"
	"github.com/springtide/springtide/scheduler/rules"
)

// gangs are the pods that are of use only together: those of a PodGroup, or of an ElasticJob where a pod names no PodGroup. A gang whose minimum does
// not run is one item of the queue and is placed whole or not at all; pods that come once it runs are placed one by one.
type gangs struct {
	byKey  map[queue.Key]*gang
	groups map[string]*podGroup // by namespace/name
	// composites are the CompositePodGroups, and children the groups right below each of them, known or not; by namespace/name.
	composites map[string]*podGroup
	children   map[string]map[child]bool
	// shapes remember what is wrong with a tree, by the name of its top; empty for nothing.
	shapes map[string]string
	jobs   map[string]*jobGang // by namespace/name of the ElasticJob
	// workloads find the ElasticJob of a pod by its controller: namespace/kind/name.
	workloads map[string]string
	// jobOf and checkpoints are, by the same name, the job of each of its workloads, and how long a pod of it needs to save its work.
	jobOf       map[string]string
	checkpoints map[string]time.Duration
	timeout     time.Duration
	serial      queue.Class
	byClass     map[queue.Class]*gang
	// homes are the partitions to which gangs were handed on.
	homes map[owner]home
	// result reports how a PodGroup stands.
	result func(*podGroup, bool, string)
}

// jobGang is what an ElasticJob asks for its gang.
type jobGang struct {
	// roles are those with a minimum; empty where no pods need each other.
	roles   []jobRole
	timeout time.Duration
}

type jobRole struct {
	role, kind, workload, part string
	min                        int
}

// gang is one gang with the pods of ours that are there.
type gang struct {
	key   queue.Key
	class queue.Class
	group string // namespace/name of its PodGroup; empty where the ElasticJob is the gang
	job   string // namespace/name of the ElasticJob of its pods; empty for none
	// composite is the CompositePodGroup at the top of the tree that it is; empty for none, and group is empty then.
	composite string
	// missing is how many pods must come at least before it is worth a look whether its tree is whole.
	missing int
	members map[types.UID]*pod
	// since is since when it lacks pods; zero while its minimum runs, or has no time to form.
	since time.Time
	// ran: its minimum was bound once. late: it did not form in time, and what is bound of it goes.
	ran, late bool
	// forming: pods of it are missing, and that is not reported yet.
	forming bool
	// judged: upstream's plugins had a part in the refusal for which it waits.
	judged bool
}

func newGangs(timeout time.Duration) *gangs {
	return &gangs{byKey: map[queue.Key]*gang{}, groups: map[string]*podGroup{}, composites: map[string]*podGroup{}, children: map[string]map[child]bool{}, shapes: map[string]string{}, jobs: map[string]*jobGang{}, workloads: map[string]string{}, jobOf: map[string]string{}, checkpoints: map[string]time.Duration{}, timeout: timeout,
		byClass: map[queue.Class]*gang{}, homes: map[owner]home{}, result: func(*podGroup, bool, string) {}}
}

// named is what makes the gang of a pod: its PodGroup, or the CompositePodGroup at the top of that one's tree, and its ElasticJob. An empty key is that of a pod
// that stands for itself.
func (g *gangs) named(o *corev1.Pod) (key queue.Key, group, job, composite string) {
	if group = groupName(o); group == "" || g.madeForJob(o) {
		if job = g.workloads[workloadOf(o)]; job == "" {
			return "", "", "", ""
		}
		return queue.Key("gang " + job), "", job, ""
	}
	if known := g.groups[group]; known != nil {
		if known.loose() {
			return "", "", "", ""
		}
		if top, _, _ := g.root(known); top != nil {
			return queue.Key("tree " + top.full()), "", "", top.full() // its roles are its groups
		}
	}
	return queue.Key("gang " + group), group, g.jobOf[workloadOf(o)], ""
}

// madeForJob reports whether the PodGroup of a pod was made for the ElasticJob of its workload. Then the job is the gang, as for its pods that were made before
// the PodGroup was there and do not name it.
func (g *gangs) madeForJob(o *corev1.Pod) bool {
	group := g.groups[groupName(o)]
	return group != nil && group.job != "" && g.jobs[group.job] != nil && g.jobOf[workloadOf(o)] == group.job
}

// reportsOn is the group on which it is said how a gang stands; nil for none.
func (g *gangs) reportsOn(x *gang) *podGroup {
	if o := g.objectOf(x); o != nil {
		return o
	}
	for _, p := range x.members {
		if g.madeForJob(p.object) {
			return g.groups[groupName(p.object)]
		}
	}
	return nil
}

// of is the gang of a pod, made if need be; nil for a pod that stands for itself.
func (g *gangs) of(o *corev1.Pod) *gang {
	key, group, job, composite := g.named(o)
	if key == "" {
		return nil
	}
	found := g.byKey[key]
	if found != nil && job != "" {
		found.job = job // the ElasticJob may be made after the first pod
	}
	if found == nil {
		g.serial--
		found = &gang{key: key, class: g.serial, group: group, job: job, composite: composite, members: map[types.UID]*pod{}}
		g.byKey[key], g.byClass[found.class] = found, found
	}
	return found
}

// join puts a pod into its gang.
func (g *gangs) join(p *pod) {
	next := g.of(p.object)
	if p.gang == next {
		return
	}
	g.part(p)
	if p.gang = next; next != nil {
		next.members[p.object.UID] = p
		next.missing--
	}
}

// part takes a pod out of its gang.
func (g *gangs) part(p *pod) {
	if p.gang == nil {
		return
	}
	delete(p.gang.members, p.object.UID)
	if len(p.gang.members) == 0 {
		delete(g.byKey, p.gang.key)
		delete(g.byClass, p.gang.class)
	}
	p.gang = nil
}

// shortage is what a gang lacks until its minimum runs: pods of its roles, and beyond these pods of any role.
type shortage struct {
	roles map[string]int
	any   int
}

// wants reports whether one more pod of a role helps.
func (s *shortage) wants(role string) bool { return s.roles[role] > 0 || s.any > 0 }

// take counts one more pod of a role.
func (s *shortage) take(role string) {
	if s.roles[role] > 0 {
		s.roles[role]--
	} else {
		s.any--
	}
}

func (s *shortage) sum() int {
	n := s.any
	for _, k := range s.roles {
		n += k
	}
	return n
}

// shortage counts what a gang lacks until its minimum is decided; false where its PodGroup is not known, or its tree is not there. The roles are those of its ElasticJob, and the
// minimum of a PodGroup counts all of its pods.
func (g *gangs) shortage(x *gang) (need shortage, known bool) { return g.lacks(x, x.runs) }

// lacks counts what a gang lacks of its minimum, where some of its members count.
func (g *gangs) lacks(x *gang, counts func(*pod) bool) (need shortage, known bool) {
	if x.composite != "" {
		t := g.treeWith(x, counts)
		if t == nil {
			return need, false
		}
		return shortage{any: t.lacks()}, true
	}
	running := map[string]int{}
	all := 0
	for _, p := range x.members {
		if counts(p) {
			running[g.role(x, p)]++
			all++
		}
	}
	need.roles = map[string]int{}
	if job := g.jobs[x.job]; job != nil {
		for _, r := range job.roles {
			need.roles[r.role] = max(r.min-running[r.role], 0)
		}
	}
	if x.group == "" {
		return need, true // without its job the pods stand for themselves
	}
	group := g.groups[x.group]
	if group == nil || group.parent != "" {
		return need, false
	}
	need.any = max(group.minCount-all-need.sum(), 0)
	return need, true
}

// formed notes that the minimum of a gang is bound, by whichever scheduler: its groups are scheduled, and its time to
// form is over for good. Its workload makes later losses again.
func (g *gangs) formed(c *core, p *pod) {
	x := p.gang
	if x == nil || x.ran && g.saidSo(x, p) {
		return
	}
	n := 0
	isBound := func(p *pod) bool {
		if p.stage == bound {
			n++
		}
		return p.stage == bound
	}
	need, known := g.lacks(x, isBound)
	if !known || need.sum() > 0 {
		return
	}
	x.ran = true
	if !c.serves(p.object) || !c.mine(p.object) {
		return
	}
	if x.composite != "" {
		g.answer(g.treeWith(x, isBound), nil, "")
	} else if group := g.reportsOn(x); group != nil {
		g.result(group, true, fmt.Sprintf("%d pods are bound, and its minimum with them", n))
	}
}

// saidSo reports whether the groups of a pod say that they are scheduled. The pods of a gang that ran say it, except
// one that is another object under its name now.
func (g *gangs) saidSo(x *gang, p *pod) bool {
	if x.composite == "" {
		group := g.reportsOn(x)
		return group == nil || group.scheduled
	}
	for o := g.groups[groupName(p.object)]; o != nil; o = g.composites[o.namespace+"/"+o.parent] {
		if !o.scheduled {
			return false
		}
	}
	return true
}

// hasTime reports whether a gang has to form in time: one that an ElasticJob describes each time, by the job's own policy; another one until it ran once.
func (g *gangs) hasTime(x *gang) bool {
	if g.jobs[x.job] != nil {
		return true
	}
	group := g.groups[x.group]
	return !x.ran && (group == nil || !group.scheduled)
}

// runs reports whether a member is beyond the wait for its gang: pods that were nominated together wait on.
func (x *gang) runs(p *pod) bool { return p.stage != waits && (p.stage != nominated || p.key != x.key) }

// role is the role of a pod in its gang.
func (g *gangs) role(x *gang, p *pod) string {
	if x.composite != "" {
		return groupName(p.object)
	}
	job := g.jobs[x.job]
	if job == nil {
		return ""
	}
	owner := metav1.GetControllerOf(p.object)
	for _, r := range job.roles {
		if owner == nil || r.kind != owner.Kind || r.workload != owner.Name {
			continue
		}
		if r.kind == "Job" || slices.ContainsFunc(adapter.RoleLabels, func(k string) bool { return strings.EqualFold(p.object.Labels[k], r.part) }) {
			return r.role
		}
	}
	return ""
}

// enqueue puts a waiting pod into the queue as a part of its gang; false for pods that stand for themselves, or came when their gang ran already.
func (g *gangs) enqueue(c *core, p *pod) bool {
	g.join(p)
	x := p.gang
	if x == nil {
		return false
	}
	if x.composite != "" {
		return g.enqueueTree(c, x, p)
	}
	need, known := g.shortage(x)
	if known && need.sum() == 0 {
		return false
	}
	formed := known && enough(g, x, need)
	switch {
	case !g.hasTime(x):
		x.since = time.Time{}
	case x.group == "" && !formed:
		x.since = time.Time{} // the operator creates pods at its own pace: its time begins when all are there
	case x.since.IsZero():
		x.since = c.now()
	}
	if !formed {
		g.forms(c, x, p)
		return true
	}
	g.whole(c, x, p, nil)
	return true
}

// forms sets a pod aside whose gang lacks others.
func (g *gangs) forms(c *core, x *gang, p *pod) {
	c.queue.Remove(p.key)
	p.key = x.key
	c.queue.Remove(x.key)
	x.forming = true
}

// whole puts a gang into the queue whose pods are there, but for those that stand alone.
func (g *gangs) whole(c *core, x *gang, p *pod, alone map[*pod]bool) {
	item := queue.Item{Key: x.key, Class: x.class, Priority: p.shape.Priority, Tenant: p.tenant, Since: p.object.CreationTimestamp.Time}
	for _, w := range x.members {
		if x.runs(w) || alone[w] {
			continue
		}
		item.Priority = max(item.Priority, w.shape.Priority)
		if at := w.object.CreationTimestamp.Time; at.Before(item.Since) {
			item.Since = at
		}
		if w.key != x.key {
			c.queue.Remove(w.key)
			w.key = x.key
		}
	}
	x.forming = false
	c.queue.Add(item)
}

// report says on the pods of gangs that still form what is missing. It is called now and then: the sentence changes with each pod that comes, and most
// gangs are whole before it is read.
func (g *gangs) report(c *core, now time.Time) {
	for _, key := range sortedKeys(g.byKey) {
		x := g.byKey[key]
		if !x.forming || now.Sub(x.since) < tick {
			continue
		}
		x.forming = false
		waiting := g.waiting(x)
		why := "waits for the PodGroup " + x.group + ", which does not exist"
		if t := g.tree(x); t != nil {
			g.sayWaits(c, t, t.forming())
			continue
		}
		if group := g.groups[x.group]; group != nil && group.parent != "" {
			why = g.withoutTree(group)
		}
		if need, known := g.shortage(x); known {
			why = fmt.Sprintf("waits for %d more pods of its gang, which is placed whole or not at all", need.sum()-len(waiting))
			if need.sum() <= len(waiting) {
				why = "waits for pods of all roles of its gang, which is placed whole or not at all"
			}
		}
		for _, w := range waiting {
			c.reportWait(w, why)
		}
	}
}

// enough reports whether the pods that wait can make the minimum.
func enough(g *gangs, x *gang, need shortage) bool {
	have := map[string]int{}
	all := 0
	for _, w := range x.members {
		if !x.runs(w) {
			have[g.role(x, w)]++
			all++
		}
	}
	for role, n := range need.roles {
		if have[role] < n {
			return false
		}
	}
	return all >= need.sum()
}

// waiting are the members that wait, the oldest first.
func (g *gangs) waiting(x *gang) []*pod {
	var out []*pod
	for _, p := range x.members {
		if p.stage == waits {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, byAge)
	return out
}

// byAge has the oldest pods first.
func byAge(a, b *pod) int {
	if d := a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time); d != 0 {
		return d
	}
	return strings.Compare(a.object.Name, b.object.Name)
}

// decide places a gang: its minimum whole or nothing, and what fits of the rest.
func (g *gangs) decide(ctx context.Context, c *core, x *gang) string {
	if x.composite != "" {
		return g.decideTree(ctx, c, x)
	}
	n := c.preempt.of(x)
	if n != nil {
		c.preempt.lift(c, n)
	}
	waiting := g.waiting(x)
	need, known := g.shortage(x)
	if !known || len(waiting) == 0 || need.sum() > 0 && !enough(g, x, need) {
		c.preempt.drop(c, n)
		c.queue.Remove(x.key)
		return resultWaits
	}
	if need.sum() == 0 {
		c.preempt.drop(c, n)
		g.loosen(c, x)
		return resultWaits
	}
	asked := c.judge.refusals
	if group := g.groups[x.group]; group != nil && group.minCount < 2 && group.topologyKey != "" {
		if placed, _ := g.place(ctx, c, x, &draft{chosen: waiting, most: true}); placed != nil {
			c.preempt.tookOver(c, n, placed)
			return g.placed(c, x, placed)
		}
	}
	want, by := g.draft(c, x, waiting, need)
	if want == nil {
		tenant := waiting[0].tenant
		c.queue.Park(x.key, c.tenants.class(tenant))
		for _, w := range waiting {
			c.reportWait(w, usedUp(tenant, by, "gang"))
		}
		c.preempt.drop(c, n)
		return resultWaits
	}
	placed, why := g.place(ctx, c, x, want)
	if placed == nil && n != nil && c.preempt.goesOn(c, n, true) {
		c.queue.Park(x.key, x.class)
		g.follow(c, x, n)
		return resultWaits
	}
	if placed == nil && g.handOn(ctx, c, x, want) {
		c.metrics.gangs.WithLabelValues(resultHanded).Inc()
		return resultHanded
	}
	if placed == nil {
		if n := c.preempt.tryGang(ctx, c, g, x, want); n != nil {
			g.follow(c, x, n)
			c.metrics.gangs.WithLabelValues(resultPreempts).Inc()
			return resultPreempts
		}
	}
	if placed == nil {
		if c.c.Partitions > 1 {
			why = fmt.Sprintf("in partition %d, %s; none of the %d partitions holds the gang whole: to let it use all nodes, set partitions: 1", c.c.Partition, why, c.c.Partitions)
		}
		x.judged = c.judge.refusals != asked
		c.queue.Park(x.key, x.class)
		for _, w := range waiting {
			c.reportWait(w, "no room for all of its gang at once: "+why)
		}
		c.metrics.gangs.WithLabelValues(resultWaits).Inc()
		if group := g.reportsOn(x); group != nil {
			g.result(group, false, why)
		}
		return resultWaits
	}
	c.preempt.tookOver(c, n, placed)
	return g.placed(c, x, placed)
}

// follow says of a gang that waits for room to come how it stands, and of the pods beyond those that were nominated that they wait for them.
func (g *gangs) follow(c *core, x *gang, n *nominee) {
	for _, w := range g.waiting(x) {
		c.reportWait(w, fmt.Sprintf("waits for %d other pods of its gang, which come first and wait until the room that they take is free", len(n.pods)))
	}
	if group := g.reportsOn(x); group != nil {
		g.result(group, false, fmt.Sprintf("%d pods wait until the room that they take is free; %d pods are to leave for them", len(n.pods), len(n.victims)))
	}
}

// placed has pods bound that were decided together.
func (g *gangs) placed(c *core, x *gang, placed []*pod) string {
	c.queue.Remove(x.key)
	for _, p := range placed {
		c.submit(p)
	}
	x.since = time.Time{}
	g.loosen(c, x) // the pods beyond the minimum are placed one by one
	c.metrics.gangs.WithLabelValues(resultPlaced).Inc()
	return resultPlaced
}

// loosen puts the waiting pods of a gang that runs into the queue, each by itself.
func (g *gangs) loosen(c *core, x *gang) {
	c.queue.Remove(x.key)
	for _, w := range g.waiting(x) {
		c.enqueue(w)
	}
}

// draft is which of its pods a gang is to be placed with.
type draft struct {
	// chosen are the oldest that make the minimum: as many of each role as are needed, and then of any role. spare are the others that wait, of which some stand
	// in for those that fit nowhere.
	chosen, spare []*pod
	need          shortage
	// most: instead of a minimum, as many of the chosen as fit.
	most bool
}

// draft picks the pods; nil and the name of the quota where that admits too few of them.
func (g *gangs) draft(c *core, x *gang, waiting []*pod, need shortage) (*draft, string) {
	out := &draft{need: need}
	left := need.clone()
	tenant := waiting[0].tenant
	refusedBy, more := "", map[string]amount{}
	for _, w := range waiting {
		role := g.role(x, w)
		if left.wants(role) {
			by := c.tenants.refuses(tenant, w.request.amount(), more)
			if by == "" {
				left.take(role)
				c.tenants.addTo(more, tenant, w.request.amount())
				out.chosen = append(out.chosen, w)
				continue
			}
			refusedBy = by
		}
		out.spare = append(out.spare, w)
	}
	if left.sum() > 0 {
		return nil, refusedBy
	}
	return out, ""
}

// size is how many pods are asked for.
func (d *draft) size() int {
	if d.most {
		return len(d.chosen)
	}
	return d.need.sum()
}

func (s *shortage) clone() shortage { return shortage{roles: maps.Clone(s.roles), any: s.any} }

// deal gives the pods of a draft out, one after another.
type deal struct {
	want  *draft
	todo  []*pod
	roles []string
	// left is what is still needed, rest what comes after the pod that is given out, by role and in all.
	left shortage
	rest map[string]int
	all  int
}

// deal begins with the largest pods: what is left fits the small ones more often than the other way round. The spare ones come last.
func (g *gangs) deal(x *gang, want *draft) *deal {
	d := &deal{want: want, todo: slices.Clone(want.chosen), left: want.need.clone(), rest: map[string]int{}}
	slices.SortStableFunc(d.todo, largestFirst)
	d.todo = append(d.todo, want.spare...)
	for _, p := range d.todo {
		role := g.role(x, p)
		d.roles = append(d.roles, role)
		d.rest[role]++
		d.all++
	}
	return d
}

// pods yields those that help, until the minimum is there, or cannot be any more by those that are left.
func (d *deal) pods(yield func(*pod) bool) {
	for i, p := range d.todo {
		if !d.want.most && (d.left.sum() == 0 || d.isShort()) {
			return
		}
		role := d.roles[i]
		d.rest[role]--
		d.all--
		if (d.want.most || d.left.wants(role)) && !yield(p) {
			return
		}
	}
}

func (d *deal) isShort() bool {
	for role, n := range d.left.roles {
		if d.rest[role] < n {
			return true
		}
	}
	return d.all < d.left.sum()
}

// took counts the pod that was given out last: it has a place.
func (d *deal) took() {
	if !d.want.most {
		d.left.take(d.roles[len(d.todo)-d.all-1])
	}
}

// made reports whether the pods that have a place are enough.
func (d *deal) made(placed int) bool {
	if d.want.most {
		return placed > 0
	}
	return d.left.sum() == 0
}

// mixed reports whether spare pods ask for something else than those that were chosen: where these fit nowhere, others may.
func (d *draft) mixed() bool {
	return slices.ContainsFunc(d.spare, func(p *pod) bool { return p.class != d.chosen[0].class || p.judged.needed }) ||
		len(d.spare) > 0 && slices.ContainsFunc(d.chosen, func(p *pod) bool { return p.class != d.chosen[0].class })
}

// topologyKey is the node label that must be the same for all pods of a gang; empty for none.
func (g *gangs) topologyKey(x *gang) string {
	if group := g.objectOf(x); group != nil {
		return group.topologyKey
	}
	return ""
}

// place assumes the pods of a draft, in one domain of the topology where that is asked for; nil and the reason when that fails.
func (g *gangs) place(ctx context.Context, c *core, x *gang, want *draft) ([]*pod, string) {
	key := g.topologyKey(x)
	if _, one := c.domainWhere(key, maps.Values(x.members)); key != "" && !one {
		return nil, inTwo(g.objectOf(x).full(), key)
	}
	if !slices.ContainsFunc(want.chosen, func(p *pod) bool {
		return p.pinned != "" || p.spread() || c.judge.needed(p) || c.kubelets.known(c, p.class)
	}) {
		placed, why := g.placeByTable(c, want, g.within(c, x, want.chosen))
		if placed != nil || want.most || !want.mixed() {
			return placed, why
		}
	}
	if d := g.wished(c, x, want.chosen); len(d) > 0 && !want.most {
		if placed, _ := g.placeIn(ctx, c, x, want, d); placed != nil {
			return placed, ""
		}
	}
	if key == "" {
		return g.placeIn(ctx, c, x, want, nil)
	}
	var best domain
	most, why := 0, "no node has the label "+key
	for _, value := range c.domains(key, maps.Values(x.members), nil) {
		d := domainOf(key, value)
		placed, reason := g.placeIn(ctx, c, x, want, d)
		if placed == nil {
			why = fmt.Sprintf("in %s=%s, %s", key, value, reason)
			continue
		}
		if !want.most || len(placed) == len(want.chosen) {
			return placed, ""
		}
		if len(placed) > most {
			best, most = d, len(placed)
		}
		g.takeBack(c, placed)
	}
	if most > 0 {
		return g.placeIn(ctx, c, x, want, best)
	}
	return nil, why
}

// within is where a gang is to be: in one domain of its topology, in that of its members that run.
func (g *gangs) within(c *core, x *gang, chosen []*pod) place.GangRequest {
	out := place.GangRequest{Domain: g.topologyKey(x), Prefer: c.preferred(chosen)}
	if out.Domain != "" {
		out.Value, _ = c.domainWhere(out.Domain, maps.Values(x.members))
	}
	return out
}

// wished is the domain that the table alone would take for a gang that has preferences, with as many of them as can be kept; empty for none. Upstream's
// plugins, which judge such a gang, may still refuse it.
func (g *gangs) wished(c *core, x *gang, chosen []*pod) domain {
	request := g.within(c, x, chosen)
	if len(request.Prefer) == 0 {
		return nil
	}
	_, request = g.request(c, chosen, request)
	var out domain
	c.table.Would(func() bool {
		d, ok := c.table.DecideGang(request)
		if !ok || len(d.Kept) == 0 {
			return false
		}
		n := c.nodes[string(d.Pods[0][0].Node)].node
		for _, key := range slices.Concat(d.Kept, []string{request.Domain}) {
			if key != "" {
				out = append(out, rules.Label{Key: key, Value: domainOn(n, key)})
			}
		}
		return true
	})
	return out
}

// domainOn is the domain of a node by a key of [core.preferred] or a label.
func domainOn(n *corev1.Node, key string) string {
	if key == place.GPUModelKey {
		key = facts.LabelGPUModel
	}
	return n.Labels[key]
}

// preferred are the node labels that the pods of an ElasticJob should share, the most important first: the network pod, and the GPU model where they ask
// for GPUs. They give way where the gang would wait for them.
func (c *core) preferred(chosen []*pod) []string {
	keys := []string{v1alpha1.LabelNetworkPod}
	if slices.ContainsFunc(chosen, func(p *pod) bool { return p.request.resources.GPU > 0 }) {
		keys = append(keys, place.GPUModelKey)
	}
	if !slices.ContainsFunc(chosen, func(p *pod) bool { return c.jobOf(p.object) != "" }) {
		return nil
	}
	return keys
}

func largestFirst(a, b *pod) int {
	return cmp.Or(cmp.Compare(b.request.resources.GPU, a.request.resources.GPU), cmp.Compare(b.request.resources.CPU, a.request.resources.CPU))
}

// placeByTable assumes all of the chosen pods or none, as the table decides on them together; or as many as one domain holds.
func (g *gangs) placeByTable(c *core, want *draft, request place.GangRequest) ([]*pod, string) {
	admitted := want.chosen
	if want.most {
		admitted = g.admitted(c, admitted)
	}
	roles, request := g.request(c, admitted, request)
	if request.Most = want.most; want.most {
		for k := range request.Roles {
			request.Roles[k].Min = 0
		}
	}
	before := make([]string, len(roles))
	for k := range roles {
		e := c.table.Explain(request.Roles[k].Class)
		before[k] = fitting(&e)
	}
	d, ok := c.table.DecideGang(request)
	if !ok {
		return nil, g.whyNot(c, request)
	}
	var placed []*pod
	for k, pods := range roles {
		placed = append(placed, pods[:len(d.Pods[k])]...)
	}
	together := fmt.Sprintf("%d pods of the gang are placed together", len(placed))
	if labels := d.Labels(&request); labels != "" {
		together += ", in " + labels + ", the domain with the least room that holds them"
	}
	for k, pods := range roles {
		for i, p := range pods[:len(d.Pods[k])] {
			p.why = decisionText(before[k], together)
			c.assume(p, d.Pods[k][i])
		}
	}
	return placed, ""
}

// admitted are the pods that their quota lets in together, the oldest first.
func (g *gangs) admitted(c *core, pods []*pod) (out []*pod) {
	more := map[string]amount{}
	for _, p := range pods {
		if c.tenants.refuses(p.tenant, p.request.amount(), more) == "" {
			c.tenants.addTo(more, p.tenant, p.request.amount())
			out = append(out, p)
		}
	}
	return out
}

// request asks for a place for pods, those of a class as one role.
func (g *gangs) request(c *core, chosen []*pod, request place.GangRequest) ([][]*pod, place.GangRequest) {
	var roles [][]*pod
	at := map[place.ClassID]int{}
	for _, p := range chosen {
		id := c.ownClass(p)
		k, ok := at[id]
		if !ok {
			k = len(roles)
			at[id] = k
			roles, request.Roles = append(roles, nil), append(request.Roles, place.Role{Class: id})
		}
		roles[k] = append(roles[k], p)
		request.Roles[k].Min++
		request.Roles[k].Count++
	}
	return roles, request
}

// whyNot says how many pods of a gang fit together, and why not one more.
func (g *gangs) whyNot(c *core, r place.GangRequest) string {
	where := ""
	why := "no node has the label " + r.Domain
	if r.Value != "" {
		why += "=" + r.Value
	}
	c.table.Would(func() bool {
		r.Roles = slices.Clone(r.Roles)
		for k := range r.Roles {
			r.Roles[k].Min = 0
		}
		d, ok := c.table.DecideGang(r)
		if !ok {
			return false
		}
		if r.Domain != "" {
			where = fmt.Sprintf("in %s=%s, ", r.Domain, d.Domain)
		}
		fit, all, next := 0, 0, ""
		for k, role := range r.Roles {
			fit, all = fit+len(d.Pods[k]), all+role.Count
			if next == "" && len(d.Pods[k]) < role.Count {
				next = c.whyNot(role.Class)
			}
		}
		why = fmt.Sprintf("%d of %d fit", fit, all)
		if r.Domain == "" {
			why += ", and for the next " + next
		}
		return true
	})
	return where + why
}

// domainWhere is the value of a node label where pods are; empty where none of them has a node. one is false where they are in two domains, or on a node without
// that label: as upstream has it, nothing joins them then.
func (c *core) domainWhere(key string, pods iter.Seq[*pod]) (value string, one bool) {
	for p := range pods {
		n := c.nodes[p.node]
		if p.stage == waits || n == nil || n.node == nil {
			continue
		}
		at := n.node.Labels[key]
		if at == "" || value != "" && at != value {
			return "", false
		}
		value = at
	}
	return value, true
}

// inTwo says why nothing joins the pods of a group.
func inTwo(group, key string) string {
	return fmt.Sprintf("its group %s is to be in one domain of %s, and the pods of it that run are in two, or on nodes without that label", group, key)
}

// domainsWith are the values of a node label, in order, on the nodes of a domain.
func (c *core) domainsWith(key string, in domain) []string {
	values := map[string]bool{}
	for _, n := range c.nodes {
		if n.node != nil && n.node.Labels[key] != "" && !slices.ContainsFunc(in, func(l rules.Label) bool { return domainOn(n.node, l.Key) != l.Value }) {
			values[n.node.Labels[key]] = true
		}
	}
	return sortedKeys(values)
}

// domains are those in which pods that belong together may be, by a node label: where some have a node already, theirs alone, and none where there is none
// such.
func (c *core) domains(key string, pods iter.Seq[*pod], in domain) []string {
	switch value, one := c.domainWhere(key, pods); {
	case !one:
		return nil
	case value != "":
		return []string{value}
	}
	return c.domainsWith(key, in)
}

// domainsToTake are the domains in which a gang may take the room of others, the better ones first: those with what it prefers most, then those that it must
// have.
func (g *gangs) domainsToTake(c *core, x *gang, chosen []*pod) [][]domain {
	must := []domain{nil}
	if key := g.topologyKey(x); key != "" {
		must = nil
		for _, value := range c.domains(key, maps.Values(x.members), nil) {
			must = append(must, domainOf(key, value))
		}
	}
	wishes := c.preferred(chosen)
	if len(wishes) == 0 {
		return [][]domain{must}
	}
	var better []domain
	for _, m := range must {
		values := map[string]bool{}
		for _, n := range c.nodes {
			if n.node != nil && domainOn(n.node, wishes[0]) != "" && !slices.ContainsFunc(m, func(l rules.Label) bool { return n.node.Labels[l.Key] != l.Value }) {
				values[domainOn(n.node, wishes[0])] = true
			}
		}
		for _, value := range sortedKeys(values) {
			better = append(better, append(slices.Clone(m), domainOf(wishes[0], value)...))
		}
	}
	return [][]domain{better, must}
}

// placeIn assumes the pods of a draft one after another, in one domain, until the minimum has a place; else none. The largest come first: what is left fits the
// small ones more often than the other way round. The spare ones come last.
func (g *gangs) placeIn(ctx context.Context, c *core, x *gang, want *draft, in domain) (placed []*pod, why string) {
	clear(c.judge.failed)
	defer c.judge.gang()()
	changed := c.judge.changed
	d := g.deal(x, want)
	full := map[place.ClassID]error{} // what the table alone refused: room only becomes less
	refused := ""
	for p := range d.pods {
		byTable := p.pinned == "" && !c.judge.needed(p) && !c.kubelets.known(c, p.class)
		err := full[p.class]
		if !byTable || err == nil {
			err = g.admit(c, p)
		}
		if err == nil {
			var at place.Decision
			if at, err = g.choose(ctx, c, p, in); err == nil {
				c.assume(p, at)
				placed = append(placed, p)
				d.took()
				continue
			}
			if byTable {
				full[p.class] = err
			}
		}
		var no *refusal
		if refused = cmp.Or(refused, fmt.Sprintf("%d of %d fit, and for the next %s", len(placed), want.size(), err)); !errors.As(err, &no) {
			c.log.Warn("decide on a pod of a gang", "pod", name(p.object), "err", err)
			break
		}
	}
	if d.made(len(placed)) {
		return placed, ""
	}
	g.takeBack(c, placed)
	c.judge.changed = changed // all is as it was: nothing that waits is helped
	return nil, refused
}

// takeBack takes decisions back that were tried.
func (g *gangs) takeBack(c *core, placed []*pod) {
	for _, p := range placed {
		c.unassume(p)
	}
}

// admit is the quota's refusal of a pod; nil where it has none.
func (g *gangs) admit(c *core, p *pod) error {
	if by := c.tenants.refuses(p.tenant, p.request.amount(), nil); by != "" {
		return &refusal{usedUp(p.tenant, by, "pod")}
	}
	return nil
}

// choose finds a node of a domain for a member.
func (g *gangs) choose(ctx context.Context, c *core, p *pod, in domain) (place.Decision, error) {
	if len(in) == 0 {
		return c.choose(ctx, p)
	}
	return c.within(p, in, func() (place.Decision, error) { return c.choose(ctx, p) })
}

// gone takes a pod that is over out of its gang; the others may have to wait for a new one.
func (g *gangs) gone(c *core, p *pod) {
	x := p.gang
	if x == nil {
		return
	}
	g.part(p)
	if len(x.members) > 0 {
		g.look(c, x)
	}
}

// look enqueues a gang again after something about it changed.
func (g *gangs) look(c *core, x *gang) {
	for _, w := range g.waiting(x) {
		c.enqueue(w)
		if w.gang == x && w.key == x.key {
			return // one stands for all
		}
	}
}

// classes are those of the pods of a gang that wait.
func (g *gangs) classes(class queue.Class) []place.ClassID {
	var out []place.ClassID
	if x := g.byClass[class]; x != nil {
		for _, p := range x.members {
			if (p.stage == waits || p.stage == nominated && p.key == x.key) && !slices.Contains(out, p.class) {
				out = append(out, p.class)
			}
		}
	}
	return out
}

// timeoutOf is how long a gang may lack pods: as its ElasticJob says, else as the configuration does.
func (g *gangs) timeoutOf(x *gang) time.Duration {
	if job := g.jobs[x.job]; job != nil {
		return job.timeout
	}
	return g.timeout
}

// expire ends the wait of gangs whose minimum did not come to run in time, since half a gang holds room and does
// nothing. The pods that wait say so, and are tried again after their back-off. Bound pods of a PodGroup go; the
// controller takes an ElasticJob's running pods back by its sizes when it reads that, so that a launcher is not ended
// by an eviction.
func (g *gangs) expire(c *core, now time.Time) {
	for _, key := range sortedKeys(g.byKey) {
		x := g.byKey[key]
		g.beginLate(x, now)
		if timeout := g.timeoutOf(x); !x.since.IsZero() && now.Sub(x.since) >= timeout {
			g.timeOut(c, x, now, timeout)
		}
		g.rollBack(c, x)
	}
	c.preempt.keepRollbacks(c, func(key queue.Key) bool { return g.byKey[key] != nil && g.byKey[key].late })
}

// beginLate begins the time of a PodGroup of which a part is bound and no pod waits: its other pods went before it formed, perhaps while no scheduler ran, and
// nothing but the clock ends what is left.
func (g *gangs) beginLate(x *gang, now time.Time) {
	if !x.since.IsZero() || x.late || x.group == "" || x.composite != "" || g.jobs[x.job] != nil || !g.hasTime(x) {
		return
	}
	for _, p := range x.members {
		if p.stage == bound {
			if need, known := g.shortage(x); known && need.sum() > 0 {
				x.since = now
			}
			return
		}
	}
}

func (g *gangs) timeOut(c *core, x *gang, now time.Time, timeout time.Duration) {
	for _, p := range x.members {
		if p.stage == nominated {
			return // it has taken room already, and a preemption has a patience of its own
		}
	}
	need, known := g.shortage(x)
	if !known || need.sum() == 0 {
		x.since = time.Time{}
		return
	}
	x.since = now
	why := fmt.Sprintf("its gang lacked %d pods for %s: it is tried again after a back-off", need.sum(), timeout)
	for _, w := range g.waiting(x) {
		c.say(verdict{pod: w.object, reason: corev1.PodReasonUnschedulable, message: why, at: now, gangTimedOut: true})
	}
	c.queue.Later(x.key, now)
	c.metrics.gangs.WithLabelValues("timeout").Inc()
	if group := g.objectOf(x); group != nil {
		g.result(group, false, why)
		x.late = g.jobs[x.job] == nil
	}
}

// rollBack has what is bound of a gang go that did not form in time, for as long as it lacks pods.
func (g *gangs) rollBack(c *core, x *gang) {
	if !x.late {
		return
	}
	var bare []*pod
	for _, uid := range sortedKeys(x.members) {
		if p := x.members[uid]; p.stage == bound && p.object.DeletionTimestamp == nil {
			bare = append(bare, p)
		}
	}
	need, known := g.shortage(x)
	if x.late = known && need.sum() > 0 && len(bare) > 0; x.late {
		c.preempt.rollBack(c, x.key, bare, fmt.Sprintf("evicted: its gang lacked %d pods for %s", need.sum(), g.timeoutOf(x)))
	}
}

// confine keeps a pod that comes to a gang that runs to the domain of its gang, where the gang must have one.
func (g *gangs) confine(c *core, p *pod) {
	if p.gang == nil {
		return
	}
	if t := g.tree(p.gang); t != nil {
		if leaf := t.leaf(groupName(p.object)); leaf != nil {
			in, nowhere := c.home(t.path(leaf))
			p.nowhere, p.confined = nowhere, nowhere != "" || len(in) > 0
			for _, l := range in {
				p.shape = narrowed(p.shape, l.Key, l.Value)
			}
			p.class = c.classify(p)
		}
		return
	}
	key := g.topologyKey(p.gang)
	if key == "" {
		return
	}
	value, one := c.domainWhere(key, maps.Values(p.gang.members))
	if !one {
		p.nowhere, p.confined = inTwo(g.objectOf(p.gang).full(), key), true
	}
	if value != "" {
		p.shape, p.confined = narrowed(p.shape, key, value), true
		p.class = c.classify(p)
	}
}

// setGroup takes a PodGroup over, or with nil its end.
func (c *core) setGroup(full string, group *podGroup) {
	g := c.gangs
	was := g.groups[full]
	if was != nil {
		g.abandon(was)
	}
	if group == nil {
		delete(g.groups, full)
		if was != nil {
			c.judge.removeGroup(was)
		}
	} else {
		g.groups[full] = group // also where only its generation is another: the condition names it
		g.adopt(group)
		c.judge.setGroup(group)
	}
	if was != nil && group != nil && was.uid == group.uid {
		group.scheduled = group.scheduled || was.scheduled // the write that says so may be under way
	}
	if was != nil && group != nil && was.asksAs(group) {
		return
	}
	for _, p := range c.pods {
		if groupName(p.object) == full {
			c.regroup(p)
		}
	}
	if was != nil && was.parent != "" || group != nil && group.parent != "" {
		c.regroupTrees(full, group)
	}
	c.rehome()
}

// regroup finds the gang of a pod again.
func (c *core) regroup(p *pod) {
	again := p.shape.Priority != c.gangs.priorityOf(p.object)
	if p.stage == waits {
		c.unqueue(p)
		if again {
			c.describe(p, p.object)
		}
		c.enqueue(p)
		return
	}
	if again {
		c.reshape(p, p.object)
	}
	c.gangs.join(p)
	if p.stage == bound {
		c.gangs.formed(c, p)
	}
}

// setJob takes an ElasticJob over, or with nil its end.
func (c *core) setJob(full string, job *v1alpha1.ElasticJob) {
	g := c.gangs
	c.tally.valid = false // it names the owners of pods
	namespace, _, _ := strings.Cut(full, "/")
	for k, v := range g.jobOf {
		if v == full {
			delete(g.jobOf, k)
			delete(g.checkpoints, k)
			delete(g.workloads, k)
		}
	}
	delete(g.jobs, full)
	if job != nil {
		next := &jobGang{timeout: cmp.Or(time.Duration(job.Spec.GangTimeoutSeconds)*time.Second, g.timeout)}
		total := 0
		for i := range job.Spec.Members {
			m := &job.Spec.Members[i]
			of := namespace + "/" + m.WorkloadRef.Kind + "/" + m.WorkloadRef.Name
			g.jobOf[of] = full
			if job.Spec.Checkpoint != nil {
				g.checkpoints[of] = time.Duration(job.Spec.Checkpoint.Seconds) * time.Second
			}
			if m.Divisible {
				continue
			}
			total += int(m.Min)
			next.roles = append(next.roles, jobRole{role: m.Role, kind: m.WorkloadRef.Kind, workload: m.WorkloadRef.Name, part: cmp.Or(m.Part, m.Role), min: int(m.Min)})
		}
		if total < 2 {
			next.roles = nil
		}
		for _, r := range next.roles {
			g.workloads[namespace+"/"+r.kind+"/"+r.workload] = full
		}
		g.jobs[full] = next
	}
	for _, p := range c.pods {
		if p.object.Namespace == namespace {
			c.regroup(p)
		}
	}
	c.rehome()
}

// said is how a PodGroup stands, as its condition says it.
type said struct {
	group  podGroup // as it was then: its owner goes on changing it
	placed bool
	why    string
}

// groupWriter says on PodGroups how they stand, in the condition that upstream's scheduler writes. Only changes are written. Of one group one write is under way
// at a time, and the latest answer is the last one written: False and True that follow at once would land in either order. A write that fails is tried again,
// with pauses that double, until a later answer takes its place.
func (s *Scheduler) groupWriter(ctx context.Context, log *slog.Logger, mayWrite func() bool) func(*podGroup, bool, string) {
	last, next := map[types.UID]string{}, map[types.UID]said{}
	underWay := map[types.UID]bool{}
	var mu sync.Mutex
	write := func(uid types.UID) {
		for pause := startAgain; ; {
			mu.Lock()
			x, more := next[uid]
			if !more {
				delete(underWay, uid)
				mu.Unlock()
				return
			}
			delete(next, uid)
			mu.Unlock()
			err := s.writeGroup(ctx, x, mayWrite)
			if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || ctx.Err() != nil { // a conflict: another group has the name now
				pause = startAgain
				continue
			}
			log.Warn("write the condition of a PodGroup", "group", x.group.namespace+"/"+x.group.name, "err", err, "again", pause)
			mu.Lock()
			if _, later := next[uid]; !later {
				next[uid] = x
			}
			mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, startAgainMost)
		}
	}
	return func(g *podGroup, placed bool, why string) {
		text := strconv.FormatBool(placed) + why
		if last[g.uid] == text || g.condition() != conditionScheduled && g.scheduled {
			return
		}
		g.scheduled = placed
		last[g.uid] = text
		mu.Lock()
		defer mu.Unlock()
		next[g.uid] = said{*g, placed, why}
		if !underWay[g.uid] {
			underWay[g.uid] = true
			go write(g.uid)
		}
	}
}

// writeGroup writes the condition of a PodGroup.
func (s *Scheduler) writeGroup(ctx context.Context, x said, mayWrite func() bool) error {
	if !mayWrite() { // another leader's by now
		return nil
	}
	status, reason, g := metav1.ConditionFalse, "Unschedulable", &x.group
	kind := "PodGroup"
	if g.composite {
		kind = "CompositePodGroup"
	}
	switch {
	case x.placed:
		status, reason = metav1.ConditionTrue, "Scheduled"
	case g.composite && g.invalid:
		reason = "Invalid"
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": g.gvr.GroupVersion().String(), "kind": kind,
		"metadata": map[string]any{"name": g.name, "namespace": g.namespace, "uid": string(g.uid)},
		"status": map[string]any{"conditions": []any{map[string]any{"type": g.condition(), "status": string(status), "reason": reason, "message": x.why,
			"observedGeneration": g.generation, "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339)}}},
	}}
	_, err := s.dynamic.Resource(g.gvr).Namespace(g.namespace).ApplyStatus(ctx, g.name, o, metav1.ApplyOptions{FieldManager: "springtide-scheduler", Force: true})
	return err
}

// evict asks the API server to evict a pod, which its disruption budget may refuse.
func (s *Scheduler) evict(ctx context.Context, o *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.c.BindTimeout))
	defer cancel()
	return eviction.Once(ctx, s.client.PolicyV1().RESTClient(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID}},
	})
}
