package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/eviction"
	"github.com/springtide/springtide/internal/kube/act"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// writes records every call that changes something, in order, as "verb resource/subresource name".
type writes struct {
	mu   sync.Mutex
	list []string
}

func (w *world) recordWrites() *writes {
	rec := &writes{}
	note := func(a clienttesting.Action) (bool, runtime.Object, error) {
		line := a.GetVerb() + " " + a.GetResource().Resource
		if s := a.GetSubresource(); s != "" {
			line += "/" + s
		}
		switch x := a.(type) {
		case clienttesting.PatchAction:
			line += " " + x.GetName()
		case clienttesting.DeleteAction:
			line += " " + x.GetName()
		case clienttesting.CreateAction: // and updates, which have the same shape
			if o, ok := x.GetObject().(metav1.Object); ok {
				line += " " + o.GetName()
			}
		}
		rec.mu.Lock()
		defer rec.mu.Unlock()
		rec.list = append(rec.list, line)
		return false, nil, nil
	}
	for _, verb := range []string{"create", "update", "patch", "delete"} {
		w.core.PrependReactor(verb, "*", note)
		w.dyn.PrependReactor(verb, "*", note)
	}
	return rec
}

// without leaves out what the recorder of events writes on its own time.
func (r *writes) without(resource string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.list), func(s string) bool { return strings.Contains(s, " "+resource) })
}

func (w *world) do(t *testing.T, p planner.Plan) []loop.Result {
	t.Helper()
	p.At, p.LeaderEpoch = kubetest.Now, 7
	r, err := w.Apply(t.Context(), &p)
	if err != nil {
		t.Fatal(err)
	}
	return r.Results
}

func outcomesOf(rs []loop.Result) []string {
	var out []string
	for _, r := range rs {
		out = append(out, fmt.Sprintf("%s %s %s", r.Action, r.Subject, r.Outcome))
	}
	return out
}

// scaleReactor answers the scale subresource of Deployments, which the fake does not know, from a conflict on.
func (w *world) scaleReactor(conflicts int, now int32) *[]string {
	var sent []string
	w.core.PrependReactor("patch", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "scale" {
			return false, nil, nil
		}
		sent = append(sent, string(a.(clienttesting.PatchAction).GetPatch()))
		if len(sent) <= conflicts {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "cart", errors.New("changed"))
		}
		return true, &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "100"}}, nil
	})
	w.core.PrependReactor("get", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
		d := kubetest.Deployment("cart", now)
		d.ResourceVersion = "200"
		return true, d, nil
	})
	return &sent
}

