package reclaim

import (
	"iter"

	"github.com/springtide/springtide/fleet"
)

// hosts is how a service's pods lie on machines, and how many are to stay once its tide took the others.
type hosts struct {
	on        fleet.Spread
	all, stay int
	// most is how many may stay on one machine, 0 where there is no spread to keep. mayStay can by it, on machines that do not leave.
	most, mayStay int
}

// spread is how many online pods of a service each zone holds, on nodes that do not leave.
func (v *fleetView) spread(id fleet.ServiceID) map[string]int {
	if v.byZone == nil {
		v.byZone = map[fleet.ServiceID]map[string]int{}
		for i := range v.s.Nodes {
			if n := &v.s.Nodes[i]; !v.leaving[n.ID] {
				v.count(n, 1)
			}
		}
	}
	return v.byZone[id]
}

// occupied counts the zones in which a service has a pod.
func occupied(zones map[string]int) (n int) {
	for _, pods := range zones {
		if pods > 0 {
			n++
		}
	}
	return n
}

// count adds the node's online pods to the spread of their services.
func (v *fleetView) count(n *fleet.Node, by int) {
	for svc := range v.standing(n) {
		zones := v.byZone[svc]
		if zones == nil {
			zones = map[string]int{}
			v.byZone[svc] = zones
		}
		zones[n.Zone] += by
	}
}

// standing is the service of each online pod on a machine that does not end.
func (v *fleetView) standing(n *fleet.Node) iter.Seq[fleet.ServiceID] {
	return func(yield func(fleet.ServiceID) bool) {
		for _, p := range v.on.On(n.ID).Pods {
			if p.Class == fleet.PodOnline && p.Service != "" && !p.Deleting && !yield(p.Service) {
				return
			}
		}
	}
}

// hosts is how the pods of a service lie on machines.
func (v *fleetView) hosts(id fleet.ServiceID) *hosts {
	if v.byHost == nil {
		v.byHost = map[fleet.ServiceID]*hosts{}
		for i := range v.s.Nodes {
			v.countHost(&v.s.Nodes[i])
		}
		for svc, h := range v.byHost {
			h.stay = max(h.all-v.drops[svc], 0)
			if !h.on.Even() {
				continue
			}
			h.most = fleet.MostPerHost(h.stay)
			for n, here := range h.on {
				if !v.leaving[n] {
					h.mayStay += min(here, h.most)
				}
			}
		}
	}
	return v.byHost[id]
}

func (v *fleetView) countHost(n *fleet.Node) {
	for svc := range v.standing(n) {
		h := v.byHost[svc]
		if h == nil {
			h = &hosts{on: fleet.Spread{}}
			v.byHost[svc] = h
		}
		h.on[n.ID]++
		h.all++
	}
}

// crowds reports whether without a machine those that stay would be more on another one than the service's spread allows.
func (h *hosts) crowds(n fleet.NodeID) bool {
	return h.most > 0 && h.mayStay-min(h.on[n], h.most) < h.stay
}

func (v *fleetView) leave(n *fleet.Node, victims map[fleet.ServiceID]int) {
	for svc := range victims { // before it leaves, or what is computed now would leave it out twice
		h := v.hosts(svc)
		h.mayStay -= min(h.on[n.ID], h.most)
	}
	v.leaving[n.ID] = true
	if v.byZone != nil {
		v.count(n, -1)
	}
}
