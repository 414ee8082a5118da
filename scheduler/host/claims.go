package host

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/place"
)

// claims keep recalled room for its claimant, until the claimant's pods are bound there or the time is over: for the service whose pods waited for it, or for
// all pods of the pool where a forecast recalled for them in sum. It begins with the event by which the room is home, or, for a scheduler that was not there at
// that event, with what the loan says of it. With one online pool there is no other pool to keep room from, and offline has none of it in any case.
type claims struct {
	timeout time.Duration
	// loans are those that are known, by their UID.
	loans map[string]*homecoming
	// missed are those that came home unseen, and are not looked at yet.
	missed []*homecoming
	// services find the ElasticService of a workload: namespace/kind/name.
	services map[string]string
	// homes are the online pools on whose nodes most pods of each service are, as they were counted last.
	homes   map[string]string
	counted time.Time
	// first is the first online pool by name; several: there are more.
	first   string
	several bool
}

// homecoming is a loan, as far as it says for whom it comes home.
type homecoming struct {
	// claimant is the service that it is recalled for; empty for all of the pool, and while it is not recalled.
	claimant string
	node     string
	nodeUID  types.UID
	cells    []int
	// since is when it was Returned; zero before.
	since time.Time
	// kept: its room was reserved once.
	kept bool
}

func newClaims(timeout time.Duration) *claims {
	return &claims{timeout: timeout, loans: map[string]*homecoming{}, services: map[string]string{}, homes: map[string]string{}}
}

// claimantOf is the ElasticService of a pod, by its controller; empty for none.
func (s *claims) claimantOf(o *corev1.Pod) string {
	owner := metav1.GetControllerOf(o)
	if owner == nil || len(s.services) == 0 {
		return ""
	}
	kind, name := owner.Kind, owner.Name
	if hash := o.Labels["pod-template-hash"]; kind == "ReplicaSet" && hash != "" {
		// A Deployment names its ReplicaSets after itself and the hash.
		if of, ok := strings.CutSuffix(name, "-"+hash); ok {
			kind, name = "Deployment", of
		}
	}
	return s.services[o.Namespace+"/"+kind+"/"+name]
}

// poolKey names a pool as a claimant. No service has such a name.
func poolKey(pool string) string { return "pool " + pool }

// poolOf is the pool that an online pod is of, as a claimant: the one that it names, or that of the one node that it is for, or else the one where most pods of its
// service are; empty for a pod of no service, which may use what any pool has, and where there is one online pool.
func (s *claims) poolOf(c *core, p *pod) string {
	service := p.shape.Claimant
	switch named := p.object.Labels[v1alpha1.LabelPool]; {
	case !s.several || p.shape.Side != fleet.Online:
		return ""
	case named != "":
		return poolKey(named)
	case p.pinned != "":
		return poolKey(c.poolOf(p.pinned))
	case service == "":
		return ""
	case s.homes[service] != "":
		return poolKey(s.homes[service])
	}
	return poolKey(s.first)
}

// countEvery is how old the homes of services may be when room is kept for a pool.
const countEvery = 10 * time.Second

// count finds the home of each service, and reads the pods again that wait and are of another pool than when they came.
func (s *claims) count(c *core) {
	if now := c.now(); s.counted.IsZero() || now.Sub(s.counted) >= countEvery {
		s.counted = now
		pods := map[string]map[string]int{}
		for _, p := range c.byRef {
			service, pool := p.shape.Claimant, c.pools[c.poolOf(p.node)]
			if service == "" || pool == nil || pool.class != fleet.Online {
				continue
			}
			if pods[service] == nil {
				pods[service] = map[string]int{}
			}
			pods[service][pool.name]++
		}
		s.homes = map[string]string{}
		for service, of := range pods {
			most := 0
			for _, pool := range sortedKeys(of) {
				if of[pool] > most {
					s.homes[service], most = pool, of[pool]
				}
			}
		}
	}
	for _, p := range c.pods {
		if p.stage == waits && p.shape.ClaimantPool != s.poolOf(c, p) {
			c.reread(p)
		}
	}
}

// cameHome reserves what has come home between two states of a node's share.
func (s *claims) cameHome(c *core, n *nodeFacts, before *v1alpha1.NodeShare) {
	home := s.home(c, n)
	if home == nil || before == nil || n.share == nil || before.UID != n.share.UID {
		return
	}
	for i := range before.Spec.Parcels {
		p := &before.Spec.Parcels[i]
		if p.Holder == home.name || stillAway(n.share, p.LoanUID, home.name) {
			continue
		}
		l := s.loans[p.LoanUID]
		if l == nil { // a loan that a service claims is known long before it is home
			l = &homecoming{}
			s.loans[p.LoanUID] = l
		}
		if l.kept {
			continue
		}
		cells := make([]int, len(p.Cells))
		for k, cell := range p.Cells {
			cells[k] = int(cell)
		}
		s.reserve(c, n, s.claimant(l, home), l, cells, n.capacityOf(cells), c.now().Add(s.timeout))
	}
}

