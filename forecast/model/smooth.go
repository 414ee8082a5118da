package model

import "math"

// Smoothing are the parameters of double-seasonal exponential smoothing with a damped error (J. W. Taylor, "Short-term electricity demand
// forecasting using double seasonal exponential smoothing", 2003, with its correction by the last error):
//
//	d  = x − (l + s₁ + s₂)                       what is new
//	l += α·d,  s₁[phase of the day] += δ·d,  s₂[phase of the week] += ω·d
//	forecast h steps ahead: l + s₁ + s₂ + φ^h · (1−α−δ−ω)·d
//
// Of a series only these four are kept: the components are run again over the newest values when they are needed. The zero value says that
// none were found yet.
type Smoothing struct {
	Level, Day, Week, Error float64
}

// known reports whether parameters were found.
func (p Smoothing) known() bool { return p.Level+p.Day+p.Week > 0 }

// usable reports whether the recursion is stable with the parameters.
func (p Smoothing) usable() bool {
	sum := p.Level + p.Day + p.Week
	return p.Level >= 0 && p.Day >= 0 && p.Week >= 0 && sum > 0 && sum < 0.98 && p.Error >= 0 && p.Error < 1
}

// smoother is a smoothing at work on a history. What it knew at any past origin can still be asked for.
type smoother struct {
	Smoothing
	short, long int
	// firstLevel, firstDay and firstWeek are the components before the first value.
	firstLevel          float64
	firstDay, firstWeek []float64
	// level and rest are the level and what is left of the error once a value is known; day and week are the components of its phases.
	level, rest, day, week []float64
}

// weekPull shrinks the first components by the phase of the week: few days stand behind each.
const weekPull = 0.8

// newSmoother lays the first components by the first values: the mean, the mean day around it and, where three weeks are known, what is
// left by the phase of the week.
func newSmoother(c Cycle, x []float64) *smoother {
	s := &smoother{short: c.Short, long: c.Long, firstDay: make([]float64, c.Short)}
	n := max(2*c.Short, len(x)/2/c.Short*c.Short)
	if c.Long > 0 && len(x) >= 2*c.Long+2*c.Short {
		n = c.Long
		if len(x) >= 3*c.Long {
			n = 2 * c.Long
		}
	}
	first := x[:min(n, len(x))]
	known := 0.0
	for _, v := range first {
		if !math.IsNaN(v) {
			known++
			s.firstLevel += (v - s.firstLevel) / known
		}
	}
	average(first, s.firstDay, func(int) float64 { return s.firstLevel })
	if c.Long > 0 {
		s.firstWeek = make([]float64, c.Long)
		if n >= c.Long && len(x) >= 2*c.Long+2*c.Short {
			average(first, s.firstWeek, func(i int) float64 { return s.firstLevel + s.firstDay[i%c.Short] })
			for i := range s.firstWeek {
				s.firstWeek[i] *= weekPull
			}
		}
	}
	return s
}

// average fills out with the mean distance of x from a base by phase; a phase without a value has none.
func average(x, out []float64, base func(i int) float64) {
	count := make([]float64, len(out))
	for i, v := range x {
		if k := i % len(out); !math.IsNaN(v) {
			count[k]++
			out[k] += (v - base(i) - out[k]) / count[k]
		}
	}
}

// run starts again with parameters p on all values.
func (s *smoother) run(p Smoothing, x []float64) {
	s.Smoothing = p
	if room := len(x) + s.short; cap(s.level) < room {
		s.level, s.rest, s.day = make([]float64, 0, room), make([]float64, 0, room), make([]float64, 0, room)
		if s.long > 0 {
			s.week = make([]float64, 0, room)
		}
	}
	s.level, s.rest, s.day, s.week = s.level[:0], s.rest[:0], s.day[:0], s.week[:0]
	for _, v := range x {
		s.push(v)
	}
}

// push takes the next value in; a gap lets the error fade.
func (s *smoother) push(v float64) {
	i := len(s.level)
	level, rest := s.firstLevel, 0.0
	if i > 0 {
		level, rest = s.level[i-1], s.rest[i-1]
	}
	day, week := s.dayAt(i-s.short), s.weekAt(i-s.long)
	if math.IsNaN(v) {
		rest *= s.Error
	} else {
		d := v - level - day - week
		level += s.Level * d
		day += s.Day * d
		week += s.Week * d
		rest = d * (1 - s.Level - s.Day - s.Week)
	}
	s.level, s.rest, s.day = append(s.level, level), append(s.rest, rest), append(s.day, day)
	if s.long > 0 {
		s.week = append(s.week, week)
	}
}

