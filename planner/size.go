package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/quota"
)

// size judges every service and divides the capacity among their tenants. Services are sized without a quota first, since their wishes are
// what there is to divide; those of a tenant that wishes for more than it may have are sized again under its limit.
func size(in *Input) ([]hpa.Target, quota.Division) {
	s := in.Snapshot
	targets := make([]hpa.Target, len(s.Services))
	for i := range s.Services {
		targets[i] = in.sizeOne(&s.Services[i], 0, "")
	}
	division := quota.Divide(s.Tenants, in.wants(targets), in.supply(), s.At, WindowOpen)
	for _, share := range division.Shares {
		in.capTenant(targets, share)
	}
	return targets, division
}

func (in *Input) sizeOne(svc *fleet.Service, limit int32, why string) hpa.Target {
	s, o := in.Snapshot, in.Options
	return hpa.Size(svc, in.Portraits[svc.ID], in.Tides[svc.ID], in.Live[svc.ID], s.At, hpa.Options{
		History: in.History[svc.ID], Festivals: s.Festivals, Quota: limit, QuotaWhy: why,
		WatchedSince: s.WatchedSince, Window: o.Window, Defaults: hpa.Defaults{Cycle: o.Interval},
	})
}

// WindowOpen reports whether a window is open at a time. A schedule that cannot be read is never open: acceptance refuses it by name.
func WindowOpen(w fleet.Window, at time.Time) bool {
	sched, err := hpa.ParseSchedule(w.Schedule)
	if err != nil || w.Zone == nil {
		return false
	}
	start := sched.Next(at.Add(-w.Duration), w.Zone)
	return !start.IsZero() && !start.After(at)
}

// tenantOf finds the accepted tenant of a namespace. A namespace that two tenants match belongs to neither.
func tenantOf(s *fleet.Snapshot, namespace string) (id fleet.TenantID, ok bool) {
	for i := range s.Tenants {
		if t := &s.Tenants[i]; t.Accepted && slices.Contains(t.Namespaces, namespace) {
			if ok {
				return "", false
			}
			id, ok = t.ID, true
		}
	}
	return id, ok
}

// wantsAhead is how many steps ahead tenants are told of a shortage: a day, as far as targets look.
const wantsAhead = int(24 * time.Hour / quota.AheadStep)

// ahead is the most that a target asks for in each step of a want; what it asks for now, where it does not look so far.
func ahead(t *hpa.Target) (most [wantsAhead]int32) {
	for i, n := range t.Ahead {
		if k := int(time.Duration(i) * t.AheadStep / quota.AheadStep); k < len(most) {
			most[k] = max(most[k], n)
		}
	}
	for k := range most {
		if most[k] == 0 {
			most[k] = t.Replicas
		}
	}
	return most
}

// wants adds up what each tenant's services and pods ask for.
func (in *Input) wants(targets []hpa.Target) []quota.Want {
	s := in.Snapshot
	byTenant := map[fleet.TenantID]*quota.Want{}
	ofNamespace := map[string]*quota.Want{}
	find := func(namespace string) *quota.Want {
		if w, seen := ofNamespace[namespace]; seen {
			return w
		}
		id, ok := tenantOf(s, namespace)
		if !ok {
			ofNamespace[namespace] = nil
			return nil
		}
		if byTenant[id] == nil {
			byTenant[id] = &quota.Want{Tenant: id}
		}
		ofNamespace[namespace] = byTenant[id]
		return byTenant[id]
	}
	for i := range s.Services {
		svc, t := &s.Services[i], &targets[i]
		if w := find(svc.Target.Namespace); w != nil {
			w.Now = w.Now.Add(svc.Request.Times(int64(t.Replicas)))
			if w.Ahead == nil {
				w.Ahead = make([]fleet.Resources, wantsAhead)
			}
			for k, n := range ahead(t) {
				w.Ahead[k] = w.Ahead[k].Add(svc.Request.Times(int64(n)))
			}
		}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if w := find(p.Name.Namespace); w != nil && p.Occupies() {
			switch p.Class {
			case fleet.PodOnline:
				w.Used = w.Used.Add(p.Requests)
			case fleet.PodOffline:
				w.Offline = w.Offline.Add(p.Requests)
			}
		}
	}
	out := make([]quota.Want, 0, len(s.Tenants))
	for i := range s.Tenants {
		if w := byTenant[s.Tenants[i].ID]; w != nil {
			out = append(out, *w)
		}
	}
	return out
}

// supply is what all ready machines in online pools hold.
func (in *Input) supply() fleet.Resources {
	var sum fleet.Resources
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		if p := in.Snapshot.Pool(n.Pool); p != nil && p.Class == fleet.Online && n.Ready {
			sum = sum.Add(n.Allocatable)
		}
	}
	return sum
}

// capTenant sizes a tenant's growing services again when together they wish for more than its limit. What they run now is not taken away
// by a quota; only growth is cut, from each in proportion to its growth.
func (in *Input) capTenant(targets []hpa.Target, share quota.Share) {
	s := in.Snapshot
	var want, now fleet.MilliCPU
	var growing []int
	for i := range s.Services {
		svc := &s.Services[i]
		if id, ok := tenantOf(s, svc.Target.Namespace); !ok || id != share.Tenant {
			continue
		}
		want += svc.Request.CPU * fleet.MilliCPU(targets[i].Replicas)
		now += svc.Request.CPU * fleet.MilliCPU(min(targets[i].Current, targets[i].Replicas))
		if targets[i].Replicas > targets[i].Current {
			growing = append(growing, i)
		}
	}
	if want <= share.Limit.CPU || len(growing) == 0 {
		return
	}
	part := float64(max(share.Limit.CPU-now, 0)) / float64(want-now)
	for _, i := range growing {
		grow := float64(targets[i].Replicas - targets[i].Current)
		limit := targets[i].Current + int32(part*grow)
		why := fmt.Sprintf("quota %s leaves %s", share.Tenant, share.Limit)
		targets[i] = in.sizeOne(&s.Services[i], max(limit, 1), why)
	}
}
