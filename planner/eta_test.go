package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// risingAt is an outlook in which so many cores can be lent from an hour on, after nothing before it, in each band an hour later.
func risingAt(hour int, cores int64) *Outlook {
	o := &Outlook{At: t0}
	for b := range bands {
		o.Begin[b], o.Stay[b] = make([]fleet.Resources, outlookSteps), make([]fleet.Resources, outlookSteps)
		for k := range outlookSteps {
			if stepStart(k) >= time.Duration(hour+b)*time.Hour {
				o.Begin[b][k] = fleet.Resources{CPU: fleet.MilliCPU(1000 * cores), Memory: 1 << 50}
				o.Stay[b][k] = o.Begin[b][k]
			}
		}
	}
	return o
}

func etasOf(y *yard, o *Outlook, said map[fleet.JobID]ETA) []ETA {
	y.s.Sort()
	return made(Input{Snapshot: &y.s, Gangs: y.gangs, ETAs: said, Outlook: o, Options: DefaultOptions()}).ETAs
}

// batch is the tenant of all jobs, which borrows nothing.
func (y *yard) batch(cores int64) *fleet.Tenant {
	y.s.Tenants = append(y.s.Tenants, fleet.Tenant{ID: "batch", Namespaces: []string{"batch"}, Accepted: true, Guarantee: cpu(cores), BorrowingLimit: fleet.KnownAt(cpu(0), t0)})
	return &y.s.Tenants[0]
}

// borrowed gives the first machine to offline, which lends it to online.
func (y *yard) borrowed(due time.Time) {
	n := &y.s.Nodes[0]
	n.Pool = "offline"
	l := fleet.Loan{ID: "out", Kind: fleet.KindNode, Node: n.ID, NodeName: n.Name, Cells: n.AllCells(), Capacity: n.Allocatable, From: "offline", To: "online",
		Phase: fleet.Lent, Epoch: 1, Created: t0, Since: t0, Due: due}
	n.Share = fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{{Cells: l.Cells, Holder: "online", Loan: l.ID, Epoch: 1}}}
	y.s.Loans = append(y.s.Loans, l)
}

// begun is a job whose minimum is asked for.
func (y *yard) begun(name string, members ...fleet.Member) {
	j := y.job(name, members...)
	j.Members[0].Desired = j.Members[0].Min
	y.gangs[j.ID] = fleet.Gang{Phase: fleet.GangForming, Since: y.s.At}
}

// backedOff is a job that gave back its room, and is tried again in a while.
func (y *yard) backedOff(name string, in time.Duration) {
	y.gangs[fleet.JobID("batch/"+name)] = fleet.Gang{Phase: fleet.GangBackedOff, Since: y.s.At.Add(-time.Minute), RetryAt: y.s.At.Add(in), Tries: 3}
}

func nightly(start string, cores int64) []fleet.Slice {
	return []fleet.Slice{{Window: fleet.Window{Name: "night", Schedule: start, Duration: 4 * time.Hour, Zone: time.UTC}, Guarantee: cpu(cores)}}
}

func machinesAtMost(n int64) []fleet.ParcelQuota {
	return []fleet.ParcelQuota{{Class: fleet.ParcelClass{Kind: fleet.KindNode}, Guarantee: n, BorrowingLimit: fleet.KnownAt(int64(0), t0)}}
}

