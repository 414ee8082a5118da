//go:build plane

package kube

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// cycle plans from what the watches show and carries out what the plan says of one machine.
func (p *plane) cycle(t *testing.T, m fleet.Node) planner.Plan {
	t.Helper()
	s := p.snapshot(t)
	s.WatchedSince = s.At.Add(-time.Hour) // this leader has watched its window
	plan := planner.Make(planner.Input{Snapshot: s, Options: planner.DefaultOptions()})
	if faults := plan.Unresolved(); len(faults) > 0 {
		t.Fatalf("%+v", faults)
	}
	out := planner.Plan{Strays: plan.Strays, Withheld: plan.Withheld}
	for _, x := range plan.Moves {
		if x.Before.Node == m.ID {
			out.Moves = append(out.Moves, x)
		}
	}
	on := func(ref planner.PodRef) bool { x := find(s, ref.ID); return x != nil && x.Node == m.ID }
	out.Notices = slices.DeleteFunc(plan.Notices, func(n planner.Notice) bool { return !on(n.Pod) })
	out.Marks = slices.DeleteFunc(plan.Marks, func(x planner.Mark) bool { return x.ID != m.ID })
	for _, r := range p.apply(t, out).Results {
		if r.Outcome == loop.Failed {
			t.Fatalf("%s %s: %s", r.Action, r.Subject, r.Message)
		}
	}
	return out
}

// taken brings a machine's loan to a phase, with an offline pod on it from Lent on.
func (p *plane) taken(t *testing.T, id string, phase fleet.Phase) (fleet.Node, *fleet.Loan) {
	t.Helper()
	m := p.machineOf(t, id, "web")
	l := p.begin(t, fleet.Loan{ID: fleet.LoanID("loan-" + id), Node: m.ID, NodeName: m.Name, Kind: fleet.KindNode, Cells: []int{0}, Capacity: m.Allocatable,
		From: fleet.PoolID("web-" + id), To: fleet.PoolID("batch-" + id)}.Begin(time.Now(), reason.Said("ebb")), fleet.NodeMarks{HolderTaint: true, KeepNode: true})
	steps := []struct {
		to   fleet.Phase
		kind planner.MoveKind
		next func(fleet.Loan, *fleet.ShareParcel) (fleet.Loan, error)
	}{
		{fleet.Lent, planner.MoveLend, func(l fleet.Loan, e *fleet.ShareParcel) (fleet.Loan, error) { return l.Lend(time.Now(), e) }},
		{fleet.Noticed, planner.MoveRecall, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) {
			return l.Recall(time.Now(), time.Now().Add(30*time.Second), time.Now().Add(time.Minute), reason.Said("flood"))
		}},
		{fleet.Draining, planner.MoveDrain, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) { return l.Drain(time.Now(), true) }},
		{fleet.Returned, planner.MoveReturn, func(l fleet.Loan, e *fleet.ShareParcel) (fleet.Loan, error) { return l.Return(time.Now(), e) }},
	}
	for _, s := range steps {
		if l.Phase == phase {
			break
		}
		if s.to == fleet.Lent || s.to == fleet.Returned {
			p.reportClean(t, m.Name, l.Epoch)
		}
		l = *p.step(t, s.kind, l.ID, s.next)
	}
	if phase == fleet.Lent {
		p.marks(t, m, fleet.NodeMarks{HolderTaint: true, OfflineLabel: true, KeepNode: true})
		p.offlinePod(t, id, m.Name)
	}
	return m, &l
}

