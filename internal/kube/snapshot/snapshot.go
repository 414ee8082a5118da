package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/festival"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/validate"
	"github.com/springtide/springtide/scheduler/rules"
)

// Snapshot joins the mirrors into the facts of this moment. Finished pods are left out: they hold no room and count for nothing. Besides
// being not in step it fails on an object of ours that cannot be read, since deciding without it might lend a machine twice.
func (c *Observer) Snapshot(ctx context.Context) (*fleet.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.Before()
	before := c.Changes.Load()
	s, dated, err := c.observed()
	if err != nil {
		return nil, err
	}
	kept := *s // the loop numbers the snapshot that it gets
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen, c.seenAt, c.dated = &kept, before, dated
	c.revision++
	s.Revision = c.revision
	return s, nil
}

// Observer makes snapshots of what is watched.
type Observer struct {
	*watch.Watcher
	*leadership.Term
	// Before is called before each snapshot.
	Before func()

	mu       sync.Mutex // guards what follows
	revision fleet.Revision
	// dated are the times that the last snapshot did not believe.
	dated []dated
	// seen are the facts of the last snapshot, and seenAt what changes stood at before they were read.
	seen   *fleet.Snapshot
	seenAt int64
}

// New makes the observer of what is watched.
func New(w *watch.Watcher, t *leadership.Term) *Observer {
	return &Observer{Watcher: w, Term: t, Before: func() {}}
}

// NotBelievedTimes are the times that the last snapshot did not believe.
func (c *Observer) NotBelievedTimes() []dated {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dated
}

// Fresh is what observe returns, or the facts of the last snapshot where no watch brought anything since. Most plans
// are made within milliseconds.
func (c *Observer) Fresh() (*fleet.Snapshot, error) {
	leads, since, _ := c.Term.Present()
	c.mu.Lock()
	seen, seenAt := c.seen, c.seenAt
	c.mu.Unlock()
	if seen == nil || seenAt != c.Changes.Load() {
		return c.Observe()
	}
	s := *seen
	s.At, s.LeaderEpoch, s.WatchedSince = c.Options.Clock.Now().UTC(), leads.Epoch, since
	return &s, nil
}

// Observe is Snapshot without counting a revision.
func (c *Observer) Observe() (*fleet.Snapshot, error) {
	s, _, err := c.observed()
	return s, err
}

// observed is observe, with the times that were not believed.
func (c *Observer) observed() (*fleet.Snapshot, []dated, error) {
	if missing := c.Unsynced(); len(missing) > 0 {
		return nil, nil, fmt.Errorf("kube: %s not read yet", strings.Join(missing, ", "))
	}
	a := newAssembly(c)
	if err := a.readable(); err != nil {
		return nil, nil, fmt.Errorf("kube: %w", err)
	}
	a.addPools()
	a.addNodes()
	a.addRevisions()
	a.addRefusals()
	a.addServices()
	a.addJobs()
	a.addPods()
	a.measure()
	a.addRequests()
	a.countMembers()
	a.refuseMembers()
	a.addTenants()
	a.boundPriorities()
	for _, l := range c.Loans.All() {
		a.s.Loans = append(a.s.Loans, l.Facts)
	}
	a.addFestivals()
	a.refuse()
	a.s.Sort()
	a.shutTainted()
	return a.s, a.doubts, nil
}

// addFestivals adds what each plan says for its coming occurrence.
func (a *assembly) addFestivals() {
	var plans []festival.Plan
	for _, f := range a.c.Festivals.All() {
		plans = append(plans, f.Facts)
	}
	a.s.Festivals = festival.InForce(plans, a.s.At)
}

// refuse puts what was found wrong with pools and tenants into the snapshot.
func (a *assembly) refuse() {
	for i := range a.s.Pools {
		a.s.Pools[i].Refused = a.notes.pools[a.s.Pools[i].ID]
	}
	for i := range a.s.Tenants {
		a.s.Tenants[i].Refused = a.notes.tenants[a.s.Tenants[i].ID]
	}
}

// notes are findings about objects of ours, in the making.
type notes struct {
	pools   map[fleet.PoolID]fleet.Problem
	tenants map[fleet.TenantID]fleet.Problem
}

