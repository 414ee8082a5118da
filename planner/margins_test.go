package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// A machine that one plan borrows for a shortage that it foresees is not sent back by the next plan, however late within the look ahead the flood comes.
// The lender's notice is longer than the pool's term, so that the term does not cover the margin.
func TestWhatOnePlanBorrowsTheNextKeeps(t *testing.T) {
	for _, notice := range []time.Duration{40 * time.Minute, 50 * time.Minute, 58 * time.Minute} {
		begun := 0
		for in := notice - 5*time.Minute; in < notice+20*time.Minute; in += time.Minute {
			w := newWorld(3).service("web", 18, 0, 3, 18*8*0.6)
			w.offline(3)
			w.worker(3, 0)
			w.s.Pools[0].Notice, w.s.Pools[0].NoticeMax = notice, time.Hour
			w.rises = []rise{{"shop/web", in, 150}}
			for _, x := range made(w.input()).Moves {
				begun++
				n := &w.s.Nodes[slices.IndexFunc(w.s.Nodes, func(n fleet.Node) bool { return n.ID == x.After.Node })]
				w.s.Loans = append(w.s.Loans, x.After)
				n.Marks = fleet.NodeMarks{HolderTaint: true, HomeLabel: true, KeepNode: true}
				n.Share = fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{{Cells: x.After.Cells, Holder: x.After.Holder(), Next: x.After.Next(), Loan: x.After.ID, Epoch: 1}}}
			}
			if p := made(w.input()); len(w.s.Loans) > 0 && len(p.Moves) > 0 {
				t.Errorf("notice %s, the flood comes in %s: the next plan does %s", notice, in, render(&p))
			}
		}
		if begun == 0 {
			t.Errorf("notice %s: nothing is borrowed at all", notice)
		}
	}
}

// A recall that has time waits, and holds back none that has not: the work that is cheapest to take may be saved fastest.
func TestARecallWithTimeHidesNoOther(t *testing.T) {
	for _, c := range []struct {
		cheap, dear time.Duration // that saving takes
		want        []string
	}{
		{0, 0, nil},
		{0, 15 * time.Minute, []string{"m05"}},
		{15 * time.Minute, 0, []string{"m04"}},
		{15 * time.Minute, 15 * time.Minute, []string{"m04", "m05"}},
	} {
		w := newWorld(6).service("web", 20, 0, 4, 20*8*0.5)
		w.s.Pools[1].NoticeMax = 20 * time.Minute
		w.loan(4, fleet.Lent, 1)
		w.loan(5, fleet.Lent, 1)
		w.worker(4, 0)
		w.worker(5, 0)
		dear := w.s.Jobs[0]
		dear.ID, dear.Priority, dear.Checkpoint = "batch/dear", 100, c.dear
		w.s.Jobs[0].Checkpoint = c.cheap
		w.s.Jobs = append(w.s.Jobs, dear)
		w.s.Pods[len(w.s.Pods)-1].Job = dear.ID
		w.rises = []rise{{"shop/web", 20 * time.Minute, 44 * 8 * 0.63}}
		var got []string
		for _, m := range made(w.input()).Moves {
			if m.Kind == MoveRecall {
				got = append(got, m.Before.NodeName)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("saving takes %s and %s: recalled %v, want %v", c.cheap, c.dear, got, c.want)
		}
	}
}

// A borrowed machine is no room of the days to come once it goes home, nor while it is not ready; while it is held it is.
func TestTheRoomNextToBorrowedMachines(t *testing.T) {
	var targets []hpa.Target // the same for all: what is asked for is not in question
	room := func(phase fleet.Phase, ready bool) fleet.Resources {
		w := newWorld(4)
		w.offline(1)
		w.service("web", 8, 0, 4, 8*8*0.3).service("guest", 2, 4, 1, 2*8*0.3)
		loan := w.loan(4, phase, 2)
		loan.From, loan.To, loan.Deadline, loan.Due = "offline", "online", t0.Add(-time.Hour), t0.Add(2*time.Hour)
		w.s.Nodes[4].Marks, w.s.Nodes[4].Ready = fleet.NodeMarks{HolderTaint: true, HomeLabel: true, KeepNode: true}, ready
		in := w.input()
		if targets == nil {
			targets = made(in).Targets
		}
		m := newMaker(&in)
		m.sizing, m.plan.Targets = in.demands(), targets
		l := m.ledgerOf(w.s.Pool("online"))
		if asked := m.on(w.s.Nodes[4].ID).Asked().CPU; asked != 2*8000 {
			t.Fatalf("%s, ready %t: %d millicores are asked for on the machine", phase, ready, asked)
		}
		return (&lender{m}).roomOf(l, 10*time.Minute, 30*time.Minute)
	}
	own := room(fleet.Noticed, true)
	if own.CPU <= 2*8000 {
		t.Fatalf("the room next to one that goes home is %s, and cannot show a difference", own)
	}
	held := own
	held.CPU += 64000
	for _, c := range []struct {
		phase fleet.Phase
		ready bool
		want  fleet.Resources
	}{
		{fleet.Lent, true, held},
		{fleet.Lent, false, own},
		{fleet.Noticed, false, own},
		{fleet.Draining, true, own},
		{fleet.Draining, false, own},
	} {
		t.Run(fmt.Sprintf("%s, ready %t", c.phase, c.ready), func(t *testing.T) {
			if got := room(c.phase, c.ready); got.CPU != c.want.CPU {
				t.Errorf("the room is %s, want %s", got, c.want)
			}
		})
	}
}
