package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/sim/scenario"
)

// whole is Springtide as it comes.
var whole = Row{Policy: Springtide, Lender: LendSpringtide, Target: 95, Knob: KnobAvailability, Default: true}

// troubled is a small fleet under some faults of a seed.
func troubled(seed uint64, hours int, faults scenario.Faults) *scenario.Built {
	b := tinyAfter(2*24*time.Hour+scenario.WarmUp, 20, hours, tide(6, 40), tide(10, 60))
	b.Jitter, b.Seed, b.Faults = 0.03, seed, faults
	return b
}

// seedsPlayed is the number of seeds that a test run plays: an eighth of a second each on one processor, and ten times that under the race
// detector, which finds what it can in a few of them. `make bench-shift` plays 10,000.
func seedsPlayed() uint64 {
	switch {
	case testing.Short(), raceEnabled:
		return 8
	}
	return 200
}

// Whatever goes wrong: a parcel has one holder, no pod is evicted before its deadline, online keeps its floor, and in the end all is home.
func TestSeedsBreakNothing(t *testing.T) { playSeeds(t, 1, seedsPlayed(), "") }

// TestSeedsBreakNothingByTheBundledScheduler: the same where the bundled scheduler's decisions place the pods. SEEDS=1..1000 (`make seeds`) says which.
func TestSeedsBreakNothingByTheBundledScheduler(t *testing.T) {
	long(t)
	first, last := uint64(1), max(seedsPlayed()/5, 4)
	if text := os.Getenv("SEEDS"); text != "" {
		if _, err := fmt.Sscanf(text, "%d..%d", &first, &last); err != nil {
			t.Fatalf("SEEDS=%s: write it as in 1..200", text)
		}
	}
	playSeeds(t, first, last, v1alpha1.SchedulerName)
	var played [2]Result
	for i, by := range [...]string{"", v1alpha1.SchedulerName} {
		b := troubled(1, 4, scenario.Faults{Quiet: config.Duration(90 * time.Minute)})
		b.Fleet.Scheduler = by
		var err error
		if played[i], err = Run(context.Background(), b, whole, Share(b)); err != nil {
			t.Error(err)
		}
	}
	if reflect.DeepEqual(played[0], played[1]) {
		t.Error("it is all the same who places the pods")
	}
}

func playSeeds(t *testing.T, first, last uint64, scheduler string) {
	var lent atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for seed := first; seed <= last; seed++ {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				b := troubled(seed, 4, scenario.Faults{Random: 6, Quiet: config.Duration(90 * time.Minute)})
				b.Fleet.Scheduler = scheduler
				if seed%2 == 0 {
					b.Jobs[0].Gang = 6
				}
				if seed%3 == 0 {
					b.Fleet.Lending.Unit = string(fleet.UnitSocket)
				}
				if seed%4 == 1 { // and with it, clocks that change
					b.Services[0].Spec.Windows = []scenario.ServiceWindow{{Min: 50,
						Window: scenario.Window{Start: "30 2 * * *", For: config.Duration(90 * time.Minute), TimeZone: "Europe/Berlin"}}}
				}
				r, err := Run(context.Background(), b, whole, Share(b))
				if err != nil {
					t.Error(err)
				}
				lent.Add(int64(r.Moves))
			})
		}
	})
	if lent.Load() == 0 {
		t.Error("nothing was ever lent: the test cannot fail")
	}
}

// A tenant whose services want more than it is promised gets what others leave, and no more.
func TestAQuotaHolds(t *testing.T) {
	long(t)
	b := troubled(3, 2, scenario.Faults{Quiet: config.Duration(20 * time.Minute), List: []scenario.Fault{
		{Kind: scenario.FlashCrowd, After: config.Duration(10 * time.Minute), For: config.Duration(40 * time.Minute), Share: 1, Factor: 3}}})
	no := 0.0
	b.Tenants = []scenario.Tenant{{Name: "company", GuaranteeCores: 1280}, {Name: "shop", Parent: "company", Namespaces: []string{"shop"}, GuaranteeCores: 600, BorrowingCores: &no}}
	most := 0
	watched(t, b, whole, func(w *World) {
		cores := 0
		for i := range w.services {
			cores += w.services[i].Cores * int(w.services[i].desired)
		}
		if w.tick > perHour {
			most = max(most, cores)
		}
	})
	if most > 600 || most < 500 {
		t.Errorf("a crowd that is worth twice the quota of 600 cores brings %d", most)
	}
}

