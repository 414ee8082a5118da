package festival

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/quota"
)

// tenantHour is an hour in which the services of a tenant that a plan lifts want more than the tenant is guaranteed: what is beyond must be
// borrowed, and Refused is what the borrowing limit does not allow.
type tenantHour struct {
	Tenant  fleet.TenantID
	From    time.Time
	Wants   fleet.Resources
	Holds   fleet.Resources
	Refused fleet.Resources
}

// tenantHours checks a plan against the guarantees of then, slices included. Whether siblings can lend what is to be
// borrowed is known when the time comes near; the status of the quotas shows it a week ahead.
func tenantHours(plan fleet.Festival, s *fleet.Snapshot, known *learned) []tenantHour {
	tenancy := quota.TenancyOf(s.Tenants)
	var out []tenantHour
	for i := range s.Tenants {
		t := &s.Tenants[i]
		own := slices.DeleteFunc(slices.Clone(s.Services), func(v fleet.Service) bool { return tenancy.Of(v.Target.Namespace) != t.ID })
		if !t.Accepted || !slices.ContainsFunc(plan.Lifts, func(l fleet.Lift) bool {
			return slices.ContainsFunc(own, func(v fleet.Service) bool { return v.ID == l.Service })
		}) {
			continue
		}
		for _, h := range hpa.FestivalCheck(plan, own, known.tides, known.portraits, nil) {
			x := tenantHour{Tenant: t.ID, From: h.From, Wants: h.With, Holds: quota.Guarantee(t, h.From, planner.WindowOpen).
				Min(quota.Guarantee(t, h.From.Add(time.Hour-time.Second), planner.WindowOpen))}
			x.Wants.Pods = 0
			beyond := x.Wants.Sub(x.Holds).Floor()
			if beyond.IsZero() {
				continue
			}
			if t.BorrowingLimit.OK {
				x.Refused = beyond.Sub(t.BorrowingLimit.Value).Floor()
			}
			out = append(out, x)
		}
	}
	return out
}

// tenantTable prints the hours of all tenants.
func (c *planCheck) tenantTable(p *screen.Page) {
	rows := make([][]string, len(c.Tenants))
	for i := range c.Tenants {
		h := &c.Tenants[i]
		refused := cell.None
		if !h.Refused.IsZero() {
			refused = h.Refused.String()
		}
		rows[i] = []string{string(h.Tenant), cell.Stamp(&metav1.Time{Time: h.From}), cores(h.Wants.CPU), cores(h.Holds.CPU), fmt.Sprint(h.Wants.Sub(h.Holds).Floor()), refused}
	}
	p.Table("Tenants beyond their guarantee", "", []string{"TENANT", "HOUR", "CORES", "OF CORES", "TO BORROW", "OVER THE LIMIT"}, rows)
}
