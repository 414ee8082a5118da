package planner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// onParcels is a yard of two machines of the offline pool and one that is lent, with tenants a and b under one house: b is guaranteed one machine,
// and no resources bind anybody.
func onParcels() *yard {
	y := newYard(2, 1)
	for _, id := range []string{"a", "b", "house"} {
		y.s.Tenants = append(y.s.Tenants, fleet.Tenant{ID: fleet.TenantID(id), Namespaces: []string{id}, Parent: "house", Accepted: true, Drain: 10 * time.Minute})
	}
	y.s.Tenants[2].Parent = ""
	y.s.Tenants[1].Parcels = []fleet.ParcelQuota{{Class: fleet.ParcelClass{Kind: fleet.KindNode}, Guarantee: 1}}
	return y
}

// machines counts those on which pods of a namespace are.
func (y *yard) machines(namespace string) int {
	on := map[fleet.NodeID]bool{}
	for i := range y.s.Pods {
		if p := &y.s.Pods[i]; p.Name.Namespace == namespace && p.NodeName != "" {
			on[p.Node] = true
		}
	}
	return len(on)
}

// Machines that were borrowed go back when their lender wants what is guaranteed to it: after the notice and no sooner,
// from members above the minima, else from whole gangs, as few as will do; and no member comes back to them.
func TestBorrowedMachinesGoBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		borrower func(y *yard)
		lender   func(y *yard)
		left     map[string]int // members that run at the end
		machines int            // those that b is on at the end
	}{
		{"growth of a job of more importance", func(y *yard) {
			j := y.job("grown", member("worker", 16, 2, 12))
			j.ID, j.Priority = "a/grown", fleet.PriorityHigh
		},
			func(y *yard) { y.job("own", member("worker", 16, 4, 4)).ID = "b/own" }, map[string]int{"a/grown": 8, "b/own": 4}, 1},
		{"a gang", func(y *yard) { y.job("ring", member("worker", 16, 12, 12)).ID = "a/ring" },
			func(y *yard) { y.job("own", member("worker", 16, 4, 4)).ID = "b/own" }, map[string]int{"a/ring": 0, "b/own": 4}, 1},
		{"the smallest of the gangs", func(y *yard) {
			y.job("large", member("worker", 16, 8, 8)).ID = "a/large"
			y.job("small", member("worker", 60, 1, 1)).ID = "a/small"
		}, func(y *yard) { y.job("own", member("worker", 16, 4, 4)).ID = "b/own" }, map[string]int{"a/large": 8, "a/small": 0, "b/own": 4}, 1},
		{"a gang, for a job without one", func(y *yard) { y.job("ring", member("worker", 16, 12, 12)).ID = "a/ring" },
			func(y *yard) { y.job("own", member("worker", 16, 0, 4)).ID = "b/own" }, map[string]int{"a/ring": 0, "b/own": 4}, 1},
		{"nothing, for growth beyond its own", func(y *yard) { y.job("ring", member("worker", 60, 2, 2)).ID = "a/ring" },
			func(y *yard) { y.job("own", member("worker", 16, 4, 8)).ID = "b/own" }, map[string]int{"a/ring": 2, "b/own": 4}, 1},
		{"no more than the lender fills", func(y *yard) {
			for _, name := range []string{"one", "two", "three"} {
				y.job(name, member("worker", 60, 1, 1)).ID = fleet.JobID("a/" + name)
			}
		}, func(y *yard) {
			y.s.Tenants[1].Parcels[0].Guarantee = 2
			y.job("own", member("worker", 16, 4, 4)).ID = "b/own"
		}, map[string]int{"a/one": 1, "a/two": 1, "a/three": 0, "b/own": 4}, 1},
		{"nothing, for a job that is blocked", func(y *yard) { y.job("ring", member("worker", 16, 12, 12)).ID = "a/ring" }, func(y *yard) {
			j := y.job("own", member("worker", 16, 4, 4))
			j.ID, j.Blocked = "b/own", fleet.Problem{Reason: "WorkloadNotFound", Message: "its workload is not there"}
		}, map[string]int{"a/ring": 12, "b/own": 0}, 0},
		{"nothing, for what fits on no machine", func(y *yard) { y.job("grown", member("worker", 16, 2, 12)).ID = "a/grown" },
			func(y *yard) { y.job("own", member("worker", 65, 1, 1)).ID = "b/own" }, map[string]int{"a/grown": 12, "b/own": 0}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := onParcels()
			c.borrower(y)
			for range 4 {
				y.cycle()
			}
			before := y.machines("a")
			c.lender(y)
			since := y.s.At
			for range 40 {
				y.cycle()
				if got := y.machines("a"); y.s.At.Sub(since) <= 10*time.Minute && got != before {
					t.Fatalf("%s after the lender asked a is on %d of %d machines", y.s.At.Sub(since), got, before)
				}
			}
			for id, want := range c.left {
				if got := y.running(fleet.JobID(id), "worker"); got != want {
					t.Errorf("%d members of %s run, want %d: %+v\n%+v", got, id, want, y.plan.Gangs, y.plan.Division.Shares)
				}
			}
			if got := y.machines("b"); got != c.machines {
				t.Errorf("b is on %d machines, want %d", got, c.machines)
			}
		})
	}
}