func lowerCart() planner.Scale {
	return planner.Scale{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", By: fleet.ByScale, From: 3, To: 2}
}

func TestApplyScale(t *testing.T) {
	for _, c := range []struct {
		name      string
		conflicts int
		now       int32
		versions  []string
		want      loop.Outcome
	}{
		{"at once", 0, 3, []string{"100"}, loop.Done},
		{"a conflict that changed nothing", 1, 3, []string{"100", "200"}, loop.Done},
		{"a conflict that changed the replicas", 1, 4, []string{"100"}, loop.Stale},
		{"two conflicts", 2, 3, []string{"100", "200"}, loop.Stale},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, kubetest.Shop()...)
			sent := w.scaleReactor(c.conflicts, c.now)
			rs := w.do(t, planner.Plan{Lowers: []planner.Scale{lowerCart()}})
			if rs[0].Outcome != c.want || rs[0].Subject != "shop/cart" {
				t.Errorf("result = %+v, want %s", rs[0], c.want)
			}
			var versions []string
			for _, body := range *sent {
				var s autoscalingv1.Scale
				if err := json.Unmarshal([]byte(body), &s); err != nil {
					t.Fatal(err)
				}
				if s.Spec.Replicas != 2 {
					t.Errorf("sent %s", body)
				}
				versions = append(versions, s.ResourceVersion)
			}
			if diff := cmp.Diff(c.versions, versions); diff != "" {
				t.Errorf("resourceVersions sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyMarksVictimsBeforeTheScale(t *testing.T) {
	// cart-a was chosen by a scale-in that never happened; today it is cart-b. The cost of cart-c is its owner's.
	objects := kubetest.Shop()
	for _, o := range objects {
		switch o.GetName() {
		case "cart-a":
			o.SetAnnotations(marked(1))
		case "cart-c":
			o.SetAnnotations(map[string]string{corev1.PodDeletionCost: fmt.Sprint(protocol.VictimCost)})
		}
	}
	w := newWorld(t, objects...)
	w.scaleReactor(0, 3)
	rec := w.recordWrites()
	a := lowerCart()
	a.Victims = []planner.PodRef{{Name: fleet.Name{Namespace: "shop", Name: "cart-b"},
		ID: fleet.UID(kubetest.UID("Pod", "cart-b"))}}
	if rs := w.do(t, planner.Plan{Lowers: []planner.Scale{a}}); rs[0].Outcome != loop.Done {
		t.Fatalf("result = %+v", rs[0])
	}
	if diff := cmp.Diff([]string{"patch pods cart-a", "patch pods cart-b", "patch deployments/scale cart"}, rec.without("events")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	for name, want := range map[string][2]string{"cart-a": {}, "cart-b": {"-1000", "2"}, "cart-c": {"-1000"}} {
		if got := w.mark(t, name); got != want {
			t.Errorf("deletion cost and size of %s = %q, want %q", name, got, want)
		}
	}
}

// marked are the annotations of a pod that a scale-in to so many replicas is to take.
func marked(at int) map[string]string {
	return map[string]string{corev1.PodDeletionCost: fmt.Sprint(protocol.VictimCost), v1alpha1.AnnotationLeavesAt: fmt.Sprint(at)}
}

// mark is the deletion cost of a pod of the shop, and the size at which it leaves.
func (w *world) mark(t *testing.T, name string) [2]string {
	t.Helper()
	p, err := w.core.CoreV1().Pods("shop").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return [2]string{p.Annotations[corev1.PodDeletionCost], p.Annotations[v1alpha1.AnnotationLeavesAt]}
}

// The pods of a scale-in that the ReplicaSet is still at keep their marks when another scale-in follows.
func TestApplyKeepsMarksOfAScaleInThatGoesOn(t *testing.T) {
	objects := append(kubetest.Shop(), kubetest.Pod("shop", "cart-d", "n1", "ReplicaSet", "cart-2"))
	objects[len(objects)-1].SetAnnotations(marked(3)) // from four to three, and four are there
	w := newWorld(t, objects...)
	w.scaleReactor(0, 3)
	a := lowerCart()
	a.Victims = []planner.PodRef{{Name: fleet.Name{Namespace: "shop", Name: "cart-b"},
		ID: fleet.UID(kubetest.UID("Pod", "cart-b"))}}
	if rs := w.do(t, planner.Plan{Lowers: []planner.Scale{a}}); rs[0].Outcome != loop.Done {
		t.Fatalf("result = %+v", rs[0])
	}
	if got := w.mark(t, "cart-d"); got != [2]string{"-1000", "3"} {
		t.Errorf("the mark of cart-d is %q", got)
	}
}

// A victim that stayed loses its mark, and the snapshot after that knows it; a cost that another client wrote over ours
// is theirs.
func TestApplyUnmarks(t *testing.T) {
	for cost, want := range map[string]string{"-1000": "", "7": "7"} {
		objects := kubetest.Shop()
		for _, o := range objects {
			if o.GetName() == "cart-b" {
				notes := marked(3)
				notes[corev1.PodDeletionCost] = cost
				o.SetAnnotations(notes)
			}
		}
		w := newWorld(t, objects...)
		p := w.snapshot(t).Service("shop/cart").Pods[1]
		u := planner.Unmark{Service: "shop/cart", Pod: planner.PodRef{Name: p.Name, ID: p.ID}, Passed: true}
		if rs := w.do(t, planner.Plan{Unmarks: []planner.Unmark{u}}); rs[0].Outcome != loop.Done || rs[0].Action != "Unmark" {
			t.Fatalf("result = %+v", rs[0])
		}
		if got := w.mark(t, "cart-b"); got != [2]string{want} {
			t.Errorf("cost %s: left with %q", cost, got)
		}
		for w.snapshot(t).Service("shop/cart").Pods[1].LeavesAt.OK { // the fake's versions stand still, so that Apply waits for nothing
			time.Sleep(object.SightPoll)
		}
		if rs := w.do(t, planner.Plan{Unmarks: []planner.Unmark{u}}); rs[0].Outcome != loop.Stale {
			t.Errorf("unmarked twice: %+v", rs[0])
		}
	}
}

func TestApplyHoldsBackAWholePlan(t *testing.T) {
	frozen := &corev1.Namespace{ObjectMeta: kubetest.Meta("Namespace", "", kubetest.Namespace)}
	frozen.Annotations = map[string]string{v1alpha1.AnnotationFreeze: "network change"}
	w := newWorld(t, append(kubetest.Shop(), frozen)...)
	rec := w.recordWrites()
	rs := w.do(t, planner.Plan{Lowers: []planner.Scale{lowerCart()}})
	if rs[0].Outcome != loop.Stale || !strings.Contains(rs[0].Message, "frozen: network change") {
		t.Errorf("result = %+v", rs[0])
	}
	w2 := newWorld(t, kubetest.Shop()...)
	rec2 := w2.recordWrites()
	w2.lead(leadership.Held{Epoch: 8, Lease: kubetest.Lease}) // the plan of epoch 7 is of the leader before
	rs = w2.do(t, planner.Plan{Lowers: []planner.Scale{lowerCart()}})
	if rs[0].Outcome != loop.Stale || !strings.Contains(rs[0].Message, "leader epoch 7") {
		t.Errorf("result = %+v", rs[0])
	}
	if got := append(rec.without("events"), rec2.without("events")...); len(got) != 0 {
		t.Errorf("written all the same: %v", got)
	}
}

// lending is a machine n1 of pool web next to the pool batch.
func lending(more ...metav1.Object) []metav1.Object {
	return append([]metav1.Object{kubetest.Node("n1", kubetest.InWeb), kubetest.Pool("web", "Online", kubetest.InWeb),
		kubetest.Pool("batch", "Offline", kubetest.InBatch)}, more...)
}

func beginOn(name string, cells ...int) planner.Move {
	l := fleet.Loan{ID: fleet.LoanID(name), Node: fleet.NodeID(kubetest.UID("Node", "n1")), NodeName: "n1",
		Kind: fleet.KindNode, Cells: cells,
		Capacity: fleet.Resources{CPU: 64000, Memory: 256 * fleet.GiB}, From: "web", To: "batch"}.Begin(kubetest.Now,
		reason.Said("ebb"))
	return planner.Move{Kind: planner.MoveBegin, Before: l, After: l, Node: "n1"}
}

func TestApplyBegin(t *testing.T) {
	w := newWorld(t, lending()...)
	rec := w.recordWrites()
	// Two sockets of one machine: the second entry must not undo the first.
	rs := w.do(t, planner.Plan{Moves: []planner.Move{beginOn("l-a", 0, 1), beginOn("l-b", 2, 3)}})
	if diff := cmp.Diff([]string{"Move l-a Done", "Move l-b Done"}, outcomesOf(rs)); diff != "" {
		t.Fatalf("results (-want +got):\n%s\n%+v", diff, rs)
	}
	want := []string{
		"create loans l-a", "create nodeshares n1", "update loans/status l-a",
		"create loans l-b", "update nodeshares n1", "update loans/status l-b",
	}
	if diff := cmp.Diff(want, rec.without("events")); diff != "" {
		t.Errorf("the loan comes before its effect, and its phase after the share (-want +got):\n%s", diff)
	}
	s := w.share(t, "n1")
	if len(s.Spec.Parcels) != 2 || s.Spec.LeaderEpoch != 7 || s.Spec.Parcels[0].LoanName != "l-a" || s.Spec.Parcels[0].Next != "batch" || s.Spec.Parcels[0].Holder != "web" {
		t.Errorf("share = %+v", s.Spec)
	}
	if o := s.OwnerReferences; len(o) != 1 || o[0].Kind != "Node" || o[0].UID != kubetest.UID("Node", "n1") {
		t.Errorf("owners of the share = %+v: it must go with its machine", o)
	}
	l := w.loanObject(t, "l-a")
	if l.Status.Phase != "Emptying" || l.Status.Epoch != 1 || l.Status.LeaderEpoch != 7 || len(l.Status.History) != 1 || l.Spec.From != "web" {
		t.Errorf("loan = %+v", l)
	}
}

func TestApplyBeginTakesALoanBackWhenTheShareIsLost(t *testing.T) {
	w := newWorld(t, lending()...)
	w.dyn.PrependReactor("create", "nodeshares", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "nodeshares"}, "n1")
	})
	rec := w.recordWrites()
	rs := w.do(t, planner.Plan{Moves: []planner.Move{beginOn("l-a", 0)}})
	if rs[0].Outcome != loop.Stale {
		t.Errorf("result = %+v: somebody else wrote the share", rs[0])
	}
	if diff := cmp.Diff([]string{"create loans l-a", "create nodeshares n1", "delete loans l-a"}, rec.without("events")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestApplyBeginOnAMachineThatCameBack(t *testing.T) {
	old := kubetest.NodeShare("n1", "l-old", "batch", "", 4, true, 0)
	old.Spec.NodeUID = "the earlier machine"
	w := newWorld(t, lending(old)...)
	if w.snapshot(t).Nodes[0].Share.Exists {
		t.Error("the share of an earlier machine is not this machine's")
	}
	if rs := w.do(t, planner.Plan{Moves: []planner.Move{beginOn("l-a", 0)}}); rs[0].Outcome != loop.Done {
		t.Fatalf("result = %+v", rs[0])
	}
	s := w.share(t, "n1")
	if s.Spec.NodeUID != string(kubetest.UID("Node", "n1")) || len(s.Spec.Parcels) != 1 ||
		s.Spec.Parcels[0].LoanName != "l-a" {
		t.Errorf("share = %+v", s.Spec)
	}
}

func TestApplyNodeGone(t *testing.T) {
	w := newWorld(t, kubetest.Pool("web", "Online", kubetest.InWeb), kubetest.Pool("batch", "Offline",
		kubetest.InBatch), kubetest.Loan("l", "n1", "Draining", 3, 0))
	rec := w.recordWrites()
	before := *w.snapshot(t).Loan("l")
	if rs := w.do(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveNodeGone, Before: before,
		After: before.NodeGone(kubetest.Now)}}}); rs[0].Outcome != loop.Done {
		t.Fatalf("result = %+v", rs[0])
	}
	gone := *w.snapshot(t).Loan("l")
	if gone.Phase != fleet.Returned || gone.Reason.Text() != "the node is gone" {
		t.Errorf("loan = %+v", gone)
	}
	if rs := w.do(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveForget, Before: gone, After: gone}}}); rs[0].Outcome != loop.Done {
		t.Fatalf("result = %+v", rs[0])
	}
	if diff := cmp.Diff([]string{"update loans/status l", "delete loans l"}, rec.without("events")); diff != "" {
		t.Errorf("a machine that is gone took its share along (-want +got):\n%s", diff)
	}
}

