package fleet

import (
	"maps"
	"testing"
)

// A pool of machines in every state that a loan brings them to, each of 10 cores with an online pod of 2, one of no service of 1 and a DaemonSet's of 1.
func TestOccupancy(t *testing.T) {
	cores := func(n int64) Resources { return Resources{CPU: MilliCPU(n * 1000)} }
	s := &Snapshot{Pools: []Pool{{ID: "offline", Class: Offline}, {ID: "online", Class: Online}}}
	machine := func(id NodeID, pool PoolID, ready bool) *Node {
		s.Nodes = append(s.Nodes, Node{ID: id, Name: string(id), Pool: pool, Ready: ready, Allocatable: Resources{CPU: 10_000, Memory: 10 * GiB, GPU: 2, Pods: 10}})
		for _, p := range []Pod{
			{Class: PodOnline, Service: "web", Requests: cores(2)}, {Class: PodOnline, Requests: cores(1)}, {Class: PodSystem, Requests: cores(1)},
			{Class: PodOnline, Service: "web", Requests: cores(5), Phase: PodSucceeded},
		} {
			p.Name, p.Node, p.NodeName = Name{"ns", string(id)}, id, string(id)
			s.Pods = append(s.Pods, p)
		}
		return &s.Nodes[len(s.Nodes)-1]
	}
	loan := func(node NodeID, from, to PoolID, phase Phase) {
		s.Loans = append(s.Loans, Loan{ID: LoanID(node), Node: node, From: from, To: to, Phase: phase, Kind: KindNode})
	}
	for _, x := range []struct {
		id    NodeID
		phase Phase
		ready bool
	}{{"a-home", "", true}, {"b-cancelled", Cancelled, true}, {"c-emptying", Emptying, true}, {"d-lent", Lent, true}, {"e-noticed", Noticed, true},
		{"f-draining", Draining, false}, {"g-fenced", Fenced, true}, {"h-returned", Returned, true}} {
		machine(x.id, "online", x.ready)
		if x.phase != "" {
			loan(x.id, "online", "offline", x.phase)
		}
	}
	machine("i-leaves", "online", true).Leaving = "a drain"
	loan("i-leaves", "online", "offline", Draining)
	for _, x := range []struct {
		id    NodeID
		phase Phase
		ready bool
	}{{"o-home", "", true}, {"p-out", Emptying, true}, {"q-borrowed", Lent, true}, {"r-back", Noticed, true}, {"s-lost", Lent, false}} {
		machine(x.id, "offline", x.ready)
		if x.phase != "" {
			loan(x.id, "offline", "online", x.phase)
		}
	}
	machine("t-repels", "offline", true).Repels = []PoolID{"online"}
	loan("t-repels", "offline", "online", Lent)
	machine("z-none", "", true)
	loan("gone", "online", "offline", Lent)
	s.Pods = append(s.Pods, Pod{Name: Name{"ns", "z"}, Node: "d-lent", NodeName: "d-lent", Class: PodOffline, Requests: cores(3)})
	s.Sort()
	o := OccupancyOf(s)
	online, offline := o.Pool("online"), o.Pool("offline")

	for name, c := range map[string]struct{ got, want Resources }{
		// a, b and h whole, of c, d, e, g and i what is asked; of q all, of r and t what is asked.
		"usable": {online.Usable, Resources{CPU: 3*10_000 + 5*4_000 + 10_000 + 2*4_000, Memory: 4 * 10 * GiB, GPU: 8, Pods: 3*10 + 5*3 + 10 + 2*3}},
		// e, and p whole: f is not ready, and i does not last.
		"coming":   {online.Coming, Resources{CPU: 6_000 + 10_000, Memory: 2 * 10 * GiB, GPU: 4, Pods: 7 + 10}},
		"capacity": {online.Capacity, Resources{CPU: 7*10_000 + 4_000, Memory: 7 * 10 * GiB, GPU: 14, Pods: 7*10 + 3}},
		"holds":    {online.Holds, Resources{CPU: 9 * 10_000, Memory: 9 * 10 * GiB, GPU: 18, Pods: 90}},
		"ready":    {online.Ready, Resources{CPU: 8 * 10_000, Memory: 8 * 10 * GiB, GPU: 16, Pods: 80}},
		"lasting":  {online.Lasting, Resources{CPU: 7 * 10_000, Memory: 7 * 10 * GiB, GPU: 14, Pods: 70}},
		// nine of its own, and q, r, s and t.
		"asked":         {online.Asked, Resources{CPU: 13 * 4_000, Pods: 13 * 3}},
		"other":         {online.Other, Resources{CPU: 13 * 2_000, Pods: 13 * 2}},
		"above":         {online.Above(0.5), Resources{CPU: 68_000 - 37_000, Memory: 5 * GiB}},
		"of offline":    {offline.Holds, Resources{CPU: 6 * 10_000, Memory: 6 * 10 * GiB, GPU: 12, Pods: 60}},
		"free at home":  {o.On("a-home").Free(), Resources{CPU: 6_000, Memory: 10 * GiB, GPU: 2, Pods: 7}},
		"free and lent": {o.On("d-lent").Free(), Resources{CPU: 3_000, Memory: 10 * GiB, GPU: 2, Pods: 6}},
		"comes of it":   {o.On("d-lent").Coming(), Resources{CPU: 6_000, Memory: 10 * GiB, GPU: 2, Pods: 7}},
		"for services":  {o.On("d-lent").ForServices(), Resources{CPU: 8_000, Memory: 10 * GiB, Pods: 8}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", name, c.got, c.want)
		}
	}
	if online.Machines != 9 || !maps.Equal(online.Rooms, map[Resources]int64{{CPU: 8_000, Memory: 10 * GiB, Pods: 8}: 9}) || len(online.Borrowed) != 5 {
		t.Errorf("%d machines, rooms %v, %d borrowed", online.Machines, online.Rooms, len(online.Borrowed))
	}
	if len(online.Kinds) != 1 || online.Kinds[0].Each != 9 || online.Kinds[0].Lasting != 7 {
		t.Errorf("kinds %+v", online.Kinds)
	}
	alone := map[NodeID]bool{"a-home": true, "b-cancelled": true, "h-returned": true, "q-borrowed": true, "s-lost": true, "t-repels": true}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if got := o.On(n.ID).OnlineAlone(s.ClassOf(n.Pool)); got != alone[n.ID] {
			t.Errorf("%s is online's alone: %t", n.ID, got)
		}
	}
	if m := o.On("gone"); m.Node != nil || len(m.Loans) != 1 || m.Moves.Live != 1 {
		t.Errorf("a machine that a loan alone names: %+v", m)
	}
	if m := o.On("nothing"); m.Node != nil || m.Moves != (Moves{}) {
		t.Errorf("a machine that nothing names: %+v", m)
	}
}

