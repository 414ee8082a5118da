package planner

import (
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/quota"
)

// missingParcels adds to what each tenant is on how many parcels of each class it lacks at least for all that its jobs could
// use: as many as their missing members fill. A parcel too few is reported later; one too many would free a machine
// that no tenant can use.
func (t *tenants) missingParcels(classes []fleet.ParcelClass, on map[fleet.TenantID][]quota.ParcelCount) {
	if len(classes) == 0 {
		return
	}
	type role struct {
		job  fleet.JobID
		name string
	}
	there := map[role]int64{}
	s := t.in.Snapshot
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Class == fleet.PodOffline && p.Occupies() && !p.Deleting {
			there[role{p.Job, p.Role}]++
		}
	}
	for _, class := range classes {
		rooms := t.parcelSizes(class)
		more := map[fleet.TenantID]int64{}
		for i := range s.Jobs {
			j := &s.Jobs[i]
			if j.Blocked.Any() {
				continue
			}
			id := t.tenancy.Of(fleet.ParseName(string(j.ID)).Namespace)
			for k := range j.Members {
				mem := &j.Members[k]
				most := int64(0)
				for _, r := range rooms {
					most = max(most, r.Count(mem.Request))
				}
				if miss := int64(mostOf(mem)) - there[role{j.ID, mem.Role}]; miss > 0 && most > 0 {
					more[id] += (miss + most - 1) / most
				}
			}
		}
		for i := range s.Tenants {
			if id := s.Tenants[i].ID; more[id] > 0 {
				k := slices.IndexFunc(on[id], func(p quota.ParcelCount) bool { return p.Class == class })
				if k < 0 {
					k = len(on[id])
					on[id] = append(on[id], quota.ParcelCount{Class: class})
				}
				on[id][k].More = more[id]
			}
		}
	}
}

// parcelSizes are the sizes that parcels of a class have.
func (t *tenants) parcelSizes(class fleet.ParcelClass) []fleet.Resources {
	s := t.in.Snapshot
	var out []fleet.Resources
	add := func(r fleet.Resources) {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	for i := range s.Pools {
		if s.Pools[i].Class != fleet.Offline {
			continue
		}
		for _, k := range t.room.Pool(s.Pools[i].ID).Kinds {
			if class.Holds(fleet.KindNode, k.GPUModel) {
				add(k.Holds)
			}
		}
	}
	for i := range s.Loans {
		if l := &s.Loans[i]; l.Phase == fleet.Lent {
			if n := s.Node(l.Node); n != nil && class.Holds(l.Kind, n.GPUModel) {
				add(n.CapacityOf(l.Cells))
			}
		}
	}
	return out
}
