package quota

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Pods of the online share that no service sizes: online ones of no service, and those of the system, while they are on a machine.
func TestBesideServices(t *testing.T) {
	for _, c := range []struct {
		class   fleet.PodClass
		service fleet.ServiceID
		phase   fleet.PodPhase
		want    bool
	}{
		{fleet.PodOnline, "", fleet.PodRunning, true},
		{fleet.PodOnline, "shop/web", fleet.PodRunning, false},
		{fleet.PodOnline, "", fleet.PodSucceeded, false},
		{fleet.PodSystem, "", fleet.PodRunning, true},
		{fleet.PodSystem, "shop/web", fleet.PodRunning, true},
		{fleet.PodSystem, "", fleet.PodFailed, false},
		{fleet.PodOffline, "", fleet.PodRunning, false},
		{fleet.PodFiller, "", fleet.PodRunning, false},
	} {
		p := fleet.Pod{Class: c.class, Service: c.service, Phase: c.phase, Node: "u1", NodeName: "n1"}
		if got := BesideServices(&p); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// A tenant that is not accepted hides none that follows it, and a namespace of two accepted ones belongs to none.
func TestTenancy(t *testing.T) {
	of := TenancyOf([]fleet.Tenant{{ID: "a", Namespaces: []string{"x"}}, {ID: "b", Accepted: true, Namespaces: []string{"x", "y"}}, {ID: "c", Accepted: true, Namespaces: []string{"y", "z"}}})
	for ns, want := range map[string]fleet.TenantID{"x": "b", "y": "", "z": "c", "": ""} {
		if got := of.Of(ns); got != want {
			t.Errorf("namespace %q is of %q, want %q", ns, got, want)
		}
	}
}

// Loans that are over, and what online borrowed, hide no parcel that is lent.
func TestEachLoanOfAMachine(t *testing.T) {
	n := fleet.Node{ID: "u1", Name: "n1", Pool: "on", Ready: true}
	s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "off", Class: fleet.Offline}, {ID: "on", Class: fleet.Online}}, Nodes: []fleet.Node{n, {ID: "u2", Name: "n2", Pool: "off", Ready: true}}}
	loan := func(node fleet.NodeID, from fleet.PoolID, phase fleet.Phase, kind fleet.ParcelKind) fleet.Loan {
		return fleet.Loan{Node: node, From: from, Phase: phase, Kind: kind}
	}
	s.Loans = []fleet.Loan{loan("u1", "on", fleet.Returned, fleet.KindSocket), loan("u2", "off", fleet.Lent, fleet.KindNode), loan("u1", "on", fleet.Lent, fleet.KindSocket),
		loan("u1", "on", fleet.Noticed, fleet.KindSocket), loan("u1", "on", fleet.WrittenOff, fleet.KindSocket)}
	if firm, lent, home := NewParcels(s).On(&s.Nodes[0], fleet.ParcelClass{Kind: fleet.KindSocket}); firm != 0 || lent != 2 || home != 1 {
		t.Errorf("firm %d, lent %d, home %d; want 0, 2 and 1", firm, lent, home)
	}
	if firm, _, _ := NewParcels(s).On(&s.Nodes[1], fleet.ParcelClass{Kind: fleet.KindNode}); firm != 0 {
		t.Error("what online has is firm")
	}
}

