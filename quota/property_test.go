package quota

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// bundle draws cores, memory and GPUs up to n of each; of memory up to n × 2^48 bytes, where floating point no longer counts bytes.
func bundle(t *rapid.T, n int64, what string) fleet.Resources {
	return fleet.Resources{CPU: fleet.MilliCPU(rapid.Int64Range(0, n*1000).Draw(t, what+" cpu")),
		Memory: fleet.Bytes(rapid.Int64Range(0, n<<48).Draw(t, what+" memory")), GPU: rapid.Int64Range(0, n/10).Draw(t, what+" gpu")}
}

// drawTree draws up to eight tenants in trees of up to three levels, with slices and limits here and there.
func drawTree(t *rapid.T) []fleet.Tenant {
	var out []fleet.Tenant
	maybe := func(what string) fleet.Known[fleet.Resources] {
		if rapid.Bool().Draw(t, what+"?") {
			return fleet.KnownAt(bundle(t, 60, what), now)
		}
		return fleet.Known[fleet.Resources]{}
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "tenants") {
		x := fleet.Tenant{ID: fleet.TenantID(fmt.Sprintf("t%d", i)), Accepted: true, Drain: 5 * time.Minute}
		if up := rapid.IntRange(-1, i-1).Draw(t, "parent"); up >= 0 {
			x.Parent = fleet.TenantID(fmt.Sprintf("t%d", up))
		}
		x.Guarantee = bundle(t, 100, "guarantee")
		x.LendingLimit, x.BorrowingLimit = maybe("lends"), maybe("borrows")
		if rapid.Bool().Draw(t, "slice?") {
			x.Slices = []fleet.Slice{{Window: fleet.Window{Name: "s"}, Guarantee: bundle(t, 200, "slice")}}
		}
		if rapid.Bool().Draw(t, "burst?") {
			x.Burst = fleet.Burst{Percent: rapid.IntRange(1, 200).Draw(t, "percent"), Duration: time.Hour}
		}
		out = append(out, x)
	}
	return out
}

func drawInput(t *rapid.T) Input {
	in := Input{Tenants: drawTree(t), At: now, Supply: fleet.KnownAt(bundle(t, 600, "supply"), now), Ahead: []time.Time{now, now.Add(time.Hour)},
		Open:  func(_ fleet.Window, at time.Time) bool { return at.Before(now.Add(3 * time.Minute)) },
		Level: Level{Share: fleet.KnownAt(0.2, now), Low: 0.05, High: 0.15}}
	for i := range in.Tenants {
		w := Want{Tenant: in.Tenants[i].ID, Now: bundle(t, 150, "want"), Used: bundle(t, 150, "used"), Ahead: []fleet.Resources{{}, bundle(t, 150, "ahead")}}
		if rapid.Bool().Draw(t, "offline?") {
			w.Offline, w.OfflineNeed, w.OfflineWish = bundle(t, 50, "offline"), bundle(t, 50, "need"), bundle(t, 300, "wish")
		}
		in.Wants = append(in.Wants, w)
	}
	return in
}

// below lists a tenant and all below it.
func below(ts []fleet.Tenant, id fleet.TenantID) []fleet.TenantID {
	out := []fleet.TenantID{id}
	for k := 0; k < len(out); k++ {
		for i := range ts {
			if ts[i].Parent == out[k] {
				out = append(out, ts[i].ID)
			}
		}
	}
	return out
}

