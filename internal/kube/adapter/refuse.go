package adapter

import (
	"slices"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// Refusals lists why nothing may be lent to a member; none where it may grow and shrink. Each reads "Reason: sentence",
// names the setting, and says how to fix it. The first is what stands in the way most.
func Refusals(w *Workload, m *v1alpha1.JobMember) []fleet.Problem {
	if w.Finished {
		return nil
	}
	p := w.Part(m.PartName())
	if p == nil {
		return []fleet.Problem{catalog.PartUnknown.Of(m.Role, w.What, m.PartName(), w.partNames())}
	}
	var out []fleet.Problem
	if keeps := p.Fixed != "" || m.Min == m.Max && m.Stable; !keeps && !p.SelfSized {
		out = slices.Clone(w.Owned) // first, since the others do not help while it stands
	}
	out = append(out, w.Refusals...)
	if why := heldStable(p, m); why.Any() {
		return append(out, why)
	}
	out = append(out, p.StableToo...)
	if p.Fixed != "" || m.Min == m.Max && m.Stable {
		return out // it keeps its size, and what shrinking would meet is no matter
	}
	out = append(out, p.Refusals...)
	return append(out, outOfBounds(w, p, m)...)
}

// heldStable refuses lent capacity to a part that holds the others together, and more than one size to what has one size alone.
func heldStable(p *Part, m *v1alpha1.JobMember) fleet.Problem {
	why := p.Fixed
	switch {
	case m.HoldsTogether():
		why = "the " + m.PartName() + " holds the job together"
	case why == "":
		return fleet.Problem{}
	}
	switch {
	case !m.Stable:
		return catalog.RoleNotStable.Of(m.Role, why, p.Size)
	case m.Min != m.Max:
		return catalog.RoleKeepsItsSize.Of(m.Role, why, p.Size)
	}
	return fleet.Problem{}
}

// outOfBounds holds the member's bounds to the workload's own: below its minimum a ring waits or fails, above its
// maximum pods have nothing to do. A workload that sizes itself does not know the member's bounds at all, so they have
// to be the same.
func outOfBounds(w *Workload, p *Part, m *v1alpha1.JobMember) []fleet.Problem {
	var out []fleet.Problem
	if b := p.Min; b.Field != "" && (m.Min < b.Value || p.SelfSized && m.Min != b.Value) {
		refuse(&out, catalog.MinDiffers, m.Role, m.Min, b.Field, w.What, b.Value)
	}
	if b := p.Max; b.Field != "" && (m.Max > b.Value || p.SelfSized && m.Max != b.Value) {
		refuse(&out, catalog.MaxDiffers, m.Role, m.Max, b.Field, w.What, b.Value)
	}
	return out
}