// The status of a waiting job: a band where the tide brings room, and the reason where nothing does.
func TestETA(t *testing.T) {
	for _, c := range []struct {
		name     string
		members  []fleet.Member
		outlook  *Outlook
		bend     func(y *yard)
		kind     string
		expected time.Duration // from now; 0 for none
		why      string
	}{
		{"room at four", []fleet.Member{member("worker", 32, 4, 4)}, risingAt(3, 128), nil, WaitsForTide, 4*time.Hour - 15*time.Minute, "it needs cpu=128 to begin"},
		{"what does not divide a machine is lost", []fleet.Member{member("worker", 33, 3, 3)}, risingAt(3, 128), nil, WaitsForRoom, 0, "it needs cpu=192"},
		{"more than any time leaves", []fleet.Member{member("worker", 32, 5, 5)}, risingAt(3, 128), nil, WaitsForRoom, 0, "not expected within 7 days, of which the best leaves it cpu=128"},
		{"larger than a machine", []fleet.Member{member("worker", 65, 1, 1)}, risingAt(3, 128), nil, WaitsForSize, 0, "no machine that it may land on"},
		{"stable", []fleet.Member{{Role: "ps", Min: 1, Max: 1, Remaining: -1, Stable: true, Request: cpu(8)}}, risingAt(3, 128), nil, WaitsForSize, 0, "a ps asks for cpu=8"},
		{"stable where home is full", []fleet.Member{{Role: "ps", Min: 9, Max: 9, Remaining: -1, Stable: true, Request: cpu(8)}}, risingAt(3, 128),
			func(y *yard) { y.s.Nodes[0].Pool = "offline" }, WaitsForHome, 0, "its stable members need cpu=72 "},
		{"a quota that is never enough", []fleet.Member{member("worker", 32, 4, 4)}, risingAt(3, 128), func(y *yard) {
			y.s.Tenants = []fleet.Tenant{{ID: "batch", Namespaces: []string{"batch"}, Accepted: true, Guarantee: cpu(64), BorrowingLimit: fleet.KnownAt(cpu(0), t0)}}
		}, WaitsForQuota, 0, "quota batch may use at most cpu=64"},
		{"a quota that another job has for itself", []fleet.Member{member("worker", 32, 2, 2)}, risingAt(3, 256), func(y *yard) {
			y.batch(64)
			y.begun("ring", member("worker", 32, 2, 2))
		}, WaitsForQuotaRoom, 0, "others hold or get cpu=64 before it (batch/ring), and quota batch may use at most cpu=64"},
		{"a quota that is enough for both", []fleet.Member{member("worker", 32, 2, 2)}, risingAt(3, 256), func(y *yard) {
			y.batch(128)
			y.begun("ring", member("worker", 32, 2, 2))
		}, WaitsForTide, 4*time.Hour - 15*time.Minute, "jobs before it: 1"},
		{"one that its quota keeps from beginning goes before nobody", []fleet.Member{member("worker", 32, 2, 2)}, risingAt(3, 64), func(y *yard) {
			y.batch(64)
			y.job("earlier", member("worker", 32, 3, 3)).Created = t0.Add(-time.Hour)
		}, WaitsForTide, 4*time.Hour - 15*time.Minute, "jobs before it: 0"},
		{"what machines lose counts for no quota", []fleet.Member{member("worker", 33, 3, 3)}, risingAt(3, 256), func(y *yard) { y.batch(99) },
			WaitsForTide, 4*time.Hour - 15*time.Minute, "it needs cpu=192"},
		{"a slice tonight", []fleet.Member{member("worker", 32, 4, 4)}, risingAt(0, 128), func(y *yard) {
			y.batch(0).Slices = nightly("0 2 * * *", 200)
		}, WaitsForTide, 4 * time.Hour, "its quota is enough only while a slice is open"},
		{"a slice beyond the week", []fleet.Member{member("worker", 32, 4, 4)}, risingAt(0, 128), func(y *yard) {
			y.batch(0).Slices = nightly("0 2 20 * *", 200)
		}, WaitsForQuotaRoom, 0, "no slice that is open within 7 days is enough"},
		{"a slice that is never enough", []fleet.Member{member("worker", 32, 4, 4)}, risingAt(0, 128), func(y *yard) {
			y.batch(0).Slices = nightly("0 2 * * *", 100)
		}, WaitsForQuota, 0, "quota batch may use at most cpu=100"},
		{"a limit above its own", []fleet.Member{member("worker", 32, 4, 4)}, risingAt(3, 128), func(y *yard) {
			y.batch(64).BorrowingLimit.OK = false
			y.s.Tenants[0].Parent = "company"
			y.s.Tenants = append(y.s.Tenants, fleet.Tenant{ID: "company", Accepted: true, Guarantee: cpu(96), BorrowingLimit: fleet.KnownAt(cpu(0), t0)})
		}, WaitsForQuota, 0, "quota company, which quota batch is below, may use at most cpu=96"},
		{"no borrowing limit", []fleet.Member{member("worker", 32, 4, 4)}, risingAt(3, 128), func(y *yard) { y.batch(64).BorrowingLimit.OK = false },
			WaitsForTide, 4*time.Hour - 15*time.Minute, ""},
		{"too few machines", []fleet.Member{member("worker", 32, 4, 4)}, risingAt(3, 128), func(y *yard) { y.batch(256).Parcels = machinesAtMost(1) },
			WaitsForQuota, 0, "it needs at least 2 of parcels Node to begin, and quota batch may use at most 1"},
		{"machines enough", []fleet.Member{member("worker", 32, 4, 4)}, risingAt(3, 128), func(y *yard) { y.batch(256).Parcels = machinesAtMost(2) },
			WaitsForTide, 4*time.Hour - 15*time.Minute, ""},
		{"sockets instead of machines", []fleet.Member{member("worker", 32, 4, 4)}, risingAt(3, 128), func(y *yard) {
			y.batch(256).Parcels = machinesAtMost(1)
			y.s.Pools[1].Unit = fleet.UnitSocket
		}, WaitsForTide, 4*time.Hour - 15*time.Minute, ""},
		{"behind another", []fleet.Member{member("worker", 32, 2, 2)}, risingAt(3, 96), func(y *yard) {
			y.job("earlier", member("worker", 32, 2, 2)).Created = t0.Add(-time.Hour)
		}, WaitsForRoom, 0, "jobs before it: 1, which hold or get cpu=64"},
		{"before another", []fleet.Member{member("worker", 32, 2, 2)}, risingAt(3, 96), func(y *yard) { y.job("later", member("worker", 32, 2, 2)) },
			WaitsForTide, 4*time.Hour - 15*time.Minute, "jobs before it: 0"},
		{"room before it is tried again", []fleet.Member{member("worker", 32, 4, 4)}, risingAt(-2, 128), func(y *yard) { y.backedOff("train", 40*time.Minute) },
			WaitsForRetry, 45 * time.Minute, "it needs cpu=128 to begin"},
		{"tried again before there is room", []fleet.Member{member("worker", 32, 4, 4)}, risingAt(3, 128), func(y *yard) { y.backedOff("train", 40*time.Minute) },
			WaitsForRetry, 4*time.Hour - 15*time.Minute, ""},
		{"tried again, and never room", []fleet.Member{member("worker", 32, 5, 5)}, risingAt(3, 128), func(y *yard) { y.backedOff("train", 40*time.Minute) },
			WaitsForRoom, 0, "not expected within 7 days"},
		{"home is borrowed until it is due", []fleet.Member{member("worker", 32, 2, 2)}, risingAt(300, 128), func(y *yard) { y.borrowed(t0.Add(2 * time.Hour)) },
			WaitsForTide, 2*time.Hour - 20*time.Minute, "it needs cpu=64 to begin"},
		{"home is borrowed, and never due", []fleet.Member{member("worker", 32, 2, 2)}, risingAt(300, 128), func(y *yard) { y.borrowed(time.Time{}) },
			WaitsForRoom, 0, "of which the best leaves it cpu=0"},
		{"the tide comes before home is due", []fleet.Member{member("worker", 32, 2, 2)}, risingAt(3, 64), func(y *yard) { y.borrowed(t0.Add(24 * time.Hour)) },
			WaitsForTide, 4*time.Hour - 15*time.Minute, ""},
		{"no outlook yet", []fleet.Member{member("worker", 32, 4, 4)}, nil, nil, WaitsForOutlook, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The machines are online and lend; nothing is lent now.
			y := newYard(0, 4)
			y.s.Loans, y.s.Pools[1].Mode = nil, fleet.Auto
			for i := range y.s.Nodes {
				y.s.Nodes[i].Share, y.s.Nodes[i].Marks = fleet.Share{}, fleet.NodeMarks{}
			}
			y.job("train", c.members...)
			if c.bend != nil {
				c.bend(y)
			}
			etas := etasOf(y, c.outlook, nil)
			i := slices.IndexFunc(etas, func(e ETA) bool { return e.Job == "batch/train" })
			if i < 0 {
				t.Fatalf("no ETA: %+v", etas)
			}
			got := etas[i]
			if got.Kind != c.kind || !strings.Contains(got.Why.Text(), c.why) {
				t.Errorf("%s: %s; want %s: …%s…", got.Kind, got.Why, c.kind, c.why)
			}
			switch {
			case c.expected == 0 && !got.Expected.IsZero():
				t.Errorf("expected at %s, want none", got.Expected.Sub(t0))
			case c.expected != 0 && got.Expected.Sub(t0) != c.expected:
				t.Errorf("expected in %s, want in %s", got.Expected.Sub(t0), c.expected)
			}
			if c.expected == 4*time.Hour-15*time.Minute && (got.Earliest.Sub(t0) != 2*time.Hour+15*time.Minute || got.Latest.Sub(t0) != 5*time.Hour+30*time.Minute) {
				t.Errorf("band %s to %s", got.Earliest.Sub(t0), got.Latest.Sub(t0))
			}
		})
	}
}

