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

// claims keep recalled room for the service that it was recalled for, from the event by which it is home until its pods are bound there or the time is
// over. A recall that no service caused needs none: the room is online's alone anyway.
type claims struct {
	timeout time.Duration
	// loans name the claimant of a loan, by its UID.
	loans map[string]string
	// services find the ElasticService of a workload: namespace/kind/name.
	services map[string]string
}

func newClaims(timeout time.Duration) *claims {
	return &claims{timeout: timeout, loans: map[string]string{}, services: map[string]string{}}
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

// cameHome reserves what has come home between two states of a node's share.
func (s *claims) cameHome(c *core, n *nodeFacts, before *v1alpha1.NodeShare) {
	if n.node == nil || before == nil || n.share == nil || before.UID != n.share.UID {
		return
	}
	home := c.pools.homeOf(n.node.Labels)
	if home == nil || home.class != fleet.Online || !c.servesPool(home) {
		return
	}
	for i := range before.Spec.Parcels {
		p := &before.Spec.Parcels[i]
		claimant := s.loans[p.LoanUID]
		if claimant == "" || p.Holder == home.name || stillAway(n.share, p.LoanUID, home.name) {
			continue
		}
		cells := make([]int, len(p.Cells))
		for k, cell := range p.Cells {
			cells[k] = int(cell)
		}
		facts := fleet.Node{Allocatable: split(n.node.Status.Allocatable).resources, Cells: n.inside.Cells}
		c.table.Reserve(place.Claim{Node: fleet.NodeID(n.node.Name), Side: fleet.Online, Claimant: claimant, Room: facts.CapacityOf(cells),
			Until: c.now().Add(s.timeout)})
		c.log.Info("room came home and is kept for its claimant", "node", n.node.Name, "claimant", claimant)
	}
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

// mostLoans bounds the claimants that are remembered.
const mostLoans = 100_000

// setLoan notes whom a loan is recalled for.
func (c *core) setLoan(uid types.UID, claimant string) {
	if claimant == "" {
		delete(c.claims.loans, string(uid))
		return
	}
	if len(c.claims.loans) > mostLoans {
		clear(c.claims.loans) // of loans that are over; the others come again with their next change
	}
	c.claims.loans[string(uid)] = claimant
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