// assembly is one snapshot in the making. Facts of mirrors are shared with the caches and are copied, never changed.
type assembly struct {
	c    *Observer
	s    *fleet.Snapshot
	wall time.Time
	// leads is what this process leads by.
	leads leadership.Held
	// doubts are times that are not believed.
	doubts []dated
	// stamped are the targets that carried its stamp.
	stamped map[types.UID]bool
	notes

	devices *facts.Devices
	nodeIDs map[string]fleet.NodeID
	// bundled are the names under which the bundled scheduler places pods: its own, and those by which pools say that it serves them.
	bundled   map[string]bool
	revisions map[watch.Owned]*watch.ReplicaSetFacts
	newest    map[watch.Owned]types.UID // deployment -> its newest ReplicaSet
	// owners say whose the pods of a workload are.
	services map[watch.Owned]int
	// chosen are the services whose pods a Scale selects, by namespace, the oldest first.
	chosen map[string][]*chosen
	jobs   map[watch.Owned]*roleRef
	// parents lead from what stands between a pod and its workload (a Job, a driver) one step up.
	parents map[watch.Owned]types.UID
	// asked is room for the requests of the pods of one workload.
	asked []fleet.Resources
	// updates are the newest revisions of StatefulSets by UID.
	updates map[watch.Owned]string
	// tolerations are those of the services' templates.
	tolerations map[fleet.ServiceID][]rules.Toleration
	// refusals are the newest ones by the owner of the pods, refusedRoles those of the workloads of members.
	refusals     map[watch.Owned]*watch.RefusalFacts
	refusedRoles map[memberRef]*watch.RefusalFacts
}

// memberRef points at one member of one job.
type memberRef struct {
	job  fleet.JobID
	role string
}

// roleRef says whose the pods of one workload are: role by part. Where the workload has no parts the key is empty.
type roleRef struct {
	job    fleet.JobID
	roles  map[string]string
	partOf func(labels map[string]string) string
}

// member finds the member that a pod is of; none where its part is not named in the job.
func (r *roleRef) member(f *watch.PodFacts) memberRef {
	if r == nil {
		return memberRef{}
	}
	role, ok := r.roles[r.partOf(f.Roles)]
	if !ok {
		return memberRef{}
	}
	return memberRef{job: r.job, role: role}
}

func newAssembly(c *Observer) *assembly {
	a := &assembly{
		c: c, s: &fleet.Snapshot{At: c.Options.Clock.Now().UTC()}, wall: time.Now(),
		notes:    notes{pools: map[fleet.PoolID]fleet.Problem{}, tenants: map[fleet.TenantID]fleet.Problem{}},
		nodeIDs:  map[string]fleet.NodeID{},
		devices:  c.ReadDevices(),
		services: map[watch.Owned]int{}, chosen: map[string][]*chosen{}, jobs: map[watch.Owned]*roleRef{},
		parents:     map[watch.Owned]types.UID{},
		updates:     map[watch.Owned]string{},
		tolerations: map[fleet.ServiceID][]rules.Toleration{},
	}
	a.leads, a.s.WatchedSince, a.stamped = c.Term.Present()
	a.s.LeaderEpoch = a.leads.Epoch
	if ns, ok := c.Namespaces.Get("", c.Options.Namespace); ok {
		a.s.Frozen = ns.Freeze
	}
	if a.s.Frozen == "" {
		a.s.Frozen = c.Options.Freeze
	}
	return a
}

