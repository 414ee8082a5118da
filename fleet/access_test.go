package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/springtide/springtide/fleet"
)

func classes(p PoolID) Class {
	switch p {
	case "web", "api":
		return Online
	case "batch":
		return Offline
	}
	return ""
}

// parcel reads "0-1 batch web": cells, holder, next.
func parcel(text string) ShareParcel {
	f := strings.Fields(text)
	p := ShareParcel{Holder: PoolID(f[1])}
	var from, to int
	if n, _ := fmt.Sscanf(f[0], "%d-%d", &from, &to); n == 1 {
		to = from
	}
	for c := from; c <= to; c++ {
		p.Cells = append(p.Cells, c)
	}
	if len(f) > 2 {
		p.Next = PoolID(f[2])
	}
	return p
}

// TestAccess: which cells are whose, and who may land, for what a share can say. A cell is written o (online's), b (batch's) or - (it moves).
func TestAccess(t *testing.T) {
	for _, c := range []struct {
		name, home string
		cells      int // 0: the topology is unknown
		parcels    []string
		sides      string
		online     bool
		offline    bool
		whole      bool // of the home side
	}{
		{"nothing is lent", "web", 4, nil, "oooo", true, false, true},
		{"it is emptied", "web", 4, []string{"0-3 web batch"}, "----", false, false, false},
		{"it is lent whole", "web", 4, []string{"0-3 batch"}, "bbbb", false, true, false},
		{"it is on its way home", "web", 4, []string{"0-3 batch web"}, "----", false, false, false},
		{"it came home, and its loan is not forgotten", "web", 4, []string{"0-3 web"}, "oooo", true, false, true},
		{"it came home, of unknown topology", "web", 0, []string{"0 web"}, "o", true, false, true},
		{"a socket is emptied", "web", 4, []string{"2-3 web batch"}, "oo--", false, false, false},
		{"a socket is lent", "web", 4, []string{"2-3 batch"}, "oobb", false, true, false},
		{"a socket is lent, the other is emptied", "web", 4, []string{"0-1 web batch", "2-3 batch"}, "--bb", false, true, false},
		{"a socket is on its way home", "web", 4, []string{"2-3 batch web"}, "oo--", false, false, false},
		{"a socket is on its way home, the other is lent", "web", 4, []string{"0-1 batch", "2-3 batch web"}, "bb--", false, false, false},
		{"a socket came home", "web", 4, []string{"2-3 web"}, "oooo", true, false, true},
		{"a socket came home, the other drains", "web", 4, []string{"0-1 batch web", "2-3 web"}, "--oo", true, false, false},
		{"a socket came home, the other is lent", "web", 4, []string{"0-1 batch", "2-3 web"}, "bboo", true, false, false},
		{"a socket came home, the other is emptied", "web", 4, []string{"0-1 web batch", "2-3 web"}, "--oo", true, false, false},
		{"both sockets came home", "web", 4, []string{"0-1 web", "2-3 web"}, "oooo", true, false, true},
		{"one of four sockets is kept, one came home, one drains, one is lent", "web", 4, []string{"1 web", "2 batch web", "3 batch"}, "oo-b", true, false, false},
		{"offline's own", "batch", 4, nil, "bbbb", false, true, true},
		{"offline's, emptied for online", "batch", 4, []string{"0-3 batch web"}, "----", false, false, false},
		{"offline's, with online", "batch", 4, []string{"0-3 web"}, "oooo", true, false, false},
		{"offline's, on its way home", "batch", 4, []string{"0-3 web batch"}, "----", false, false, false},
		{"offline's, came home", "batch", 4, []string{"0-3 batch"}, "bbbb", false, true, true},
		{"it came home, and the machine is in another online pool by now", "api", 4, []string{"0-3 web"}, "oooo", true, false, true},
		{"a socket came home, and the machine is in another online pool by now", "api", 4, []string{"2-3 web"}, "oooo", true, false, true},
		{"a socket is on its way to the online pool of before, the other is lent", "api", 4, []string{"0-1 batch", "2-3 batch web"}, "bb--", false, false, false},
		{"it is emptied, and the machine is in another online pool by now", "api", 4, []string{"0-3 web batch"}, "----", false, false, false},
		{"it is lent, and the machine is in another online pool by now", "api", 4, []string{"0-3 batch"}, "bbbb", false, true, false},
		{"it is lent, and the machine is in the offline pool by now", "batch", 4, []string{"0-3 batch"}, "bbbb", false, true, true},
		{"the borrower is gone", "web", 4, []string{"2-3 gone"}, "oo--", false, true, false},
		{"the home is gone", "gone", 4, []string{"2-3 batch"}, "--bb", false, false, false},
		{"the topology went after a socket was lent", "web", 0, []string{"0-1 web", "2-3 batch web"}, "o", false, false, false},
		{"the topology went, and all is home", "web", 0, []string{"0-1 web", "2-3 web"}, "o", true, false, true},
		{"the topology came after the machine was lent whole", "web", 4, []string{"0 batch web"}, "-ooo", false, false, false},
	} {
		n := &Node{Pool: PoolID(c.home)}
		for i := range c.cells {
			n.Cells = append(n.Cells, Cell{ID: i, Socket: i / 2})
		}
		for _, p := range c.parcels {
			n.Share.Parcels = append(n.Share.Parcels, parcel(p))
		}
		a := AccessOf(n, n.Share.Parcels, classes)
		sides := ""
		for _, cell := range n.AllCells() {
			sides += map[Class]string{Online: "o", Offline: "b", "": "-"}[a.Side(cell)]
		}
		if sides != c.sides || a.Open(Online) != c.online || a.Open(Offline) != c.offline || a.Open("") {
			t.Errorf("%s: cells %s, open to online %v, offline %v; want %s, %v, %v", c.name, sides, a.Open(Online), a.Open(Offline), c.sides, c.online, c.offline)
		}
		if home := classes(n.Pool); home != "" && a.Whole(home) != c.whole {
			t.Errorf("%s: all is home: %v", c.name, a.Whole(home))
		}
		if a.Open(Online) && a.Open(Offline) {
			t.Errorf("%s: both sides may land", c.name)
		}
		if !a.Taints(false) != a.Whole(Online) {
			t.Errorf("%s: one that reads marks alone is kept off by the taint %v", c.name, a.Taints(false))
		}
		if closed := classes(n.Pool) != Online || !strings.Contains(sides, "o") || strings.Contains(c.name, "the topology went"); a.Taints(true) != (closed && !a.Whole(Online)) {
			t.Errorf("%s: one that reads cells is kept off by the taint %v", c.name, a.Taints(true))
		}
		slices.Reverse(n.Share.Parcels)
		if b := AccessOf(n, n.Share.Parcels, classes); b.Open(Online) != c.online || b.Open(Offline) != c.offline {
			t.Errorf("%s: the order of the parcels decides", c.name)
		}
	}
}
