package planner

import (
	"maps"

	"github.com/springtide/springtide/fleet"
)

// PoolsOf attributes each service to one online pool: the one on whose machines most of its pods are, or the first.
func PoolsOf(s *fleet.Snapshot) map[fleet.ServiceID]fleet.PoolID {
	var first fleet.PoolID
	for i := range s.Pools {
		if s.Pools[i].Class == fleet.Online {
			first = s.Pools[i].ID
			break
		}
	}
	pools := make(map[fleet.NodeID]fleet.PoolID, len(s.Nodes))
	for i := range s.Nodes {
		pools[s.Nodes[i].ID] = s.Nodes[i].Pool
	}
	maps.Copy(pools, holdersOf(s))
	out := make(map[fleet.ServiceID]fleet.PoolID, len(s.Services))
	var count []poolCount
	for i := range s.Services {
		svc := &s.Services[i]
		count = count[:0]
		for j := range svc.Pods {
			if id := pools[svc.Pods[j].Node]; id != "" {
				count = counted(count, id)
			}
		}
		best := poolCount{id: first}
		for _, c := range count {
			if c.pods > best.pods || c.pods == best.pods && c.id < best.id {
				best = c
			}
		}
		out[svc.ID] = best.id
	}
	return out
}

// poolCount is how many pods of a service are on the machines of a pool. There are few pools.
type poolCount struct {
	id   fleet.PoolID
	pods int
}

func counted(counts []poolCount, id fleet.PoolID) []poolCount {
	for i := range counts {
		if counts[i].id == id {
			counts[i].pods++
			return counts
		}
	}
	return append(counts, poolCount{id, 1})
}

// holdersOf are the online pools that hold machines of offline ones.
func holdersOf(s *fleet.Snapshot) map[fleet.NodeID]fleet.PoolID {
	out := map[fleet.NodeID]fleet.PoolID{}
	for i := range s.Loans {
		if l := &s.Loans[i]; l.Phase.Away() && s.FromOffline(l) {
			out[l.Node] = l.To
		}
	}
	return out
}

// borrowerOf is the offline pool that borrows: the first by id.
func borrowerOf(s *fleet.Snapshot) fleet.PoolID {
	for i := range s.Pools {
		if s.Pools[i].Class == fleet.Offline {
			return s.Pools[i].ID
		}
	}
	return ""
}