// A stated time stands while it is about right, and a running job has none.
func TestETASteady(t *testing.T) {
	said := ETA{Job: "batch/train", Earliest: t0.Add(2 * time.Hour), Expected: t0.Add(3 * time.Hour), Latest: t0.Add(4 * time.Hour), Members: 4, Kind: WaitsForTide, Why: reason.Said("said")}
	for _, c := range []struct {
		name  string
		shift time.Duration
		bend  func(e *ETA)
		same  bool
	}{
		{"as said", 0, nil, true},
		{"a quarter later", 15 * time.Minute, nil, true},
		{"an hour later", time.Hour, nil, false},
		{"for more members", 0, func(e *ETA) { e.Members++ }, false},
		{"for another reason", 0, func(e *ETA) { e.Kind = WaitsForRoom }, false},
		{"never", 0, func(e *ETA) { e.Latest = time.Time{} }, false},
		{"when all of it has passed", -5 * time.Hour, nil, false},
	} {
		now := said
		for _, p := range []*time.Time{&now.Earliest, &now.Expected, &now.Latest} {
			*p = p.Add(c.shift)
		}
		if c.bend != nil {
			c.bend(&now)
		}
		if got := said.stillTrue(&now, t0); got != c.same {
			t.Errorf("%s: still true %v", c.name, got)
		}
	}
	y := newYard(2, 0)
	y.job("train", member("worker", 32, 4, 4))
	y.cycle()
	y.cycle()
	if got := etasOf(y, risingAt(1, 64), nil); len(got) != 0 {
		t.Errorf("a job that runs waits for nothing: %+v", got)
	}
}

