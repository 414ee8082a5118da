package loop_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/looptest"
	"github.com/springtide/springtide/slo"
)

// flooded is a small world in which the load of one service is three times as large for ten minutes.
func flooded() (o looptest.Options, flood fleet.ServiceID) {
	o = looptest.Default()
	o.Services, o.Online, o.History = 2, 4, 2*24*time.Hour
	o.Start = o.Start.Add(10 * time.Hour)
	flood = "shop/svc-000"
	from, to := o.Start.Add(20*time.Minute), o.Start.Add(30*time.Minute)
	o.Twist = func(id fleet.ServiceID, at time.Time, load float64) float64 {
		if id == flood && !at.Before(from) && at.Before(to) {
			return 3 * load
		}
		return load
	}
	return o, flood
}

// counter counts minutes by the definition alone: of each cycle it keeps whether what was measured of a service in
// it, which is what was true in the cycle before, exceeds its level.
type counter struct {
	w       *looptest.World
	before  map[fleet.ServiceID]bool
	minutes map[fleet.ServiceID]map[int64]bool
}

func (c *counter) see(s *fleet.Snapshot) {
	for i := range s.Services {
		svc := &s.Services[i]
		if c.minutes[svc.ID] == nil {
			c.minutes[svc.ID] = map[int64]bool{}
		}
		if broken, ok := c.before[svc.ID]; ok {
			minute := s.At.Unix() / 60
			c.minutes[svc.ID][minute] = c.minutes[svc.ID][minute] || broken
		}
		c.before[svc.ID] = c.w.Truth(svc.ID, s.At)/(float64(svc.Ready())*svc.Request.CPU.Cores()) > svc.SLO.CPULimit()
	}
}

func accountOf(t *testing.T, w *looptest.World, id fleet.ServiceID) *slo.Account {
	t.Helper()
	a, err := slo.Unmarshal(w.Accounts[id])
	if err != nil {
		t.Fatal(err)
	}
	return &a
}

// A flood breaks the level of one service for some minutes. They are counted as they were, with their cause, across
// a restart.
func TestMinutesAreCounted(t *testing.T) {
	o, flood := flooded()
	w := looptest.New(o)
	c := counter{w: w, before: map[fleet.ServiceID]bool{}, minutes: map[fleet.ServiceID]map[int64]bool{}}
	w.Each = c.see
	run(t, w, 1, 25*time.Minute) // within the flood
	if a := accountOf(t, w, flood); a.Budget.Sum().Bad == 0 {
		t.Fatalf("before the restart: %+v", a.Budget.Sum())
	}
	run(t, w, 2, 35*time.Minute)
	for id, minutes := range c.minutes {
		bad := 0
		for _, broken := range minutes {
			if broken {
				bad++
			}
		}
		a := accountOf(t, w, id)
		got := a.Budget.Sum()
		// The minute that runs at a restart, or at the end, is not counted, and the next one begins with what is left of it.
		if got.Bad > bad || got.Bad < bad-2 || (id == flood) != (bad > 0) {
			t.Errorf("%s: %+v, want %d bad minutes", id, got, bad)
		}
		if all := got.Known() + got.Unknown; all < 57 || got.Unknown > 2 {
			t.Errorf("%s: %+v of an hour", id, got)
		}
		if id == flood {
			want := []slo.Named{{Name: slo.Forecast.String(), Bad: got.Bad}}
			if d := cmp.Diff(want, a.Budget.ByCause()); d != "" {
				t.Errorf("causes of a flood that was not foreseen: %s", d)
			}
		}
	}
}

// While the store is down bad minutes wait, and are stored with the first cycle after it.
func TestBadMinutesWaitForTheStore(t *testing.T) {
	o, flood := flooded()
	w := looptest.New(o)
	w.Each = func(s *fleet.Snapshot) {
		w.StoreErr = nil
		if since := s.At.Sub(o.Start); since > 5*time.Minute && since < 40*time.Minute {
			w.StoreErr = looptest.ErrDown
		}
	}
	l := run(t, w, 1, 39*time.Minute)
	if bad := accountOf(t, w, flood).Budget.Sum().Bad; bad > 0 {
		t.Fatalf("%d bad minutes are in a store that is down", bad)
	}
	stored := -1
	w.Each = func(*fleet.Snapshot) {
		w.StoreErr = nil
		if a := w.Accounts[flood]; stored < 1 && a != nil {
			stored = accountOf(t, w, flood).Budget.Sum().Bad
		}
	}
	goOn(t, w, l, 1, time.Minute)
	if stored < 1 {
		t.Errorf("%d bad minutes were stored by the next cycle", stored)
	}
}

