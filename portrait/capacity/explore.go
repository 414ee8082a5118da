package capacity

import "time"

// exploreBudget is the share of the objective's budget above which a knee may be approached.
const exploreBudget = 0.75

// exploreRest is how long after a broken minute none is risked.
const exploreRest = 24 * time.Hour

// Quiet is what exploring asks of a moment.
type Quiet struct {
	Now time.Time
	// Slow says that the operator allows it (slo.explore: Slow).
	Slow bool
	// Hours says that these are quiet hours of the service, Budget the share of the objective's budget that is left.
	Hours  bool
	Budget float64
}

// Explore is the load to size a replica for while its knee is approached: one step of 5 % above the capacity, or above
// the rule's load where no capacity is known. As minutes hold there the capacity follows, and the next step is 5 %
// above that. After a broken minute it is no more than the capacity, for a day.
//
// To see a load a replica must have it: the caller sizes by the load that it expects, without the margin of an upper
// quantile.
func (l *Level) Explore(q Quiet, rule float64) float64 {
	base := l.InForce
	if base == 0 {
		base = rule
	}
	calm := l.Broke.IsZero() || q.Now.Sub(l.Broke) >= exploreRest
	if !q.Slow || !q.Hours || !(q.Budget > exploreBudget) || !calm || l.spell.on() {
		return base
	}
	return max(base, min(base*beyond, seenBeyond*l.seen()))
}
