package forecast

import (
	"time"

	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/signal"
)

// Options tune a projection. The zero value means the defaults.
type Options struct {
	// Horizon is how far the tide reaches, 24 h by default and at most 14 days.
	Horizon time.Duration
	// Steps, where positive, is the length of the tide instead of Horizon and without its limit: for series that are no load of a service.
	Steps int
	// Quantiles in any order, strictly between 0 and 1; 0.1, 0.5, 0.9, 0.95 and 0.99 by default.
	Quantiles []float64
	// MaxStale is the age of the newest sample beyond which the tide is not trusted: the longer of 15 minutes and three steps by default,
	// which lets two scrapes fail.
	MaxStale time.Duration
	// LeastScore is the quality below which the tide is not trusted, 0.5 by default: half of the last week must be known.
	LeastScore float64
	// Kin is what many services have taught together; nil where there is none.
	Kin *model.Groups
	// Room is memory to work in; nil takes new memory.
	Room *model.Room
}

const (
	defaultHorizon  = 24 * time.Hour
	longestHorizon  = 14 * 24 * time.Hour
	defaultMinScore = 0.5
)

// defaultQuantiles are what sizing and dashboards ask for.
func defaultQuantiles() []float64 { return []float64{0.1, 0.5, 0.9, 0.95, 0.99} }

func (o Options) horizon() time.Duration {
	if o.Horizon <= 0 {
		return defaultHorizon
	}
	return min(o.Horizon, longestHorizon)
}

func (o Options) maxStale(step time.Duration) time.Duration {
	if o.MaxStale > 0 {
		return o.MaxStale
	}
	return signal.StaleHistory(step)
}

func (o Options) leastScore() float64 {
	if o.LeastScore > 0 {
		return o.LeastScore
	}
	return defaultMinScore
}
