package planner

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// OnlineRoom is what the machines of online pools hold of services' pods, with those that are lent away: they are
// recalled in time. Requests of pods of no service are taken off, and so is what pods of these sizes leave over on
// whole machines, as it is where capacity is lent. Machines that are not ready, are about to leave, or did not come
// home count for nothing.
func OnlineRoom(s *fleet.Snapshot) hpa.RoomFor {
	rooms := map[fleet.Resources]int64{}
	var sum fleet.Resources
	on := fleet.OccupancyOf(s)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		m := on.On(n.ID)
		if s.ClassOf(n.Pool) != fleet.Online || !n.Lasts() || m.Moves.Lost > 0 {
			continue
		}
		room := m.ForServices().Floor()
		rooms[room]++
		room.GPU = max(n.Allocatable.GPU-m.Bare.GPU, 0)
		sum = sum.Add(room)
	}
	return func(pods map[fleet.Resources]int64) fleet.Resources {
		sizes := make(map[fleet.Resources]int64, len(pods))
		for one, n := range pods {
			sizes[onePod(one)] += n
		}
		out := sum
		waste := max(wasteOf(rooms, sizes), DefaultOptions().Placement)
		held := sum.Part(1 / (1 + waste))
		out.CPU, out.Memory = held.CPU, held.Memory
		return out
	}
}
