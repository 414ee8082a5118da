package fleet

import "time"

// Stated is a value that an operator may leave open.
type Stated[T any] struct {
	Value T
	OK    bool
}

// Says is a value that the operator stated.
func Says[T any](v T) Stated[T] { return Stated[T]{v, true} }

// Or is the value, or another one where it was left open.
func (s Stated[T]) Or(otherwise T) T {
	if s.OK {
		return s.Value
	}
	return otherwise
}

// Behavior bounds how fast a service is scaled, as the behavior of a HorizontalPodAutoscaler does.
type Behavior struct{ Up, Down ScalingRules }

// ScalingRules bound one direction. The zero rules are the defaults.
type ScalingRules struct {
	// Stabilization is how far back past recommendations are looked at: the smallest of them counts for scale-out, the
	// largest for scale-in.
	Stabilization Stated[time.Duration]
	// Tolerance is the part by which a metric may miss its target before it asks for another size.
	Tolerance Stated[float64]
	// Select says which of the policies counts; the zero value is SelectMax.
	Select   PolicySelect
	Policies []ScalingPolicy
}

// Bound reports whether the operator bounds the direction, so that the default policies are out of force.
func (r *ScalingRules) Bound() bool { return len(r.Policies) > 0 || r.Select == SelectDisabled }

// PolicySelect says which policy counts.
type PolicySelect string

// The selections.
const (
	SelectMax      PolicySelect = "Max"      // the policy with the largest change
	SelectMin      PolicySelect = "Min"      // the policy with the smallest change
	SelectDisabled PolicySelect = "Disabled" // no change
)

// ScalingPolicy allows a change in a period: a number of pods, or percent of the replicas at its beginning. One of the
// two is set.
type ScalingPolicy struct {
	Pods, Percent int32
	Period        time.Duration
}
