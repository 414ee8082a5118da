package model

import "math"

// Profile is the decayed weekly profile: for each slot of the long period, how far the value stands above or below the mean of the
// week before it. It remembers more weeks than the history holds, in a tenth of the room.
//
// A slot is touched only when its own phase comes round. So, up to one period ahead, the slot of a target is the same at the origin of
// a forecast as at the target itself, and past origins can be judged without keeping old profiles.
type Profile struct {
	// Width is the number of steps that share a slot; zero means that the series has no long period.
	Width int
	// Slots are the mean differences, Weight the effective number of samples behind each.
	Slots, Weight []float64
}

const (
	// maxSlots bounds the profile at a quarter of an hour for a week; finer shape is the history's own.
	maxSlots = 672
	// profileMemory is the most samples that a slot averages over, in weeks: a change of habits is half learned in about two weeks.
	profileMemory = 3
	// clip bounds how far one sample may pull its slot, in units of the usual miss, so that one odd day leaves little behind.
	clip = 5
)

func newProfile(c Cycle) Profile {
	if c.Long == 0 {
		return Profile{}
	}
	width := (c.Long + maxSlots - 1) / maxSlots
	n := (c.Long + width - 1) / width
	return Profile{Width: width, Slots: make([]float64, n), Weight: make([]float64, n)}
}

func (p *Profile) slot(index int64, c Cycle) int { return int(mod(index, c.Long)) / p.Width }

// at is the slot of a grid index, NaN while nothing is known of it.
func (p *Profile) at(index int64, c Cycle) float64 {
	if p.Width == 0 {
		return math.NaN()
	}
	if s := p.slot(index, c); p.Weight[s] > 0 {
		return p.Slots[s]
	}
	return math.NaN()
}

// mean is the mean of the known slots over the window of n steps before the grid index, NaN where fewer than half are known.
func (p *Profile) mean(n int, before int64, c Cycle) float64 {
	if p.Width == 0 {
		return math.NaN()
	}
	sum, count := 0.0, 0
	phase := int(mod(before-int64(n), c.Long))
	for left := n; left > 0; {
		// All steps up to the end of this slot, of the period or of the window share one value.
		s := phase / p.Width
		run := min(left, (s+1)*p.Width-phase, c.Long-phase)
		if p.Weight[s] > 0 {
			sum, count = sum+float64(run)*p.Slots[s], count+run
		}
		left -= run
		if phase += run; phase == c.Long {
			phase = 0
		}
	}
	if 2*count < n {
		return math.NaN()
	}
	return sum / float64(count)
}

// learn folds the difference of one sample to the mean of its last week into its slot. noise is the usual size of a miss.
func (p *Profile) learn(index int64, c Cycle, difference, noise float64) {
	if p.Width == 0 || math.IsNaN(difference) {
		return
	}
	s := p.slot(index, c)
	share := 1 / float64(p.Width)
	if p.Weight[s] == 0 {
		p.Slots[s], p.Weight[s] = difference, share
		return
	}
	p.Weight[s] = min(p.Weight[s]+share, profileMemory)
	miss := difference - p.Slots[s]
	if noise > 0 {
		miss = max(-clip*noise, min(clip*noise, miss))
	}
	p.Slots[s] += share / p.Weight[s] * miss
}

// without is the slot of a grid index as it would be had it not learned a difference some long periods ago, NaN where that was all it learned:
// a fit to past targets must not read them from the profile.
func (p *Profile) without(index int64, c Cycle, difference float64, ago int) float64 {
	v := p.at(index, c)
	if math.IsNaN(v) {
		return v
	}
	w := max(p.Weight[p.slot(index, c)], 1)
	share := math.Pow(1-1/w, float64(ago)) / w / float64(p.Width)
	if share > 0.9 {
		return math.NaN()
	}
	return (v - share*difference) / (1 - share)
}

func mod(a int64, n int) int64 {
	m := a % int64(n)
	if m < 0 {
		m += int64(n)
	}
	return m
}
