package rules

import (
	"cmp"
	"math"
	"slices"
)

// Amount is an amount of one named resource: CPU in millicores, everything else in its own unit.
type Amount struct {
	Name  string
	Value int64
}

// Amounts are sorted by name, each name once.
type Amounts []Amount

// AmountsOf sorts a map into amounts.
func AmountsOf(m map[string]int64) Amounts {
	out := make(Amounts, 0, len(m))
	for k, v := range m {
		out = append(out, Amount{k, v})
	}
	slices.SortFunc(out, func(a, b Amount) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Get returns the amount of a resource, 0 where it is not named.
func (a Amounts) Get(name string) int64 {
	i, ok := slices.BinarySearchFunc(a, name, func(x Amount, name string) int { return cmp.Compare(x.Name, name) })
	if !ok {
		return 0
	}
	return a[i].Value
}

// Container is what one container asks for.
type Container struct {
	Requests Amounts
	// Sidecar: an init container that is restarted always, and so runs beside all that start after it.
	Sidecar bool
}

// PodRequests is what a pod's parts ask for.
type PodRequests struct {
	// Init are the init containers and sidecars in their order, Main the containers.
	Init, Main []Container
	// Pod are requests at the level of the pod (spec.resources): they stand in place of the sum of the containers, resource by resource.
	Pod Amounts
	// Overhead is that of the runtime class.
	Overhead Amounts
}

// Sum is what the scheduler counts for a pod: the containers and sidecars together, or the largest step of its start where that is more; in its
// place, resource by resource, what the pod itself asks for; and the overhead. Sums stop at the largest number instead of wrapping.
func (p *PodRequests) Sum() Amounts {
	main, sidecars, start := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, c := range p.Main {
		add(main, c.Requests)
	}
	for _, c := range p.Init {
		if c.Sidecar {
			add(main, c.Requests)
			add(sidecars, c.Requests)
			raise(start, sidecars)
			continue
		}
		// A step of the start runs beside the sidecars that are there by then.
		step := map[string]int64{}
		for k, v := range sidecars {
			step[k] = v
		}
		add(step, c.Requests)
		raise(start, step)
	}
	raise(main, start)
	for _, a := range p.Pod {
		main[a.Name] = a.Value
	}
	add(main, p.Overhead)
	return AmountsOf(main)
}

func add(to map[string]int64, a Amounts) {
	for _, x := range a {
		s := to[x.Name] + x.Value
		if to[x.Name] > 0 && x.Value > 0 && s < 0 {
			s = math.MaxInt64
		}
		to[x.Name] = s
	}
}

func raise(to, by map[string]int64) {
	for k, v := range by {
		to[k] = max(to[k], v)
	}
}
