package report

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/recorder"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/quota"
)

// foretold is the report for one day: that a tenant will be short then, or that a promise to it cannot be kept.
type foretold struct {
	kind   string
	tenant fleet.TenantID
	day    string
}

// reportsDay says whether to report the lack of a day: the first time, and again at more than twice the reported
// amount. The event names the day, since the hour moves with the steps of the look ahead, and the amount all the time.
func (r *reporter) reportsDay(what foretold, by fleet.Resources) bool {
	known, ok := r.foretold[what]
	if ok && by.Fits(known.Times(2)) {
		return false
	}
	r.foretold[what] = known.Max(by)
	return true
}

func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// byDay splits a list in the order of time by the days on which its stretches begin.
func byDay[T any](list []T, from func(*T) time.Time) (out [][]T) {
	for i := range list {
		if n := len(out); n > 0 && dayOf(from(&out[n-1][0])) == dayOf(from(&list[i])) {
			out[n-1] = append(out[n-1], list[i])
			continue
		}
		out = append(out, list[i:i+1:i+1])
	}
	return out
}

// reportTenants says what a tenant must know, once when it begins: a shortage and a promise that cannot be kept on the day that they are
// seen, however far ahead and whatever comes before them; what is to be given back by when, to its jobs too; and its bursts.
func (c *Reporter) reportTenants(r *loop.Report) {
	d := &r.Plan.Division
	tenancy := quota.TenancyOf(r.Snapshot.Tenants)
	today := dayOf(r.Snapshot.At)
	maps.DeleteFunc(c.Memory.foretold, func(x foretold, _ fleet.Resources) bool { return x.day < today })
	for i := range r.Snapshot.Tenants {
		t := &r.Snapshot.Tenants[i]
		o, ok := c.Tenants.Get("", string(t.ID))
		if !ok {
			continue
		}
		ref := recorder.Reference("CapacityQuota", &o.Header)
		for _, list := range byDay(shortagesOf(d, t.ID), func(s *quota.Short) time.Time { return s.From }) {
			var by fleet.Resources
			for i := range list {
				by = by.Max(list[i].By)
			}
			if c.Memory.reportsDay(foretold{"Short", t.ID, dayOf(list[0].From)}, by) {
				c.Record(ref, catalog.EventShort, shortText(list))
			}
		}
		for _, list := range byDay(oversoldOf(d, t.ID), func(o *quota.Oversold) time.Time { return o.From }) {
			var by fleet.Resources
			for i := range list {
				by = by.Max(list[i].Promised.Sub(list[i].Kept))
			}
			if c.Memory.reportsDay(foretold{"Oversold", t.ID, dayOf(list[0].From)}, by) {
				c.Record(ref, catalog.EventOversold, oversoldText(list))
			}
		}
		if x := d.Share(t.ID); x != nil {
			c.reportShare(r, t, x, ref, tenancy)
		}
	}
}

func (c *Reporter) reportShare(r *loop.Report, t *fleet.Tenant, x *quota.Share, ref *corev1.ObjectReference,
	tenancy quota.Tenancy) {
	since := ""
	if !x.OverSince.IsZero() {
		since = fmt.Sprint(x.OverSince.Unix())
	}
	if c.News("over "+string(t.ID), since) {
		c.Record(ref, catalog.EventQuotaNotice, overText(x))
		for i := range r.Snapshot.Jobs {
			n := fleet.ParseName(string(r.Snapshot.Jobs[i].ID))
			j, ok := c.Jobs.Get(n.Namespace, n.Name)
			if !ok || tenancy.Of(n.Namespace) != t.ID {
				continue
			}
			by := x.Deadline.UTC().Format("15:04:05 MST")
			if !x.OverOffline.IsZero() {
				c.Record(recorder.Reference("ElasticJob", &j.Header), catalog.EventQuotaNoticeJob, t.ID, x.OverOffline, by)
			}
			if parcels := parcelsOver(x); parcels != "" {
				c.Record(recorder.Reference("ElasticJob", &j.Header), catalog.EventQuotaNoticeParcels, t.ID, parcels, by)
			}
		}
	}
	burst := ""
	if x.Bursting {
		burst = fmt.Sprint(x.BurstSince.Unix())
	}
	if c.News("burst "+string(t.ID), burst) {
		c.Record(ref, catalog.EventBurst, t.Burst.Percent, burstEnds(t, x))
	}
}