func (s *smoother) dayAt(i int) float64 {
	if i >= 0 {
		return s.day[i]
	}
	return s.firstDay[int(mod(int64(i), s.short))]
}

func (s *smoother) weekAt(i int) float64 {
	switch {
	case s.long == 0 || s.Week == 0:
		return 0
	case i >= 0:
		return s.week[i]
	}
	return s.firstWeek[int(mod(int64(i), s.long))]
}

// at is the forecast of value i by the first t values; k and kw are the periods that lead from i back to a known phase.
func (s *smoother) at(t, i, k, kw int) float64 {
	h := float64(i - t + 1)
	return s.level[t-1] + s.dayAt(i-k*s.short) + s.weekAt(i-kw*s.long) + math.Pow(s.Error, h)*s.rest[t-1]
}

const (
	// tuneFirst is the number of parameter sets that are tried at random the first time, tuneNear how many near the best one, each time.
	tuneFirst, tuneNear = 60, 30
	// tuneOrigins is about how many origins judge a set, tuneAhead how many horizons of each.
	tuneOrigins, tuneAhead = 60, 12
)

// tune looks for the parameters whose forecasts of up to two days would have missed x least, in the mean of absolute errors over origins in
// the second half of the values, beginning with those that were best before. The search is random with fixed seeds, so that the same values
// give the same parameters: four numbers with many near-equal valleys leave little to gradients.
func tune(c Cycle, before Smoothing, x []float64, seed uint64) Smoothing {
	s := newSmoother(c, x)
	best, least := before, math.Inf(1)
	if best.known() {
		s.run(best, x)
		least = s.loss(x)
	}
	try := func(p Smoothing) {
		if !p.usable() {
			return
		}
		s.run(p, x)
		if l := s.loss(x); l < least {
			best, least = p, l
		}
	}
	draw := dice(seed)
	weekly := 0.0
	if s.long > 0 && len(x) >= 2*s.long {
		weekly = 1
	}
	for i := range tuneFirst {
		try(Smoothing{Level: math.Pow(10, -4+3.8*draw()), Day: math.Pow(10, -3+2.6*draw()),
			Week: float64(i%2) * weekly * math.Pow(10, -3+2.6*draw()), Error: 1 - math.Pow(10, -3*draw())})
	}
	for i := range tuneNear {
		width := 0.8
		if i > tuneNear/2 {
			width = 0.3
		}
		near := func(v float64) float64 { return v * math.Exp(width*2*(draw()-0.5)) }
		p := Smoothing{Level: near(best.Level), Day: near(best.Day), Week: near(best.Week), Error: 1 - min(1, near(1-best.Error))}
		try(p)
	}
	return best
}

// loss is the mean absolute miss of the present parameters over origins in the second half of the values.
func (s *smoother) loss(x []float64) float64 {
	n := len(x)
	from, reach := max(s.short, n/2), 2*s.short
	stride := max(1, (n-from)/tuneOrigins) | 1
	var ahead [tuneAhead]int
	var fade [tuneAhead]float64
	for j := range ahead {
		ahead[j] = max(j+1, int(math.Round(math.Pow(float64(reach), float64(j+1)/tuneAhead))))
		fade[j] = math.Pow(s.Error, float64(ahead[j]))
	}
	sum, count := 0.0, 0.0
	for t := from; t < n; t += stride {
		for j, h := range ahead {
			i := t - 1 + h
			if i >= n {
				break
			}
			if math.IsNaN(x[i]) {
				continue
			}
			f := s.level[t-1] + s.dayAt(i-periods(h, s.short)*s.short) + s.weekAt(i-periods(h, s.long)*s.long) + fade[j]*s.rest[t-1]
			sum += math.Abs(x[i] - f)
			count++
		}
	}
	if count == 0 {
		return math.Inf(1)
	}
	return sum / count
}

// dice draws numbers in [0, 1) from a seed.
func dice(seed uint64) func() float64 {
	return func() float64 {
		seed++
		return float64(scatter(seed)>>11) / (1 << 53)
	}
}
