package kube

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/act"
	"github.com/springtide/springtide/internal/kube/election"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/recorder"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// stamped puts the stamp of a leader of the tests' Lease on an object.
func stamped(o metav1.Object, epoch int64) {
	notes := maps.Clone(o.GetAnnotations())
	if notes == nil {
		notes = map[string]string{}
	}
	notes[v1alpha1.AnnotationLeaderEpoch] = leadership.StampText(epoch, kubetest.Lease, o.GetUID())
	o.SetAnnotations(notes)
}

// TakeOver lets a leader of an epoch take over as Lead does.
func (w *world) takeOver(t *testing.T, epoch int64) {
	t.Helper()
	m := &election.Moving{Nodes: map[string]bool{}}
	if _, err := w.NextEpoch(t.Context(), m.See); err != nil {
		t.Fatal(err)
	}
	if err := w.rooms.TakeOver(t.Context(), m, leadership.Held{Epoch: epoch, Lease: kubetest.Lease}); err != nil {
		t.Fatal(err)
	}
}

// A new leader writes its epoch on what moves and on nothing else: its writes grow with the loans in motion, not with the machines.
func TestANewLeaderStampsWhatMoves(t *testing.T) {
	observed, floored, set := kubetest.Service("observed"), kubetest.Service("floored"), kubetest.Service("set")
	observed.Spec.Mode = "Observe"
	floored.Spec.Actuation = "HPAFloor"
	set.Spec.TargetRef.Kind = "StatefulSet"
	raised := kubetest.Autoscaler("floored", "floored")
	raised.Annotations = map[string]string{v1alpha1.AnnotationAdopted: "2"}
	objects := []metav1.Object{leaderLease("test", 1), kubetest.Pool("web", "Online", kubetest.InWeb),
		kubetest.Pool("batch", "Offline", kubetest.InBatch),
		kubetest.Deployment("cart", 3), kubetest.Service("cart"), kubetest.Deployment("observed",
			3), observed, kubetest.Deployment("floored", 3), floored, raised,
		&appsv1.StatefulSet{ObjectMeta: kubetest.Meta("StatefulSet", "shop", "set"),
			Spec: appsv1.StatefulSetSpec{Replicas: kubetest.Ptr(int32(2)), Template: kubetest.Template("1")}}, set}
	for name, phase := range map[string]string{"begun": "", "empties": "Emptying", "rests": "Lent", "noticed": "Noticed", "drains": "Draining", "back": "Returned"} {
		objects = append(objects, kubetest.Node(name, kubetest.InWeb), kubetest.Loan("l-"+name, name, phase, 2, 0),
			kubetest.NodeShare(name, "l-"+name, "batch", "", 2, false, 0))
	}
	w := newWorld(t, objects...)
	rec := w.recordWrites()
	noted := func(write string) bool { return strings.Contains(write, " leases ") } // the epoch on the Lease
	w.takeOver(t, 8)
	want := []string{"patch deployments cart", "patch horizontalpodautoscalers floored", "patch statefulsets set",
		"update capacitypools/status batch", "update capacitypools/status web",
		"update loans/status l-back", "update loans/status l-begun", "update loans/status l-drains", "update loans/status l-empties", "update loans/status l-noticed",
		"update nodeshares back", "update nodeshares begun", "update nodeshares drains", "update nodeshares empties", "update nodeshares noticed"}
	got := slices.DeleteFunc(rec.without("events"), noted)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("writes %v\nwant %v", got, want)
	}
	if l, s := w.loanObject(t, "l-noticed"), w.share(t, "noticed"); l.Status.LeaderEpoch != 8 || l.Status.Phase != "Noticed" || s.Spec.LeaderEpoch != 8 || len(s.Spec.Parcels) != 1 {
		t.Errorf("loan %+v, share %+v", l.Status, s.Spec)
	}
	// The fake gives no new versions out, so that the watches are waited for here.
	for range 1000 {
		d, _ := w.Deployments.Get("shop", "cart")
		s, _ := w.StatefulSets.Get("shop", "set")
		h, _ := w.HPAs.Get("shop", "floored")
		if want := (leadership.Stamp{Epoch: 8, Lease: kubetest.Lease}); d.Leader == want && s.Leader == want &&
			h.Leader == want {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	rec.list = nil
	w.takeOver(t, 8)
	if got := slices.DeleteFunc(rec.without("events"), noted); len(got) > 0 {
		t.Errorf("stamped again: %v", got)
	}
}

// An object that changes under the stamp is read again, and one that is gone needs none.
func TestStampsOverwriteNothing(t *testing.T) {
	w := newWorld(t, leaderLease("test", 1), kubetest.Pool("web", "Online", kubetest.InWeb),
		kubetest.Node("n1", kubetest.InWeb), kubetest.Loan("l", "n1", "Noticed", 2, 0), kubetest.NodeShare("n1", "l",
			"batch", "web", 2, false, 0))
	m := &election.Moving{Nodes: map[string]bool{}}
	if _, err := w.NextEpoch(t.Context(), m.See); err != nil {
		t.Fatal(err)
	}
	conflicts := 0
	w.dyn.PrependReactor("update", "loans", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts++; conflicts == 1 {
			// the leader before is still at work
			u, err := object.Encode(object.GVRLoans, kubetest.Loan("l", "n1", "Draining", 2, 0))
			if err != nil {
				t.Error(err)
			}
			if err := w.dyn.Tracker().Update(object.GVRLoans, u, ""); err != nil {
				t.Error(err)
			}
			return true, nil, conflictOn("loans")
		}
		return false, nil, nil
	})
	if err := w.rooms.TakeOver(t.Context(), m, leadership.Held{Epoch: 9, Lease: kubetest.Lease}); err != nil {
		t.Fatal(err)
	}
	if l := w.loanObject(t, "l"); l.Status.LeaderEpoch != 9 || l.Status.Phase != "Draining" {
		t.Errorf("the loan is %+v", l.Status)
	}
}