// Whatever is promised and wished for: promises are never oversold, no tenant gets less than its own or more than it
// wishes for, no edge of the tree bears more than its limits, and what is borrowed is what is lent, or what no
// guarantee names.
func TestDivideIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		d := Divide(in)
		fits := func(a, b fleet.Resources, what string, who any) {
			if !a.Fits(b) {
				t.Fatalf("%v: %s: %v exceed %v\n%+v", who, what, a, b, d)
			}
		}
		var roots, borrowed, lent fleet.Resources
		for i := range in.Tenants {
			x := &in.Tenants[i]
			s, w := d.Share(x.ID), &in.Wants[i]
			var children fleet.Resources
			for k := range in.Tenants {
				if in.Tenants[k].Parent == x.ID {
					children = children.Add(d.Share(in.Tenants[k].ID).Entitled)
				}
			}
			fits(children, s.Entitled, "entitled below", x.ID)
			fits(s.Entitled, s.Guarantee, "entitled", x.ID)
			fits(s.Own, s.Limit, "own within the limit", x.ID)
			fits(s.Borrowed, w.Now.Max(w.Used).Sub(s.Own).Floor(), "borrowed", x.ID)
			fits(s.OfflineLimit, s.Offline, "offline limit", x.ID)
			fits(s.Borrowed.Add(s.BorrowedOffline), s.Borrowed.Add(s.OfflineLimit), "offline grants", x.ID)
			fits(s.Lent.Add(s.OfflineLimit).Sub(s.BorrowedOffline), s.Own.Sub(s.Online).Floor(), "lent and held", x.ID)
			fits(w.OfflineNeed.Min(s.Own.Sub(s.Online).Floor()), s.OfflineLimit, "need within its own", x.ID)
			if x.Parent == "" {
				roots = roots.Add(s.Entitled)
			}
			borrowed, lent = borrowed.Add(s.Borrowed).Add(s.BorrowedOffline), lent.Add(s.Lent)
			limit, bounded := x.BorrowingLimit.Value, x.BorrowingLimit.OK
			if s.Bursting {
				limit = limit.Add(percent(amountOf(s.Entitled), x.Burst.Percent).resources())
			}
			var in1, out1 fleet.Resources
			for _, id := range below(in.Tenants, x.ID) {
				in1, out1 = in1.Add(d.Share(id).Borrowed).Add(d.Share(id).BorrowedOffline), out1.Add(d.Share(id).Lent)
			}
			if bounded {
				fits(in1.Sub(out1), limit, "taken in", x.ID)
			}
			if x.LendingLimit.OK && x.Parent != "" {
				fits(out1.Sub(in1), x.LendingLimit.Value, "let out", x.ID)
			}
			if x.Parent == "" {
				fits(out1, in1, "lent to another tree", x.ID)
			}
		}
		fits(roots, in.Supply.Value, "entitled", "all trees")
		fits(borrowed.Sub(lent), in.Supply.Value.Sub(roots), "borrowed of what no guarantee names", "all trees")
		if !reflect.DeepEqual(d, Divide(shuffled(in))) {
			t.Fatal("the order of tenants and wants changes the division")
		}
	})
}

func shuffled(in Input) Input {
	r := rand.New(rand.NewPCG(1, uint64(len(in.Tenants))))
	in.Tenants, in.Wants = slices.Clone(in.Tenants), slices.Clone(in.Wants)
	r.Shuffle(len(in.Tenants), func(i, j int) { in.Tenants[i], in.Tenants[j] = in.Tenants[j], in.Tenants[i] })
	r.Shuffle(len(in.Wants), func(i, j int) { in.Wants[i], in.Wants[j] = in.Wants[j], in.Wants[i] })
	return in
}

// Of one resource among equals, progressive filling is max-min fairness: all get what they wish for up to one level, and nothing is wasted.
func TestOneResourceIsMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		supply := rapid.Int64Range(0, 1000).Draw(t, "supply")
		in := Input{At: now, Supply: fleet.KnownAt(fleet.Resources{CPU: fleet.MilliCPU(supply)}, now)}
		var wishes, all int64
		for i := range rapid.IntRange(1, 6).Draw(t, "tenants") {
			w := rapid.Int64Range(0, 400).Draw(t, "wish")
			all += w
			x := tenant(fmt.Sprint(i), "", 0)
			in.Tenants = append(in.Tenants, x)
			in.Wants = append(in.Wants, Want{Tenant: x.ID, Now: fleet.Resources{CPU: fleet.MilliCPU(w)}})
		}
		d := Divide(in)
		var level fleet.MilliCPU
		for i := range d.Shares {
			wishes += int64(d.Shares[i].Borrowed.CPU)
			level = max(level, d.Shares[i].Borrowed.CPU)
		}
		if n := int64(len(d.Shares)); wishes < min(all, supply)-n {
			t.Fatalf("%d of %d given, %d wished for", wishes, supply, all)
		}
		for i := range d.Shares {
			if got := d.Shares[i].Borrowed.CPU; got < in.Wants[i].Now.CPU && got < level-1 {
				t.Fatalf("tenant %d has %d of %d, while another has %d", i, got, in.Wants[i].Now.CPU, level)
			}
		}
	})
}

