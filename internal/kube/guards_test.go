package kube

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// Guards between a plan and a write that depends on outdated facts: each test fails without its guard.

// meanwhile carries a plan out while something happens after its facts were read and before its moves: in a scale-in that comes first.
func (w *world) meanwhile(t *testing.T, p planner.Plan, happens func()) []loop.Result {
	t.Helper()
	w.scaleReactor(0, 3)
	w.core.PrependReactor("patch", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() == "scale" {
			happens()
		}
		return false, nil, nil
	})
	p.Lowers = []planner.Scale{lowerCart()}
	rs := w.do(t, p)
	if rs[0].Outcome != loop.Done {
		t.Fatalf("the scale-in in which it was to happen: %+v", rs[0])
	}
	return rs[1:]
}

func conflictOn(resource string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: resource}, "n1", errors.New("changed"))
}

// announced is a machine whose loan was noticed, and a move that announces another deadline.
func announced(t *testing.T, more ...metav1.Object) (*world, planner.Move) {
	t.Helper()
	objects := append(kubetest.Shop(), kubetest.Pool("batch", "Offline", kubetest.InBatch), noticedFor(time.Minute),
		kubetest.NodeShare("n1", "l", "batch", "web", 3, false, 0))
	w := newWorld(t, append(objects, more...)...)
	m := planner.Move{Kind: planner.MoveAnnounce, Before: *w.snapshot(t).Loan("l"), Node: "n1"}
	m.After = m.Before
	m.After.Deadline = kubetest.Now.Add(90 * time.Second)
	return w, m
}

// A move is judged by one version of its loan and of its machine's share, and written over no other.
func TestMovesAreWrittenOverWhatWasJudged(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(w *world)
		want    string
	}{
		"nothing": {func(*world) {}, ""},
		"the loan": {func(w *world) {
			l := w.loanObject(t, "l")
			l.Status.Reason = "somebody else wrote it"
			w.setLoan(t, l)
		}, "the loan changed since it was checked"},
		"the share": {func(w *world) {
			s := w.share(t, "n1")
			s.Spec.Parcels[0].Epoch = 4
			w.setShare(t, s)
		}, "the share of node n1 changed since it was checked"},
	} {
		w, m := announced(t)
		w.recordWrites()
		r := w.meanwhile(t, planner.Plan{Moves: []planner.Move{m}}, func() { c.happens(w) })[0]
		want := map[bool]loop.Outcome{true: loop.Done, false: loop.Stale}[c.want == ""]
		if r.Outcome != want || !strings.Contains(r.Message, c.want) {
			t.Errorf("%s changed: %+v, want %s", name, r, want)
		}
		written := convert.TimeOf(w.loanObject(t, "l").Status.Deadline).Equal(m.After.Deadline)
		if written != (c.want == "") {
			t.Errorf("%s changed: deadline written: %v", name, written)
		}
	}
	// The second parcel of a machine starts from the first one's write: that is no change of another client.
	w := newWorld(t, lending(kubetest.NodeShare("n1", "l-old", "batch", "", 1, true, 9))...)
	if rs := w.do(t, planner.Plan{Moves: []planner.Move{beginOn("l-a", 0), beginOn("l-b", 1)}}); rs[0].Outcome != loop.Done || rs[1].Outcome != loop.Done {
		t.Errorf("%+v", rs)
	}
}

// forgetting is guarded alike: the entry of an ended loan leaves the share that was judged.
func TestForgetLeavesAShareThatChanged(t *testing.T) {
	ended := kubetest.Loan("l", "n1", "Returned", 3, 0)
	w := newWorld(t, append(kubetest.Shop(), kubetest.Pool("batch", "Offline", kubetest.InBatch), ended,
		kubetest.NodeShare("n1", "l", "web", "", 3, true, 0))...)
	l := *w.snapshot(t).Loan("l")
	r := w.meanwhile(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveForget, Before: l, After: l, Node: "n1"}}}, func() {
		s := w.share(t, "n1")
		s.Spec.Rest = &v1alpha1.ShareRest{TurnedBack: 1, Until: kubetest.Ago(-time.Hour)}
		w.setShare(t, s)
	})[0]
	if r.Outcome != loop.Stale || len(w.share(t, "n1").Spec.Parcels) != 1 || w.share(t, "n1").Spec.Rest == nil {
		t.Errorf("%+v: the share is %+v", r, w.share(t, "n1").Spec)
	}
}

