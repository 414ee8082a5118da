package planner

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// sockets makes two loans of a machine, one of each socket, with the share that agrees with them.
func (w *world) sockets(machine int, first, second fleet.Phase) {
	w.loan(machine, second, 2)
	n := &w.s.Nodes[machine]
	share := n.Share.Parcels[0]
	w.s.Loans = w.s.Loans[:len(w.s.Loans)-1]
	n.Share.Parcels = nil
	for i, phase := range [...]fleet.Phase{first, second} {
		w.loanOf(n, share, phase, 2*i)
		w.worker(machine, i) // that has not answered
	}
}

func (w *world) loanOf(n *fleet.Node, share fleet.ShareParcel, phase fleet.Phase, cell int) {
	l := fleet.Loan{ID: fleet.LoanID(n.Name + "-c" + string(rune('0'+cell))), UID: fleet.UID(n.Name + string(rune('0'+cell))), Kind: fleet.KindSocket, Node: n.ID, NodeName: n.Name, Cells: []int{cell, cell + 1},
		From: "online", To: "offline", Phase: phase, Epoch: 2, Created: t0.Add(-time.Hour), Since: t0.Add(-time.Minute)}
	l.Parcel, l.Capacity = fleet.MakeParcelID(n.ID, l.Cells), n.CapacityOf(l.Cells)
	if phase != fleet.Lent && phase != fleet.Emptying {
		l.FirstNotice, l.Deadline, l.Due = t0.Add(-time.Minute), t0.Add(time.Minute), t0.Add(10*time.Minute)
	}
	if phase == fleet.Emptying {
		l.Created = t0.Add(-10 * time.Minute)
	}
	share.Cells, share.Loan, share.LoanUID, share.Holder, share.Next, share.Epoch = l.Cells, l.ID, l.UID, l.Holder(), l.Next(), l.Epoch
	w.s.Loans = append(w.s.Loans, l)
	n.Share.Parcels = append(n.Share.Parcels, share)
}

// follows does what a plan says of loans, or of the first ones of them: a controller that dies leaves the rest.
func (w *world) follows(p *Plan, first int) {
	for _, m := range p.Moves[:min(first, len(p.Moves))] {
		l := w.s.Loan(m.Before.ID)
		e := w.s.Node(l.Node).Share.Find(l.ID)
		*l = m.After
		e.Holder, e.Next, e.Epoch = l.Holder(), l.Next(), l.Epoch
	}
}

func kinds(p *Plan) map[fleet.LoanID]string {
	out := map[fleet.LoanID]string{}
	for _, m := range p.Moves {
		out[m.Before.ID] = string(m.Kind) + " " + string(m.Why.Code)
	}
	return out
}

