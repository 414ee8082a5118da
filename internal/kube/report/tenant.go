package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/quota"
)

// tenantGist is what of a tenant's status is worth a write of its own. The times are what deadlines and bursts are
// computed from, so that they are written as soon as they change.
type tenantGist struct {
	Generation                  int64
	Namespaces                  int32
	OverSince, Drain, BurstFrom time.Time
	Notices                     string
	Conditions                  []verdict
}

func gistOfTenant(s *v1alpha1.CapacityQuotaStatus) tenantGist {
	return tenantGist{s.ObservedGeneration, s.Namespaces, convert.TimeOf(s.OverSince), convert.TimeOf(s.DrainDeadline),
		convert.TimeOf(s.BurstSince),
		fmt.Sprint(convert.NoticesOf(s.Notices)), verdicts(s.Conditions)}
}

func (w *statusWriter) tenantStatus(r *loop.Report) {
	if len(r.Snapshot.Tenants) == 0 {
		return
	}
	// The use of tenants that were not accepted is reported, too: their pods run all the same.
	tenants := slices.Clone(r.Snapshot.Tenants)
	for i := range tenants {
		tenants[i].Accepted = true
	}
	used := quota.UsageOf(quota.TenancyOf(tenants), r.Snapshot.Pods)
	for i := range r.Snapshot.Tenants {
		t := &r.Snapshot.Tenants[i]
		o, ok := w.c.Tenants.Get("", string(t.ID))
		if !ok {
			continue
		}
		next := *o.API
		s := &next.Status
		s.ObservedGeneration, s.LeaderEpoch = o.Generation, w.epoch
		s.Namespaces = int32(len(t.Namespaces))
		s.Used = convert.APIAmounts(used[t.ID].Sum())
		share := r.Plan.Division.Share(t.ID)
		shareStatus(s, share)
		c := newConditions(o.API.Status.Conditions, w.now, o.Generation)
		c.accept(t.Refused, catalog.QuotaAccepted)
		c.tenant(&r.Plan.Division, t, share)
		s.Conditions = c.list
		if w.due(statusKey(object.GVRQuotas, &next), gistOfTenant(&o.API.Status), gistOfTenant(s), &o.API.Status, s) {
			w.put(object.GVRQuotas, &next, func(version string) object.Sight {
				return w.c.Tenants.Sees("", o.Name, o.UID,
					version)
			})
		}
	}
}

// shareStatus writes a share; a tenant without one, which was not accepted, has nothing and owes nothing.
func shareStatus(s *v1alpha1.CapacityQuotaStatus, x *quota.Share) {
	if x == nil {
		x = &quota.Share{BurstSince: convert.TimeOf(s.BurstSince)}
	}
	s.Entitled, s.Borrowed, s.Lent = convert.APIAmounts(x.Entitled),
		convert.APIAmounts(x.Borrowed.Add(x.BorrowedOffline)), convert.APIAmounts(x.Lent)
	s.Limit, s.Reason = convert.APIAmounts(x.Limit), v1alpha1.Clip(x.Why.Text(), v1alpha1.MaxReasonLength)
	// Rounded up: what was announced is never taken back by a second.
	s.OverSince, s.DrainDeadline, s.BurstSince = convert.StampUp(x.OverSince), convert.StampUp(x.Deadline),
		convert.StampUp(x.BurstSince)
	s.Notices = nil
	for _, n := range x.Notices[:min(len(x.Notices), quota.MostNotices)] {
		s.Notices = append(s.Notices, v1alpha1.QuotaNotice{Since: *convert.StampUp(n.Since),
			Online: convert.APIAmounts(n.Online), Offline: convert.APIAmounts(n.Offline),
			OnlineUsed: convert.APIAmounts(n.OnlineUsed), OfflineUsed: convert.APIAmounts(n.OfflineUsed),
			Parcels: apiDebts(n.Parcels)})
	}
	s.Over = v1alpha1.ResourceAmounts{}
	if over := x.Over(); !over.IsZero() {
		s.Over = convert.APIAmounts(over)
	}
	s.Parcels = nil
	for _, p := range x.Parcels[:min(len(x.Parcels), v1alpha1.MaxParcelShares)] {
		s.Parcels = append(s.Parcels, v1alpha1.ParcelShareStatus{Class: p.Class.String(), Entitled: p.Entitled, Used: p.Used, Limit: p.Limit, Over: p.Over})
	}
}

func apiDebts(list []fleet.ParcelDebt) []v1alpha1.ParcelDebt {
	var out []v1alpha1.ParcelDebt
	for _, p := range list[:min(len(list), v1alpha1.MaxParcelShares)] {
		out = append(out, v1alpha1.ParcelDebt{Class: p.Class.String(), Owed: p.N, Used: p.Used})
	}
	return out
}

