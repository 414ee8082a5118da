package fleet

import (
	"fmt"
	"time"

	"github.com/springtide/springtide/reason"
)

// Phase is where a loan stands.
//
//	Emptying ─clean──▶ Lent ─recall─▶ Noticed ─deadline or all acks─▶ Draining ─clean─▶ Returned
//	   │                ▲                │                               │
//	   └─cancel─▶ Cancelled  └──turn back┘              Fenced ◀──late───┘
//	                                                      │ ─later─▶ WrittenOff ─(same node UID reports clean)─▶ Returned
//
// A parcel that its borrower uses although no loan says so is adopted: its loan begins in Noticed.
//
// Invariants, which every method below keeps:
//   - where the home is offline, Emptying carries a deadline and evicts, and Noticed and Draining evict nobody: online leaves by scale-in;
//   - the holder changes at exactly two points, Emptying→Lent and (Draining|Fenced|WrittenOff)→Returned, and each of them needs a
//     Clean report of the loan's current epoch. An adopted loan says what is so already;
//   - a loan ends in Returned by a Clean report, or since its machine is gone: then it names the machine's UID in Vanished;
//   - the epoch never falls, and rises at each entry to Noticed and at each turn back;
//   - Due is fixed at the first notice and only ever moves earlier;
//   - a deadline that was announced may move later by a heartbeat or for pods that had no notice, and earlier only by an emergency that announces it first;
//   - the time of the kill is announced while Draining and never moves earlier, and no machine is fenced before it has come.
type Phase string

// The phases of a loan.
const (
	Emptying   Phase = "Emptying"   // the lender's pods are leaving by scale-in; the lender still holds the parcel
	Lent       Phase = "Lent"       // the borrower holds it
	Noticed    Phase = "Noticed"    // the borrower has its notice and has until Deadline to save its work
	Draining   Phase = "Draining"   // evictions are under way
	Fenced     Phase = "Fenced"     // pods did not go: the node is cut off
	WrittenOff Phase = "WrittenOff" // given up: counted as lost capacity until the node is seen clean or vanishes
	Returned   Phase = "Returned"   // home; the room is kept for its claimant until bound or timed out
	Cancelled  Phase = "Cancelled"  // never left home
)

// Phases lists every phase in the order of a loan's life.
func Phases() []Phase {
	return []Phase{Emptying, Lent, Noticed, Draining, Fenced, WrittenOff, Returned, Cancelled}
}

// Lost reports whether the parcel does not count as coming home any more: its pods did not go in time.
func (p Phase) Lost() bool { return p == Fenced || p == WrittenOff }

// Ended reports whether nothing more happens to the loan, so that it may be deleted.
func (p Phase) Ended() bool { return p == Returned || p == Cancelled }

// Away reports whether the borrower holds the parcel.
func (p Phase) Away() bool {
	switch p {
	case Lent, Noticed, Draining, Fenced, WrittenOff:
		return true
	}
	return false
}

// Moving reports whether the parcel is on its way in either direction.
func (p Phase) Moving() bool {
	switch p {
	case Emptying, Noticed, Draining, Fenced:
		return true
	}
	return false
}

// Holder is the pool that holds the parcel in the loan's phase.
func (l *Loan) Holder() PoolID {
	if l.Phase.Away() {
		return l.To
	}
	return l.From
}

// Next is the pool that the parcel is being prepared for; empty when nothing moves.
func (l *Loan) Next() PoolID {
	switch l.Phase {
	case Emptying:
		return l.To
	case Noticed, Draining, Fenced, WrittenOff:
		return l.From
	}
	return ""
}

// PhaseError is a step that the phase machine does not know. It is a fact of a race (another controller moved the
// loan), not a crash.
type PhaseError struct {
	Loan LoanID
	From Phase
	Step string
}

func (e *PhaseError) Error() string {
	return fmt.Sprintf("loan %s: cannot %s while %s", e.Loan, e.Step, e.From)
}

func (l Loan) enter(p Phase, now time.Time, why reason.Reason) Loan {
	l.Phase, l.Since, l.Reason = p, now, why
	return l
}

