package kube

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/reclaim"
)

// knownDeadline is what bert-0 knows of its deadline; zero without a notice.
func (w *world) knownDeadline(t *testing.T) time.Time {
	t.Helper()
	p, err := w.core.CoreV1().Pods("train").Get(t.Context(), "bert-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var notice struct {
		Deadline time.Time `json:"deadline"`
	}
	if text := p.Annotations[v1alpha1.AnnotationNotice]; text != "" {
		if err := json.Unmarshal([]byte(text), &notice); err != nil {
			t.Fatal(err)
		}
	}
	return notice.Deadline
}

// A plan is written later than it is made. A move that still leaves the least notice is done, any other is stale, and
// no pod hears of a deadline that its loan does not have.
func TestApplyWhileTheClockRuns(t *testing.T) {
	const at, by = 300 * time.Millisecond, 10 * time.Minute // no plan is made at a full second
	begins := kubetest.Now.Add(at)
	announce := func(t *testing.T, s *fleet.Snapshot) planner.Plan {
		l := s.Loan("l")
		after, err := l.Announce(begins.Add(reclaim.EmergencyNotice), reason.Said("online pods wait for the room"))
		if err != nil {
			t.Fatal(err)
		}
		return planner.Plan{Moves: []planner.Move{{Kind: planner.MoveAnnounce, Before: *l, After: after, Node: "n1"}},
			Notices: []planner.Notice{{Pod: evict("bert-0").Pod, Loan: "l", Epoch: 3, Deadline: after.Deadline}}}
	}
	recall := func(notice time.Duration) func(t *testing.T, s *fleet.Snapshot) planner.Plan {
		return func(t *testing.T, s *fleet.Snapshot) planner.Plan {
			l := s.Loan("l")
			after, err := l.Recall(begins, begins.Add(notice), begins.Add(by), reason.Said("online asks for it"))
			if err != nil {
				t.Fatal(err)
			}
			return planner.Plan{Moves: []planner.Move{{Kind: planner.MoveRecall, Before: *l, After: after, Node: "n1"}}}
		}
	}
	borrow := func(*testing.T, *fleet.Snapshot) planner.Plan {
		l := fleet.Loan{ID: "l", Node: fleet.NodeID(kubetest.UID("Node", "n1")), NodeName: "n1", Kind: fleet.KindNode,
			Cells:    []int{0},
			Capacity: fleet.Resources{CPU: 64000, Memory: 256 * fleet.GiB}, From: "batch", To: "web"}
		l = l.Invite(begins, begins.Add(reclaim.EmergencyNotice), begins.Add(by), reason.Said("online pods wait for room"))
		return planner.Plan{Moves: []planner.Move{{Kind: planner.MoveBegin, Before: l, After: l, Node: "n1"}}}
	}
	lent := []metav1.Object{kubetest.Loan("l", "n1", "Lent", 3, 0), kubetest.NodeShare("n1", "l", "batch", "", 3,
		false, 0), kubetest.Node("n1", kubetest.InWeb)}
	for _, c := range []struct {
		name    string
		objects []metav1.Object
		plan    func(*testing.T, *fleet.Snapshot) planner.Plan
		late    loop.Outcome // when it is written 20 s late
	}{
		{"emergency announce", []metav1.Object{noticedFor(2 * time.Minute),
			kubetest.NodeShare("n1", "l", "batch", "web", 3, false, 0), kubetest.Node("n1",
				kubetest.InWeb)}, announce, loop.Stale},
		{"ordinary recall", lent, recall(2 * time.Minute), loop.Done},
		{"emergency recall", lent, recall(reclaim.EmergencyNotice), loop.Stale},
		{"emergency borrow", []metav1.Object{kubetest.Node("n1", kubetest.InBatch)}, borrow, loop.Stale},
	} {
		for gap, want := range map[time.Duration]loop.Outcome{0: loop.Done, 50 * time.Millisecond: loop.Done, 2 * time.Second: loop.Done, 20 * time.Second: c.late} {
			t.Run(fmt.Sprintf("%s, %v late", c.name, gap), func(t *testing.T) {
				w := newWorld(t, append(c.objects, kubetest.Pool("web", "Online", kubetest.InWeb),
					kubetest.Pool("batch", "Offline", kubetest.InBatch), kubetest.BatchJob("bert", 2), kubetest.ElasticJob("bert"),
					kubetest.Pod("train", "bert-0", "n1", "Job", "bert"))...)
				w.calm(t)
				w.clock.Time = begins
				p := c.plan(t, w.snapshot(t))
				w.clock.Time = begins.Add(gap)
				for _, r := range w.do(t, p) {
					if r.Outcome != want {
						t.Errorf("%+v, want %s", r, want)
					}
				}
				known := w.knownDeadline(t)
				if want == loop.Stale {
					if !known.IsZero() {
						t.Errorf("the pod was known of %s, which its loan does not say", known)
					}
					return
				}
				says := w.loanObject(t, "l").Status.Deadline
				if says == nil {
					t.Fatal("the loan has no deadline")
				}
				if left := says.Sub(w.clock.Time); left < reclaim.LeastNotice {
					t.Errorf("%s are left of the notice when it is written", left)
				}
				if len(p.Notices) > 0 && !known.Equal(says.Time) {
					t.Errorf("the pod knows %s, its loan says %s", known, says)
				}
				if len(p.Notices) > 0 {
					return
				}
				select {
				case <-w.Wake():
				case <-time.After(30 * time.Second):
					t.Error("the pods are told by the next plan, and it was not asked for")
				}
			})
		}
	}
}

// The time of the write counts, not of the facts that were read for all of them.
func TestApplyWhileTheAPIIsSlow(t *testing.T) {
	share := kubetest.NodeShare("n1", "l", "batch", "web", 3, false, 0)
	share.Spec.Parcels = append(share.Spec.Parcels, kubetest.NodeShare("n1", "l2", "batch", "web", 3, false,
		1).Spec.Parcels...)
	other := kubetest.Loan("l2", "n1", "Noticed", 3, 1)
	other.Status.Deadline = noticedFor(2 * time.Minute).Status.Deadline
	w := newWorld(t, lending(noticedFor(2*time.Minute), other, share)...)
	var p planner.Plan
	s := w.snapshot(t)
	for _, id := range []fleet.LoanID{"l", "l2"} {
		l := s.Loan(id)
		after, err := l.Announce(kubetest.Now.Add(reclaim.EmergencyNotice), reason.Said("online pods wait for the room"))
		if err != nil {
			t.Fatal(err)
		}
		p.Moves = append(p.Moves, planner.Move{Kind: planner.MoveAnnounce, Before: *l, After: after, Node: "n1"})
	}
	w.dyn.PrependReactor("update", "loans", func(clienttesting.Action) (bool, runtime.Object, error) {
		w.clock.Time = w.clock.Time.Add(20 * time.Second)
		return false, nil, nil
	})
	if rs := w.do(t, p); rs[0].Outcome != loop.Done || rs[1].Outcome != loop.Stale {
		t.Errorf("results = %+v: the second is written 20 s after the first", rs)
	}
}