// unseen reserves what came home while this scheduler did not watch, less what pods of the claimant have taken of it since.
func (s *claims) unseen(c *core) {
	if len(s.missed) == 0 {
		return
	}
	now, missed := c.now(), s.missed
	s.missed = nil
	for _, l := range missed {
		until := l.since.Add(s.timeout)
		if now.Before(l.since) { // by another clock
			until = now.Add(s.timeout)
		}
		if l.kept || !now.Before(until) {
			continue
		}
		n := c.nodes[l.node]
		var home *poolFacts
		if n != nil {
			home = s.home(c, n)
		}
		if home == nil { // node and pool may be shown later
			s.missed = append(s.missed, l)
			continue
		}
		if n.node.UID != l.nodeUID {
			continue
		}
		room, claimant := n.capacityOf(l.cells), s.claimant(l, home)
		for _, p := range c.pods {
			if p.stage == bound && p.node == l.node && (s.claimantOf(p.object) == claimant || s.poolOf(c, p) == claimant) && !boundAt(p.object).Before(l.since) {
				room = room.Sub(p.request.resources)
			}
		}
		s.reserve(c, n, claimant, l, l.cells, room.Floor(), until)
	}
}

// boundAt is when a pod was bound.
func boundAt(o *corev1.Pod) time.Time {
	for i := range o.Status.Conditions {
		if x := &o.Status.Conditions[i]; x.Type == corev1.PodScheduled && x.Status == corev1.ConditionTrue {
			return x.LastTransitionTime.Time
		}
	}
	return o.CreationTimestamp.Time
}

// home is the pool of online that a node belongs to, where it is one that this scheduler serves.
func (s *claims) home(c *core, n *nodeFacts) *poolFacts {
	if n.node == nil {
		return nil
	}
	home := c.pools.homeOf(n.node.Labels)
	if home == nil || home.class != fleet.Online || !c.servesPool(home) {
		return nil
	}
	return home
}

// claimant is for whom the room of a loan is kept that came home to a pool.
func (s *claims) claimant(l *homecoming, home *poolFacts) string {
	if l.claimant != "" {
		return l.claimant
	}
	return poolKey(home.name)
}

// reserve sets the room of a loan aside on its cells, once.
func (s *claims) reserve(c *core, n *nodeFacts, claimant string, l *homecoming, cells []int, room fleet.Resources, until time.Time) {
	l.kept = true
	if l.claimant == "" {
		if !s.several {
			return
		}
		s.count(c)
	}
	c.table.Reserve(place.Claim{Node: fleet.NodeID(n.node.Name), Side: fleet.Online, Claimant: claimant, Room: room, Cells: cells, Until: until})
	c.log.Info("room came home and is kept for its claimant", "node", n.node.Name, "claimant", claimant)
}

// capacityOf is what cells of the node hold.
func (n *nodeFacts) capacityOf(cells []int) fleet.Resources {
	f := fleet.Node{Allocatable: split(n.node.Status.Allocatable).resources, Cells: n.inside.Cells}
	return f.CapacityOf(cells)
}

// stillAway reports whether a loan's parcel is held by another pool than its home.
func stillAway(s *v1alpha1.NodeShare, loan, home string) bool {
	return slices.ContainsFunc(s.Spec.Parcels, func(p v1alpha1.ShareParcel) bool { return p.LoanUID == loan && p.Holder != home })
}

// servesPool reports whether the pool says that this scheduler serves it.
func (c *core) servesPool(p *poolFacts) bool { return slices.Contains(c.c.Names, p.scheduler) }

// expire gives back what was kept for long enough, or was taken.
func (s *claims) expire(c *core, now time.Time) {
	before := c.table.Claims()
	if len(before) == 0 {
		return
	}
	if len(c.table.Expire(now)) > 0 {
		for i := range before {
			c.touch(string(before[i].Node))
		}
	}
	c.metrics.claims.WithLabelValues("held").Set(float64(len(c.table.Claims())))
}

// mostLoans bounds the loans that are remembered.
const mostLoans = 100_000

// setLoan takes a loan over.
func (c *core) setLoan(uid types.UID, l homecoming) {
	s, id := c.claims, string(uid)
	if len(s.loans) > mostLoans {
		clear(s.loans) // of loans that are over; the others come again with their next change
	}
	if before := s.loans[id]; before != nil {
		l.kept = before.kept
	}
	s.loans[id] = &l
	if !l.since.IsZero() && !l.kept {
		s.missed = append(s.missed, &l)
	}
}

// setService notes the workload of an ElasticService; an empty workload ends it.
func (c *core) setService(full, workload string) {
	if c.claims.services[workload] == full {
		return // its status changes every cycle
	}
	c.tally.valid = false // it names the owners of pods
	for k, v := range c.claims.services {
		if v == full && k != workload {
			delete(c.claims.services, k)
		}
	}
	if workload != "" {
		c.claims.services[workload] = full
	}
}
