package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// killAt is when pods that end since now are no longer waited for: after the longest grace among the machine's pods,
// and the ladder's own time. A grace beyond the pool's longest notice is not honoured: a pod that needs longer sends a
// heartbeat, while it is still asked.
func (m *follower) killAt(l *fleet.Loan) time.Time {
	var grace time.Duration
	for _, p := range m.on(l.Node).Pods {
		if p.Class == fleet.PodOffline {
			grace = max(grace, p.Grace)
		}
	}
	pool := m.terms(l)
	return m.in.Snapshot.At.Add(min(grace, pool.NoticeMax) + pool.Ladder.OrDefault().Kill)
}

// unevicted are the borrower's pods on a machine whose eviction is not accepted yet.
func (m *follower) unevicted(node fleet.NodeID) []*fleet.Pod {
	var out []*fleet.Pod
	for _, p := range m.on(node).Pods {
		if p.Unevicted() {
			out = append(out, p)
		}
	}
	return out
}

// ending reports whether the time of the kill may count from now: a pod of the borrower ends, so the first eviction was accepted, or none is left
// to be evicted.
func (m *follower) ending(l *fleet.Loan) bool {
	return len(m.unevicted(l.Node)) == 0 ||
		slices.ContainsFunc(m.on(l.Node).Pods, func(p *fleet.Pod) bool { return p.Class == fleet.PodOffline && p.Deleting })
}

// patient reports whether pods on a draining machine that were never evicted are still waited for. The time under a
// freeze, in which no pod is evicted, does not count.
func (m *follower) patient(l *fleet.Loan) bool {
	return len(m.unevicted(l.Node)) > 0 && m.in.Snapshot.At.Before(l.PatienceEnds(m.terms(l).Ladder, m.in.Thawed))
}

// refusal says what is known of pods that were never evicted: who refused it, or that no answer is known.
func (m *follower) refusal(l *fleet.Loan) reason.Reason {
	pods := m.unevicted(l.Node)
	patience := m.terms(l).Ladder.OrDefault().Patience
	if by := fleet.Guards(pods); by != "" {
		return reason.Of(reason.EvictionsRefused, by, len(pods), patience)
	}
	return reason.Of(reason.NotEvicted, len(pods), patience)
}

// ended says what became of a machine's pods that the ladder ended, as the API server shows it.
func (m *follower) ended(node fleet.NodeID) reason.Reason {
	killed, ending := 0, 0
	for _, p := range m.on(node).Pods {
		switch {
		case p.Class != fleet.PodOffline:
		case p.Killed:
			killed++
		case p.Deleting:
			ending++
		}
	}
	switch {
	case killed+ending == 0:
		return reason.Of(reason.NoneLeft)
	case ending == 0:
		return reason.Of(reason.KilledStay, killed)
	case killed == 0:
		return reason.Of(reason.EvictedStay, ending)
	}
	return reason.Of(reason.KilledAndEvictedStay, killed, ending)
}

// draining takes the parcel home when the node side says Clean, and climbs the ladder until it does: evictions, the announced kill, the
// fence, the write-off. Each rung stands in the loan before it is used, so a cycle takes one at most.
func (m *follower) draining(l *fleet.Loan, e *fleet.ShareParcel) {
	s := m.in.Snapshot
	if e.IsClean(l.Epoch) && m.shut(l) {
		after, err := l.Return(s.At, e)
		m.step(passFollow, MoveReturn, *l, after, err)
		return
	}
	if l.Phase == fleet.Draining {
		if after, again := m.renew(l); again {
			m.evict(&after)
			return
		}
	}
	if m.climb(l); l.Killing(s.At) {
		m.kill(l)
	}
	m.evict(l)
}

// renew announces again what gave the pods on a draining machine no time: the deadline of their notice, and with it the kill, which comes after their grace, or a
// kill that came under a freeze.
func (m *follower) renew(l *fleet.Loan) (after fleet.Loan, again bool) {
	s, why := m.in.Snapshot, m.owed(l, m.homewardOn(l.Node))
	kill, err := m.killAt(l), error(nil)
	after = *l
	switch {
	case !why.None():
		after, err = l.AnnounceAgain(s.At.Add(m.wholeNotice(l)), why)
		kill = kill.Add(after.Deadline.Sub(s.At))
	case l.Killing(s.At) && m.overslept(l.KillAt):
		why = reason.Of(reason.Thawed, reason.Of(reason.KillAgain))
	default:
		return after, false
	}
	if err == nil && !l.KillAt.IsZero() && kill.After(l.KillAt) {
		after, err = after.AnnounceKill(s.At, kill, why)
	}
	m.step(passFollow, MoveAnnounce, *l, after, err)
	return after, true
}

// shut reports whether no pod of an offline borrower can be on a parcel that is clean: its machine's mark is gone, and
// no pod slipped in before it was. A controller that died between the recall and the marks left the machine open.
func (m *follower) shut(l *fleet.Loan) bool {
	n := m.in.Snapshot.Node(l.Node)
	if to := m.in.Snapshot.Pool(l.To); n == nil || to == nil || to.Class != fleet.Offline {
		return true
	}
	return !n.Marks.OfflineLabel && (l.Kind != fleet.KindNode || !slices.ContainsFunc(m.on(l.Node).Pods, func(p *fleet.Pod) bool { return p.Class == fleet.PodOffline }))
}

