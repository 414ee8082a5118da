package planner

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// standing is a pod that a scale-in may take.
type standing struct {
	*fleet.Pod
	zone     string
	emptying bool
	asked    fleet.MilliCPU
	// above is 0, or how many pods of its service are on its machine when its turn comes, of which so many are more than its spread allows.
	above int
}

// victims picks the k pods that a scale-in should take: pods that are not ready go first by the ReplicaSet's own rule
// and need no cost, so they only count; where machines are emptied, then those that are too many on a machine for so
// few replicas; then pods on machines that are being emptied, as far as the disruption ledgers let them; then pods on
// the machines with the least online work, so that whole machines come free. The last pod of a zone stays while there
// are replicas for all zones. The deletion cost is written on these pods alone. All that is due is charged.
func (m *scaler) victims(svc *fleet.Service, k int32, due bool) (refs []PodRef, charges []Charge, refused int32, by string) {
	var ready []standing
	shrinking := svc.Shrinking()
	for i := range svc.Pods {
		p := &svc.Pods[i]
		switch {
		case p.Deleting || p.Phase == fleet.PodSucceeded || p.Phase == fleet.PodFailed:
		case shrinking && svc.Goes(p): // by the scale-in before, which is not over
		case !p.Ready:
			k--
		default:
			l := standing{Pod: p, emptying: m.emptying(p), asked: m.on(p.Node).Online.CPU}
			if n := m.in.Snapshot.Node(p.Node); n != nil {
				l.zone = n.Zone
			}
			ready = append(ready, l)
		}
	}
	byOrder := func(a, b standing) int {
		return cmp.Or(
			cmp.Compare(b.above, a.above),
			fleet.TrueFirst(a.emptying, b.emptying),
			cmp.Compare(a.asked, b.asked),
			cmp.Compare(a.NodeName, b.NodeName),
			a.Name.Compare(b.Name),
		)
	}
	slices.SortFunc(ready, byOrder)
	stay := max(len(ready)-int(k), 0)
	if slices.ContainsFunc(ready, func(p standing) bool { return p.emptying }) {
		crowded(ready, stay)
	}
	slices.SortFunc(ready, byOrder)
	zones := map[string]int{}
	for _, p := range ready {
		zones[p.zone]++
	}
	lose := len(zones) - stay // zones for which no replica is left
	for _, p := range ready {
		if int32(len(refs)) >= k {
			return refs, charges, 0, ""
		}
		last := zones[p.zone] == 1
		if last && lose <= 0 {
			continue
		}
		switch {
		case due:
			charges = m.charge(charges, p.Node, 1, true)
		case p.emptying:
			if no := m.spending(m.chargedTo(p.Node)).Take(svc.Owner(), svc.Standing(), 1); no != "" {
				refused, by = refused+1, no
				continue
			}
			charges = m.charge(charges, p.Node, 1, false)
		}
		if zones[p.zone]--; last {
			lose--
		}
		refs = append(refs, PodRef{Name: p.Name, ID: p.ID})
	}
	return refs, charges, min(refused, max(k-int32(len(refs)), 0)), by
}

// crowded marks the pods that are too many on their machines when so many of all stay: where not all of them can leave, the fullest machine is
// left first. A service that was not spread stays as it was.
func crowded(ready []standing, stay int) {
	on := fleet.Spread{}
	for i := range ready {
		on[ready[i].Node]++
	}
	if !on.Even() {
		return
	}
	for i := range ready {
		if p := &ready[i]; on[p.Node] > fleet.MostPerHost(stay) {
			p.above = on[p.Node]
			on[p.Node]--
		}
	}
}
