package kube

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// charged are the three kinds of what is taken of others next to evictions, each with the write that follows the
// ledger's.
func charged(due bool) map[string]struct {
	plan  planner.Plan
	owner string
	write string
} {
	charges := []planner.Charge{{Pool: "web", Pods: 1, Due: due}}
	lower := lowerCart()
	lower.Charges = charges
	resize := resizeCart(fleet.RequestsRecreate)
	resize.Charges = charges
	return map[string]struct {
		plan  planner.Plan
		owner string
		write string
	}{
		"scale":  {planner.Plan{Lowers: []planner.Scale{lower}}, "service shop/cart", "patch deployments/scale cart"},
		"job":    {planner.Plan{Jobs: []planner.JobScale{fewerBerts(charges)}}, "job train/bert", "patch jobs bert"},
		"resize": {planner.Plan{Resizes: []planner.Resize{resize}}, "service shop/cart", "patch deployments cart"},
	}
}

func fewerBerts(charges []planner.Charge) planner.JobScale {
	return planner.JobScale{Job: "train/bert", Role: "worker", Workload: fleet.Name{Namespace: "train", Name: "bert"}, Kind: "Job", From: 2, To: 1, Charges: charges}
}

// shopAndTrain is the shop with a job of two pods on its machine; change is made to the machine's pool.
func shopAndTrain(change func(*v1alpha1.CapacityPool)) []metav1.Object {
	objects := append(kubetest.Shop(), kubetest.Pool("batch", "Offline", kubetest.InBatch),
		kubetest.BatchJob("bert", 2), kubetest.ElasticJob("bert"),
		kubetest.Pod("train", "bert-0", "n1", "Job", "bert"), kubetest.Pod("train", "bert-1", "n1", "Job", "bert"))
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.CapacityPool:
			if o.Name == "web" {
				change(o)
			}
		case *v1alpha1.ElasticService:
			o.Spec.RequestsMode = "Recreate"
		}
	}
	return objects
}

func wideBudget(p *v1alpha1.CapacityPool) {
	p.Spec.Disruptions = v1alpha1.DisruptionBudget{ServicePercent: kubetest.Ptr(int32(100)),
		FleetPercent: kubetest.Ptr(int32(100))}
}

// An action that takes pods for others is written into the ledger before the act, and waits while the ledger is spent.
func TestTheLedgerStandsBeforeEachAct(t *testing.T) {
	at := metav1.NewTime(kubetest.Now)
	for name, c := range charged(false) {
		w := newWorld(t, shopAndTrain(wideBudget)...)
		w.scaleReactor(0, 3)
		rec := w.recordWrites()
		if rs := w.do(t, c.plan); rs[0].Outcome != loop.Done {
			t.Fatalf("%s: %+v", name, rs[0])
		}
		if diff := cmp.Diff([]string{"update capacitypools/status web", c.write}, rec.without("events")); diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", name, diff)
		}
		want := v1alpha1.DisruptionLedger{WindowStart: at, Evictions: 1, SpanStart: at, Owners: []v1alpha1.DisruptedOwner{{Owner: c.owner, Pods: 1}}}
		if diff := cmp.Diff(want, w.poolObject(t, "web").Status.Disruptions, timesEqual); diff != "" {
			t.Errorf("%s: ledger (-want +got):\n%s", name, diff)
		}
		w = newWorld(t, shopAndTrain(spentWeb)...)
		w.scaleReactor(0, 3)
		rec = w.recordWrites()
		if rs := w.do(t, c.plan); rs[0].Outcome != loop.Failed || !strings.Contains(rs[0].Message, "2 pods a minute") || len(rec.without("events")) > 0 {
			t.Errorf("%s: a spent ledger lets it pass: %+v, %v", name, rs[0], rec.without("events"))
		}
	}
}

// spentWeb is a minute of which all is spent.
func spentWeb(p *v1alpha1.CapacityPool) {
	wideBudget(p)
	p.Spec.Disruptions.EvictionsPerMinute = kubetest.Ptr(int32(2))
	p.Status.Disruptions = v1alpha1.DisruptionLedger{WindowStart: kubetest.Ago(20 * time.Second), Evictions: 2,
		Recalls: 5, SpanStart: kubetest.Ago(20 * time.Second)}
}

// Pods that are due to others are counted next to it, and waits for nothing.
func TestWhatIsDueWaitsForNoLedger(t *testing.T) {
	for name, c := range charged(true) {
		w := newWorld(t, shopAndTrain(spentWeb)...)
		w.scaleReactor(0, 3)
		rec := w.recordWrites()
		if rs := w.do(t, c.plan); rs[0].Outcome != loop.Done || !slices.Equal(rec.without("events"), []string{"update capacitypools/status web", c.write}) {
			t.Errorf("%s: %+v, %v", name, rs[0], rec.without("events"))
		}
		if d := w.poolObject(t, "web").Status.Disruptions; d.Recalls != 6 || d.Evictions != 2 {
			t.Errorf("%s: %d recalls and %d evictions are counted", name, d.Recalls, d.Evictions)
		}
	}
}

// Pods that a later stage of a plan takes are counted on top of what the stages before it wrote, whether the watches
// have brought that or not.
func TestStagesShareTheLedger(t *testing.T) {
	one := charged(false)
	plan := planner.Plan{Lowers: one["scale"].plan.Lowers, Jobs: one["job"].plan.Jobs}
	for perMinute, want := range map[int32]loop.Outcome{2: loop.Done, 1: loop.Failed} {
		w := newWorld(t, shopAndTrain(func(p *v1alpha1.CapacityPool) {
			wideBudget(p)
			p.Spec.Disruptions.EvictionsPerMinute = &perMinute
		})...)
		w.scaleReactor(0, 3)
		if rs := w.do(t, plan); rs[0].Outcome != loop.Done || rs[1].Outcome != want {
			t.Errorf("%d a minute: %+v", perMinute, rs)
		}
		if d := w.poolObject(t, "web").Status.Disruptions; d.Evictions != perMinute || len(d.Owners) != int(perMinute) {
			t.Errorf("%d a minute: %+v", perMinute, d)
		}
	}
}
