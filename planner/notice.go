package planner

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/reclaim"
)

// noticeOn is the whole notice of those on a loan's machine.
func (m *maker) noticeOn(l *fleet.Loan) time.Duration {
	return reclaim.NoticeOn(m.in.Snapshot, m.terms(l), m.on(l.Node).Pods, m.recalls())
}

// overslept reports whether an announced time came before the end of a freeze, under which no component acts: it was never in force.
func (m *maker) overslept(at time.Time) bool { return !m.in.Thawed.IsZero() && !at.After(m.in.Thawed) }

// noticedSince is when a loan's notice began: at the recall, or for a parcel of an offline pool with the loan.
func noticedSince(l *fleet.Loan) time.Time {
	if l.FirstNotice.IsZero() {
		return l.Created
	}
	return l.FirstNotice
}

// wholeNotice is what the loan's pods get from a deadline that is announced again. While online pods wait for the room it is the shortest notice there is.
func (m *maker) wholeNotice(l *fleet.Loan) time.Duration {
	if _, shortened := m.shortened[l.ID]; shortened {
		return reclaim.EmergencyNotice
	}
	return m.noticeOn(l)
}

// owed says why a loan's pods are owed a whole notice again; empty where its deadline stands. One rule holds for all that may keep a notice from a pod (a leader
// that was away, a write that was refused, a pod that came later): no pod is evicted before the deadline in its notice, which it has for a whole notice before.
// A cycle may pass until a notice is written, and is no part of it. A notice that the recall itself, or an emergency, made shorter is whole.
//
// A pod to which no notice can be written is waited for as long as the pool's longest notice, from when a leader could first try. A machine that is closed for that
// long gets pods past its marks alone.
func (m *maker) owed(l *fleet.Loan, loans []*fleet.Loan) (why reason.Reason) {
	deadline := m.deadlineOf(l)
	unanswered := 0
	var untold []*fleet.Pod
	for _, p := range m.on(l.Node).Pods {
		if !p.Unevicted() || answers(p, loans) {
			continue
		}
		if unanswered++; !knows(p, loans, deadline) {
			untold = append(untold, p)
		}
	}
	whole := min(m.wholeNotice(l), max(reclaim.EmergencyNotice, deadline.Sub(noticedSince(l))))
	least := max(whole-max(reclaim.UnderWay, m.in.Options.Interval), reclaim.LeastNotice)
	switch {
	case m.overslept(l.Deadline) && (unanswered > 0 || l.Phase != fleet.Draining):
		return reason.Of(reason.Thawed, reason.Of(reason.DeadlineAgain))
	case len(untold) > 0 && deadline.Sub(m.in.Snapshot.At) < least && m.canNotify(l):
		return reason.Of(reason.Untold, len(untold), untold[0].Name)
	}
	return reason.Reason{}
}

// announceAgain gives the loan's pods a whole notice again where they are owed one.
func (m *maker) announceAgain(l *fleet.Loan, loans []*fleet.Loan) (after fleet.Loan, again bool) {
	why := m.owed(l, loans)
	if why.None() {
		return *l, false
	}
	after, err := l.AnnounceAgain(m.in.Snapshot.At.Add(m.wholeNotice(l)), why)
	return after, m.step(passFollow, MoveAnnounce, *l, after, err)
}

// deadlineOf is the deadline of a notice as this plan leaves it: online pods that wait for the room may bring it nearer.
func (m *maker) deadlineOf(l *fleet.Loan) time.Time {
	if at, shortened := m.shortened[l.ID]; shortened {
		return at
	}
	return l.Deadline
}

// canNotify reports whether pods that do not know their notice may still get to know it: no leader has tried for long.
func (m *maker) canNotify(l *fleet.Loan) bool {
	from := noticedSince(l)
	for _, at := range [...]time.Time{m.in.Snapshot.WatchedSince, m.in.Thawed} {
		if at.After(from) {
			from = at
		}
	}
	return m.in.Snapshot.At.Before(from.Add(max(m.terms(l).NoticeMax, m.noticeOn(l))))
}

// notify notes the notice that a pod lacks: it carries none of its machine's loans, or one that names another deadline. No pod gets a notice of a time that has passed.
func (m *maker) notify(l *fleet.Loan, p *fleet.Pod, loans []*fleet.Loan, deadline time.Time) {
	if !deadline.After(m.in.Snapshot.At) {
		return
	}
	known := informed(p, loans)
	if !known || p.NoticeDeadline.OK && !p.NoticeDeadline.Value.Equal(deadline) {
		m.plan.Notices = append(m.plan.Notices, Notice{Pod: PodRef{p.Name, p.ID}, Loan: l.ID, Epoch: l.Epoch, Deadline: deadline, Again: known})
	}
}

// informed reports whether the pod carries the notice of one of the loans in its present epoch.
func informed(p *fleet.Pod, loans []*fleet.Loan) bool {
	return slices.ContainsFunc(loans, func(l *fleet.Loan) bool { return p.NoticeLoan == l.ID && p.NoticeEpoch == l.Epoch })
}

// knows reports whether the pod has a notice of a deadline: such a notice, which names no later one.
func knows(p *fleet.Pod, loans []*fleet.Loan, deadline time.Time) bool {
	return informed(p, loans) && !(p.NoticeDeadline.OK && p.NoticeDeadline.Value.After(deadline))
}

// answers reports whether the pod acknowledged such a notice.
func answers(p *fleet.Pod, loans []*fleet.Loan) bool {
	return informed(p, loans) && p.AckEpoch == p.NoticeEpoch
}
