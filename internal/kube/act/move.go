package act

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop/protocol"
)

// createLoan makes the object of a loan. Its status follows once its share was taken.
func (a *applier) createLoan(ctx context.Context, l *fleet.Loan) (written, error) {
	obj, err := object.Encode(object.GVRLoans, newLoan(l))
	if err != nil {
		return written{}, err
	}
	created, err := a.c.Dyn.Resource(object.GVRLoans).Create(ctx, obj, object.CreateOptions())
	if err != nil {
		return written{}, fmt.Errorf("create the loan: %w", err)
	}
	loan, err := object.Decode[v1alpha1.Loan](created)
	if err != nil {
		return written{}, err
	}
	return a.keepLoan(loan), nil
}

// keepLoan remembers a loan as this plan wrote it.
func (a *applier) keepLoan(l *v1alpha1.Loan) written {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loans[l.Name] = l
	return written{l.UID, l.ResourceVersion, a.c.Loans.Sees("", l.Name, l.UID, l.ResourceVersion), fleet.Ledger{}}
}

// setLoan writes the loan's status from what was read of it.
func (a *applier) setLoan(ctx context.Context, w *protocol.Write, l *fleet.Loan) (written, error) {
	a.mu.Lock()
	read := a.loans[w.Object.Name]
	a.mu.Unlock()
	if read == nil {
		o, ok := a.c.Loans.Get("", w.Object.Name)
		if !ok {
			return written{}, object.Stale("the loan is gone")
		}
		read = o.API
	}
	if fleet.UID(read.UID) != w.If.UID || read.ResourceVersion != w.If.Version {
		return written{}, object.Stale("the loan changed since it was checked")
	}
	next := *read
	next.Status = LoanStatus(read.Status, l, a.plan.LeaderEpoch)
	got, err := object.PutStatus(ctx, a.c.Dyn, object.GVRLoans, &next)
	if err != nil {
		return written{}, err
	}
	next.ResourceVersion = got.GetResourceVersion()
	return a.keepLoan(&next), nil
}

func (a *applier) deleteLoan(ctx context.Context, w *protocol.Write) (written, error) {
	uid, version := types.UID(w.If.UID), w.If.Version
	err := a.c.Dyn.Resource(object.GVRLoans).Delete(ctx, w.Object.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if err != nil {
		return written{}, fmt.Errorf("delete the loan: %w", err)
	}
	return written{uid: uid, see: a.c.Loans.Misses("", w.Object.Name, uid)}, nil
}

func newLoan(l *fleet.Loan) *v1alpha1.Loan {
	return &v1alpha1.Loan{
		ObjectMeta: metav1.ObjectMeta{Name: string(l.ID), Labels: map[string]string{v1alpha1.LabelPool: string(l.From)}},
		Spec: v1alpha1.LoanSpec{
			NodeName: l.NodeName, NodeUID: string(l.Node), Kind: string(l.Kind), Cells: convert.Int32s(l.Cells),
			From: string(l.From), To: string(l.To),
			Capacity: convert.APIAmounts(l.Capacity), BeginTime: *convert.Stamp(l.Created),
		},
	}
}

// setShare writes the lock with the version that was read: of two writers one gets a conflict.
func (a *applier) setShare(ctx context.Context, w *protocol.Write, c *protocol.SetShare) (written, error) {
	name := w.Object.Name
	next := &v1alpha1.NodeShare{ObjectMeta: metav1.ObjectMeta{Name: name}}
	base := a.shareBase(name)
	if base != nil && base.ResourceVersion != w.If.Version {
		return written{}, object.Stale("the share of node %s changed since it was checked", name)
	}
	if base != nil && base.Spec.NodeUID == string(c.Node) {
		*next = *base
	} else {
		// The machine's own deletion takes its share along.
		next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(c.Node)}}
	}
	next.ResourceVersion = w.If.Version
	next.Spec = v1alpha1.NodeShareSpec{NodeUID: string(c.Node), Parcels: shareParcels(c.Parcels), Rest: shareRest(c.Rest), LeaderEpoch: a.plan.LeaderEpoch}
	obj, err := object.Encode(object.GVRShares, next)
	if err != nil {
		return written{}, err
	}
	client := a.c.Dyn.Resource(object.GVRShares)
	var got *unstructured.Unstructured
	if c.Create {
		got, err = client.Create(ctx, obj, object.CreateOptions())
	} else {
		got, err = client.Update(ctx, obj, object.UpdateOptions())
	}
	if err != nil {
		return written{}, fmt.Errorf("write the NodeShare of %s: %w", name, err)
	}
	now, err := object.Decode[v1alpha1.NodeShare](got)
	if err != nil {
		return written{}, err
	}
	a.mu.Lock()
	a.shares[name] = now
	a.mu.Unlock()
	return written{now.UID, now.ResourceVersion, a.c.Shares.Sees("", name, now.UID, now.ResourceVersion),
		fleet.Ledger{}}, nil
}