func TestJudge(t *testing.T) {
	e := ETA{Earliest: t0, Latest: t0.Add(time.Hour)}
	open := ETA{Earliest: t0}
	never := ETA{}
	for _, c := range []struct {
		e    ETA
		at   time.Duration
		want Verdict
	}{{e, -time.Minute, BeganEarly}, {e, 0, BeganWithin}, {e, time.Hour, BeganWithin}, {e, 61 * time.Minute, BeganLate}, {open, 100 * time.Hour, BeganWithin},
		{never, time.Hour, BeganEarly}} {
		if got := c.e.Judge(t0.Add(c.at)); got != c.want {
			t.Errorf("%+v at %s: %s, want %s", c.e, c.at, got, c.want)
		}
	}
}

// The band is in order, whatever the days ahead look like.
func TestPropertyBandInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &Outlook{At: t0.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "age")) * time.Minute)}
		for b := range bands {
			o.Begin[b], o.Stay[b] = make([]fleet.Resources, outlookSteps), make([]fleet.Resources, outlookSteps)
			slope, bend := rapid.IntRange(1, 7).Draw(t, "slope"), rapid.IntRange(0, 3).Draw(t, "bend")
			for k := range outlookSteps {
				free := fleet.Resources{CPU: fleet.MilliCPU(1000 * ((k*slope + k*k*bend) % 300)), Memory: 1 << 50}
				o.Begin[b][k], o.Stay[b][k] = free, free
			}
		}
		y := newYard(0, 4)
		y.s.Loans, y.s.Pools[1].Mode = nil, fleet.Auto
		y.job("train", member("worker", rapid.IntRange(1, 64).Draw(t, "cores"), rapid.IntRange(1, 8).Draw(t, "members"), 8))
		for _, e := range etasOf(y, o, nil) {
			if e.Earliest.After(e.Expected) && !e.Expected.IsZero() || e.Expected.After(e.Latest) && !e.Latest.IsZero() || e.Expected.IsZero() && !e.Latest.IsZero() {
				t.Fatalf("%+v", e)
			}
		}
	})
}

// Pods are not moved to empty machines: what is lent is what falls from the top, or lies in free sockets, and never what online keeps.
func TestEmptied(t *testing.T) {
	y := &poolRoom{capacity: cpu(256), asked: 96000, on: []fleet.MilliCPU{0, 16000, 32000, 48000}, below: []fleet.MilliCPU{0, 0, 16000, 48000, 96000},
		each: 64000, parcel: 64000}
	sockets := *y
	sockets.parcel = 32000
	for _, c := range []struct {
		name             string
		y                *poolRoom
		top, asked, keep fleet.MilliCPU
		want             fleet.MilliCPU
	}{
		{"one stands empty", y, 96000, 96000, 100000, 64000},
		{"sixteen cores leave another", y, 96000, 80000, 100000, 128000},
		{"not more than online can spare", y, 96000, 80000, 150000, 64000},
		{"at the top it is filled", y, 256000, 256000, 0, 0},
		{"and falls empty again from there", y, 256000, 128000, 0, 128000},
		{"by sockets", &sockets, 96000, 96000, 0, 64000 + 32000 + 32000},
		{"nothing is asked for", y, 96000, 0, 0, 256000},
		{"no machines", &poolRoom{}, 5, 5, 0, 0},
	} {
		if got := c.y.emptied(c.top, c.asked, c.keep); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
