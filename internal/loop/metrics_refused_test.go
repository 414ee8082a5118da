package loop

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/planner"
)

// A refusal is counted by its reason, and is no service without fresh data.
func TestRefusedObjectsAreShown(t *testing.T) {
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	s := &fleet.Snapshot{
		Services: []fleet.Service{{ID: "shop/cart", Blocked: fleet.Problem{Reason: "Conflicted", Message: "another one has it"}}, {ID: "shop/till"}},
		Pools:    []fleet.Pool{{ID: "web", Refused: fleet.Problem{Reason: "PoolsOverlap", Message: "so it is"}}, {ID: "batch"}},
		Tenants:  []fleet.Tenant{{ID: "a", Refused: fleet.Problem{Reason: "ParentCycle", Message: "so it is"}}},
		Jobs:     []fleet.Job{{ID: "ml/train", Blocked: fleet.Problem{Reason: "WorkloadNotFound", Message: "there is none"}}},
	}
	plan := &planner.Plan{Targets: []hpa.Target{{Service: "shop/cart"}, {Service: "shop/till"}}}
	m.observe(s, plan, &Receipt{}, nil, nil, nil, newTimer(func() {}), nil, nil)
	want := `# HELP springtide_object_refused 1 for each object that is not accepted, so that nothing is done for it. Its condition Accepted says why.
# TYPE springtide_object_refused gauge
springtide_object_refused{kind="CapacityPool",name="web",namespace="",reason="PoolsOverlap"} 1
springtide_object_refused{kind="CapacityQuota",name="a",namespace="",reason="ParentCycle"} 1
springtide_object_refused{kind="ElasticJob",name="train",namespace="ml",reason="WorkloadNotFound"} 1
springtide_object_refused{kind="ElasticService",name="cart",namespace="shop",reason="Conflicted"} 1
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "springtide_object_refused"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(r, "springtide_service_data_fresh"); n != 1 || err != nil {
		t.Errorf("%d services have data that is fresh or not, want the one that is accepted (%v)", n, err)
	}
}

// An accepted object whose size is in others' hands is shown once, with the first reason that holds. One that is only observed, or is refused, is not.
func TestHeldObjectsAreShown(t *testing.T) {
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	at := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	fight := fleet.Takeovers{By: "argocd-controller", Count: 3, Last: at}
	s := &fleet.Snapshot{At: at,
		Services: []fleet.Service{{ID: "shop/cart", Mode: fleet.Auto, ForeignWriter: "argocd-controller", Takeovers: fight, PodsRefused: "exceeded quota"}, {ID: "shop/till", Mode: fleet.Auto, PodsRefused: "exceeded quota"},
			{ID: "shop/off", Mode: fleet.Auto, SetToZero: "kubectl"}, {ID: "shop/seen", Mode: fleet.Observe, PodsRefused: "exceeded quota"}, {ID: "shop/none", Mode: fleet.Auto, Blocked: fleet.Problem{Reason: "Conflicted", Message: "x"}, PodsRefused: "exceeded quota"}},
		Jobs: []fleet.Job{{ID: "ml/train", Members: []fleet.Member{{Role: "a"}, {Role: "b", PodsRefused: "exceeded quota"}}}, {ID: "ml/none", Blocked: fleet.Problem{Reason: "WorkloadNotFound", Message: "x"}}},
	}
	plan := &planner.Plan{Targets: make([]hpa.Target, len(s.Services))}
	for i := range s.Services {
		plan.Targets[i].Service = s.Services[i].ID
	}
	m.observe(s, plan, &Receipt{}, nil, nil, nil, newTimer(func() {}), nil, nil)
	want := `# HELP springtide_object_held 1 for each accepted service or job whose size cannot be what is decided, for what others do: Contested, PodsRefused, SetToZero. Its condition AbleToScale says who, and what to do.
# TYPE springtide_object_held gauge
springtide_object_held{kind="ElasticJob",name="train",namespace="ml",reason="PodsRefused"} 1
springtide_object_held{kind="ElasticService",name="cart",namespace="shop",reason="Contested"} 1
springtide_object_held{kind="ElasticService",name="off",namespace="shop",reason="SetToZero"} 1
springtide_object_held{kind="ElasticService",name="till",namespace="shop",reason="PodsRefused"} 1
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "springtide_object_held"); err != nil {
		t.Error(err)
	}
}