func (a *assembly) readable() error {
	for _, err := range []error{
		object.FirstUnreadable(a.c.Services.All()), object.FirstUnreadable(a.c.Pools.All()),
		object.FirstUnreadable(a.c.Tenants.All()),
		object.FirstUnreadable(a.c.Loans.All()), object.FirstUnreadable(a.c.Shares.All()),
		object.FirstUnreadable(a.c.Jobs.All()),
		object.FirstUnreadable(a.c.Festivals.All()),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// at brings a stamp of the API server, a kubelet or an agent into our time, and never into the future: stamps are whole seconds, and our clock may stand.
func (a *assembly) at(stamp time.Time) time.Time {
	if stamp.IsZero() {
		return stamp
	}
	t := a.c.Options.Clock.At(stamp).UTC()
	if t.After(a.s.At) {
		return a.s.At
	}
	return t
}

// knownAt is at of a time that may be unknown.
func (a *assembly) knownAt(k fleet.Known[time.Time]) fleet.Known[time.Time] {
	if !k.OK {
		return k
	}
	t := a.at(k.Value)
	return fleet.KnownAt(t, t)
}

// held is what the pauses of an object and of its namespace come to now. Their ends are stated in the time of the
// controller.
func (a *assembly) held(namespace string, own []fleet.Hold) fleet.Held {
	all := own
	if ns, ok := a.c.Namespaces.Get("", namespace); ok && namespace != "" {
		all = slices.Concat(own, ns.Holds)
	}
	return fleet.HeldAt(a.s.At, all...)
}

func (a *assembly) addPools() {
	all := a.c.Pools.All()
	apis := make([]*v1alpha1.CapacityPool, len(all))
	for i, p := range all {
		apis[i] = p.API
	}
	slices.SortFunc(apis, func(x, y *v1alpha1.CapacityPool) int { return cmp.Compare(x.Name, y.Name) })
	for name, p := range validate.OverlappingPools(apis) {
		a.notes.pools[fleet.PoolID(name)] = catalog.PoolsOverlap.Of(p.String())
	}
	a.bundled = map[string]bool{v1alpha1.SchedulerName: true}
	for _, p := range all {
		pool, held := p.Facts.Pool, a.held("", p.Facts.Holds)
		pool.Hold, pool.Ended = held.Hold, held.Ended
		a.s.Pools = append(a.s.Pools, pool)
		if by := p.Facts.Pool.Scheduler; by != "" {
			a.bundled[by] = true
		}
		if p.Facts.Problem.Any() {
			a.notes.pools[p.Facts.Pool.ID] = p.Facts.Problem
		}
	}
}

func (a *assembly) addNodes() {
	pools := a.c.Pools.All()
	slices.SortFunc(pools, func(x, y *watch.OwnPool) int { return cmp.Compare(x.Name, y.Name) })
	nodes := a.c.Nodes.All()
	slices.SortFunc(nodes, func(x, y *watch.NodeFacts) int { return cmp.Compare(x.Name, y.Name) })
	for _, f := range nodes {
		n := f.Node
		n.Pool = a.homeOf(f, pools)
		n.Allocatable.GPU += a.devices.OnNode(f.Name)
		if t, ok := a.topology(f.Name); ok {
			n.Cells = t.Cells
		}
		if l, ok := a.c.Leases.Get(a.c.Options.Namespace, agentLease(f.Name)); ok {
			n.AgentAlive, n.AgentKnown = l.Alive(a.wall), true
		}
		// A NodeShare of another UID speaks of a machine that is gone; for this one nothing was promised yet.
		switch s, ok := a.c.Shares.Get("", f.Name); {
		case ok && s.Facts.Node == n.ID:
			n.Share = s.Facts.Share
			n.Share.Rest.Until = a.until("NodeShare", &s.Header, "spec.rest.until", n.Share.Rest.Until, restSpan)
			n.Share.Evicted = slices.DeleteFunc(slices.Clone(n.Share.Evicted), func(e fleet.AgentEviction) bool {
				return a.past("NodeShare", &s.Header, "status.evictions", e.At).IsZero()
			})
			if s.Facts.ByAgent {
				n.Share.Parcels = slices.Clone(n.Share.Parcels)
				for i := range n.Share.Parcels {
					n.Share.Parcels[i].CleanAt = a.at(n.Share.Parcels[i].CleanAt)
				}
			}
			n.AgentKnown = n.AgentKnown || s.Facts.Agent == n.ID
			a.charge(&n)
		case ok:
			n.Share.Former = s.ResourceVersion
		}
		a.nodeIDs[f.Name] = n.ID
		a.s.Nodes = append(a.s.Nodes, n)
	}
}

// charge counts the pods that the agent of a node evicted in the pool that the node is at home in.
func (a *assembly) charge(n *fleet.Node) {
	for i := range a.s.Pools {
		if p := &a.s.Pools[i]; p.ID == n.Pool && n.Pool != "" {
			p.Evicted = append(p.Evicted, n.Share.Evicted...)
		}
	}
}

// Topology finds a node's cells. The object is named after the node and lies in no namespace.
func (a *assembly) topology(node string) (*watch.TopologyFacts, bool) {
	return a.c.Topologies.Get("", node)
}

// homeOf is the pool whose selector picks the node. A node picked by two belongs to neither, and both say so: guessing would lend a
// machine on terms that its owner did not set.
func (a *assembly) homeOf(f *watch.NodeFacts, pools []*watch.OwnPool) fleet.PoolID {
	var home fleet.PoolID
	var contested bool
	for _, p := range pools {
		if !p.Facts.Selector.Matches(f.Labels) {
			continue
		}
		id := p.Facts.Pool.ID
		if home == "" {
			home = id
			continue
		}
		contested = true
		for _, pair := range [][2]fleet.PoolID{{home, id}, {id, home}} {
			if !a.notes.pools[pair[0]].Any() {
				a.notes.pools[pair[0]] = catalog.NodeContested.Of(f.Name, pair[1])
			}
		}
	}
	if contested {
		return ""
	}
	return home
}

// addRevisions finds the newest ReplicaSet of each Deployment: the highest revision, and the younger on a tie.
func (a *assembly) addRevisions() {
	sets := a.c.ReplicaSets.All()
	a.revisions = make(map[watch.Owned]*watch.ReplicaSetFacts, len(sets))
	best := map[watch.Owned]*watch.ReplicaSetFacts{}
	for _, r := range sets {
		a.revisions[watch.Owned{Namespace: r.Namespace, UID: r.UID}] = r
		if r.Deployment == "" {
			continue
		}
		of := watch.Owned{Namespace: r.Namespace, UID: r.Deployment}
		b, ok := best[of]
		if !ok || r.Revision > b.Revision || (r.Revision == b.Revision && b.Older(&r.Header)) {
			best[of] = r
		}
	}
	a.newest = make(map[watch.Owned]types.UID, len(best))
	for d, r := range best {
		a.newest[d] = r.UID
	}
}
