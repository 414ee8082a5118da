package place

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/rules"
)

// racks is a table of machines of 64 cores in racks of these sizes.
func racks(sizes ...int) *Table {
	tab := New()
	for r, n := range sizes {
		for k := range n {
			m := plain(fmt.Sprintf("r%d-%d", r, k))
			m.Labels = rules.LabelsOf(map[string]string{"rack": fmt.Sprint("r", r), "block": fmt.Sprint("b", r/2)})
			tab.SetMachine(m)
		}
	}
	return tab
}

// TestGangDomains: a gang is in one domain, the smallest that holds it; what it prefers is given up before the gang is.
func TestGangDomains(t *testing.T) {
	half := Shape{Side: fleet.Online, Requests: cores(32)}
	for _, c := range []struct {
		name   string
		min    int
		count  int
		g      GangRequest
		domain string
		kept   []string
		placed int
	}{
		{name: "anywhere", min: 12, count: 12, placed: 12},
		{name: "too many", min: 13, count: 13},
		{name: "the smallest rack that holds four", min: 4, count: 4, g: GangRequest{Domain: "rack"}, domain: "r1", placed: 4},
		{name: "no rack holds seven", min: 7, count: 7, g: GangRequest{Domain: "rack"}},
		{name: "one that holds all that is wanted", min: 2, count: 5, g: GangRequest{Domain: "rack"}, domain: "r2", placed: 5},
		{name: "as many as there are", min: 2, count: 50, g: GangRequest{Domain: "rack"}, domain: "r2", placed: 6},
		{name: "a rack is preferred", min: 7, count: 7, g: GangRequest{Prefer: []string{"rack"}}, placed: 7},
		{name: "within a block a rack is preferred", min: 4, count: 4, g: GangRequest{Domain: "block", Prefer: []string{"rack"}}, domain: "b0\x1fr1", kept: []string{"rack"}, placed: 4},
		{name: "within a block no rack holds six", min: 6, count: 6, g: GangRequest{Domain: "block", Value: "b0", Prefer: []string{"rack"}}, domain: "b0", placed: 6},
		{name: "a wish that cannot be met does not cost the next one", min: 4, count: 4, g: GangRequest{Prefer: []string{"row", "rack"}}, domain: "r1", kept: []string{"rack"}, placed: 4},
		{name: "the rest of a gang goes where it is", min: 1, count: 1, g: GangRequest{Domain: "rack", Value: "r2"}, domain: "r2", placed: 1},
		{name: "a label that no machine has", min: 1, count: 1, g: GangRequest{Domain: "row"}},
	} {
		tab := racks(1, 2, 3)
		c.g.Roles = []Role{{tab.Class(half), c.min, c.count}}
		out, ok := tab.DecideGang(c.g)
		n := 0
		if ok {
			n = len(out.Pods[0])
		}
		if ok != (c.placed > 0) || n != c.placed || out.Domain != c.domain || !slices.Equal(out.Kept, c.kept) {
			t.Errorf("%s: %v, %d pods, domain %q, kept %v", c.name, ok, n, out.Domain, out.Kept)
		}
		for _, d := range out.Pods {
			for _, d := range d {
				tab.Forget(d.Pod)
			}
		}
		if err := complainOfSums(tab); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestGangsAllOrNothing: a gang whose least does not fit leaves the table as it was; one that is placed has at least that, in one domain, and oversells
// nothing.
func TestGangsAllOrNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		for range rapid.IntRange(0, 10).Draw(r, "steps") {
			w.step(r)
		}
		g := GangRequest{Domain: rapid.SampledFrom([]string{"", "rack", zoneKey, GPUModelKey}).Draw(r, "domain")}
		if rapid.Bool().Draw(r, "prefer") {
			g.Prefer = []string{"disk"}
		}
		for range rapid.IntRange(1, 3).Draw(r, "roles") {
			least := rapid.IntRange(0, 3).Draw(r, "min")
			g.Roles = append(g.Roles, Role{w.tab.Class(w.shape(r)), least, least + rapid.IntRange(0, 2).Draw(r, "more")})
		}
		before := state(w.tab)
		out, ok := w.tab.DecideGang(g)
		if !ok {
			if after := state(w.tab); after != before {
				r.Fatalf("a gang was refused, and the table is\n%s instead of\n%s", after, before)
			}
			return
		}
		in := map[string]bool{}
		for i, role := range g.Roles {
			if n := len(out.Pods[i]); n < role.Min || n > role.Count {
				r.Fatalf("role %d of %+v has %d pods", i, role, n)
			}
			for _, d := range out.Pods[i] {
				x := &w.tab.nodes[w.tab.byID[d.Node]]
				if g.Domain != "" {
					v, _ := x.valueOf([]string{g.Domain})
					in[v] = true
				}
				if p := &w.tab.pods[d.Pod]; w.tab.classes[p.class].want[cpu] > 0 && w.tab.freeFor(p.row, cpu) < 0 {
					r.Fatalf("%s was oversold", d.Name)
				}
			}
		}
		if len(in) > 1 {
			r.Fatalf("a gang is in the domains %v", in)
		}
	})
}

// TestTheFullestDomain: the domain that holds the most pods of a gang is found where the sums of the room say another one: the large pod takes the only machine of a
// rack, the pods of one kind keep each other away, and a rack holds all.
func TestTheFullestDomain(t *testing.T) {
	machines := func(rack string, sizes ...int64) []Machine {
		var out []Machine
		for i, n := range sizes {
			m := plain(fmt.Sprint(rack, i))
			m.Allocatable, m.Cells = cores(n), nil
			m.Allocatable.Pods = 110
			m.Labels = rules.LabelsOf(map[string]string{"rack": rack})
			out = append(out, m)
		}
		return out
	}
	large, small := Shape{Side: fleet.Online, Requests: cores(4)}, Shape{Side: fleet.Online, Requests: cores(1)}
	alone := Shape{Side: fleet.Online, Requests: cores(1), Needs: &Needs{Ports: []rules.Port{{Protocol: "TCP", Port: 80}}}}
	for _, c := range []struct {
		name     string
		machines []Machine
		roles    []Shape
		count    int
		domain   string
		placed   int
	}{
		{"four of the small, and not the large one", slices.Concat(machines("a", 4), machines("b", 1, 1, 1, 1)), []Shape{large, small}, 4, "b", 4},
		{"a port on each machine", slices.Concat(machines("a", 64), machines("b", 1, 1)), []Shape{alone}, 2, "b", 2},
		{"all", slices.Concat(machines("a", 4), machines("b", 4, 4)), []Shape{small}, 4, "a", 4},
		{"none", machines("a", 1), []Shape{large}, 4, "", 0},
	} {
		tab := New()
		for i := range c.machines {
			tab.SetMachine(c.machines[i])
		}
		g := GangRequest{Domain: "rack", Most: true}
		for _, s := range c.roles {
			g.Roles = append(g.Roles, Role{Class: tab.Class(s), Count: c.count})
		}
		out, ok := tab.DecideGang(g)
		n := 0
		for _, pods := range out.Pods {
			n += len(pods)
		}
		if ok != (c.placed > 0) || n != c.placed || out.Domain != c.domain {
			t.Errorf("%s: %v, %d pods in %q, want %d in %q", c.name, ok, n, out.Domain, c.placed, c.domain)
		}
	}
}