// A fleet on which tenants grow where there is room and as far as they may, and give back what is due when it is due.
// Whatever each of them wants and uses, a tenant that asks for no more than its own has it after the drain time: no
// borrower blocks a lender.
func TestHoldIsHonouredInTime(t *testing.T) {
	const drain = 5 * time.Minute
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "tenants")
		in := Input{At: now, Tenants: []fleet.Tenant{tenant("root", "", 0)}, Wants: []Want{{Tenant: "root"}}}
		var promised int64
		for i := range n {
			x := tenant(fmt.Sprint(i), "root", rapid.Int64Range(0, 20).Draw(t, "guarantee"))
			x.Drain = drain
			promised += int64(x.Guarantee.CPU)
			in.Tenants = append(in.Tenants, x)
			in.Wants = append(in.Wants, Want{Tenant: x.ID})
		}
		supply := fleet.Resources{CPU: fleet.MilliCPU(promised + rapid.Int64Range(0, 20_000).Draw(t, "unnamed"))}
		in.Supply = fleet.KnownAt(supply, now)
		for range rapid.IntRange(1, 4).Draw(t, "turns") {
			for i := range n {
				w := &in.Wants[i+1]
				w.Now, w.OfflineWish = cores(rapid.Int64Range(0, 40).Draw(t, "want")), cores(rapid.Int64Range(0, 40).Draw(t, "offline"))
				w.Used, w.Offline = w.Used.Min(w.Now), w.Offline.Min(w.OfflineWish)
			}
			for end := in.At.Add(drain + 2*time.Minute); in.At.Before(end); in.At = in.At.Add(time.Minute) {
				live(&in, supply)
			}
			d := Divide(in)
			for i := range n {
				w, s := &in.Wants[i+1], d.Share(in.Wants[i+1].Tenant)
				if own := w.Now.Min(s.Own); !own.Fits(w.Used) {
					t.Fatalf("tenant %d has %v of its own %v after %v\n%+v\n%+v", i, w.Used, own, drain, in.Wants, d)
				}
			}
		}
	})
}

// In trees with limits whose tenants take what they may and give back what is due, all is settled after some deadlines:
// no tenant owes anything, and none gives back what it takes again. Room that a deadline frees may go to a newcomer
// until all have their fair part, so it takes as many deadlines as there are amounts to give: whole cores here.
func TestResourcesSettle(t *testing.T) {
	const drain = 2 * time.Minute
	rapid.Check(t, func(t *rapid.T) {
		in := Input{At: now, Tenants: drawTree(t)}
		var promised fleet.Resources
		for i := range in.Tenants {
			x := &in.Tenants[i]
			whole := func(r fleet.Resources) fleet.Resources { return cores(int64(r.CPU) / 1000) }
			cpu := func(k fleet.Known[fleet.Resources]) fleet.Known[fleet.Resources] {
				k.Value = whole(k.Value)
				return k
			}
			*x = fleet.Tenant{ID: x.ID, Parent: x.Parent, Accepted: true, Drain: drain, Guarantee: whole(x.Guarantee),
				LendingLimit: cpu(x.LendingLimit), BorrowingLimit: cpu(x.BorrowingLimit)}
			promised = promised.Add(x.Guarantee)
			in.Wants = append(in.Wants, Want{Tenant: x.ID})
		}
		supply := promised.Add(cores(rapid.Int64Range(-40, 40).Draw(t, "unnamed"))).Floor()
		in.Supply = fleet.KnownAt(supply, now)
		for range rapid.IntRange(1, 2).Draw(t, "turns") {
			for i := range in.Wants {
				w := &in.Wants[i]
				w.Now, w.OfflineWish = cores(rapid.Int64Range(0, 90).Draw(t, "want")), cores(rapid.Int64Range(0, 90).Draw(t, "offline"))
				w.Used, w.Offline = w.Used.Min(w.Now), w.Offline.Min(w.OfflineWish)
			}
			play := func(span time.Duration) Division {
				for end := in.At.Add(span); in.At.Before(end); in.At = in.At.Add(time.Minute) {
					live(&in, supply)
				}
				return Divide(in)
			}
			d := play(200 * drain)
			for i := range d.Shares {
				if s := &d.Shares[i]; s.Owes() {
					t.Fatalf("%s still owes %s online and %s offline\n%+v\n%+v", s.Tenant, s.Owed, s.OverOffline, in.Wants, d)
				}
			}
			before := slices.Clone(in.Wants)
			if play(2 * drain); !reflect.DeepEqual(before, in.Wants) {
				t.Fatalf("not settled:\n%+v\n%+v", before, in.Wants)
			}
		}
	})
}

