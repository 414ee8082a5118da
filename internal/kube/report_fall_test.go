package kube

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

// The condition is there while a fall is in doubt, says what follows, and goes when the fall was judged.
func TestReportAnUnconfirmedFall(t *testing.T) {
	r := newReported(t, kubetest.Shop()...)
	for i, c := range []struct {
		hold   portrait.Doubt
		reason string
	}{
		{portrait.Doubt{}, ""},
		{portrait.Doubt{Since: kubetest.Now.Add(-time.Hour), Top: 100}, "Held"},
		{portrait.Doubt{Since: kubetest.Now.Add(-3 * time.Hour), Top: 100, Eased: true}, "Eased"},
		{portrait.Doubt{}, ""},
	} {
		r.cycle(t, func(rep *loop.Report) {
			rep.Portraits["shop/cart"] = portrait.Portrait{Step: 5 * time.Minute, Doubt: c.hold}
		})
		found := ""
		if x := meta.FindStatusCondition(objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices,
			"shop/cart").Status.Conditions, catalog.ConditionFall); x != nil {
			found = x.Reason
		}
		if found != c.reason {
			t.Errorf("step %d: reason %q, want %q", i, found, c.reason)
		}
	}
}

// The condition is there while what is measured is not believed, or not learned, and goes with it.
func TestReportAnUnconfirmedRise(t *testing.T) {
	r := newReported(t, kubetest.Shop()...)
	for i, c := range []struct {
		hold    portrait.Doubt
		sources []reason.Reason
		reason  string
	}{
		{portrait.Doubt{}, nil, ""},
		{portrait.Doubt{Since: kubetest.Now.Add(-time.Hour), Top: 100}, nil, ""},
		{portrait.Doubt{Since: kubetest.Now.Add(-time.Hour), Top: 100, Rise: true}, nil, "NotLearned"},
		{portrait.Doubt{Since: kubetest.Now.Add(-time.Hour), Top: 100, Rise: true}, []reason.Reason{reason.Said("CPU")},
			"NotBelieved"},
		{portrait.Doubt{}, []reason.Reason{reason.Said("CPU")}, "NotBelieved"},
		{portrait.Doubt{}, nil, ""},
	} {
		r.cycle(t, func(rep *loop.Report) {
			rep.Portraits["shop/cart"] = portrait.Portrait{Step: 5 * time.Minute, Doubt: c.hold}
			for k := range rep.Plan.Targets {
				rep.Plan.Targets[k].Unconfirmed = c.sources
			}
		})
		conditions := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status.Conditions
		found := ""
		if x := meta.FindStatusCondition(conditions, catalog.ConditionRise); x != nil {
			found = x.Reason
		}
		if found != c.reason {
			t.Errorf("step %d: reason %q, want %q", i, found, c.reason)
		}
		if x := meta.FindStatusCondition(conditions, catalog.ConditionFall); c.hold.Rise && x != nil {
			t.Errorf("step %d: a rise is reported as a fall", i)
		}
	}
}
