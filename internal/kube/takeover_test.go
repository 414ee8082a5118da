package kube

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// takeOver lets a leader of an epoch take over as Lead does.
func (w *world) takeOver(t *testing.T, epoch int64) {
	t.Helper()
	m := &moving{nodes: map[string]bool{}}
	if _, err := w.nextEpoch(t.Context(), m.see); err != nil {
		t.Fatal(err)
	}
	if err := w.Cluster.takeOver(t.Context(), m, epoch); err != nil {
		t.Fatal(err)
	}
}

// A new leader writes its epoch on what moves and on nothing else: its writes grow with the loans in motion, not with the machines.
func TestANewLeaderStampsWhatMoves(t *testing.T) {
	observed, floored, set := service("observed"), service("floored"), service("set")
	observed.Spec.Mode = "Observe"
	floored.Spec.Actuation = "HPAFloor"
	set.Spec.TargetRef.Kind = "StatefulSet"
	raised := autoscaler("floored", "floored")
	raised.Annotations = map[string]string{v1alpha1.AnnotationAdopted: "2"}
	objects := []metav1.Object{leaderLease("test", 1), pool("web", "Online", inWeb), pool("batch", "Offline", inBatch),
		deployment("cart", 3), service("cart"), deployment("observed", 3), observed, deployment("floored", 3), floored, raised,
		&appsv1.StatefulSet{ObjectMeta: objectMeta("StatefulSet", "shop", "set"), Spec: appsv1.StatefulSetSpec{Replicas: ptr(int32(2)), Template: template("1")}}, set}
	for name, phase := range map[string]string{"begun": "", "empties": "Emptying", "rests": "Lent", "noticed": "Noticed", "drains": "Draining", "back": "Returned"} {
		objects = append(objects, node(name, inWeb), loan("l-"+name, name, phase, 2, 0), nodeShare(name, "l-"+name, "batch", "", 2, false, 0))
	}
	w := newWorld(t, objects...)
	rec := w.recordWrites()
	w.takeOver(t, 8)
	want := []string{"patch deployments cart", "patch horizontalpodautoscalers floored", "patch statefulsets set",
		"update capacitypools/status batch", "update capacitypools/status web",
		"update loans/status l-back", "update loans/status l-begun", "update loans/status l-drains", "update loans/status l-empties", "update loans/status l-noticed",
		"update nodeshares back", "update nodeshares begun", "update nodeshares drains", "update nodeshares empties", "update nodeshares noticed"}
	got := rec.without("events")
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("writes %v\nwant %v", got, want)
	}
	if l, s := w.loanObject(t, "l-noticed"), w.share(t, "noticed"); l.Status.LeaderEpoch != 8 || l.Status.Phase != "Noticed" || s.Spec.LeaderEpoch != 8 || len(s.Spec.Parcels) != 1 {
		t.Errorf("loan %+v, share %+v", l.Status, s.Spec)
	}
	// The fake gives no new versions out, so that the watches are waited for here.
	for range 1000 {
		d, _ := w.deployments.get("shop", "cart")
		s, _ := w.statefulSets.get("shop", "set")
		h, _ := w.hpas.get("shop", "floored")
		if d.leader == 8 && s.leader == 8 && h.leader == 8 {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	rec.list = nil
	w.takeOver(t, 8)
	if got := rec.without("events"); len(got) > 0 {
		t.Errorf("stamped again: %v", got)
	}
}

// An object that changes under the stamp is read again, and one that is gone needs none.
func TestStampsOverwriteNothing(t *testing.T) {
	w := newWorld(t, leaderLease("test", 1), pool("web", "Online", inWeb), node("n1", inWeb), loan("l", "n1", "Noticed", 2, 0), nodeShare("n1", "l", "batch", "web", 2, false, 0))
	m := &moving{nodes: map[string]bool{}}
	if _, err := w.nextEpoch(t.Context(), m.see); err != nil {
		t.Fatal(err)
	}
	conflicts := 0
	w.dyn.PrependReactor("update", "loans", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts++; conflicts == 1 {
			u, err := encode(gvrLoans, loan("l", "n1", "Draining", 2, 0)) // the leader before is still at work
			if err != nil {
				t.Error(err)
			}
			if err := w.dyn.Tracker().Update(gvrLoans, u, ""); err != nil {
				t.Error(err)
			}
			return true, nil, conflictOn("loans")
		}
		return false, nil, nil
	})
	if err := w.Cluster.takeOver(t.Context(), m, 9); err != nil {
		t.Fatal(err)
	}
	if l := w.loanObject(t, "l"); l.Status.LeaderEpoch != 9 || l.Status.Phase != "Draining" {
		t.Errorf("the loan is %+v", l.Status)
	}
}

// A leader whose successor stamped a target scales it no more: not where its watch brought the stamp, and not where it only meets it at a
// conflict that left the replicas as they were.
func TestAStampedTargetIsNotScaled(t *testing.T) {
	stamped := func(d *appsv1.Deployment) *appsv1.Deployment {
		d.Annotations = map[string]string{v1alpha1.AnnotationLeaderEpoch: "8"} // the plan is of epoch 7
		return d
	}
	for name, watched := range map[string]bool{"seen by the watch": true, "met at a conflict": false} {
		objects := shop()
		if watched {
			for i, o := range objects {
				if d, ok := o.(*appsv1.Deployment); ok && d.Name == "cart" {
					objects[i] = stamped(d)
				}
			}
		}
		w := newWorld(t, objects...)
		sent := w.scaleReactor(1, 3)
		w.core.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			d := stamped(deployment("cart", 3))
			d.ResourceVersion = "200"
			return true, d, nil
		})
		rs := w.do(t, planner.Plan{Lowers: []planner.Scale{lowerCart()}})
		if rs[0].Outcome != loop.Stale || len(*sent) > 1 || watched && len(*sent) > 0 {
			t.Errorf("%s: %+v after %d writes", name, rs[0], len(*sent))
		}
	}
}

// The floor of an HPA that a newer leader stamped is left alone as well.
func TestAStampedFloorIsNotMoved(t *testing.T) {
	h := adopted()
	h.Annotations[v1alpha1.AnnotationLeaderEpoch] = "8"
	s := service("cart")
	s.Spec.Actuation = "HPAFloor"
	w := newWorld(t, deployment("cart", 3), replicaSet("cart", 1), s, h)
	rec := w.recordWrites()
	raise := planner.Scale{Service: "shop/cart", Target: fleet.Name{Namespace: h.Namespace, Name: h.Name}, Kind: "HorizontalPodAutoscaler", By: fleet.ByHPAFloor, From: 3, To: 5}
	rs := w.do(t, planner.Plan{Raises: []planner.Scale{raise}})
	if rs[0].Outcome == loop.Done || len(rec.without("events")) > 0 {
		t.Errorf("%+v, %v", rs, rec.without("events"))
	}
}
