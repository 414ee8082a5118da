package protocol

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

func TestDoorBegin(t *testing.T) {
	begin := func() planner.Move {
		l := fleet.Loan{ID: "l2", Node: "u2", NodeName: "n2", Cells: []int{0}, Kind: fleet.KindNode, From: "web", To: "batch"}.Begin(doorTime, reason.Said("ebb"))
		return planner.Move{Kind: planner.MoveBegin, Before: l, After: l}
	}
	for _, c := range []struct {
		name  string
		facts func(*fleet.Snapshot)
		move  func(*planner.Move)
		want  string
	}{
		{"holds", nil, nil, ""},
		{"name taken", func(s *fleet.Snapshot) { s.Loans[0].ID = "l2" }, nil, "a loan of this name exists"},
		{"node gone", func(s *fleet.Snapshot) { s.Nodes[1].ID = "u9" }, nil, "node n2 is gone"},
		{"node not ready", func(s *fleet.Snapshot) { s.Nodes[1].Ready = false }, nil, "not ready"},
		{"node about to leave", func(s *fleet.Snapshot) { s.Nodes[1].Leaving = "the taint karpenter.sh/disrupted:NoSchedule" }, nil, "node n2 is about to leave: the taint karpenter.sh/disrupted"},
		{"another home", func(s *fleet.Snapshot) { s.Nodes[1].Pool = "batch" }, nil, `at home in pool "batch"`},
		{"the pool no longer acts", func(s *fleet.Snapshot) { s.Pools[1].Mode = fleet.Recommend }, nil, "mode of pool web is Recommend"},
		{"a share names the cells", func(s *fleet.Snapshot) {
			s.Nodes[1].Share.Parcels = []fleet.ShareParcel{{Cells: []int{0, 1}, Loan: "l7"}}
		}, nil, "cells [0 1] in loan l7"},
		{"a loan names the cells", func(s *fleet.Snapshot) { s.Loans[0].Node = "u2" }, nil, "in loan l1"},
		{"a machine with a component of ours", func(s *fleet.Snapshot) { s.Pods[2].Class, s.Pods[2].Own = fleet.PodSystem, true }, nil, "pod us/filler of Springtide's own"},
		{"its socket", func(s *fleet.Snapshot) {
			s.Nodes[1].AgentAlive, s.Pods[2].Class, s.Pods[2].Own = true, fleet.PodSystem, true
		}, func(m *planner.Move) { m.After.Kind = fleet.KindSocket }, ""},
		{"other cells are lent", func(s *fleet.Snapshot) { s.Loans[0].Node, s.Loans[0].Cells = "u2", []int{1} }, nil, ""},
		{"a socket without an agent", nil, func(m *planner.Move) { m.After.Kind = fleet.KindSocket }, "no live agent"},
		{"a socket with an agent", func(s *fleet.Snapshot) { s.Nodes[1].AgentAlive = true }, func(m *planner.Move) { m.After.Kind = fleet.KindSocket }, ""},
	} {
		s, m := doorFacts(), begin()
		if c.facts != nil {
			c.facts(s)
		}
		if c.move != nil {
			c.move(&m)
		}
		expect(t, c.name, judge(NewDoor(s).CheckMove(&m)), c.want)
	}
}