func TestApplyRepair(t *testing.T) {
	// Stopped between the two writes of a recall: the share is at epoch 3, the loan still Lent at 2.
	w := newWorld(t, lending(kubetest.Loan("l", "n1", "Lent", 2, 0), kubetest.NodeShare("n1", "l", "batch", "web", 3,
		true, 0))...)
	before := *w.snapshot(t).Loan("l")
	after := before
	after.Epoch = 4 // above the share's, so that its Clean report is void
	if rs := w.do(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveRepair, Before: before, After: after, Node: "n1"}}}); rs[0].Outcome != loop.Done {
		t.Fatalf("result = %+v", rs[0])
	}
	s := w.snapshot(t)
	l, e := s.Loan("l"), s.Nodes[0].Share.Find("l")
	if l.Phase != fleet.Lent || l.Epoch != 4 || e.Epoch != 4 || e.Next != "" || e.Holder != "batch" || e.IsClean(4) {
		t.Errorf("loan %+v, entry %+v", l, e)
	}
}

// A loan that never had its share, since another one has the parcel, is cancelled by its own status alone.
func TestCancelOfALoanWithoutItsParcel(t *testing.T) {
	w := newWorld(t, lending(kubetest.Loan("l", "n1", "Lent", 2, 0), kubetest.NodeShare("n1", "l", "batch", "", 2,
		true, 0), kubetest.Loan("late", "n1", "Emptying", 1, 0))...)
	rec := w.recordWrites()
	before := *w.snapshot(t).Loan("late")
	after, err := before.Cancel(kubetest.Now, reason.Said("its parcel is in loan l"))
	if err != nil {
		t.Fatal(err)
	}
	if rs := w.do(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveCancel, Before: before, After: after, Node: "n1"}}}); rs[0].Outcome != loop.Done {
		t.Fatalf("result = %+v", rs[0])
	}
	if diff := cmp.Diff([]string{"update loans/status late"}, rec.without("events")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if e := w.snapshot(t).Nodes[0].Share.Find("l"); e == nil || e.Epoch != 2 {
		t.Errorf("the other's entry is %+v", e)
	}
}