// Pods that no deletion ends are killed, then their machines cut off, and all is home once they are gone.
func TestTheLadder(t *testing.T) {
	long(t)
	b := troubled(2, 6, scenario.Faults{Quiet: config.Duration(90 * time.Minute), List: []scenario.Fault{
		{Kind: scenario.FlashCrowd, After: config.Duration(2 * time.Hour), For: config.Duration(30 * time.Minute), Share: 1, Factor: 3},
		{Kind: scenario.StuckPods, After: config.Duration(2 * time.Hour), For: config.Duration(30 * time.Minute), Share: 0.5}}})
	killed, fenced := map[fleet.UID]bool{}, map[fleet.NodeID]bool{}
	w := watched(t, b, whole, func(w *World) {
		for i := range w.pods {
			if w.pods[i].killed {
				killed[w.pods[i].uid] = true
			}
		}
		for i := range w.facts {
			if f := w.facts[i].Marks.Fence; f != fleet.FenceNone {
				fenced[w.facts[i].ID] = true
			}
		}
	})
	if len(killed) == 0 || len(fenced) == 0 || len(fenced) == len(w.facts) {
		t.Errorf("%d pods were killed in vain, %d machines of %d cut off", len(killed), len(fenced), len(w.facts))
	}
	for i := range w.facts {
		if w.facts[i].Marks.Fence != fleet.FenceNone {
			t.Errorf("machine %s is still cut off", w.facts[i].Name)
		}
	}
}

// Pods that a disruption budget keeps are waited for, then their machines are cut off, and all is home once the budget lets them go. Without the
// patience machines are cut off too soon, and the run is broken.
func TestABudgetRefuses(t *testing.T) {
	long(t)
	refused := func() *scenario.Built {
		return troubled(2, 6, scenario.Faults{Quiet: config.Duration(90 * time.Minute), List: []scenario.Fault{
			{Kind: scenario.FlashCrowd, After: config.Duration(2 * time.Hour), For: config.Duration(30 * time.Minute), Share: 1, Factor: 3},
			{Kind: scenario.BudgetRefuses, After: config.Duration(2 * time.Hour), For: config.Duration(30 * time.Minute), Share: 1}}})
	}
	fenced := 0
	w := watched(t, refused(), whole, func(w *World) {
		for i := range w.facts {
			if w.facts[i].Marks.Fence != fleet.FenceNone {
				fenced++
			}
		}
	})
	if fenced == 0 {
		t.Error("no machine was cut off: the ladder did not go on")
	}
	for i := range w.facts {
		if w.facts[i].Marks.Fence != fleet.FenceNone {
			t.Errorf("machine %s is still cut off", w.facts[i].Name)
		}
	}
	b := refused()
	o := whole.controller(b)
	o.Patience = time.Nanosecond
	shared := Share(b)
	err := runController(context.Background(), NewWorld(b, shared.rates), *o, shared)
	if err == nil || !strings.Contains(err.Error(), "which was never evicted") {
		t.Errorf("without patience: %v, want a broken run", err)
	}
}

// Each kind of fault does something: the run is not the one without it.
func TestEveryFaultIsFelt(t *testing.T) {
	long(t)
	// Windows follow a wall clock: at midnight UTC it is two in Berlin, before a change and after it.
	with := func(f scenario.Faults) *scenario.Built {
		b := troubled(1, 1, f)
		b.Services[0].Spec.Windows = []scenario.ServiceWindow{{Window: scenario.Window{Start: "20 2 * * *", For: config.Duration(time.Hour), TimeZone: "Europe/Berlin"}, Min: 60}}
		return b
	}
	plain := play(t, with(scenario.Faults{}), whole)
	for _, kind := range scenario.Kinds() {
		b := with(scenario.Faults{Quiet: config.Duration(time.Minute), List: []scenario.Fault{
			{Kind: kind, After: config.Duration(time.Minute), For: config.Duration(50 * time.Minute), Share: 1, Factor: 3}}})
		r, err := Run(context.Background(), b, whole, Share(b))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		// Only the next leader misses a store's content; the others are felt at a recall, below.
		if kind != scenario.DeliveredTwice && kind != scenario.StoreDown && kind != scenario.DeafMembers && kind != scenario.Heartbeats && reflect.DeepEqual(r, plain) {
			t.Errorf("%s changed nothing", kind)
		}
	}
}

