package snapshot

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/validate"
)

func agentLease(node string) string { return v1alpha1.AgentLeasePrefix + node }

// addTenants gives each tenant its namespaces. A namespace that two tenants choose belongs to neither, and both say so.
func (a *assembly) addTenants() {
	all := a.c.Tenants.All()
	slices.SortFunc(all, func(x, y *watch.OwnTenant) int { return cmp.Compare(x.Name, y.Name) })
	index := make(map[fleet.TenantID]int, len(all))
	for i, f := range all {
		t := f.Facts.Tenant
		t.OverSince = a.past("CapacityQuota", &f.Header, "status.overSince", t.OverSince)
		t.BurstSince = a.past("CapacityQuota", &f.Header, "status.burstSince", t.BurstSince)
		index[t.ID] = i
		a.s.Tenants = append(a.s.Tenants, t)
		if f.Facts.Problem.Any() {
			a.notes.tenants[t.ID] = f.Facts.Problem
		}
	}
	circles, missing := validate.ParentCircles(apiTenants(all)), validate.MissingParents(apiTenants(all))
	for i := range a.s.Tenants {
		id := a.s.Tenants[i].ID
		if p, ok := circles[string(id)]; ok {
			a.noteTenant(id, catalog.ParentCycle.Of(p.String()))
		} else if p, ok := missing[string(id)]; ok {
			a.noteTenant(id, catalog.ParentNotFound.Of(p.String()))
		} else if problem := parentProblem(a.s.Tenants, index, i); problem.Any() {
			a.noteTenant(id, problem)
		}
	}
	// A namespace that two of them choose takes neither its quota: else a user who labels one could take another
	// tenant's guarantee away.
	for i := range a.s.Tenants {
		t := &a.s.Tenants[i]
		t.Accepted = !a.notes.tenants[t.ID].Any()
	}
	a.shareNamespaces(all)
}

func (a *assembly) shareNamespaces(all []*watch.OwnTenant) {
	namespaces := a.c.Namespaces.All()
	slices.SortFunc(namespaces, func(x, y *watch.NamespaceFacts) int { return cmp.Compare(x.Name, y.Name) })
	for _, ns := range namespaces {
		var chosen []int
		for i, f := range all {
			if f.Facts.Selector.Matches(ns.Labels) {
				chosen = append(chosen, i)
			}
		}
		if len(chosen) == 1 {
			t := &a.s.Tenants[chosen[0]]
			t.Namespaces = append(t.Namespaces, ns.Name)
			continue
		}
		for k, i := range chosen {
			other := chosen[(k+1)%len(chosen)]
			a.noteTenant(a.s.Tenants[i].ID, catalog.NamespaceContested.Of(ns.Name, a.s.Tenants[other].ID))
		}
	}
}

// boundPriorities takes the jobs of each tenant, and its pods of no job, down to the highest priority that it may give them.
func (a *assembly) boundPriorities() {
	highest := map[string]fleet.JobPriority{}
	for i := range a.s.Tenants {
		if t := &a.s.Tenants[i]; t.Accepted {
			for _, ns := range t.Namespaces {
				highest[ns] = t.MaxPriority
			}
		}
	}
	for i := range a.s.Jobs {
		j := &a.s.Jobs[i]
		if h, bound := highest[fleet.ParseName(string(j.ID)).Namespace]; bound {
			j.Priority = min(j.Priority, h)
		}
	}
	for i := range a.s.Pods {
		if p := &a.s.Pods[i]; p.Rank > fleet.PriorityLow {
			if h, bound := highest[p.Name.Namespace]; bound {
				p.Rank = min(p.Rank, h)
			}
		}
	}
}

// noteTenant keeps the first problem of a tenant.
func (a *assembly) noteTenant(id fleet.TenantID, problem fleet.Problem) {
	if !a.notes.tenants[id].Any() {
		a.notes.tenants[id] = problem
	}
}

func apiTenants(all []*watch.OwnTenant) []*v1alpha1.CapacityQuota {
	out := make([]*v1alpha1.CapacityQuota, len(all))
	for i, f := range all {
		out[i] = f.API
	}
	return out
}

// parentProblem says what is wrong with a tenant's line of parents, other than that the tenant is in a circle itself; empty when it ends in
// a root.
func parentProblem(ts []fleet.Tenant, index map[fleet.TenantID]int, i int) fleet.Problem {
	seen := map[fleet.TenantID]bool{}
	for t := &ts[i]; t.Parent != ""; {
		if seen[t.ID] {
			return catalog.ParentLeadsIntoCycle.Of(ts[i].ID, t.ID)
		}
		seen[t.ID] = true
		up, ok := index[t.Parent]
		if !ok {
			return catalog.ParentMissing.Of(t.ID, t.Parent)
		}
		t = &ts[up]
	}
	return fleet.Problem{}
}
