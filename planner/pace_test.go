package planner

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// flood is a fleet of which most is lent, and a tide that rises in a while. Each cycle begins its recalls and nothing else happens to them.
type flood struct {
	*world
	in time.Duration
	// told is when each loan was recalled, from the start.
	recalled map[fleet.LoanID]time.Duration
}

func newFlood(lent int, in time.Duration, machines, perHour int) *flood {
	f := &flood{newWorld(lent+4).service("web", 12, 0, 4, 12*8*0.5), in, map[fleet.LoanID]time.Duration{}}
	for i := range lent {
		f.loan(4+i, fleet.Lent, 1)
	}
	f.rises = []rise{{"shop/web", in, float64(4+machines) * 64 * 0.55}}
	f.s.Pools[1].MovesPerHour = perHour
	return f
}

// cycle plans once, a time after the start. The world's clock stands, so the tide and what was recalled move towards it.
func (f *flood) cycle(after time.Duration) Plan {
	for i := range f.s.Loans {
		if l := &f.s.Loans[i]; l.Phase == fleet.Noticed {
			l.FirstNotice = t0.Add(f.recalled[l.ID] - after)
		}
	}
	in := f.input()
	tide := in.Tides["shop/web"]
	tide.Start = tide.Start.Add(-after)
	in.Tides["shop/web"] = tide
	p := made(in)
	for _, m := range p.Moves {
		if m.Kind != MoveRecall {
			continue
		}
		f.recalled[m.Before.ID] = after
		l := f.s.Loan(m.Before.ID)
		*l = m.After
		l.Deadline, l.Due = t0.Add(time.Minute), t0.Add(time.Hour)
		e := &f.s.Node(l.Node).Share.Parcels[0]
		e.Holder, e.Next, e.Epoch = l.Holder(), l.Next(), l.Epoch
	}
	return p
}

// toldBy counts the recalls of the minute up to a time.
func (f *flood) recalledBy(at time.Duration) (n int) {
	for _, recalled := range f.recalled {
		if recalled <= at && at-recalled < time.Minute {
			n++
		}
	}
	return n
}

// Recalls that a forecast asks for go at the pace of the move budget while there is time, and at once when there is none: by the time at which a
// recall must begin to be home in time, as many have begun as without a bound.
func TestRecallsHaveAPaceAndAreNeverLateByIt(t *testing.T) {
	const step, ahead = 15 * time.Second, 5 * time.Minute
	held, came := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		lent := rapid.IntRange(4, 16).Draw(t, "lent")
		machines := rapid.IntRange(1, lent).Draw(t, "asked for")
		in := 18*time.Minute + time.Duration(rapid.IntRange(0, 20).Draw(t, "in"))*step
		perHour := rapid.SampledFrom([]int{1, 60, 120, 240}).Draw(t, "an hour")
		f, free := newFlood(lent, in, machines, perHour), newFlood(lent, in, machines, 6000)
		lead := time.Duration(0)
		for after := time.Duration(0); after < in; after += step {
			p := f.cycle(after)
			free.cycle(after)
			lead = p.Pools[0].Lead.Total()
			// A need that the lead does not reach, in whole steps of the tide, may wait.
			if n, most := f.recalledBy(after), max((perHour+59)/60, 1); in-after >= (lead/ahead+2)*ahead && n > most {
				t.Fatalf("%s before the flood %d machines were recalled within a minute, the pace is %d", in-after, n, most)
			}
			held += len(p.Withheld)
			if in-after-step < lead {
				break
			}
		}
		came += len(f.recalled)
		if len(f.recalled) != len(free.recalled) {
			t.Fatalf("%s before the flood, the lead, %d machines were recalled; without a bound %d were", lead, len(f.recalled), len(free.recalled))
		}
	})
	if held == 0 || came == 0 {
		t.Errorf("%d recalls, and %d times some were held back", came, held)
	}
}
