package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/quota"
)

// tellTenants says what a tenant must know, once when it begins: a shortage and a promise that cannot be kept on the day that they are
// seen, however far ahead; what is to be given back by when, to its jobs too; and its bursts.
func (c *Cluster) tellTenants(r *loop.Report) {
	d := &r.Plan.Division
	tenancy := quota.TenancyOf(r.Snapshot.Tenants)
	for i := range r.Snapshot.Tenants {
		t := &r.Snapshot.Tenants[i]
		o, ok := c.tenants.get("", string(t.ID))
		if !ok {
			continue
		}
		ref := reference("CapacityQuota", &o.header)
		// The day is what is told anew: the hour moves with the steps of the look ahead, and the amount all the time.
		s, day := shortOf(d, t.ID), ""
		if s != nil {
			day = s.From.UTC().Format("2006-01-02")
		}
		if c.reporter.news("short "+string(t.ID), day) {
			c.events.Event(ref, corev1.EventTypeWarning, "Short", shortText(s))
		}
		promise, day := oversoldOf(d, t.ID), ""
		if promise != nil {
			day = promise.From.UTC().Format("2006-01-02")
		}
		if c.reporter.news("oversold "+string(t.ID), day) {
			c.events.Event(ref, corev1.EventTypeWarning, "Oversold", oversoldText(promise))
		}
		if x := d.Share(t.ID); x != nil {
			c.tellShare(r, t, x, ref, tenancy)
		}
	}
}

func (c *Cluster) tellShare(r *loop.Report, t *fleet.Tenant, x *quota.Share, ref *corev1.ObjectReference, tenancy quota.Tenancy) {
	since := ""
	if !x.OverSince.IsZero() {
		since = fmt.Sprint(x.OverSince.Unix())
	}
	if c.reporter.news("over "+string(t.ID), since) {
		c.events.Event(ref, corev1.EventTypeWarning, "QuotaNotice", overText(x))
		for i := range r.Snapshot.Jobs {
			n := fleet.ParseName(string(r.Snapshot.Jobs[i].ID))
			j, ok := c.jobs.get(n.Namespace, n.Name)
			if !ok || tenancy.Of(n.Namespace) != t.ID {
				continue
			}
			by := x.Deadline.UTC().Format("15:04:05 MST")
			if !x.OverOffline.IsZero() {
				c.events.Eventf(reference("ElasticJob", &j.header), corev1.EventTypeWarning, "QuotaNotice",
					"CapacityQuota %s gives back %s of offline work by %s: members above the minimum leave then", t.ID, x.OverOffline, by)
			}
			if parcels := parcelsOver(x); parcels != "" {
				c.events.Eventf(reference("ElasticJob", &j.header), corev1.EventTypeWarning, "QuotaNotice",
					"CapacityQuota %s leaves %s by %s: members there end then, whole gangs where a lender's job waits", t.ID, parcels, by)
			}
		}
	}
	burst := ""
	if x.Bursting {
		burst = fmt.Sprint(x.BurstSince.Unix())
	}
	if c.reporter.news("burst "+string(t.ID), burst) {
		c.events.Event(ref, corev1.EventTypeNormal, "Burst", burstText(t, x))
	}
}