// A machine that online borrows from offline is emptied by notice and goes back by scale-in: no pod is evicted, killed
// or fenced for its return.
func TestDoorBorrowed(t *testing.T) {
	turned := func(p fleet.Phase, clean bool) *fleet.Snapshot {
		s := doorFacts()
		s.Pools[0].ID, s.Pools[1].ID = "web", "batch"
		s.Pools[0].Class, s.Pools[1].Class = fleet.Online, fleet.Offline
		s.Nodes[0].Pool, s.Nodes[1].Pool = "batch", "batch"
		s.Loans[0].From, s.Loans[0].To, s.Loans[0].Phase = "batch", "web", p
		e := &s.Nodes[0].Share.Parcels[0]
		e.Holder, e.Next, e.Clean, e.CleanEpoch = s.Loans[0].Holder(), s.Loans[0].Next(), clean, 3
		s.Pools[0], s.Pools[1] = s.Pools[1], s.Pools[0]
		return s
	}
	online := func(s *fleet.Snapshot) { s.Pods[0].Node, s.Pods[0].NodeName = "u1", "n1" }
	left := func(s *fleet.Snapshot) { s.Pods[1].Node, s.Pods[1].NodeName = "", "" }
	for _, c := range []struct {
		name  string
		kind  planner.MoveKind
		phase fleet.Phase
		clean bool
		facts []func(*fleet.Snapshot)
		want  string
	}{
		{"lend", planner.MoveLend, fleet.Emptying, true, []func(*fleet.Snapshot){left}, ""},
		{"lend, but a pod is there", planner.MoveLend, fleet.Emptying, true, nil, "offline pod train/bert-0 is on the machine"},
		{"lend, but it asks for more", planner.MoveLend, fleet.Emptying, true, []func(*fleet.Snapshot){left, func(s *fleet.Snapshot) { s.Nodes[0].Marks.OfflineLabel = true }}, "still asks for offline pods"},
		{"lend, not clean", planner.MoveLend, fleet.Emptying, false, []func(*fleet.Snapshot){left}, "Clean report"},
		{"drain before the deadline: online has left", planner.MoveDrain, fleet.Noticed, false, []func(*fleet.Snapshot){left}, ""},
		{"drain while online is there", planner.MoveDrain, fleet.Noticed, false, []func(*fleet.Snapshot){left, online}, "online pod shop/cart-a is on the machine"},
		{"return", planner.MoveReturn, fleet.Draining, true, []func(*fleet.Snapshot){left}, ""},
		{"recall under any mode", planner.MoveRecall, fleet.Lent, false, []func(*fleet.Snapshot){func(s *fleet.Snapshot) { s.Pools[0].Mode = fleet.Observe }}, ""},
		{"fence", planner.MoveFence, fleet.Draining, false, []func(*fleet.Snapshot){func(s *fleet.Snapshot) { s.Loans[0].KillAt = doorTime }}, "nothing is forced"},
		{"write off", planner.MoveWriteOff, fleet.Fenced, false, nil, "nothing is forced"},
	} {
		s := turned(c.phase, c.clean)
		for _, f := range c.facts {
			f(s)
		}
		before := s.Loans[0]
		after := before
		after.Since, after.Deadline = doorTime, doorTime.Add(time.Minute)
		expect(t, c.name, judge(NewDoor(s).CheckMove(&planner.Move{Kind: c.kind, Before: before, After: after})), c.want)
	}
	bert := planner.PodRef{Name: fleet.Name{Namespace: "train", Name: "bert-0"}, ID: "p2"}
	for _, c := range []struct {
		phase fleet.Phase
		evict string
	}{{fleet.Emptying, ""}, {fleet.Noticed, "nobody is evicted"}, {fleet.Draining, "nobody is evicted"}} {
		s := turned(c.phase, false)
		s.Loans[0].Deadline, s.Loans[0].KillAt, s.Pods[1].AckEpoch = doorTime, doorTime, 3
		expect(t, "evict while "+string(c.phase), judge(NewDoor(s).CheckEviction(&planner.Eviction{Pod: bert, Loan: "l1"})), c.evict)
		s.Pods[1].Deleting = true
		expect(t, "kill while "+string(c.phase), judge(NewDoor(s).CheckKill(&planner.Kill{Pod: bert, Loan: "l1"})), "nobody is killed")
	}
	gone := turned(fleet.Draining, false)
	gone.Pools = slices.DeleteFunc(gone.Pools, func(p fleet.Pool) bool { return p.ID == "batch" })
	gone.Loans[0].KillAt = doorTime
	expect(t, "fence for an offline pool that is gone", judge(NewDoor(gone).CheckMove(&planner.Move{Kind: planner.MoveFence, Before: gone.Loans[0], After: gone.Loans[0]})), "nothing is forced")
	s := turned(fleet.Lent, false)
	expect(t, "open it to online", judge(NewDoor(s).CheckMark(&planner.Mark{Node: "n1", ID: "u1", Want: fleet.NodeMarks{KeepNode: true}})), "")
	s = turned(fleet.Noticed, false)
	expect(t, "open it while it goes back", judge(NewDoor(s).CheckMark(&planner.Mark{Node: "n1", ID: "u1", Want: fleet.NodeMarks{KeepNode: true}})), "the holder taint must stay")
	invite := func(notice time.Duration) planner.Move {
		l := fleet.Loan{ID: "l2", Node: "u1", NodeName: "n1", Cells: []int{0}, Kind: fleet.KindNode, From: "batch", To: "web"}.Invite(doorTime, doorTime.Add(notice), doorTime.Add(time.Hour), reason.Said("flood"))
		return planner.Move{Kind: planner.MoveBegin, Before: l, After: l}
	}
	for notice, want := range map[time.Duration]string{time.Minute: "", 5 * time.Second: "less than 15s"} {
		s := turned(fleet.Lent, false)
		s.Loans, s.Nodes[0].Share = nil, fleet.Share{}
		m := invite(notice)
		expect(t, "begin with a notice of "+notice.String(), judge(NewDoor(s).CheckMove(&m)), want)
	}
}

