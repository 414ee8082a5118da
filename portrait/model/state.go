package model

import (
	"fmt"
	"math"
	"time"
)

// State is everything that the methods have learned of one series, apart from the newest values, which the owner keeps: see [State.Open].
type State struct {
	Step      time.Duration
	Cycle     Cycle
	Transform Transform
	Week      Profile
	// Blocks are in rising order of horizon; see [Horizons].
	Blocks []Block
	// Log and Raw are the smoothings of the transformed values and of the values themselves.
	Log, Raw Smoothing
	// Scale is the mean absolute difference of transformed values to those a short period before; Fitted is Seen as of the last fit.
	Scale  float64
	Fitted int
	// Traits identify the kin; Typed is false while they are not known.
	Traits [nTrait]float64
	Typed  bool
	// Seen counts the values that were learned from.
	Seen int
	// SetAside is the number of values in a row that were taken for an outage.
	SetAside int
}

// NewState returns the state of a series of which nothing is known.
func NewState(step time.Duration) State { return NewStateOf(step, CycleOf(step)) }

// NewStateOf returns the state of a series whose periods are known to be others than the step suggests.
func NewStateOf(step time.Duration, c Cycle) State {
	s := State{Step: step, Cycle: c, Week: newProfile(c), Transform: Transform{Shift: 1, Least: 1, Blank: true}}
	for range Horizons(c) {
		s.Blocks = append(s.Blocks, newBlock())
	}
	return s
}

// Clone returns a state that shares nothing with s.
func (s *State) Clone() State {
	c := *s
	c.Week.Slots = append([]float64(nil), s.Week.Slots...)
	c.Week.Weight = append([]float64(nil), s.Week.Weight...)
	c.Blocks = make([]Block, len(s.Blocks))
	for i := range s.Blocks {
		c.Blocks[i] = s.Blocks[i].clone()
	}
	return c
}

// Noise is the usual miss one step ahead, as a share of the load; zero while none was judged.
func (s *State) Noise() float64 {
	if len(s.Blocks) == 0 {
		return 0
	}
	return s.Blocks[0].Miss
}

// Horizons are the last steps of the blocks of horizons. They grow like a geometric row, since a minute more matters at
// five minutes and not at a day. A value beyond the last one counts as in it, with a wider band.
func Horizons(c Cycle) []int {
	u := c.unit()
	var ends []int
	for _, e := range []int{1, 2, u / 48, u / 24, u / 8, u / 2, u, 2 * u} {
		if len(ends) == 0 || e > ends[len(ends)-1] {
			ends = append(ends, e)
		}
	}
	return ends
}

const (
	// judgedADay is about how many forecasts a day are judged in each block: more are so alike that they teach little.
	judgedADay = 72
	// memoryDays is the time after which an old miss counts 1/e of a new one, memoryLeast the least number of misses for it: a 0.99
	// quantile stands on the three worst of them.
	memoryDays, memoryLeast = 10, 300
	// weighEvery is the number of judged forecasts from one weighing to the next.
	weighEvery = 36
)

// every is the number of steps between two forecasts that are judged in one block, perDay how many that makes in a short period.
func (s *State) every() int { return max(1, s.Cycle.unit()/judgedADay) }

func (s *State) perDay() int { return max(1, s.Cycle.unit()/s.every()) }

// memory is the number of misses that a block remembers.
func (s *State) memory() float64 { return float64(max(memoryDays*s.perDay(), memoryLeast)) }

// settled is the number of distances after which a member may be tempered: a long period of them, with weekdays and weekend.
func (s *State) settled() float64 { return float64(likeDays * s.perDay()) }

// Check refuses a state that does not fit its step, as one read from a damaged store might.
func (s *State) Check(step time.Duration) error {
	want := NewState(step)
	switch {
	case s.Step != step || s.Cycle != want.Cycle:
		return fmt.Errorf("learned at step %v with cycle %v, want %v with %v", s.Step, s.Cycle, step, want.Cycle)
	case len(s.Blocks) != len(want.Blocks):
		return fmt.Errorf("%d blocks of horizons, want %d", len(s.Blocks), len(want.Blocks))
	case s.Week.Width != want.Week.Width || len(s.Week.Slots) != len(want.Week.Slots) || len(s.Week.Weight) != len(want.Week.Weight):
		return fmt.Errorf("a weekly profile of %d slots, want %d", len(s.Week.Slots), len(want.Week.Slots))
	}
	for _, p := range [...]Smoothing{s.Log, s.Raw} {
		if p != (Smoothing{}) && !p.usable() {
			return fmt.Errorf("smoothing with %+v, which does not settle", p)
		}
	}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if n := len(b.Ridge); n != 0 && n != nFeature {
			return fmt.Errorf("block %d has a regression of %d coefficients, want %d", i, n, nFeature)
		}
		if len(b.Errors) != triangle || len(b.Weights) != members {
			return fmt.Errorf("block %d of %d members' weights and %d errors, want %d and %d", i, len(b.Weights), len(b.Errors), members, triangle)
		}
		sum := 0.0
		for _, w := range b.Weights {
			if !(w >= 0) {
				return fmt.Errorf("block %d has weight %g, want none below zero", i, w)
			}
			sum += w
		}
		if !(math.Abs(sum-1) < 0.01) {
			return fmt.Errorf("block %d has weights with sum %g, want 1", i, sum)
		}
		for _, k := range []*Sketch{&b.Band.Log, &b.Band.Raw} {
			if len(k.Bins) != 0 && len(k.Bins) != sketchBins {
				return fmt.Errorf("block %d has a sketch of %d bins, want %d", i, len(k.Bins), sketchBins)
			}
		}
	}
	return nil
}
