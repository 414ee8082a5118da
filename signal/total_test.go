package signal

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// An unmeasured pod is taken at the largest measured one, and a mostly old total is as old as its oldest.
func TestTotal(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	old, fresh := now.Add(-10*time.Minute), now.Add(-20*time.Second)
	type pod struct {
		ready    bool
		since    time.Time
		deleting bool
		value    float64
		at       time.Time // zero: no sample
	}
	long := now.Add(-time.Hour)
	unknown := fleet.Known[float64]{}
	withOne := func(v float64, at time.Time) []pod {
		return []pod{{true, long, false, 10, fresh}, {true, long, false, v, at}}
	}
	for name, tc := range map[string]struct {
		pods        []pod
		want        fleet.Known[float64]
		withUnready bool
	}{
		"no pods":                    {nil, unknown, true},
		"all fresh":                  {[]pod{{true, long, false, 10, fresh}, {true, long, false, 20, fresh}}, fleet.KnownAt(30.0, fresh), true},
		"none measured":              {[]pod{{true, long, false, 0, time.Time{}}}, unknown, true},
		"one of two missing":         {[]pod{{true, long, false, 10, fresh}, {true, long, false, 0, time.Time{}}}, fleet.KnownAt(20.0, fresh), true},
		"one of three missing":       {[]pod{{true, long, false, 10, fresh}, {true, long, false, 30, fresh}, {true, long, false, 0, time.Time{}}}, fleet.KnownAt(70.0, fresh), true},
		"old one counts as missing":  {[]pod{{true, long, false, 10, fresh}, {true, long, false, 4, old}}, fleet.KnownAt(20.0, fresh), true},
		"old one was the largest":    {[]pod{{true, long, false, 10, fresh}, {true, long, false, 40, old}}, fleet.KnownAt(50.0, fresh), true},
		"two of three missing":       {[]pod{{true, long, false, 10, fresh}, {true, long, false, 0, time.Time{}}, {true, long, false, 0, time.Time{}}}, unknown, true},
		"mostly old":                 {[]pod{{true, long, false, 10, fresh}, {true, long, false, 4, old}, {true, long, false, 5, old}}, fleet.KnownAt(19.0, old), true},
		"one is no number":           {withOne(math.NaN(), fresh), fleet.KnownAt(20.0, fresh), true},
		"one is negative":            {withOne(-5, fresh), fleet.KnownAt(20.0, fresh), true},
		"one is of the future":       {withOne(99, now.Add(time.Hour)), fleet.KnownAt(20.0, fresh), true},
		"young one carries nothing":  {[]pod{{true, long, false, 10, fresh}, {true, now.Add(-time.Minute), false, 0, time.Time{}}}, fleet.KnownAt(10.0, fresh), true},
		"unready ones need not":      {[]pod{{true, long, false, 10, fresh}, {false, long, false, 0, time.Time{}}}, fleet.KnownAt(10.0, fresh), true},
		"unready load counts":        {[]pod{{true, long, false, 10, fresh}, {false, long, false, 7, fresh}}, fleet.KnownAt(17.0, fresh), true},
		"start-up CPU is no load":    {[]pod{{true, long, false, 10, fresh}, {false, long, false, 7, fresh}}, fleet.KnownAt(10.0, fresh), false},
		"leaving pods may be silent": {[]pod{{true, long, false, 10, fresh}, {true, long, true, 0, time.Time{}}}, fleet.KnownAt(10.0, fresh), true},
	} {
		t.Run(name, func(t *testing.T) {
			var s fleet.Service
			samples := map[fleet.Name]fleet.Known[float64]{}
			for i, p := range tc.pods {
				n := fleet.Name{Namespace: "shop", Name: fmt.Sprint(i)}
				s.Pods = append(s.Pods, fleet.Pod{Name: n, Ready: p.ready, ReadySince: fleet.KnownAt(p.since, p.since), Deleting: p.deleting})
				if !p.at.IsZero() {
					samples[n] = fleet.KnownAt(p.value, p.at)
				}
			}
			if got, _ := total(&s, samples, share{}, time.Minute, now, tc.withUnready); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestImputedLoadDoesNotFollowItselfUp: replicas that were added and are never measured, as nothing scrapes them or
// nothing reaches them, do not ask for more replicas. Where they take their part of the load, it is seen whole, and
// it follows what is measured. A service is sized for 90 requests a second each, ten times, at the load it shows.
func TestImputedLoadDoesNotFollowItselfUp(t *testing.T) {
	const each = 90.0
	steady := func(v float64) func(int) float64 { return func(int) float64 { return v } }
	doubles := func(i int) float64 { return 600 + 600*float64(i/6) }
	halves := func(i int) float64 { return 1000 - 500*float64(i/6) }
	around := func(f func(int) float64, by float64) func(int) (float64, float64) {
		return func(i int) (float64, float64) { return f(i) - by, f(i) + by }
	}
	for _, c := range []struct {
		name string
		// real is the load of a look; takes says whether pods that are not measured carry their part of it; once are pods
		// of the first eight that fall silent after the first look.
		real  func(look int) float64
		takes bool
		once  int
		want  func(look int) (least, most float64)
	}{
		{"nothing reaches new pods", steady(800), false, 0, around(steady(800), 0)},
		{"nothing scrapes new pods", steady(800), true, 0, around(steady(800), 1)},
		{"nothing scrapes new pods, and the load doubles at the sixth look", doubles, true, 0, around(doubles, 1)},
		{"the load halves at the sixth look", halves, false, 0,
			func(i int) (float64, float64) { return halves(i) - 1, 1001 }},
		{"a pod that was measured falls silent", steady(800), false, 1, around(steady(800), 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
			s, now, looks := fleet.Service{ID: "shop/cart"}, begin, Looks{}
			x := Samples{Requests: map[fleet.Name]fleet.Known[float64]{}}
			grow := func(n int) {
				for i := len(s.Pods); i < n; i++ {
					s.Pods = append(s.Pods, fleet.Pod{Name: fleet.Name{Namespace: "shop", Name: fmt.Sprint(i)}, Ready: true,
						ReadySince: fleet.KnownAt(begin.Add(-time.Hour), begin)})
				}
			}
			grow(8)
			for look := range 12 {
				now = now.Add(15 * time.Second)
				carry := 8.0
				if c.takes {
					carry = float64(len(s.Pods))
				}
				for i := range 8 {
					if i < c.once && look > 0 {
						continue
					}
					x.Requests[s.Pods[i].Name] = fleet.KnownAt(c.real(look)/carry, now)
				}
				got := looks.Requests(&s, &x, now)
				if least, most := c.want(look); !got.OK || got.Value < least || got.Value > most {
					t.Errorf("look %d, %d pods: %+v, want %v to %v", look, len(s.Pods), got, least, most)
				}
				grow(int(math.Ceil(got.Value / each)))
			}
			if n := len(s.Pods); n > 14 {
				t.Errorf("%d replicas", n)
			}
		})
	}
}

// A look is remembered for half an hour: then, and after the clock was set back, pods that were never measured carry
// the most.
func TestLooksEnd(t *testing.T) {
	begin := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	pod := func(n string) fleet.Pod {
		return fleet.Pod{Name: fleet.Name{Namespace: "shop", Name: n}, Ready: true,
			ReadySince: fleet.KnownAt(begin.Add(-2*time.Hour), begin)}
	}
	for after, want := range map[time.Duration]float64{sharesFor: 100, sharesFor + time.Second: 200, -time.Second: 200} {
		var looks Looks
		s := fleet.Service{ID: "shop/cart", Pods: []fleet.Pod{pod("a")}}
		for i, now := range []time.Time{begin, begin.Add(after)} {
			x := Samples{Requests: map[fleet.Name]fleet.Known[float64]{s.Pods[0].Name: fleet.KnownAt(100.0, now)}}
			if got := looks.Requests(&s, &x, now); i == 1 && got != fleet.KnownAt(want, now) {
				t.Errorf("%s later: %+v, want %g", after, got, want)
			}
			s.Pods = append(s.Pods, pod("b"))
		}
	}
}

// A total that the source measures in one counts as it is, and pods are not added up for it; the other signal is
// still a sum.
func TestTotalInOne(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	s := fleet.Service{ID: "shop/cart", Pods: []fleet.Pod{{Name: fleet.Name{Namespace: "shop", Name: "a"}, Ready: true}}}
	of := map[fleet.Name]fleet.Known[float64]{s.Pods[0].Name: fleet.KnownAt(3.0, now)}
	x := Samples{Requests: of, CPU: of, Services: map[fleet.ServiceID]Service{s.ID: {Requests: fleet.KnownAt(70.0, now)}}}
	var looks Looks
	if got := looks.Requests(&s, &x, now); got != fleet.KnownAt(70.0, now) {
		t.Errorf("requests %+v", got)
	}
	if got := looks.CPU(&s, &x, now); got != fleet.KnownAt(3.0, now) {
		t.Errorf("CPU %+v", got)
	}
}
