package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// The time of the kill counts from the first eviction that was accepted, and at the latest from the end of the patience after the deadline. Until
// then no machine is cut off on which a pod is that was never evicted.
func TestPatienceWithRefusedEvictions(t *testing.T) {
	const grace = 30 * time.Second
	for _, c := range []struct {
		name     string
		deadline time.Duration // before now
		patience time.Duration // the pool's; 0 is the default, two minutes
		thawed   time.Duration // before now; 0 is never
		refused  int           // pods whose eviction is refused
		ending   int           // pods that end
		killAt   time.Duration // announced, from now; 0 is not announced
		kind     MoveKind      // the step that the plan takes
		kill     time.Duration // what it announces, from now
		reason   string
	}{
		{name: "nobody was evicted, and there is patience", deadline: time.Minute, refused: 2},
		{name: "at the last moment", deadline: 2*time.Minute - time.Second, refused: 1},
		{name: "the patience is over", deadline: 2 * time.Minute, refused: 2, kind: MoveAnnounce, kill: time.Minute,
			reason: "disruption budget batch/pdb refused to evict 2 pods until 2m0s after the deadline"},
		{name: "the pool has more of it", deadline: 2 * time.Minute, patience: 5 * time.Minute, refused: 2},
		{name: "the pool has less of it", deadline: 30 * time.Second, patience: 30 * time.Second, refused: 1, kind: MoveAnnounce, kill: time.Minute, reason: "budget batch/pdb"},
		{name: "a freeze took the time", deadline: 5 * time.Minute, thawed: time.Minute, refused: 1},
		{name: "the first was accepted", deadline: time.Second, refused: 2, ending: 1, kind: MoveAnnounce, kill: time.Minute, reason: "1 evicted pods are killed when their time is over; disruption budget batch/pdb refused to evict 2 more"},
		{name: "all were accepted", deadline: time.Second, ending: 2, kind: MoveAnnounce, kill: time.Minute, reason: "2 evicted pods are killed when their time is over"},
		{name: "nobody is there", deadline: time.Second, kind: MoveAnnounce, kill: 30 * time.Second, reason: "no offline pod is left to evict"},
		{name: "killed, and there is patience with the others", deadline: 119 * time.Second, refused: 1, ending: 1, killAt: -time.Minute},
		{name: "killed, and the patience is over", deadline: 2 * time.Minute, refused: 1, ending: 1, killAt: -time.Minute, kind: MoveFence, reason: "budget batch/pdb refused to evict 1 pods"},
		{name: "killed, and all were evicted", deadline: 70 * time.Second, ending: 1, killAt: -time.Minute, kind: MoveFence, reason: "1 evicted pods are still there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(4)
			l := w.loan(3, fleet.Draining, 2)
			l.Deadline, l.Since = t0.Add(-c.deadline), t0.Add(-c.deadline)
			if c.killAt != 0 {
				l.KillAt = t0.Add(c.killAt)
			}
			w.s.Pool(l.From).Ladder.Patience = c.patience
			for i := range c.refused + c.ending {
				w.worker(3, i)
				p := &w.s.Pods[len(w.s.Pods)-1]
				p.Grace, p.NoticeLoan, p.NoticeEpoch, p.AckEpoch = grace, l.ID, 2, 2
				if p.Deleting = i >= c.refused; !p.Deleting {
					p.Refused = fleet.Refusal{Cause: fleet.RefusedByBudget, By: "batch/pdb"}
				}
			}
			in := w.input()
			if c.thawed > 0 {
				in.Thawed = t0.Add(-c.thawed)
			}
			plan := made(in)
			var moves []Move
			for _, m := range plan.Moves {
				if m.Before.ID == l.ID {
					moves = append(moves, m)
				}
			}
			if c.kind == "" {
				if len(moves) > 0 {
					t.Fatalf("the loan takes a step: %s %s", moves[0].Kind, moves[0].After.Reason)
				}
			} else if len(moves) != 1 || moves[0].Kind != c.kind || !strings.Contains(moves[0].After.Reason.Text(), c.reason) {
				t.Fatalf("moves = %+v, want one %s because of %q", moves, c.kind, c.reason)
			}
			if c.kill != 0 && !moves[0].After.KillAt.Equal(t0.Add(c.kill)) {
				t.Errorf("the kill is announced for %s from now, want %s", moves[0].After.KillAt.Sub(t0), c.kill)
			}
			for _, k := range plan.Kills {
				for i := range w.s.Pods {
					if p := &w.s.Pods[i]; p.ID == k.Pod.ID && p.Unevicted() {
						t.Errorf("pod %s is killed and was never evicted", p.Name)
					}
				}
			}
		})
	}
}

// Pods have their own grace to end, as long as it is no longer than the pool's longest notice: a pod with a grace of a day holds up no machine.
func TestTheKillWaitsForTheGraceWithinTheLongestNotice(t *testing.T) {
	const kill = 30 * time.Second
	for _, c := range []struct{ grace, other, most, want time.Duration }{
		{grace: 2 * time.Minute, most: 5 * time.Minute, want: 2 * time.Minute},
		{grace: 5 * time.Minute, most: 5 * time.Minute, want: 5 * time.Minute},
		{grace: 5*time.Minute + time.Second, most: 5 * time.Minute, want: 5 * time.Minute},
		{grace: time.Hour, other: time.Second, most: 10 * time.Minute, want: 10 * time.Minute},
		{grace: time.Second, other: 24 * time.Hour, most: 2 * time.Minute, want: 2 * time.Minute},
		{grace: time.Second, other: time.Minute, most: 2 * time.Minute, want: time.Minute},
	} {
		w := newWorld(4)
		l := w.loan(3, fleet.Draining, 2)
		l.Deadline, l.Since = t0.Add(-time.Second), t0.Add(-time.Second)
		pool := w.s.Pool(l.From)
		pool.Notice, pool.NoticeMax, pool.Ladder.Kill = time.Minute, c.most, kill
		for i, grace := range []time.Duration{c.grace, c.other} {
			w.worker(3, i)
			p := &w.s.Pods[len(w.s.Pods)-1]
			p.Grace, p.Deleting, p.NoticeLoan, p.NoticeEpoch, p.AckEpoch = grace, true, l.ID, 2, 2
		}
		var at []time.Time
		plan := made(w.input())
		for _, m := range plan.Moves {
			if m.Before.ID == l.ID && m.Kind == MoveAnnounce {
				at = append(at, m.After.KillAt)
			}
		}
		if len(at) != 1 || !at[0].Equal(t0.Add(c.want+kill)) {
			t.Errorf("graces of %s and %s, notices of %s at most: kills at %v, want one %s after %s", c.grace, c.other, c.most, at, c.want+kill, t0)
		}
	}
}