func (l Loan) refuse(step string) (Loan, error) {
	return l, &PhaseError{Loan: l.ID, From: l.Phase, Step: step}
}

// Begin returns a new loan in Emptying with epoch 1.
func (l Loan) Begin(now time.Time, why reason.Reason) Loan {
	l.Epoch, l.Created = 1, now
	return l.enter(Emptying, now, why)
}

// Lend hands the emptied parcel to the borrower. clean is the node side's report.
func (l Loan) Lend(now time.Time, clean *ShareParcel) (Loan, error) {
	if l.Phase != Emptying || clean == nil || !clean.IsClean(l.Epoch) {
		return l.refuse("lend (needs Emptying and a Clean report of this epoch)")
	}
	l.LentAt = now
	return l.enter(Lent, now, reason.Of(reason.Emptied)), nil
}

// Cancel ends a loan whose parcel never left home.
func (l Loan) Cancel(now time.Time, why reason.Reason) (Loan, error) {
	if l.Phase != Emptying {
		return l.refuse("cancel")
	}
	return l.enter(Cancelled, now, why), nil
}

// Recall gives notice: the borrower has until deadline, and the parcel is wanted back by due.
func (l Loan) Recall(now, deadline, due time.Time, why reason.Reason) (Loan, error) {
	if l.Phase != Lent {
		return l.refuse("recall")
	}
	l.Epoch++
	l.Deadline, l.KillAt, l.ExpectedUntil = deadline, time.Time{}, time.Time{}
	if l.FirstNotice.IsZero() {
		l.FirstNotice, l.Due = now, due
	} else if due.Before(l.Due) {
		l.Due = due
	}
	return l.enter(Noticed, now, why), nil
}

// TurnBack takes a notice back: the tide turned. The next notice is a new recall with a due time of its own.
func (l Loan) TurnBack(now time.Time, why reason.Reason) (Loan, error) {
	if l.Phase != Noticed {
		return l.refuse("turn back")
	}
	l.Epoch++
	l.Deadline, l.Due, l.FirstNotice, l.Claimant = time.Time{}, time.Time{}, time.Time{}, ""
	return l.enter(Lent, now, why), nil
}

// Invite is Begin for a parcel whose home is offline: emptying is itself a notice, whose pods have until deadline, and the parcel is to be back
// by due.
func (l Loan) Invite(now, deadline, due time.Time, why reason.Reason) Loan {
	l.Deadline, l.Due = deadline, due
	return l.Begin(now, why)
}

// Announce moves the deadline of a notice. A later one (heartbeats) never passes the due time; an earlier one is an emergency. While the
// parcel drains there may be pods that did not answer, for whom it is still in force: then it is only ever put off.
func (l Loan) Announce(deadline time.Time, why reason.Reason) (Loan, error) {
	if last := l.Due; deadline.After(l.Deadline) && deadline.After(last) && !last.IsZero() {
		if deadline = last; deadline.Before(l.Deadline) {
			deadline = l.Deadline
		}
	}
	return l.announce(deadline, why)
}

// AnnounceAgain gives a whole notice to pods that had none: the deadline was never in force, or they had no notice of it. Their notice comes before the due
// time, which stays as it is.
func (l Loan) AnnounceAgain(deadline time.Time, why reason.Reason) (Loan, error) {
	if !deadline.After(l.Deadline) {
		return l.refuse("announce a deadline again that is no later")
	}
	return l.announce(deadline, why)
}

func (l Loan) announce(deadline time.Time, why reason.Reason) (Loan, error) {
	switch {
	case l.Phase == Noticed, l.Phase == Emptying && !l.Deadline.IsZero():
	case l.Phase == Draining && deadline.After(l.Deadline):
	default:
		return l.refuse("announce a deadline")
	}
	l.Deadline, l.Reason = deadline, why
	return l, nil
}

