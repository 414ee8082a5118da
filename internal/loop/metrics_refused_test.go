package loop

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/planner"
)

// What is refused is counted by its reason, and is no service without fresh data.
func TestRefusedObjectsAreShown(t *testing.T) {
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	s := &fleet.Snapshot{
		Services: []fleet.Service{{ID: "shop/cart", Blocked: "Conflicted: another one has it"}, {ID: "shop/till"}},
		Pools:    []fleet.Pool{{ID: "web", Refused: "PoolsOverlap: so it is"}, {ID: "batch"}},
		Tenants:  []fleet.Tenant{{ID: "a", Refused: "ParentCycle: so it is"}},
		Jobs:     []fleet.Job{{ID: "ml/train", Blocked: "WorkloadNotFound: there is none"}},
	}
	plan := &planner.Plan{Targets: []hpa.Target{{Service: "shop/cart"}, {Service: "shop/till"}}}
	m.observe(s, plan, &Receipt{}, nil, nil, newTimer(func() {}), nil, nil)
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
