package quota

import (
	"slices"

	"github.com/springtide/springtide/fleet"
)

// Parcels says of which parcels of offline work each machine is made.
type Parcels struct {
	s *fleet.Snapshot
	// lent are those that are away from online pools, home those of them that are recalled; gone are machines that
	// online work has.
	lent, home map[fleet.NodeID]map[fleet.ParcelKind]int64
	gone       map[fleet.NodeID]bool
}

// NewParcels reads them from the loans.
func NewParcels(s *fleet.Snapshot) *Parcels {
	p := &Parcels{s: s, lent: map[fleet.NodeID]map[fleet.ParcelKind]int64{}, home: map[fleet.NodeID]map[fleet.ParcelKind]int64{}, gone: map[fleet.NodeID]bool{}}
	add := func(to map[fleet.NodeID]map[fleet.ParcelKind]int64, l *fleet.Loan) {
		if to[l.Node] == nil {
			to[l.Node] = map[fleet.ParcelKind]int64{}
		}
		to[l.Node][l.Kind]++
	}
	for i := range s.Loans {
		l := &s.Loans[i]
		if !l.Phase.Away() {
			continue
		}
		if from := s.Pool(l.From); from != nil && from.Class == fleet.Offline {
			p.gone[l.Node] = true
			continue
		}
		if !l.Phase.Lost() {
			add(p.lent, l)
			if l.Phase != fleet.Lent {
				add(p.home, l)
			}
		}
	}
	return p
}

// On is how many parcels of a class a machine is: firm as one of an offline pool, and lent, of which home are recalled.
// A machine that is lent by the socket counts with its lent sockets.
func (p *Parcels) On(n *fleet.Node, class fleet.ParcelClass) (firm, lent, home int64) {
	if pool := p.s.Pool(n.Pool); pool != nil && pool.Class == fleet.Offline && !p.gone[n.ID] && class.Holds(fleet.KindNode, n.GPUModel) {
		firm = 1
	}
	for _, kind := range [...]fleet.ParcelKind{fleet.KindNode, fleet.KindSocket} {
		if class.Holds(kind, n.GPUModel) {
			lent += p.lent[n.ID][kind]
			home += p.home[n.ID][kind]
		}
	}
	return firm, lent, home
}

// ParcelsOf counts the parcels of each class that offline pods of each tenant are on: machines of offline pools, and
// machines and sockets that are away from online ones; and how many of each there are. A recalled parcel counts only
// while work is on it: no pod gets there any more, and the work there has to find other parcels among those that are
// left.
func ParcelsOf(tenancy Tenancy, s *fleet.Snapshot, classes []fleet.ParcelClass) (supply []ParcelSupply, used map[fleet.TenantID][]ParcelCount) {
	used = map[fleet.TenantID][]ParcelCount{}
	if len(classes) == 0 {
		return nil, used
	}
	on := map[fleet.NodeID][]fleet.TenantID{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if id := tenancy.Of(p.Name.Namespace); p.Class == fleet.PodOffline && p.Occupies() && id != "" && !slices.Contains(on[p.Node], id) {
			on[p.Node] = append(on[p.Node], id)
		}
	}
	parcels := NewParcels(s)
	for _, class := range classes {
		sum := ParcelSupply{Class: class}
		count := map[fleet.TenantID]int64{}
		for i := range s.Nodes {
			n := &s.Nodes[i]
			firm, lent, home := parcels.On(n, class)
			who := on[n.ID]
			if len(who) == 0 {
				lent -= home
			} else {
				sum.Held += firm + lent
				sum.Beside += int64(len(who)-1) * (firm + lent)
			}
			sum.Firm, sum.Lent = sum.Firm+firm, sum.Lent+lent
			for _, id := range who {
				count[id] += firm + lent
			}
		}
		supply = append(supply, sum)
		for i := range s.Tenants {
			if id := s.Tenants[i].ID; count[id] > 0 {
				used[id] = append(used[id], ParcelCount{Class: class, N: count[id]})
			}
		}
	}
	return supply, used
}
