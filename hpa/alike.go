package hpa

import "github.com/springtide/springtide/fleet"

// Alike are the pods of a service that are alike: of one request, with the load spread evenly over those that serve.
type Alike struct {
	Request fleet.MilliCPU
	// Used is what each measured pod uses; Measured pods serve and were seen to, Unready ones do not yet.
	Used              fleet.MilliCPU
	Measured, Unready int
}

// Reactive is the reactive part on CPU for pods that are alike: what the HorizontalPodAutoscaler would ask for at a utilisation target (0..1]
// before stabilisation and rates. It is the code that sizes every service. It reports false where it cannot judge.
func Reactive(a Alike, current int32, target, tolerance float64) (int32, bool) {
	sum := func(pods int, used fleet.MilliCPU) crowd {
		return crowd{pods: pods, used: int64(used) * int64(pods), requested: int64(a.Request) * int64(pods)}
	}
	u, ok := react(crowds{measured: sum(a.Measured, a.Used), unready: sum(a.Unready, 0)}, current, percentOf(target),
		tolerances{tolerance, tolerance})
	return u.replicas, ok
}

// ReactiveValue is the reactive part on a total that is divided by the replicas, at a target for each.
func ReactiveValue(total, target float64, current int32, tolerance float64) int32 {
	return perReplica(total, target, current, tolerances{tolerance, tolerance})
}
