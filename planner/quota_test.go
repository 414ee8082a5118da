package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/quota"
)

func cpu(cores int64) fleet.Resources {
	return fleet.Resources{CPU: fleet.MilliCPU(cores * 1000), Memory: fleet.Bytes(cores*4) * fleet.GiB}
}

// tenant adds a tenant that has one namespace.
func (w *world) tenant(id, namespace string, guarantee int64) *fleet.Tenant {
	w.s.Tenants = append(w.s.Tenants, fleet.Tenant{ID: fleet.TenantID(id), Namespaces: []string{namespace}, Guarantee: cpu(guarantee), Drain: 10 * time.Minute, Accepted: true})
	return &w.s.Tenants[len(w.s.Tenants)-1]
}

// owing makes a tenant one that had its notice so long ago to give back whatever it owes.
func tellToGiveBack(x *fleet.Tenant, ago time.Duration) {
	x.OverSince = t0.Add(-ago)
	x.Notices = []fleet.QuotaNotice{{Since: x.OverSince, Online: cpu(1000), Offline: cpu(1000)}}
}

// A quota cuts growth at what it leaves, brings nothing down before its deadline, and brings down what others wait for after it, once.
func TestQuotaBindsServices(t *testing.T) {
	for _, c := range []struct {
		name      string
		guarantee int64
		borrows   fleet.Known[fleet.Resources]
		load      float64
		over      time.Duration // since its notice
		leaving   int           // pods that have a notice already
		want      int32
		why       string
	}{
		{"growth within the quota", 200, fleet.KnownAt(cpu(0), t0), 90, 0, 0, 18, ""},
		{"growth beyond it", 120, fleet.KnownAt(cpu(0), t0), 90, 0, 0, 15, "quota shop leaves cpu=120"},
		{"growth into what is free", 120, fleet.Known[fleet.Resources]{}, 90, 0, 0, 18, ""},
		{"over it, and told just now", 64, fleet.KnownAt(cpu(0), t0), 60, 0, 0, 12, ""},
		{"over it, and the deadline is near", 64, fleet.KnownAt(cpu(0), t0), 60, 9 * time.Minute, 0, 12, ""},
		{"over it, and the deadline passed", 64, fleet.KnownAt(cpu(0), t0), 60, 10 * time.Minute, 0, 8, "had to give back cpu=32"},
		{"what leaves already is not asked for again", 64, fleet.KnownAt(cpu(0), t0), 60, 10 * time.Minute, 4, 8, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(6).service("web", 12, 0, 6, c.load)
			x := w.tenant("shop", "shop", c.guarantee)
			x.BorrowingLimit = c.borrows
			if c.over > 0 {
				tellToGiveBack(x, c.over)
			}
			w.s.Services[0].Desired.Value -= int32(c.leaving)
			for i := range c.leaving {
				w.s.Services[0].Pods[i].Deleting, w.s.Pods[i].Deleting = true, true
			}
			plan := made(w.input())
			if tg := plan.Targets[0]; tg.Replicas != c.want || !strings.Contains(tg.Why().Text(), c.why) || c.why != "" &&
				tg.Limited != hpa.LimitedQuota {
				t.Errorf("%d replicas (limited by %q), want %d: %s", tg.Replicas, tg.Limited, c.want, tg.Why())
			}
		})
	}
}

