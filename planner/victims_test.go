package planner

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// onMachines is a service with so many pods on each machine, of which the first so many are being emptied.
func onMachines(pods []int, emptied int) *world {
	w, all := newWorld(len(pods)), 0
	for _, n := range pods {
		all += n
	}
	w.service("web", all, 0, 1, float64(all))
	i := 0
	for machine, n := range pods {
		node := &w.s.Nodes[machine]
		for range n {
			for _, p := range []*fleet.Pod{&w.s.Pods[i], &w.s.Services[0].Pods[i]} {
				p.Node, p.NodeName = node.ID, node.Name
			}
			i++
		}
	}
	for machine := range emptied {
		w.loan(machine, fleet.Emptying, 1)
	}
	w.s.Pools[1].Budget = fleet.DisruptionBudget{EvictionsPerMinute: 1000, ServiceShare: 1, FleetShare: 1}
	return w
}

// stays is how many pods each machine has once a scale-in took k of them as it was steered.
func (w *world) stays(k int) []int {
	in := w.input()
	svc := &in.Snapshot.Services[0]
	refs, _, _, _ := (&scaler{newMaker(&in)}).victims(svc, int32(k), false)
	out := make([]int, len(w.s.Nodes))
	for i := range svc.Pods {
		p := &svc.Pods[i]
		if !slices.ContainsFunc(refs, func(r PodRef) bool { return r.ID == p.ID }) {
			out[slices.IndexFunc(w.s.Nodes, func(n fleet.Node) bool { return n.ID == p.Node })]++
		}
	}
	return out
}

// Machines are emptied as far as the service stays spread over zones and hosts; zones are z0, z1, z2 in turn.
func TestSteeringKeepsTheSpread(t *testing.T) {
	for _, c := range []struct {
		name          string
		pods          []int
		emptied, gone int
		want          []int
	}{
		{"what is emptied goes first", []int{1, 1, 1, 1, 1, 1, 1, 1}, 2, 2, []int{0, 0, 1, 1, 1, 1, 1, 1}},
		{"two on a machine are a fifth of ten", []int{2, 2, 2, 2, 2, 2}, 1, 2, []int{0, 2, 2, 2, 2, 2}},
		{"of nine they are more: one of each goes, and what is emptied keeps one", []int{2, 2, 2, 2, 2, 2, 2, 2, 2}, 2, 9, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{"eight fit without one of them", []int{2, 2, 2, 2, 2, 2, 2, 2, 2}, 2, 10, []int{0, 1, 1, 1, 1, 1, 1, 1, 1}},
		{"not all that are too many can go: the fullest machine is left first", []int{2, 3, 2, 2, 2}, 1, 2, []int{1, 2, 2, 2, 2}},
		{"one more than a fifth is no more than rounding", []int{2, 1, 1, 1, 2}, 1, 2, []int{1, 1, 1, 1, 1}},
		{"what was never spread is emptied, but for the last of its zone", []int{4, 0, 20, 20, 12, 0}, 1, 4, []int{0, 0, 20, 20, 12, 0}},
		{"its zone has another one", []int{1, 1, 0, 1, 1}, 1, 1, []int{0, 1, 0, 1, 1}},
		{"its zone has none: another goes", []int{1, 1, 0, 0, 1}, 1, 1, []int{1, 0, 0, 0, 1}},
		{"but for the want of replicas", []int{1, 1, 1}, 1, 1, []int{0, 1, 1}},
		{"one zone is left of three", []int{1, 1, 1}, 1, 2, []int{0, 0, 1}},
	} {
		if got := onMachines(c.pods, c.emptied).stays(c.gone); !slices.Equal(got, c.want) {
			t.Errorf("%s: of %v stay %v, want %v", c.name, c.pods, got, c.want)
		}
	}
}

// However pods lie, and whichever machines are emptied: a scale-in takes as many as it says, never leaves fewer zones than it must, and where
// one of its machines is emptied, it was spread, and those that stay can lie within a fifth of them on each machine, they do.
func TestSteeringNeverCrowds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := rapid.SliceOfN(rapid.IntRange(0, 8), 1, 12).Draw(t, "pods")
		all, zones := 0, map[int]bool{}
		for i, n := range pods {
			if all += n; n > 0 {
				zones[i%3] = true
			}
		}
		if all == 0 {
			t.Skip("no pods")
		}
		emptied, gone := rapid.IntRange(0, len(pods)).Draw(t, "emptied"), rapid.IntRange(0, all).Draw(t, "gone")
		got, stay := onMachines(pods, emptied).stays(gone), all-gone
		sum, may, left := 0, 0, map[int]bool{}
		for i, n := range pods {
			if may += min(n, fleet.MostPerHost(stay)); n > fleet.MostPerHost(all) {
				may = -1000 // it was not spread before
			}
			if sum += got[i]; got[i] > 0 {
				left[i%3] = true
			}
		}
		if sum != stay || len(left) < min(len(zones), stay) {
			t.Fatalf("of %v stay %v: %d pods in %d zones, want %d in %d", pods, got, sum, len(left), stay, min(len(zones), stay))
		}
		empties := slices.ContainsFunc(pods[:emptied], func(n int) bool { return n > 0 })
		for i, n := range got {
			if empties && may >= stay && n > fleet.MostPerHost(stay) {
				t.Fatalf("of %v stay %v: %d of %d on m%02d", pods, got, n, stay, i)
			}
		}
	})
}

// A zone's last pod does not leave in the place of one that the disruption ledger refuses: the scale-in waits.
func TestTheLedgerCostsNoZone(t *testing.T) {
	w := onMachines([]int{3, 1, 1}, 1)
	w.s.Pools[1].Budget.EvictionsPerMinute = 1
	in := w.input()
	refs, _, refused, _ := (&scaler{newMaker(&in)}).victims(&in.Snapshot.Services[0], 2, false)
	if got := fmt.Sprint(w.stays(2)); got != "[2 1 1]" || len(refs) != 1 || refused != 1 {
		t.Errorf("%s stay, %d go and %d wait; want [2 1 1], one and one", got, len(refs), refused)
	}
}