// Whatever is due, of services, offline work or parcels, alone is something due.
func TestHasDue(t *testing.T) {
	for name, c := range map[string]struct {
		s    Share
		want bool
	}{
		"nothing":              {Share{Parcels: []ParcelShare{{Over: 3}}}, false},
		"of services":          {Share{Due: cores(1)}, true},
		"of offline work":      {Share{DueOffline: cores(1)}, true},
		"a parcel":             {Share{Parcels: []ParcelShare{{}, {Due: 1}}}, true},
		"services and parcels": {Share{Due: cores(1), Parcels: []ParcelShare{{Due: 1}}}, true},
	} {
		if got := c.s.HasDue(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A burst is one of a share and of a time; a level below the low watermark begins no rest for a tenant that does not burst; and a tenant that needs no
// burst hides none that does.
func TestWhoBursts(t *testing.T) {
	burst := fleet.Burst{Percent: 50, Duration: 30 * time.Minute}
	for name, c := range map[string]struct {
		burst fleet.Burst
		level float64
		on    bool
	}{
		"it may":             {burst, 0.5, true},
		"by no share":        {fleet.Burst{Duration: burst.Duration}, 0.5, false},
		"for no time":        {fleet.Burst{Percent: 50}, 0.5, false},
		"the level is low":   {burst, 0.01, false},
		"the level is lower": {burst, 0.06, false},
	} {
		calm, pay := tenant("calm", "", 100), tenant("pay", "", 100)
		calm.BorrowingLimit, calm.Burst = limit(10), burst
		pay.BorrowingLimit, pay.Burst = limit(10), c.burst
		d := Divide(Input{At: now, Supply: fleet.KnownAt(cores(400), now), Tenants: []fleet.Tenant{calm, pay},
			Wants: []Want{{Tenant: "calm", Now: cores(50)}, {Tenant: "pay", Now: cores(150)}}, Level: Level{Share: fleet.KnownAt(c.level, now), Low: 0.05, High: 0.15}})
		if x := d.Share("pay"); x.Bursting != c.on || x.BurstSince.IsZero() == c.on || x.Limit != cores(map[bool]int64{true: 150, false: 110}[c.on]) {
			t.Errorf("%s: bursts %t since %s, may have %s: %s", name, x.Bursting, x.BurstSince, x.Limit, x.BurstWhy)
		}
		if x := d.Share("calm"); x.Bursting || !x.BurstSince.IsZero() {
			t.Errorf("%s: the other bursts %t since %s", name, x.Bursting, x.BurstSince)
		}
	}
}

// A tenant's named amount of a resource counts; an unnamed one is the sum of the tenants below it.
func TestWhatAParentNames(t *testing.T) {
	for own, want := range map[int64]int64{8: 8, 4: 4, 0: 6} {
		all, a, b := tenant("all", "", 100), tenant("a", "all", 40), tenant("b", "all", 40)
		all.Guarantee.GPU, a.Guarantee.GPU, b.Guarantee.GPU = own, 4, 2
		d := Divide(Input{At: now, Supply: fleet.KnownAt(fleet.Resources{CPU: 100_000, GPU: 20}, now), Tenants: []fleet.Tenant{all, a, b}})
		if got := d.Share("all").Entitled.GPU; got != want {
			t.Errorf("it names %d GPUs, and those below it 6: entitled to %d, want %d", own, got, want)
		}
	}
}

// Offline pods of no tenant hold no parcel of anybody.
func TestParcelsOfNone(t *testing.T) {
	s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "off", Class: fleet.Offline}}, Nodes: []fleet.Node{{ID: "u1", Name: "n1", Pool: "off", Ready: true}},
		Tenants: []fleet.Tenant{{ID: "a", Accepted: true, Namespaces: []string{"a"}}}}
	pod := fleet.Pod{Name: fleet.Name{Namespace: "nobody", Name: "p"}, Node: "u1", NodeName: "n1", Class: fleet.PodOffline, Phase: fleet.PodRunning}
	for name, c := range map[string]struct {
		bend       func(p *fleet.Pod)
		held, used int64
	}{
		"of nobody":  {func(*fleet.Pod) {}, 0, 0},
		"of a":       {func(p *fleet.Pod) { p.Name.Namespace = "a" }, 1, 1},
		"online":     {func(p *fleet.Pod) { p.Name.Namespace, p.Class = "a", fleet.PodOnline }, 0, 0},
		"it is over": {func(p *fleet.Pod) { p.Name.Namespace, p.Phase = "a", fleet.PodSucceeded }, 0, 0},
	} {
		p := pod
		c.bend(&p)
		s.Pods = []fleet.Pod{p}
		supply, used := ParcelsOf(TenancyOf(s.Tenants), s, []fleet.ParcelClass{{Kind: fleet.KindNode}})
		n := int64(0)
		for _, u := range used["a"] {
			n += u.N
		}
		if supply[0].Firm != 1 || supply[0].Held != c.held || n != c.used || len(used["a"]) != int(c.used) {
			t.Errorf("%s: %+v, %+v", name, supply, used)
		}
	}
}