// tenant records what an operator must know of a tenant's share.
func (c *conditions) tenant(d *quota.Division, t *fleet.Tenant, x *quota.Share) {
	if !t.Accepted {
		c.refuse(catalog.QuotaReadyRefused, t.Refused)
		c.set(catalog.QuotaGuaranteeNotAccepted)
		c.set(catalog.QuotaWithinNotAccepted)
		c.drop(catalog.ConditionBursting)
		return
	}
	switch list := shortagesOf(d, t.ID); {
	case len(list) == 0:
		c.set(catalog.QuotaReadyMet)
	case list[0].From.After(c.at):
		c.set(catalog.QuotaReadyShortAhead, shortText(list))
	default:
		c.set(catalog.QuotaReadyShort, shortText(list))
	}
	switch list, parcels := oversoldOf(d, t.ID), parcelsOversold(x); {
	case len(list) == 0 && parcels == "":
		c.set(catalog.QuotaGuaranteeKept)
	case len(list) == 0:
		c.set(catalog.QuotaGuaranteeOversold, parcels)
	case parcels != "":
		c.set(catalog.QuotaGuaranteeOversoldBoth, parcels, oversoldText(list))
	case list[0].From.After(c.at):
		c.set(catalog.QuotaGuaranteeOversoldAhead, oversoldText(list))
	default:
		c.set(catalog.QuotaGuaranteeOversold, oversoldText(list))
	}
	switch {
	case x == nil || !x.Owes():
		c.set(catalog.QuotaWithin)
	case c.at.Before(x.Deadline) && !x.HasDue():
		c.set(catalog.QuotaWithinNoticed, overText(x))
	default:
		c.set(catalog.QuotaWithinOverdue, overText(x))
	}
	switch {
	case t.Burst.Percent == 0 || x == nil:
		c.drop(catalog.ConditionBursting)
	case x.Bursting:
		c.set(catalog.QuotaBursting, t.Burst.Percent, burstEnds(t, x))
	case !x.BurstWhy.None():
		c.set(catalog.QuotaBurstingRefused, x.BurstWhy)
	default:
		c.set(catalog.QuotaBurstingNotNeeded)
	}
}

// shortagesOf and oversoldOf are those of one tenant, in the order of time.
func shortagesOf(d *quota.Division, id fleet.TenantID) (out []quota.Short) {
	for i := range d.Short {
		if d.Short[i].Tenant == id {
			out = append(out, d.Short[i])
		}
	}
	return out
}

func oversoldOf(d *quota.Division, id fleet.TenantID) (out []quota.Oversold) {
	for i := range d.Oversold {
		if d.Oversold[i].Tenant == id {
			out = append(out, d.Oversold[i])
		}
	}
	return out
}

func shortText(list []quota.Short) string {
	out := make([]string, len(list))
	for i := range list {
		s := &list[i]
		out[i] = fmt.Sprintf("short of up to %s %s: %s", s.By, stretchText(s.From, s.Until, s.Worst), s.Why)
	}
	return strings.Join(out, "; ")
}

func oversoldText(list []quota.Oversold) string {
	out := make([]string, len(list))
	for i := range list {
		o := &list[i]
		out[i] = fmt.Sprintf("%s of %s can be kept %s: %s", o.Kept, o.Promised, stretchText(o.From, o.Until, o.Worst), o.Why)
	}
	return strings.Join(out, "; ")
}

// stretchText says from when until when something lasts, and since when it is worst.
func stretchText(from, until, worst time.Time) string {
	text := "from " + from.UTC().Format(time.RFC3339)
	if !until.IsZero() {
		text += " until " + until.UTC().Format(time.RFC3339)
	}
	if worst.After(from) {
		text += ", at worst from " + worst.UTC().Format(time.RFC3339)
	}
	return text
}

func overText(x *quota.Share) string {
	var out []string
	if !x.Over().IsZero() {
		out = append(out, fmt.Sprintf("%s online and %s offline are to be given back by %s; what other services wait for (%s) and the offline part are brought down then",
			x.OverOnline, x.OverOffline, x.Deadline.UTC().Format(time.RFC3339), x.Owed))
	}
	if n := parcelsOver(x); n != "" {
		out = append(out, fmt.Sprintf("its offline work is to leave %s by %s, and is taken from them then", n, x.Deadline.UTC().Format(time.RFC3339)))
	}
	return strings.Join(out, "; ")
}

// parcelsOversold says which guarantees of parcels cannot be kept; empty where all are.
func parcelsOversold(x *quota.Share) string {
	var out []string
	for i := 0; x != nil && i < len(x.Parcels); i++ {
		if p := &x.Parcels[i]; p.Entitled < p.Guarantee {
			out = append(out, fmt.Sprintf("%d of %d %s can be kept: the offline pools' own machines, or the parent's guarantee, are too few", p.Entitled, p.Guarantee, p.Class))
		}
	}
	return strings.Join(out, "; ")
}

// parcelsOver names the parcels that a tenant is to leave; empty for none.
func parcelsOver(x *quota.Share) string {
	var out []string
	for _, p := range x.Parcels {
		if p.Over > 0 {
			out = append(out, fmt.Sprintf("%d of %d %s", p.Over, p.Used, p.Class))
		}
	}
	return strings.Join(out, " and ")
}

func burstEnds(t *fleet.Tenant, x *quota.Share) string {
	return x.BurstSince.Add(t.Burst.Duration).UTC().Format(time.RFC3339)
}

// watermark says of the offline pool how the level of the low-priority capacity stands; of other pools nothing.
func watermark(c *conditions, l *quota.Level, p *fleet.Pool) {
	if l.Pool != p.ID {
		return
	}
	levels := []any{100 * l.Share.Value, 100 * l.Low, 100 * l.High}
	switch {
	case !l.Share.OK:
		c.set(catalog.PoolWatermarkNoNodes)
	case l.Share.Value < l.Low:
		c.set(catalog.PoolWatermarkLow, levels...)
	case l.Share.Value < l.High:
		c.set(catalog.PoolWatermarkBelowHigh, levels...)
	default:
		c.set(catalog.PoolWatermarkHigh, levels...)
	}
}
