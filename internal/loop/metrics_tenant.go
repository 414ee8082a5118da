package loop

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// tenants puts up each tenant's share, and the level of the low-priority capacity where there is an offline pool.
func (m *Metrics) tenants(p *page, s *fleet.Snapshot, plan *planner.Plan) {
	d := &plan.Division
	short := map[fleet.TenantID]map[string]bool{}
	for i := range d.Short {
		when := "now"
		if d.Short[i].From.After(s.At) {
			when = "ahead"
		}
		id := d.Short[i].Tenant
		if short[id] == nil {
			short[id] = map[string]bool{}
		}
		short[id][when] = true
	}
	for i := range d.Shares {
		x := &d.Shares[i]
		id := string(x.Tenant)
		for _, v := range [...]struct {
			kind string
			of   fleet.Resources
		}{{"guarantee", x.Guarantee}, {"entitled", x.Entitled}, {"limit", x.Limit}, {"used", x.Used}, {"borrowed", x.Borrowed.Add(x.BorrowedOffline)},
			{"lent", x.Lent}, {"over", x.Over()}} {
			p.set(m.tenant, v.of.CPU.Cores(), id, v.kind)
		}
		for _, when := range [...]string{"now", "ahead"} {
			p.set(m.tenantShort, bit(short[x.Tenant][when]), id, when)
		}
		p.set(m.tenantOverdue, bit(x.Owes() && !s.At.Before(x.Deadline)), id)
		for _, c := range x.Parcels {
			class := c.Class.String()
			p.set(m.tenantParcels, float64(c.Entitled), id, class, "entitled")
			p.set(m.tenantParcels, float64(c.Limit), id, class, "limit")
			p.set(m.tenantParcels, float64(c.Used), id, class, "used")
			p.set(m.tenantParcels, float64(c.Over), id, class, "over")
		}
	}
	if l := &d.Level; l.Share.OK {
		p.set(m.level, l.Share.Value, string(l.Pool))
		p.set(m.watermark, l.Low, string(l.Pool), "low")
		p.set(m.watermark, l.High, string(l.Pool), "high")
	}
}