// A departure says why, and work that leaves already does not leave twice: neither what ends, nor a launcher without
// its gang.
func TestLeavingParcelsSaysWhy(t *testing.T) {
	for _, c := range []struct {
		name string
		bend func(y *yard)
		want int32
	}{
		{"due", func(*yard) {}, 8},
		{"what ends already", func(y *yard) {
			for i := range 4 { // the youngest are on the first machine
				y.s.Pods[11-i].Deleting = true
			}
			y.s.Jobs[0].Members[0].Desired = 8
		}, 8},
		{"frozen", func(y *yard) { y.s.Frozen = "audit" }, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := onParcels()
			j := y.job("grown", member("worker", 16, 2, 12))
			j.ID, j.Priority = "a/grown", fleet.PriorityHigh
			for range 4 {
				y.cycle()
			}
			y.job("own", member("worker", 16, 4, 4)).ID = "b/own"
			since := y.s.At.Add(-time.Hour)
			y.s.Tenants[0].OverSince = since
			y.s.Tenants[0].Notices = []fleet.QuotaNotice{{Since: since, Parcels: []fleet.ParcelDebt{{Class: fleet.ParcelClass{Kind: fleet.KindNode}, N: 1, Used: 3}}}}
			closed(&y.s, true) // who was given notice waits for no ledger
			c.bend(y)
			y.s.Sort()
			plan := made(Input{Snapshot: &y.s, Gangs: y.gangs, Options: DefaultOptions()})
			got, why, charged := y.member("a/grown", "worker").Desired, "", 0
			if i := slices.IndexFunc(plan.Jobs, func(j JobScale) bool { return j.Job == "a/grown" }); i >= 0 {
				got, why = plan.Jobs[i].To, plan.Jobs[i].Why.Text()
				for _, x := range plan.Jobs[i].Charges {
					if x.Due {
						charged += x.Pods
					}
				}
			}
			if got != c.want {
				t.Errorf("%d members stay, want %d: %+v", got, c.want, plan.Division.Share("a").Parcels)
			}
			if say := fmt.Sprintf("quota a had to leave 1 of 3 Node by %s", since.Add(10*time.Minute).Format("15:04:05 MST")); c.name == "due" && (charged != 4 || !strings.Contains(why, say)) {
				t.Errorf("%q and %d pods charged as due, want %q and 4", why, charged, say)
			}
		})
	}
}

