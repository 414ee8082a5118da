package sim

import (
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/sim/scenario"
)

// A repeated write is refused by its preconditions, or changes nothing: another pod of the same name, a size that was
// changed since, a loan that goes on. A finished object comes back to life, and is the planner's to end.
func TestWhatComesAgain(t *testing.T) {
	b := troubled(1, 1, scenario.Faults{})
	w := NewWorld(b, NewRates(b))
	c := newController(w, controllerOptions{Lends: true}, nil)
	c.cancel = func() {}
	lent := fleet.Loan{ID: "node-000019-c0", UID: "uid-node-000019-c0", Kind: fleet.KindNode, Node: "uid-000019", NodeName: "node-000019", Cells: []int{0, 1}, From: onlinePool,
		To: offlinePool, Phase: fleet.Noticed, Epoch: 2, Deadline: w.now}
	c.loans = []fleet.Loan{lent}
	m := &w.machines[19]
	m.toOnline, m.toOffline, m.away = false, true, w.rooms.cells
	w.open(19)
	w.jobs[0].desired = 2
	w.refill(0)
	member := w.jobs[0].members[0]
	ref := planner.PodRef{Name: w.pods[member].name, ID: w.pods[member].uid}

	// again delivers a write as it was when it was made.
	again := func(x protocol.Write) {
		c.redelivering = true
		c.api.Do(&x)
	}
	named := func(kind protocol.ObjectKind, name string) protocol.Object {
		return protocol.Object{Kind: kind, Name: name}
	}
	size := func(n int32) protocol.Precondition { return protocol.Precondition{Size: fleet.KnownAt(n, w.now)} }
	before := w.services[0].desired
	scale := &planner.Scale{Service: w.services[0].id, From: before - 1, To: before}
	again(protocol.Write{Action: scale, Object: named(protocol.ObjectService, string(w.services[0].id)), If: size(before - 1), Change: protocol.SetSize{From: before - 1, To: before}})
	again(protocol.Write{Object: named(protocol.ObjectLoan, string(lent.ID)), If: protocol.Precondition{UID: lent.UID, Version: "old"}, Change: protocol.SetLoan{Loan: &lent}})
	again(protocol.Write{Object: named(protocol.ObjectLoan, string(lent.ID)), If: protocol.Precondition{Absent: true}, Change: protocol.CreateLoan{Loan: &lent}})
	if w.services[0].desired != before || !m.toOffline || len(c.loans) != 1 || c.loans[0].Phase != fleet.Noticed {
		t.Error("a write went through whose version is of before")
	}
	member0 := named(protocol.ObjectJobMember, string(w.jobs[0].id())+"/"+role)
	again(protocol.Write{Object: member0, If: size(3), Change: protocol.SetParallelism{From: 3, To: 5}})
	if again(protocol.Write{Object: member0, If: size(2), Change: protocol.SetParallelism{From: 2, To: 4}}); w.jobs[0].desired != 4 {
		t.Errorf("a job's parallelism is %d: the first was of another size, the second of this one", w.jobs[0].desired)
	}

	onPod := func(uid fleet.UID, change protocol.Change, a planner.Action) protocol.Write {
		return protocol.Write{Action: a, Object: named(protocol.ObjectPod, ref.Name.String()), If: protocol.Precondition{UID: uid}, Change: change}
	}
	notice := func(epoch int64, known bool) {
		again(onPod(ref.ID, protocol.SetNotice{Loan: lent.ID, Epoch: epoch, Again: known}, nil))
	}
	if notice(2, false); w.pods[member].noticeEpoch != 2 {
		t.Error("a notice has no version: it goes through")
	}
	w.pods[member].ackEpoch = 2
	if notice(2, true); w.pods[member].ackEpoch != 2 {
		t.Error("a deadline that is announced again takes the answer away")
	}
	if notice(1, true); w.pods[member].noticeEpoch != 1 || w.pods[member].ackEpoch != 2 {
		t.Error("a deadline of before is no notice of its epoch any more")
	}
	if notice(2, false); w.pods[member].noticeEpoch != 2 || w.pods[member].ackEpoch != 0 {
		t.Error("a new notice keeps the answer")
	}
	evict := &planner.Eviction{Loan: lent.ID, Pod: ref}
	again(onPod(ref.ID+"-1", protocol.EvictPod{}, evict))
	if again(onPod(ref.ID, protocol.EvictPod{}, evict)); !w.pods[member].leaving || w.jobs[0].ending != 1 {
		t.Errorf("%d members are ending, want the one", w.jobs[0].ending)
	}
	ends := w.pods[member].goneAt
	w.tick++
	if again(onPod(ref.ID, protocol.EvictPod{}, evict)); w.pods[member].goneAt != ends || c.err != nil {
		t.Errorf("who is ending ends at %d, not at %d: %v", w.pods[member].goneAt, ends, c.err)
	}

	filler := protocol.Write{Object: named(protocol.ObjectFiller, "hold-1"), If: protocol.Precondition{Absent: true},
		Change: protocol.CreateFiller{Filler: &planner.Filler{Name: "hold-1", Node: "node-000018", Room: coresRequest(1)}}}
	for _, id := range append([]int32{}, w.machines[18].pods...) {
		w.vanish(id)
	}
	again(filler)
	if again(filler); w.machines[18].filled != 1 {
		t.Errorf("fillers hold %d cores, want the one", w.machines[18].filled)
	}

	c.loans = nil
	again(protocol.Write{Object: named(protocol.ObjectLoan, string(lent.ID)), If: protocol.Precondition{Absent: true}, Change: protocol.CreateLoan{Loan: &lent}})
	if len(c.loans) != 1 || c.loans[0].Phase != fleet.Emptying || c.loans[0].Epoch != 1 || !c.loans[0].Deadline.IsZero() {
		t.Errorf("a loan that is over is made again, without its status: %+v", c.loans)
	}
}

