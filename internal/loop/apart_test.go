package loop

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait/capacity"
)

// TestNoteApart: a roll-over and a borrowed machine are kept apart from the cycle that saw them last before until the
// rates are those of steady replicas again, once for each stretch.
func TestNoteApart(t *testing.T) {
	start := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	pool := func(id fleet.PoolID, c fleet.Class) fleet.Pool { return fleet.Pool{ID: id, Class: c} }
	loan := fleet.Loan{ID: "l", Node: "n1", From: "train", To: "web", Phase: fleet.Lent}
	home := fleet.Loan{ID: "h", Node: "n1", From: "web", To: "train", Phase: fleet.Emptying}
	pod := fleet.Pod{Service: "shop/cart", Node: "n1", Ready: true, CurrentRevision: true, Phase: fleet.PodRunning}
	old := pod
	old.CurrentRevision = false
	for _, c := range []struct {
		name string
		// seen are the pods and loans of the cycles, 30 seconds apart.
		seen []fleet.Snapshot
		want []span
	}{
		{"steady", []fleet.Snapshot{{}, {}, {}}, nil},
		{"rolls over", []fleet.Snapshot{{}, {Services: []fleet.Service{{Pods: []fleet.Pod{old, pod}}}},
			{Services: []fleet.Service{{Pods: []fleet.Pod{old, pod}}}}, {}, {}},
			[]span{{0, 180, capacity.RollOver}}},
		{"borrowed from offline", []fleet.Snapshot{{}, {}, {Loans: []fleet.Loan{loan}}, {}},
			[]span{{30, 180, capacity.Borrowed}}},
		{"its own machine that is lent", []fleet.Snapshot{{Loans: []fleet.Loan{home}}, {Loans: []fleet.Loan{home}}}, nil},
		{"the first cycle", []fleet.Snapshot{{Loans: []fleet.Loan{loan}}}, []span{{-120, 120, capacity.Borrowed}}},
		{"the clock is set back an hour", []fleet.Snapshot{{Loans: []fleet.Loan{loan}, At: at(3600)},
			{Loans: []fleet.Loan{loan}, At: at(30)}}, []span{{-90, 150, capacity.Borrowed}}},
		{"the clock leaps three days and comes back", []fleet.Snapshot{{}, {Loans: []fleet.Loan{loan}, At: at(3 * 86400)},
			{At: at(60)}}, nil},
		{"twice", []fleet.Snapshot{{Loans: []fleet.Loan{loan}}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
			{Loans: []fleet.Loan{loan}}},
			[]span{{-120, 120, capacity.Borrowed}, {330, 480, capacity.Borrowed}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := New(Ports{}, Options{Learn: 5 * time.Minute})
			for i := range c.seen {
				s := &c.seen[i]
				if s.At.IsZero() {
					s.At = at(30 * i)
				}
				s.Pools = []fleet.Pool{pool("train", fleet.Offline), pool("web", fleet.Online)}
				if len(s.Services) == 0 {
					s.Services = []fleet.Service{{Pods: []fleet.Pod{pod}}}
				}
				s.Services[0].ID = "shop/cart"
				s.Sort()
				l.noteApart(s)
			}
			var got []span
			for _, x := range l.progressOf("shop/cart").apart {
				got = append(got, span{int(x.From.Sub(start) / time.Second), int(x.To.Sub(start) / time.Second), x.Why})
			}
			if d := cmp.Diff(c.want, got, cmp.AllowUnexported(span{})); d != "" {
				t.Error(d)
			}
			if left := l.progressOf("shop/cart").apart.after(at(480)); len(left) != 0 {
				t.Errorf("%d times are kept after their minutes were read", len(left))
			}
		})
	}
}

type span struct {
	from, to int
	why      capacity.Apart
}

// TestPatience: a service that cannot be read is left alone for twice as long each time, up to an hour.
func TestPatience(t *testing.T) {
	p, at := &progress{}, time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for _, want := range []time.Duration{5, 10, 20, 40, 60, 60} {
		p.fail(at, 5*time.Minute)
		if got := p.retry.Sub(at); got != want*time.Minute || !p.unread {
			t.Errorf("left alone for %s, want %dm", got, want)
		}
	}
}
