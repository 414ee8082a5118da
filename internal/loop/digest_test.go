package loop

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

func TestDigest(t *testing.T) {
	facts := func() *fleet.Snapshot {
		return &fleet.Snapshot{At: time.Unix(1_780_000_000, 0), LeaderEpoch: 3,
			Nodes:    []fleet.Node{{ID: "m1", Pool: "online", Ready: true}},
			Pods:     []fleet.Pod{{ID: "u1", Version: "1"}},
			Services: []fleet.Service{{ID: "shop/web", Desired: fleet.KnownAt[int32](300, time.Unix(1, 0))}},
			Loans:    []fleet.Loan{{ID: "l1"}}, Pools: []fleet.Pool{{ID: "online"}}, Orphans: []fleet.AdoptedHPA{{ID: "h1"}},
			Jobs: []fleet.Job{{ID: "ml/train", Members: []fleet.Member{{Role: "worker", Desired: 4}}}}}
	}
	want := digest(facts())
	if len(want) != 32 || digest(facts()) != want {
		t.Errorf("equal facts have the digests %s and %s", want, digest(facts()))
	}
	for name, change := range map[string]func(s *fleet.Snapshot){
		"the time":          func(s *fleet.Snapshot) { s.At = s.At.Add(1) },
		"the leader":        func(s *fleet.Snapshot) { s.LeaderEpoch++ },
		"a freeze":          func(s *fleet.Snapshot) { s.Frozen = "upgrade" },
		"a machine's state": func(s *fleet.Snapshot) { s.Nodes[0].Ready = false },
		"a machine's mark":  func(s *fleet.Snapshot) { s.Nodes[0].Marks.Fence = fleet.FenceExecute },
		"a machine's home":  func(s *fleet.Snapshot) { s.Nodes[0].Marks.HomeLabel = true },
		"a share":           func(s *fleet.Snapshot) { s.Nodes[0].Share.Version = "2" },
		"a pod":             func(s *fleet.Snapshot) { s.Pods[0].Version = "2" },
		"a service":         func(s *fleet.Snapshot) { s.Services[0].Desired.Value++ },
		"what is not known": func(s *fleet.Snapshot) { s.Services[0].Desired.OK = false },
		"a loan":            func(s *fleet.Snapshot) { s.Loans[0].Version = "2" },
		"a pool":            func(s *fleet.Snapshot) { s.Pools[0].Version = "2" },
		"an orphan":         func(s *fleet.Snapshot) { s.Orphans[0].Version = "2" },
		"a job":             func(s *fleet.Snapshot) { s.Jobs[0].Members[0].Active++ },
		"many more pods":    func(s *fleet.Snapshot) { s.Pods = make([]fleet.Pod, 20_000) },
	} {
		s := facts()
		if change(s); digest(s) == want {
			t.Errorf("the digest does not tell %s", name)
		}
	}
}