func TestDoorSteps(t *testing.T) {
	clean := func(s *fleet.Snapshot) {
		s.Nodes[0].Share.Parcels[0].Clean, s.Nodes[0].Share.Parcels[0].CleanEpoch = true, s.Loans[0].Epoch
	}
	phase := func(p fleet.Phase) func(*fleet.Snapshot) { return func(s *fleet.Snapshot) { s.Loans[0].Phase = p } }
	empty := func(s *fleet.Snapshot) { s.Pods[1].Node = "" }
	killed := func(s *fleet.Snapshot) {
		s.Loans[0].Phase, s.Loans[0].Deadline, s.Loans[0].KillAt = fleet.Draining, doorTime, doorTime
		s.Pods[1].Deleting = true
	}
	both := func(fs ...func(*fleet.Snapshot)) func(*fleet.Snapshot) {
		return func(s *fleet.Snapshot) {
			for _, f := range fs {
				f(s)
			}
		}
	}
	// halved makes l1 the loan of one of two sockets, and adds one of the other.
	halved := func(p fleet.Phase) func(*fleet.Snapshot) {
		return func(s *fleet.Snapshot) {
			s.Nodes[0].Cells = []fleet.Cell{{ID: 0}, {ID: 1, Socket: 1}}
			s.Loans[0].Kind = fleet.KindSocket
			other := s.Loans[0]
			other.ID, other.Cells, other.Phase = "l9", []int{1}, p
			s.Loans = append(s.Loans, other)
		}
	}
	for _, c := range []struct {
		name string
		kind planner.MoveKind
		// decided are the facts of the decision, later what changed since.
		decided, later func(*fleet.Snapshot)
		after          func(*fleet.Loan)
		want           string
	}{
		{"drain on time", planner.MoveDrain, func(s *fleet.Snapshot) { s.Loans[0].Deadline = doorTime }, nil, nil, ""},
		{"drain early, acknowledged", planner.MoveDrain, func(s *fleet.Snapshot) { s.Pods[1].AckEpoch = 3 }, nil, nil, ""},
		{"drain early", planner.MoveDrain, nil, nil, nil, "before the announced deadline"},
		{"drain, but a pod came since", planner.MoveDrain, func(s *fleet.Snapshot) { s.Pods[1].AckEpoch = 3 },
			func(s *fleet.Snapshot) {
				s.Pods = append(s.Pods, fleet.Pod{ID: "new", Node: "u1", NodeName: "n1", Class: fleet.PodOffline, Phase: fleet.PodRunning})
			}, nil, "before the announced deadline"},
		{"drain, but the deadline moved", planner.MoveDrain, func(s *fleet.Snapshot) { s.Loans[0].Deadline = doorTime },
			func(s *fleet.Snapshot) { s.Loans[0].Deadline = doorTime.Add(time.Minute) }, nil, "the deadline is"},
		{"lend", planner.MoveLend, both(phase(fleet.Emptying), clean), nil, nil, ""},
		{"lend, not clean", planner.MoveLend, phase(fleet.Emptying), nil, nil, "Clean report of this epoch"},
		{"lend, clean for an older epoch", planner.MoveLend, both(phase(fleet.Emptying), clean, func(s *fleet.Snapshot) { s.Nodes[0].Share.Parcels[0].CleanEpoch = 2 }), nil, nil, "Clean report of this epoch"},
		{"lend, but an online pod was bound", planner.MoveLend, both(phase(fleet.Emptying), clean), func(s *fleet.Snapshot) { s.Pods[0].Node = "u1" }, nil, "online pod shop/cart-a is on the machine"},
		{"lend, but the taint is not there", planner.MoveLend, both(phase(fleet.Emptying), clean), func(s *fleet.Snapshot) { s.Nodes[0].Marks.HolderTaint = false }, nil, "node n1 lacks the holder taint"},
		{"lend the last socket", planner.MoveLend, both(phase(fleet.Emptying), clean, halved(fleet.Lent)), nil, nil, ""},
		{"lend the last socket, but an online pod is there", planner.MoveLend, both(phase(fleet.Emptying), clean, halved(fleet.Lent)), func(s *fleet.Snapshot) { s.Pods[0].Node = "u1" }, nil, "online pod shop/cart-a is on the machine"},
		{"lend a socket beside which online stays", planner.MoveLend, both(phase(fleet.Emptying), clean, halved(fleet.Returned)), func(s *fleet.Snapshot) { s.Pods[0].Node = "u1" }, nil, ""},
		{"lend the last socket, but the other goes home", planner.MoveLend, both(phase(fleet.Emptying), clean, halved(fleet.Lent)), func(s *fleet.Snapshot) { s.Loans[1].Phase = fleet.Noticed }, nil, "loan l9 of the same machine is Noticed"},
		{"return", planner.MoveReturn, both(phase(fleet.Draining), clean, empty), nil, nil, ""},
		{"return, but a pod slipped in", planner.MoveReturn, both(phase(fleet.Draining), clean), nil, nil, "offline pod train/bert-0 is on the machine"},
		{"return, but another may slip in", planner.MoveReturn, both(phase(fleet.Draining), clean, empty), func(s *fleet.Snapshot) { s.Nodes[0].Marks.OfflineLabel = true }, nil, "still has the label"},
		{"return of a written-off machine", planner.MoveReturn, both(phase(fleet.WrittenOff), clean, empty), nil, nil, ""},
		{"return, not clean", planner.MoveReturn, phase(fleet.Draining), nil, nil, "without a Clean report"},
		{"recall", planner.MoveRecall, phase(fleet.Lent), nil, nil, ""},
		{"recall with too short a notice", planner.MoveRecall, phase(fleet.Lent), nil, func(l *fleet.Loan) { l.Deadline = doorTime.Add(14 * time.Second) }, "shorter than 15s"},
		{"recall in mode Observe", planner.MoveRecall, phase(fleet.Lent), func(s *fleet.Snapshot) { s.Pools[1].Mode = fleet.Observe }, nil, "mode of pool web is Observe"},
		{"recall for a pool that is gone", planner.MoveRecall, phase(fleet.Lent), func(s *fleet.Snapshot) { s.Pools, s.Nodes[0].Pool = s.Pools[:1], "" }, nil, ""},
		{"announce later", planner.MoveAnnounce, nil, nil, func(l *fleet.Loan) { l.Deadline = doorTime.Add(90 * time.Second) }, ""},
		{"announce an emergency", planner.MoveAnnounce, nil, nil, func(l *fleet.Loan) { l.Deadline = doorTime.Add(15 * time.Second) }, ""},
		{"announce the impossible", planner.MoveAnnounce, nil, nil, func(l *fleet.Loan) { l.Deadline = doorTime.Add(5 * time.Second) }, "in less than 15s"},
		{"turn back", planner.MoveTurnBack, nil, nil, nil, ""},
		{"turn back too late", planner.MoveTurnBack, nil, phase(fleet.Draining), nil, "is Draining at epoch 3 now, not Noticed at 3"},
		{"cancel", planner.MoveCancel, phase(fleet.Emptying), nil, nil, ""},
		{"fence", planner.MoveFence, killed, nil, nil, ""},
		{"fence, but a pod was never evicted", planner.MoveFence, killed, func(s *fleet.Snapshot) { s.Pods[1].Deleting = false }, nil, "was never evicted, and is waited for until"},
		{"fence, and the patience is over", planner.MoveFence, both(killed, func(s *fleet.Snapshot) {
			s.Pods[1].Deleting, s.Loans[0].Deadline = false, doorTime.Add(-fleet.DefaultPatience)
		}), nil, nil, ""},
		{"fence before the kill", planner.MoveFence, both(killed, func(s *fleet.Snapshot) { s.Loans[0].KillAt = doorTime.Add(time.Second) }), nil, nil, "cannot fence"},
		{"fence before the deadline", planner.MoveFence, both(killed, func(s *fleet.Snapshot) { s.Loans[0].Deadline = doorTime.Add(time.Second) }), nil, nil, "cannot fence"},
		{"fence without a kill", planner.MoveFence, phase(fleet.Draining), nil, nil, "cannot fence"},
		{"fence, but the kill was put off", planner.MoveFence, killed, func(s *fleet.Snapshot) { s.Loans[0].KillAt = doorTime.Add(time.Minute) }, nil, "the kill is announced for"},
		{"announce a kill", planner.MoveAnnounce, phase(fleet.Draining), nil, func(l *fleet.Loan) { l.KillAt = doorTime.Add(time.Minute) }, ""},
		{"announce a kill of now gone by", planner.MoveAnnounce, phase(fleet.Draining), nil, func(l *fleet.Loan) { l.KillAt = doorTime.Add(-time.Second) }, "cannot announce a kill"},
		{"write off", planner.MoveWriteOff, phase(fleet.Fenced), nil, nil, ""},
		{"write off before the fence", planner.MoveWriteOff, phase(fleet.Draining), nil, nil, "cannot write off"},
		{"a later epoch", planner.MoveTurnBack, nil, func(s *fleet.Snapshot) { s.Loans[0].Epoch = 4 }, nil, "at epoch 4 now"},
		{"another loan of the name", planner.MoveTurnBack, nil, func(s *fleet.Snapshot) { s.Loans[0].UID = "other" }, nil, "the loan is gone"},
		{"node gone meanwhile", planner.MoveTurnBack, nil, func(s *fleet.Snapshot) { s.Nodes = s.Nodes[1:] }, nil, "node n1 is gone"},
		{"the end of a node", planner.MoveNodeGone, func(s *fleet.Snapshot) { s.Nodes = s.Nodes[1:] }, nil, nil, ""},
		{"the end of a node that is there", planner.MoveNodeGone, nil, nil, nil, "node n1 is there"},
		{"forget", planner.MoveForget, phase(fleet.Returned), nil, nil, ""},
		{"forget too early", planner.MoveForget, nil, nil, nil, "the loan is Noticed"},
		{"repair", planner.MoveRepair, nil, nil, nil, ""},
		{"repair what is over", planner.MoveRepair, phase(fleet.Cancelled), nil, nil, "the loan is over"},
	} {
		s := doorFacts()
		if c.decided != nil {
			c.decided(s)
		}
		before := s.Loans[0]
		after := before
		after.Since = doorTime
		after.Deadline = doorTime.Add(time.Minute)
		if c.after != nil {
			c.after(&after)
		}
		if c.later != nil {
			c.later(s)
		}
		expect(t, c.name, judge(NewDoor(s).CheckMove(&planner.Move{Kind: c.kind, Before: before, After: after})), c.want)
	}
}

