package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// No pod is evicted before its announced deadline, and the announcement comes a whole notice before: whatever kept the
// notice from it, the deadline is announced again. Two pods are on the machine, and its pool gives two minutes, ten at
// the most. An operator asks for the recall, so that no tide turns it back.
func TestAWholeNotice(t *testing.T) {
	const untold = time.Duration(-1)
	bothKnow := func(d time.Duration) [2]time.Duration { return [2]time.Duration{d, d} }
	none := bothKnow(untold)
	for _, c := range []struct {
		name     string
		phase    fleet.Phase
		first    time.Duration    // since the first notice
		deadline time.Duration    // from now
		knows    [2]time.Duration // the deadline that each pod knows, as the time since its notice began; untold where it knows none
		leads    time.Duration    // for how long this leader has led
		waits    int              // online pods that wait for room
		cycle    time.Duration    // 0 for the usual one
		again    time.Duration    // the deadline that is announced, from now; 0 for none
		tells    int
		evicts   int
	}{
		{name: "the leader was away until after the deadline, none was told", first: 130 * time.Second, deadline: -10 * time.Second, knows: none, leads: 1, again: 2 * time.Minute, tells: 2},
		{name: "an hour after", first: time.Hour, deadline: -58 * time.Minute, knows: none, leads: 1, again: 2 * time.Minute, tells: 2},
		{name: "one of two was told", first: 130 * time.Second, deadline: -10 * time.Second, knows: [2]time.Duration{2 * time.Minute, untold}, leads: 1, again: 2 * time.Minute, tells: 2},
		{name: "a pod came after the notice", first: 100 * time.Second, deadline: 20 * time.Second, knows: [2]time.Duration{2 * time.Minute, untold}, leads: time.Hour, again: 2 * time.Minute, tells: 2},
		{name: "the leader changed between the loan and the pods", first: 90 * time.Second, deadline: 30 * time.Second, knows: none, leads: 1, again: 2 * time.Minute, tells: 2},
		{name: "shortened, and none was told so", first: 100 * time.Second, deadline: -20 * time.Second, knows: bothKnow(3 * time.Minute), leads: 1, again: 2 * time.Minute, tells: 2},
		{name: "shortened, none was told so, and pods still wait", first: 100 * time.Second, deadline: -20 * time.Second, knows: bothKnow(3 * time.Minute), leads: 1, waits: 8,
			again: 30 * time.Second, tells: 2},
		{name: "the writes to pods fail", first: 9 * time.Minute, deadline: 10 * time.Second, knows: none, leads: time.Hour, again: 2 * time.Minute, tells: 2},
		{name: "a pod came while the machine drains", phase: fleet.Draining, first: 100 * time.Second, deadline: 20 * time.Second, knows: [2]time.Duration{2 * time.Minute, untold},
			leads: time.Hour, again: 2 * time.Minute, tells: 2},
		{name: "a pod came while the machine drains, after the deadline", phase: fleet.Draining, first: 200 * time.Second, deadline: -80 * time.Second,
			knows: [2]time.Duration{2 * time.Minute, untold}, leads: time.Hour, again: 2 * time.Minute, tells: 2},

		{name: "the plan after the recall", first: 15 * time.Second, deadline: 105 * time.Second, knows: none, leads: time.Hour, tells: 2},
		{name: "the plan after the recall of an emergency", first: 15 * time.Second, deadline: 15 * time.Second, knows: none, leads: time.Hour, tells: 2},
		{name: "the plan after the recall, and plans are a minute apart", first: time.Minute, deadline: time.Minute, knows: none, leads: time.Hour, cycle: time.Minute, tells: 2},
		{name: "the plan after that, and nothing was written", first: 2 * time.Minute, deadline: 0, knows: none, leads: time.Hour, cycle: time.Minute, again: 2 * time.Minute, tells: 2},
		{name: "plans are longer apart than the notice", first: 5 * time.Minute, deadline: -3 * time.Minute, knows: none, leads: time.Hour, cycle: 5 * time.Minute, again: 2 * time.Minute, tells: 2},
		{name: "all were told in time", first: 130 * time.Second, deadline: -10 * time.Second, knows: bothKnow(2 * time.Minute), leads: 1, evicts: 2},
		{name: "told in time, and now a later deadline", first: 100 * time.Second, deadline: 80 * time.Second, knows: bothKnow(2 * time.Minute), leads: time.Hour, tells: 2},
		{name: "drains, all were told in time", phase: fleet.Draining, first: 130 * time.Second, deadline: -10 * time.Second, knows: bothKnow(2 * time.Minute), leads: 1, evicts: 2},
		{name: "no write to a pod was taken for ten minutes", first: 10 * time.Minute, deadline: -time.Second, knows: none, leads: time.Hour, tells: 0, evicts: 2},
		{name: "nor under this leader", first: 30 * time.Minute, deadline: -time.Second, knows: none, leads: 10 * time.Minute, tells: 0, evicts: 2},
		{name: "this leader has tried for less", first: 30 * time.Minute, deadline: -time.Second, knows: none, leads: 9 * time.Minute, again: 2 * time.Minute, tells: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(4).service("web", 24, 0, 3, 130)
			w.waits("web", c.waits)
			if c.phase == "" {
				c.phase = fleet.Noticed
			}
			l := w.loan(3, c.phase, 2)
			l.FirstNotice, l.Deadline, l.Due, l.Asked = t0.Add(-c.first), t0.Add(c.deadline), t0.Add(c.deadline+105*time.Second), "maintenance"
			w.s.WatchedSince = t0.Add(-c.leads)
			tell(w, 3, l, c.knows, l.FirstNotice)
			in := w.input()
			if c.cycle > 0 {
				in.Options.Interval = c.cycle
			}
			checkNotice(t, made(in), l, c.again, c.tells, c.evicts)
		})
	}
}

