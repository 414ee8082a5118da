package fleet_test

import (
	"fmt"
	"time"

	"github.com/springtide/springtide/fleet"
)

// A loan takes each step by a method, which returns the loan as it is then, or says why the step is not due: evictions begin after the notice, and
// a parcel comes home by a Clean report of its own epoch.
func ExampleLoan() {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	l := fleet.Loan{ID: "loan-m1", From: "online", To: "offline", Phase: fleet.Noticed, Epoch: 2, Deadline: noon.Add(2 * time.Minute)}
	_, err := l.Drain(noon, false)
	fmt.Println(err)
	l, _ = l.Drain(l.Deadline, false)
	fmt.Println(l.Phase, "held by", l.Holder())
	clean := fleet.ShareParcel{Clean: true, CleanEpoch: 1, CleanAt: noon.Add(3 * time.Minute)}
	_, err = l.Return(clean.CleanAt, &clean)
	fmt.Println(err)
	clean.CleanEpoch = l.Epoch
	l, _ = l.Return(clean.CleanAt, &clean)
	fmt.Println(l.Phase, "held by", l.Holder())
	// Output:
	// loan loan-m1: cannot drain before the announced deadline without every acknowledgement while Noticed
	// Draining held by offline
	// loan loan-m1: cannot return without a Clean report of this epoch while Draining
	// Returned held by online
}

// A snapshot goes in; what its pods ask for on each machine, and what that leaves of each pool, comes out. The machine that is lent counts to the
// capacity of its pool, and is no room that the pool's own pods may use.
func ExampleOccupancyOf() {
	cores := func(n int64) fleet.Resources { return fleet.Resources{CPU: fleet.MilliCPU(1000 * n)} }
	s := &fleet.Snapshot{
		Pools: []fleet.Pool{{ID: "offline", Class: fleet.Offline}, {ID: "online", Class: fleet.Online}},
		Nodes: []fleet.Node{
			{ID: "m1", Name: "m1", Pool: "online", Ready: true, Allocatable: cores(64)},
			{ID: "m2", Name: "m2", Pool: "online", Ready: true, Allocatable: cores(64)},
		},
		Pods: []fleet.Pod{
			{ID: "cart-0", Node: "m1", NodeName: "m1", Phase: fleet.PodRunning, Class: fleet.PodOnline, Service: "shop/cart", Requests: cores(8)},
			{ID: "train-0", Node: "m2", NodeName: "m2", Phase: fleet.PodRunning, Class: fleet.PodOffline, Job: "batch/train", Requests: cores(16)},
		},
		Loans: []fleet.Loan{{ID: "loan-m2", Node: "m2", From: "online", To: "offline", Phase: fleet.Lent}},
	}
	o := fleet.OccupancyOf(s)
	fmt.Println("m1: online asks for", o.On("m1").Online)
	fmt.Println("m2: others ask for", o.On("m2").Others)
	online := o.Pool("online")
	fmt.Println("online: capacity", online.Capacity, "usable", online.Usable, "asked", online.Asked)
	// Output:
	// m1: online asks for cpu=8
	// m2: others ask for cpu=16
	// online: capacity cpu=128 usable cpu=64 asked cpu=8
}