// Faults of notices are felt where machines are recalled.
func TestFaultsOfARecallAreFelt(t *testing.T) {
	long(t)
	with := func(seed uint64, kinds ...string) []entry {
		f := scenario.Faults{Quiet: config.Duration(time.Hour), List: []scenario.Fault{
			{Kind: scenario.FlashCrowd, After: config.Duration(time.Hour), For: config.Duration(30 * time.Minute), Share: 1, Factor: 3}}}
		for _, kind := range kinds {
			f.List = append(f.List, scenario.Fault{Kind: kind, After: config.Duration(time.Minute), For: config.Duration(90 * time.Minute), Share: 1})
		}
		return keepDiary(t, troubled(seed, 3, f), whole)
	}
	for _, kind := range []string{scenario.DeafMembers, scenario.Heartbeats, scenario.DeliveredTwice} {
		felt := false
		for seed := uint64(1); seed <= 8 && !felt; seed++ { // what comes twice meets something that it changes in every other one
			felt = !slices.Equal(with(seed, kind), with(seed))
		}
		if !felt {
			t.Errorf("%s changed nothing", kind)
		}
	}
}

// The same seed gives the same bytes, faults and all.
func TestFaultsAreDeterministic(t *testing.T) {
	long(t)
	b := troubled(4, 3, scenario.Faults{Random: 8, Quiet: config.Duration(time.Hour)})
	x, errX := Run(context.Background(), b, whole, Share(b))
	y, errY := Run(context.Background(), b, whole, Share(b))
	if !reflect.DeepEqual(x, y) || !errors.Is(errX, errY) {
		t.Errorf("%+v\n%+v", x, y)
	}
	if a, b := keepDiary(t, b, whole), keepDiary(t, b, whole); len(a) < 3*60 || !slices.Equal(a, b) {
		t.Errorf("two diaries of one seed differ: %d and %d lines", len(a), len(b))
	}
	if a, b := listFaults(drawFaults(troubled(4, 3, b.Faults))), listFaults(drawFaults(troubled(5, 3, b.Faults))); a == b {
		t.Error("two seeds draw the same faults")
	}
}

// A drawn fault has the measures of its kind: half of the machines are lost, and forecasts are a fifth or five times
// what they were. It is over when the quiet time begins. A list that says no measures has the first of them.
func TestDrawnMeasures(t *testing.T) {
	for kind, want := range map[string]struct {
		share   float64
		factors []float64
	}{scenario.NodesLost: {0.5, []float64{0}}, scenario.ForecastWrong: {1, []float64{0.2, 5}}} {
		f := scenario.Faults{Random: 1000, Kinds: []string{kind}, Quiet: config.Duration(90*time.Minute + 7*time.Second)}
		last := 4*time.Hour - time.Duration(f.Quiet)
		var factors []float64
		for _, f := range drawFaults(troubled(1, 4, f)) {
			if f.Kind != kind || f.Share != want.share || time.Duration(f.After+f.For) > last {
				t.Fatalf("drawn as %s, for a share of %v and at most %s", &f, want.share, last)
			}
			if !slices.Contains(factors, f.Factor) {
				factors = append(factors, f.Factor)
			}
		}
		if slices.Sort(factors); !slices.Equal(factors, want.factors) {
			t.Errorf("%s is drawn with factors of %v, want %v", kind, factors, want.factors)
		}
		listed := drawFaults(troubled(1, 4, scenario.Faults{List: []scenario.Fault{{Kind: kind}, {Kind: kind, Share: 0.9, Factor: 7}}}))
		if x, y := &listed[0], &listed[1]; x.Share != want.share || x.Factor != want.factors[0] || y.Share != 0.9 || y.Factor != 7 {
			t.Errorf("listed as %s and %s", x, y)
		}
	}
}

// takeTwo scales two pods of the first service off a machine that is being emptied, of which so many are charged.
func takeTwo(c *controller, charged int) {
	w := c.w
	s := &w.services[0]
	s.desired = int32(len(s.pods))
	n := w.pods[s.pods[0]].node
	l := &c.loans[0]
	l.Node, l.NodeName, l.Phase = w.facts[n].ID, w.facts[n].Name, fleet.Emptying
	a := planner.Scale{Service: s.id, From: s.desired, To: s.desired - 2, Charges: []planner.Charge{{Pool: onlinePool, Pods: charged}}}
	for _, id := range s.pods {
		if p := &w.pods[id]; p.node == n && len(a.Victims) < 2 {
			a.Victims = append(a.Victims, planner.PodRef{ID: p.uid})
		}
	}
	charge(c, (&fleet.Service{ID: s.id}).Owner(), a.Charges[0])
	for _, l := range a.Victims {
		id, _ := w.find(l.ID)
		c.commitPod(id, &protocol.Write{Change: protocol.Steer{At: a.To}})
	}
	c.setSize(&a)
}

