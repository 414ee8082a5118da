package signal

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// A look whose total is no number, or that was twice the truth, leaves nothing once the source is right again.
func TestOneWrongLookLeavesNothing(t *testing.T) {
	for _, wrong := range []float64{20, 1e308, math.MaxFloat64} {
		now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
		var looks Looks
		s := fleet.Service{ID: "shop/cart"}
		grow := func(n int) {
			for i := len(s.Pods); i < n; i++ {
				s.Pods = append(s.Pods, fleet.Pod{Name: fleet.Name{Namespace: "shop", Name: fmt.Sprint(i)}, Ready: true,
					ReadySince: fleet.KnownAt(now.Add(-time.Hour), now)})
			}
		}
		grow(4)
		var got fleet.Known[float64]
		for look := range 1000 {
			now = now.Add(15 * time.Second)
			x := Samples{Requests: map[fleet.Name]fleet.Known[float64]{}}
			v := 10.0
			if look == 3 {
				v = wrong
			}
			for i := range 4 {
				x.Requests[s.Pods[i].Name] = fleet.KnownAt(v, now)
			}
			got = looks.Requests(&s, &x, now)
			grow(8)
		}
		if !got.OK || got.Value != 40 {
			t.Errorf("four hours after a look at %g: %+v, want 40", wrong, got)
		}
	}
}

// TestMissingJudgesAsOthersDo: a total that no decision takes as fresh is missing, whatever its stamp says.
func TestMissingJudgesAsOthersDo(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	s := fleet.Service{Pods: []fleet.Pod{{Ready: true, ReadySince: fleet.KnownAt(now.Add(-time.Hour), now)}}}
	for _, c := range []struct {
		total fleet.Known[float64]
		want  bool
	}{
		{fleet.KnownAt(4.0, now), false},
		{fleet.KnownAt(4.0, now.Add(-time.Hour)), true},
		{fleet.KnownAt(4.0, now.AddDate(73, 0, 0)), true},
		{fleet.KnownAt(math.NaN(), now), true},
		{fleet.KnownAt(-5.0, now), true},
		{fleet.KnownAt(math.Inf(1), now), true},
		{fleet.Known[float64]{}, true},
	} {
		if got := Missing(&s, c.total, time.Minute, now); got != c.want {
			t.Errorf("%+v: missing %v", c.total, got)
		}
	}
}
