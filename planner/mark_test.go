package planner

import (
	"testing"

	"github.com/springtide/springtide/fleet"
)

// A fence ends nobody but offline's pods, and what every machine runs.
func TestFenceEndsNoComponentOfOurs(t *testing.T) {
	for name, c := range map[string]struct {
		pod  fleet.Pod
		want fleet.Fence
	}{
		"a worker":     {fleet.Pod{Class: fleet.PodOffline}, fleet.FenceExecute},
		"an agent":     {fleet.Pod{Class: fleet.PodSystem}, fleet.FenceExecute},
		"a controller": {fleet.Pod{Class: fleet.PodSystem, Own: true}, fleet.FenceSchedule},
		"online":       {fleet.Pod{Class: fleet.PodOnline}, fleet.FenceSchedule},
	} {
		w := newWorld(1)
		l := w.loan(0, fleet.Fenced, 2)
		l.KillAt, l.Deadline = t0, t0
		c.pod.ID, c.pod.Name, c.pod.Node, c.pod.NodeName = "p", fleet.Name{Namespace: "n", Name: "p"}, l.Node, l.NodeName
		w.s.Pods = append(w.s.Pods, c.pod)
		p := Make(w.input())
		if len(p.Marks) != 1 || p.Marks[0].Want.Fence != c.want {
			t.Errorf("%s: %+v, want %s", name, p.Marks, c.want)
		}
	}
}