// live plays one minute.
func live(in *Input, supply fleet.Resources) {
	d := Divide(*in)
	var used fleet.Resources
	for i := range in.Tenants {
		x, w := &in.Tenants[i], &in.Wants[i]
		s := d.Share(x.ID)
		x.OverSince, x.Notices = s.OverSince, s.Notices
		w.Used = w.Used.Sub(s.Due)
		w.Offline = w.Offline.Sub(s.DueOffline)
		used = used.Add(w.Used).Add(w.Offline)
	}
	free := supply.Sub(used)
	grow := func(now *fleet.Resources, to fleet.Resources) {
		more := to.Sub(*now).Floor().Min(free.Floor())
		*now, free = now.Add(more), free.Sub(more)
	}
	for i := range in.Tenants {
		grow(&in.Wants[i].Used, d.Share(in.Tenants[i].ID).Limit.Min(in.Wants[i].Now))
	}
	for i := range in.Tenants {
		grow(&in.Wants[i].Offline, d.Share(in.Tenants[i].ID).OfflineLimit)
	}
}

// The ledger of usage, written at every birth, move and end of a pod, is what the pods add up to.
func TestUsageIsWhatPodsAddUpTo(t *testing.T) {
	tenants := []fleet.Tenant{{ID: "a", Accepted: true, Namespaces: []string{"a1", "a2", "both"}}, {ID: "b", Accepted: true, Namespaces: []string{"b1", "both"}},
		{ID: "refused", Namespaces: []string{"r"}}}
	owner := map[string]fleet.TenantID{"a1": "a", "a2": "a", "b1": "b"}
	tenancy := TenancyOf(tenants)
	rapid.Check(t, func(t *rapid.T) {
		ledger := map[fleet.TenantID]Usage{}
		var pods []fleet.Pod
		charge := func(p *fleet.Pod, sign int64) {
			u := ledger[owner[p.Name.Namespace]]
			switch p.Class {
			case fleet.PodFiller:
				return
			case fleet.PodOffline:
				u.Offline = u.Offline.Add(p.Requests.Times(sign))
			default:
				u.Online = u.Online.Add(p.Requests.Times(sign))
			}
			ledger[owner[p.Name.Namespace]] = u
		}
		for i := range rapid.IntRange(1, 30).Draw(t, "events") {
			k := rapid.IntRange(0, len(pods)).Draw(t, "pod")
			if k == len(pods) {
				pods = append(pods, fleet.Pod{Name: fleet.Name{Namespace: rapid.SampledFrom([]string{"a1", "a2", "b1", "both", "r", "none"}).Draw(t, "namespace"), Name: fmt.Sprint(i)},
					Class:    rapid.SampledFrom([]fleet.PodClass{fleet.PodOnline, fleet.PodOffline, fleet.PodSystem, fleet.PodFiller}).Draw(t, "class"),
					Requests: bundle(t, 10, "request"), Phase: fleet.PodPending})
				continue
			}
			p := &pods[k]
			switch {
			case p.Phase == fleet.PodPending && p.NodeName == "":
				p.NodeName = "n"
				charge(p, 1)
			case p.Phase == fleet.PodPending:
				p.Phase = fleet.PodRunning
			case p.Phase == fleet.PodRunning && !p.Deleting:
				p.Deleting = true
			case p.Phase == fleet.PodRunning:
				charge(p, -1)
				p.Phase = rapid.SampledFrom([]fleet.PodPhase{fleet.PodSucceeded, fleet.PodFailed}).Draw(t, "end")
			default:
				pods = slices.Delete(pods, k, k+1)
			}
		}
		got := UsageOf(tenancy, pods)
		for id, u := range ledger {
			if got[id] != u {
				t.Fatalf("tenant %q uses %v, the ledger says %v", id, got[id], u)
			}
		}
		for id, u := range got {
			if ledger[id] != u {
				t.Fatalf("tenant %q uses %v, the ledger says %v", id, u, ledger[id])
			}
		}
	})
}

