package quota

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

var now = time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC)

func cores(n int64) fleet.Resources { return fleet.Resources{CPU: fleet.MilliCPU(n * 1000)} }

func limit(n int64) fleet.Known[fleet.Resources] { return fleet.KnownAt(cores(n), now) }

func tenant(id, parent string, guarantee int64) fleet.Tenant {
	return fleet.Tenant{ID: fleet.TenantID(id), Parent: fleet.TenantID(parent), Guarantee: cores(guarantee), Accepted: true}
}

func shareOf(t *testing.T, d Division, id string) Share {
	t.Helper()
	for _, s := range d.Shares {
		if s.Tenant == fleet.TenantID(id) {
			return s
		}
	}
	t.Fatalf("tenant %s has no share in %+v", id, d)
	return Share{}
}

func TestDivide(t *testing.T) {
	shop, pay := tenant("shop", "org", 100), tenant("pay", "org", 100)
	capped := pay
	capped.BorrowingLimit = limit(10)
	close := shop
	close.LendingLimit = limit(20)
	other := tenant("else", "", 100)
	for _, c := range []struct {
		name                    string
		tree                    []fleet.Tenant
		wants                   map[string]int64
		supply                  int64
		borrowed, lent, limited map[string]int64
		short                   []string
	}{
		{"each within its own", []fleet.Tenant{shop, pay}, map[string]int64{"shop": 60, "pay": 70}, 200,
			map[string]int64{"shop": 0, "pay": 0}, map[string]int64{"shop": 40, "pay": 30}, nil, nil},
		{"one borrows what the other leaves", []fleet.Tenant{shop, pay}, map[string]int64{"shop": 60, "pay": 130}, 200,
			map[string]int64{"pay": 30}, map[string]int64{"shop": 40}, nil, nil},
		{"no more than the borrowing limit", []fleet.Tenant{shop, capped}, map[string]int64{"shop": 60, "pay": 130}, 200,
			map[string]int64{"pay": 10}, nil, map[string]int64{"pay": 110}, nil},
		{"no more than the lending limit", []fleet.Tenant{close, pay}, map[string]int64{"shop": 60, "pay": 130}, 200,
			map[string]int64{"pay": 20}, map[string]int64{"shop": 20}, nil, []string{"pay"}},
		{"supply that no guarantee names is there for all", []fleet.Tenant{shop, pay}, map[string]int64{"shop": 100, "pay": 130}, 250,
			map[string]int64{"pay": 30}, nil, nil, nil},
		{"another tree's leavings are not to be had", []fleet.Tenant{other, pay}, map[string]int64{"pay": 130}, 200,
			map[string]int64{"pay": 0}, map[string]int64{"else": 100}, nil, []string{"pay"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var wants []Want
			for _, id := range []string{"else", "pay", "shop"} {
				wants = append(wants, Want{Tenant: fleet.TenantID(id), Now: cores(c.wants[id])})
			}
			tree := append([]fleet.Tenant{tenant("org", "", 0)}, c.tree...)
			d := Divide(tree, wants, cores(c.supply), now, nil)
			for id, n := range c.borrowed {
				if got := shareOf(t, d, id).Borrowed; got != cores(n) {
					t.Errorf("%s borrows %v, want %d cores", id, got, n)
				}
			}
			for id, n := range c.lent {
				if got := shareOf(t, d, id).Lent; got != cores(n) {
					t.Errorf("%s lends %v, want %d cores", id, got, n)
				}
			}
			for id, n := range c.limited {
				if got := shareOf(t, d, id).Limit; got != cores(n) {
					t.Errorf("%s may use %v, want %d cores", id, got, n)
				}
			}
			var short []string
			for _, s := range d.Short {
				short = append(short, string(s.Tenant))
			}
			if fmt.Sprint(short) != fmt.Sprint(c.short) {
				t.Errorf("short are %v, want %v", short, c.short)
			}
		})
	}
}