func TestApplyStepsAndForgets(t *testing.T) {
	w := newWorld(t, lending(kubetest.Loan("l", "n1", "Draining", 3, 0),
		kubetest.NodeShare("n1", "l", "batch", "web", 3, true, 0))...)
	rec := w.recordWrites()
	before := *w.snapshot(t).Loan("l")
	after, err := before.Return(kubetest.Now, w.snapshot(t).Nodes[0].Share.Find("l"))
	if err != nil {
		t.Fatal(err)
	}
	if rs := w.do(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveReturn, Before: before, After: after, Node: "n1"}}}); rs[0].Outcome != loop.Done {
		t.Fatalf("return: %+v", rs)
	}
	if e := w.share(t, "n1").Spec.Parcels[0]; e.Holder != "web" || e.Next != "" || e.Epoch != 3 {
		t.Errorf("entry after the return = %+v", e)
	}
	if l := w.loanObject(t, "l"); l.Status.Phase != "Returned" ||
		convert.TimeOf(l.Status.CleanTime) != kubetest.Now.Add(-time.Minute) {
		t.Errorf("loan after the return = %+v", l.Status)
	}
	// The same step again: the facts moved on.
	if rs := w.do(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveReturn, Before: before, After: after, Node: "n1"}}}); rs[0].Outcome != loop.Stale {
		t.Errorf("the same step twice: %+v", rs)
	}
	gone := *w.snapshot(t).Loan("l")
	rest := fleet.Rest{Turns: 2, Until: kubetest.Now.Add(10 * time.Minute)}
	if rs := w.do(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveForget, Before: gone, After: gone, Node: "n1", Rest: rest}}}); rs[0].Outcome != loop.Done {
		t.Fatalf("forget: %+v", rs)
	}
	if got := w.snapshot(t).Nodes[0].Share.Rest; got != rest {
		t.Errorf("the machine rests as long as it was noticed, also for the next reader: %+v, want %+v", got, rest)
	}
	want := []string{"update nodeshares n1", "update loans/status l", "update nodeshares n1", "delete loans l"}
	if diff := cmp.Diff(want, rec.without("events")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// adopted is an HPA whose three replicas we raised to nine, written by the user's manager and by ours.
func adopted() *autoscalingv2.HorizontalPodAutoscaler {
	h := kubetest.Autoscaler("mine", "cart")
	h.Spec.MinReplicas = kubetest.Ptr(int32(9))
	h.Annotations = map[string]string{v1alpha1.AnnotationAdopted: "3", v1alpha1.AnnotationLeaderEpoch: "6", "team": "shop"}
	h.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "autoscaling/v2", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:maxReplicas":{}}}`)},
		{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "autoscaling/v2", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:minReplicas":{}}}`)},
	}
	return h
}

// Whose HPA is given back: one that carries our mark while no ElasticService asks for its floor.
func TestOrphans(t *testing.T) {
	floor := func(change func(*v1alpha1.ElasticService)) *v1alpha1.ElasticService {
		s := kubetest.Service("cart")
		s.Spec.Actuation = "HPAFloor"
		change(s)
		return s
	}
	foreign := kubetest.Autoscaler("mine", "cart")
	for name, c := range map[string]struct {
		objects []metav1.Object
		orphans int
	}{
		"the service is gone":          {[]metav1.Object{adopted()}, 1},
		"never ours":                   {[]metav1.Object{foreign}, 0},
		"asked for":                    {[]metav1.Object{adopted(), floor(func(*v1alpha1.ElasticService) {})}, 0},
		"asked for by one that is new": {[]metav1.Object{adopted(), floor(func(s *v1alpha1.ElasticService) { s.Name = "other" })}, 0},
		"another target":               {[]metav1.Object{adopted(), floor(func(s *v1alpha1.ElasticService) { s.Spec.TargetRef.Name = "pay" })}, 1},
		"scaled without it":            {[]metav1.Object{adopted(), floor(func(s *v1alpha1.ElasticService) { s.Spec.Actuation = "Scale" })}, 1},
		"only looked at":               {[]metav1.Object{adopted(), floor(func(s *v1alpha1.ElasticService) { s.Spec.Actuation, s.Spec.Mode = "Scale", "Observe" })}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorld(t, append(c.objects, kubetest.Deployment("cart", 9))...).snapshot(t)
			if len(s.Orphans) != c.orphans {
				t.Fatalf("%+v, want %d", s.Orphans, c.orphans)
			}
			want := fleet.AdoptedHPA{Name: fleet.Name{Namespace: "shop", Name: "mine"},
				ID: fleet.UID(kubetest.UID("HorizontalPodAutoscaler", "mine")), Min: 9, Own: 3, Version: "100"}
			if c.orphans > 0 && s.Orphans[0] != want {
				t.Errorf("%+v, want %+v", s.Orphans[0], want)
			}
		})
	}
}