// Of a class of parcels, never more is handed out than there is, and no promise is cut for a borrower.
func TestParcelsAreSound(t *testing.T) {
	h100 := fleet.ParcelClass{Kind: fleet.KindNode, GPUModel: "H100"}
	rapid.Check(t, func(t *rapid.T) {
		in := Input{At: now, Parcels: []ParcelSupply{{Class: h100, Firm: rapid.Int64Range(0, 20).Draw(t, "firm"), Lent: rapid.Int64Range(0, 20).Draw(t, "lent")}}}
		for i := range rapid.IntRange(1, 5).Draw(t, "tenants") {
			x := tenant(fmt.Sprint(i), "", 0)
			q := fleet.ParcelQuota{Class: h100, Guarantee: rapid.Int64Range(0, 10).Draw(t, "guarantee")}
			if rapid.Bool().Draw(t, "borrows?") {
				q.BorrowingLimit = fleet.KnownAt(rapid.Int64Range(0, 10).Draw(t, "borrows"), now)
			}
			x.Parcels = []fleet.ParcelQuota{q}
			in.Tenants = append(in.Tenants, x)
			in.Wants = append(in.Wants, Want{Tenant: x.ID, OfflineWish: cores(rapid.Int64Range(0, 1).Draw(t, "grows")),
				Parcels: []ParcelCount{{Class: h100, N: rapid.Int64Range(0, 10).Draw(t, "used")}}})
		}
		var entitled, borrowed, own int64
		for i, s := range Divide(in).Shares {
			p := s.Parcels[0]
			entitled += p.Entitled
			borrowed += p.Limit - p.Entitled
			if in.Wants[i].OfflineWish.IsZero() {
				own += min(p.Used, p.Entitled)
			} else {
				own += p.Entitled
			}
			if p.Limit < p.Entitled {
				t.Fatalf("tenant %d may have %d, entitled to %d", i, p.Limit, p.Entitled)
			}
			if q := in.Tenants[i].Parcels[0]; q.BorrowingLimit.OK && p.Limit > p.Entitled+q.BorrowingLimit.Value {
				t.Fatalf("tenant %d may have %d, entitled to %d and %d more", i, p.Limit, p.Entitled, q.BorrowingLimit.Value)
			}
		}
		if s := in.Parcels[0]; entitled > s.Firm {
			t.Fatalf("%d promised of %d", entitled, s.Firm)
		} else if borrowed+own > s.Firm+s.Lent {
			t.Fatalf("%d borrowed and %d their own of %d", borrowed, own, s.Firm+s.Lent)
		}
	})
}

