package place

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/springtide/springtide/fleet"
)

// TestQuality plays the same pods with three ways to choose a machine, and compares what is left: the table's index; the naive twin, which scores every
// machine for every pod; and the best of 51 machines that fit, drawn by lot, as schedulers do that stop their search early. SPRINGTIDE_QUALITY is the
// number of machines (make bench-scheduler).
func TestQuality(t *testing.T) {
	machines := 120
	_, _ = fmt.Sscan(os.Getenv("SPRINGTIDE_QUALITY"), &machines)
	chance := rand.New(rand.NewPCG(1, 2))
	table := playQuality(t, machines, func(tab *Table, id ClassID) (Decision, bool) { return tab.Decide(id) })
	naive := playQuality(t, machines, func(tab *Table, id ClassID) (Decision, bool) { return takeBest(tab, id, twin(tab, id)) })
	sampled := playQuality(t, machines, func(tab *Table, id ClassID) (Decision, bool) {
		all := twin(tab, id)
		drawn := make([]string, 0, 51)
		for _, k := range chance.Perm(len(all))[:min(51, len(all))] {
			drawn = append(drawn, all[k])
		}
		slices.SortFunc(drawn, func(a, b string) int { return slices.Index(all, a) - slices.Index(all, b) })
		return takeBest(tab, id, drawn)
	})
	t.Logf("| %d machines | index | naive twin | best of 51 |", machines)
	t.Log("|---|---|---|---|")
	for i, row := range table {
		t.Logf("| %s | %.2f | %.2f | %.2f |", row.name, row.value, naive[i].value, sampled[i].value)
		if row != naive[i] {
			t.Errorf("%s: %v by the index, %v by looking at every machine", row.name, row.value, naive[i].value)
		}
	}
}

// takeBest takes room on the first of some machines.
func takeBest(tab *Table, id ClassID, names []string) (Decision, bool) {
	if len(names) == 0 {
		return Decision{}, false
	}
	return tab.Assume(id, fleet.NodeID("id-"+names[0]))
}

// figure is a measure of a placement.
type figure struct {
	name  string
	value float64
}

// playQuality places pods of all kinds, in turn, until about two thirds of the machines are in use, and measures the outcome. Half of the machines are
// offline's, and a quarter has GPUs.
func playQuality(t *testing.T, machines int, choose func(*Table, ClassID) (Decision, bool)) []figure {
	t.Helper()
	tab := New()
	for i := range machines {
		m := plain(fmt.Sprintf("m%05d", i))
		m.Zone = fmt.Sprint("z", i%3)
		if i%2 == 1 {
			m.Pool, m.Home = "offline", fleet.Offline
		}
		if i%4 == 0 {
			m.GPUModel, m.Allocatable.GPU = "a100", 8
			for c := range m.Cells {
				m.Cells[c].Capacity.GPU = 2
			}
		}
		tab.SetMachine(m)
	}
	const services = 10
	group := func(i int) string { return fmt.Sprint("svc", i%services) }
	kinds := []struct {
		pods  int // a hundred machines
		shape func(i int) Shape
	}{
		{400, func(i int) Shape {
			return Shape{Side: fleet.Online, Requests: cores(2), Group: group(i), Zones: true}
		}},
		{60, func(int) Shape {
			return Shape{Side: fleet.Online, Requests: cores(12), Cells: OneCell, Exclusive: true}
		}},
		{60, func(int) Shape { return Shape{Side: fleet.Online, Requests: cores(5), Cells: OneCell} }},
		{80, func(i int) Shape {
			return Shape{Side: fleet.Online, Requests: fleet.Resources{CPU: 2000, Memory: 8 * fleet.GiB, GPU: int64(1 + i%2)}}
		}},
		{300, func(i int) Shape { return Shape{Side: fleet.Offline, Requests: cores(int64(1 + i%5*2))} }},
	}
	placed, asked := 0, 0
	for i := range 4 * machines {
		for _, k := range kinds {
			if i*100 >= k.pods*machines {
				continue
			}
			asked++
			if _, ok := choose(tab, tab.Class(k.shape(i))); ok {
				placed++
			}
		}
	}
	return measureQuality(tab, placed, asked, services)
}

// measureQuality says how spread, how packed and how broken up a placement is.
func measureQuality(tab *Table, placed, asked, services int) []figure {
	perHost, perZone := map[string]int{}, map[string]int{}
	for i := range tab.pods {
		p := &tab.pods[i]
		if c := &tab.classes[p.class]; p.role == stays && c.group != none {
			n := &tab.nodes[p.row>>1]
			perHost[c.shape.Group+" "+n.name]++
			perZone[c.shape.Group+" "+n.zone]++
		}
	}
	onFullest, skew := 0, 0
	for s := range services {
		name := fmt.Sprint("svc", s)
		host, least, most := 0, placed, 0
		for i := range tab.nodes {
			host = max(host, perHost[name+" "+tab.nodes[i].name])
		}
		for z := range 3 {
			least, most = min(least, perZone[fmt.Sprint(name, " z", z)]), max(most, perZone[fmt.Sprint(name, " z", z)])
		}
		onFullest, skew = onFullest+host, skew+most-least
	}
	offline, partGPU, lostGPU, broken, lost := 0, 0, int64(0), 0, int64(0)
	for i := range tab.nodes {
		n := &tab.nodes[i]
		if n.home == offlineSide && (tab.first[2*i] != none || tab.first[2*i+1] != none) {
			offline++
		}
		if free, all := tab.free[gpus][2*i], n.kind.Allocatable.GPU; all > 0 && free > 0 && free < all {
			partGPU++
			lostGPU += free
		}
		for _, c := range tab.cells[n.from:n.to] {
			if n.home == onlineSide && c.free != c.capacity {
				if c.free[cpu] > 0 {
					broken++
				}
				if c.free[cpu] < 5000 { // of no use for a pod that is bound to a cell
					lost += c.free[cpu]
				}
			}
		}
	}
	return []figure{
		{"pods without a place", float64(asked - placed)},
		{"spread: pods of a service on its fullest machine, mean", float64(onFullest) / float64(services)},
		{"spread: pods between a service's fullest and emptiest zone, mean", float64(skew) / float64(services)},
		{"packing: offline machines in use", float64(offline)},
		{"GPU fragments: machines with some GPUs free and some in use", float64(partGPU)},
		{"GPU fragments: GPUs free on those", float64(lostGPU)},
		{"cells in use in part", float64(broken)},
		{"cells wasted: cores free in cells with too few for a bound pod", float64(lost) / 1000},
	}
}