// A guarantee is no use if borrowers leave only room that its pods do not fit in: they give some back, after their notice, and what of theirs found
// no machine goes first, since it would take it.
func TestWhoBorrowsGivesBackWhatFits(t *testing.T) {
	for _, c := range []struct {
		name      string
		request   int64 // cores of the pod that waits
		placed    int   // pods of the borrower, of 8 cores each on two machines of 64
		borrowers int   // those of it that wait, too
		lent      bool  // whether one of the machines is on its way to offline
		promised  int64 // cores that the waiting pod's tenant is guaranteed: with less than 64 it must not borrow, either, and asks for more
		owed      int64
		want      int32
	}{
		{"16 cores are free on either machine, and 24 are asked for", 24, 12, 0, false, 64, 24, 9},
		{"the borrower's own that wait go first", 24, 16, 3, false, 64, 24, 13},
		{"there is a place, so something else is lacking", 16, 12, 0, false, 64, 0, 12},
		{"what is free on a machine that moves is no crumb", 24, 12, 0, true, 64, 0, 12},
		{"more is asked for than the guarantee, within which the pod is", 24, 12, 0, false, 24, 24, 9},
		{"a smaller pod", 20, 12, 0, false, 20, 20, 9},
		{"some of the guarantee is left", 24, 12, 0, false, 28, 24, 9},
		{"the pod is not within the guarantee", 24, 12, 0, false, 23, 0, 12},
	} {
		w := newWorld(2).service("web", c.placed, 0, 2, float64(5*(c.placed+c.borrowers))).service("cart", 0, 0, 1, 4)
		w.waits("cart", 1)
		w.waits("web", c.borrowers)
		cart := w.service1("cart")
		cart.Target.Namespace, cart.Request = "mart", cpu(c.request)
		for i := range w.s.Pods {
			if p := &w.s.Pods[i]; p.Service == cart.ID {
				p.Name.Namespace, p.Requests = "mart", cart.Request
			}
		}
		cart.Pods[0].Name.Namespace, cart.Pods[0].Requests = "mart", cart.Request
		if c.lent {
			w.loan(0, fleet.Emptying, 1)
			w.loan(1, fleet.Emptying, 1)
		}
		w.tenant("all", "none", 128)
		w.tenant("shop", "shop", 48).Parent = "all"
		mart := w.tenant("mart", "mart", c.promised)
		mart.Parent = "all"
		if c.promised < 64 {
			mart.BorrowingLimit, cart.Min = fleet.KnownAt(fleet.Resources{}, t0), 3
		}
		plan := made(w.input())
		if owed := plan.Division.Share("shop").Owed; owed.CPU != fleet.MilliCPU(1000*c.owed) {
			t.Errorf("%s: owes %s, want %d cores", c.name, owed, c.owed)
		}
		if tg := targetOf(&plan, "web"); tg.Replicas != int32(c.placed+c.borrowers) {
			t.Errorf("%s: %d replicas before any notice: %s", c.name, tg.Replicas, tg.Why())
		}
		for i := range w.s.Tenants {
			if x := &w.s.Tenants[i]; x.ID == "shop" && c.owed > 0 {
				tellToGiveBack(x, 10*time.Minute)
			}
		}
		plan = made(w.input())
		if tg := targetOf(&plan, "web"); tg.Replicas != c.want {
			t.Errorf("%s: %d replicas after the notice, want %d: %s", c.name, tg.Replicas, c.want, tg.Why())
		}
	}
}

// Room is shared by parts, and the last of it goes to one of them: with every part rounded down, two that wait for one
// replica each would wait next to it for ever.
func TestApportionLeavesNoUsableRoom(t *testing.T) {
	wide := fleet.Resources{CPU: 8000, Memory: 8 << 30}
	for _, c := range []struct {
		name string
		room fleet.Resources
		asks []ask
		want []int32
	}{
		{"one replica for two", cpu(9), []ask{{cpu(8), 1}, {cpu(8), 1}}, []int32{1, 0}},
		{"the same part to each", cpu(40), []ask{{cpu(8), 8}, {cpu(8), 2}}, []int32{4, 1}},
		{"the rest to whom rounding took most from", cpu(32), []ask{{cpu(8), 4}, {cpu(8), 3}, {cpu(8), 2}}, []int32{2, 1, 1}},
		{"the rest to the small, where the large do not fit", cpu(11), []ask{{cpu(8), 2}, {cpu(1), 9}}, []int32{1, 3}},
		{"all of it", cpu(100), []ask{{cpu(8), 4}, {cpu(1), 3}}, []int32{4, 3}},
		{"nothing to share", fleet.Resources{}, []ask{{cpu(8), 4}, {fleet.Resources{}, 3}}, []int32{0, 3}},
		{"memory is what is short", fleet.Resources{CPU: 1 << 40, Memory: 17 << 30}, []ask{{wide, 3}, {wide, 3}}, []int32{1, 1}},
	} {
		if got := apportion(c.room, c.asks); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Custom(func(t *rapid.T) fleet.Resources {
			return fleet.Resources{CPU: fleet.MilliCPU(rapid.IntRange(0, 9000).Draw(t, "cpu")), Memory: fleet.Bytes(rapid.Int64Range(0, 1<<33).Draw(t, "memory"))}
		})
		room := amount.Draw(t, "room").Times(rapid.Int64Range(0, 20).Draw(t, "times"))
		asks := rapid.SliceOf(rapid.Custom(func(t *rapid.T) ask {
			return ask{amount.Draw(t, "unit"), rapid.Int32Range(0, 12).Draw(t, "replicas")}
		})).Draw(t, "asks")
		left := room
		got := apportion(room, asks)
		for k, a := range asks {
			left = left.Sub(a.unit.Times(int64(got[k])))
			if got[k] < 0 || got[k] > a.replicas {
				t.Fatalf("%d of %d", got[k], a.replicas)
			}
		}
		for k, a := range asks {
			if got[k] < a.replicas && quota.Fits(a.unit, left) {
				t.Fatalf("%s are left, and %d wait for %s each", left, a.replicas-got[k], a.unit)
			}
		}
		if left != left.Floor() {
			t.Fatalf("%s too much was shared out", left)
		}
	})
}

