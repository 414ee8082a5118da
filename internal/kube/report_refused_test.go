package kube

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
)

// A refused pool or quota says so in Accepted and Ready, and in one event.
func TestReportRefusedPoolsAndQuotas(t *testing.T) {
	quota := func(name, parent string) *v1alpha1.CapacityQuota {
		q := &v1alpha1.CapacityQuota{ObjectMeta: kubetest.Meta("CapacityQuota", "", name)}
		q.Spec.Parent, q.Spec.NamespaceSelector = parent, v1alpha1.Selector{MatchLabels: map[string]string{"team": name}}
		return q
	}
	r := newReported(t, kubetest.Pool("web", "Online", kubetest.InWeb), kubetest.Pool("twin", "Online",
		kubetest.InWeb), quota("a", "b"), quota("b", "a"), quota("lost", "gone"), quota("root", ""))
	_, events := r.cycle(t, nil)
	for _, want := range []string{"Warning PoolsOverlap ", "Warning ParentCycle ", "Warning ParentNotFound "} {
		if !slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, want) }) {
			t.Errorf("no event %q in %q", want, events)
		}
	}
	if _, again := r.cycle(t, nil); len(again) > 0 {
		t.Errorf("said again: %q", again)
	}
	check := func(what string, cs []metav1.Condition, ready metav1.ConditionStatus, reason string) {
		t.Helper()
		c := meta.FindStatusCondition(cs, catalog.ConditionReady)
		if c == nil || c.Status != ready || c.Reason != reason {
			t.Errorf("%s: Ready = %+v, want %s for %s", what, c, ready, reason)
		}
		accepted := meta.IsStatusConditionTrue(cs, catalog.ConditionAccepted)
		if accepted != (ready == metav1.ConditionTrue) {
			t.Errorf("%s: Accepted is %t", what, accepted)
		}
	}
	check("an overlapping pool", objectNow[v1alpha1.CapacityPool](t, r.world, object.GVRPools,
		"twin").Status.Conditions, metav1.ConditionFalse, "PoolsOverlap")
	circle := objectNow[v1alpha1.CapacityQuota](t, r.world, object.GVRQuotas, "a").Status.Conditions
	check("a quota in a circle", circle, metav1.ConditionFalse, "ParentCycle")
	if c := meta.FindStatusCondition(circle, catalog.ConditionGuaranteeKept); c == nil ||
		c.Status != metav1.ConditionUnknown {
		t.Errorf("the guarantee of a quota that is not accepted: %+v", c)
	}
	check("a quota without its parent", objectNow[v1alpha1.CapacityQuota](t, r.world, object.GVRQuotas,
		"lost").Status.Conditions, metav1.ConditionFalse, "ParentNotFound")
	check("a quota that is well", objectNow[v1alpha1.CapacityQuota](t, r.world, object.GVRQuotas,
		"root").Status.Conditions, metav1.ConditionTrue, "Met")
}

// A refused service shows no numbers of a target, and none of its signals is called missing.
func TestReportRefusedService(t *testing.T) {
	objects := kubetest.Shop()
	for _, o := range objects {
		if s, ok := o.(*v1alpha1.ElasticService); ok {
			s.Spec.Windows = []v1alpha1.Window{{Name: "w", Start: "61 * * * *", Duration: "1h", TimeZone: "UTC"}}
		}
	}
	r := newReported(t, objects...)
	r.cycle(t, nil)
	s := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status
	if s.DesiredReplicas != 0 || s.FloorReplicas != 0 || !strings.HasPrefix(s.Reason, "refused: spec.windows[0].start: ") {
		t.Errorf("desired %d, floor %d, reason %q", s.DesiredReplicas, s.FloorReplicas, s.Reason)
	}
	if c := meta.FindStatusCondition(s.Conditions, catalog.ConditionDataFresh); c == nil ||
		c.Status != metav1.ConditionUnknown || c.Reason != "NotSized" {
		t.Errorf("DataFresh = %+v, want Unknown: nothing is sized", c)
	}
}

// Where nothing was read there is no forecast, and no fall-back that could be named.
func TestReportNoForecastWithoutSamples(t *testing.T) {
	r := newReported(t, kubetest.Shop()...)
	r.cycle(t, func(rep *loop.Report) {
		id := rep.Snapshot.Services[0].ID
		rep.Portraits[id] = portrait.Portrait{}
		tide := rep.Tides[id]
		tide.Model = "flat"
		rep.Tides[id] = tide
	})
	c := meta.FindStatusCondition(objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices,
		"shop/cart").Status.Conditions, catalog.ConditionForecastReady)
	if c == nil || c.Reason != "NoSamples" || c.Message != "no forecast: no samples read yet" {
		t.Errorf("ForecastReady = %+v", c)
	}
}
