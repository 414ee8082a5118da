package quota

import "github.com/springtide/springtide/fleet"

// amount is what passes a tree of tenants: CPU, memory and GPUs in the tree of resources, a number of parcels in the tree of a class. No quota
// counts pods, so their number has no place here: a request brings one pod, a quota of the API none, and none would read as a limit.
type amount struct {
	cpu     fleet.MilliCPU
	memory  fleet.Bytes
	gpu     int64
	parcels int64
}

// amountOf is what of resources a quota counts.
func amountOf(r fleet.Resources) amount { return amount{cpu: r.CPU, memory: r.Memory, gpu: r.GPU} }

// count is a number of parcels as an amount.
func count(n int64) amount { return amount{parcels: n} }

// resources are those of an amount.
func (a amount) resources() fleet.Resources {
	return fleet.Resources{CPU: a.cpu, Memory: a.memory, GPU: a.gpu}
}

// String renders what is not zero, as [fleet.Resources.String] does.
func (a amount) String() string { return a.resources().String() }

func (a amount) add(o amount) amount {
	return amount{fleet.SatAdd(a.cpu, o.cpu), fleet.SatAdd(a.memory, o.memory), fleet.SatAdd(a.gpu, o.gpu), fleet.SatAdd(a.parcels, o.parcels)}
}

func (a amount) sub(o amount) amount {
	return amount{fleet.SatSub(a.cpu, o.cpu), fleet.SatSub(a.memory, o.memory), fleet.SatSub(a.gpu, o.gpu), fleet.SatSub(a.parcels, o.parcels)}
}

func (a amount) max(o amount) amount {
	return amount{max(a.cpu, o.cpu), max(a.memory, o.memory), max(a.gpu, o.gpu), max(a.parcels, o.parcels)}
}

func (a amount) min(o amount) amount {
	return amount{min(a.cpu, o.cpu), min(a.memory, o.memory), min(a.gpu, o.gpu), min(a.parcels, o.parcels)}
}

// floor raises negative amounts to zero.
func (a amount) floor() amount { return a.max(amount{}) }

// fits reports whether an amount fits into room, in everything that is counted.
func (a amount) fits(room amount) bool {
	return a.cpu <= room.cpu && a.memory <= room.memory && a.gpu <= room.gpu && a.parcels <= room.parcels
}

func (a amount) isZero() bool { return a == amount{} }
