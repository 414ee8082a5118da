package sim

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/sim/scenario"
)

// A former leader's write happens where its preconditions hold, and nowhere else.
func TestRequestsThatOutliveTheirLeader(t *testing.T) {
	b := troubled(1, 1, scenario.Faults{})
	w := NewWorld(b, NewRates(b))
	c := newController(w, controllerOptions{Lends: true}, nil)
	c.cancel = func() {}
	c.epoch = 1
	lent := func(node string, id fleet.NodeID) fleet.Loan {
		return fleet.Loan{ID: fleet.LoanID(node + "-c0"), UID: "uid-" + fleet.UID(node), Version: c.api.Version(), Kind: fleet.KindNode, Node: id, NodeName: node, Cells: []int{0, 1},
			From: onlinePool, To: offlinePool, Phase: fleet.Emptying, Epoch: 1}
	}
	c.loans = []fleet.Loan{lent("node-000018", "uid-000018"), lent("node-000019", "uid-000019")}
	for i := range c.loans {
		n, _ := c.machineOf(c.loans[i].NodeName)
		w.facts[n].Share = fleet.Share{Exists: true, Version: c.api.Version(), Parcels: []fleet.ShareParcel{{Cells: []int{0, 1}, Loan: c.loans[i].ID, LoanUID: c.loans[i].UID, Epoch: 1}}}
	}
	w.jobs[0].desired = 2
	size := [2]int32{w.services[0].desired, w.services[1].desired}
	cancel := func(l fleet.Loan) planner.Move {
		after := l
		after.Phase, after.Epoch = fleet.Cancelled, 2
		return planner.Move{Kind: planner.MoveCancel, Node: l.NodeName, Before: l, After: after}
	}
	s := detached(c.snapshot())
	s.LeaderEpoch = 1
	p := &planner.Plan{LeaderEpoch: 1,
		Moves: []planner.Move{cancel(c.loans[0]), cancel(c.loans[1])},
		Jobs:  []planner.JobScale{{Job: w.jobs[0].id(), Role: role, Workload: s.Jobs[0].Members[0].Workload, Kind: s.Jobs[0].Members[0].Kind, From: 2, To: 3}},
	}
	for i := range w.services {
		s := &c.services[i]
		p.Raises = append(p.Raises, planner.Scale{Service: s.ID, Target: s.Target, Kind: s.TargetKind, By: fleet.ByScale, From: size[i], To: size[i] + 1})
	}
	c.last = newLastPlan(p, s)
	c.last.first = 1

	c.epoch = 2
	c.arrive() // the first request; then the next leader writes
	if c.loans[0].Phase != fleet.Cancelled || c.last.left != 4 {
		t.Fatalf("loan %s is %s, and %d requests are left", c.loans[0].ID, c.loans[0].Phase, c.last.left)
	}
	w.services[1].desired += 5
	n, _ := c.machineOf("node-000019")
	w.facts[n].Share.Parcels[0].Epoch, w.facts[n].Share.Version = 2, c.api.Version()
	c.arrive()
	if c.err != nil || c.last != nil {
		t.Fatalf("%v, %v", c.err, c.last)
	}
	if w.jobs[0].desired != 3 || w.services[0].desired != size[0]+1 {
		t.Errorf("nobody changed these, and the job is of %d, the service of %d", w.jobs[0].desired, w.services[0].desired)
	}
	if c.loans[1].Phase != fleet.Emptying || w.services[1].desired != size[1]+5 {
		t.Errorf("the next leader wrote these first, and loan %s is %s, service %d", c.loans[1].ID, c.loans[1].Phase, w.services[1].desired)
	}
}

// A new leader that stamps in time is safe from all that the one before asks of services, pools and loans that move,
// although no other client changed them; the judge knows what is stamped.
func TestStampsKeepTheLeaderBeforeOut(t *testing.T) {
	b := troubled(1, 1, scenario.Faults{})
	for _, stamps := range []bool{false, true} {
		w := NewWorld(b, NewRates(b))
		c := newController(w, controllerOptions{Lends: true}, nil)
		c.cancel, c.epoch = func() {}, 1
		size := w.services[0].desired
		s := detached(c.snapshot())
		s.LeaderEpoch = 1
		svc := &c.services[0]
		c.last = newLastPlan(&planner.Plan{LeaderEpoch: 1, Raises: []planner.Scale{{Service: svc.ID, Target: svc.Target, Kind: svc.TargetKind, By: fleet.ByScale, From: size, To: size + 1}}}, s)
		c.epoch = 2
		for stamps && c.stamped == nil {
			c.stamp() // by a draw
		}
		c.last.first = c.last.left
		c.arrive()
		want := size + 1
		if stamps {
			want = size
		}
		if w.services[0].desired != want || c.err != nil {
			t.Errorf("stamped %v: the service has %d replicas, want %d; %v", stamps, w.services[0].desired, want, c.err)
		}
		if !stamps {
			continue
		}
		c.late = &lastPlan{plan: &planner.Plan{LeaderEpoch: 1}}
		c.checkStamp(&protocol.Write{Object: protocol.Object{Kind: protocol.ObjectPool, Name: string(onlinePool)}})
		if c.err == nil {
			t.Error("the judge lets a change of a stamped pool pass")
		}
	}
}

// While leaders flap the fleet has two writers: some of what the old one asks for happens, some is refused.
func TestLeadersFlap(t *testing.T) {
	long(t)
	b := troubled(3, 3, scenario.Faults{Quiet: config.Duration(time.Hour), List: []scenario.Fault{
		{Kind: scenario.LeaderFlapping, After: config.Duration(time.Minute), For: config.Duration(100 * time.Minute)},
		{Kind: scenario.FlashCrowd, After: config.Duration(30 * time.Minute), For: config.Duration(30 * time.Minute), Share: 1, Factor: 3}}})
	var lines bytes.Buffer
	prepared(t, b, whole, func(w *World, _ *Past) { w.log = slog.NewTextHandler(&lines, nil) })
	tally := map[string]int{}
	for line := range strings.Lines(lines.String()) {
		if strings.Contains(line, "leader before") {
			f := strings.Fields(line)
			i := slices.IndexFunc(f, func(s string) bool { return strings.HasPrefix(s, "outcome=") })
			tally[f[i]]++
		}
	}
	if tally["outcome="+string(loop.Done)] == 0 || tally["outcome="+string(loop.Stale)] == 0 {
		t.Errorf("requests of leaders that were succeeded: %v\n%s", tally, lines.String())
	}
}