// shareBase is the NodeShare whose metadata a write keeps: as this plan wrote it, or else as it was read.
func (a *applier) shareBase(node string) *v1alpha1.NodeShare {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.shares[node]; s != nil {
		return s
	}
	if s, ok := a.c.Shares.Get("", node); ok {
		return s.API
	}
	return nil
}

// readShare reads the version of a NodeShare as it is.
func (a *applier) readShare(ctx context.Context, node string) (protocol.Fact, error) {
	now, err := a.c.Dyn.Resource(object.GVRShares).Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return protocol.Fact{}, err
	}
	return protocol.Fact{Exists: true, UID: fleet.UID(now.GetUID()), Version: now.GetResourceVersion()}, nil
}

// readLoan reads whether a Loan is there.
func (a *applier) readLoan(ctx context.Context, name string) (protocol.Fact, error) {
	now, err := a.c.Dyn.Resource(object.GVRLoans).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return protocol.Fact{}, err
	}
	return protocol.Fact{Exists: true, UID: fleet.UID(now.GetUID()), Version: now.GetResourceVersion()}, nil
}

func shareParcels(parcels []fleet.ShareParcel) []v1alpha1.ShareParcel {
	out := make([]v1alpha1.ShareParcel, 0, len(parcels))
	for i := range parcels {
		p := &parcels[i]
		out = append(out, v1alpha1.ShareParcel{Cells: convert.Int32s(p.Cells), Holder: string(p.Holder),
			Next: string(p.Next), LoanName: string(p.Loan),
			LoanUID: string(p.LoanUID), Epoch: p.Epoch})
	}
	return out
}

func shareRest(r fleet.Rest) *v1alpha1.ShareRest {
	if r.Until.IsZero() {
		return nil
	}
	return &v1alpha1.ShareRest{TurnedBack: int32(r.Turns), Until: *convert.StampUp(r.Until)}
}

// LoanStatus is the status that says what the loan is, with the history one entry longer when phase or epoch changed.
func LoanStatus(was v1alpha1.LoanStatus, l *fleet.Loan, leaderEpoch int64) v1alpha1.LoanStatus {
	s := was
	s.Phase, s.Epoch, s.LeaderEpoch = string(l.Phase), l.Epoch, leaderEpoch
	s.Since, s.Due, s.Deadline = convert.Stamp(l.Since), convert.Stamp(l.Due), convert.StampUp(l.Deadline)
	s.KillTime = convert.StampUp(l.KillAt)
	s.Claimant = string(l.Claimant)
	if l.Phase != fleet.Lent {
		s.ExpectedUntil = nil
	}
	s.FirstNotice, s.LentTime, s.CleanTime = convert.Stamp(l.FirstNotice), convert.Stamp(l.LentAt),
		convert.Stamp(l.CleanAt)
	s.VanishedNodeUID = string(l.Vanished)
	s.Reason = v1alpha1.Clip(l.Reason.Text(), v1alpha1.MaxReasonLength)
	if was.Phase != s.Phase || was.Epoch != s.Epoch {
		history := append(slices.Clone(was.History), v1alpha1.PhaseChange{Phase: s.Phase, Epoch: s.Epoch, Time: *s.Since})
		s.History = v1alpha1.KeepNewest(history, v1alpha1.MaxLoanHistory)
	}
	return s
}