// Drain begins the evictions: the deadline passed, or every pod acknowledged this epoch.
func (l Loan) Drain(now time.Time, allAcked bool) (Loan, error) {
	if l.Phase != Noticed || (now.Before(l.Deadline) && !allAcked) {
		return l.refuse("drain before the announced deadline without every acknowledgement")
	}
	by := reason.DeadlinePassed
	if allAcked {
		by = reason.AllAcknowledged
	}
	return l.enter(Draining, now, reason.Of(reason.NoticeOver, reason.Of(by))), nil
}

// AnnounceKill says from when on pods that are still there are killed. An announced time only moves later.
func (l Loan) AnnounceKill(now, at time.Time, why reason.Reason) (Loan, error) {
	if l.Phase != Draining || at.Before(now) || at.Before(l.KillAt) {
		return l.refuse("announce a kill")
	}
	l.KillAt, l.Reason = at, why
	return l, nil
}

// Killing reports whether the announced time of the kill has come.
func (l *Loan) Killing(now time.Time) bool {
	switch l.Phase {
	case Draining, Fenced, WrittenOff:
		return !l.KillAt.IsZero() && !now.Before(l.KillAt)
	}
	return false
}

// Fence cuts the node off after pods did not go, killed or not. It ends whatever is there, hence it waits for the deadline of the notice too:
// the drain may have begun before it, and not everybody who is there was seen then.
func (l Loan) Fence(now time.Time, why reason.Reason) (Loan, error) {
	if l.Phase != Draining || !l.Killing(now) || now.Before(l.Deadline) {
		return l.refuse("fence (needs Draining, and a kill that was announced and has come)")
	}
	return l.enter(Fenced, now, why), nil
}

// WriteOff gives the parcel up until its node is seen clean or vanishes.
func (l Loan) WriteOff(now time.Time, why reason.Reason) (Loan, error) {
	if l.Phase != Fenced {
		return l.refuse("write off")
	}
	return l.enter(WrittenOff, now, why), nil
}

// Return hands the parcel back to its home.
func (l Loan) Return(now time.Time, clean *ShareParcel) (Loan, error) {
	switch l.Phase {
	case Draining, Fenced, WrittenOff:
	default:
		return l.refuse("return")
	}
	if clean == nil || !clean.IsClean(l.Epoch) {
		return l.refuse("return without a Clean report of this epoch")
	}
	l.CleanAt = clean.CleanAt
	return l.enter(Returned, now, reason.Of(reason.Clean)), nil
}

// adoptedEpoch is that of an adopted loan: a notice is an entry to Noticed, which is never the first epoch of a loan.
const adoptedEpoch = 2

// Adopt returns a loan of a parcel that its borrower uses although no loan says so. It begins with the notice.
func (l Loan) Adopt(now, deadline, due time.Time, why reason.Reason) Loan {
	l.Epoch, l.Created = adoptedEpoch, now
	l.Deadline, l.FirstNotice, l.Due = deadline, now, due
	return l.enter(Noticed, now, why)
}

// AdoptAgain is Adopt of a loan whose share was written and whose status was not. Its epoch is above that of the share's entry.
func (l Loan) AdoptAgain(now, deadline, due time.Time, e *ShareParcel, why reason.Reason) (Loan, error) {
	if l.Phase != Emptying || e == nil || e.Holder != l.To || e.Next != l.From || e.Epoch < adoptedEpoch {
		return l.refuse("adopt (needs Emptying, and a share that says, beyond the first epoch, that the borrower holds the parcel and is to leave)")
	}
	created := l.Created
	l = l.Adopt(now, deadline, due, why)
	l.Epoch, l.Created = max(l.Epoch, e.Epoch+1), created
	return l, nil
}

// NodeGone ends a loan whose node UID vanished: there is no parcel any more.
func (l Loan) NodeGone(now time.Time) Loan {
	if l.Phase.Ended() {
		return l
	}
	l.Vanished = l.Node
	if l.Phase.Away() {
		l.CleanAt = now
		return l.enter(Returned, now, reason.Of(reason.NodeVanished))
	}
	return l.enter(Cancelled, now, reason.Of(reason.NodeVanished))
}
