package sim

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/protocol"
)

// stampOdds is the share of the new leaders that stamp what moves before their first plan. The others run out of the time for it, so that versions and
// UIDs alone stand between the fleet and the leader before.
const stampOdds = 0.5

// stamp lets a new leader write its epoch on what moves, as the controller does ([internal/kube]'s takeover): loans that are not at rest, the shares of
// their machines, pools, and what services scale. Each stamp gives its object a new version.
func (c *controller) stamp() {
	if c.stamps.Float64() >= stampOdds {
		return
	}
	c.stamped = map[protocol.Object]int64{}
	for i := range c.loans {
		l := &c.loans[i]
		if l.Phase == fleet.Lent {
			continue
		}
		l.LeaderEpoch, l.Version = max(l.LeaderEpoch, c.epoch), c.api.Version()
		c.stamped[protocol.Object{Kind: protocol.ObjectLoan, Name: string(l.ID)}] = c.epoch
		if s := c.Share(l.NodeName); s != nil {
			s.Version = c.api.Version()
			c.stamped[protocol.Object{Kind: protocol.ObjectShare, Name: l.NodeName}] = c.epoch
		}
	}
	for i := range c.pools {
		c.pools[i].Version = c.api.Version()
		c.stamped[protocol.Object{Kind: protocol.ObjectPool, Name: string(c.pools[i].ID)}] = c.epoch
	}
	for i := range c.services {
		c.stamped[protocol.Object{Kind: protocol.ObjectService, Name: string(c.services[i].ID)}] = c.epoch
	}
}

// checkStamp breaks the run when a request of the leader before changes what its successor has stamped.
func (c *controller) checkStamp(x *protocol.Write) {
	if l := c.late; l != nil && c.stamped[x.Object] > l.plan.LeaderEpoch {
		c.breaks("leader epoch %d stamped %s, and a request of epoch %d changes it", c.stamped[x.Object], x.Object, l.plan.LeaderEpoch)
	}
}