// A leader whose successor stamped a target scales it no more: not where its watch brought the stamp, and not where it only meets it at a
// conflict that left the replicas as they were.
func TestAStampedTargetIsNotScaled(t *testing.T) {
	byAnother := func(d *appsv1.Deployment) *appsv1.Deployment {
		stamped(d, 8) // the plan is of epoch 7
		return d
	}
	for name, watched := range map[string]bool{"seen by the watch": true, "met at a conflict": false} {
		objects := kubetest.Shop()
		if watched {
			for i, o := range objects {
				if d, ok := o.(*appsv1.Deployment); ok && d.Name == "cart" {
					objects[i] = byAnother(d)
				}
			}
		}
		w := newWorld(t, objects...)
		sent := w.scaleReactor(1, 3)
		w.core.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			d := byAnother(kubetest.Deployment("cart", 3))
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
	stamped(h, 8)
	s := kubetest.Service("cart")
	s.Spec.Actuation = "HPAFloor"
	w := newWorld(t, kubetest.Deployment("cart", 3), kubetest.ReplicaSet("cart", 1), s, h)
	rec := w.recordWrites()
	raise := planner.Scale{Service: "shop/cart", Target: fleet.Name{Namespace: h.Namespace, Name: h.Name}, Kind: "HorizontalPodAutoscaler", By: fleet.ByHPAFloor, From: 3, To: 5}
	rs := w.do(t, planner.Plan{Raises: []planner.Scale{raise}})
	if rs[0].Outcome == loop.Done || len(rec.without("events")) > 0 {
		t.Errorf("%+v, %v", rs, rec.without("events"))
	}
}

// A service is blocked by a stamp that its leader must not write over, and by no other: what is left of counters that are gone says nothing.
func TestStampsThatBlock(t *testing.T) {
	uid := string(kubetest.UID("Deployment", "cart"))
	for text, reason := range map[string]string{"": "", "6/lease-uid/" + uid: "", "7/lease-uid/" + uid: "", "8/lease-uid/" + uid: "NewerLeader", "19/lease-uid/copied": "",
		"19/another/" + uid: "", "19": "", "9223372036854775807/lease-uid/" + uid: "", "-1/lease-uid/" + uid: ""} {
		d := kubetest.Deployment("cart", 3)
		d.Annotations = map[string]string{v1alpha1.AnnotationLeaderEpoch: text}
		observed := kubetest.Service("observed") // of another target that is stamped the same
		observed.Spec.Mode = "Observe"
		x := kubetest.Deployment("observed", 3)
		x.Annotations = map[string]string{v1alpha1.AnnotationLeaderEpoch: strings.Replace(text, uid, string(x.UID), 1)}
		w := newWorld(t, kubetest.Pool("web", "Online", kubetest.InWeb), d, kubetest.Service("cart"), x, observed)
		if got := w.snapshot(t).Service("shop/cart").Blocked.Reason; got != reason {
			t.Errorf("%q: blocked by %q, want %q", text, got, reason)
		}
		if got := w.snapshot(t).Service("shop/observed").Blocked; got.Any() {
			t.Errorf("%q: a service that only looks on is blocked: %s", text, got)
		}
		// Written since this leader stamped it: another installation is at work.
		w.Term.NoteStamp(d.UID)
		if strings.HasPrefix(text, "19/another/") {
			reason = "AnotherInstallation"
		}
		if got := w.snapshot(t).Service("shop/cart").Blocked.Reason; got != reason {
			t.Errorf("%q once it was stamped: blocked by %q, want %q", text, got, reason)
		}
	}
	// The same of an HPA whose floor is raised.
	for text, reason := range map[string]string{"8/lease-uid/": "NewerLeader", "8/another/": "", "9223372036854775807/lease-uid/": ""} {
		h := adopted()
		h.Annotations[v1alpha1.AnnotationLeaderEpoch] = text + string(h.UID)
		s := kubetest.Service("cart")
		s.Spec.Actuation = "HPAFloor"
		w := newWorld(t, kubetest.Pool("web", "Online", kubetest.InWeb), kubetest.Deployment("cart", 3), s, h)
		if got := w.snapshot(t).Service("shop/cart").Blocked.Reason; got != reason {
			t.Errorf("floor, %q: blocked by %q, want %q", text, got, reason)
		}
	}
}

// Machines and jobs whose writes met the epoch of a newer leader are named in the report of the cycle.
func TestNewerLeadersAreNamed(t *testing.T) {
	w, m := opened(t, func(n *corev1.Node) { stamped(n, 8) })
	before := testutil.ToFloat64(act.NewerWrites.WithLabelValues("Node"))
	w.do(t, planner.Plan{Marks: []planner.Mark{m}})
	if got := testutil.ToFloat64(act.NewerWrites.WithLabelValues("Node")) - before; got != 1 {
		t.Errorf("%v writes counted", got)
	}
	newer := w.Actuator.NewerMet()
	if text := newer[protocol.Object{Kind: protocol.ObjectNode, Name: "n1"}]; !strings.Contains(text, "leader epoch 8 wrote it, this is epoch 7") {
		t.Errorf("remembered %v", newer)
	}
	w.do(t, planner.Plan{})
	if newer := w.Actuator.NewerMet(); len(newer) > 0 {
		t.Errorf("remembered after a plan that met none: %v", newer)
	}
}

// Numbers that no leader and no loan can have reached are named once, on their objects.
func TestDoubtsAreNamed(t *testing.T) {
	s, l, n, p := kubetest.Service("cart"), kubetest.Loan("l", "n1", "Lent", 2, 0), kubetest.NodeShare("n1", "l",
		"batch", "", 2, false, 0), kubetest.Pool("web", "Online", kubetest.InWeb)
	s.Status.LeaderEpoch, p.Status.LeaderEpoch, l.Status.LeaderEpoch, n.Spec.LeaderEpoch = math.MaxInt64, 1<<62, -1, v1alpha1.MaxEpoch
	l.Status.Epoch, n.Spec.Parcels[0].Epoch = math.MaxInt64, 1<<62
	w := newWorld(t, s, l, n, p)
	events := record.NewFakeRecorder(100)
	w.Events = declared{events, t}
	said := func() (out []string) {
		for len(events.Events) > 0 {
			out = append(out, <-events.Events)
		}
		return out
	}
	counted := testutil.ToFloat64(recorder.Unbelieved.WithLabelValues("CapacityPool", "leaderEpoch"))
	w.ReportDoubts(7)
	if n := testutil.ToFloat64(recorder.Unbelieved.WithLabelValues("CapacityPool", "leaderEpoch")) - counted; n < 1 {
		t.Errorf("the pool's number was counted %g times", n)
	}
	if got := said(); len(got) != 6 || slices.ContainsFunc(got, func(e string) bool { return !strings.Contains(e, "NotBelieved") }) {
		t.Errorf("%d events: %q", len(got), got)
	}
	w.ReportDoubts(7)
	if got := said(); len(got) > 0 {
		t.Errorf("named again: %q", got)
	}
	if got := w.snapshot(t); got.Loans[0].Epoch != 1 {
		t.Errorf("the loan is at epoch %d", got.Loans[0].Epoch)
	}
}
