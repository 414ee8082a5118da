package model

import (
	"math"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// Cycle is the pair of periods, in steps, that a series of one step can show. Load follows people, so the periods are the day and the
// week and are known from the step; they need no search, which fails on short and noisy histories.
type Cycle struct {
	// Short is the day, or the week where a step is too long to show a day. Zero means that no cycle fits.
	Short int
	// Long is the week where Short is the day, else zero.
	Long int
}

// CycleOf returns the periods of a step: four samples are the least that can draw a day.
func CycleOf(step time.Duration) Cycle {
	switch {
	case step <= 0:
		return Cycle{}
	case step <= day/4:
		return Cycle{Short: round(day, step), Long: 7 * round(day, step)}
	case step <= week/4:
		return Cycle{Short: round(week, step)}
	}
	return Cycle{}
}

func round(period, step time.Duration) int {
	return int(math.Round(float64(period) / float64(step)))
}

// unit is the span that windows and blocks are measured in: the short period, or a dozen steps where there is none.
func (c Cycle) unit() int {
	if c.Short > 0 {
		return c.Short
	}
	return 12
}

// Span is the number of newest values that the methods look back at. The mean of seven like phases, asked two periods ahead, with a
// window before it and one over, needs eleven short periods (7+2+1+1); where they are few, four weeks steady the choice of the transform.
func (c Cycle) Span() int {
	n := 11 * c.unit()
	if c.Long > 0 {
		n = max(n, 15*c.Short, min(6*c.Long, 1008))
	}
	return max(n, 64)
}