// The same on the way to online: a machine of an offline pool is emptied by a notice, too, which is a minute there.
func TestAWholeNoticeOfAnInvitation(t *testing.T) {
	const untold = time.Duration(-1)
	for _, c := range []struct {
		name                   string
		begun, deadline, leads time.Duration
		knows                  [2]time.Duration
		again                  time.Duration
		tells, evicts          int
	}{
		{"the leader was away until after the deadline", 2 * time.Minute, -time.Minute, 1, [2]time.Duration{untold, untold}, time.Minute, 2, 0},
		{"one of two was told", 2 * time.Minute, -time.Minute, 1, [2]time.Duration{time.Minute, untold}, time.Minute, 2, 0},
		{"a pod came after the notice", 50 * time.Second, 10 * time.Second, time.Hour, [2]time.Duration{time.Minute, untold}, time.Minute, 2, 0},
		{"the next plan of an emergency", 15 * time.Second, 15 * time.Second, time.Hour, [2]time.Duration{untold, untold}, 0, 2, 0},
		{"all were told in time", 70 * time.Second, -10 * time.Second, 1, [2]time.Duration{time.Minute, time.Minute}, 0, 0, 2},
		{"no write to a pod was taken for ten minutes", 10 * time.Minute, -9 * time.Minute, time.Hour, [2]time.Duration{untold, untold}, 0, 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(3).service("web", 18, 0, 3, 130)
			w.waits("web", 16)
			w.offline(1)
			l := w.loan(3, fleet.Emptying, 1)
			l.From, l.To, l.Created, l.Since, l.Deadline, l.Due = "offline", "online", t0.Add(-c.begun), t0.Add(-c.begun), t0.Add(c.deadline), t0.Add(time.Hour)
			n := &w.s.Nodes[3]
			n.Marks = fleet.NodeMarks{HolderTaint: true, HomeLabel: true, KeepNode: true}
			n.Share.Parcels[0].Holder, n.Share.Parcels[0].Next = l.Holder(), l.Next()
			w.s.WatchedSince = t0.Add(-c.leads)
			tell(w, 3, l, c.knows, l.Created)
			checkNotice(t, made(w.input()), l, c.again, c.tells, c.evicts)
		})
	}
}

// announce puts two workers on a machine, each with a deadline so long after the notice began; none where it is below
// zero.
func tell(w *world, machine int, l *fleet.Loan, knows [2]time.Duration, began time.Time) {
	for i, d := range knows {
		w.worker(machine, i)
		if p := &w.s.Pods[len(w.s.Pods)-1]; d >= 0 {
			p.NoticeLoan, p.NoticeEpoch, p.NoticeDeadline = l.ID, l.Epoch, fleet.KnownAt(began.Add(d), t0)
		}
	}
}

// checkNotice: a plan announces the deadline of a loan so far from now, or not at all; it announces the deadline to so
// many pods then, and evicts so many.
func checkNotice(t *testing.T, p Plan, l *fleet.Loan, again time.Duration, tells, evicts int) {
	t.Helper()
	deadline := l.Deadline
	got := time.Duration(0)
	for _, m := range p.Moves {
		if m.Before.ID == l.ID && m.Kind == MoveAnnounce && !m.After.Deadline.Equal(l.Deadline) {
			deadline, got = m.After.Deadline, m.After.Deadline.Sub(t0)
		}
		if m.Before.ID == l.ID && m.After.Due.After(m.Before.Due) {
			t.Errorf("%s moves the due time later", m.Kind)
		}
	}
	ids := func(n int, id func(int) fleet.UID) map[fleet.UID]bool {
		out := map[fleet.UID]bool{}
		for i := range n {
			out[id(i)] = true
		}
		return out
	}
	noticed := ids(len(p.Notices), func(i int) fleet.UID { return p.Notices[i].Pod.ID })
	evicted := ids(len(p.Evictions), func(i int) fleet.UID { return p.Evictions[i].Pod.ID })
	if got != again || len(noticed) != tells || len(evicted) != evicts || len(p.Unresolved()) > 0 {
		t.Errorf("announced for %s from now, %d told, %d evicted, unresolved %v; want %s, %d, %d\n%s", got, len(noticed), len(evicted), p.Unresolved(), again, tells, evicts, lines(p))
	}
	if slices.ContainsFunc(p.Notices, func(n Notice) bool { return n.TakenBack || !n.Deadline.Equal(deadline) }) {
		t.Errorf("deadline %s, and the notices say %+v", deadline, p.Notices)
	}
}

func lines(p Plan) string {
	out := ""
	for _, m := range p.Moves {
		out += fmt.Sprintf("%s %s -> %s: %s\n", m.Kind, m.Before.ID, m.After.Phase, m.After.Reason)
	}
	return out
}
