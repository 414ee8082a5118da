package protocol

import (
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/quota"
)

// A plan is made from facts that lag: what the plan before it raised is not in them. The tenant may request 10 cores.
func TestDoorRaise(t *testing.T) {
	core := fleet.Resources{CPU: 1000}
	for _, c := range []struct {
		name  string
		facts func(cart, pay *fleet.Service, s *fleet.Snapshot)
		to    int32
		want  string
	}{
		{"as the plan saw it", nil, 6, ""},
		{"another grew", func(_, pay *fleet.Service, _ *fleet.Snapshot) { pay.Desired.Value = 5 }, 6, "service shop/pay has 5 replicas, more than the plan knew"},
		{"another grew, and there is room", func(_, pay *fleet.Service, _ *fleet.Snapshot) { pay.Desired.Value = 5 }, 5, ""},
		{"another grew by what the plan asked", func(_, pay *fleet.Service, _ *fleet.Snapshot) { pay.Desired.Value = 4 }, 6, ""},
		{"another shrank", func(_, pay *fleet.Service, _ *fleet.Snapshot) { pay.Desired.Value = 1 }, 6, ""},
		{"another's replicas are not known", func(_, pay *fleet.Service, _ *fleet.Snapshot) { pay.Desired = fleet.Known[int32]{} }, 6, ""},
		{"one of another tenant grew", func(_, pay *fleet.Service, _ *fleet.Snapshot) { pay.Desired.Value, pay.Target.Namespace = 9, "ads" }, 6, ""},
		{"pods of no service use the room", func(_, pay *fleet.Service, s *fleet.Snapshot) {
			pay.Desired.Value = 5
			s.Pods = append(s.Pods, fleet.Pod{ID: "x", Name: fleet.Name{Namespace: "shop", Name: "x"}, Class: fleet.PodOnline, NodeName: "n2", Requests: core, Phase: fleet.PodRunning})
		}, 5, "lets its tenant request cpu=10, not cpu=11"},
		{"the minimum is never refused", func(cart, pay *fleet.Service, _ *fleet.Snapshot) { pay.Desired.Value, cart.Min = 9, 6 }, 6, ""},
		{"nobody's namespace", func(_, pay *fleet.Service, s *fleet.Snapshot) { pay.Desired.Value, s.Tenants = 9, nil }, 6, ""},
		{"and the rest of a scale's door", func(cart, _ *fleet.Service, _ *fleet.Snapshot) { cart.Desired.Value = 4 }, 6, "replicas are 4 now, not 3"},
	} {
		s := doorFacts()
		s.Tenants = []fleet.Tenant{{ID: "shop", Accepted: true, Namespaces: []string{"shop"}}}
		pay := s.Services[0]
		pay.ID, pay.Target.Name, pay.Desired = "shop/pay", "pay", fleet.KnownAt(int32(4), doorTime)
		s.Services = append(s.Services, pay)
		for i := range s.Services {
			s.Services[i].Request = core
		}
		a := planner.Scale{Service: "shop/cart", Target: s.Services[0].Target, Kind: "Deployment", By: fleet.ByScale, From: 3, To: c.to}
		p := &planner.Plan{LeaderEpoch: 4, Raises: []planner.Scale{a},
			Targets:  []hpa.Target{{Service: "shop/cart", Current: 3, Replicas: c.to}, {Service: "shop/pay", Current: 3, Replicas: 4}},
			Division: quota.Division{Shares: []quota.Share{{Tenant: "shop", Limit: core.Times(10)}}}}
		if c.facts != nil {
			c.facts(&s.Services[0], &s.Services[1], s)
		}
		session := New(p, s)
		for a := range p.Actions() {
			expect(t, c.name, judge(session.Check(a)), c.want)
		}
	}
}