// parcels gives a tenant terms for whole machines.
func (w *world) parcels(t *testing.T, f []string) {
	t.Helper()
	num := func(word string) int64 {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	x := &w.s.Tenants[slices.IndexFunc(w.s.Tenants, func(x fleet.Tenant) bool { return string(x.ID) == f[0] })]
	q := fleet.ParcelQuota{Class: fleet.ParcelClass{Kind: fleet.KindNode}, Guarantee: num(f[1])}
	for i := 2; i < len(f); i++ {
		switch f[i] {
		case "borrows":
			q.BorrowingLimit = fleet.KnownAt(num(f[i+1]), t0)
			i++
		case "told":
			x.OverSince = t0.Add(-time.Duration(num(f[i+1])) * time.Minute)
			x.Notices = []fleet.QuotaNotice{{Since: x.OverSince, Parcels: []fleet.ParcelDebt{{Class: q.Class, N: num(f[i+2]), Used: num(f[i+3])}}}}
			i += 3
		default:
			t.Fatalf("unknown word %q", f[i])
		}
	}
	x.Parcels = []fleet.ParcelQuota{q}
}

// job adds a job of workers; the first one takes the place of that which every world has.
func (w *world) job(id string, cores, least, most int, words []string) {
	if w.s.Jobs[0].ID == "batch/train" {
		w.s.Jobs = nil
	}
	name := fleet.ParseName(id)
	mem := member("worker", cores, least, most)
	mem.Kind, mem.Workload = "Job", name
	j := fleet.Job{ID: fleet.JobID(id), Created: t0.Add(time.Duration(len(w.s.Jobs))*time.Minute - time.Hour), Members: []fleet.Member{mem}}
	for _, word := range words {
		switch word {
		case "high":
			j.Priority = fleet.PriorityHigh
		case "waits":
			j.Gang = fleet.Gang{Phase: fleet.GangWaiting, Since: t0.Add(-time.Minute)}
		case "named":
			j.Members[0].Leaves = fleet.LeavesNamed
		case "launcher":
			j.Members = append(j.Members, fleet.Member{Role: "launcher", Fixed: true, Stable: true, Min: 1, Max: 1, Desired: 1, Remaining: -1, Request: fleet.Resources{CPU: 1000}})
		}
	}
	w.s.Jobs = append(w.s.Jobs, j)
}

// on puts members of a job on a machine, each younger than the one before.
func (w *world) on(machine int, job string, n int, words []string) {
	node := &w.s.Nodes[machine]
	j := slices.IndexFunc(w.s.Jobs, func(j fleet.Job) bool { return string(j.ID) == job })
	for range n {
		k := len(w.s.Pods)
		p := fleet.Pod{ID: fleet.UID(fmt.Sprintf("on-%03d", k)), Node: node.ID, NodeName: node.Name, Class: fleet.PodOffline, Phase: fleet.PodRunning, Ready: true,
			Created: t0.Add(time.Duration(k)*time.Second - time.Hour), Requests: fleet.Resources{CPU: 16000}, Name: fleet.Name{Namespace: "a", Name: fmt.Sprintf("on-%03d", k)}}
		if j >= 0 {
			x := &w.s.Jobs[j]
			mem := &x.Members[0]
			if len(words) > 0 && words[0] == "launcher" {
				mem = &x.Members[1]
			}
			p.Job, p.Role, p.Name.Namespace, p.Requests = x.ID, mem.Role, fleet.ParseName(string(x.ID)).Namespace, mem.Request
			p.Deleting = len(words) > 0 && words[0] == "ending"
			if !p.Deleting && !mem.Fixed {
				mem.Desired++
				mem.Active++
			}
			if x.Gang.Phase == "" && mem.Min > 0 {
				x.Gang = fleet.Gang{Phase: fleet.GangWhole, Since: t0.Add(-time.Hour), Ran: true}
			}
		}
		w.s.Pods = append(w.s.Pods, p)
	}
}

// A machine that was recalled and is left, but not back yet, is for no tenant: the work that was there finds no room
// among what another is guaranteed.
func TestARecallSellsNoGuarantee(t *testing.T) {
	for _, c := range []struct {
		name  string
		phase fleet.Phase
		want  int
	}{{"lent", fleet.Lent, 4}, {"called home", fleet.Draining, 0}, {"back", fleet.Returned, 0}} {
		t.Run(c.name, func(t *testing.T) {
			y := onParcels()
			y.s.Tenants[1].Parcels[0].Guarantee = 2
			if y.s.Loans[0].Phase = c.phase; c.phase != fleet.Lent {
				y.recall(y.s.Loans[0].Node)
				y.s.Loans[0].Phase = c.phase
			}
			j := y.job("ring", member("worker", 16, 4, 4))
			j.ID, j.Priority = "a/ring", fleet.PriorityHigh
			y.job("own", member("worker", 16, 4, 8)).ID = "b/own"
			for range 5 {
				y.cycle()
			}
			if a, b := y.running("a/ring", "worker"), y.running("b/own", "worker"); a != c.want || b != 8 {
				t.Errorf("the borrower runs %d, want %d, and the lender %d of 8: %+v", a, c.want, b, y.plan.Division.Shares)
			}
		})
	}
}