// charge writes what is taken of an owner into a ledger, whatever its budget says.
func charge(c *controller, owner string, x planner.Charge) {
	c.Commit(&protocol.Write{Object: protocol.Object{Kind: protocol.ObjectPool, Name: string(x.Pool)}, Change: protocol.SetLedger{Ledger: x.On(c.pool(x.Pool).Ledger, c.Now(), owner)}}, "1")
}

// A violation is seen.
func TestInvariantsAreSeen(t *testing.T) {
	lent := wholeLoan()
	for want, spoil := range map[string]func(c *controller){
		"both hold a parcel": func(c *controller) {
			other := lent
			other.ID, other.Cells = "node-000001-c1", []int{1}
			c.loans = append(c.loans, other)
		},
		"online pods are on machine": func(c *controller) { c.w.bindOn(c.w.newPod(pod{kind: online, cores: 8}), 1) },
		"is open to online":          func(c *controller) { c.w.machines[1].toOnline = true },
		"which nobody lent":          func(c *controller) { c.w.bindOn(c.w.newPod(pod{kind: offline, cores: 8}), 2) },
		"brought home for its claimant": func(c *controller) {
			c.loans[0].Phase = fleet.Returned
			c.w.bindOn(c.w.newPod(pod{kind: offline, cores: 8}), 1)
		},
		"the books": func(c *controller) { c.w.services[0].ready++ },
		"under its floor": func(c *controller) {
			c.checkScale(&planner.Scale{Service: c.w.services[0].id, To: 0})
		},
		"of at most": func(c *controller) {
			c.pools[1].Ledger = c.pools[1].Ledger.Charge(c.w.now, "x", 1000)
			c.checkScale(&planner.Scale{Service: c.w.services[0].id, To: 9})
		},
		"its quota lets it request": func(c *controller) {
			c.tenants = []fleet.Tenant{{ID: "shop", Namespaces: []string{"shop"}}}
			c.w.services[0].desired = 40
			c.checkQuota(&planner.Plan{Division: quota.Division{Shares: []quota.Share{{Tenant: "shop", Limit: fleet.Resources{CPU: 319000}}}}},
				raises{services: []fleet.ServiceID{c.w.services[0].id}})
		},
		"has been starting for": func(c *controller) {
			c.w.bindOn(c.w.services[0].pods[0], 2)
			c.w.pods[c.w.services[0].pods[0]].ready, c.w.pods[c.w.services[0].pods[0]].bound = false, -1000
			c.checkSettled()
		},
		"before the deadline": func(c *controller) {
			c.loans[0].Phase, c.loans[0].Deadline = fleet.Noticed, c.w.now.Add(time.Minute)
			c.checkEviction(&planner.Eviction{Loan: lent.ID}, &pod{kind: offline, noticeEpoch: 1})
		},
		"announced no such time": func(c *controller) {
			c.loans[0].Phase, c.loans[0].KillAt = fleet.Draining, c.w.now.Add(time.Second)
			c.checkKill(&planner.Kill{Loan: lent.ID}, &pod{kind: offline})
		},
		"which is online, was killed":  func(c *controller) { c.checkKill(&planner.Kill{Loan: lent.ID}, &pod{kind: online}) },
		"which is online, was evicted": func(c *controller) { c.checkEviction(&planner.Eviction{Loan: lent.ID}, &pod{kind: online}) },
		"has been due for": func(c *controller) {
			c.loans[0].Phase, c.loans[0].FirstNotice, c.loans[0].Due = fleet.Draining, c.w.now.Add(-2*time.Hour), c.w.now.Add(-time.Hour)
			c.checkSettled()
		},
		"keeps its room for the claimant": func(c *controller) {
			c.loans[0].Phase = fleet.Returned
			c.checkClaims(&planner.Move{After: lent})
		},
		"members of a gang of": func(c *controller) {
			j := &c.w.jobs[0]
			j.spec.Gang, j.members, j.partial = 3, []int32{0, 0}, int32(gangWithin()/tick)
		},
		"under the floor of 70 of its open window": func(c *controller) {
			c.services[0].Windows = []fleet.Window{{Schedule: "0 0 * * *", Duration: 24 * time.Hour, Zone: time.UTC, Min: 70}}
			for range ticks(floorWithin) + 1 {
				c.checkWindows()
			}
		},
		"stands no more": func(c *controller) {
			p := &c.w.pods[c.w.services[0].pods[0]]
			p.noticeLoan, p.noticeEpoch, p.astray = lent.ID, lent.Epoch, ticks(noticeWithin) // by a loan that is Lent
		},
		"was written under a freeze": func(c *controller) {
			c.w.faults = append(c.w.faults, fault{Fault: scenario.Fault{Kind: scenario.Freeze}, to: c.w.tick + 1})
			charge(c, "shop/svc-0", planner.Charge{Pool: onlinePool, Pods: 1})
		},
		"its ledger counts 1": func(c *controller) { takeTwo(c, 1) },
		"in a minute of at most 1": func(c *controller) {
			c.pools[1].Budget.EvictionsPerMinute = 1
			takeTwo(c, 2)
		},
		"2 pods of service shop/svc-0, which had": func(c *controller) {
			c.pools[1].Budget.ServiceShare = 0.01
			takeTwo(c, 2)
		},
		"2 pods of 112 were taken": func(c *controller) {
			c.pools[1].Budget.FleetShare = 0.001
			takeTwo(c, 2)
		},
		"beyond the 300 of its guarantee": func(c *controller) {
			no := fleet.KnownAt(fleet.Resources{}, begin)
			c.tenants = []fleet.Tenant{{ID: "company", Guarantee: amount(300), BorrowingLimit: no}, {ID: "shop", Parent: "company", Namespaces: []string{"shop"}}}
			c.w.services[0].desired, c.w.services[1].desired = 40, 0
			c.checkSold(raises{services: []fleet.ServiceID{c.w.services[0].id}})
		},
		"tenant web has waited for": func(c *controller) {
			c.tenants = []fleet.Tenant{{ID: "shop", Namespaces: []string{"shop"}, Guarantee: amount(100)}, {ID: "web", Namespaces: []string{"web"}, Guarantee: amount(100)}}
			web := &c.w.services[1]
			web.Name.Namespace, web.waiting, web.ready, web.desired = "web", 1, 0, 1
			old := c.w.newPod(pod{kind: online, owner: 1, cores: 8})
			c.w.waiting = append(c.w.waiting, podRef{old, c.w.pods[old].uid})
			for range ticks(owedWithin) {
				c.w.tick++
				if c.checkPromises(); c.err != nil {
					t.Error("too early")
				}
			}
			c.w.tick++
			c.w.pods[old].created++ // one that is younger has not waited as long
			if c.checkPromises(); c.err != nil {
				t.Error("another pod than the one that waited first")
			}
			c.w.tick++
			c.checkPromises()
		},
	} {
		c := accused(t, lent)
		if spoil(c); c.err == nil {
			c.check()
		}
		mustBreak(t, c, want)
	}
}