// A quota that cuts a member of a call chain now leaves what the chain asks of it later: lending must see it.
func TestQuotaKeepsTheChainsDay(t *testing.T) {
	w := newWorld(12).service("a", 12, 0, 6, 90).service("b", 12, 6, 6, 90)
	for i := range w.s.Services {
		w.s.Services[i].LinkGroup, w.s.Services[i].LinkRatio = "checkout", float64(2-i)
	}
	w.tenant("shop", "shop", 240).BorrowingLimit = fleet.KnownAt(cpu(0), t0)
	if tg := made(w.input()).Targets[0]; tg.Limited != hpa.LimitedQuota || tg.Ahead[100] < 34 {
		t.Errorf("limited by %q, %d replicas in the day ahead, want the chain's: %s", tg.Limited, tg.Ahead[100], tg.Why())
	}
}

// Offline work grows as far as its tenant may, on as many parcels as it may, and gives back what is due by its jobs' minima.
func TestQuotaBindsJobs(t *testing.T) {
	for _, c := range []struct {
		name string
		bend func(w *world, x *fleet.Tenant)
		want int32
	}{
		{"as far as it goes", func(*world, *fleet.Tenant) {}, 12},
		{"within the quota", func(_ *world, x *fleet.Tenant) { x.BorrowingLimit = fleet.KnownAt(cpu(16), t0) }, 5},
		{"on two machines", func(_ *world, x *fleet.Tenant) {
			x.Parcels = []fleet.ParcelQuota{{Class: fleet.ParcelClass{Kind: fleet.KindNode}, BorrowingLimit: fleet.KnownAt(int64(2), t0)}}
		}, 8},
		{"of a model that no machine has", func(_ *world, x *fleet.Tenant) {
			x.Parcels = []fleet.ParcelQuota{{Class: fleet.ParcelClass{Kind: fleet.KindNode, GPUModel: "H100"}, BorrowingLimit: fleet.KnownAt(int64(0), t0)}}
		}, 12},
		{"over it, and told just now", func(w *world, x *fleet.Tenant) {
			x.Guarantee, x.BorrowingLimit = cpu(32), fleet.KnownAt(cpu(0), t0)
		}, 4},
		{"over it, and the deadline passed", func(w *world, x *fleet.Tenant) {
			x.Guarantee, x.BorrowingLimit = cpu(32), fleet.KnownAt(cpu(0), t0)
			tellToGiveBack(x, time.Hour)
		}, 2},
		{"not below the minimum", func(w *world, x *fleet.Tenant) {
			x.Guarantee, x.BorrowingLimit = cpu(32), fleet.KnownAt(cpu(0), t0)
			tellToGiveBack(x, time.Hour)
			w.s.Jobs[0].Members[0].Min = 3
		}, 3},
		{"what ends already is not asked for again", func(w *world, x *fleet.Tenant) {
			x.Guarantee, x.BorrowingLimit = cpu(32), fleet.KnownAt(cpu(0), t0)
			tellToGiveBack(x, time.Hour)
			w.s.Pods[0].Deleting, w.s.Pods[1].Deleting = true, true
			w.s.Jobs[0].Members[0].Desired = 2
		}, 2},
		{"what is called home already is not asked for again", func(w *world, x *fleet.Tenant) {
			x.Guarantee, x.BorrowingLimit = cpu(32), fleet.KnownAt(cpu(0), t0)
			tellToGiveBack(x, time.Hour)
			l := &w.s.Loans[0]
			l.Phase, l.Epoch, l.FirstNotice, l.Deadline, l.Due = fleet.Noticed, 2, t0, t0.Add(2*time.Minute), t0.Add(5*time.Minute)
			for i := range 2 {
				w.s.Pods[i].Node, w.s.Pods[i].NodeName = w.s.Nodes[1].ID, w.s.Nodes[1].Name
			}
		}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(6)
			for i := range 3 {
				w.loan(i, fleet.Lent, 1)
			}
			for i := range 4 {
				w.worker(0, i)
			}
			c.bend(w, w.tenant("train", "batch", 64))
			plan := made(w.input())
			got := w.s.Jobs[0].Members[0].Desired
			if len(plan.Jobs) > 0 {
				got = plan.Jobs[0].To
			}
			if got != c.want {
				t.Errorf("parallelism %d, want %d: %+v\n%s", got, c.want, plan.Jobs, plan.Division.Share("train").Why)
			}
		})
	}
}