// Moves of one machine: what is emptied alone, and what its borrower must leave.
func TestMoves(t *testing.T) {
	for name, c := range map[string]struct {
		phases         []Phase
		alone, leaving bool
	}{
		"none":                 {nil, false, false},
		"emptied":              {[]Phase{Emptying}, true, false},
		"emptied and lent":     {[]Phase{Emptying, Lent}, false, false},
		"two emptied, one not": {[]Phase{Emptying, Emptying, Cancelled}, true, false},
		"recalled":             {[]Phase{Noticed, Lent}, false, true},
		"written off":          {[]Phase{WrittenOff}, false, true},
		"returned":             {[]Phase{Returned}, false, false},
	} {
		s := &Snapshot{Pools: []Pool{{ID: "offline", Class: Offline}, {ID: "online", Class: Online}}, Nodes: []Node{{ID: "n", Pool: "online"}}}
		for i, p := range c.phases {
			s.Loans = append(s.Loans, Loan{ID: LoanID(rune('a' + i)), Node: "n", From: "online", To: "offline", Phase: p})
		}
		m := OccupancyOf(s).On("n").Moves
		if m.EmptyingAlone() != c.alone || m.Leaving() != c.leaving {
			t.Errorf("%s: emptying alone %t, leaving %t", name, m.EmptyingAlone(), m.Leaving())
		}
	}
}