func TestApplyGivesBack(t *testing.T) {
	w := newWorld(t, adopted(), kubetest.Deployment("cart", 9))
	o := w.snapshot(t).Orphans[0]
	back := planner.GiveBack{HPA: o.Name, ID: o.ID, From: o.Min, To: o.Own}
	if rs := w.do(t, planner.Plan{GiveBacks: []planner.GiveBack{back}}); rs[0].Outcome != loop.Done {
		t.Fatalf("result = %+v", rs[0])
	}
	h, err := w.core.AutoscalingV2().HorizontalPodAutoscalers("shop").Get(t.Context(), "mine", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *h.Spec.MinReplicas != 3 || len(h.Annotations) != 1 || h.Annotations["team"] != "shop" {
		t.Errorf("minReplicas %d, annotations %v; want what the owner had", *h.Spec.MinReplicas, h.Annotations)
	}
	for _, e := range h.ManagedFields {
		if e.Manager == v1alpha1.FieldManager {
			t.Errorf("%s still owns %s", e.Manager, e.FieldsV1.GetRawBytes())
		}
	}
	// A service that asks for the floor again in the meantime keeps it.
	s := kubetest.Service("cart")
	s.Spec.Actuation = "HPAFloor"
	again := newWorld(t, adopted(), kubetest.Deployment("cart", 9), s)
	if rs := again.do(t, planner.Plan{GiveBacks: []planner.GiveBack{back}}); rs[0].Outcome != loop.Stale {
		t.Errorf("result = %+v", rs[0])
	}
}

// recall is a machine on its way home with two offline pods.
func recall() []metav1.Object {
	a, b := kubetest.Pod("train", "bert-0", "n1", "Job", "bert"), kubetest.Pod("train", "bert-1", "n1", "Job", "bert")
	return lending(kubetest.Loan("l", "n1", "Draining", 3, 0), kubetest.NodeShare("n1", "l", "batch", "web", 3, false,
		0), kubetest.BatchJob("bert", 2), kubetest.ElasticJob("bert"), a, b)
}

func evict(name string) planner.Eviction {
	return planner.Eviction{Pod: planner.PodRef{Name: fleet.Name{Namespace: "train", Name: name},
		ID: fleet.UID(kubetest.UID("Pod", name))}, Loan: "l", Job: "train/bert"}
}

func TestApplyEvictsAfterTheLedger(t *testing.T) {
	w := newWorld(t, recall()...)
	rec := w.recordWrites()
	rs := w.do(t, planner.Plan{Evictions: []planner.Eviction{evict("bert-0"), evict("bert-1"), evict("bert-9")}})
	if diff := cmp.Diff([]string{"Evict train/bert-0 Done", "Evict train/bert-1 Done", "Evict train/bert-9 Stale"}, outcomesOf(rs)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	want := []string{"update capacitypools/status web", "create pods/eviction bert-0", "create pods/eviction bert-1"}
	if diff := cmp.Diff(want, rec.without("events")); diff != "" {
		t.Errorf("the ledger is written once, and first (-want +got):\n%s", diff)
	}
	d := w.poolObject(t, "web").Status.Disruptions
	if d.Recalls != 2 || d.Evictions != 0 || !d.WindowStart.Time.Equal(kubetest.Now) {
		t.Errorf("ledger = %+v: two recalls, on a line of their own", d)
	}
}

// A recall waits for no budget: the pool that lent may be gone, and its line with it.
func TestApplyEvictsForAPoolThatIsGone(t *testing.T) {
	w := newWorld(t, slices.DeleteFunc(recall(), func(o metav1.Object) bool { return o.GetName() == "web" })...)
	rec := w.recordWrites()
	rs := w.do(t, planner.Plan{Evictions: []planner.Eviction{evict("bert-0"), evict("bert-1")}})
	if diff := cmp.Diff([]string{"Evict train/bert-0 Done", "Evict train/bert-1 Done"}, outcomesOf(rs)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"create pods/eviction bert-0", "create pods/eviction bert-1"}, rec.without("events")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestApplyEvictsNothingWithoutALedger(t *testing.T) {
	w := newWorld(t, recall()...)
	w.dyn.PrependReactor("update", "capacitypools", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("the store is full"))
	})
	rec := w.recordWrites()
	rs := w.do(t, planner.Plan{Evictions: []planner.Eviction{evict("bert-0"), evict("bert-1")}})
	if diff := cmp.Diff([]string{"Evict train/bert-0 Failed", "Evict train/bert-1 Failed"}, outcomesOf(rs)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"update capacitypools/status web"}, rec.without("events")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestApplyKill(t *testing.T) {
	objects := recall()
	for _, o := range objects {
		if l, ok := o.(*v1alpha1.Loan); ok {
			l.Status.KillTime = kubetest.Ptr(metav1.NewTime(kubetest.Now.Add(-time.Second)))
		}
		if p, ok := o.(*corev1.Pod); ok {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = kubetest.Ptr(metav1.NewTime(kubetest.Now)),
				kubetest.Ptr(int64(30))
		}
	}
	w := newWorld(t, objects...)
	rec := w.recordWrites()
	kill := func(name string) planner.Kill {
		e := evict(name)
		return planner.Kill{Pod: e.Pod, Loan: e.Loan, Job: e.Job}
	}
	rs := w.do(t, planner.Plan{Kills: []planner.Kill{kill("bert-0"), kill("bert-9")}})
	if diff := cmp.Diff([]string{"Kill train/bert-0 Done", "Kill train/bert-9 Stale"}, outcomesOf(rs)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"create pods/eviction bert-0"}, rec.without("events")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	for _, a := range w.core.Actions() {
		if c, ok := a.(clienttesting.CreateAction); ok && a.GetSubresource() == "eviction" {
			o := c.GetObject().(*policyv1.Eviction).DeleteOptions
			if o.GracePeriodSeconds == nil || *o.GracePeriodSeconds != 0 || *o.Preconditions.UID != kubetest.UID("Pod",
				"bert-0") {
				t.Errorf("evicted with %+v: no grace, and this very pod", o)
			}
		}
	}
}

func TestApplyEvictionRefusedByABudget(t *testing.T) {
	w := newWorld(t, recall()...)
	w.core.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetSubresource() == "eviction", nil, apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10)
	})
	rs := w.do(t, planner.Plan{Evictions: []planner.Eviction{evict("bert-0")}})
	if rs[0].Outcome != loop.Failed || !strings.Contains(rs[0].Message, "disruption budget") {
		t.Errorf("result = %+v: the pod stays and is asked again in the next cycle", rs[0])
	}
}