// A service bound by its own maximum, or by its tenant's quota, may break its SLO for that long; a quota that has room
// for one more replica binds no service.
func TestWhoIsBound(t *testing.T) {
	b := troubled(1, 1, scenario.Faults{})
	c := newController(NewWorld(b, NewRates(b)), controllerOptions{Lends: true}, nil)
	for i := range c.w.services {
		c.w.services[i].desired = 0
	}
	s := &c.w.services[0]
	s.desired = 4
	if c.bound(0) {
		t.Error("nothing binds it yet")
	}
	c.tenants = []fleet.Tenant{{ID: "shop", Namespaces: []string{"shop"}}}
	for limit, want := range map[fleet.MilliCPU]bool{32_000: true, 39_999: true, 40_000: false, 400_000: false} {
		if c.limits["shop"] = limit; c.bound(0) != want {
			t.Errorf("it requests 32 cores of %v: bound %t", limit.Cores(), !want)
		}
	}
	c.tenants = nil
	window := fleet.Window{Schedule: fmt.Sprintf("%d %d * * *", begin.Minute(), begin.Hour()), Duration: 3 * time.Hour, Zone: time.UTC, Max: 4}
	c.services[0].Windows = []fleet.Window{window}
	c.w.now = begin.Add(time.Hour)
	if !c.bound(0) {
		t.Error("its window's maximum binds it")
	}
	c.w.now = begin.Add(4 * time.Hour)
	if c.bound(0) {
		t.Error("the window is closed")
	}
}