// The room that a tenant may use and cannot goes to one that can: of the free machines, the big members of one fit on
// none.
func TestWhatOneCannotPlaceAnotherGets(t *testing.T) {
	w := newWorld(6)
	for i := range 3 {
		w.loan(i, fleet.Lent, 1)
	}
	w.tenant("train", "batch", 0)
	w.tenant("big", "big", 0)
	w.tenant("online", "shop", 200)
	big := w.s.Jobs[0]
	big.ID = "big/huge"
	big.Members = []fleet.Member{{Role: "worker", Kind: "Job", Max: 10, Remaining: 1000, Request: cpu(65)}}
	w.s.Jobs = append(w.s.Jobs, big)
	plan := made(w.input())
	if len(plan.Jobs) != 1 || plan.Jobs[0].Job != "batch/train" || plan.Jobs[0].To != 11 {
		t.Errorf("%+v, want 11 of batch/train in the 184 cores that are left, of which half are 5: %+v", plan.Jobs, plan.Division.Share("train"))
	}
}

// A window of next Friday, a festival in four days and a slice that cannot be kept are reported today.
func TestShortageOfNextWeek(t *testing.T) {
	friday := t0.AddDate(0, 0, 4).Truncate(24 * time.Hour).Add(19 * time.Hour) // t0 is a Monday
	for _, c := range []struct {
		name  string
		bend  func(w *world)
		short string
	}{
		{"nothing", func(*world) {}, ""},
		{"a window", func(w *world) {
			w.s.Services[0].Windows = []fleet.Window{{Name: "friday", Schedule: "0 19 * * 5", Duration: 3 * time.Hour, Zone: time.UTC, Min: 40}}
		}, "93h0m0s to 96h0m0s by cpu=120"},
		{"a window in the slice that covers it", func(w *world) {
			w.s.Services[0].Windows = []fleet.Window{{Name: "friday", Schedule: "0 19 * * 5", Duration: 3 * time.Hour, Zone: time.UTC, Min: 40}}
			w.s.Tenants[0].Slices = []fleet.Slice{{Window: fleet.Window{Name: "friday", Schedule: "0 18 * * 5", Duration: 6 * time.Hour, Zone: time.UTC}, Guarantee: cpu(320)}}
		}, ""},
		{"a festival", func(w *world) {
			w.s.Festivals = []fleet.Festival{{ID: "sale", Start: friday, End: friday.Add(2 * time.Hour), Approved: true, Lifts: []fleet.Lift{{Service: "shop/web", Factor: 4}}}}
		}, "93h0m0s to 95h0m0s by"},
		{"a festival that nobody approved", func(w *world) {
			w.s.Festivals = []fleet.Festival{{ID: "sale", Start: friday, End: friday.Add(2 * time.Hour), Lifts: []fleet.Lift{{Service: "shop/web", Factor: 4}}}}
		}, ""},
		{"a slice beyond the machines", func(w *world) {
			w.s.Tenants[0].Slices = []fleet.Slice{{Window: fleet.Window{Name: "friday", Schedule: "0 19 * * 5", Duration: 2 * time.Hour, Zone: time.UTC}, Guarantee: cpu(1000)}}
		}, "oversold in 93h0m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(6).service("web", 12, 0, 6, 60)
			w.tenant("shop", "shop", 200).BorrowingLimit = fleet.KnownAt(cpu(0), t0)
			c.bend(w)
			d := made(w.input()).Division
			var got string
			for _, x := range d.Short {
				got += fmt.Sprintf("%s to %s by %s; ", x.From.Sub(t0), x.Until.Sub(t0), x.By)
			}
			for _, x := range d.Oversold {
				got += fmt.Sprintf("oversold in %s; ", x.From.Sub(t0))
			}
			if (c.short == "") != (got == "") || !strings.HasPrefix(got, c.short) {
				t.Errorf("%q, want %q", got, c.short)
			}
		})
	}
}

