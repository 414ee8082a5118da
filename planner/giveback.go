package planner

import (
	"github.com/springtide/springtide/reason"
)

// giveBacks finds the HPAs that no ElasticService asks to keep. A floor that goes takes away, so a new leader watches
// one window first: the service may be about to be written again.
func (m *scaler) giveBacks() {
	s := m.in.Snapshot
	for i := range s.Orphans {
		o := &s.Orphans[i]
		a := GiveBack{HPA: o.Name, ID: o.ID, From: o.Min, To: o.Own, Why: reason.Of(reason.ServiceGone)}
		if by := m.in.permit(permitted{}, takes); !by.None() {
			m.withhold(Subject{SubjectHPA, o.Name.String()}, a.Summary(), by, a.Why)
			continue
		}
		m.plan.GiveBacks = append(m.plan.GiveBacks, a)
	}
}