// A debt of parcels gets one notice, and listed as long as it is one.
func TestDebtsOfParcels(t *testing.T) {
	class := fleet.ParcelClass{Kind: fleet.KindNode}
	noticed := []fleet.QuotaNotice{{Parcels: []fleet.ParcelDebt{{Class: class, N: 3, Used: 5}}}}
	for over, grew := range map[int64]bool{0: false, 2: false, 3: false, 4: true} {
		s := Share{Parcels: []ParcelShare{{Class: class, Used: 5, Over: over}}}
		if got := s.parcelsGrew(noticed); got != grew {
			t.Errorf("3 were told, %d are owed: grew %t", over, got)
		}
		if got := s.parcelDebts(func(p *ParcelShare) int64 { return p.Over }); (len(got) > 0) != (over > 0) {
			t.Errorf("%d are owed: listed %+v", over, got)
		}
	}
}

// A stuck tenant leaves no room to itself, and a borrower that cannot leave any hides none that can.
func TestWhoLeavesRoomForTheStuck(t *testing.T) {
	tenants := []fleet.Tenant{tenant("all", "", 160), tenant("ads", "all", 16), tenant("mart", "all", 64), tenant("shop", "all", 16)}
	divide := func(ads, fragments, stuck int64) Division {
		return Divide(Input{At: now, Supply: fleet.KnownAt(cores(160), now), Tenants: tenants,
			Wants: []Want{{Tenant: "ads", Now: cores(ads), Used: cores(ads)}, {Tenant: "mart", Now: cores(72), Used: cores(36), Fragments: cores(fragments), Stuck: cores(stuck)},
				{Tenant: "shop", Now: cores(48), Used: cores(48)}}})
	}
	free, stuck := divide(16, 0, 0), divide(16, 20, 20)
	if a, b := free.Share("mart").Limit, stuck.Share("mart").Limit; a != b {
		t.Errorf("a tenant that is stuck may request %s, and %s if it were not", b, a)
	}
	if a, b := free.Share("shop").Limit, stuck.Share("shop").Limit; a == b || !b.Fits(a) {
		t.Errorf("the borrower may request %s next to stuck pods, and %s without", b, a)
	}
	if got := stuck.Share("ads").Limit; got != cores(16) {
		t.Errorf("who borrows nothing may request %s", got)
	}
	// A borrower that has to give up more than that already leaves nothing for the stuck, and the next one does.
	free, stuck = divide(120, 0, 0), divide(120, 20, 20)
	if a, b := free.Share("ads").Limit, stuck.Share("ads").Limit; a != b {
		t.Errorf("the borrower that uses more than it may: %s next to stuck pods, and %s without", b, a)
	}
	if a, b := free.Share("shop").Limit, stuck.Share("shop").Limit; a == b || !b.Fits(a) {
		t.Errorf("after it the borrower may request %s next to stuck pods, and %s without", b, a)
	}
}

// A slice of one tenant is seen ahead, whichever tenants before it have none.
func TestASliceAfterATenantWithoutOne(t *testing.T) {
	night := []fleet.Slice{{Window: fleet.Window{Name: "night"}, Guarantee: cores(150)}}
	for _, sliced := range []int{1, 2} {
		tenants := []fleet.Tenant{tenant("all", "", 100), tenant("a", "all", 50), tenant("b", "all", 50)}
		tenants[sliced].Slices = night
		d := Divide(Input{At: now, Supply: fleet.KnownAt(cores(100), now), Tenants: tenants, Open: func(_ fleet.Window, at time.Time) bool { return !at.Before(now.Add(time.Hour)) },
			Ahead: []time.Time{now, now.Add(30 * time.Minute), now.Add(time.Hour), now.Add(2 * time.Hour)}})
		found := false
		for _, o := range d.Oversold {
			found = found || o.Tenant == tenants[sliced].ID && o.From.Equal(now.Add(time.Hour))
		}
		if !found {
			t.Errorf("the slice of %s: %+v", tenants[sliced].ID, d.Oversold)
		}
	}
}
