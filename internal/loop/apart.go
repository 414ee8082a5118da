package loop

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/portrait/capacity"
)

// ratesSettle is how long after a change rates still hold what was before it: they look back over two minutes.
const ratesSettle = 2 * time.Minute

// apartKept bounds the times of a service that are remembered until the history of their minutes is read.
const apartKept = 256

// noteApart remembers the times at which a service's replicas were not the steady ones that a capacity is of: pods of
// two revisions, or pods on a machine that is borrowed. The snapshot alone knows both.
func (l *Loop) noteApart(s *fleet.Snapshot) {
	borrowed := map[fleet.NodeID]bool{}
	for i := range s.Loans {
		if x := &s.Loans[i]; !x.Phase.Ended() && s.FromOffline(x) {
			borrowed[x.Node] = true
		}
	}
	for i := range s.Services {
		svc := &s.Services[i]
		progress := l.progressOf(svc.ID)
		progress.apart = progress.apart.until(s.At.Add(ratesSettle))
		from, to := s.At.Add(-ratesSettle), s.At.Add(ratesSettle)
		if gap := s.At.Sub(l.seen); gap >= 0 && gap < l.o.Learn {
			from = l.seen
		}
		if svc.Rolling() {
			progress.apart = progress.apart.add(capacity.RollOver, from, to)
		}
		for k := 0; k < len(svc.Pods) && len(borrowed) > 0; k++ {
			if p := &svc.Pods[k]; p.Ready && borrowed[p.Node] {
				progress.apart = progress.apart.add(capacity.Borrowed, from, to)
				break
			}
		}
	}
	l.seen = s.At
}

// aparts are times that are kept apart, in the order of their ends.
type aparts []portrait.ApartSpan

// add goes on with a time that is not over, or begins one.
func (a aparts) add(why capacity.Apart, from, to time.Time) aparts {
	for i := range a {
		if x := &a[i]; x.Why == why && !from.After(x.To) {
			x.From, x.To = earlier(x.From, from), later(x.To, to)
			return a
		}
	}
	return append(a[max(0, len(a)+1-apartKept):], portrait.ApartSpan{From: from, To: to, Why: why})
}

// until cuts times that reach beyond a moment: the clock was ahead, and was set back.
func (a aparts) until(t time.Time) aparts {
	out := a[:0]
	for _, x := range a {
		if x.From.After(t) {
			continue
		}
		x.To = earlier(x.To, t)
		out = append(out, x)
	}
	return out
}

// after drops the times that ended before a moment: their minutes were read.
func (a aparts) after(t time.Time) aparts {
	var out aparts
	for _, x := range a {
		if x.To.After(t) {
			out = append(out, x)
		}
	}
	return out
}