// A broken run is shrunk to the faults that break it.
func TestShrink(t *testing.T) {
	long(t)
	if broken, err := Shrink(context.Background(), troubled(1, 1, scenario.Faults{Random: 1, Quiet: config.Duration(30 * time.Minute)}), whole); broken != nil || err != nil {
		t.Errorf("nothing breaks, but %v, %v", broken, err)
	}
	after := func(kind string, at, lasts time.Duration) scenario.Fault {
		return scenario.Fault{Kind: kind, After: config.Duration(at), For: config.Duration(lasts), Share: 1, Factor: 3}
	}
	// A crowd recalls machines of which no agent says that they are clean, up to the end.
	b := troubled(1, 4, scenario.Faults{List: []scenario.Fault{
		after(scenario.StoreDown, 0, time.Hour),
		after(scenario.AgentSilent, time.Hour, 3*time.Hour),
		after(scenario.FlashCrowd, 2*time.Hour, 2*time.Hour),
		after(scenario.APIConflicts, time.Hour, 10*time.Minute)}})
	all, err := breaks(context.Background(), b, whole, drawFaults(b))
	if all == nil || err != nil {
		t.Fatalf("nothing breaks: %v", err)
	}
	less, err := Shrink(context.Background(), b, whole)
	if less == nil || err != nil {
		t.Fatal(less, err)
	}
	was, is := strings.Count(all.Faults, "kind:"), strings.Count(less.Faults, "kind:")
	if was != 4 || is != 2 || !strings.Contains(less.Faults, scenario.AgentSilent) || !strings.Contains(less.Faults, scenario.FlashCrowd) || less.What == "" {
		t.Errorf("%v\nis shrunk to\n%v", all, less)
	}
}

// Windows and slices follow the wall clock over both changes of the clocks: one of 02:30 opens at the change where that hour is left out, and
// in its first coming where it comes twice.
func TestClocksChange(t *testing.T) {
	long(t)
	for _, c := range []struct {
		day        time.Time
		opens, end time.Duration // after midnight UTC
	}{
		{time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), time.Hour, 2 * time.Hour},
		{time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC), 30 * time.Minute, 90 * time.Minute},
	} {
		b := troubled(1, 4, scenario.Faults{})
		window := scenario.Window{Start: "30 2 * * *", For: config.Duration(time.Hour), TimeZone: "Europe/Berlin"}
		shift(b, c.day)
		b.Services[0].Spec.Windows = []scenario.ServiceWindow{{Window: window, Min: 70}}
		no := 0.0
		b.Tenants = []scenario.Tenant{{Name: "shop", Namespaces: []string{"shop"}, GuaranteeCores: 480, BorrowingCores: &no,
			Slices: []scenario.Slice{{Window: window, GuaranteeCores: 1200}}}}
		watched(t, b, whole, func(w *World) {
			at := w.now.Sub(c.day)
			switch n := w.services[0].desired; {
			case at >= c.opens+2*time.Minute && at < c.end && n < 70:
				t.Fatalf("%s after midnight of %s: %d replicas while the window is open", at, c.day.Format(time.DateOnly), n)
			case (at > time.Minute && at < c.opens-10*time.Minute || at >= c.end+20*time.Minute) && n >= 70:
				t.Fatalf("%s after midnight of %s: %d replicas while the window is closed", at, c.day.Format(time.DateOnly), n)
			}
		})
	}
}

