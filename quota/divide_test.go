package quota

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

var now = time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC)

func cores(n int64) fleet.Resources { return fleet.Resources{CPU: fleet.MilliCPU(n * 1000)} }

func limit(n int64) fleet.Known[fleet.Resources] { return fleet.KnownAt(cores(n), now) }

func tenant(id, parent string, guarantee int64) fleet.Tenant {
	return fleet.Tenant{ID: fleet.TenantID(id), Parent: fleet.TenantID(parent), Guarantee: cores(guarantee), Accepted: true}
}

// The example of the paper (Ghodsi et al., NSDI 2011, section 4.1): of 9 CPUs and 18 GB, user A, whose tasks take 1 CPU and 4 GB, gets 3
// tasks, and user B, whose tasks take 3 CPUs and 1 GB, gets 2. Both have two thirds of what each takes most of.
func TestPaper(t *testing.T) {
	task := func(cpu fleet.MilliCPU, gb fleet.Bytes) fleet.Resources {
		return fleet.Resources{CPU: cpu * 1000, Memory: gb * fleet.GiB}
	}
	a, b := task(1, 4), task(3, 1)
	d := Divide(Input{At: now, Supply: fleet.KnownAt(task(9, 18), now), Tenants: []fleet.Tenant{tenant("a", "", 0), tenant("b", "", 0)},
		Wants: []Want{{Tenant: "a", Now: a.Times(100)}, {Tenant: "b", Now: b.Times(100)}}})
	for id, want := range map[fleet.TenantID]fleet.Resources{"a": a.Times(3), "b": b.Times(2)} {
		if got := d.Share(id).Borrowed; got != want {
			t.Errorf("%s gets %v, want %v", id, got, want)
		}
	}
}