// kill ends pods that should have ended and did not. A pod that could not be evicted, since its disruption budget let
// none go, is asked again, and ended by the fence.
func (m *follower) kill(l *fleet.Loan) {
	for _, p := range m.stayers(l) {
		if p.Deleting && !p.Refused.Holds(m.in.Snapshot.At) {
			m.ends[p.ID] = true
			m.plan.Kills = append(m.plan.Kills, Kill{Pod: PodRef{p.Name, p.ID}, Loan: l.ID, Job: p.Job,
				Why: reason.Of(reason.KillAnnounced, reason.Of(reason.TimeIsOver, l.NodeName, l.KillAt.UTC().Format(time.RFC3339)))})
		}
	}
}

// evict ends the borrower's pods that have no eviction yet. One that slipped in after all others had acknowledged,
// while the machine's marks were still to be written, gets the notice that it missed and is waited for until the
// deadline.
func (m *follower) evict(l *fleet.Loan) {
	s := m.in.Snapshot
	var loans []*fleet.Loan
	for _, p := range m.stayers(l) {
		if p.Deleting {
			continue
		}
		if loans == nil {
			loans = m.homewardOn(l.Node)
		}
		switch {
		case p.Refused.Holds(s.At): // asked a moment ago; another try is due later, or when what refused it changes
		case !s.At.Before(l.Deadline) || answers(p, loans):
			m.ends[p.ID] = true
			m.plan.Evictions = append(m.plan.Evictions, Eviction{Pod: PodRef{p.Name, p.ID}, Loan: l.ID, Job: p.Job,
				Why: reason.Of(reason.Recalled, reason.Of(reason.GoesHome, l.NodeName, l.Reason), reason.Reason{})})
		case l.ID == loans[0].ID: // the first loan of the machine speaks for all of them, by its own deadline
			m.notify(l, p, loans, l.Deadline)
		}
	}
}

// homewardOn lists the machine's loans that are on their way home, by id: a notice of any of them speaks for all.
func (m *follower) homewardOn(node fleet.NodeID) []*fleet.Loan {
	var out []*fleet.Loan
	for _, l := range m.on(node).Loans {
		if l.Phase.Away() && l.Phase != fleet.Lent {
			out = append(out, l)
		}
	}
	return out
}

// climb takes the loan to its next rung, if that is due.
func (m *follower) climb(l *fleet.Loan) {
	s, ladder := m.in.Snapshot, m.terms(l).Ladder.OrDefault()
	switch {
	case l.Phase == fleet.Draining && l.KillAt.IsZero() && m.ending(l):
		after, err := l.AnnounceKill(s.At, m.killAt(l), reason.Of(reason.KillAnnounced, m.announcing(l)))
		m.step(passFollow, MoveAnnounce, *l, after, err)
	case l.Phase == fleet.Draining && l.KillAt.IsZero():
		if !m.patient(l) {
			after, err := l.AnnounceKill(s.At, m.killAt(l), reason.Of(reason.BudgetRefused, m.refusal(l)))
			m.step(passFollow, MoveAnnounce, *l, after, err)
		}
	case l.Phase == fleet.Draining && !s.At.Before(l.KillAt.Add(ladder.Fence)) && !s.At.Before(l.Deadline):
		if m.patient(l) {
			return // the fence would end pods that were never evicted
		}
		why := reason.Of(reason.LateAfterKill, l.NodeName, ladder.Fence, m.ended(l.Node))
		if len(m.unevicted(l.Node)) > 0 {
			why = reason.Of(reason.LateWithoutEviction, m.refusal(l), l.NodeName)
		}
		after, err := l.Fence(s.At, reason.Of(reason.NotClean, why))
		m.step(passFollow, MoveFence, *l, after, err)
	case l.Phase == fleet.Fenced && s.At.Sub(l.Since) >= ladder.WriteOff:
		after, err := l.WriteOff(s.At, reason.Of(reason.NotClean, reason.Of(reason.LateAfterFence, l.NodeName, ladder.WriteOff)))
		m.step(passFollow, MoveWriteOff, *l, after, err)
	}
}

// announcing says for whom the time of the kill runs: for evicted pods, or for none where the machine's offline pods are gone.
func (m *follower) announcing(l *fleet.Loan) reason.Reason {
	ending := 0
	for _, p := range m.on(l.Node).Pods {
		if p.Class == fleet.PodOffline && p.Deleting {
			ending++
		}
	}
	left := m.unevicted(l.Node)
	switch by := fleet.Guards(left); {
	case ending == 0:
		return reason.Of(reason.NoneToEvict)
	case by != "":
		return reason.Of(reason.EvictedEnd, ending, reason.Of(reason.MoreRefused, by, len(left)))
	default:
		return reason.Of(reason.EvictedEnd, ending, reason.Reason{})
	}
}

// stayers are the borrower's pods on a machine not yet killed, that this plan does not end already (another loan of the
// machine may drain, too), lowest job priority first.
func (m *follower) stayers(l *fleet.Loan) []*fleet.Pod {
	s := m.in.Snapshot
	var out []*fleet.Pod
	for _, p := range m.on(l.Node).Pods {
		if p.Class == fleet.PodOffline && !p.Killed && !m.ends[p.ID] {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *fleet.Pod) int {
		return cmp.Or(cmp.Compare(priorityOf(s, a), priorityOf(s, b)), a.Name.Compare(b.Name))
	})
	return out
}
