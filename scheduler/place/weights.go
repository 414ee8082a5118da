package place

// Weights say how much each term of a score counts, for pods of each side. A term is between 0 and 1000; the machine with the largest weighted
// sum is chosen. A weight of 0 takes a term out; weights are bounded to between 0 and 100,000.
type Weights struct{ Online, Offline SideWeights }

// SideWeights are those of one side.
type SideWeights struct {
	// Pack prefers the fullest machine, Spread the emptiest: by CPU and memory, after the pod is there.
	Pack, Spread int64
	// Room prefers the room that others need less: lent parcels for offline work, machines at home for online work.
	Room int64
	// KeepGPUs keeps pods without GPUs off machines that have some.
	KeepGPUs int64
	// GPUFragments prefers the machine on which the fewest free GPUs stay behind.
	GPUFragments int64
	// WholeMachines keeps machines free on which there is no pod, WholeSockets sockets of which no cell is held.
	WholeMachines, WholeSockets int64
	// Zones prefers the zone with the fewest pods of the group: each pod more costs a tenth of the term. It counts where the shape has Zones; and where it has soft
	// constraints (Needs.Spread), for what upstream's plugin makes of them.
	Zones int64
	// Hosts prefers machines with the fewest pods of the group: each one costs a quarter of the term.
	Hosts int64
	// Preferred is the share of the preferred affinity, by weight, that a machine meets.
	Preferred int64
	// Taints prefers machines without taints of the effect PreferNoSchedule: each one that is not tolerated costs a quarter of the term.
	Taints int64
	// Images prefers machines that have the images of the pod, by their size and by how many machines have them.
	Images int64
}

// DefaultWeights spread online pods over zones and machines, and pack offline ones on lent parcels. Preferences of the pod come before those of
// the fleet.
func DefaultWeights() Weights {
	return Weights{
		Online: SideWeights{Spread: 2, Room: 10, KeepGPUs: 20, GPUFragments: 8, WholeSockets: 2, Zones: 40, Hosts: 16, Preferred: 30, Taints: 30, Images: 2},
		Offline: SideWeights{Pack: 4, Room: 20, KeepGPUs: 20, GPUFragments: 8, WholeMachines: 6, WholeSockets: 4, Zones: 40, Hosts: 16, Preferred: 30,
			Taints: 30, Images: 2},
	}
}

func (w *Weights) of(s side) *SideWeights {
	if s == offlineSide {
		return &w.Offline
	}
	return &w.Online
}

// SetWeights sets the weights. Indexes are built again when they are next asked.
func (t *Table) SetWeights(w Weights) {
	for _, s := range [2]*SideWeights{&w.Online, &w.Offline} {
		for _, x := range [...]*int64{&s.Pack, &s.Spread, &s.Room, &s.KeepGPUs, &s.GPUFragments, &s.WholeMachines, &s.WholeSockets, &s.Zones, &s.Hosts,
			&s.Preferred, &s.Taints, &s.Images} {
			*x = min(max(*x, 0), mostWeight)
		}
	}
	t.weights = w
	t.weightsVersion++
}

// mostWeight bounds a weight, so that sums of terms fit 32 bits.
const mostWeight = 100_000

// Weights are those that are set.
func (t *Table) Weights() Weights { return t.weights }

// whole is the largest value of a term.
const whole = 1000

// Score is the weighted terms of a machine for a pod, and their sum.
type Score struct {
	Total                                                                                                    int64
	Fill, Room, KeepGPUs, GPUFragments, WholeMachines, WholeSockets, Zones, Hosts, Preferred, Taints, Images int64
}

func (s *Score) sum() {
	s.Total = s.Fill + s.Room + s.KeepGPUs + s.GPUFragments + s.WholeMachines + s.WholeSockets + s.Zones + s.Hosts + s.Preferred + s.Taints + s.Images
}
