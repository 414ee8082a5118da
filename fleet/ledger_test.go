package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var ledgerTime = time.Date(2026, 3, 2, 22, 0, 0, 0, time.UTC)

func TestSpending(t *testing.T) {
	const cart = "service shop/cart"
	budget := DisruptionBudget{EvictionsPerMinute: 6, ServiceShare: 0.2, FleetShare: 0.1}
	before := func(ago time.Duration, owner string, pods int) Ledger {
		return Ledger{}.Charge(ledgerTime.Add(-ago), owner, pods)
	}
	for name, c := range map[string]struct {
		ledger    Ledger
		cart, all int // pods there now
		takes     int
		by        string
	}{
		"nothing spent: the minute":              {Ledger{}, 100, 1000, 6, "6 pods a minute"},
		"the minute is half spent":               {before(30*time.Second, "service shop/pay", 4), 100, 1000, 2, "6 pods a minute"},
		"the minute is over":                     {before(time.Minute, "service shop/pay", 6), 100, 1000, 6, "6 pods a minute"},
		"a minute from the future is none":       {before(-time.Hour, "service shop/pay", 6), 100, 1000, 6, "6 pods a minute"},
		"recalls stand beside it":                {Ledger{}.ChargeRecalls(ledgerTime, 1000), 100, 1000, 6, "6 pods a minute"},
		"a fifth of the service":                 {Ledger{}, 20, 1000, 4, "20 % of one service"},
		"a fifth of what it was before":          {before(5*time.Minute, cart, 2), 18, 1000, 2, "20 % of one service"},
		"the span is over":                       {before(10*time.Minute, cart, 4), 20, 1000, 4, "20 % of one service"},
		"what another service lost is not its":   {before(5*time.Minute, "service shop/pay", 4), 20, 1000, 4, "20 % of one service"},
		"one pod of a small service":             {Ledger{}, 2, 1000, 1, "20 % of one service"},
		"a tenth of the pool":                    {Ledger{}, 100, 30, 3, "10 % of its pods"},
		"a tenth of the pool, others' share too": {before(5*time.Minute, "service shop/pay", 2), 100, 28, 1, "10 % of its pods"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := Pool{ID: "web", Budget: budget, Ledger: c.ledger}
			s := pool.Spend(ledgerTime, c.all)
			takes, by := 0, ""
			for by == "" {
				if by = s.Take(cart, c.cart, 1); by == "" {
					takes++
				}
			}
			if takes != c.takes || !strings.Contains(by, c.by) || !strings.Contains(by, "pool web") || s.Spent[cart] != takes {
				t.Errorf("%d taken, then %q; want %d, then %q", takes, by, c.takes, c.by)
			}
		})
	}
}

func TestLedgerTellsAFewOwnersApart(t *testing.T) {
	pool := Pool{Budget: DisruptionBudget{EvictionsPerMinute: 10 * MaxLedgerOwners, ServiceShare: 1, FleetShare: 1}}
	s := pool.Spend(ledgerTime, 10*MaxLedgerOwners)
	for i := range MaxLedgerOwners {
		if by := s.Take(fmt.Sprint(i), 10, 1); by != "" {
			t.Fatal(by)
		}
	}
	if by := s.Take("one more", 10, 1); !strings.Contains(by, "tells no more than 500") {
		t.Errorf("one more: %q", by)
	}
	if by := s.Take("7", 10, 1); by != "" {
		t.Errorf("one that is there already: %q", by)
	}
}

