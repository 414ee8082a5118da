package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

func (a *applier) moves() []action {
	out := make([]action, len(a.plan.Moves))
	for i := range a.plan.Moves {
		m := &a.plan.Moves[i]
		// Moves of one machine share its NodeShare and go one after another.
		out[i] = action{name: actionMove, subject: string(m.Before.ID), group: m.Before.NodeName,
			check: func() error { return a.door.CheckMove(m) },
			do: func(ctx context.Context) error {
				err := a.move(ctx, m)
				if err == nil && (m.Kind == planner.MoveRecall || m.Kind == planner.MoveBegin && !m.After.Deadline.IsZero()) {
					a.c.nudge() // its pods are told by the next plan, and their time runs
				}
				return err
			},
		}
	}
	return out
}

// move writes the NodeShare first and the loan's phase after it: the share is the lock. Stopped between the two, the share is one step
// ahead, and the planner's repair brings both in line.
func (a *applier) move(ctx context.Context, m *planner.Move) error {
	switch m.Kind {
	case planner.MoveBegin:
		return a.begin(ctx, m)
	case planner.MoveForget:
		return a.forget(ctx, m)
	}
	loan, err := a.judged(m)
	if err != nil {
		return err
	}
	switch m.Kind {
	case planner.MoveNodeGone:
		// A machine that is gone took its share along.
		return a.writeLoan(ctx, loan.api, &m.After)
	case planner.MoveRepair:
		// A repair rests on the loan, so its version is asked first: a loan that was read too long ago must not undo what the share says.
		if err := a.writeLoan(ctx, loan.api, &m.After); err != nil {
			return err
		}
		return a.writeShare(ctx, &m.After, loan.UID)
	}
	if err := a.writeShare(ctx, &m.After, loan.UID); err != nil {
		return err
	}
	if err := a.writeLoan(ctx, loan.api, &m.After); err != nil {
		return err
	}
	a.door.Wrote(m)
	a.mu.Lock()
	a.drained[m.After.ID] = m.Kind == planner.MoveDrain
	a.mu.Unlock()
	return nil
}

// judged is the loan of a move, if it is still as the door saw it. One that the watches brought since is another fact: a write of its version
// would pass, and rest on nothing that was checked.
func (a *applier) judged(m *planner.Move) (*ownLoan, error) {
	loan, ok := a.c.loans.get("", string(m.Before.ID))
	if !ok || fleet.UID(loan.UID) != m.Before.UID {
		return nil, stale("the loan is gone")
	}
	if seen := a.door.Facts().Loan(m.Before.ID); seen == nil || seen.Version != loan.ResourceVersion {
		return nil, stale("the loan changed since it was checked")
	}
	return loan, nil
}

// begin creates the loan before its first effect. When the share cannot be taken after all, the loan goes again: it had no effect.
func (a *applier) begin(ctx context.Context, m *planner.Move) error {
	obj, err := encode(gvrLoans, newLoan(&m.After))
	if err != nil {
		return err
	}
	created, err := a.c.dyn.Resource(gvrLoans).Create(ctx, obj, createOptions())
	if err != nil {
		return fmt.Errorf("create the loan: %w", err)
	}
	if err := a.writeShare(ctx, &m.After, created.GetUID()); err != nil {
		a.undoBegin(ctx, created)
		return err
	}
	loan, err := decode[v1alpha1.Loan](created)
	if err != nil {
		return err
	}
	return a.writeLoan(ctx, loan, &m.After)
}

// undoBegin deletes a loan that took no effect, unless another leader took it over since it was created. What fails here is mended by the
// planner, which sees a loan without a share.
func (a *applier) undoBegin(ctx context.Context, created *unstructured.Unstructured) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	uid, version := created.GetUID(), created.GetResourceVersion()
	if err := a.c.dyn.Resource(gvrLoans).Delete(ctx, created.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}); err != nil {
		a.c.o.Log.Warn("a loan that could not take its share stays", "loan", created.GetName(), "err", err)
	}
}

func newLoan(l *fleet.Loan) *v1alpha1.Loan {
	return &v1alpha1.Loan{
		ObjectMeta: metav1.ObjectMeta{Name: string(l.ID), Labels: map[string]string{v1alpha1.LabelPool: string(l.From)}},
		Spec: v1alpha1.LoanSpec{
			NodeName: l.NodeName, NodeUID: string(l.Node), Kind: string(l.Kind), Cells: int32s(l.Cells), From: string(l.From), To: string(l.To),
			Capacity: apiAmounts(l.Capacity), BeginTime: *stamp(l.Created),
		},
	}
}

