package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// A fence ends only offline's pods, and what every machine runs.
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
		p := made(w.input())
		if len(p.Marks) != 1 || p.Marks[0].Want.Fence != c.want {
			t.Errorf("%s: %+v, want %s", name, p.Marks, c.want)
		}
	}
}

// A recall of two sockets of which one could not be written: the one that came home is claimed, and offline does not
// land next to it.
func TestNoPodLandsNextToAClaim(t *testing.T) {
	for phase, open := range map[fleet.Phase]bool{fleet.Returned: false, fleet.Cancelled: true} {
		w := newWorld(4).service("web", 4, 0, 1, 30) // 32 cores, which fill the socket that is at home
		w.halves(0, fleet.Lent)
		first := &w.s.Loans[1]
		first.Phase, first.Since, first.CleanAt = phase, t0.Add(-time.Minute), t0.Add(-time.Minute)
		w.s.Nodes[0].Share.Parcels = w.s.Nodes[0].Share.Parcels[:1]
		for _, m := range made(w.input()).Marks {
			if m.ID == "uid-00" {
				w.s.Nodes[0].Marks = m.Want
			}
		}
		if got := w.s.Nodes[0].Marks.OfflineLabel; got != open {
			t.Errorf("the other socket's loan is %s: open to offline %v, want %v", phase, got, open)
		}
	}
}

// A machine of which online keeps a socket is opened to offline once fillers hold what is free of it, for which pods of the system count as
// those of online do. Until then there is a filler to come for the rest.
func TestKeptRoomIsHeldBeforeOfflineLands(t *testing.T) {
	cores := func(n int64) fleet.Resources {
		return fleet.Resources{CPU: fleet.MilliCPU(1000 * n), Memory: fleet.GiB}
	}
	for _, c := range []struct {
		name                    string
		online, system, fillers []int64
		pending                 bool // the fillers wait for the machine
		open                    bool
		filler                  int64 // cores of the one to come
	}{
		{"nobody is on it", nil, nil, nil, false, false, 32},
		{"nothing is free", []int64{32}, nil, nil, false, true, 0},
		{"less than a core is", []int64{31}, []int64{1}, nil, false, true, 0},
		{"online", []int64{8}, nil, nil, false, false, 24},
		{"and the system", []int64{8}, []int64{4}, nil, false, false, 20},
		{"held", []int64{8}, []int64{4}, []int64{20}, false, true, 0},
		{"held by what is not there yet", []int64{8}, []int64{4}, []int64{20}, true, false, 0},
		{"held in part", []int64{8}, []int64{4}, []int64{15}, false, false, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(4) // the others are free, so that nothing comes home
			l := w.loan(0, fleet.Lent, 1)
			l.Kind, l.Cells = fleet.KindSocket, []int{2, 3}
			n := &w.s.Nodes[0]
			n.Share.Parcels[0].Cells, n.Marks.OfflineLabel = l.Cells, false
			add := func(class fleet.PodClass, each []int64) {
				for _, x := range each {
					name := fmt.Sprintf("%s-%d", class, x)
					p := fleet.Pod{ID: fleet.UID(name), Name: fleet.Name{Namespace: "n", Name: name}, Class: class, Requests: cores(x),
						Node: n.ID, NodeName: n.Name, Phase: fleet.PodRunning}
					if class == fleet.PodFiller {
						p.HoldsOn = n.Name
						if c.pending {
							p.Node, p.NodeName, p.Phase = "", "", fleet.PodPending
						}
					}
					w.s.Pods = append(w.s.Pods, p)
				}
			}
			add(fleet.PodOnline, c.online)
			add(fleet.PodSystem, c.system)
			add(fleet.PodFiller, c.fillers)
			p := made(w.input())
			open := slices.ContainsFunc(p.Marks, func(m Mark) bool { return m.ID == n.ID && m.Want.OfflineLabel })
			var filler int64
			for _, f := range p.Fillers {
				filler += int64(f.Room.CPU) / 1000
			}
			if open != c.open || filler != c.filler {
				t.Errorf("open to offline %v, a filler of %d cores to come; want %v and %d: %+v", open, filler, c.open, c.filler, p.Fillers)
			}
		})
	}
}

// A machine of which online keeps a socket bears no taint where the bundled scheduler serves its pool: who evicts for taints would take online's pods there.
func TestASocketLoanBearsNoTaint(t *testing.T) {
	for name, c := range map[string]struct {
		bundled, both, taint bool
	}{
		"one socket, by cells": {true, false, false}, "one socket, by marks": {false, false, true},
		"both sockets, by cells": {true, true, true}, "both sockets, by marks": {false, true, true},
	} {
		w := newWorld(4).service("web", 4, 0, 1, 30)
		w.halves(0, fleet.Lent)
		if !c.both {
			w.s.Loans, w.s.Nodes[0].Share.Parcels = w.s.Loans[:1], w.s.Nodes[0].Share.Parcels[:1]
		}
		for i := range w.s.Pools {
			if c.bundled {
				w.s.Pools[i].Scheduler = "springtide"
			}
		}
		w.s.Nodes[0].Marks.HolderTaint = !c.taint
		p := made(w.input())
		i := slices.IndexFunc(p.Marks, func(m Mark) bool { return m.ID == "uid-00" })
		if i < 0 || p.Marks[i].Want.HolderTaint != c.taint {
			t.Errorf("%s: %+v, want the taint %v", name, p.Marks, c.taint)
		}
	}
}
