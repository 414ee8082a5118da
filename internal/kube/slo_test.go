package kube

import (
	"testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
)

// The objective in force is shown, and marked where it is the default.
func TestReportObjective(t *testing.T) {
	for name, v := range map[string]struct {
		stated *v1alpha1.Objective
		want   v1alpha1.ObjectiveStatus
	}{
		"none": {nil, v1alpha1.ObjectiveStatus{GoodMinutes: "99.5%", Over: "28d", Default: true}},
		"stated": {&v1alpha1.Objective{GoodMinutes: "99.95%", Over: "7d"}, v1alpha1.ObjectiveStatus{GoodMinutes: "99.95%",
			Over: "7d"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := kubetest.Shop()
			for _, o := range objects {
				if s, ok := o.(*v1alpha1.ElasticService); ok {
					s.Spec.SLO.Objective = v.stated
				}
			}
			r := newReported(t, objects...)
			r.cycle(t, nil)
			s := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status.SLO
			if s == nil || s.Objective != v.want {
				t.Errorf("%+v, want %+v", s, v.want)
			}
		})
	}
}