// However plans and restarts come, no minute of a ledger holds more than its budget, and no span more than its share of any service and of
// all pods that were there when it began.
func TestLedgerIsNeverOverspent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := Pool{Budget: DisruptionBudget{EvictionsPerMinute: rapid.IntRange(0, 8).Draw(t, "a minute"),
			ServiceShare: rapid.Float64Range(0.01, 1).Draw(t, "service"), FleetShare: rapid.Float64Range(0.01, 1).Draw(t, "fleet")}}
		pods := map[string]int{"a": rapid.IntRange(1, 40).Draw(t, "a"), "b": rapid.IntRange(1, 40).Draw(t, "b")}
		now, began := ledgerTime, map[string]int{}
		for range rapid.IntRange(1, 60).Draw(t, "plans") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			all := pods["a"] + pods["b"]
			if pool.Ledger = pool.Ledger.at(now); pool.Ledger.Owners == nil {
				began = map[string]int{"a": pods["a"], "b": pods["b"], "all": all}
			}
			s := pool.Spend(now, all)
			for range rapid.IntRange(0, 10).Draw(t, "takes") {
				owner := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "owner")
				if pods[owner] > s.Spent[owner] {
					s.Take(owner, pods[owner], 1)
				}
			}
			for _, owner := range []string{"a", "b"} {
				if n := s.Spent[owner]; n > 0 {
					pool.Ledger = pool.Ledger.Charge(now, owner, n)
					pods[owner] -= n // they are gone by the next plan
				}
			}
			if pool.Ledger.Evictions > pool.Budget.EvictionsPerMinute {
				t.Fatalf("%d in a minute of %d", pool.Ledger.Evictions, pool.Budget.EvictionsPerMinute)
			}
			for _, owner := range []string{"a", "b"} {
				if n, _ := pool.Ledger.taken(owner); n > portion(pool.Budget.ServiceShare, began[owner]) {
					t.Fatalf("%d of the %d pods of %s in a span, %.2f allowed", n, began[owner], owner, pool.Budget.ServiceShare)
				}
			}
			if _, n := pool.Ledger.taken(""); n > portion(pool.Budget.FleetShare, began["all"]) {
				t.Fatalf("%d of %d pods in a span, %.2f allowed", n, began["all"], pool.Budget.FleetShare)
			}
		}
	})
}

func TestPodsByPool(t *testing.T) {
	s := Snapshot{Nodes: []Node{{ID: "n1", Pool: "web"}, {ID: "n2"}}, Pods: []Pod{
		{Node: "n1", NodeName: "n1", Class: PodOnline}, {Node: "n1", NodeName: "n1", Class: PodOffline}, {Node: "n1", NodeName: "n1", Class: PodSystem},
		{Node: "n1", NodeName: "n1", Class: PodFiller}, {Node: "n1", NodeName: "n1", Class: PodOnline, Phase: PodFailed}, {Class: PodOnline},
		{Node: "n2", NodeName: "n2", Class: PodOnline}}}
	if got := s.PodsByPool(); len(got) != 1 || got["web"] != 2 {
		t.Errorf("%v, want two pods of pool web", got)
	}
}

// Pods that go together go together or not at all.
func TestLedgerTakesAllOrNone(t *testing.T) {
	pool := Pool{ID: "web", Budget: DisruptionBudget{EvictionsPerMinute: 6, ServiceShare: 0.5, FleetShare: 0.1}}
	for _, c := range []struct {
		cart, all, pods int
		by              string
	}{
		{100, 1000, 6, ""}, {100, 1000, 7, "6 pods a minute"}, {10, 1000, 5, ""}, {10, 1000, 6, "50 % of one service"}, {100, 40, 4, ""}, {100, 40, 5, "10 % of its pods"},
	} {
		s := pool.Spend(ledgerTime, c.all)
		by := s.Take("service shop/cart", c.cart, c.pods)
		if want := map[bool]int{true: c.pods}[c.by == ""]; s.Spent["service shop/cart"] != want || !strings.Contains(by, c.by) || (by == "") != (c.by == "") {
			t.Errorf("%d of %d: %q, %d spent", c.pods, c.cart, by, s.Spent["service shop/cart"])
		}
	}
}

// A roll-over of any size begins at an untouched ledger, and leaves nothing of it; next to others it must fit.
func TestLedgerOfARollOver(t *testing.T) {
	pool := Pool{ID: "web", Budget: DisruptionBudget{EvictionsPerMinute: 6, ServiceShare: 0.2, FleetShare: 0.1}}
	s := pool.Spend(ledgerTime, 100)
	if by := s.Roll("service shop/cart", 50); by != "" || s.Spent["service shop/cart"] != 50 {
		t.Errorf("%q, %d spent", by, s.Spent["service shop/cart"])
	}
	if by := s.Take("service shop/pay", 10, 1); by == "" {
		t.Error("beside a roll-over that is larger than the budget others go")
	}
	if by := s.Roll("service shop/pay", 1); by == "" {
		t.Error("two roll-overs are larger than the budget")
	}
	for pods, by := range map[int]string{4: "", 5: "6 pods a minute"} {
		s = pool.Spend(ledgerTime, 1000)
		s.Take("service shop/pay", 100, 2)
		if got := s.Roll("service shop/cart", pods); !strings.Contains(got, by) || (got == "") != (by == "") {
			t.Errorf("%d beside two: %q", pods, got)
		}
	}
}