// A pod with a notice has the least notice from the moment of the write, however long ago the plan was made.
func TestDoorLeastNotice(t *testing.T) {
	at := func(s int) time.Time { return doorTime.Add(time.Duration(s) * time.Second) }
	borrowed := func(s *fleet.Snapshot) {
		s.Loans, s.Nodes[0].Share.Parcels, s.Nodes[0].Pool = nil, nil, "batch"
	}
	for _, c := range []struct {
		name  string
		kind  planner.MoveKind
		facts func(*fleet.Snapshot)
		to    int // the deadline, in seconds from the plan
		late  int // so many seconds after it, the move is written
		want  string
	}{
		{"emergency", planner.MoveAnnounce, nil, 30, 0, ""},
		{"emergency, at the last moment", planner.MoveAnnounce, nil, 30, 15, ""},
		{"emergency, too late", planner.MoveAnnounce, nil, 30, 16, "in less than 15s"},
		{"a heartbeat may ask for little", planner.MoveAnnounce, func(s *fleet.Snapshot) { s.Loans[0].Deadline = at(5) }, 8, 2, ""},
		{"what ran out is announced as a notice of its own", planner.MoveAnnounce, func(s *fleet.Snapshot) { s.Loans[0].Deadline = at(-60) }, 30, 16, "in less than 15s"},
		{"what ran out while draining", planner.MoveAnnounce, func(s *fleet.Snapshot) { s.Loans[0].Phase, s.Loans[0].Deadline = fleet.Draining, at(-60) }, 30, 16, "in less than 15s"},
		{"recall", planner.MoveRecall, func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Lent }, 30, 15, ""},
		{"recall, too late", planner.MoveRecall, func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Lent }, 30, 16, "shorter than 15s"},
		{"recall, with nothing left", planner.MoveRecall, func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Lent }, 15, 20, "shorter than 15s"},
		{"borrow", planner.MoveBegin, borrowed, 30, 15, ""},
		{"borrow, too late", planner.MoveBegin, borrowed, 30, 16, "less than 15s"},
		{"borrow what nobody is on", planner.MoveBegin, func(s *fleet.Snapshot) { borrowed(s); s.Pods[1].Node = "" }, 30, 60, ""},
	} {
		s := doorFacts()
		before := s.Loans[0]
		if c.facts != nil {
			c.facts(s)
		}
		if len(s.Loans) > 0 {
			before = s.Loans[0]
		} else {
			before.From, before.To = "batch", "web"
		}
		after := before
		after.Since, after.Deadline = doorTime, at(c.to)
		door := NewDoor(s).Clocked(func() time.Time { return at(c.late) })
		expect(t, c.name, judge(door.CheckMove(&planner.Move{Kind: c.kind, Before: before, After: after})), c.want)
	}
}

