package place_test

import (
	"fmt"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/place"
)

// A snapshot goes in and becomes a table of machines; shapes of pods go in, and a machine with its cells held comes out, or none. A pod that fits
// nowhere is explained machine by machine.
func ExampleTable_Decide() {
	cores := func(n int64) fleet.Resources {
		return fleet.Resources{CPU: fleet.MilliCPU(1000 * n), Memory: fleet.Bytes(n) * fleet.GiB}
	}
	s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "online", Class: fleet.Online}}}
	for _, name := range []string{"m1", "m2"} {
		n := fleet.Node{ID: fleet.NodeID(name), Name: name, Pool: "online", Ready: true, Allocatable: cores(32)}
		n.Allocatable.Pods = 110
		for cell := range 2 {
			n.Cells = append(n.Cells, fleet.Cell{ID: cell, Socket: cell, Capacity: cores(16)})
		}
		s.Nodes = append(s.Nodes, n)
	}
	s.Pods = []fleet.Pod{{ID: "cart-0", Node: "m1", NodeName: "m1", Phase: fleet.PodRunning, Class: fleet.PodOnline, Requests: cores(24)}}

	t := place.FromSnapshot(s)
	large := t.Class(place.Shape{Side: fleet.Online, Requests: cores(16), Cells: place.OneCell})
	for range 3 {
		if d, ok := t.Decide(large); ok {
			fmt.Println(d.Node, "cells", d.Cells)
			continue
		}
		e := t.Explain(large)
		fmt.Printf("fits %d of %d machines\n", e.Fit, e.Machines)
	}
	// Output:
	// m2 cells [0]
	// m2 cells [1]
	// fits 0 of 2 machines
}