// The API server's answer to an eviction is remembered for the pod, charged or not, and named: at the first refusal.
func TestRefusedEvictionsAreRememberedAndNamed(t *testing.T) {
	labelled := map[string]string{"app": "bert"}
	budget := func(name string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "train", Name: name,
			UID: kubetest.UID("PodDisruptionBudget", name)},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labelled}}}
	}
	for _, x := range []struct {
		name    string
		answer  error
		outcome loop.Outcome
		recalls int32 // what the ledger counts after it
		refusal fleet.Refusal
	}{
		{"accepted", nil, loop.Done, 1, fleet.Refusal{}},
		{"two budgets", &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}},
			loop.Failed, 0, fleet.Refusal{Cause: fleet.RefusedByBudgets, By: "train/a and train/b", Never: true,
				Until: kubetest.Now.Add(eviction.NeverFirst)}},
		{"a webhook", &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 403, Message: `admission webhook "guard.example.com" denied the request: keep it`}},
			loop.Failed, 0, fleet.Refusal{Cause: fleet.RefusedByWebhook, By: "guard.example.com", Never: true,
				Until: kubetest.Now.Add(eviction.NeverFirst)}},
		{"flow control", apierrors.NewTooManyRequests("too many requests", 1), loop.Failed, 0,
			fleet.Refusal{Cause: fleet.RefusedByServer, Until: kubetest.Now.Add(eviction.LaterFirst)}},
		{"no answer: the pod may end", apierrors.NewTimeoutError("gave up", 1), loop.Failed, 1,
			fleet.Refusal{Cause: fleet.RefusedByServer, Until: kubetest.Now.Add(eviction.LaterFirst)}},
		{"gone", apierrors.NewNotFound(corev1.Resource("pods"), "bert-0"), loop.Stale, 1, fleet.Refusal{}},
		{"the budget changed under the request: the pod is not gone", apierrors.NewConflict(policyv1.Resource("poddisruptionbudgets"), "a", errors.New("modified")),
			loop.Failed, 0, fleet.Refusal{Cause: fleet.RefusedByBudget, By: "train/a",
				Until: kubetest.Now.Add(eviction.LaterFirst)}},
	} {
		t.Run(x.name, func(t *testing.T) {
			objects := recall()
			for _, o := range objects {
				if p, ok := o.(*corev1.Pod); ok && p.Name == "bert-0" {
					p.Labels = maps.Clone(p.Labels)
					if p.Labels == nil {
						p.Labels = map[string]string{}
					}
					maps.Copy(p.Labels, labelled)
				}
			}
			w := newWorld(t, append(objects, budget("a"), budget("b"))...)
			w.core.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				return a.GetSubresource() == "eviction" && x.answer != nil, nil, x.answer
			})
			rs := w.do(t, planner.Plan{Evictions: []planner.Eviction{evict("bert-0")}})
			if rs[0].Outcome != x.outcome || x.refusal.By != "" && !strings.Contains(rs[0].Message, x.refusal.By) {
				t.Errorf("result = %+v", rs[0])
			}
			if d := w.poolObject(t, "web").Status.Disruptions; d.Recalls != x.recalls {
				t.Errorf("the ledger counts %d recalls, want %d", d.Recalls, x.recalls)
			}
			s := w.snapshot(t)
			for i := range s.Pods {
				if p := &s.Pods[i]; p.Name.Name == "bert-0" && p.Refused != x.refusal {
					t.Errorf("remembered is %+v, want %+v", p.Refused, x.refusal)
				}
			}
		})
	}
}

// A pod whose labels or readiness changed is asked again soon: other budgets may select it, though none of them changed.
func TestAChangedPodIsAskedAgain(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(*corev1.Pod)
		soon   bool
	}{
		{"another label", func(p *corev1.Pod) { p.Labels = map[string]string{"keep": "no"} }, true},
		{"two more labels", func(p *corev1.Pod) { p.Labels = map[string]string{"keep": "no", "app": "bert"} }, true},
		{"it is not ready", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		}, true},
		{"an annotation", func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
	} {
		w := newWorld(t, recall()...)
		pods, now := w.core.CoreV1().Pods("train"), w.clock.Now()
		p, err := pods.Get(t.Context(), "bert-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.Evictions.Note(p.UID, "train", eviction.Answer{Verdict: eviction.Never, Cause: fleet.RefusedByBudgets},
			now.Add(-30*time.Second))
		x.change(p)
		p.ResourceVersion = "changed"
		if err := w.core.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), p, "train"); err != nil { // by its owner
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if f, ok := w.Pods.Get("train", "bert-0"); ok && f.ResourceVersion != p.ResourceVersion && !x.soon {
				break
			}
			if r := w.Evictions.Refused(p.UID, now); x.soon && !r.Holds(now) {
				break
			}
		}
		if r := w.Evictions.Refused(p.UID, now); r.Holds(now) == x.soon {
			t.Errorf("%s: asked again %s later, want at once %v", x.name, r.Until.Sub(now), x.soon)
		}
	}
}

// spentPool is recall with the budget and the ledger of the lending pool changed.
func spentPool(change func(*v1alpha1.CapacityPool)) []metav1.Object {
	objects := recall()
	for _, o := range objects {
		if p, ok := o.(*v1alpha1.CapacityPool); ok && p.Name == "web" {
			change(p)
		}
	}
	return objects
}

func TestLedgerBoundsWhatIsNoRecall(t *testing.T) {
	spent := func(owner string, pods int32) v1alpha1.DisruptionLedger {
		return v1alpha1.DisruptionLedger{WindowStart: kubetest.Ago(20 * time.Second), Evictions: pods, Recalls: 50,
			SpanStart: kubetest.Ago(20 * time.Second),
			Owners:    []v1alpha1.DisruptedOwner{{Owner: owner, Pods: pods}}}
	}
	for name, change := range map[string]func(*v1alpha1.CapacityPool){
		"two of three a minute": func(p *v1alpha1.CapacityPool) {
			p.Spec.Disruptions = v1alpha1.DisruptionBudget{EvictionsPerMinute: kubetest.Ptr(int32(3)),
				ServicePercent: kubetest.Ptr(int32(100)), FleetPercent: kubetest.Ptr(int32(100))}
			p.Status.Disruptions = spent("job train/other", 2)
		},
		"half of two of a job": func(p *v1alpha1.CapacityPool) {
			p.Spec.Disruptions = v1alpha1.DisruptionBudget{ServicePercent: kubetest.Ptr(int32(50)),
				FleetPercent: kubetest.Ptr(int32(100))}
			p.Status.Disruptions = spent("job train/other", 2)
		},
		"three quarters of two and two": func(p *v1alpha1.CapacityPool) {
			p.Spec.Disruptions = v1alpha1.DisruptionBudget{ServicePercent: kubetest.Ptr(int32(100)),
				FleetPercent: kubetest.Ptr(int32(75))}
			p.Status.Disruptions = spent("job train/other", 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spentPool(change)...)
			free := func(name string) planner.Eviction { e := evict(name); e.Loan = ""; return e }
			rs := w.do(t, planner.Plan{Evictions: []planner.Eviction{free("bert-0"), free("bert-1")}})
			if diff := cmp.Diff([]string{"Evict train/bert-0 Done", "Evict train/bert-1 Failed"}, outcomesOf(rs)); diff != "" {
				t.Errorf("one more may go (-want +got):\n%s\n%+v", diff, rs)
			}
			want := spent("job train/bert", 1)
			want.Evictions, want.Owners = 3, append(want.Owners, v1alpha1.DisruptedOwner{Owner: "job train/other", Pods: 2})
			if diff := cmp.Diff(want, w.poolObject(t, "web").Status.Disruptions, timesEqual); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
		})
	}
}