func TestSliceLiftsTheGuarantee(t *testing.T) {
	shop := tenant("shop", "", 100)
	shop.Slices = []fleet.Slice{{Window: fleet.Window{Name: "evening"}, Guarantee: cores(300)}}
	open := func(w fleet.Window, at time.Time) bool { return w.Name == "evening" && at.Hour() >= 19 }
	if g := Guarantee(&shop, now, open); g != cores(300) {
		t.Errorf("at 20:00 the slice holds, got %v", g)
	}
	if g := Guarantee(&shop, now.Add(-5*time.Hour), open); g != cores(100) {
		t.Errorf("at 15:00 it does not, got %v", g)
	}
}

func TestParentCycleEnds(t *testing.T) {
	a, b := tenant("a", "b", 10), tenant("b", "a", 10)
	if d := Divide([]fleet.Tenant{a, b}, nil, cores(20), now, nil); len(d.Shares) != 2 {
		t.Fatalf("a cycle must neither hang nor lose a tenant: %+v", d)
	}
}

// Whatever is wished for: nobody is granted more than there is to lend, nobody's guarantee is cut, and no limit is passed.
func TestDivideIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "tenants")
		tree := []fleet.Tenant{tenant("root", "", 0)}
		var wants []Want
		var promised int64
		for i := range n {
			g := rapid.Int64Range(0, 100).Draw(t, "guarantee")
			promised += g
			te := tenant(fmt.Sprintf("t%d", i), "root", g)
			if rapid.Bool().Draw(t, "lending limit") {
				te.LendingLimit = limit(rapid.Int64Range(0, 100).Draw(t, "lend"))
			}
			if rapid.Bool().Draw(t, "borrowing limit") {
				te.BorrowingLimit = limit(rapid.Int64Range(0, 100).Draw(t, "borrow"))
			}
			tree = append(tree, te)
			wants = append(wants, Want{Tenant: te.ID, Now: cores(rapid.Int64Range(0, 300).Draw(t, "want"))})
		}
		supply := promised + rapid.Int64Range(0, 100).Draw(t, "unnamed")
		d := Divide(tree, wants, cores(supply), now, nil)
		var borrowed, mayBorrow, lendable fleet.Resources
		lendable = cores(supply - promised)
		for i, te := range tree[1:] {
			var s Share
			for _, x := range d.Shares {
				if x.Tenant == te.ID {
					s = x
				}
			}
			if s.Entitled != te.Guarantee {
				t.Fatalf("%s is entitled to %v, guaranteed %v", te.ID, s.Entitled, te.Guarantee)
			}
			if !te.Guarantee.Fits(s.Limit) {
				t.Fatalf("%s may use %v, less than its guarantee %v", te.ID, s.Limit, te.Guarantee)
			}
			if te.BorrowingLimit.OK && !s.Limit.Sub(te.Guarantee).Fits(te.BorrowingLimit.Value) {
				t.Fatalf("%s may borrow %v, its limit is %v", te.ID, s.Limit.Sub(te.Guarantee), te.BorrowingLimit.Value)
			}
			if te.LendingLimit.OK && !s.Lent.Fits(te.LendingLimit.Value) {
				t.Fatalf("%s lends %v, its limit is %v", te.ID, s.Lent, te.LendingLimit.Value)
			}
			if !s.Lent.Fits(te.Guarantee.Sub(wants[i].Now).Floor()) {
				t.Fatalf("%s lends %v though it wants %v of %v", te.ID, s.Lent, wants[i].Now, te.Guarantee)
			}
			borrowed, lendable = borrowed.Add(s.Borrowed), lendable.Add(s.Lent)
			mayBorrow = mayBorrow.Add(s.Limit.Sub(s.Entitled))
		}
		if !borrowed.Fits(lendable) || !mayBorrow.Fits(lendable) {
			t.Fatalf("borrowed %v, may borrow %v, there are %v to lend", borrowed, mayBorrow, lendable)
		}
	})
}
