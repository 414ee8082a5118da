package sim

import (
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/sim/scenario"
)

// What is written twice is refused by what the write carries, or changes nothing: another pod of the same name, a size that was changed since, a
// loan that goes on. What is over by then comes back to life, and is the planner's to end.
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
	w.crew(0)
	member := w.jobs[0].members[0]
	ref := planner.PodRef{Name: w.pods[member].name, ID: w.pods[member].uid}

	before := w.services[0].desired
	c.again(&planner.Scale{Service: w.services[0].id, From: before, To: before + 1})
	c.again(&planner.Mark{Node: "node-000019", ID: "uid-000019"})
	c.again(&planner.Move{Kind: planner.MoveLend, Node: "node-000019", Before: lent, After: lent})
	c.again(&planner.Move{Kind: planner.MoveBegin, Node: "node-000019", After: lent})
	if w.services[0].desired != before || !m.toOffline || len(c.loans) != 1 || c.loans[0].Phase != fleet.Noticed {
		t.Error("a write went through whose version is of before")
	}
	c.again(&planner.JobScale{Job: w.jobs[0].id(), From: 3, To: 5})
	if c.again(&planner.JobScale{Job: w.jobs[0].id(), From: 2, To: 4}); w.jobs[0].desired != 4 {
		t.Errorf("a job's parallelism is %d: the first was of another size, the second of this one", w.jobs[0].desired)
	}

	c.again(&planner.Notice{Loan: lent.ID, Epoch: 2, Pod: ref})
	if p := &w.pods[member]; p.noticeEpoch != 2 {
		t.Error("a notice has no version: it goes through")
	}
	w.pods[member].ackEpoch = 2
	if c.again(&planner.Notice{Loan: lent.ID, Epoch: 2, Pod: ref, Again: true}); w.pods[member].ackEpoch != 2 {
		t.Error("a deadline that is told again takes the answer away")
	}
	if c.again(&planner.Notice{Loan: lent.ID, Epoch: 1, Pod: ref, Again: true}); w.pods[member].noticeEpoch != 1 || w.pods[member].ackEpoch != 2 {
		t.Error("a deadline of before is no notice of its epoch any more")
	}
	if c.again(&planner.Notice{Loan: lent.ID, Epoch: 2, Pod: ref}); w.pods[member].noticeEpoch != 2 || w.pods[member].ackEpoch != 0 {
		t.Error("a notice that is told anew keeps the answer")
	}
	c.again(&planner.Eviction{Loan: lent.ID, Pod: planner.PodRef{Name: ref.Name, ID: ref.ID + "-1"}})
	if c.again(&planner.Eviction{Loan: lent.ID, Pod: ref}); !w.pods[member].leaving || w.jobs[0].ending != 1 {
		t.Errorf("%d members are ending, want the one", w.jobs[0].ending)
	}
	ends := w.pods[member].goneAt
	w.tick++
	if c.again(&planner.Eviction{Loan: lent.ID, Pod: ref}); w.pods[member].goneAt != ends || c.err != nil {
		t.Errorf("who is ending ends at %d, not at %d: %v", w.pods[member].goneAt, ends, c.err)
	}

	filler := planner.Filler{Name: "hold-1", Node: "node-000018", Room: coresRequest(1)}
	for _, id := range append([]int32{}, w.machines[18].pods...) {
		w.vanish(id)
	}
	c.again(&filler)
	if c.again(&filler); w.machines[18].filled != 1 {
		t.Errorf("fillers hold %d cores, want the one", w.machines[18].filled)
	}

	c.loans = nil
	c.again(&planner.Move{Kind: planner.MoveBegin, Node: "node-000019", After: lent})
	if len(c.loans) != 1 || c.loans[0].Phase != fleet.Emptying || c.loans[0].Epoch != 1 || !c.loans[0].Deadline.IsZero() {
		t.Errorf("a loan that is over is made anew, without its status: %+v", c.loans)
	}
}

// Writes come again within their time, each once, and only while they are said to.
func TestEchoes(t *testing.T) {
	b := troubled(1, 1, scenario.Faults{List: []scenario.Fault{{Kind: scenario.DeliveredTwice, For: config.Duration(time.Hour), Share: 1}}})
	w := NewWorld(b, NewRates(b))
	w.faults = drawFaults(b)
	c := newController(w, controllerOptions{Lends: true}, nil)
	w.jobs[0].desired = 1
	act := &planner.JobScale{Job: w.jobs[0].id(), From: 1, To: 3}
	if c.repeats(act); len(c.echoes) != 0 {
		t.Error("the fault has not begun")
	}
	for w.tick = w.scored; w.tick < w.scored+100; w.tick++ {
		c.repeats(act)
	}
	if len(c.echoes) != 100 {
		t.Errorf("%d of 100 come again", len(c.echoes))
	}
	for _, e := range c.echoes {
		if d := e.at - w.scored; d < 1 || d > 100+ticks(echoWithin) {
			t.Errorf("one comes %d ticks later", d)
		}
	}
	if w.tick = w.scored; len(c.echoes) == 100 {
		c.hear()
	}
	if w.jobs[0].desired != 1 || len(c.echoes) != 100 {
		t.Error("one came before its time")
	}
	w.tick += 100 + ticks(echoWithin)
	if c.hear(); w.jobs[0].desired != 3 || len(c.echoes) != 0 {
		t.Error("they did not come")
	}
}