// forget takes the ended loan out of its share, then deletes it.
func (a *applier) forget(ctx context.Context, m *planner.Move) error {
	loan, err := a.judged(m)
	if err != nil {
		return err
	}
	if err := a.clearShare(ctx, m, loan.UID); err != nil {
		return err
	}
	uid, version := loan.UID, loan.ResourceVersion
	err = a.c.dyn.Resource(gvrLoans).Delete(ctx, loan.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if err != nil {
		return fmt.Errorf("delete the loan: %w", err)
	}
	a.see(a.c.loans.misses("", loan.Name, uid))
	return nil
}

// currentShare is the NodeShare as this plan knows it: as it wrote it, or else as it was read.
func (a *applier) currentShare(node string) *v1alpha1.NodeShare {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.shares[node]; s != nil {
		return s
	}
	if s, ok := a.c.shares.get("", node); ok {
		return s.api
	}
	return nil
}

// sameShare refuses a share that is not the one that the door saw, or this plan wrote.
func (a *applier) sameShare(node string, now *v1alpha1.NodeShare) error {
	a.mu.Lock()
	own := a.shares[node] != nil
	a.mu.Unlock()
	n := a.door.NodeNamed(node)
	if own || n == nil || now == nil || now.Spec.NodeUID != string(n.ID) {
		return nil
	}
	if n.Share.Version != now.ResourceVersion {
		return stale("the share of node %s changed since it was checked", node)
	}
	return nil
}

// writeShare brings the entry of one loan to what the loan will say. A share of an earlier machine of the same name is taken over whole:
// its loans are over, since their node UID is gone.
func (a *applier) writeShare(ctx context.Context, l *fleet.Loan, uid types.UID) error {
	entry := v1alpha1.ShareParcel{Cells: int32s(l.Cells), Holder: string(l.Holder()), Next: string(l.Next()),
		LoanName: string(l.ID), LoanUID: string(uid), Epoch: l.Epoch}
	now := a.currentShare(l.NodeName)
	if err := a.sameShare(l.NodeName, now); err != nil {
		return err
	}
	if now == nil || now.Spec.NodeUID != string(l.Node) {
		next := &v1alpha1.NodeShare{ObjectMeta: metav1.ObjectMeta{Name: l.NodeName}}
		if now != nil {
			next.ResourceVersion = now.ResourceVersion
		}
		// The machine's own deletion takes its share along.
		next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: l.NodeName, UID: types.UID(l.Node)}}
		next.Spec = v1alpha1.NodeShareSpec{NodeUID: string(l.Node), Parcels: []v1alpha1.ShareParcel{entry}}
		return a.putShare(ctx, next, now == nil)
	}
	if l.Phase.Ended() && takenByAnother(now.Spec.Parcels, entry) {
		return nil // a loan that never had its share holds nothing to let go
	}
	next := *now
	next.Spec.Parcels = withEntry(now.Spec.Parcels, entry)
	if slices.EqualFunc(next.Spec.Parcels, now.Spec.Parcels, sameEntry) {
		return nil
	}
	return a.putShare(ctx, &next, false)
}

// clearShare removes the entry of one loan and notes how long its machine rests; a share that is gone, or of another machine, has none.
func (a *applier) clearShare(ctx context.Context, m *planner.Move, uid types.UID) error {
	l := &m.Before
	now := a.currentShare(l.NodeName)
	if err := a.sameShare(l.NodeName, now); err != nil {
		return err
	}
	if now == nil || now.Spec.NodeUID != string(l.Node) {
		return nil
	}
	next := *now
	next.Spec.Parcels = slices.DeleteFunc(slices.Clone(now.Spec.Parcels), func(p v1alpha1.ShareParcel) bool { return p.LoanUID == string(uid) })
	if len(next.Spec.Parcels) == len(now.Spec.Parcels) {
		return nil
	}
	next.Spec.Rest = shareRest(m.Rest)
	return a.putShare(ctx, &next, false)
}

func shareRest(r fleet.Rest) *v1alpha1.ShareRest {
	if r.Until.IsZero() {
		return nil
	}
	return &v1alpha1.ShareRest{TurnedBack: int32(r.Turns), Until: *stampUp(r.Until)}
}

