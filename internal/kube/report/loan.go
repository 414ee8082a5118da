package report

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// LoanStatus writes the conditions of loans, which say what an operator would otherwise have to work out from phase,
// epoch, times and the NodeShare. The phase itself is written by the actuator, with the move. Messages hold no ages, so
// that a loan that stands still is not written.
func (w *statusWriter) loanStatus(r *loop.Report) {
	survivals := make(map[fleet.LoanID]planner.Survival, len(r.Plan.Survivals))
	for _, x := range r.Plan.Survivals {
		survivals[x.Loan] = x
	}
	for _, o := range w.c.Loans.All() {
		c := newConditions(o.API.Status.Conditions, w.now, o.Generation)
		loanConditions(c, &o.Facts, r, w.now)
		x, estimated := survivals[o.Facts.ID]
		estimated = estimated && o.Facts.Phase == fleet.Lent
		if !estimated && reflect.DeepEqual(c.list, o.API.Status.Conditions) {
			continue
		}
		next := *o.API
		if estimated {
			next.Status.ExpectedUntil, next.Status.Due = convert.Stamp(x.Until), convert.Stamp(x.Due)
		}
		next.Status.Conditions, next.Status.LeaderEpoch = c.list, w.epoch
		w.put(object.GVRLoans, &next, func(version string) object.Sight { return w.c.Loans.Sees("", o.Name, o.UID, version) })
	}
}

func loanConditions(c *conditions, l *fleet.Loan, r *loop.Report, now time.Time) {
	s := r.Snapshot
	n := s.Node(l.Node)
	cleanLoan(c, l, n)
	noticedLoan(c, l)
	forcedLoan(c, l, r, now)
	if s.FromOffline(l) {
		overrun(c, l, now)
	} else {
		lateLoan(c, l, now)
	}
	switch {
	case n == nil:
		c.set(catalog.LoanAgentsNodeGone)
	case n.AgentAlive:
		c.set(catalog.LoanAgentsAlive)
	case n.Agentless() && l.Kind == fleet.KindNode:
		c.set(catalog.LoanAgentsNoAgent)
	default:
		c.set(catalog.LoanAgentsSilent)
	}
}

// cleanLoan says whether the node side reported the parcel empty for the hand-over that is under way, or was the last.
func cleanLoan(c *conditions, l *fleet.Loan, n *fleet.Node) {
	switch {
	case l.Phase == fleet.Lent:
		c.set(catalog.LoanCleanLent)
	case l.Phase == fleet.Cancelled:
		c.set(catalog.LoanCleanCancelled)
	case l.Phase == fleet.Returned:
		c.set(catalog.LoanCleanReturned, l.Reason.Text())
	case n != nil && n.Share.Find(l.ID) != nil && n.Share.Find(l.ID).IsClean(l.Epoch):
		c.set(catalog.LoanCleanReported, l.Epoch)
	default:
		c.set(catalog.LoanCleanInUse, l.Epoch)
	}
}

// noticedLoan says whether the borrower has a notice.
func noticedLoan(c *conditions, l *fleet.Loan) {
	switch {
	case l.Phase == fleet.Emptying && !l.Deadline.IsZero():
		c.set(catalog.LoanNoticedLender, l.Deadline.UTC().Format(time.RFC3339), l.Reason.Text())
	case l.FirstNotice.IsZero():
		c.set(catalog.LoanNoticedNotRecalled)
	case l.Phase == fleet.Noticed:
		c.set(catalog.LoanNoticedBorrower, l.Deadline.UTC().Format(time.RFC3339), l.Reason.Text())
	default:
		c.set(catalog.LoanNoticedOver, l.FirstNotice.UTC().Format(time.RFC3339))
	}
}

// patienceEnds is until when pods are waited for that a disruption budget keeps.
func patienceEnds(l *fleet.Loan, r *loop.Report) time.Time {
	var ladder fleet.Ladder
	if from := r.Snapshot.Pool(l.From); from != nil {
		ladder = from.Ladder
	}
	return l.PatienceEnds(ladder, r.Thawed)
}

// borrowers is what became of the borrower's pods on a machine, as the API server shows it: what was killed and is still there, what ends, what was
// refused, and what has no answer yet.
type borrowers struct {
	killed, ending, unanswered int
	refused                    []*fleet.Pod
	// unkilled are pods that end and whose kill was refused.
	unkilled []*fleet.Pod
}

func borrowersOn(s *fleet.Snapshot, node fleet.NodeID) borrowers {
	var b borrowers
	for i := range s.Pods {
		switch p := &s.Pods[i]; {
		case p.Node != node || p.Class != fleet.PodOffline:
		case p.Killed:
			b.killed++
		case p.Deleting:
			b.ending++
			if p.Refused.Any() {
				b.unkilled = append(b.unkilled, p)
			}
		case p.Refused.Any():
			b.refused = append(b.refused, p)
		default:
			b.unanswered++
		}
	}
	return b
}

// text lists what is there, for a machine that is not clean.
func (b *borrowers) text() string {
	var out []string
	add := func(n int, text string) {
		if n > 0 {
			out = append(out, fmt.Sprintf(text, n))
		}
	}
	add(b.killed, "%d pods were killed and are still there")
	add(b.ending, "%d evicted pods have not ended")
	if len(b.refused) > 0 {
		out = append(out, fmt.Sprintf("%s refused to evict %d pods", fleet.Guards(b.refused), len(b.refused)))
	}
	add(b.unanswered, "%d pods were not evicted")
	if len(out) == 0 {
		return "no offline pod is left on it"
	}
	return strings.Join(out, ", ")
}