// Slices hold over both edges of summer time: in Berlin, clocks jump from 02:00 to 03:00 on 29 March 2026 and back from 03:00 to 02:00 on
// 25 October.
func TestSlicesOnTheEdgesOfSummerTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(s string) time.Time {
		x, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, c := range []struct {
		name, start string
		length      time.Duration
		open, shut  []string
	}{
		{"a skipped start holds from the jump", "30 2 * * *", time.Hour,
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T03:59:59+02:00"}, []string{"2026-03-29T01:59:59+01:00", "2026-03-29T04:00:00+02:00"}},
		{"a slice over the jump has its length", "0 1 * * *", 2 * time.Hour,
			[]string{"2026-03-29T01:00:00+01:00", "2026-03-29T03:59:59+02:00"}, []string{"2026-03-29T04:00:00+02:00"}},
		{"a doubled start holds once", "30 2 * * *", 30 * time.Minute,
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:59:59+02:00"}, []string{"2026-10-25T02:00:00+01:00", "2026-10-25T02:30:00+01:00"}},
		{"an evening into the doubled hour has its length", "0 19 * * *", 8 * time.Hour,
			[]string{"2026-10-24T19:00:00+02:00", "2026-10-25T02:59:59+02:00"}, []string{"2026-10-25T02:00:00+01:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := fleet.Tenant{Guarantee: cpu(10), Slices: []fleet.Slice{{Window: fleet.Window{Schedule: c.start, Duration: c.length, Zone: berlin}, Guarantee: cpu(50)}}}
			o := newOpener() // the times come in no order, as in a plan
			for _, s := range c.open {
				if quota.Guarantee(&x, at(s), o.open) != cpu(50) {
					t.Errorf("%s: the slice is shut", s)
				}
			}
			for _, s := range c.shut {
				if quota.Guarantee(&x, at(s), o.open) != cpu(10) {
					t.Errorf("%s: the slice is open", s)
				}
			}
		})
	}
}

// The opener's memory never changes its answer.
func TestOpenerRemembers(t *testing.T) {
	w := fleet.Window{Schedule: "0 */5 * * *", Duration: 90 * time.Minute, Zone: time.UTC}
	o := newOpener()
	for i := range 2000 {
		at := t0.Add(time.Duration(i*i%7001) * time.Minute)
		if got, want := o.open(w, at), at.UTC().Hour()%5*60+at.Minute() < 90; got != want {
			t.Fatalf("%s: %v, want %v", at, got, want)
		}
	}
	if WindowOpen(fleet.Window{Schedule: "no", Duration: time.Hour, Zone: time.UTC}, t0) || WindowOpen(fleet.Window{Schedule: "* * * * *", Duration: time.Hour}, t0) {
		t.Error("what cannot be read is never open")
	}
}

// The level of the low-priority capacity counts what offline has and is lent, of all machines of pools.
func TestLowPriorityLevel(t *testing.T) {
	w := newWorld(5)
	w.s.Nodes[4].Pool = "offline"
	w.loan(0, fleet.Lent, 1)
	w.loan(1, fleet.Noticed, 1)
	w.s.Sort()
	if l := levelOf(w); !l.Share.OK || l.Share.Value != 0.4 {
		t.Errorf("%+v, want 2 of 5", l)
	}
	w.s.Pools = w.s.Pools[1:]
	if l := levelOf(w); l.Share.OK {
		t.Errorf("%+v without an offline pool", l)
	}
}

// The supply is what machines of pools hold, ready or not, less what foreign pods use there; without an online machine
// it is not known.
func TestSupply(t *testing.T) {
	w := newWorld(4).service("web", 4, 0, 4, 20)
	w.s.Nodes[0].Ready = false
	w.s.Nodes[3].Pool = "" // and its pod with it
	in := w.input()
	if got := in.tenants(fleet.OccupancyOf(in.Snapshot), make([]hpa.Target, 1), nil).supply(); !got.OK || got.Value.CPU != 3*64_000-3*8_000 {
		t.Errorf("%+v without tenants: three machines less three pods", got)
	}
	w.tenant("shop", "shop", 10)
	if got := in.tenants(fleet.OccupancyOf(in.Snapshot), make([]hpa.Target, 1), nil).supply(); got.Value.CPU != 3*64_000 {
		t.Errorf("%+v where the pods are a tenant's", got)
	}
	for i := range w.s.Nodes {
		w.s.Nodes[i].Pool = "offline"
	}
	if got := in.tenants(fleet.OccupancyOf(in.Snapshot), make([]hpa.Target, 1), nil).supply(); got.OK {
		t.Errorf("%+v without a machine of an online pool", got)
	}
}

func levelOf(w *world) quota.Level {
	in := w.input()
	return in.tenants(fleet.OccupancyOf(in.Snapshot), make([]hpa.Target, len(in.Snapshot.Services)), nil).lowPriorityLevel()
}
