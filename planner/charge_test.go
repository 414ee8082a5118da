package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// closed closes the ledgers of all pools, or opens them wide.
func closed(s *fleet.Snapshot, yes bool) {
	for i := range s.Pools {
		s.Pools[i].Budget = wide()
		if yes {
			s.Pools[i].Budget = fleet.DisruptionBudget{}
		}
	}
}

// heldByLedger names the subjects that ledgers hold back.
func heldByLedger(p *Plan) (out []string) {
	for _, w := range p.Withheld {
		if strings.HasPrefix(w.By.Text(), "disruption ledger of pool ") {
			out = append(out, w.Subject.String())
		}
	}
	return out
}

// Pods that a quota takes back after its notice wait for no ledger, and all of them count as due.
func TestQuotaTakesBackPastTheLedger(t *testing.T) {
	for _, steerable := range []bool{true, false} {
		w := newWorld(6).service("web", 12, 0, 6, 60)
		tellToGiveBack(w.tenant("shop", "shop", 64), 10*time.Minute)
		w.s.Tenants[0].BorrowingLimit = fleet.KnownAt(cpu(0), t0)
		w.loan(0, fleet.Emptying, 1)
		w.s.Services[0].Steerable = steerable
		closed(&w.s, true)
		// The pods of the highest numbers are on machines of another pool.
		for _, i := range []int{4, 5} {
			w.s.Nodes[i].Pool = "late"
		}
		w.s.Pools = append(w.s.Pools, fleet.Pool{ID: "late", Class: fleet.Online, Mode: fleet.Observe})
		p := made(w.input())
		if len(p.Lowers) != 1 || p.Lowers[0].To != 8 || len(heldByLedger(&p)) > 0 {
			t.Fatalf("steerable %v: %+v, withheld %+v", steerable, p.Lowers, p.Withheld)
		}
		want := []Charge{{"online", 4, true}}
		if !steerable {
			want = []Charge{{"late", 2, true}, {"online", 2, true}} // web-011 and web-010, then web-009 and web-008
		}
		if got := p.Lowers[0].Charges; !slices.Equal(got, want) {
			t.Errorf("steerable %v: charged %+v, want %+v", steerable, got, want)
		}
	}
}

// The budget that bounds scale-in on a borrowed machine is that of the pool which borrows it, and counts the pods there.
func TestBudgetCountsThePodsThatItIsChargedWith(t *testing.T) {
	w := newWorld(3).service("web", 4, 0, 1, 100)
	w.offline(1)
	w.service("app", 16, 3, 1, 100)
	l := w.loan(3, fleet.Noticed, 2)
	l.From, l.To = "offline", "online"
	for i := range w.s.Pools {
		w.s.Pools[i].Budget = fleet.DisruptionBudget{EvictionsPerMinute: 60, ServiceShare: 1, FleetShare: 0.1}
	}
	in := w.input()
	m := newMaker(&in)
	pool, took := m.chargedTo(w.s.Nodes[3].ID), 0
	for m.spending(pool).Take("service shop/app", 16, 1) == "" {
		took++
	}
	if pool != "online" || took != 2 {
		t.Errorf("pool %s lets %d pods go, want a tenth of the 20 on the machines that pool online has and borrows", pool, took)
	}
}

// Shares of jobs are levelled as far as the ledger lets members go, and the job's status says why it keeps more.
func TestLevellingIsBoundedByTheLedger(t *testing.T) {
	for _, c := range []struct {
		budget fleet.DisruptionBudget
		want   int32
	}{
		{wide(), 1},
		{fleet.DisruptionBudget{EvictionsPerMinute: 1, ServiceShare: 1, FleetShare: 1}, 1},
		{fleet.DisruptionBudget{EvictionsPerMinute: 0, ServiceShare: 1, FleetShare: 1}, 0},
		{fleet.DisruptionBudget{EvictionsPerMinute: 60, ServiceShare: 0, FleetShare: 1}, 0},
		{fleet.DisruptionBudget{EvictionsPerMinute: 60, ServiceShare: 1, FleetShare: 0}, 0},
	} {
		y := still(6, 10)
		y.job("j1", member("worker", 6, 0, 100))
		y.s.Pools[0].Budget = c.budget
		p := made(Input{Snapshot: &y.s, Options: DefaultOptions()})
		var took int32
		for _, j := range p.Jobs {
			took += j.From - j.To
			if !slices.Equal(j.Charges, []Charge{{"offline", 1, false}}) {
				t.Errorf("%+v: charged %+v", c.budget, j.Charges)
			}
		}
		held := heldByLedger(&p)
		if took != c.want || (c.want == 0) != slices.Equal(held, []string{"job batch/j0"}) {
			t.Errorf("%+v: %d members make room, held %v", c.budget, took, held)
		}
	}
}