// A run in which clocks change is dated so that they do, at the moment of the fault, and is otherwise the run that it was.
func TestClocksAreChanged(t *testing.T) {
	for kind, change := range map[string]time.Time{
		scenario.ClocksForward: time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC), scenario.ClocksBack: time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)} {
		b := troubled(1, 1, scenario.Faults{List: []scenario.Fault{{Kind: kind, After: config.Duration(25 * time.Minute), For: config.Duration(tick)}}})
		b.Services[0].Spec.Windows = []scenario.ServiceWindow{{Window: scenario.Window{Start: "0 12 * * *", For: config.Duration(time.Hour), TimeZone: "Europe/Berlin"}}}
		b.Festivals = []scenario.Festival{{Name: "feast", Start: b.Start, End: b.End()}}
		w := NewWorld(b, NewRates(b))
		load := w.services[0].Load.At(w.now)
		w.faults = drawFaults(b)
		w.redate()
		start := change.Add(-25 * time.Minute)
		s := &w.services[0]
		if !w.b.Start.Equal(start) || !w.now.Equal(w.b.RunStart()) || !w.start.Equal(w.now) || s.Load.At(w.now) != load || !w.b.Festivals[0].Start.Equal(start) || !w.jobs[0].checkpoint.Equal(w.now) {
			t.Errorf("%s: dated %s, its load %v, was %v", kind, w.b.Start, s.Load.At(w.now), load)
		}
		if !b.Start.Equal(begin) || !b.Services[0].Load.Start.Before(begin) || !b.Festivals[0].Start.Equal(begin) {
			t.Errorf("%s: what was built moved too", kind)
		}
	}
	// Where no clock changes none is drawn.
	for _, f := range drawFaults(troubled(1, 1, scenario.Faults{Random: 1000})) {
		if scenario.ChangesClocks(f.Kind) {
			t.Fatalf("%s is drawn, and no window has a zone", f.Kind)
		}
	}
}

// A daily window opens where its zone's clock first shows its time or a later one on a date; the product computes so
// too.
func TestDailyWindows(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for day, opens := range map[time.Time]time.Duration{
		time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC):  90 * time.Minute, // the day before: 02:30 is 01:30 UTC
		time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC):  time.Hour,
		time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC): 30 * time.Minute,
		time.Date(2026, 10, 26, 0, 0, 0, 0, time.UTC): 90 * time.Minute,
	} {
		w := fleet.Window{Schedule: "30 2 * * *", Duration: 90 * time.Minute, Zone: berlin}
		spans, daily := dailySpans(w, day, day.Add(24*time.Hour))
		j := judge{open: map[fleet.Window][]open{w: spans}}
		for at := time.Duration(0); daily && at < 24*time.Hour; at += time.Minute {
			is, want := j.isOpen(w, day.Add(at)), at >= opens && at < opens+w.Duration
			if is != want || planner.WindowOpen(w, day.Add(at)) != want {
				t.Fatalf("%s after midnight of %s: open %t, want %t", at, day.Format(time.DateOnly), is, want)
			}
		}
		if !daily {
			t.Error("it is a daily window")
		}
	}
	for _, other := range []string{"30 2 * * 1", "*/5 2 * * *", "30 2 1 * *"} {
		if _, daily := dailySpans(fleet.Window{Schedule: other, Duration: time.Hour, Zone: berlin}, begin, begin); daily {
			t.Errorf("%s is not daily", other)
		}
	}
}

// shift moves a tiny scenario to another day.
func shift(b *scenario.Built, to time.Time) {
	by := to.Sub(b.Start)
	b.Start = to
	for i := range b.Services {
		b.Services[i].Load.Start = b.Services[i].Load.Start.Add(by)
	}
}

// A scale-in that is delivered twice was charged and judged when it came first: no ledger counts it again.
func TestAScaleInThatComesAgainIsChargedOnce(t *testing.T) {
	for charged := range 2 {
		c := accused(t, wholeLoan())
		c.redelivering = true
		takeTwo(c, charged)
		c.redelivering = false
		if c.err != nil {
			t.Errorf("%d of 2 pods were charged: %v", charged, c.err)
		}
	}
}

// A window's floor is a plan's to keep: a write that comes again, where the size came back, knows nothing of a window that opened since.
func TestAFloorIsJudgedOfPlans(t *testing.T) {
	for _, x := range []struct {
		to     int32
		again  bool
		breaks bool
	}{{33, false, true}, {34, false, false}, {33, true, false}, {0, true, true}} {
		c := accused(t, wholeLoan())
		always := fleet.Window{Schedule: "0 0 * * *", Duration: 24 * time.Hour, Zone: time.UTC, Min: 34}
		c.services[0].Windows = []fleet.Window{always}
		c.redelivering = x.again
		c.checkScale(&planner.Scale{Service: c.w.services[0].id, From: 34, To: x.to})
		switch {
		case x.breaks:
			mustBreak(t, c, "under its floor")
		case c.err != nil:
			t.Errorf("to %d, again %t: %v", x.to, x.again, c.err)
		}
	}
}

