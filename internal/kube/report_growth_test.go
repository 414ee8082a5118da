package kube

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
)

// TestOnlineGrowth: a machine that offers idle CPU learns how far its online pods are forecast to grow, once for each step; any other machine learns nothing.
func TestOnlineGrowth(t *testing.T) {
	objects := kubetest.Shop()
	n := objects[0].(*corev1.Node)
	n.Status.Capacity = corev1.ResourceList{v1alpha1.ResourceReclaimedCPU: resource.MustParse("0")}
	share := &v1alpha1.NodeShare{ObjectMeta: kubetest.Meta("NodeShare", "", "n1"),
		Spec: v1alpha1.NodeShareSpec{NodeUID: string(n.UID), LeaderEpoch: 6}}
	plain := kubetest.Node("n2", kubetest.InWeb)
	other := &v1alpha1.NodeShare{ObjectMeta: kubetest.Meta("NodeShare", "", "n2"),
		Spec: v1alpha1.NodeShareSpec{NodeUID: string(plain.UID), LeaderEpoch: 6}}
	elsewhere := kubetest.Pod("shop", "cart-d", "n2", "ReplicaSet", "cart-2")
	r := newReported(t, append(objects, []metav1.Object{share, plain, other, elsewhere}...)...)

	// The tide is at 100 and rises to so many times as much within the half hour, later to a hundred times.
	type look struct {
		times     float64
		trusted   bool
		mode      fleet.Mode
		replicas  int32
		want      string
		writes    int
		situation string
	}
	for _, l := range []look{
		{1.2, true, fleet.Auto, 3, "", 0, "less than what the agent keeps free"},
		{1.9, true, fleet.Auto, 3, "2", 1, "the tide rises"},
		{1.8, true, fleet.Auto, 3, "2", 0, "within the step"},
		{1.72, true, fleet.Auto, 3, "2", 0, "at the edge of the step"},
		{1.9, false, fleet.Auto, 3, "", 1, "the forecast is not trusted"},
		{1.9, true, fleet.Observe, 3, "", 0, "the service is observed"},
		{50, true, fleet.Auto, 3, "4", 1, "bounded"},
		{3, true, fleet.Auto, 6, "1.5", 1, "twice as many replicas come"},
		{math.NaN(), true, fleet.Auto, 3, "", 1, "no forecast"},
	} {
		written, _ := r.cycle(t, func(rep *loop.Report) {
			s := &rep.Snapshot.Services[0]
			s.Mode = l.mode
			rep.Plan.Targets[0].Replicas = l.replicas
			if !math.IsNaN(l.times) {
				rep.Tides[s.ID] = forecast.Tide{Start: rep.Snapshot.At, Step: 15 * time.Minute, Quantiles: []float64{0.5, 0.9}, Trusted: l.trusted,
					Paths: [][]float64{{100, 100, 100, 100}, {100, 100 * l.times, 100, 10000}}}
			}
		})
		writes := 0
		for _, w := range written {
			if w == "update nodeshares n1" {
				writes++
			} else if w == "update nodeshares n2" {
				t.Errorf("%s: a machine that offers nothing is written", l.situation)
			}
		}
		got := objectNow[v1alpha1.NodeShare](t, r.world, object.GVRShares, "n1")
		if text := got.Annotations[v1alpha1.AnnotationOnlineGrowth]; text != l.want || writes != l.writes {
			t.Errorf("%s: growth %q by %d writes, want %q by %d", l.situation, text, writes, l.want, l.writes)
		}
		if got.Spec.LeaderEpoch != 6 || got.Spec.NodeUID != string(n.UID) {
			t.Errorf("%s: the share itself changed: %+v", l.situation, got.Spec)
		}
	}
}