// Writes come again within their time, each once, and only while they are said to.
func TestRedeliveries(t *testing.T) {
	b := troubled(1, 1, scenario.Faults{List: []scenario.Fault{{Kind: scenario.DeliveredTwice, For: config.Duration(time.Hour), Share: 1}}})
	w := NewWorld(b, NewRates(b))
	w.faults = drawFaults(b)
	c := newController(w, controllerOptions{Lends: true}, nil)
	w.jobs[0].desired = 1
	act := &protocol.Write{Object: protocol.Object{Kind: protocol.ObjectJobMember, Name: string(w.jobs[0].id()) + "/" + role},
		If: protocol.Precondition{Size: fleet.KnownAt(int32(1), w.now)}, Change: protocol.SetParallelism{From: 1, To: 3}}
	if c.repeats(act); len(c.redeliveries) != 0 {
		t.Error("the fault has not begun")
	}
	for w.tick = w.scored; w.tick < w.scored+100; w.tick++ {
		c.repeats(act)
	}
	if len(c.redeliveries) != 100 {
		t.Errorf("%d of 100 come again", len(c.redeliveries))
	}
	for _, e := range c.redeliveries {
		if d := e.at - w.scored; d < 1 || d > 100+ticks(redeliveredWithin) {
			t.Errorf("one comes %d ticks later", d)
		}
	}
	if w.tick = w.scored; len(c.redeliveries) == 100 {
		c.redeliver()
	}
	if w.jobs[0].desired != 1 || len(c.redeliveries) != 100 {
		t.Error("one came before its time")
	}
	w.tick += 100 + ticks(redeliveredWithin)
	if c.redeliver(); w.jobs[0].desired != 3 || len(c.redeliveries) != 0 {
		t.Error("they did not come")
	}
}

// The patch of a node carries the version that was read: once it was delivered, it is refused when it comes again, and the marks are another's to write.
func TestMarksDoNotComeAgain(t *testing.T) {
	b := troubled(1, 1, scenario.Faults{})
	w := NewWorld(b, NewRates(b))
	c := newController(w, controllerOptions{Lends: true}, nil)
	marks := &protocol.Write{Object: protocol.Object{Kind: protocol.ObjectNode, Name: w.facts[19].Name}, If: protocol.Precondition{UID: fleet.UID(w.facts[19].ID), LeaderEpoch: 1},
		Change: protocol.SetMarks{Want: fleet.NodeMarks{HolderTaint: true}}}
	request := c.sent(marks)
	for i, want := range []protocol.Answered{protocol.Taken, protocol.Conflict} {
		if a := c.api.Do(request); a.How != want {
			t.Errorf("delivery %d: %v (%v), want %v", i, a.How, a.Err, want)
		}
	}
	if a := c.api.Do(c.sent(marks)); a.How != protocol.Taken {
		t.Errorf("a request of its own: %v", a.Err)
	}
}
