package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/slo"
)

// judged is an account of so many minutes up to kubetest.Now, of which the newest were bad.
func judged(minutes, bad int) *slo.Account {
	a := &slo.Account{Choice: slo.Choice{Quantile: 0.975, Moved: kubetest.Now,
		Why: reason.Of(reason.QuantileKeeps, "p97.5", 3,
			"40")}}
	for i := range minutes {
		m := slo.Minute{At: kubetest.Now.Add(time.Duration(i-minutes) * time.Minute), All: slo.Good,
			Names: []string{"latency-p99",
				"cpu"}, States: []slo.State{slo.Good, slo.Good}}
		if i >= minutes-bad {
			m.All, m.States[0], m.Cause = slo.Bad, slo.Bad, slo.Forecast
			if i%3 == 0 {
				m.Cause = slo.Quota
			}
		}
		a.Budget.Add(m, slo.DefaultOver)
	}
	return a
}

func TestReportSLO(t *testing.T) {
	r := newReported(t, kubetest.Shop()...)
	with := func(a *slo.Account) func(*loop.Report) {
		return func(rep *loop.Report) {
			svc := &rep.Snapshot.Services[0]
			svc.Quantile = 0.975
			svc.SLO = fleet.Levels(fleet.Latency(0.99, time.Second), fleet.CPU(0.7))
			svc.SLO.Objective = fleet.Objective{GoodMinutes: 0.999, Over: 28 * 24 * time.Hour}
			rep.Accounts = map[fleet.ServiceID]*slo.Account{svc.ID: a}
		}
	}
	r.cycle(t, with(judged(1440, 12)))
	got := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status.SLO
	since := metav1.NewTime(kubetest.Now.Add(-24 * time.Hour))
	want := &v1alpha1.SLOStatus{Objective: v1alpha1.ObjectiveStatus{GoodMinutes: "99.9%", Over: "28d"},
		Met: "99.166%", BudgetMinutes: 40, BudgetLeftMinutes: new(int32(28)), Burn1h: "200.0", Burn6h: "33.3",
		Quantile: "0.975", QuantileReason: "QuantileKeeps",
		QuantileMessage:    "p97.5 is the cheapest that keeps the objective: 3 bad minutes by its size, where 40 are allowed",
		CapacityPerReplica: "10 requests/s", CapacityBasis: "rule: 60% of the CPU request",
		Since: &since, Levels: []v1alpha1.SLOLevelStatus{{Name: "latency-p99", Source: "otel", BadMinutes: 12},
			{Name: "cpu"}},
		Causes: []v1alpha1.SLOCauseStatus{{Cause: "Forecast", BadMinutes: 8}, {Cause: "Quota", BadMinutes: 4}}}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b metav1.Time) bool { return a.Time.Equal(b.Time) })); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// Numbers go with the next write; what an operator acts on is written at once.
	if written, _ := r.cycle(t, with(judged(1441, 12))); len(written) != 0 {
		t.Errorf("another minute is written at once: %v", written)
	}
	if written, _ := r.cycle(t, with(judged(1441, 60))); len(written) != 1 {
		t.Errorf("a missed objective is not written at once: %v", written)
	}
	// A service that promises nothing shows none.
	r.cycle(t, func(rep *loop.Report) {
		rep.Snapshot.Services[0].SLO = fleet.SLO{}
		rep.Accounts = map[fleet.ServiceID]*slo.Account{"shop/cart": judged(5, 0)}
	})
	if got := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status.SLO; got != nil {
		t.Errorf("%+v", got)
	}
}
