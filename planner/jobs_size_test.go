package planner

import (
	"testing"

	"github.com/springtide/springtide/fleet"
)

// Members that leave a machine are counted until they end, but never beyond the size that stands: a lowered size does
// not rise again because the ending ones are on a machine that goes home, and have not ended.
func TestMembersThatLeaveRaiseNoSize(t *testing.T) {
	for _, c := range []struct {
		name      string
		pods      int // on the machine that goes home
		elsewhere int
		desired   int32
		indexed   bool
		want      int32
		room      int // machines with room for more
	}{
		{"two leave, one was to stay", 2, 0, 1, false, 1, 0},
		{"two leave, none was to stay", 2, 0, 0, false, 0, 0},
		{"four leave, two of three elsewhere were to end", 4, 3, 3, false, 3, 0},
		{"as many leave as were to stay", 3, 0, 3, false, 3, 0},
		{"by index: two leave, one was to stay", 2, 0, 1, true, 1, 0},
		{"by index: four leave, one was to stay", 4, 0, 1, true, 1, 0},
		{"by index: as many leave as were to stay", 3, 0, 3, true, 3, 0},
		{"two leave, and there is room for one more", 2, 0, 1, false, 2, 1},
	} {
		y := newYard(c.room, 2)
		mem := member("worker", 8, 0, 8)
		if c.room > 0 {
			mem.Request.CPU = 64000 // one on a machine
			y.s.Nodes[c.room].Allocatable.CPU = 128000
		}
		if c.indexed {
			mem.Leaves = fleet.LeavesHighest
		}
		j := y.job("batch", mem)
		m := &j.Members[0]
		for i := range c.pods + c.elsewhere {
			y.pod(j, m, "batch-worker-"+string(rune('0'+i)))
			p := &y.s.Pods[i]
			n := &y.s.Nodes[c.room]
			if i >= c.pods {
				n = &y.s.Nodes[c.room+1]
			}
			p.Node, p.NodeName, p.Phase = n.ID, n.Name, fleet.PodRunning
		}
		m.Desired = c.desired
		y.recall(y.s.Nodes[c.room].ID)
		// The other machine has no room for more.
		y.s.Nodes[c.room+1].Ready = c.elsewhere > 0
		y.s.Nodes[c.room+1].Allocatable.CPU = fleet.MilliCPU(8000 * c.elsewhere)
		y.s.Sort()
		p := made(Input{Snapshot: &y.s, Gangs: y.gangs, Options: DefaultOptions()})
		got := c.desired
		for _, a := range p.Jobs {
			got = a.To
		}
		if got != c.want {
			t.Errorf("%s: size %d -> %d, want %d: %+v", c.name, c.desired, got, c.want, p.Jobs)
		}
	}
}

// While its workload waits for all that are asked for, a job has its minimum and nothing beyond: the workload would begin later with each further one.
func TestNoGrowthBeforeTheLauncherRuns(t *testing.T) {
	for _, c := range []struct {
		least, want, then int32
	}{{2, 2, 6}, {4, 4, 6}, {0, 1, 6}} {
		y := newYard(4, 0)
		j := y.job("ring", member("worker", 32, int(c.least), 6))
		j.Members[0].Gathering = true
		for range 3 {
			y.cycle()
		}
		if got := y.s.Jobs[0].Members[0].Desired; got != c.want {
			t.Errorf("min %d: %d members while the launcher waits, want %d", c.least, got, c.want)
		}
		y.s.Jobs[0].Members[0].Gathering = false
		for range 3 {
			y.cycle()
		}
		if got := y.s.Jobs[0].Members[0].Desired; got != c.then {
			t.Errorf("min %d: %d members once it runs, want %d", c.least, got, c.then)
		}
	}
}