// The operator's quantile stays as it is; where there is none, the choice is in force, and it is known to the plan.
func TestTheChoiceIsInForce(t *testing.T) {
	o, _ := flooded()
	w := looptest.New(o)
	w.Service(0).Quantile, w.Service(1).Quantile = 0, 0.8
	chosen := slo.Account{Choice: slo.Choice{Quantile: 0.99, Moved: o.Start}}
	w.Accounts = map[fleet.ServiceID][]byte{w.Service(0).ID: slo.Marshal(&chosen), w.Service(1).ID: slo.Marshal(&chosen)}
	var last *fleet.Snapshot
	w.Each = func(s *fleet.Snapshot) { last = s }
	run(t, w, 1, 3*time.Minute)
	if a, b := last.Services[0].Quantile, last.Services[1].Quantile; a != 0.99 || b != 0.8 {
		t.Errorf("in force: %v and %v", a, b)
	}
	for i, want := range []string{"p99 until the record says more: 0 of 14 days are compared",
		"p80, by spec.forecast.quantile"} {
		if got := accountOf(t, w, w.Service(i).ID).Choice.Why.Text(); got != want {
			t.Errorf("why: %s, want %s", got, want)
		}
	}
	if vs, n := accountOf(t, w, w.Service(0).ID).Record.Verdicts(); n != 0 || vs[0].Bad != 0 {
		t.Errorf("%d minutes are compared before a lead has passed", n)
	}
	run(t, w, 2, 30*time.Minute)
	a := accountOf(t, w, w.Service(0).ID)
	vs, n := a.Record.Verdicts()
	if n < 15 || n > 30 {
		t.Errorf("%d minutes are compared", n)
	}
	if vs[0].Replicas > vs[slo.Notches-1].Replicas || vs[slo.Notches-1].Replicas < 1 {
		t.Errorf("verdicts %+v", vs)
	}
}

// recorded is a world whose source has the minutes that were counted.
type recorded struct {
	*looptest.World
	hours map[fleet.ServiceID][]slo.Hour
	err   error
	asked [][]fleet.Service
}

func (r *recorded) Minutes(_ context.Context, services []fleet.Service, _,
	_ time.Time) (map[fleet.ServiceID][]slo.Hour, error) {
	r.asked = append(r.asked, services)
	return r.hours, r.err
}

// After the store was lost, what the source has of the minutes is read back, once it answers.
func TestALostStoreIsReadBack(t *testing.T) {
	o, _ := flooded()
	w := looptest.New(o)
	known, gone := w.Service(1).ID, w.Service(0).ID
	var kept slo.Account
	for i := range 10 {
		kept.Budget.Add(slo.Minute{At: o.Start.Add(time.Duration(i-10) * time.Minute), All: slo.Good}, slo.DefaultOver)
	}
	w.Accounts = map[fleet.ServiceID][]byte{known: slo.Marshal(&kept)}
	r := &recorded{World: w, err: errors.New("no answer"), hours: map[fleet.ServiceID][]slo.Hour{}}
	for i := range 48 {
		at := o.Start.Add(time.Duration(i-48) * time.Hour).Truncate(time.Hour)
		r.hours[gone] = append(r.hours[gone], slo.Hour{At: at, Good: 59, Bad: 1})
	}
	ports := w.Ports()
	ports.History = r
	l := loop.New(ports, loop.DefaultOptions())
	goOn(t, w, l, 1, 4*time.Minute)
	if len(r.asked) != 1 {
		t.Errorf("a source without an answer was asked %d times in four minutes", len(r.asked))
	}
	r.err = nil
	goOn(t, w, l, 1, 16*time.Minute)
	if len(r.asked) != 2 || len(r.asked[1]) != 1 || r.asked[1][0].ID != gone {
		t.Fatalf("asked for %v", r.asked)
	}
	if got := accountOf(t, w, gone).Budget.Sum(); got.Bad != 48 || got.Good < 48*59+15 {
		t.Errorf("%+v", got)
	}
}