var timesEqual = cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })

// steered is a scale-in of one pod off a machine that is being emptied.
func steered(s *fleet.Snapshot) planner.Plan {
	p := s.Service("shop/cart").Pods[1]
	return planner.Plan{Lowers: []planner.Scale{{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", By: fleet.ByScale,
		From: 3, To: 2, Victims: []planner.PodRef{{Name: p.Name, ID: p.ID}}, Charges: []planner.Charge{{Pool: "web", Pods: 1}}}}}
}

func TestApplyScalesInAfterTheLedger(t *testing.T) {
	w := newWorld(t, kubetest.Shop()...)
	w.scaleReactor(0, 3)
	rec := w.recordWrites()
	p := steered(w.snapshot(t))
	if rs := w.do(t, p); rs[0].Outcome != loop.Done {
		t.Fatalf("result = %+v", rs[0])
	}
	want := []string{"update capacitypools/status web", "patch pods cart-b", "patch deployments/scale cart"}
	if diff := cmp.Diff(want, rec.without("events")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	at := metav1.NewTime(kubetest.Now)
	if diff := cmp.Diff(v1alpha1.DisruptionLedger{WindowStart: at, Evictions: 1, SpanStart: at, Owners: []v1alpha1.DisruptedOwner{{Owner: "service shop/cart", Pods: 1}}},
		w.poolObject(t, "web").Status.Disruptions, timesEqual); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	// One of three is the fifth of a small service: the next one waits, whatever the plan believed.
	if rs := w.do(t, p); rs[0].Outcome != loop.Failed || !strings.Contains(rs[0].Message, "20 % of one service") {
		t.Errorf("result = %+v", rs[0])
	}
}

// A ledger that cannot be written, or that another actor charged between the decision and the write, holds the scale-in back.
func TestApplyScalesInNothingWithoutTheLedger(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "capacitypools"}, "web", errors.New("changed"))
	for name, c := range map[string]struct {
		err     error
		charged bool
		want    loop.Outcome
	}{
		"refused":                   {apierrors.NewInternalError(errors.New("the store is full")), false, loop.Failed},
		"charged by another":        {conflict, true, loop.Stale},
		"another status, no charge": {conflict, false, loop.Done},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, kubetest.Shop()...)
			sent := w.scaleReactor(0, 3)
			tries := 0
			w.dyn.PrependReactor("update", "capacitypools", func(clienttesting.Action) (bool, runtime.Object, error) {
				tries++
				return tries == 1, nil, c.err
			})
			if c.charged {
				w.dyn.PrependReactor("get", "capacitypools", func(clienttesting.Action) (bool, runtime.Object, error) {
					p := kubetest.Pool("web", "Online", kubetest.InWeb)
					p.Status.Disruptions = v1alpha1.DisruptionLedger{WindowStart: kubetest.Ago(time.Second), Evictions: 1}
					u, err := object.Encode(object.GVRPools, p)
					return true, u, err
				})
			}
			if rs := w.do(t, steered(w.snapshot(t))); rs[0].Outcome != c.want || (len(*sent) > 0) != (c.want == loop.Done) {
				t.Errorf("result = %+v, %d scales sent", rs[0], len(*sent))
			}
		})
	}
}

// noticedFor is a loan whose pods have a time from now.
func noticedFor(left time.Duration) *v1alpha1.Loan {
	l := kubetest.Loan("l", "n1", "Noticed", 3, 0)
	l.Status.Deadline = kubetest.Ptr(kubetest.Ago(-left))
	return l
}

func TestApplyNotice(t *testing.T) {
	objects := lending(noticedFor(time.Minute), kubetest.NodeShare("n1", "l", "batch", "web", 3, false, 0),
		kubetest.BatchJob("bert", 2), kubetest.ElasticJob("bert"),
		kubetest.Pod("train", "bert-0", "n1", "Job", "bert"))
	w := newWorld(t, objects...)
	m := planner.Move{Kind: planner.MoveAnnounce, Before: *w.snapshot(t).Loan("l"), Node: "n1"}
	m.After = m.Before
	m.After.Deadline = kubetest.Now.Add(90*time.Second + time.Millisecond)
	n := planner.Notice{Pod: evict("bert-0").Pod, Loan: "l", Epoch: 3, Deadline: m.After.Deadline}
	if rs := w.do(t, planner.Plan{Moves: []planner.Move{m}, Notices: []planner.Notice{n}}); rs[0].Outcome != loop.Done || rs[1].Outcome != loop.Done {
		t.Fatalf("results = %+v", rs)
	}
	p, err := w.core.CoreV1().Pods("train").Get(t.Context(), "bert-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Annotations[v1alpha1.AnnotationNotice], `{"deadline":"2026-06-01T12:01:31Z","epoch":3,"loan":"l"}`; got != want {
		t.Errorf("notice = %s, want %s (rounded up: a deadline never comes early)", got, want)
	}
	if f := watch.NewPodFacts(p); f.Pod.NoticeEpoch != 3 || f.Pod.NoticeLoan != "l" {
		t.Errorf("the notice is not read back: %+v", f.Pod)
	}
}