// withEntry puts an entry in the place of its loan's former one, in the order of the cells.
func withEntry(parcels []v1alpha1.ShareParcel, e v1alpha1.ShareParcel) []v1alpha1.ShareParcel {
	out := slices.DeleteFunc(slices.Clone(parcels), func(p v1alpha1.ShareParcel) bool { return p.LoanUID == e.LoanUID })
	out = append(out, e)
	slices.SortFunc(out, func(a, b v1alpha1.ShareParcel) int { return slices.Compare(a.Cells, b.Cells) })
	return out
}

// takenByAnother reports whether a cell of a loan's parcel is in another one's.
func takenByAnother(parcels []v1alpha1.ShareParcel, e v1alpha1.ShareParcel) bool {
	return slices.ContainsFunc(parcels, func(p v1alpha1.ShareParcel) bool {
		return p.LoanUID != e.LoanUID && slices.ContainsFunc(p.Cells, func(c int32) bool { return slices.Contains(e.Cells, c) })
	})
}

func sameEntry(a, b v1alpha1.ShareParcel) bool {
	return slices.Equal(a.Cells, b.Cells) && a.Holder == b.Holder && a.Next == b.Next && a.LoanName == b.LoanName && a.LoanUID == b.LoanUID && a.Epoch == b.Epoch
}

// putShare writes the lock with the version that was read: of two writers one gets a conflict.
func (a *applier) putShare(ctx context.Context, s *v1alpha1.NodeShare, create bool) error {
	s.Spec.LeaderEpoch = a.plan.LeaderEpoch
	obj, err := encode(gvrShares, s)
	if err != nil {
		return err
	}
	client := a.c.dyn.Resource(gvrShares)
	var got *unstructured.Unstructured
	if create {
		got, err = client.Create(ctx, obj, createOptions())
	} else {
		got, err = client.Update(ctx, obj, updateOptions())
	}
	if err != nil {
		return fmt.Errorf("write the NodeShare of %s: %w", s.Name, err)
	}
	written, err := decode[v1alpha1.NodeShare](got)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.shares[s.Name] = written
	a.mu.Unlock()
	a.see(a.c.shares.sees("", s.Name, written.UID, written.ResourceVersion))
	return nil
}

// writeLoan writes the loan's status from what was read of it.
func (a *applier) writeLoan(ctx context.Context, read *v1alpha1.Loan, l *fleet.Loan) error {
	next := *read
	next.Status = loanStatus(read.Status, l, a.plan.LeaderEpoch)
	got, err := a.c.putStatus(ctx, gvrLoans, &next)
	if err != nil {
		return err
	}
	a.see(a.c.loans.sees("", read.Name, read.UID, got.GetResourceVersion()))
	return nil
}

// putStatus writes the status of one of our objects with the version that was read.
func (c *Cluster) putStatus(ctx context.Context, gvr schema.GroupVersionResource, next metav1.Object) (*unstructured.Unstructured, error) {
	obj, err := encode(gvr, next)
	if err != nil {
		return nil, err
	}
	got, err := c.dyn.Resource(gvr).Namespace(next.GetNamespace()).UpdateStatus(ctx, obj, updateOptions())
	if err != nil {
		return nil, fmt.Errorf("write the status of %s %s: %w", kindOf(gvr), next.GetName(), err)
	}
	return got, nil
}

// loanStatus is the status that says what the loan is, with the history one entry longer when phase or epoch changed.
func loanStatus(was v1alpha1.LoanStatus, l *fleet.Loan, leaderEpoch int64) v1alpha1.LoanStatus {
	s := was
	s.Phase, s.Epoch, s.LeaderEpoch = string(l.Phase), l.Epoch, leaderEpoch
	s.Since, s.Due, s.Deadline = stamp(l.Since), stamp(l.Due), stampUp(l.Deadline)
	s.KillTime = stampUp(l.KillAt)
	if l.Phase != fleet.Lent {
		s.ExpectedUntil = nil
	}
	s.FirstNotice, s.LentTime, s.CleanTime = stamp(l.FirstNotice), stamp(l.LentAt), stamp(l.CleanAt)
	s.Reason = v1alpha1.Clip(l.Reason, v1alpha1.MaxReasonLength)
	if was.Phase != s.Phase || was.Epoch != s.Epoch {
		history := append(slices.Clone(was.History), v1alpha1.PhaseChange{Phase: s.Phase, Epoch: s.Epoch, Time: *s.Since})
		s.History = v1alpha1.KeepNewest(history, v1alpha1.MaxLoanHistory)
	}
	return s
}

// holderTaint is the taint that keeps online pods off a machine.
func holderTaint() corev1.Taint {
	return corev1.Taint{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}
}
