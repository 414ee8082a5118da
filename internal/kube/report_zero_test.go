package kube

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
)

// The condition is there while the minimum is 0, and says what wakes the service or keeps one replica.
func TestReportZero(t *testing.T) {
	r := newReported(t, kubetest.Shop()...)
	queue := []fleet.Metric{{Name: "queue", Type: fleet.MetricQuery, Target: 30}}
	floor := func(own int32) *fleet.HPAFacts { return &fleet.HPAFacts{Name: "cart", Own: own} }
	for i, c := range []struct {
		least   int32
		metrics []fleet.Metric
		hpa     *fleet.HPAFacts
		seen    bool
		reason  string
	}{
		{least: 1, metrics: queue},
		{reason: "NoSignalAtZero"},
		{metrics: queue, reason: "SignalMissing"},
		{metrics: queue, seen: true, reason: "SignalAtZero"},
		{metrics: queue, seen: true, hpa: floor(2), reason: "AutoscalerKeepsOne"},
		{hpa: floor(0), seen: true, reason: "SignalAtZero"},
		{least: 1},
	} {
		r.cycle(t, func(rep *loop.Report) {
			s := rep.Snapshot.Service("shop/cart")
			s.Min, s.Metrics = c.least, c.metrics
			if s.HPA = c.hpa; c.hpa != nil {
				s.Actuation = fleet.ByHPAFloor
			}
			for k := range rep.Plan.Targets {
				rep.Plan.Targets[k].SeenAtZero = c.seen
			}
		})
		found := ""
		if x := meta.FindStatusCondition(objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices,
			"shop/cart").Status.Conditions, catalog.ConditionZero); x != nil {
			found = x.Reason
		}
		if found != c.reason {
			t.Errorf("step %d: reason %q, want %q", i, found, c.reason)
		}
	}
}