// The same of parcels, in trees with limits: a tenant that has a use for no more parcels than its own has them after
// the drain time, whichever tenant borrowed them, and then none is on more than it may keep.
func TestParcelHoldIsHonouredInTime(t *testing.T) {
	const drain = 4 * time.Minute
	node := fleet.ParcelClass{Kind: fleet.KindNode}
	rapid.Check(t, func(t *rapid.T) {
		in := Input{At: now, Supply: fleet.KnownAt(cores(1000), now), Tenants: drawTree(t)}
		var promised int64
		limit := func(what string) (k fleet.Known[int64]) {
			if rapid.Bool().Draw(t, what+"?") {
				k = fleet.KnownAt(rapid.Int64Range(0, 4).Draw(t, what), now)
			}
			return k
		}
		for i := range in.Tenants {
			x := &in.Tenants[i]
			q := fleet.ParcelQuota{Class: node, Guarantee: rapid.Int64Range(0, 4).Draw(t, "parcels"), LendingLimit: limit("lends parcels"), BorrowingLimit: limit("borrows parcels")}
			*x = fleet.Tenant{ID: x.ID, Parent: x.Parent, Accepted: true, Drain: drain, Parcels: []fleet.ParcelQuota{q}}
			promised += q.Guarantee
			in.Wants = append(in.Wants, Want{Tenant: x.ID, Parcels: []ParcelCount{{Class: node}}})
		}
		in.Parcels = []ParcelSupply{{Class: node, Firm: max(promised+rapid.Int64Range(-4, 4).Draw(t, "unnamed"), 0), Lent: rapid.Int64Range(0, 3).Draw(t, "lent")}}
		uses := make([]int64, len(in.Tenants))
		for range rapid.IntRange(1, 4).Draw(t, "turns") {
			for i := range uses {
				uses[i] = rapid.Int64Range(0, 9).Draw(t, "use for")
				p := &in.Wants[i].Parcels[0]
				p.N = min(p.N, uses[i])
			}
			play := func(span time.Duration) Division {
				for end := in.At.Add(span); in.At.Before(end); in.At = in.At.Add(time.Minute) {
					liveOnParcels(t, &in, uses)
				}
				return Divide(in)
			}
			d := play(2*drain + 2*time.Minute)
			for i := range in.Tenants {
				if p, own := d.Share(in.Tenants[i].ID).Parcels[0], ownParcels(&in, &d, in.Tenants[i].ID); p.Used < min(uses[i], own) {
					t.Fatalf("%s is on %d parcels of its own %d, with a use for %d\n%+v\n%+v", in.Tenants[i].ID, p.Used, own, uses[i], in.Wants, d)
				}
			}
			// Others may take what each leaves, and owe it in turn, so that all is settled only after some deadlines.
			d = play(4 * drain)
			for _, s := range d.Shares {
				if s.Owes() {
					t.Fatalf("%s is still on %d parcels too many\n%+v\n%+v", s.Tenant, s.Parcels[0].Over, in.Wants, d)
				}
			}
		}
	})
}

// ownParcels is what of a tenant's entitlement those below it do not hold.
func ownParcels(in *Input, d *Division, id fleet.TenantID) int64 {
	own := d.Share(id).Parcels[0].Entitled
	for i := range in.Tenants {
		if x := &in.Tenants[i]; x.Parent == id {
			own -= d.Share(x.ID).Parcels[0].Entitled
		}
	}
	return own
}

// liveOnParcels plays one minute: each leaves what is due and takes what it may of those that are free.
func liveOnParcels(t *rapid.T, in *Input, uses []int64) {
	s := &in.Parcels[0]
	s.Held = 0
	for i := range uses {
		w := &in.Wants[i]
		p := &w.Parcels[0]
		p.More = uses[i] - p.N
		w.Offline, w.OfflineWish = cores(p.N), cores(uses[i])
		s.Held += p.N
	}
	d := Divide(*in)
	free, entitled := s.Firm+s.Lent, int64(0)
	for i := range uses {
		x, share := &in.Tenants[i], d.Share(in.Tenants[i].ID)
		p := &share.Parcels[0]
		if x.Parent == "" {
			entitled += p.Entitled
		}
		if own := ownParcels(in, &d, x.ID); p.Due > p.Over || p.Over > max(p.Used-own, 0) || p.Over > max(p.Used-p.Limit, 0) {
			t.Fatalf("%s owes %+v", x.ID, p)
		}
		x.OverSince, x.Notices = share.OverSince, share.Notices
		in.Wants[i].Parcels[0].N -= p.Due
		free -= in.Wants[i].Parcels[0].N
	}
	if entitled > s.Firm {
		t.Fatalf("%d parcels are promised of %d", entitled, s.Firm)
	}
	for i := range uses {
		p := &in.Wants[i].Parcels[0]
		more := max(min(d.Share(in.Tenants[i].ID).Parcels[0].Limit, uses[i], p.N+free)-p.N, 0)
		p.N, free = p.N+more, free-more
	}
}
