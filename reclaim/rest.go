package reclaim

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// Rests are how long machines rest: Least after a loan that was turned back, twice as long after each further one, Most at most.
type Rests struct{ Least, Most time.Duration }

// After is the rest of a machine once a loan of it from an online pool is over. The one that lasted for its term, or was followed by as much
// calm as the longest rest takes, makes good what came before it.
func (r Rests) After(was fleet.Rest, l *fleet.Loan, term time.Duration) fleet.Rest {
	over := l.Since
	if !l.CleanAt.IsZero() {
		over = l.CleanAt
	}
	switch {
	case !l.LentAt.IsZero() && l.FirstNotice.Sub(l.LentAt) >= term:
		return fleet.Rest{Until: over.Add(r.Least)}
	case over.Sub(was.Until) > r.Most:
		was.Turns = 0
	}
	rest := r.Least
	for range was.Turns {
		if rest *= 2; rest >= r.Most {
			rest = r.Most
			break
		}
	}
	return fleet.Rest{Turns: was.Turns + 1, Until: over.Add(rest)}
}

// resting says why a machine is not offered now; none where it is.
func resting(n *fleet.Node, now time.Time) reason.Reason {
	rest := &n.Share.Rest
	if !rest.Until.After(now) {
		return reason.Reason{}
	}
	why := reason.Of(reason.JustOver)
	if rest.Turns > 0 {
		why = reason.Of(reason.TurnedBack, rest.Turns)
	}
	return reason.Of(reason.RestsUntil, rest.Until.UTC().Format(time.RFC3339), why)
}