// Evictions that follow the drain of their loan wait when it was refused, but for pods that answered.
func TestEvictionsFollowTheirDrain(t *testing.T) {
	for _, c := range []struct {
		refused, acked bool
		want           loop.Outcome
	}{{false, false, loop.Done}, {true, false, loop.Stale}, {true, true, loop.Done}} {
		p := kubetest.Pod("train", "bert-0", "n1", "Job", "bert")
		if c.acked {
			p.Annotations = map[string]string{v1alpha1.AnnotationNotice: `{"loan":"l","epoch":3,"deadline":"2026-06-01T11:59:00Z"}`, v1alpha1.AnnotationAck: "3"}
		}
		w := newWorld(t, lending(noticedFor(-time.Second), kubetest.NodeShare("n1", "l", "batch", "web", 3, false, 0),
			kubetest.BatchJob("bert", 1), kubetest.ElasticJob("bert"), p)...)
		if c.refused {
			w.dyn.PrependReactor("update", "loans", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, conflictOn("loans") })
		}
		before := *w.snapshot(t).Loan("l")
		after, err := before.Drain(kubetest.Now, false)
		if err != nil {
			t.Fatal(err)
		}
		drain := planner.Move{Kind: planner.MoveDrain, Before: before, After: after, Node: "n1"}
		rs := w.do(t, planner.Plan{Moves: []planner.Move{drain}, Evictions: []planner.Eviction{evict("bert-0")}})
		if (rs[0].Outcome == loop.Stale) != c.refused || rs[1].Outcome != c.want {
			t.Errorf("drain refused %v, acknowledged %v: %+v", c.refused, c.acked, rs)
		}
	}
}

// A loan whose share was lost is deleted as it was made, and not when another leader took it over since.
func TestUndoOfABeginNamesWhatItMade(t *testing.T) {
	w := newWorld(t, lending()...)
	w.dyn.PrependReactor("create", "nodeshares", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, conflictOn("nodeshares") })
	var asked *metav1.Preconditions
	w.dyn.PrependReactor("delete", "loans", func(a clienttesting.Action) (bool, runtime.Object, error) {
		asked = a.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
		return true, nil, conflictOn("loans")
	})
	if rs := w.do(t, planner.Plan{Moves: []planner.Move{beginOn("l-a", 0)}}); rs[0].Outcome != loop.Stale {
		t.Errorf("%+v", rs)
	}
	l := w.loanObject(t, "l-a")
	if asked == nil || asked.UID == nil || *asked.UID != l.UID || asked.ResourceVersion == nil || *asked.ResourceVersion != l.ResourceVersion {
		t.Errorf("deleted with %+v, made as %s at version %s", asked, l.UID, l.ResourceVersion)
	}
}

// A repair asks for the loan first: where that changed, the share stays as it is.
func TestRepairAsksForTheLoanFirst(t *testing.T) {
	for refused, want := range map[bool][]string{false: {"update loans/status l", "update nodeshares n1"}, true: {"update loans/status l"}} {
		w := newWorld(t, lending(kubetest.Loan("l", "n1", "Lent", 2, 0), kubetest.NodeShare("n1", "l", "batch", "web", 3,
			true, 0))...)
		if refused {
			w.dyn.PrependReactor("update", "loans", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, conflictOn("loans") })
		}
		rec := w.recordWrites()
		before := *w.snapshot(t).Loan("l")
		after := before
		after.Epoch = 4
		w.do(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveRepair, Before: before, After: after, Node: "n1"}}})
		if got := rec.without("events"); !slices.Equal(got, want) {
			t.Errorf("refused %v: %v, want %v", refused, got, want)
		}
	}
}

