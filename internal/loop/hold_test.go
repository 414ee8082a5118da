package loop_test

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/looptest"
)

// A source that divides every load by a hundred for an hour takes no replica, by whatever leader, and teaches no portrait that such a fall is usual.
// The ebb of the evening is no fault: it scales in.
func TestASourceThatDividesByAHundred(t *testing.T) {
	long(t)
	t.Parallel()
	for name, restarts := range map[string]bool{"one leader": false, "a new leader in between": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := looptest.Default()
			o.Services, o.Online, o.History = 2, 4, 9*24*time.Hour
			o.Start = o.Start.Add(19 * time.Hour)
			from, to := o.Start.Add(time.Hour), o.Start.Add(2*time.Hour)
			o.Twist = func(_ fleet.ServiceID, at time.Time, load float64) float64 {
				if !at.Before(from) && at.Before(to) {
					return 0.01 * load
				}
				return load
			}
			w := looptest.New(o)
			l := run(t, w, 1, time.Hour)
			before := map[fleet.ServiceID]float64{}
			for id, p := range w.Portraits {
				before[id] = p.FastestFalls[0]
			}
			first := len(w.Records)
			if restarts {
				goOn(t, w, l, 1, 40*time.Minute)
				run(t, w, 2, 50*time.Minute)
			} else {
				goOn(t, w, l, 1, 90*time.Minute)
			}
			for _, r := range w.Records[first:] {
				if r.At.After(to.Add(5 * time.Minute)) {
					break
				}
				for _, a := range r.Plan.Lowers {
					t.Errorf("%s: %s scales in %d -> %d: %s", r.At, a.Service, a.From, a.To, a.Why.Text())
				}
			}
			if len(before) != o.Services {
				t.Fatalf("%d portraits", len(before))
			}
			for id, p := range w.Portraits {
				if p.FastestFalls[0] > before[id] {
					t.Errorf("%s: the fastest fall was %.3f and is %.3f: the fault was learned", id, before[id], p.FastestFalls[0])
				}
			}
			night := len(w.Records)
			run(t, w, 3, 3*time.Hour)
			lowers := 0
			for _, r := range w.Records[night:] {
				lowers += len(r.Plan.Lowers)
			}
			if lowers == 0 {
				t.Error("nothing scales in at night")
			}
		})
	}
}

// A service whose load really falls to a hundredth, with one signal that says so, keeps its replicas for the bound and then goes down slowly.
func TestAnUnconfirmedFallScalesInSlowly(t *testing.T) {
	long(t)
	t.Parallel()
	o := looptest.Default()
	o.Services, o.Online, o.History = 1, 3, 9*24*time.Hour
	o.Start = o.Start.Add(17 * time.Hour)
	fall := o.Start.Add(time.Hour)
	o.Twist = func(_ fleet.ServiceID, at time.Time, load float64) float64 {
		if !at.Before(fall) {
			return 0.01 * load
		}
		return load
	}
	w := looptest.New(o)
	lo := loop.DefaultOptions()
	lo.Portrait.HoldFor = time.Hour
	lo.React = longTurn
	l := loop.New(w.Ports(), lo)
	goOn(t, w, l, 1, 14*time.Hour)
	lowers, doubted := 0, false
	var last time.Time
	for _, r := range w.Records {
		if r.At.Before(fall.Add(5 * time.Minute)) {
			continue
		}
		for _, a := range r.Plan.Lowers {
			if r.At.Before(fall.Add(time.Hour)) {
				t.Errorf("%s: scaled in %d -> %d within the bound: %s", r.At, a.From, a.To, a.Why.Text())
			}
			if a.From-a.To > max(1, (a.From+9)/10) {
				t.Errorf("%s: %d -> %d at once", r.At, a.From, a.To)
			}
			if r.At.Sub(last) < 4*time.Minute && a.From-a.To > 1 {
				t.Errorf("%s: %d -> %d so soon after %s", r.At, a.From, a.To, last)
			}
			lowers, last = lowers+1, r.At
		}
		for i := range r.Plan.Targets {
			doubted = doubted || r.Plan.Targets[i].Limited == hpa.LimitedDoubt
		}
	}
	if lowers == 0 || !doubted {
		t.Errorf("%d scale-ins, limited by doubt: %v", lowers, doubted)
	}
}