// Hierarchical DRF (Bhattacharya et al., SoCC 2013). A group is one among its siblings however many it has; and a group does not wait
// because of a member that can take nothing more, which is where the plain hierarchy starves.
func TestHierarchy(t *testing.T) {
	r := func(cpu fleet.MilliCPU, gpu int64) fleet.Resources { return fleet.Resources{CPU: cpu * 1000, GPU: gpu} }
	for _, c := range []struct {
		name   string
		tree   []fleet.Tenant
		supply fleet.Resources
		wants  map[fleet.TenantID]fleet.Resources
		want   map[fleet.TenantID]fleet.Resources
	}{
		// Their example: n1 asks for <1,1>, n2,1 for <1,0> and n2,2 for <0,1>; all three get a half each of what they ask for.
		{"complementary members share no resource", []fleet.Tenant{tenant("n1", "", 0), tenant("n2", "", 0), tenant("n2.1", "n2", 0), tenant("n2.2", "n2", 0)},
			r(10, 10), map[fleet.TenantID]fleet.Resources{"n1": r(100, 100), "n2.1": r(100, 0), "n2.2": r(0, 100)},
			map[fleet.TenantID]fleet.Resources{"n1": r(5, 5), "n2.1": r(5, 0), "n2.2": r(0, 5)}},
		// n2.1's CPU is gone at once, as n1 takes it too; n2.2 must still be let to take the GPUs that no other wants.
		{"a blocked member starves nobody", []fleet.Tenant{tenant("n1", "", 0), tenant("n2", "", 0), tenant("n2.1", "n2", 0), tenant("n2.2", "n2", 0)},
			r(10, 10), map[fleet.TenantID]fleet.Resources{"n1": r(100, 0), "n2.1": r(100, 0), "n2.2": r(0, 100)},
			map[fleet.TenantID]fleet.Resources{"n1": r(5, 0), "n2.1": r(5, 0), "n2.2": r(0, 10)}},
		{"a group counts once", []fleet.Tenant{tenant("one", "", 0), tenant("many", "", 0), tenant("m1", "many", 0), tenant("m2", "many", 0), tenant("m3", "many", 0)},
			r(90, 0), map[fleet.TenantID]fleet.Resources{"one": r(100, 0), "m1": r(100, 0), "m2": r(100, 0), "m3": r(5, 0)},
			map[fleet.TenantID]fleet.Resources{"one": r(45, 0), "m1": r(20, 0), "m2": r(20, 0), "m3": r(5, 0)}},
		{"a group in a group counts once", []fleet.Tenant{tenant("one", "", 0), tenant("up", "", 0), tenant("many", "up", 0), tenant("m1", "many", 0), tenant("m2", "many", 0)},
			r(80, 0), map[fleet.TenantID]fleet.Resources{"one": r(100, 0), "m1": r(100, 0), "m2": r(100, 0)},
			map[fleet.TenantID]fleet.Resources{"one": r(40, 0), "m1": r(20, 0), "m2": r(20, 0)}},
		{"who is out of GPUs goes on without", []fleet.Tenant{tenant("a", "", 0), tenant("b", "", 0)},
			r(100, 2), map[fleet.TenantID]fleet.Resources{"a": r(40, 4), "b": r(30, 0)},
			map[fleet.TenantID]fleet.Resources{"a": r(40, 2), "b": r(30, 0)}},
		{"what the fleet has nothing of holds up nothing else", []fleet.Tenant{tenant("a", "", 0)},
			r(10, 0), map[fleet.TenantID]fleet.Resources{"a": r(4, 1)}, map[fleet.TenantID]fleet.Resources{"a": r(4, 0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := Input{At: now, Supply: fleet.KnownAt(c.supply, now), Tenants: c.tree}
			for i := range c.tree {
				in.Wants = append(in.Wants, Want{Tenant: c.tree[i].ID, Now: c.wants[c.tree[i].ID]})
			}
			d := Divide(in)
			for i := range c.tree {
				id := c.tree[i].ID
				if got := d.Share(id).Borrowed; got != c.want[id] {
					t.Errorf("%s gets %v, want %v", id, got, c.want[id])
				}
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

// A slice that ends within a step of the week ahead does not count for that step: the bias is towards seeing a shortage.
func TestSliceThatEndsWithinAStep(t *testing.T) {
	shop := tenant("shop", "", 10)
	shop.BorrowingLimit = limit(0)
	shop.Slices = []fleet.Slice{{Window: fleet.Window{Name: "evening"}, Guarantee: cores(30)}}
	open := func(_ fleet.Window, at time.Time) bool { return at.Before(now.Add(90 * time.Minute)) }
	d := Divide(Input{At: now, Supply: fleet.KnownAt(cores(100), now), Tenants: []fleet.Tenant{shop}, Open: open,
		Ahead: []time.Time{now, now.Add(time.Hour), now.Add(2 * time.Hour)},
		Wants: []Want{{Tenant: "shop", Now: cores(30), Ahead: []fleet.Resources{cores(30), cores(30), cores(10)}}}})
	if len(d.Short) != 1 || d.Short[0].From != now.Add(time.Hour) || d.Short[0].Until != now.Add(2*time.Hour) || d.Short[0].By != cores(20) {
		t.Errorf("%+v, want 20 cores from the second hour until the third", d.Short)
	}
}

// A group bounds what it names, and passes on what its members are promised of everything else.
func TestGroupThatNamesMemoryAlone(t *testing.T) {
	group, a, b := tenant("g", "", 0), tenant("a", "g", 10), tenant("b", "g", 20)
	group.Guarantee.Memory, a.Guarantee.Memory, b.Guarantee.Memory = 100*fleet.GiB, 50*fleet.GiB, 150*fleet.GiB
	d := Divide(Input{At: now, Supply: fleet.KnownAt(fleet.Resources{CPU: 100_000, Memory: 400 * fleet.GiB}, now), Tenants: []fleet.Tenant{group, a, b}})
	for id, want := range map[fleet.TenantID]fleet.Resources{"g": {CPU: 30_000, Memory: 100 * fleet.GiB}, "a": {CPU: 10_000, Memory: 25 * fleet.GiB}, "b": {CPU: 20_000, Memory: 75 * fleet.GiB}} {
		if got := d.Share(id).Entitled; got != want {
			t.Errorf("%s is entitled to %s, want %s", id, got, want)
		}
	}
}

func TestParentCircleEnds(t *testing.T) {
	a, b := tenant("a", "b", 10), tenant("b", "a", 10)
	if d := Divide(Input{At: now, Tenants: []fleet.Tenant{a, b}}); len(d.Shares) != 2 {
		t.Fatalf("a circle must neither hang nor lose a tenant: %+v", d)
	}
}

// A supply that is not known is not zero: guarantees stand, and nothing beyond them is shared.
func TestUnknownSupply(t *testing.T) {
	d := Divide(Input{At: now, Tenants: []fleet.Tenant{tenant("a", "", 10), tenant("b", "", 10)},
		Wants: []Want{{Tenant: "a", Now: cores(30)}}})
	if s := d.Share("a"); s.Entitled != cores(10) || s.Limit != cores(10) || len(d.Oversold) != 0 {
		t.Errorf("%+v, oversold %v", s, d.Oversold)
	}
}

// A tenant whose pods fit no hole lends so much less of its own now, and who borrows owes it what they ask for; tomorrow it is room again. It keeps
// nothing beyond its own.
func TestFragmentsAreNotLent(t *testing.T) {
	for _, c := range []struct{ fragments, kept, limit, owed int64 }{{0, 0, 104, 0}, {24, 24, 80, 16}, {32, 32, 72, 24}, {500, 40, 64, 32}} {
		in := Input{At: now, Supply: fleet.KnownAt(cores(128), now), Tenants: []fleet.Tenant{tenant("all", "", 128), tenant("shop", "all", 48), tenant("mart", "all", 64)},
			Ahead: []time.Time{now, now.Add(time.Hour)},
			Wants: []Want{{Tenant: "shop", Now: cores(104), Used: cores(96), Ahead: []fleet.Resources{cores(104), cores(104)}},
				{Tenant: "mart", Now: cores(24), Fragments: cores(c.fragments), Ahead: []fleet.Resources{cores(24), cores(24)}}}}
		d := Divide(in)
		if got := d.Share("shop"); got.Limit != cores(c.limit) || got.Owed != cores(c.owed) {
			t.Errorf("%d cores of fragments: limit %s, owed %s, want %d and %d cores: %s", c.fragments, got.Limit, got.Owed, c.limit, c.owed, got.Why)
		}
		if got := d.Share("mart"); got.Kept != cores(c.kept) || got.Entitled != cores(64) ||
			(c.kept > 0) != strings.Contains(got.Why.Text(), fmt.Sprintf("keeps cpu=%d", c.kept)) {
			t.Errorf("%d cores of fragments: keeps %s of %s: %s", c.fragments, got.Kept, got.Entitled, got.Why)
		}
		for _, x := range d.Short {
			if x.Until != now.Add(time.Hour) {
				t.Errorf("%d cores of fragments: %+v, want until the next step", c.fragments, x)
			}
		}
	}
}

// Where holes are more than a tenant can keep of its own for the pods that fit none of them, its borrowers owe what these ask for, though all fits in
// sums.
func TestStuckPodsAreOwedRoom(t *testing.T) {
	for _, c := range []struct{ fragments, stuck, guarantee, owed int64 }{
		{4, 24, 24, 0},   // all of it can be kept
		{28, 24, 24, 24}, // 24 cores cannot
		{28, 24, 48, 16}, // no more than is borrowed
		{28, 12, 24, 12}, // no more than is asked for
		{500, 24, 24, 24},
		{16, 24, 24, 12}, // the holes are smaller: there is other room, too
		{28, 0, 24, 0},   // no tenant waits
		{28, 24, 64, 0},  // no tenant borrows
	} {
		d := Divide(Input{At: now, Supply: fleet.KnownAt(cores(128), now), Tenants: []fleet.Tenant{tenant("all", "", 128), tenant("shop", "all", c.guarantee), tenant("mart", "all", 64)},
			Wants: []Want{{Tenant: "shop", Now: cores(64), Used: cores(64)}, {Tenant: "mart", Now: cores(60), Used: cores(36), Fragments: cores(c.fragments), Stuck: cores(c.stuck)}}})
		got := d.Share("shop")
		if got.Owed != cores(c.owed) || (c.owed > 0) != strings.Contains(got.Why.Text(), "larger holes") {
			t.Errorf("%d cores of fragments for %d of pods, guaranteed %d: owed %s, want %d cores: %s", c.fragments, c.stuck, c.guarantee, got.Owed, c.owed, got.Why)
		}
	}
}

// Offline work that runs, and that its tenant cannot do without, holds room that no other can get: it excuses no
// borrower from leaving others what they were promised. The part that it could do without, or does not hold yet, takes
// nothing from online services.
func TestOfflineWorkExcusesNoBorrower(t *testing.T) {
	for _, c := range []struct {
		name                  string
		runs, need            int64 // cores of offline work, of 32 that are promised for it
		used, want, fragments int64 // cores of the mart's services, of 64 that they are promised
		over, owed, offline   int64
	}{
		{"pods wait beside holes", 24, 24, 24, 36, 16, 12, 12, 0},
		{"pods wait, and offline work runs nearly to its promise", 31, 31, 12, 48, 0, 15, 15, 0},
		{"as much as runs, where more is needed", 20, 32, 24, 40, 0, 8, 0, 0},
		{"as much as is needed, where more runs", 40, 8, 8, 60, 0, 4, 4, 32},
		{"nobody waits", 24, 24, 24, 24, 0, 0, 0, 0},
		{"offline work alone wants more", 0, 32, 24, 24, 0, 0, 0, 0},
	} {
		d := Divide(Input{At: now, Supply: fleet.KnownAt(cores(128), now),
			Tenants: []fleet.Tenant{tenant("all", "", 128), tenant("shop", "all", 32), tenant("mart", "all", 64), tenant("lab", "all", 32)},
			Wants: []Want{{Tenant: "shop", Now: cores(64), Used: cores(64)}, {Tenant: "mart", Now: cores(c.want), Used: cores(c.used), Fragments: cores(c.fragments), Stuck: cores(c.want - c.used)},
				{Tenant: "lab", Offline: cores(c.runs), OfflineNeed: cores(c.need), OfflineWish: cores(128)}}})
		if got := d.Share("shop"); got.OverOnline != cores(c.over) || got.Owed != cores(c.owed) {
			t.Errorf("%s: over by %s, owes %s, want %d and %d cores: %s", c.name, got.OverOnline, got.Owed, c.over, c.owed, got.Why)
		}
		if got := d.Share("lab").OverOffline; got != cores(c.offline) {
			t.Errorf("%s: offline work owes %s, want %d cores", c.name, got, c.offline)
		}
	}
}

func TestPercent(t *testing.T) {
	if got := percent(amount{cpu: 1<<62 + 99, gpu: 3}, 50); got.cpu != 1<<61+49 || got.gpu != 1 {
		t.Errorf("%v", got)
	}
}

// Grants are bounded by whole numbers, whatever the shares were rounded to.
func TestFlow(t *testing.T) {
	group, lender, closed, borrower := tenant("group", "", 0), tenant("lender", "group", 100), tenant("closed", "group", 100), tenant("other", "", 0)
	closed.LendingLimit, group.BorrowingLimit = limit(30), limit(5)
	for _, c := range []struct {
		name string
		ask  map[string]int64
		want map[string]int64
	}{
		{"what siblings lend, and the group's borrowing limit", map[string]int64{"group": 200}, map[string]int64{"group": 135}},
		{"its own is behind no limit", map[string]int64{"closed": 300}, map[string]int64{"closed": 205}},
		{"another tree has what no guarantee names", map[string]int64{"other": 100}, map[string]int64{"other": 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := Input{At: now, Supply: fleet.KnownAt(cores(220), now)}
			tr := newTree([]fleet.Tenant{group, lender, closed, borrower}, resourceLimits)
			tr.entitle(in.promised(now, now), fleet.KnownAt(amountOf(in.Supply.Value), now), amount{})
			borrow := make([]amount, len(tr.nodes))
			for i := range borrow {
				borrow[i] = tr.nodes[i].borrow
			}
			f := newFlow(tr)
			f.begin(make([]amount, len(tr.nodes)), borrow)
			for _, i := range tr.byID {
				id := string(tr.nodes[i].tenant.ID)
				if got := f.grant(i, amountOf(cores(c.ask[id]))); got != amountOf(cores(c.want[id])) {
					t.Errorf("%s is granted %v of %d, want %d", id, got, c.ask[id], c.want[id])
				}
				if more := f.grant(i, amountOf(cores(c.ask[id]))); !more.isZero() {
					t.Errorf("%s is granted %v more", id, more)
				}
			}
		})
	}
}

func BenchmarkDivide(b *testing.B) {
	in := Input{At: now, Supply: fleet.KnownAt(fleet.Resources{CPU: 20_000_000, Memory: 80_000 * fleet.GiB}, now)}
	for k := range 240 {
		in.Ahead = append(in.Ahead, now.Add(time.Duration(k)*15*time.Minute))
	}
	for g := range 10 {
		up := tenant(string(rune('a'+g)), "", 0)
		in.Tenants = append(in.Tenants, up)
		for i := range 20 {
			x := tenant(string(up.ID)+string(rune('a'+i)), string(up.ID), 80)
			x.Drain = 10 * time.Minute
			x.Slices = []fleet.Slice{{Guarantee: cores(90)}}
			in.Tenants = append(in.Tenants, x)
			w := Want{Tenant: x.ID, Now: fleet.Resources{CPU: fleet.MilliCPU(70_000 + 3_000*i), Memory: fleet.Bytes(i) * fleet.GiB}, OfflineWish: cores(int64(100 * i))}
			for k := range in.Ahead {
				w.Ahead = append(w.Ahead, fleet.Resources{CPU: fleet.MilliCPU(60_000 + 5_000*((i+k)%9)), Memory: fleet.GiB})
			}
			in.Wants = append(in.Wants, w)
		}
	}
	in.Open = func(_ fleet.Window, at time.Time) bool { return at.Hour() >= 19 }
	for b.Loop() {
		Divide(in)
	}
}