// Pods on a machine that online borrows count where their leaving is charged: in the pool that borrows it, for as long as it holds the machine.
func TestPodsOnBorrowedMachinesCountForTheBorrower(t *testing.T) {
	for _, c := range []struct {
		from, to PoolID
		phase    Phase
		want     PoolID
	}{
		{"batch", "web", Emptying, "batch"},
		{"batch", "web", Lent, "web"},
		{"batch", "web", Noticed, "web"},
		{"batch", "web", Draining, "web"},
		{"batch", "web", Returned, "batch"},
		{"web", "batch", Lent, "web"},
		{"web", "batch", Noticed, "web"},
	} {
		s := Snapshot{Nodes: []Node{{ID: "n1", Pool: c.from}}, Pools: []Pool{{ID: "batch", Class: Offline}, {ID: "web", Class: Online}},
			Loans: []Loan{{ID: "l", Node: "n1", From: c.from, To: c.to, Phase: c.phase}}, Pods: []Pod{{Node: "n1", NodeName: "n1", Class: PodOnline}}}
		s.Sort()
		if got := s.PodsByPool(); len(got) != 1 || got[c.want] != 1 {
			t.Errorf("a loan from %s to %s that is %s: the pod counts in %v, want %s", c.from, c.to, c.phase, got, c.want)
		}
		if got := s.DisruptionPool(&s.Nodes[0], s.LoansByNode()["n1"]); got != c.want {
			t.Errorf("a loan from %s to %s that is %s: the pod is charged to %s, want %s", c.from, c.to, c.phase, got, c.want)
		}
	}
}

// Agents' evictions count in the bounds of their pool, for a minute and for a span, and are not kept in the ledger.
func TestAgentsSpendTheLedger(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	p := Pool{ID: "web", Budget: DisruptionBudget{EvictionsPerMinute: 3, ServiceShare: 1, FleetShare: 0.5}}
	p.Evicted = []AgentEviction{{"a", now.Add(-30 * time.Second)}, {"b", now.Add(-time.Second)}, {"c", now.Add(-2 * time.Minute)}, {"d", now.Add(-time.Hour)}}
	s := p.Spend(now, 100)
	if by := s.Take("service x", 10, 1); by != "" {
		t.Errorf("one pod of three a minute, two taken by agents: refused by %s", by)
	}
	if by := s.Take("service x", 10, 1); by == "" {
		t.Error("a fourth pod within the minute is taken")
	}
	p.Budget.EvictionsPerMinute = 100
	if by := p.Spend(now, 3).Take("service x", 10, 1); by == "" {
		t.Error("half of six pods went in the span, and another one is taken")
	}
	if p.Ledger.Evictions != 0 || len(p.Ledger.Owners) != 0 {
		t.Errorf("the ledger keeps %+v", p.Ledger)
	}
}

// TestReturn: what was charged and did not happen is taken back while the windows run that it was charged in, and no later.
func TestReturn(t *testing.T) {
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	charged := Ledger{}.Charge(at, "job a", 2).Charge(at.Add(5*time.Second), "job b", 1).ChargeRecalls(at, 3)
	back := charged.Return(at.Add(5*time.Second), "job b", 1).ReturnRecalls(at, 2)
	if back.Evictions != 2 || back.Recalls != 1 || len(back.Owners) != 1 || back.Owners[0] != (Disrupted{"job a", 2}) {
		t.Errorf("%+v", back)
	}
	if charged.Evictions != 3 || len(charged.Owners) != 2 {
		t.Errorf("the ledger that was charged changed: %+v", charged)
	}
	next := charged.Charge(at.Add(2*time.Minute), "job b", 1).ChargeRecalls(at.Add(2*time.Minute), 1)
	next = next.Return(at.Add(5*time.Second), "job b", 1).ReturnRecalls(at, 1)
	if next.Evictions != 1 || next.Recalls != 1 {
		t.Errorf("the next minute is not that of the charge: %+v", next)
	}
	if next.Owners[1] != (Disrupted{"job b", 1}) {
		t.Errorf("the ten minutes are: %+v", next.Owners)
	}
	if over := back.Return(at, "job z", 9).ReturnRecalls(at, 9); over.Evictions != 0 || over.Recalls != 0 {
		t.Errorf("a ledger counts no less than nothing: %+v", over)
	}
}
