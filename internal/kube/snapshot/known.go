package snapshot

import (
	"slices"

	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/validate"
)

// Known are the objects that are judged together, as the watches show them now: the webhook compares a new object with them. The oldest
// service of a target comes first, since it keeps the target. The objects are the caches' own, and must not be changed.
func (c *Observer) Known() validate.Set {
	var out validate.Set
	services := c.Services.All()
	slices.SortFunc(services, func(a, b *watch.OwnService) int {
		if a.Older(&b.Header) {
			return -1
		}
		return 1
	})
	for _, s := range services {
		out.Services = append(out.Services, s.API)
	}
	for _, p := range c.Pools.All() {
		out.Pools = append(out.Pools, p.API)
	}
	out.Quotas = apiTenants(c.Tenants.All())
	return out
}
