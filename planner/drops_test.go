package planner

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Pods count as dropped only if their tide is away for the whole term, from when machines are to be empty on: one that is back before its end keeps
// them, one that is back after it does not.
func TestDropsLastForTheTerm(t *testing.T) {
	for _, c := range []struct {
		name string
		back int // the step of five minutes in which the tide is back
		term time.Duration
		want int
	}{
		{"within the term", 6, 30 * time.Minute, 0},
		{"with its last step", 9, 30 * time.Minute, 0},
		{"after the term", 10, 30 * time.Minute, 4},
		{"before machines are to be empty", 1, 30 * time.Minute, 4},
		{"after a shorter term", 6, 10 * time.Minute, 4},
	} {
		l := asking([]int32{10}, []int32{0})
		l.in.Options.EmptyFor = 10 * time.Minute
		v := l.services[0]
		v.svc.ID, v.svc.Mode, v.svc.Steerable = "shop/web", fleet.Auto, true
		for i := range v.target.Ahead {
			if i != c.back {
				v.target.Ahead[i] = 6
			}
		}
		if got := l.drops(c.term)["shop/web"]; got != c.want {
			t.Errorf("%s: %d pods go, want %d", c.name, got, c.want)
		}
	}
}
