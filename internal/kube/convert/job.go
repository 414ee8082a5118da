package convert

import (
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// GangFacts is what a status hands to the next controller.
func GangFacts(g *v1alpha1.GangStatus) fleet.Gang {
	if g == nil {
		return fleet.Gang{}
	}
	return fleet.Gang{Phase: fleet.GangPhase(g.Phase), Since: TimeOf(&g.Since), RetryAt: TimeOf(g.RetryTime),
		Tries: int(g.Tries), Ran: g.Ran}
}
