package planner

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// unmarks compares what scale-ins took with what was marked to go. A mark that outlives its scale-in would have its pod
// go first in the next one, whichever pods are chosen by then. The pods of a scale-in of this plan are left to it, but
// for those that another took the turn of: they are reported once.
func (m *marker) unmarks() {
	s := m.in.Snapshot
	lowered := map[fleet.ServiceID]bool{}
	for i := range m.plan.Lowers {
		lowered[m.plan.Lowers[i].Service] = true
	}
	for i := range s.Services {
		if svc := &s.Services[i]; svc.Mode.Acts() && !svc.Blocked.Any() && svc.Desired.OK {
			m.unmark(svc, lowered[svc.ID])
		}
	}
}

func (m *marker) unmark(svc *fleet.Service, lowered bool) {
	for i := range svc.Pods {
		p := &svc.Pods[i]
		if !p.LeavesAt.OK || p.Deleting {
			continue
		}
		a := Unmark{Service: svc.ID, Pod: PodRef{Name: p.Name, ID: p.ID}, Node: p.NodeName, Passed: svc.Goes(p)}
		switch {
		case svc.Shrinking(): // its turn may come yet
			return
		case a.Passed:
			var on reason.Reason
			if m.emptying(p) {
				on = reason.Of(reason.NotEmptiedByIt, p.NodeName)
			}
			a.Why = reason.Of(reason.VictimStayed, p.Name.Name, p.LeavesAt.Value, on)
		case lowered:
			continue
		default:
			a.Why = reason.Of(reason.ScaleInUndone, p.Name.Name, p.LeavesAt.Value, svc.Desired.Value)
		}
		m.plan.Unmarks = append(m.plan.Unmarks, a)
	}
}
