package signal

import (
	"fmt"
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
			if got, _ := Total(&s, samples, Share{}, time.Minute, now, tc.withUnready); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
