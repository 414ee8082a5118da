package forecast

import (
	"math"
	"time"

	"github.com/springtide/springtide/series"
)

// Skill is how well tides did, as sums, so that the skills of many services and hours add up.
type Skill struct {
	// Steps counts the steps that were compared, by how many quantile paths each had.
	Steps, Paths int
	// Loss is the sum of twice the pinball losses over all paths, Load the sum of |actual| over all steps.
	Loss, Load float64
	// Under90 counts the steps whose load was at or below the 0.9 quantile, AbsoluteError sums the errors of the 0.5 quantile.
	Under90       int
	AbsoluteError float64
}

// Score compares a tide with what came, from one time to another: of a tide that is made again every minute only the
// stretch until the next one should count. Steps whose actual load is a gap are left out.
func Score(t *Tide, actual series.Series, from, to time.Time) Skill {
	var s Skill
	if len(t.Paths) == 0 || t.Step <= 0 {
		return s
	}
	aligned := actual.Align(t.Step, series.Mean)
	if aligned.Len() == 0 {
		return s
	}
	s.Paths = len(t.Quantiles)
	for j := range t.Paths[0] {
		at := t.Start.Add(time.Duration(j) * t.Step)
		y := aligned.At(at)
		if at.Before(from) || !at.Before(to) || math.IsNaN(y) {
			continue
		}
		s.Steps++
		s.Load += math.Abs(y)
		for i, q := range t.Quantiles {
			e := y - t.Paths[i][j]
			s.Loss += 2 * max(q*e, (q-1)*e)
		}
		s.AbsoluteError += math.Abs(y - t.step(j, 0.5))
		if y <= t.step(j, 0.9) {
			s.Under90++
		}
	}
	return s
}

// Add returns the skill over both. Skills of tides with different numbers of quantiles do not add up.
func (s Skill) Add(o Skill) Skill {
	return Skill{Steps: s.Steps + o.Steps, Paths: max(s.Paths, o.Paths), Loss: s.Loss + o.Loss, Load: s.Load + o.Load,
		Under90: s.Under90 + o.Under90, AbsoluteError: s.AbsoluteError + o.AbsoluteError}
}

// WQL is the weighted quantile loss, the mean over the quantiles; NaN while there was no load.
func (s Skill) WQL() float64 {
	if !(s.Load > 0) || s.Paths == 0 {
		return math.NaN()
	}
	return s.Loss / s.Load / float64(s.Paths)
}

// Coverage90 is the share of steps at or below the 0.9 quantile; NaN while there were none.
func (s Skill) Coverage90() float64 {
	if s.Steps == 0 {
		return math.NaN()
	}
	return float64(s.Under90) / float64(s.Steps)
}
