package planner

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Of gangs that wait the higher priority is served first, though it came later.
func TestMinimaByPriority(t *testing.T) {
	y := newYard(1, 0)
	y.job("low", member("worker", 40, 1, 1))
	y.job("high", member("worker", 40, 1, 1)).Priority = fleet.PriorityHigh
	y.cycle()
	y.want(t, "high", "worker", 1)
	y.want(t, "low", "worker", 0)
	// A part of one that has begun is no claim against it either.
	y = newYard(1, 1)
	y.job("low", member("worker", 40, 2, 2))
	y.cycle()
	y.cycle()
	y.job("high", member("worker", 40, 1, 1)).Priority = fleet.PriorityHigh
	y.s.Pods = y.s.Pods[:1]
	y.cycle()
	y.want(t, "high", "worker", 1)
	if g := y.gang(t, "low"); g.Phase != fleet.GangForming {
		t.Errorf("the member that it lost has no room: %+v", g)
	}
}

// So is growth, and what a divisible member has at least: the list that all of it is served by is in this order.
func TestGrowthByPriority(t *testing.T) {
	for _, c := range []struct {
		name string
		mem  fleet.Member
	}{
		{"growth", member("worker", 16, 0, 4)},
		{"a divisible minimum", fleet.Member{Role: "worker", Min: 4, Max: 4, Remaining: -1, Divisible: true, Request: fleet.Resources{CPU: 16000}}},
	} {
		y := newYard(1, 0)
		y.job("low", c.mem)
		y.job("high", c.mem).Priority = fleet.PriorityHigh
		y.cycle()
		if high, low := y.member("batch/high", "worker").Desired, y.member("batch/low", "worker").Desired; high != 4 || low != 0 {
			t.Errorf("%s: %d members of the higher priority are asked for, and %d of the lower, want 4 and 0", c.name, high, low)
		}
	}
}

// Growth of a higher priority takes that of a lower one, whose members are shown no patience, and all of it in the end; not the other way round.
func TestGrowthGivesWayByPriority(t *testing.T) {
	y := still(16, 4)
	for i := range y.s.Pods {
		y.s.Pods[i].Created = t0.Add(-time.Minute)
	}
	y.job("high", member("worker", 16, 0, 4)).Priority = fleet.PriorityHigh
	y.cycle()
	y.want(t, "j0", "worker", 3)
	y.want(t, "high", "worker", 0) // its room is not free yet
	for range 12 {
		y.cycle()
	}
	y.want(t, "j0", "worker", 0)
	y.want(t, "high", "worker", 4)
	y.job("late", member("worker", 16, 0, 4))
	for range 12 {
		y.cycle()
	}
	y.want(t, "high", "worker", 4)
}

// A gang that waits takes divisible members first, be they of a higher priority or of a smaller share.
func TestDivisibleGivesWayFirst(t *testing.T) {
	for _, priority := range []fleet.JobPriority{fleet.PriorityLow, fleet.PriorityHigh} {
		y := still(16, 3, 1)
		for i := range y.s.Jobs {
			y.s.Jobs[i].Members[0].Max = y.s.Jobs[i].Members[0].Desired // only the gang has a wish
		}
		y.s.Jobs[1].Members[0].Divisible, y.s.Jobs[1].Priority = true, priority
		y.job("gang", member("worker", 16, 1, 1)).Priority = priority
		y.s.Sort()
		plan := made(Input{Snapshot: &y.s, Options: DefaultOptions()})
		if len(plan.Jobs) != 1 || plan.Jobs[0].Job != "batch/j1" || plan.Jobs[0].To != 0 {
			t.Errorf("priority %d: %+v, want the divisible member to go, and nobody else", priority, plan.Jobs)
		}
	}
}

// A workload that chooses its own size is never resized: not for a gang that waits, not for growth of a higher
// priority, and not while some of it have no room.
func TestSelfSizedKeepsItsSize(t *testing.T) {
	for _, c := range []struct {
		name string
		home int
	}{{"with room for all of it", 2}, {"with room for a part of it", 1}} {
		y := newYard(c.home, 0)
		executors := member("executor", 32, 1, 8)
		executors.SelfSized, executors.Desired, executors.Remaining = true, 4, 4
		y.job("spark", executors)
		y.cycle()
		y.cycle()
		y.job("gang", member("worker", 32, 2, 2))
		y.job("high", member("worker", 32, 0, 2)).Priority = fleet.PriorityHigh
		for range 10 {
			y.cycle()
			for _, a := range y.plan.Jobs {
				if a.Job == "batch/spark" {
					t.Fatalf("%s, %s: %+v", c.name, y.s.At.Sub(t0), a)
				}
			}
		}
		if got := y.running("batch/spark", "executor"); got != 2*c.home {
			t.Errorf("%s: %d executors run, want %d", c.name, got, 2*c.home)
		}
	}
}
