package loop_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/looptest"
	"github.com/springtide/springtide/portrait"
)

// liar is what a source says of a signal while it lies.
type liar func(s portrait.Signal, y float64) (float64, bool)

func times(factor float64) liar {
	return func(_ portrait.Signal, y float64) (float64, bool) { return factor * y, true }
}

func onlyOf(signal portrait.Signal, l liar) liar {
	return func(s portrait.Signal, y float64) (float64, bool) {
		if s == signal {
			return l(s, y)
		}
		return y, true
	}
}

// After a source has lied for a quarter of an hour, nothing of it is left a quarter of an hour later, or three of them
// where the lie is what a crowd is: neither in the replicas nor in what the portrait learned next to the load. Told
// says that what stands before the source lied, so that history is true afterwards; else what it scraped lied, and
// stays.
func TestAQuarterOfAnHourOfLiesLeavesNothing(t *testing.T) {
	long(t)
	t.Parallel()
	world := func(requests float64) looptest.Options {
		o := looptest.Default()
		o.Services, o.Online, o.History, o.Requests = 2, 4, 9*24*time.Hour, requests
		o.Start = o.Start.Add(17*time.Hour + 45*time.Minute) // the lie begins at the top of the day, where what is to come holds no replicas
		return o
	}
	o := world(0)
	from, to := o.Start.Add(2*time.Hour+2*time.Minute), o.Start.Add(2*time.Hour+17*time.Minute)
	honest := map[float64]lived{0: replicasOf(t, o, to), 20: replicasOf(t, world(20), to)}
	for name, lie := range map[string]liar{
		"x0.01":          times(0.01),
		"x100":           times(100),
		"doubled":        times(2),
		"empty":          func(portrait.Signal, float64) (float64, bool) { return 0, false },
		"NaN":            func(portrait.Signal, float64) (float64, bool) { return math.NaN(), true },
		"requests x0.01": onlyOf(portrait.Requests, times(0.01)),
		"requests x100":  onlyOf(portrait.Requests, times(100)),
		"CPU x100":       onlyOf(portrait.CPU, times(100)),
		"CPU x0.01":      onlyOf(portrait.CPU, times(0.01)),
	} {
		for _, bySource := range []bool{true, false} {
			for requests, honest := range honest {
				if requests == 0 && strings.Contains(name, " ") {
					continue // of two signals one lies
				}
				t.Run(fmt.Sprintf("%s, by source %v, requests %g", name, bySource, requests), func(t *testing.T) {
					t.Parallel()
					o := world(requests)
					o.Lie = func(now, at time.Time, s portrait.Signal, y float64) (float64, bool) {
						when := at
						if bySource {
							when = now
						}
						if when.Before(from) || !when.Before(to) {
							return y, true
						}
						return lie(s, y)
					}
					lied := replicasOf(t, o, to)
					calm := 15 * time.Minute
					if name == "doubled" {
						calm = 45 * time.Minute // the replicas could have served it: a crowd looks the same, and those who wait come first
					}
					least, most := 0.0, 0.0
					for at, n := range lied.at {
						off := float64(n)/float64(honest.at[at]) - 1
						least, most = min(least, off), max(most, off)
						if !at.Before(to.Add(calm)) && math.Abs(float64(n-honest.at[at])) > 0.1*float64(honest.at[at])+1 {
							t.Errorf("%s after its end %d replicas, without it %d", at.Sub(to), n, honest.at[at])
						}
					}
					for id, p := range lied.portraits {
						q := honest.portraits[id]
						if d := p.Ripple.Deviation() / q.Ripple.Deviation(); d > 1.1 || d < 0.9 {
							t.Errorf("%s: ripple %.3f, without it %.3f", id, p.Ripple.Deviation(), q.Ripple.Deviation())
						}
						if p.CPUPerLoad.Value > 1.02*q.CPUPerLoad.Value || p.CPUPerLoad.Value < 0.98*q.CPUPerLoad.Value {
							t.Errorf("%s: cost %.4f, without it %.4f", id, p.CPUPerLoad.Value, q.CPUPerLoad.Value)
						}
						if a, b := p.Advice.CPU.Value.Target, q.Advice.CPU.Value.Target; math.Abs(a-b) > 0.05*b {
							t.Errorf("%s: advice %.4f cores, without it %.4f", id, a, b)
						}
					}
					t.Logf("from %+.0f to %+.0f %% of the replicas", 100*least, 100*most)
				})
			}
		}
	}
}

// Lies that follow each other, or a silence, are as one: no replica that the true load needs goes meanwhile, and a quarter of an hour after their end nothing of them is left.
func TestLiesThatFollowEachOther(t *testing.T) {
	long(t)
	t.Parallel()
	none := func(portrait.Signal, float64) (float64, bool) { return 0, false }
	for name, c := range map[string]struct{ first, then liar }{
		"x100, then x0.01":    {times(100), times(0.01)},
		"x0.01, then x100":    {times(0.01), times(100)},
		"nothing, then x100":  {none, times(100)},
		"nothing, then x0.01": {none, times(0.01)},
	} {
		for _, requests := range []float64{0, 20} {
			t.Run(fmt.Sprintf("%s, requests %g", name, requests), func(t *testing.T) {
				t.Parallel()
				o := looptest.Default()
				o.Services, o.Online, o.History, o.Requests = 2, 4, 9*24*time.Hour, requests
				o.Start = o.Start.Add(17*time.Hour + 45*time.Minute)
				from := o.Start.Add(2*time.Hour + 2*time.Minute)
				turn, to := from.Add(25*time.Minute), from.Add(65*time.Minute)
				honest := replicasOf(t, o, to)
				o.Lie = func(_, at time.Time, s portrait.Signal, y float64) (float64, bool) {
					switch {
					case at.Before(from) || !at.Before(to):
						return y, true
					case at.Before(turn):
						return c.first(s, y)
					}
					return c.then(s, y)
				}
				lied := replicasOf(t, o, to)
				least, most := 0.0, 0.0
				for at, n := range lied.at {
					off := float64(n)/float64(honest.at[at]) - 1
					least, most = min(least, off), max(most, off)
					if float64(n) < 0.9*float64(honest.at[at])-1 {
						t.Errorf("%s after its begin %d replicas, without it %d", at.Sub(from), n, honest.at[at])
					}
					if !at.Before(to.Add(15*time.Minute)) && float64(n) > 1.1*float64(honest.at[at])+1 {
						t.Errorf("%s after its end %d replicas, without it %d", at.Sub(to), n, honest.at[at])
					}
				}
				t.Logf("from %+.0f to %+.0f %% of the replicas", 100*least, 100*most)
			})
		}
	}
}

type lived struct {
	at        map[time.Time]int32
	portraits map[fleet.ServiceID]portrait.Portrait
}

func replicasOf(t *testing.T, o looptest.Options, to time.Time) lived {
	t.Helper()
	out := lived{at: map[time.Time]int32{}}
	w := looptest.New(o)
	w.Each = func(s *fleet.Snapshot) {
		sum := int32(0)
		for i := range s.Services {
			sum += s.Services[i].Desired.Value
		}
		out.at[s.At] = sum
	}
	l := loop.New(w.Ports(), loop.DefaultOptions())
	if err := w.Run(l, 1, to.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	out.portraits = w.Portraits
	return out
}
