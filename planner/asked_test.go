package planner

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// One place is free, and two jobs could use it. The job that was asked for lately and waits gets it, whichever has the
// smaller share, so that the place does not change hands each cycle; the claim ends after a while.
func TestTheNextRoomGoesToWhoWasAskedForLately(t *testing.T) {
	for _, c := range []struct {
		name         string
		waits        string // the job with one member that was asked for and waits
		age          time.Duration
		spark, media int32 // the sizes wanted after the plan
	}{
		{"nobody waits: the smaller share", "", 0, 1, 4},
		{"the smaller share waits", "media", time.Minute, 1, 4},
		{"the larger share waits", "spark", time.Minute, 2, 2},
		{"it waited for long", "spark", askFor, 1, 4},
	} {
		y := newYard(1, 0)
		// Spark's one member of 16 cores is more than media's two of 7, and into the 16 that are left fits one of spark's or two of media's.
		y.job("spark", member("worker", 16, 0, 8))
		y.job("media", member("worker", 7, 0, 8))
		y.s.Nodes[0].Allocatable.CPU = 46000
		y.s.Sort()
		at := y.s.Nodes[0]
		add := func(job string, n int) {
			j := y.s.Job(fleet.JobID("batch/" + job))
			for range n {
				y.pod(j, &j.Members[0], job+"-"+string(rune('a'+y.made)))
				p := &y.s.Pods[len(y.s.Pods)-1]
				p.Node, p.NodeName, p.Phase, p.Created = at.ID, at.Name, fleet.PodRunning, t0.Add(-time.Hour)
			}
			j.Members[0].Desired = int32(n)
		}
		add("spark", 1)
		add("media", 2)
		if c.waits != "" {
			j := y.s.Job(fleet.JobID("batch/" + c.waits))
			j.Members[0].Desired++
			y.pod(j, &j.Members[0], c.waits+"-waits")
			y.s.Pods[len(y.s.Pods)-1].Created = t0.Add(-c.age)
		}
		y.s.Sort()
		got := map[fleet.JobID]int32{}
		for i := range y.s.Jobs {
			got[y.s.Jobs[i].ID] = y.s.Jobs[i].Members[0].Desired
		}
		for _, x := range made(Input{Snapshot: &y.s, Gangs: y.gangs, Options: DefaultOptions()}).Jobs {
			got[x.Job] = x.To
		}
		if got["batch/spark"] != c.spark || got["batch/media"] != c.media {
			t.Errorf("%s: spark %d and media %d, want %d and %d", c.name, got["batch/spark"], got["batch/media"], c.spark, c.media)
		}
	}
}