// Growth gives way to a minimum that waits, and what was borrowed to its lender after the notice, whatever the ledger says: counted as due.
func TestJobsGiveBackPastTheLedger(t *testing.T) {
	y := newYard(4, 0)
	closed(&y.s, true)
	y.job("early", member("worker", 16, 2, 40))
	for range 4 {
		y.cycle()
	}
	y.job("late", member("worker", 32, 2, 2))
	y.cycle()
	if len(y.plan.Jobs) != 1 || !slices.Equal(y.plan.Jobs[0].Charges, []Charge{{"offline", 4, true}}) {
		t.Errorf("room for a minimum: %+v", y.plan.Jobs)
	}
	w := newWorld(2)
	w.offline(1)
	for i := range 4 {
		w.worker(2, i)
	}
	closed(&w.s, true)
	tellToGiveBack(w.tenant("batch", "batch", 32), 10*time.Minute)
	w.s.Tenants[0].BorrowingLimit = fleet.KnownAt(cpu(0), t0)
	p := made(w.input())
	if len(p.Jobs) != 1 || p.Jobs[0].To != 2 || !slices.Equal(p.Jobs[0].Charges, []Charge{{"offline", 2, true}}) {
		t.Errorf("a quota takes back: %+v", p.Jobs)
	}
}

// A change of a template rolls all pods of its service over: it begins where that fits what is left of the budget, or
// where nothing of it is spent. In place no pod goes.
func TestRollOversWaitForTheLedger(t *testing.T) {
	spent := func(pods int) fleet.Ledger { return fleet.Ledger{}.Charge(t0, "service shop/pay", pods) }
	for name, c := range map[string]struct {
		mode   fleet.RequestsMode
		ledger fleet.Ledger
		share  float64
		held   string
	}{
		"untouched":         {fleet.RequestsRecreate, fleet.Ledger{}, 0.1, ""},
		"it fits":           {fleet.RequestsRecreate, spent(2), 1, ""},
		"the minute is out": {fleet.RequestsRecreate, spent(3), 1, "disruption ledger of pool online: 12 pods a minute"},
		"the span is out": {fleet.RequestsRecreate, fleet.Ledger{}.Charge(t0.Add(-5*time.Minute), "service shop/pay", 1), 0.5,
			"disruption ledger of pool online: 50 % of its pods in 10m0s"},
		"in place": {fleet.RequestsInPlace, spent(12), 0.1, ""},
	} {
		w := newWorld(3).service("a", 10, 0, 3, 20)
		w.s.Pools[1].Budget = fleet.DisruptionBudget{EvictionsPerMinute: 12, ServiceShare: 0.2, FleetShare: c.share}
		w.s.Pools[1].Ledger = c.ledger
		w.s.Services[0].RequestsMode = c.mode
		in := w.input()
		in.Portraits["shop/a"] = roomy()
		m := newMaker(&in)
		(&scaler{m}).resizes()
		if c.held != "" {
			if len(m.plan.Resizes) > 0 || len(m.plan.Withheld) != 1 || m.plan.Withheld[0].By.Text() != c.held || m.plan.Withheld[0].Subject.String() != "requests shop/a" {
				t.Errorf("%s: %+v, withheld %+v", name, m.plan.Resizes, m.plan.Withheld)
			}
			continue
		}
		want := []Charge{{"online", 10, false}}
		if c.mode == fleet.RequestsInPlace {
			want = nil
		}
		if len(m.plan.Resizes) != 1 || !slices.Equal(m.plan.Resizes[0].Charges, want) {
			t.Errorf("%s: %+v, withheld %+v", name, m.plan.Resizes, m.plan.Withheld)
		}
		// No later action has what it takes.
		if by := m.spending("online").Refuses("service shop/b", 100, 3); by == "" {
			t.Errorf("%s: three more of another service go: %q", name, by)
		}
	}
	// Where one waits, another has its turn; machines of no pool have no ledger to wait for.
	w := newWorld(3).service("a", 4, 0, 1, 20).service("b", 4, 1, 1, 20)
	w.s.Nodes[1].Pool = ""
	w.s.Pools[1].Budget, w.s.Pools[1].Ledger = fleet.DisruptionBudget{EvictionsPerMinute: 4, ServiceShare: 1, FleetShare: 1}, spent(1)
	in := w.input()
	for i := range w.s.Services {
		w.s.Services[i].RequestsMode = fleet.RequestsRecreate
		in.Portraits[w.s.Services[i].ID] = roomy()
	}
	m := newMaker(&in)
	(&scaler{m}).resizes()
	if len(m.plan.Resizes) != 1 || m.plan.Resizes[0].Service != "shop/b" || len(m.plan.Resizes[0].Charges) > 0 {
		t.Errorf("%+v, withheld %+v", m.plan.Resizes, m.plan.Withheld)
	}
}
