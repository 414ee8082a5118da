package quota

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Of many shortages those of the largest part of the supply are listed, whatever the resource: a gigabyte is more bytes than a core has thousandths.
func TestWorstStretchesByTheirPartOfTheSupply(t *testing.T) {
	d := &divider{in: &Input{Supply: fleet.KnownAt(fleet.Resources{CPU: 100_000, Memory: 1000 * fleet.GiB, GPU: 10}, now)}}
	d.tree = newTree(nil, resourceLimits)
	d.entitle(now, now)
	o := newOutlook(d)
	for name, small := range map[string]amount{
		"memory":     {memory: 100 * fleet.GiB},
		"a few GPUs": {gpu: 1},
		"cores":      {cpu: 10_000},
	} {
		for name2, large := range map[string]amount{
			"memory": {memory: 500 * fleet.GiB},
			"GPUs":   {gpu: 5},
			"cores":  {cpu: 50_000},
		} {
			// The first is the nearest, and stays. The small one is the second.
			list := []stretch{{from: now, by: amount{cpu: 1}}, {from: now.Add(time.Minute), by: small}}
			for i := range mostStretches - 1 {
				list = append(list, stretch{from: now.Add(time.Duration(i+2) * time.Minute), by: large})
			}
			got := o.worst(list)
			if len(got) != mostStretches || slices.ContainsFunc(got, func(s stretch) bool { return s.by == small }) {
				t.Errorf("a tenth of the supply of %s is listed before half of that of %s: %+v", name, name2, got)
			}
		}
	}
}

// A tenant that borrows for itself and those below it grow at one pace.
func TestAParentGrowsAsItsChildrenDo(t *testing.T) {
	for _, c := range []struct {
		children []string
		want     int64 // for each
	}{
		{nil, 60},
		{[]string{"a"}, 30},
		{[]string{"a", "b"}, 20},
		{[]string{"a", "b", "c"}, 15},
	} {
		tenants, wants := []fleet.Tenant{tenant("all", "", 0)}, []Want{{Tenant: "all", Now: cores(80)}}
		for _, id := range c.children {
			tenants = append(tenants, tenant(id, "all", 0))
			wants = append(wants, Want{Tenant: fleet.TenantID(id), Now: cores(80)})
		}
		d := Divide(Input{At: now, Supply: fleet.KnownAt(cores(60), now), Tenants: tenants, Wants: wants})
		for _, w := range wants {
			if got := d.Share(w.Tenant).Borrowed; got != cores(c.want) {
				t.Errorf("%s and %v below it want all there is: %s gets %s, want %s", "all", c.children, w.Tenant, got, cores(c.want))
			}
		}
	}
}

// Two tenants that stand on the same parcels leave between them what a lender lacks beyond what is free: each of these parcels twice, and no other.
func TestWhatSharedParcelsOwe(t *testing.T) {
	class := fleet.ParcelClass{Kind: fleet.KindNode}
	for _, c := range []struct {
		name         string
		firm         int64
		has, lacks   int64 // of the lender
		shared, over int64 // parcels on which the other two stand, and what the two owe
	}{
		{"none is free", 4, 1, 2, 3, 4},
		{"one is free", 5, 1, 2, 3, 2},
		{"two are free", 6, 1, 2, 3, 0},
		{"it lacks none", 4, 1, 0, 3, 0},
		{"it has none yet", 3, 0, 2, 3, 4},
		{"it lacks one of them", 4, 2, 1, 2, 2},
	} {
		lender, b, other := tenant("lender", "", 0), tenant("b", "", 0), tenant("c", "", 0)
		lender.Parcels = []fleet.ParcelQuota{{Class: class, Guarantee: c.has + c.lacks}}
		on := func(id string, n, more int64) Want {
			return Want{Tenant: fleet.TenantID(id), Offline: cores(n), OfflineWish: cores(n + more), Parcels: []ParcelCount{{Class: class, N: n, More: more}}}
		}
		d := Divide(Input{At: now, Supply: fleet.KnownAt(cores(100), now), Tenants: []fleet.Tenant{lender, b, other},
			Wants:   []Want{on("lender", c.has, c.lacks), on("b", c.shared, 0), on("c", c.shared, 0)},
			Parcels: []ParcelSupply{{Class: class, Firm: c.firm, Held: c.has + c.shared, Beside: c.shared}}})
		if b, other := d.Share("b").Parcels[0], d.Share("c").Parcels[0]; b.Over+other.Over != c.over {
			t.Errorf("%s: the two owe %d and %d, want %d", c.name, b.Over, other.Over, c.over)
		}
	}
}
