package kube

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
)

// The condition is there while a fall is in doubt, says what follows, and goes when the fall was judged.
func TestReportAnUnconfirmedFall(t *testing.T) {
	r := newReported(t, shop()...)
	for i, c := range []struct {
		hold   portrait.Hold
		reason string
	}{
		{portrait.Hold{}, ""},
		{portrait.Hold{Since: t0.Add(-time.Hour), Top: 100}, "Held"},
		{portrait.Hold{Since: t0.Add(-3 * time.Hour), Top: 100, Eased: true}, "Eased"},
		{portrait.Hold{}, ""},
	} {
		r.cycle(t, func(rep *loop.Report) {
			rep.Portraits["shop/cart"] = portrait.Portrait{Step: 5 * time.Minute, Hold: c.hold}
		})
		found := ""
		if x := meta.FindStatusCondition(object[v1alpha1.ElasticService](t, r.world, gvrServices, "shop/cart").Status.Conditions, v1alpha1.ConditionFall); x != nil {
			found = x.Reason
		}
		if found != c.reason {
			t.Errorf("step %d: reason %q, want %q", i, found, c.reason)
		}
	}
}

// The condition is there while what is measured is not believed, or not learned, and goes with it.
func TestReportAnUnconfirmedRise(t *testing.T) {
	r := newReported(t, shop()...)
	for i, c := range []struct {
		hold    portrait.Hold
		sources []string
		reason  string
	}{
		{portrait.Hold{}, nil, ""},
		{portrait.Hold{Since: t0.Add(-time.Hour), Top: 100}, nil, ""},
		{portrait.Hold{Since: t0.Add(-time.Hour), Top: 100, Rise: true}, nil, "NotLearned"},
		{portrait.Hold{Since: t0.Add(-time.Hour), Top: 100, Rise: true}, []string{"CPU"}, "NotBelieved"},
		{portrait.Hold{}, []string{"CPU"}, "NotBelieved"},
		{portrait.Hold{}, nil, ""},
	} {
		r.cycle(t, func(rep *loop.Report) {
			rep.Portraits["shop/cart"] = portrait.Portrait{Step: 5 * time.Minute, Hold: c.hold}
			for k := range rep.Plan.Targets {
				rep.Plan.Targets[k].Unconfirmed = c.sources
			}
		})
		conditions := object[v1alpha1.ElasticService](t, r.world, gvrServices, "shop/cart").Status.Conditions
		found := ""
		if x := meta.FindStatusCondition(conditions, v1alpha1.ConditionRise); x != nil {
			found = x.Reason
		}
		if found != c.reason {
			t.Errorf("step %d: reason %q, want %q", i, found, c.reason)
		}
		if x := meta.FindStatusCondition(conditions, v1alpha1.ConditionFall); c.hold.Rise && x != nil {
			t.Errorf("step %d: a rise is reported as a fall", i)
		}
	}
}
