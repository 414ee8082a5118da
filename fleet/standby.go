package fleet

import (
	"cmp"
	"slices"
	"time"
)

// Stages reports whether pods that a scale-in takes stand by first: the operator asks for it, we choose the pods, and
// each of them has the gate.
func (s *Service) Stages() bool {
	return s.Standby > 0 && s.Steerable && s.Gate && s.Ungated() == 0
}

// Ungated counts the pods that our readiness gate cannot take out of traffic.
func (s *Service) Ungated() int {
	n := 0
	for i := range s.Pods {
		if p := &s.Pods[i]; !p.Gated && p.stays() {
			n++
		}
	}
	return n
}

// StandingBy are the pods in standby that no scale-in takes by now, the last one that left traffic first. Where the
// target's controller has still to take pods, those that are not ready go first, by its own rule.
func (s *Service) StandingBy() []*Pod {
	var out []*Pod
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Standby.OK && p.stays() {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil
	}
	slices.SortStableFunc(out, func(a, b *Pod) int {
		return cmp.Or(TrueFirst(!s.Goes(a), !s.Goes(b)), b.Standby.Value.Compare(a.Standby.Value), a.Name.Compare(b.Name))
	})
	if s.Shrinking() {
		return out[:max(len(out)-(s.Standing()-int(s.Desired.Value)), 0)]
	}
	return out
}

// Serving is how many replicas are asked for and do not stand by: the size of the service. It is 0 while replicas are
// not known.
func (s *Service) Serving() int32 { return max(s.Desired.Value-int32(len(s.StandingBy())), 0) }

// stays reports whether a pod exists and does not leave.
func (p *Pod) stays() bool { return !p.Deleting && p.Phase != PodFailed && p.Phase != PodSucceeded }

// Reserves is the room that a pod may ask for at any moment: what it requests, or did before it stood by.
func (p *Pod) Reserves() Resources {
	r := p.Requests
	if p.Standby.OK {
		r.CPU = max(r.CPU, p.FullCPU)
	}
	return r
}

const (
	// standbyPart is the part of its CPU request that a pod keeps in standby, and leastCPU the least of it: probes and
	// connections that end need something.
	standbyPart = 20
	leastCPU    = 10
)

// StandbyCPU is what a pod with a CPU request keeps of it in standby.
func StandbyCPU(cpu MilliCPU) MilliCPU { return min(cpu, max(cpu/standbyPart, leastCPU)) }

// BeforeStandby is the most that a pod can have requested which keeps so much in standby.
func BeforeStandby(cpu MilliCPU) MilliCPU {
	return SatAdd(satMul(max(cpu, leastCPU), standbyPart), standbyPart-1)
}

// StandbyOver reports whether a pod stood by for as long as its service asks for.
func (s *Service) StandbyOver(p *Pod, now time.Time) bool {
	return p.Standby.OK && now.Sub(p.Standby.Value) >= s.Standby
}

// Rolling reports whether pods of another revision are left: the target's controller chooses who leaves meanwhile.
func (s *Service) Rolling() bool {
	for i := range s.Pods {
		if p := &s.Pods[i]; !p.CurrentRevision && p.stays() {
			return true
		}
	}
	return false
}