// The charges of a leader that is succeeded before its requests arrive are counted by its own plan's time, as its
// ledger does, and begins no window before the one that runs.
func TestALateRequestIsChargedByItsPlan(t *testing.T) {
	for _, x := range []struct{ runs, sent, arrives, want time.Duration }{
		{-time.Hour, 0, 15 * time.Second, 0},
		{-time.Minute, 0, time.Minute, 0},
		{30 * time.Second, 0, time.Minute, 30 * time.Second},
	} {
		c := accused(t, wholeLoan())
		at := c.w.now
		c.judge.of(onlinePool, at.Add(x.runs))
		c.w.now = at.Add(x.arrives)
		if got := c.chargedAt(onlinePool); !got.Equal(c.w.now) {
			t.Errorf("no leader was succeeded: %s", got.Sub(at))
		}
		c.late = &lastPlan{facts: &fleet.Snapshot{At: at.Add(x.sent)}}
		if got := c.chargedAt(onlinePool).Sub(at); got != x.want {
			t.Errorf("a window that runs since %s, sent at %s: charged at %s, want %s", x.runs, x.sent, got, x.want)
		}
	}
}

// A plan answers for what it could see: behind a stale cache, or late after a hand-over, for the sizes of its own facts and what it raises itself.
func TestJobsAreRaisedByWhatIsSeen(t *testing.T) {
	for _, x := range []struct {
		name         string
		desired      int32 // of the job by now, whatever the plan saw
		seen, raises int32
		stale, late  bool
		breaks       bool
	}{
		{"within the quota", 4, 4, 4, false, false, false},
		{"beyond it", 5, 4, 5, false, false, true},
		{"raised by another plan, behind a stale cache", 6, 3, 4, true, false, false},
		{"raised by the next leader", 6, 3, 4, false, true, false},
		{"beyond what a stale plan saw", 5, 4, 5, true, false, true},
		{"beyond what a late plan saw", 5, 4, 5, false, true, true},
		{"raised by another plan, which this one saw", 6, 6, 4, false, false, true},
	} {
		c := accused(t, wholeLoan())
		c.tenants = []fleet.Tenant{{ID: "lab", Namespaces: []string{c.w.jobs[0].name.Namespace}}}
		j := &c.w.jobs[0]
		c.w.jobs, j.desired = c.w.jobs[:1], x.desired
		j = &c.w.jobs[0]
		unit := fleet.MilliCPU(1000 * j.spec.Cores)
		facts := &fleet.Snapshot{Jobs: []fleet.Job{{ID: j.id(), Members: []fleet.Member{{Role: role, Desired: x.seen, Request: fleet.Resources{CPU: unit}}}}}}
		if x.stale {
			c.stale = facts
		}
		if x.late {
			c.late = &lastPlan{facts: facts}
		}
		p := &planner.Plan{Jobs: []planner.JobScale{{Job: j.id(), Role: role, From: x.seen, To: x.raises}},
			Division: quota.Division{Shares: []quota.Share{{Tenant: "lab", OfflineLimit: fleet.Resources{CPU: 4 * unit}}}}}
		switch c.checkQuota(p, raises{jobs: []fleet.JobID{j.id()}}); {
		case x.breaks:
			mustBreak(t, c, "more than its quota lets them request")
		case c.err != nil:
			t.Errorf("%s: %v", x.name, c.err)
		}
	}
}

// A share that has a parcel at home before its loan's status says so opens it to online where the bundled scheduler places the pods, and nowhere else.
func TestAShareComesHomeBeforeItsLoan(t *testing.T) {
	lent := wholeLoan()
	lent.Phase = fleet.Draining
	home := fleet.ShareParcel{Cells: lent.Cells, Holder: onlinePool, Loan: lent.ID}
	for name, c := range map[string]struct {
		share   fleet.Share
		decides bool
		breaks  bool
	}{
		"home":                       {fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{home}}, true, false},
		"home, and the marks decide": {fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{home}}, false, true},
		"still offline's":            {fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{{Cells: lent.Cells, Holder: offlinePool, Next: onlinePool, Loan: lent.ID}}}, true, true},
		"about to leave again":       {fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{{Cells: lent.Cells, Holder: onlinePool, Next: offlinePool, Loan: lent.ID}}}, true, true},
		"not in the share":           {fleet.Share{Exists: true}, true, true},
	} {
		a := accused(t, lent)
		a.w.facts[1].Share, a.w.rooms.decides = c.share, c.decides
		a.w.bindOn(a.w.newPod(pod{kind: online, cores: 8}), 1)
		if a.checkHolder(0, 1); (a.err != nil) != c.breaks {
			t.Errorf("%s: %v", name, a.err)
		}
	}
}