// All sockets of a machine are recalled together. A leader that died between two of their notices, or whose second write was refused, leaves the rest to the next plan,
// whatever that one thinks of the tide.
func TestTheSocketsOfAMachineAreRecalledTogether(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second fleet.Phase
		pods          int
		load          float64
		bend          func(*world)
		want          [2]string
	}{
		{"nothing is recalled", fleet.Lent, fleet.Lent, 16, 95, nil, [2]string{}},
		{"before the notices", fleet.Lent, fleet.Lent, 18, 130, nil, [2]string{"Recall Recalled", "Recall Recalled"}},
		{"between them", fleet.Noticed, fleet.Lent, 18, 105, nil, [2]string{"", "Recall Together"}},
		{"between them, the second one first", fleet.Lent, fleet.Noticed, 18, 105, nil, [2]string{"Recall Together", ""}},
		{"after them", fleet.Noticed, fleet.Noticed, 18, 105, nil, [2]string{}},
		{"the leader changed for long", fleet.Draining, fleet.Lent, 16, 95, func(w *world) { w.s.Loans[0].KillAt = t0.Add(5 * time.Minute) }, [2]string{"", "Recall Together"}},
		{"the machine is cut off", fleet.Fenced, fleet.Lent, 16, 95, nil, [2]string{"", "Recall Together"}},
		{"the first one is given up", fleet.Lent, fleet.WrittenOff, 16, 95, nil, [2]string{"Recall Together", ""}},
		{"the first one is home", fleet.Returned, fleet.Lent, 16, 95, func(w *world) { w.s.Loans[0].CleanAt = t0.Add(-time.Minute) }, [2]string{"", "Recall Together"}},
		{"the second one is home, and was for long", fleet.Lent, fleet.Returned, 16, 95, func(w *world) {
			w.s.Loans[1].Since, w.s.Loans[1].CleanAt = t0.Add(-8*time.Minute), t0.Add(-8*time.Minute)
		}, [2]string{"Recall Together", ""}},
		{"the first one was never lent", fleet.Cancelled, fleet.Lent, 16, 95, nil, [2]string{"Forget Forgotten", ""}},
		{"a leader that has watched for no window", fleet.Noticed, fleet.Lent, 16, 95, func(w *world) { w.s.WatchedSince = t0 }, [2]string{"", "Recall Together"}},
		{"the tide turned", fleet.Noticed, fleet.Lent, 4, 15, nil, [2]string{"TurnBack TideTurned", ""}},
		{"the tide turned, and one is home", fleet.Returned, fleet.Noticed, 4, 15, func(w *world) { w.s.Loans[0].CleanAt = t0.Add(-time.Minute) }, [2]string{"", ""}},
		{"the tide turned, and one drains", fleet.Draining, fleet.Noticed, 4, 15, func(w *world) { w.s.Loans[0].KillAt = t0.Add(5 * time.Minute) }, [2]string{"", ""}},
		{"one is asked for", fleet.Lent, fleet.Lent, 16, 95, func(w *world) { w.s.Loans[1].Asked = "maintenance" }, [2]string{"Recall Together", "Recall Asked"}},
		{"one is asked for, another is emptied", fleet.Emptying, fleet.Lent, 16, 95, func(w *world) {
			w.s.Pods = w.s.Pods[:len(w.s.Pods)-2]
			w.s.Loans[1].Asked = "maintenance"
			e := &w.s.Nodes[3].Share.Parcels[0]
			e.Clean, e.CleanEpoch, e.CleanAt = true, 2, t0
		}, [2]string{"Cancel TideTurned", "Recall Asked"}},
		{"a freeze", fleet.Noticed, fleet.Lent, 16, 95, func(w *world) { w.s.Frozen = "network change" }, [2]string{}},
	} {
		w := newWorld(4).service("web", c.pods, 0, 3, c.load)
		w.sockets(3, c.first, c.second)
		if c.bend != nil {
			c.bend(w)
		}
		p := made(w.input())
		got := kinds(&p)
		if a, b := got["m03-c0"], got["m03-c2"]; a != c.want[0] || b != c.want[1] {
			t.Errorf("%s: %q and %q, want %q: %s", c.name, a, b, c.want, p.Pools[0].Note)
		}
		if len(p.Unresolved()) > 0 {
			t.Errorf("%s: %+v", c.name, p.Unresolved())
		}
	}
}

// Each leader writes one move and dies. Whatever the order, both sockets are on their way home after two of them, and the tide that fell meanwhile is no reason to leave one.
func TestLeadersThatDieAfterOneNoticeEach(t *testing.T) {
	for _, machines := range []int{1, 2, 3} {
		w := newWorld(3+machines).service("web", 18, 0, 3, 130)
		for i := range machines {
			w.sockets(3+i, fleet.Lent, fleet.Lent)
		}
		p := made(w.input())
		w.follows(&p, 1)
		noticed := len(w.noticed())
		if noticed != 1 {
			t.Fatalf("%d machines: %d loans are noticed by the first leader: %+v", machines, noticed, p.Moves)
		}
		w.flat["shop/web"] = 95
		for range 2 {
			w.s.At, w.s.WatchedSince, w.s.LeaderEpoch = w.s.At.Add(time.Second), w.s.At, w.s.LeaderEpoch+1
			p = made(w.input())
			w.follows(&p, 1)
		}
		of := map[fleet.NodeID]int{}
		for _, l := range w.noticed() {
			of[l.Node]++
		}
		for id, n := range of {
			if n == 1 {
				t.Errorf("%d machines: one socket alone of machine %s goes home: %+v", machines, id, p.Moves)
			}
		}
	}
}

func (w *world) noticed() (out []*fleet.Loan) {
	for i := range w.s.Loans {
		if w.s.Loans[i].Phase == fleet.Noticed {
			out = append(out, &w.s.Loans[i])
		}
	}
	return out
}