// forcedLoan names the rung of the ladder on which a recall stands, by what was observed: which pods end, which were killed, and which were refused, by whom.
// The clock alone says nothing: a time that passed ended no pod.
func forcedLoan(c *conditions, l *fleet.Loan, r *loop.Report, now time.Time) {
	kill := l.KillAt.UTC().Format(time.RFC3339)
	b := borrowersOn(r.Snapshot, l.Node)
	switch {
	case l.Phase == fleet.WrittenOff:
		c.set(catalog.LoanForcedWrittenOff, b.text())
	case l.Phase == fleet.Fenced && !isCutOff(r.Snapshot.Node(l.Node)):
		c.set(catalog.LoanForcedFencing, v1alpha1.TaintFenced, b.text())
	case l.Phase == fleet.Fenced:
		c.set(catalog.LoanForcedFenced, v1alpha1.TaintFenced, b.text())
	case len(asked(l, r.Snapshot, b.refused)) > 0:
		refusedLoan(c, l, r, asked(l, r.Snapshot, b.refused))
	case l.Phase == fleet.Draining && len(b.unkilled) > 0:
		c.set(catalog.LoanForcedKillRefused, fleet.Guards(b.unkilled), len(b.unkilled), kill, toFix(b.unkilled[0]))
	case l.Phase == fleet.Draining && b.killed > 0:
		c.set(catalog.LoanForcedKilling, b.killed, kill)
	case l.Phase == fleet.Draining && b.ending > 0 && l.Killing(now):
		c.set(catalog.LoanForcedKillDue, b.ending, kill)
	case l.Phase == fleet.Draining && b.ending > 0 && !l.KillAt.IsZero():
		c.set(catalog.LoanForcedKillAnnounced, b.ending, kill)
	default:
		c.set(catalog.LoanForcedNotForced)
	}
}

// asked are the refused pods that the loan still has evicted: all while the borrower leaves the machine. Where online borrows from offline they are
// evicted in Emptying, from the deadline on or once they acknowledged. A refusal of an earlier loan says nothing of this one.
func asked(l *fleet.Loan, s *fleet.Snapshot, refused []*fleet.Pod) []*fleet.Pod {
	switch {
	case l.Phase == fleet.Draining:
		return refused
	case l.Phase != fleet.Emptying || !s.FromOffline(l):
		return nil
	}
	var out []*fleet.Pod
	for _, p := range refused {
		if !s.At.Before(l.Deadline) || p.NoticeLoan == l.ID && p.NoticeEpoch == l.Epoch && p.AckEpoch == l.Epoch {
			out = append(out, p)
		}
	}
	return out
}

// isCutOff reports whether a machine bears the taint that cuts it off.
func isCutOff(n *fleet.Node) bool { return n != nil && n.Marks.Fence != fleet.FenceNone }

// refusedLoan says who keeps pods on a machine that is to be empty, and what becomes of them.
func refusedLoan(c *conditions, l *fleet.Loan, r *loop.Report, refused []*fleet.Pod) {
	first := refused[0]
	text := fmt.Sprintf("%s refuses to evict pod %s", fleet.Guards(refused), first.Name)
	if more := len(refused) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if ends := patienceEnds(l, r); l.Phase == fleet.Emptying {
		text += fmt.Sprintf(": the machine stays with pool %s unless it can be emptied; the loan is cancelled after a while", l.From)
	} else if r.Snapshot.At.Before(ends) {
		text += fmt.Sprintf(": it is waited for until %s, and then the machine is cut off with what is still there", ends.UTC().Format(time.RFC3339))
	} else {
		text += ": the wait for it is over, and the machine is cut off with what is still there"
	}
	text += toFix(first)
	switch first.Refused.Cause {
	case fleet.RefusedByBudget:
		c.set(catalog.LoanForcedBudgetRefused, text)
	case fleet.RefusedByBudgets:
		c.set(catalog.LoanForcedTwoBudgets, text)
	case fleet.RefusedByWebhook:
		c.set(catalog.LoanForcedWebhookRefused, text)
	case fleet.RefusedByPolicy:
		c.set(catalog.LoanForcedPolicyRefused, text)
	case fleet.RefusedByRights:
		c.set(catalog.LoanForcedRightMissing, text)
	default:
		c.set(catalog.LoanForcedEvictionRefused, text)
	}
}

func toFix(p *fleet.Pod) string {
	if fix := p.Refused.Fix(); fix != "" {
		return "; to fix: " + fix
	}
	return ""
}

// lateLoan says whether a recalled parcel keeps, or kept, the due time of its first notice.
func lateLoan(c *conditions, l *fleet.Loan, now time.Time) {
	due := l.Due.UTC().Format(time.RFC3339)
	switch late := l.Late(now); {
	case l.FirstNotice.IsZero():
		c.set(catalog.LoanLateNotDue)
	case late && l.CleanAt.IsZero():
		c.set(catalog.LoanLateOverdue, due, l.Phase)
	case late:
		c.set(catalog.LoanLateCameLate, due, l.CleanAt.UTC().Format(time.RFC3339))
	case l.CleanAt.IsZero():
		c.set(catalog.LoanLateBeforeDue, due)
	default:
		c.set(catalog.LoanLateInTime, due, l.CleanAt.UTC().Format(time.RFC3339))
	}
}

// overrun says whether online keeps what it borrowed from offline beyond its due time, which yields to what online needs.
func overrun(c *conditions, l *fleet.Loan, now time.Time) {
	due := l.Due.UTC().Format(time.RFC3339)
	if l.Phase.Away() && !l.Due.IsZero() && now.After(l.Due) {
		c.set(catalog.LoanLateOverrun, due)
		return
	}
	c.set(catalog.LoanLateBorrowedBeforeDue, due)
}