// A deadline that moves is announced again, and does not undo an answer; the notice of another epoch does.
func TestApplyNoticeAgain(t *testing.T) {
	for _, again := range []bool{true, false} {
		bert := kubetest.Pod("train", "bert-0", "n1", "Job", "bert")
		bert.Annotations = map[string]string{v1alpha1.AnnotationAck: "3"}
		w := newWorld(t, lending(noticedFor(time.Minute), kubetest.NodeShare("n1", "l", "batch", "web", 3, false, 0),
			kubetest.BatchJob("bert", 2), kubetest.ElasticJob("bert"), bert)...)
		w.do(t, planner.Plan{Notices: []planner.Notice{{Pod: evict("bert-0").Pod, Loan: "l", Epoch: 3,
			Deadline: kubetest.Now.Add(time.Minute), Again: again}}})
		p, err := w.core.CoreV1().Pods("train").Get(t.Context(), "bert-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, kept := p.Annotations[v1alpha1.AnnotationAck]; kept != again {
			t.Errorf("again %v: the answer is kept: %v", again, kept)
		}
		if d := watch.NewPodFacts(p).Pod.NoticeDeadline; !d.OK || !d.Value.Equal(kubetest.Now.Add(time.Minute)) {
			t.Errorf("the deadline is read back as %+v", d)
		}
	}
}

func TestApplyNoticeTakenBack(t *testing.T) {
	bert := kubetest.Pod("train", "bert-0", "n1", "Job", "bert")
	bert.Annotations = map[string]string{v1alpha1.AnnotationNotice: `{"loan":"l","epoch":2}`, v1alpha1.AnnotationAck: "2", "mine": "stays"}
	w := newWorld(t, lending(kubetest.Loan("l", "n1", "Lent", 3, 0), kubetest.NodeShare("n1", "l", "batch", "", 3,
		false, 0), kubetest.BatchJob("bert", 2), kubetest.ElasticJob("bert"), bert)...)
	if rs := w.do(t, planner.Plan{Notices: []planner.Notice{{Pod: evict("bert-0").Pod, Loan: "l", Epoch: 2, TakenBack: true}}}); rs[0].Outcome != loop.Done {
		t.Fatalf("result = %+v", rs[0])
	}
	p, err := w.core.CoreV1().Pods("train").Get(t.Context(), "bert-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, noticed := p.Annotations[v1alpha1.AnnotationNotice]
	_, answered := p.Annotations[v1alpha1.AnnotationAck]
	if noticed || answered || p.Annotations["mine"] != "stays" {
		t.Errorf("annotations = %v", p.Annotations)
	}
}

func TestFillerPod(t *testing.T) {
	w := newWorld(t, lending()...)
	f := planner.Filler{Name: "filler-n1", Node: "n1", Room: fleet.Resources{CPU: 8000, Memory: 4 * fleet.GiB, GPU: 2}, Purpose: "KeptSocket"}
	if rs := w.do(t, planner.Plan{Fillers: []planner.Filler{f}}); rs[0].Outcome != loop.Done {
		t.Fatalf("result = %+v", rs[0])
	}
	p, err := w.core.CoreV1().Pods(kubetest.Namespace).Get(t.Context(), "filler-n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := watch.NewPodFacts(p)
	if got.Pod.HoldsOn != "n1" || p.Spec.NodeName != "" || got.Claim.Component != v1alpha1.ComponentFiller ||
		!got.Claim.Tolerates {
		t.Errorf("filler = %+v", got)
	}
	if want := (fleet.Resources{CPU: 8000, Memory: 4 * fleet.GiB, GPU: 2, Pods: 1}); got.Pod.Requests != want {
		t.Errorf("room = %v, want %v", got.Pod.Requests, want)
	}
	if *p.Spec.PreemptionPolicy != corev1.PreemptNever || *p.Spec.TerminationGracePeriodSeconds != 0 ||
		p.Spec.PriorityClassName != act.FillerPriorityClass {
		t.Errorf("a filler preempts nobody and goes at once: %+v", p.Spec)
	}
	if q := p.Spec.Containers[0].Resources.Limits[convert.GPUResource]; q.Value() != 2 {
		t.Error("an extended resource needs a limit equal to its request")
	}
}

func (w *world) share(t *testing.T, name string) *v1alpha1.NodeShare {
	return objectNow[v1alpha1.NodeShare](t, w, object.GVRShares, name)
}

func (w *world) loanObject(t *testing.T, name string) *v1alpha1.Loan {
	return objectNow[v1alpha1.Loan](t, w, object.GVRLoans, name)
}

func (w *world) poolObject(t *testing.T, name string) *v1alpha1.CapacityPool {
	return objectNow[v1alpha1.CapacityPool](t, w, object.GVRPools, name)
}

// setLoan and setShare change an object as another client, and wait until the controller sees it.
func (w *world) setLoan(t *testing.T, l *v1alpha1.Loan) {
	t.Helper()
	w.set(t, object.GVRLoans, l, func(version string) object.Sight { return w.Loans.Sees("", l.Name, l.UID, version) })
}

func (w *world) setShare(t *testing.T, s *v1alpha1.NodeShare) {
	t.Helper()
	w.set(t, object.GVRShares, s, func(version string) object.Sight { return w.Shares.Sees("", s.Name, s.UID, version) })
}

func (w *world) set(t *testing.T, gvr schema.GroupVersionResource, o metav1.Object,
	seen func(version string) object.Sight) {
	t.Helper()
	version := fmt.Sprint(w.version.Add(1))
	o.SetResourceVersion(version)
	u, err := object.Encode(gvr, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.dyn.Tracker().Update(gvr, u, o.GetNamespace()); err != nil {
		t.Fatal(err)
	}
	for is := seen(version); !is(); {
		time.Sleep(object.SightPoll)
	}
}

func objectNow[A any](t *testing.T, w *world, gvr schema.GroupVersionResource, name string) *A {
	t.Helper()
	ns, name := "", name
	if i := strings.IndexByte(name, '/'); i >= 0 {
		ns, name = name[:i], name[i+1:]
	}
	var u *unstructured.Unstructured
	u, err := w.dyn.Resource(gvr).Namespace(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := object.Decode[A](u)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
