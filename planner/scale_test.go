package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// emptying is a fleet in which a service shrinks whose pods are on an emptying machine (the first) and on others.
func emptying(here, elsewhere int) *world {
	w := newWorld(9)
	w.service("web", here+elsewhere, 0, 1, float64(here+elsewhere)) // at an eighth of its CPU: most of it may go
	for i := here; i < here+elsewhere; i++ {
		n := &w.s.Nodes[1+i%8]
		svc := &w.s.Services[0]
		svc.Pods[i].Node, svc.Pods[i].NodeName = n.ID, n.Name
		w.s.Pods[i].Node, w.s.Pods[i].NodeName = n.ID, n.Name
	}
	w.loan(0, fleet.Emptying, 1)
	return w
}

// A scale-in that waits for the ledger with all its pods holds no other service up.
func TestAScaleInThatWaitsHoldsNoOther(t *testing.T) {
	w := emptying(8, 0)
	w.service("zoo", 12, 2, 6, 12) // elsewhere, and at an eighth of its CPU, too
	closed(&w.s, true)
	p := made(w.input())
	if held := heldByLedger(&p); !slices.Equal(held, []string{"service shop/web"}) {
		t.Fatalf("the ledger holds %v, want shop/web alone", held)
	}
	if len(p.Lowers) != 1 || p.Lowers[0].Service != "shop/zoo" {
		t.Errorf("scale-ins: %+v, want that of shop/zoo", p.Lowers)
	}
}

// Each of the three bounds holds pods on an emptying machine back; others go in their place, and the ledger is charged for those that went.
func TestSteeringIsBoundedByTheLedger(t *testing.T) {
	for name, c := range map[string]struct {
		budget fleet.DisruptionBudget
		ledger fleet.Ledger
		want   int // victims on the emptying machine, of six that go
	}{
		"wide":                 {fleet.DisruptionBudget{EvictionsPerMinute: 60, ServiceShare: 1, FleetShare: 1}, fleet.Ledger{}, 5},
		"two a minute":         {fleet.DisruptionBudget{EvictionsPerMinute: 2, ServiceShare: 1, FleetShare: 1}, fleet.Ledger{}, 2},
		"a tenth of a service": {fleet.DisruptionBudget{EvictionsPerMinute: 60, ServiceShare: 0.1, FleetShare: 1}, fleet.Ledger{}, 3},
		"a 30th of the pool":   {fleet.DisruptionBudget{EvictionsPerMinute: 60, ServiceShare: 1, FleetShare: 1. / 30}, fleet.Ledger{}, 1},
		"spent":                {fleet.DisruptionBudget{EvictionsPerMinute: 4, ServiceShare: 1, FleetShare: 1}, fleet.Ledger{}.Charge(t0, "service shop/pay", 4), 0},
		"no budget at all":     {fleet.DisruptionBudget{}, fleet.Ledger{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := emptying(5, 25)
			w.s.Pools[1].Budget, w.s.Pools[1].Ledger = c.budget, c.ledger
			p := made(w.input())
			if len(p.Lowers) != 1 || p.Lowers[0].From != 30 || p.Lowers[0].To != 24 {
				t.Fatalf("the service must scale in from 30 to 24: %+v", p.Lowers)
			}
			a := &p.Lowers[0]
			off, charged := 0, 0
			for _, l := range a.Victims {
				i := slices.IndexFunc(w.s.Pods, func(p fleet.Pod) bool { return p.ID == l.ID })
				if w.s.Pods[i].NodeName == "m00" {
					off++
				}
			}
			for _, x := range a.Charges {
				if x.Pool != "online" {
					t.Errorf("charged to %s", x.Pool)
				}
				charged += x.Pods
			}
			if off != c.want || charged != c.want || len(a.Victims) != 6 {
				t.Errorf("%d leavers, %d of them off the emptying machine, %d charged; want 6 and %d", len(a.Victims), off, charged, c.want)
			}
		})
	}
}

// Where all pods are on emptying machines the scale-in waits for what the ledger does not allow, and says so.
func TestScaleInWaitsForTheLedger(t *testing.T) {
	for perMinute, to := range map[int]int32{0: -1, 2: 28, 60: 24} {
		w := emptying(30, 0)
		w.s.Pools[1].Budget = fleet.DisruptionBudget{EvictionsPerMinute: perMinute, ServiceShare: 1, FleetShare: 1}
		p := made(w.input())
		switch {
		case to < 0 && len(p.Lowers) > 0:
			t.Errorf("%d a minute: %+v", perMinute, p.Lowers)
		case to >= 0 && (len(p.Lowers) != 1 || p.Lowers[0].To != to || len(p.Lowers[0].Victims) != int(30-to)):
			t.Errorf("%d a minute: %+v, want 30 -> %d", perMinute, p.Lowers, to)
		}
		held := slices.ContainsFunc(p.Withheld, func(x Withheld) bool {
			return x.Subject.String() == "service shop/web" && x.Action.Text() == "Scale 30 -> 24" &&
				strings.HasPrefix(x.By.Text(), "disruption ledger of pool online: ")
		})
		if held != (to != 24) {
			t.Errorf("%d a minute: withheld %+v", perMinute, p.Withheld)
		}
	}
}

