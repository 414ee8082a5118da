package planner

import (
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/reason"
)

// openChange is a window of change that is open now.
type openChange struct {
	*fleet.ChangeWindow
	until time.Time
}

// changes are the windows of change that are open now, by pool; each is computed once a plan.
type changes map[fleet.PoolID][]openChange

// openChanges finds the open windows of all pools.
func openChanges(s *fleet.Snapshot) changes {
	var out changes
	for i := range s.Pools {
		p := &s.Pools[i]
		for k := range p.Changes {
			if until, open := hpa.ChangeOpenUntil(&p.Changes[k], s.At); open {
				if out == nil {
					out = changes{}
				}
				out[p.ID] = append(out[p.ID], openChange{&p.Changes[k], until})
			}
		}
	}
	for i := range s.Festivals {
		f := &s.Festivals[i]
		for _, x := range f.Freezes {
			if f.Approved && !s.At.Before(x.Start) && s.At.Before(x.End) {
				out = out.freeze(s.Pools, festivalFreeze(f.ID, x))
			}
		}
	}
	return out
}

// festivalFreeze is a phase of a festival plan as a window of change that lets nothing go on.
func festivalFreeze(plan string, x fleet.Freeze) openChange {
	return openChange{&fleet.ChangeWindow{Name: plan, Reason: "phase " + x.Phase + " of the festival plan",
		Changes: []fleet.Change{fleet.ChangeMoves, fleet.ChangeScaleIn, fleet.ChangeRecreate, fleet.ChangeResize}}, x.End}
}

// freeze opens a window in all pools.
func (c changes) freeze(pools []fleet.Pool, w openChange) changes {
	if c == nil {
		c = changes{}
	}
	for i := range pools {
		c[pools[i].ID] = append(c[pools[i].ID], w)
	}
	return c
}

// most is how much of a change a pool's open windows let go on at a time, of n that there are, and which of them is the
// tightest. Without any it is unbounded.
func (c changes) most(pool fleet.PoolID, what fleet.Change, n int) (int, reason.Reason) {
	most, why := math.MaxInt, reason.Reason{}
	for _, w := range c[pool] {
		if !slices.Contains(w.Changes, what) {
			continue
		}
		if b := w.Budget.Of(n); b < most {
			most, why = b, w.why(b)
		}
	}
	return most, why
}

// closed names a window that is open and lets nothing of a change go on; none where there is none.
func (c changes) closed(pool fleet.PoolID, what fleet.Change) reason.Reason {
	for _, w := range c[pool] {
		if slices.Contains(w.Changes, what) && w.Budget.Closed() {
			return w.why(0)
		}
	}
	return reason.Reason{}
}

// why says which window holds, until when, and why.
func (w *openChange) why(most int) reason.Reason {
	until := reason.Of(reason.ChangeForGood)
	if !w.until.IsZero() {
		until = endsAt(w.until)
	}
	said := reason.Said(w.Reason)
	if w.Problem != "" {
		said = reason.Of(reason.PauseUnreadable, w.Problem)
	}
	if most == 0 {
		return reason.Of(reason.ChangeClosed, w.Name, until, said)
	}
	return reason.Of(reason.ChangeBounded, w.Name, most, until, said)
}