// opened is a machine of which all is lent, and the mark that lets offline pods land there.
func opened(t *testing.T, change func(*corev1.Node)) (*world, planner.Mark) {
	t.Helper()
	n := kubetest.Node("n1", kubetest.InWeb)
	n.Spec.Taints = []corev1.Taint{facts.HolderTaint()}
	change(n)
	w := newWorld(t, n, kubetest.Pool("web", "Online", kubetest.InWeb), kubetest.Pool("batch", "Offline",
		kubetest.InBatch), kubetest.Loan("l", "n1", "Lent", 2, 0), kubetest.NodeShare("n1", "l", "batch", "", 2, true, 0))
	return w, planner.Mark{Node: "n1", ID: fleet.NodeID(n.UID), Want: fleet.NodeMarks{HolderTaint: true, OfflineLabel: true, KeepNode: true}}
}

// Marks that let pods land depend on the share as the API server has it, since a newer leader may have recalled what
// this one opens.
func TestTheLockIsAskedBeforeAMachineIsOpened(t *testing.T) {
	for name, c := range map[string]struct {
		version string // of the share at the API server; empty: it is gone
		open    bool
		want    loop.Outcome
	}{
		"as it was read":            {"100", true, loop.Done},
		"written by another":        {"101", true, loop.Stale},
		"gone":                      {"", true, loop.Stale},
		"nobody lands by the marks": {"101", false, loop.Done},
	} {
		w, m := opened(t, func(*corev1.Node) {})
		w.snapshot(t)
		w.dyn.PrependReactor("get", "nodeshares", func(clienttesting.Action) (bool, runtime.Object, error) {
			if c.version == "" {
				return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodeshares"}, "n1")
			}
			s := kubetest.NodeShare("n1", "l", "batch", "", 2, true, 0)
			s.ResourceVersion = c.version
			u, err := object.Encode(object.GVRShares, s)
			return true, u, err
		})
		m.Want.OfflineLabel = c.open
		rs := w.do(t, planner.Plan{Marks: []planner.Mark{m}})
		n, err := w.core.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, is := n.Labels[v1alpha1.LabelOffline]; rs[0].Outcome != c.want || is != (c.open && c.want == loop.Done) {
			t.Errorf("%s: %+v, opened %v", name, rs[0], is)
		}
	}
}

// A node that a newer leader marked is left alone, also when that is only seen at a conflict.
func TestAMarkStopsAtANewerLeader(t *testing.T) {
	newer := func(n *corev1.Node) { stamped(n, 8) }
	w, m := opened(t, newer)
	rec := w.recordWrites()
	if rs := w.do(t, planner.Plan{Marks: []planner.Mark{m}}); rs[0].Outcome != loop.Stale || !strings.Contains(rs[0].Message, "leader epoch 8") || len(rec.without("events")) > 0 {
		t.Errorf("%+v, %v", rs[0], rec.without("events"))
	}
	for _, now := range []func(*corev1.Node){newer, func(n *corev1.Node) { n.UID = "another machine" }} {
		w, m = opened(t, func(*corev1.Node) {})
		patches := 0
		w.core.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			patches++
			return patches == 1, nil, conflictOn("nodes")
		})
		w.core.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			n := kubetest.Node("n1", kubetest.InWeb)
			now(n)
			return true, n, nil
		})
		if rs := w.do(t, planner.Plan{Marks: []planner.Mark{m}}); rs[0].Outcome != loop.Stale || patches != 1 {
			t.Errorf("%+v after %d patches", rs[0], patches)
		}
	}
}

// A machine whose agent fell silent has no live agent, so that no socket of it is lent.
func TestASilentAgentIsNotAlive(t *testing.T) {
	w := newWorld(t, kubetest.Node("n1", kubetest.InWeb), kubetest.Pool("web", "Online", kubetest.InWeb),
		kubetest.AgentOf(time.Now(), 1))
	if !w.snapshot(t).Nodes[0].AgentAlive {
		t.Fatal("an agent whose Lease was just seen is not alive")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for w.snapshot(t).Nodes[0].AgentAlive {
		select {
		case <-ctx.Done():
			t.Fatal("an agent that renews nothing stays alive")
		case <-time.After(50 * time.Millisecond):
		}
	}
}