// TestPlaneLoansDeletedByHand deletes Loans, forges parcels and deletes NodeShares: the planner makes the loan again, by notice, or clears the entry.
func TestPlaneLoansDeletedByHand(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	ctx := t.Context()
	for _, c := range []struct {
		phase   fleet.Phase
		adopted bool
	}{{fleet.Emptying, false}, {fleet.Lent, true}, {fleet.Noticed, true}, {fleet.Draining, true}, {fleet.Returned, false}} {
		t.Run(string(c.phase), func(t *testing.T) {
			m, l := p.taken(t, rand.String(5), c.phase)
			if err := p.dyn.Resource(object.GVRLoans).Delete(ctx, string(l.ID), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			until(t, "the loan to be gone", func() bool { return p.snapshot(t).Loan(l.ID) == nil })
			plan := p.cycle(t, m)
			s := p.snapshot(t)
			n := s.Node(m.ID)
			switch {
			case !c.adopted:
				if len(n.Share.Parcels) > 0 {
					t.Fatalf("the share still has %+v", n.Share.Parcels)
				}
			default:
				if len(n.Share.Parcels) != 1 || s.Orphaned(&n.Share.Parcels[0]) || n.Share.Parcels[0].Holder != l.To || n.Share.Parcels[0].Next != l.From {
					t.Fatalf("the share has %+v", n.Share.Parcels)
				}
				again := s.Loan(n.Share.Parcels[0].Loan)
				if again.Phase != fleet.Noticed || again.UID == l.UID || !again.Deadline.After(time.Now().Add(15*time.Second)) {
					t.Fatalf("%+v", again)
				}
				if n.Marks.OfflineLabel || !n.Marks.HolderTaint {
					t.Errorf("marks %+v", n.Marks)
				}
			}
			if adopted := slices.ContainsFunc(plan.Strays, func(x planner.Stray) bool { return x.ID == m.ID }); adopted != c.adopted {
				t.Errorf("adopted: %v", adopted)
			}
			if c.phase != fleet.Lent {
				return
			}
			// The pods get notice of the loan that was made, and the machine comes home as ever.
			plan = p.cycle(t, m)
			if len(plan.Notices) != 1 {
				t.Fatalf("notices %+v", plan.Notices)
			}
		})
	}
	t.Run("forged", func(t *testing.T) {
		m := p.machineOf(t, rand.String(5), "web")
		to := "batch" + m.Name[len("n"):]
		p.create(t, object.GVRShares, &v1alpha1.NodeShare{ObjectMeta: metav1.ObjectMeta{Name: m.Name},
			Spec: v1alpha1.NodeShareSpec{NodeUID: string(m.ID),
				Parcels: []v1alpha1.ShareParcel{{Cells: []int32{0}, Holder: to, LoanName: "of-no-owner", LoanUID: "forged",
					Epoch: 7}}}})
		until(t, "the share", func() bool { return p.snapshot(t).Node(m.ID).Share.Exists })
		p.cycle(t, m)
		s := p.snapshot(t)
		if e := s.Node(m.ID).Share.Parcels; len(e) != 1 || s.Orphaned(&e[0]) || s.Loan(e[0].Loan).Phase != fleet.Noticed {
			t.Fatalf("%+v", e)
		}
	})
	// Entries whose cells, number or next holder a hand changes, on the API server's own rules.
	for _, c := range []struct {
		name    string
		phase   fleet.Phase
		parcels func(e v1alpha1.ShareParcel) []v1alpha1.ShareParcel
		repair  bool
	}{
		{"other cells", fleet.Lent, func(e v1alpha1.ShareParcel) []v1alpha1.ShareParcel {
			e.Cells = []int32{1}
			return []v1alpha1.ShareParcel{e}
		}, true},
		{"more cells", fleet.Noticed, func(e v1alpha1.ShareParcel) []v1alpha1.ShareParcel {
			e.Cells = []int32{0, 1, 2}
			return []v1alpha1.ShareParcel{e}
		}, true},
		{"twice", fleet.Draining, func(e v1alpha1.ShareParcel) []v1alpha1.ShareParcel {
			again := e
			again.Cells = []int32{1}
			return []v1alpha1.ShareParcel{e, again}
		}, true},
		{"a next holder", fleet.Returned, func(e v1alpha1.ShareParcel) []v1alpha1.ShareParcel {
			e.Next = "batch" + strings.TrimPrefix(e.Holder, "web")
			return []v1alpha1.ShareParcel{e}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, l := p.taken(t, rand.String(5), c.phase)
			e := p.snapshot(t).Node(m.ID).Share.Find(l.ID)
			was := v1alpha1.ShareParcel{Cells: []int32{0}, Holder: string(e.Holder), Next: string(e.Next), LoanName: string(e.Loan), LoanUID: string(e.LoanUID), Epoch: e.Epoch}
			body := object.MergePatch(map[string]any{"spec": map[string]any{"parcels": c.parcels(was)}})
			if _, err := p.dyn.Resource(object.GVRShares).Patch(ctx, m.Name, types.MergePatchType, body,
				metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			forged := c.parcels(was)
			until(t, "the share as it was forged", func() bool {
				got := p.snapshot(t).Node(m.ID).Share.Parcels
				return len(got) == len(forged) && len(got[0].Cells) == len(forged[0].Cells) && got[0].Cells[0] == int(forged[0].Cells[0]) && string(got[0].Next) == forged[0].Next
			})
			until(t, "the share to be right again", func() bool { // the node side may write its reports meanwhile
				p.cycle(t, m)
				s := p.snapshot(t)
				got, now := s.Node(m.ID).Share.Parcels, s.Loan(l.ID)
				if !c.repair {
					return len(got) == 0
				}
				return len(got) == 1 && slices.Equal(got[0].Cells, []int{0}) && got[0].Epoch > e.Epoch && now.Epoch == got[0].Epoch
			})
		})
	}
	t.Run("share", func(t *testing.T) {
		m, l := p.taken(t, rand.String(5), fleet.Noticed)
		if err := p.dyn.Resource(object.GVRShares).Delete(ctx, m.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		until(t, "the share to be gone", func() bool { return !p.snapshot(t).Node(m.ID).Share.Exists })
		p.cycle(t, m)
		s := p.snapshot(t)
		if e := s.Node(m.ID).Share.Find(l.ID); e == nil || e.LoanUID != l.UID || e.Holder != l.To || e.Next != l.From || e.Epoch != s.Loan(l.ID).Epoch {
			t.Fatalf("%+v", e)
		}
	})
}

// TestPlaneLoansEndedByHand: the API server lets no loan end from Lent or Noticed but by naming its machine, and offline pods on a machine that came back
// under its name with another UID get a loan again.
func TestPlaneLoansEndedByHand(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	ctx := t.Context()
	for _, phase := range []fleet.Phase{fleet.Lent, fleet.Noticed} {
		_, l := p.taken(t, rand.String(5), phase)
		for _, uid := range []string{"", "another", string(l.UID)} {
			status := map[string]any{"phase": "Returned"}
			if uid != "" {
				status["vanishedNodeUID"] = uid
			}
			body, _ := json.Marshal(map[string]any{"status": status})
			if _, err := p.dyn.Resource(object.GVRLoans).Patch(ctx, string(l.ID), types.MergePatchType, body,
				metav1.PatchOptions{}, "status"); !apierrors.IsInvalid(err) {
				t.Errorf("%s -> Returned, of machine %q: %v", phase, uid, err)
			}
		}
	}
	id := rand.String(5)
	m, l := p.taken(t, id, fleet.Lent)
	was, err := p.core.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.core.CoreV1().Nodes().Delete(ctx, m.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	was.ResourceVersion, was.UID, was.Spec.Taints = "", "", nil
	delete(was.Labels, v1alpha1.LabelOffline)
	until(t, "the machine to be gone", func() bool { return p.snapshot(t).Node(m.ID) == nil })
	status := was.Status
	back, err := p.core.CoreV1().Nodes().Create(ctx, was, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	back.Status = status
	if _, err := p.core.CoreV1().Nodes().UpdateStatus(ctx, back, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	renewed := m
	renewed.ID = fleet.NodeID(back.UID)
	until(t, "the machine to be back", func() bool { n := p.snapshot(t).Node(renewed.ID); return n != nil && n.Ready && n.Pool != "" })
	until(t, "the loan of the machine that is gone to end", func() bool {
		p.cycle(t, m)
		got := p.snapshot(t).Loan(l.ID)
		return got == nil || got.Phase.Ended()
	})
	if got := p.snapshot(t).Loan(l.ID); got != nil && (got.Phase != fleet.Returned || got.Vanished != m.ID) {
		t.Fatalf("%+v", got)
	}
	var s *fleet.Snapshot
	until(t, "a loan of the machine that the pod is on", func() bool { // the garbage collector may take the old share meanwhile
		p.cycle(t, renewed)
		s = p.snapshot(t)
		e := s.Node(renewed.ID).Share.Parcels
		return len(e) == 1 && s.Loan(e[0].Loan) != nil && s.Loan(e[0].Loan).Phase == fleet.Noticed
	})
	if n := s.Node(renewed.ID); !n.Marks.HolderTaint || n.Marks.OfflineLabel {
		t.Errorf("marks %+v", n.Marks)
	}
	if plan := p.cycle(t, renewed); len(plan.Notices) != 1 {
		t.Errorf("notices %+v", plan.Notices)
	}
}