// A budget is of the pool, not of the service: two services spend it together.
func TestServicesShareTheBudget(t *testing.T) {
	w := emptying(10, 0).service("api", 10, 0, 1, 10)
	w.s.Pools[1].Budget = fleet.DisruptionBudget{EvictionsPerMinute: 3, ServiceShare: 1, FleetShare: 1}
	p, charged := made(w.input()), 0
	for _, a := range p.Lowers {
		for _, x := range a.Charges {
			charged += x.Pods
		}
	}
	if charged != 3 {
		t.Errorf("%d pods are charged, want 3: %+v", charged, p.Lowers)
	}
	// In the next minute three more may go.
	w.s.Pools[1].Ledger = fleet.Ledger{}.Charge(t0.Add(-time.Minute), "service shop/api", 3)
	if p := made(w.input()); len(p.Lowers) == 0 {
		t.Error("nothing goes in the minute after")
	}
}

// A service whose forecast's skill was lost an hour ago scales in by its live signals. Lending does not count it at
// last week's peak from the first minute on, but at what twice the live load would take; one whose forecast is not to
// be trusted for another reason it does.
func TestLiveSignalsAlone(t *testing.T) {
	for _, c := range []struct {
		lost  bool
		ago   time.Duration
		goes  bool
		moves bool
	}{{false, time.Hour, false, false}, {true, 0, false, true}, {true, 30 * time.Minute, false, true}, {true, time.Hour, true, true}} {
		w := newWorld(6)
		w.service("web", 12, 0, 6, 12)
		in := w.input()
		id := w.s.Services[0].ID
		tide, p := in.Tides[id], in.Portraits[id]
		tide.Trusted, tide.SkillLost = false, c.lost
		p.Record.Skill.Lost, p.Record.Skill.Since = c.lost, t0.Add(-c.ago)
		p.Peak = 200 // of 48 cores a machine: more than the fleet could do without
		in.Tides[id], in.Portraits[id] = tide, p
		plan := made(in)
		if got := len(plan.Lowers) == 1; got != c.goes {
			t.Errorf("lost %v %v ago: scale-in %v, want %v: %s", c.lost, c.ago, got, c.goes, plan.Targets[0].Why())
		}
		var stays fleet.MilliCPU = 6 * 64000
		for i := range plan.Moves {
			stays -= plan.Moves[i].After.Capacity.CPU
		}
		if least := fleet.MilliCPU(plan.Targets[0].LiveMost) * 8000; stays < least || least == 0 && c.moves {
			t.Errorf("lost %v %v ago: %v stays, less than the %v that twice the live load would take", c.lost, c.ago, stays, least)
		}
		if got := len(plan.Moves) > 0; got != c.moves {
			t.Errorf("lost %v %v ago: %d machines move, though the service once needed them all", c.lost, c.ago, len(plan.Moves))
		}
	}
	w := newWorld(6)
	w.service("web", 12, 0, 6, 12)
	in := w.input()
	p := in.Portraits[w.s.Services[0].ID]
	p.Peak = 200
	in.Portraits[w.s.Services[0].ID] = p
	if plan := made(in); len(plan.Moves) == 0 {
		t.Errorf("with a forecast to trust nothing is lent either, so that the test above shows nothing: %+v", plan.Withheld)
	}
}

// A target that another writer took back three times within the hour is left alone, in both directions; after a calm hour it is scaled again.
func TestContestedTargetsAreNotScaled(t *testing.T) {
	for name, c := range map[string]struct {
		count int32
		ago   time.Duration
		held  bool
	}{
		"a rollout":           {2, time.Minute, false},
		"a fight":             {3, time.Minute, true},
		"after an hour":       {3, time.Hour, false},
		"just before an hour": {9, time.Hour - time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, w := range []*world{emptying(5, 25), newWorld(9)} {
				if len(w.s.Services) == 0 {
					w.service("web", 10, 0, 40, 10) // fewer than its minimum
				}
				w.s.Services[0].ForeignWriter = "argocd-controller"
				w.s.Services[0].Takeovers = fleet.Takeovers{By: "argocd-controller", Count: c.count, Last: w.s.At.Add(-c.ago)}
				p := made(w.input())
				why := slices.ContainsFunc(p.Withheld, func(x Withheld) bool { return strings.Contains(x.By.Text(), "argocd-controller writes spec.replicas") })
				if done := len(p.Lowers) + len(p.Raises); (done == 0) != c.held || why != c.held {
					t.Errorf("%d scales, withheld %+v, want held %v", done, p.Withheld, c.held)
				}
			}
		})
	}
}
