package slo

import (
	"math"

	"github.com/springtide/springtide/reason"
)

// Cause is why a minute was bad.
type Cause uint8

// The causes, in the order in which [CauseOf] asks for them, but for the last.
const (
	NoCause   Cause = iota
	Lending         // a replica waited for room that was lent and on its way home
	Room            // a replica waited for a machine, or the pool was full
	Bounds          // the service's own bounds or the operator: maxReplicas, a pause, a mode that does not scale
	Quota           // the tenant's quota cut the growth
	StartUp         // enough replicas were asked for in time, and were not ready in time
	Forecast        // too few replicas were asked for: the load was not foreseen
	Service         // enough replicas were ready: the service's own code, or what it depends on
	Unwatched       // the minute was rebuilt from history, and what held then is not known
	causes
)

// Causes lists what a bad minute can be put down to.
func Causes() []Cause {
	out := make([]Cause, 0, causes-1)
	for c := NoCause + 1; c < causes; c++ {
		out = append(out, c)
	}
	return out
}

// String is the cause as metrics and status name it.
func (c Cause) String() string {
	switch c {
	case Lending:
		return "Lending"
	case Room:
		return "Room"
	case Bounds:
		return "Bounds"
	case Quota:
		return "Quota"
	case StartUp:
		return "StartUp"
	case Forecast:
		return "Forecast"
	case Service:
		return "Service"
	case Unwatched:
		return "Unwatched"
	}
	return ""
}

// Curable reports whether another quantile of the tide can cure such minutes. More insurance asks earlier and for
// more; it makes no room that does not exist, and no code faster.
func (c Cause) Curable() bool { return c == Lending || c == StartUp || c == Forecast }

// Facts are what was known of a service as one of its levels was broken.
type Facts struct {
	// Load is the live load, Carries what one ready replica carries of it while all levels hold; 0 where unknown.
	Load, Carries float64
	// Ready replicas served. Wanted is what the sizing wanted before anything cut or held it; 0 where it was not sized.
	Ready, Wanted int32
	// Foreseen is what had been asked for early enough to be ready by now; see [Record.Foreseen]. Negative where unknown.
	Foreseen int32
	// Waiting are replicas that have no machine.
	Waiting int
	// Recalling says that lent capacity of the service's pool is on its way home.
	Recalling bool
	// Unsized says that Springtide does not size the service: it observes, recommends, is frozen or refuses.
	Unsized bool
	// Limited is what cut the size, Held what held it.
	Limited, Held reason.Code
}

// CauseOf says why a level was broken. It asks first whether replicas were missing: where as many were ready as the
// load needs, more of them would not have helped. Then it asks what kept the missing ones away, the nearest obstacle
// first.
func CauseOf(f Facts) Cause {
	need := f.need()
	switch {
	case f.Ready >= need:
		return Service
	case f.Waiting > 0 && f.Recalling:
		return Lending
	case f.Waiting > 0:
		return Room
	case f.Unsized:
		return Bounds
	}
	if c := f.cut(need); c != NoCause {
		return c
	}
	if f.Foreseen >= need {
		return StartUp
	}
	return Forecast
}

// cut is what kept the sizing from what it wanted; NoCause where it got it. A bound that
// cut a size which would have been too small anyway is no cause: the load was not seen.
func (f *Facts) cut(need int32) Cause {
	if f.Wanted < need {
		return NoCause
	}
	switch f.Limited {
	case reason.PoolRoom:
		return Room
	case reason.Quota:
		return Quota
	case reason.MaxReplicas:
		return Bounds
	}
	switch f.Held {
	case reason.Paused, reason.SetToZero, reason.Blocked, reason.ReplicasUnknown:
		return Bounds
	}
	return NoCause
}

// need is how many replicas the load needs. Where that is not known the sizing's own word stands in.
func (f *Facts) need() int32 {
	if !(f.Carries > 0) || !(f.Load >= 0) || math.IsInf(f.Load, 0) {
		return f.Wanted
	}
	n := math.Ceil(f.Load/f.Carries - 1e-9)
	return int32(min(max(n, 1), math.MaxInt32))
}
