package loop

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/quota"
)

func TestTenantMetrics(t *testing.T) {
	now := time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC)
	r := prometheus.NewPedanticRegistry()
	m := NewMetrics(r)
	cores := func(n int64) fleet.Resources { return fleet.Resources{CPU: fleet.MilliCPU(n * 1000)} }
	plan := &planner.Plan{Division: quota.Division{
		Shares: []quota.Share{
			{Tenant: "pay", Guarantee: cores(10), Entitled: cores(9), Limit: cores(12), Used: cores(14), Borrowed: cores(3), OverOnline: cores(2), Deadline: now},
			{Tenant: "train", Deadline: now, Parcels: []quota.ParcelShare{{Class: fleet.ParcelClass{Kind: fleet.KindNode, GPUModel: "H100"}, Entitled: 2, Limit: 3, Used: 5, Over: 1}}},
			{Tenant: "shop", Lent: cores(3), OverOffline: cores(1), Deadline: now.Add(time.Second)}},
		Short: []quota.Short{{Tenant: "pay", From: now}, {Tenant: "pay", From: now.Add(72 * time.Hour)}, {Tenant: "shop", From: now.Add(time.Hour)}},
		Level: quota.Level{Pool: "offline", Share: fleet.KnownAt(0.1, now), Low: 0.05, High: 0.15},
	}}
	var p page
	m.tenants(&p, &fleet.Snapshot{At: now}, plan)
	m.board.show(p)
	want := `# HELP springtide_low_priority_level_ratio CPU at the disposal of low-priority work, its own machines and what is lent to it, over that of all machines of pools.
# TYPE springtide_low_priority_level_ratio gauge
springtide_low_priority_level_ratio{pool="offline"} 0.1
# HELP springtide_low_priority_watermark_ratio The watermarks of that level: bursts of tenants end below low and begin above high.
# TYPE springtide_low_priority_watermark_ratio gauge
springtide_low_priority_watermark_ratio{pool="offline",watermark="high"} 0.15
springtide_low_priority_watermark_ratio{pool="offline",watermark="low"} 0.05
# HELP springtide_tenant_overdue 1 while a tenant has not given back what was due.
# TYPE springtide_tenant_overdue gauge
springtide_tenant_overdue{tenant="pay"} 1
springtide_tenant_overdue{tenant="shop"} 0
springtide_tenant_overdue{tenant="train"} 1
# HELP springtide_tenant_parcels Machines and sockets that a tenant's offline work is on, by class: entitled, limit, used, and over, which it gives back.
# TYPE springtide_tenant_parcels gauge
springtide_tenant_parcels{class="Node/H100",kind="entitled",tenant="train"} 2
springtide_tenant_parcels{class="Node/H100",kind="limit",tenant="train"} 3
springtide_tenant_parcels{class="Node/H100",kind="over",tenant="train"} 1
springtide_tenant_parcels{class="Node/H100",kind="used",tenant="train"} 5
# HELP springtide_tenant_short 1 while a tenant's services want more than it may have: now, or within the week ahead.
# TYPE springtide_tenant_short gauge
springtide_tenant_short{tenant="pay",when="ahead"} 1
springtide_tenant_short{tenant="pay",when="now"} 1
springtide_tenant_short{tenant="shop",when="ahead"} 1
springtide_tenant_short{tenant="shop",when="now"} 0
springtide_tenant_short{tenant="train",when="ahead"} 0
springtide_tenant_short{tenant="train",when="now"} 0
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "springtide_low_priority_level_ratio", "springtide_low_priority_watermark_ratio",
		"springtide_tenant_overdue", "springtide_tenant_short", "springtide_tenant_parcels"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(r, "springtide_tenant_cpu_cores"); n != 21 || err != nil {
		t.Errorf("%d series of cores (%v)", n, err)
	}
	// Without an offline pool the level is unknown, which is not zero.
	p, plan.Division.Level = nil, quota.Level{}
	m.tenants(&p, &fleet.Snapshot{At: now}, plan)
	m.board.show(p)
	if n, err := testutil.GatherAndCount(r, "springtide_low_priority_level_ratio"); n != 0 || err != nil {
		t.Errorf("%d series of a level that is not known (%v)", n, err)
	}
}
