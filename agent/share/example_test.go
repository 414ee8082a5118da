package share_test

import (
	"fmt"
	"time"

	"github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/fleet"
)

// The node side's knowledge of a machine goes in; whether a parcel may change hands comes out, or what it waits for: the pods that leave, and then
// the margin in which a scheduler may still bind by older marks.
func ExampleMachine_Judge() {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	p := fleet.ShareParcel{Loan: "loan-m1", Epoch: 1, Holder: "online", Next: "offline", Cells: []int{0, 1}}
	node := &fleet.Node{ID: "m1", Name: "m1", Pool: "online", Marks: fleet.NodeMarks{HolderTaint: true},
		Cells: []fleet.Cell{{ID: 0, Socket: 0}, {ID: 1, Socket: 1}}, Share: fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{p}}}
	m := share.Machine{Node: node, Agent: true, Ready: true,
		ClassOf: func(id fleet.PoolID) fleet.Class {
			if id == "online" {
				return fleet.Online
			}
			return fleet.Offline
		},
		Occupants: []share.Occupant{{Name: "shop/cart-0", Class: fleet.PodOnline, Ask: fleet.Resources{CPU: 2000}}}}
	o := share.Options{Margin: share.DefaultMargin}

	v := m.Judge(&p, time.Time{}, noon, o)
	fmt.Println(v.Clean, v.Wait, v.Names)
	m.Occupants = nil // the pod is gone
	v = m.Judge(&p, v.Free, noon, o)
	fmt.Println(v.Clean, v.Wait)
	v = m.Judge(&p, v.Free, noon.Add(share.DefaultMargin), o)
	fmt.Println(v.Clean)
	// Output:
	// false Pods [shop/cart-0]
	// false Margin
	// true
}
