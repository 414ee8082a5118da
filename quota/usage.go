package quota

import "github.com/springtide/springtide/fleet"

// Usage is what the pods of one tenant, or of none, request on the machines they are on.
type Usage struct{ Online, Offline fleet.Resources }

// Sum is both together.
func (u Usage) Sum() fleet.Resources { return u.Online.Add(u.Offline) }

// Tenancy says whose a namespace is.
type Tenancy struct{ of map[string]fleet.TenantID }

// TenancyOf reads the namespaces of all accepted tenants. A namespace that two of them have belongs to neither.
func TenancyOf(tenants []fleet.Tenant) Tenancy {
	of := map[string]fleet.TenantID{}
	var contested []string
	for i := range tenants {
		if !tenants[i].Accepted {
			continue
		}
		for _, ns := range tenants[i].Namespaces {
			if _, taken := of[ns]; taken {
				contested = append(contested, ns)
			}
			of[ns] = tenants[i].ID
		}
	}
	for _, ns := range contested {
		delete(of, ns)
	}
	return Tenancy{of}
}

// Of is the tenant of a namespace; empty for one of none.
func (t Tenancy) Of(namespace string) fleet.TenantID { return t.of[namespace] }

// BesideServices reports whether a pod holds room of its tenant's online share although no service of ours sizes it.
func BesideServices(p *fleet.Pod) bool {
	return (p.Class == fleet.PodOnline && p.Service == "" || p.Class == fleet.PodSystem) && p.Occupies()
}

// Fits compares the resources that quotas are kept in: CPU, memory and GPUs.
func Fits(r, room fleet.Resources) bool {
	return r.CPU <= room.CPU && r.Memory <= room.Memory && r.GPU <= room.GPU
}

// UsageOf is the whole ledger: what each tenant's pods hold, those of no tenant under the empty id. It is counted again
// from the pods each time and kept nowhere, so that there is nothing that could drift from them. A pod that ends holds
// its room until it is gone; fillers hold room for others and count for no tenant.
func UsageOf(tenancy Tenancy, pods []fleet.Pod) map[fleet.TenantID]Usage {
	out := map[fleet.TenantID]Usage{}
	for i := range pods {
		p := &pods[i]
		if p.Class == fleet.PodFiller || !p.Occupies() {
			continue
		}
		id := tenancy.Of(p.Name.Namespace)
		u := out[id]
		if p.Class == fleet.PodOffline {
			u.Offline = u.Offline.Add(p.Requests)
		} else {
			u.Online = u.Online.Add(p.Requests)
		}
		out[id] = u
	}
	return out
}