// TestDoorHolderChangesOnlyWhenClean: whatever a plan says, the two steps that change the holder pass only with a Clean report of the
// loan's own epoch.
func TestDoorHolderChangesOnlyWhenClean(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := doorFacts()
		l, e := &s.Loans[0], &s.Nodes[0].Share.Parcels[0]
		l.Phase = rapid.SampledFrom(fleet.Phases()).Draw(r, "phase")
		l.Epoch = rapid.Int64Range(1, 4).Draw(r, "epoch")
		e.Clean, e.CleanEpoch = rapid.Bool().Draw(r, "clean"), rapid.Int64Range(1, 4).Draw(r, "clean epoch")
		kind := rapid.SampledFrom([]planner.MoveKind{planner.MoveLend, planner.MoveReturn}).Draw(r, "kind")
		err := NewDoor(s).CheckMove(&planner.Move{Kind: kind, Before: *l, After: *l})
		if err == nil && !(e.Clean && e.CleanEpoch == l.Epoch) {
			r.Fatalf("%s passed from %s at epoch %d with clean %v for epoch %d", kind, l.Phase, l.Epoch, e.Clean, e.CleanEpoch)
		}
	})
}

// The taint is taken off a machine with a lent socket only where its pods are placed by cells, and online keeps one.
func TestTaintOfALentSocket(t *testing.T) {
	for name, c := range map[string]struct {
		by    string
		cells []int
		says  string
	}{
		"by cells": {"springtide", []int{1}, ""}, "by marks": {"", []int{1}, "the holder taint must stay"}, "by cells, all is lent": {"springtide", []int{0, 1}, "the holder taint must stay"},
	} {
		s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "batch", Class: fleet.Offline, Scheduler: c.by}, {ID: "web", Class: fleet.Online, Scheduler: c.by}},
			Nodes: []fleet.Node{{ID: "u1", Name: "n1", Pool: "web", Cells: []fleet.Cell{{ID: 0}, {ID: 1, Socket: 1}}, Marks: fleet.NodeMarks{HolderTaint: true},
				Share: fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{{Cells: c.cells, Holder: "batch", Loan: "l1", Epoch: 1}}}}},
			Loans: []fleet.Loan{{ID: "l1", Node: "u1", NodeName: "n1", From: "web", To: "batch", Cells: c.cells, Phase: fleet.Lent, Epoch: 1}}}
		expect(t, name, judge(NewDoor(s).CheckMark(&planner.Mark{Node: "n1", ID: "u1"})), c.says)
	}
}
