package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// A quiet hour with lent machines: the reports of 60 cycles, in which the time passes and the capacity per replica is estimated a little
// differently in each, write less than 0.5 a loan, and less than 40 for all else. The promise of each loan, which is made in it, is counted apart.
func TestAQuietHourWritesLittle(t *testing.T) {
	const loans = 10
	objects := append(kubetest.Shop(), kubetest.Pool("batch", "Offline", kubetest.InBatch))
	for i := range loans {
		n, l := fmt.Sprintf("lent-%d", i), fmt.Sprintf("l-%d", i)
		objects = append(objects, kubetest.Node(n, kubetest.InWeb), kubetest.Loan(l, n, "Lent", 1, 0),
			kubetest.NodeShare(n, l, "batch", "", 1, false, 0))
	}
	r := newReported(t, objects...)
	promise := func(rep *loop.Report) {
		for i := range loans {
			until := kubetest.Now.Add(4 * time.Hour)
			rep.Plan.Survivals = append(rep.Plan.Survivals, planner.Survival{Loan: rep.Snapshot.Loans[i].ID, Until: until, Due: until.Add(3 * time.Minute)})
		}
	}
	if first, _ := r.cycle(t, promise); len(first) < loans {
		t.Fatalf("the first report wrote %v", first)
	}
	ofLoans, others := 0, map[string]int{}
	for minute := range 60 {
		r.clock.Time = r.clock.Time.Add(time.Minute)
		written, _ := r.cycle(t, func(rep *loop.Report) {
			for i := range rep.Plan.Targets {
				rep.Plan.Targets[i].CapacityPerReplica *= 1 + float64(minute%3-1)/500
			}
			// The demand of the pool's services sways by a fifth, and with it the machines that cannot be emptied.
			k := minute / 10
			rep.Plan.Pools = []planner.PoolView{{Pool: "web", Requested: fleet.Resources{CPU: fleet.MilliCPU(100_000 + 20_000*(k%2))},
				Pinned: []planner.Pin{{Node: fmt.Sprintf("n%d", k%3), By: reason.Of(reason.ServiceKeeps, "shop/cart", k%3, 5)}}}}
		})
		for _, line := range written {
			if strings.Contains(line, "loans") || strings.Contains(line, "nodeshares") || strings.Contains(line, "nodes") {
				ofLoans++
			} else {
				others[line]++
			}
		}
	}
	if ofLoans*2 >= loans {
		t.Errorf("%d writes for %d loans in a quiet hour", ofLoans, loans)
	}
	for line, n := range others {
		if strings.Contains(line, "capacitypools") && n > 1 {
			t.Errorf("%d times in an hour: %s", n, line)
		}
	}
	sum := 0
	for _, n := range others {
		sum += n
	}
	if sum >= 40 {
		t.Errorf("%d other writes in a quiet hour: %v", sum, others)
	}
}
