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

// smoother is a smoothing at work on a history. Its state at any past origin can still be asked for.
type smoother struct {
	Smoothing
	short, long int
	// firstLevel is the level before the first value.
	firstLevel float64
	// level and rest are the level and what is left of the error once a value is known.
	level, rest []float64
	// day and week are the components of each value's phase once it is known, those before the first value in front: a short and a long
	// period of them.
	day, week []float64
}

// weekPull shrinks the first components by the phase of the week: few days stand behind each.
const weekPull = 0.8

// newSmoother lays the first components by the first values: the mean, the mean day around it and, where three weeks are known, what is
// left by the phase of the week. It is made in the memory of another one, which is not used any more.
func newSmoother(old smoother, c Cycle, x []float64) *smoother {
	room := len(x) + c.Short
	s := &smoother{short: c.Short, long: c.Long, level: blank(old.level, 0, room), rest: blank(old.rest, 0, room),
		day: blank(old.day, c.Short, room+c.Short)}
	n := max(2*c.Short, len(x)/2/c.Short*c.Short)
	if c.Long > 0 && len(x) >= 2*c.Long+2*c.Short {
		n = c.Long
		if len(x) >= 3*c.Long {
			n = 2 * c.Long
		}
	}
	first := x[:min(n, len(x))]
	sum, known := 0.0, 0
	for _, v := range first {
		if !math.IsNaN(v) {
			sum += v
			known++
		}
	}
	s.firstLevel = sum / float64(max(known, 1))
	firstDay := s.day
	average(first, firstDay, s.firstLevel, nil)
	if c.Long > 0 {
		s.week = blank(old.week, c.Long, room+c.Long)
		if n >= c.Long && len(x) >= 2*c.Long+2*c.Short {
			firstWeek := s.week
			average(first, firstWeek, s.firstLevel, firstDay)
			for i := range firstWeek {
				firstWeek[i] *= weekPull
			}
		}
	}
	return s
}

// average fills out with the mean distance of x by phase from a level and, if given, the day on it; a phase without a value has none.
func average(x, out []float64, level float64, day []float64) {
	count := make([]float64, len(out))
	k, j, base := 0, 0, level
	for _, v := range x {
		if k == len(out) {
			k = 0
		}
		if day != nil {
			if j == len(day) {
				j = 0
			}
			base = level + day[j]
			j++
		}
		if !math.IsNaN(v) {
			count[k]++
			out[k] += (v - base - out[k]) / count[k]
		}
		k++
	}
}

// run starts again with parameters p on all values.
func (s *smoother) run(p Smoothing, x []float64) {
	s.Smoothing = p
	s.level, s.rest = s.level[:0], s.rest[:0]
	s.extend(x)
}

// push takes the next value in.
func (s *smoother) push(v float64) { s.extend([]float64{v}) }

// extend takes the next values in.
func (s *smoother) extend(x []float64) {
	from := len(s.level)
	to := from + len(x)
	now := s.start()
	if from > 0 {
		now = standing{s.level[from-1], s.rest[from-1]}
	}
	s.level, s.rest = stretch(s.level, to), stretch(s.rest, to)
	s.follow(x, from, now, s.level[from:], s.rest[from:])
}

// standing is what a smoothing knows next to the components of its phases: the level and what is left of the newest
// error.
type standing struct{ level, rest float64 }

func (s *smoother) start() standing { return standing{level: s.firstLevel} }

// follow takes in the values from index from on and returns the standing after them; level and rest, unless nil, are
// filled with those between. A gap lets the error fade. A refit follows the whole history hundreds of times, so it
// writes only what the caller asks for, and weeks are left out where the smoothing knows none.
func (s *smoother) follow(x []float64, from int, now standing, level, rest []float64) standing {
	to := from + len(x)
	s.day = stretch(s.day, to+s.short)
	dayThen, day := s.day[from:to], s.day[from+s.short:]
	var weekThen, week []float64
	if s.weekly() {
		s.week = stretch(s.week, to+s.long)
		weekThen, week = s.week[from:to], s.week[from+s.long:]
	}
	left := 1 - s.Level - s.Day - s.Week
	for i, v := range x {
		usual, season := dayThen[i], 0.0
		if weekThen != nil {
			season = weekThen[i]
		}
		if step := v - usual - season - now.level; math.IsNaN(v) { // the level comes last: it is what the next value waits for
			now.rest *= s.Error
		} else {
			now.level += s.Level * step
			usual += s.Day * step
			season += s.Week * step
			now.rest = step * left
		}
		day[i] = usual
		if week != nil {
			week[i] = season
		}
		if level != nil {
			level[i], rest[i] = now.level, now.rest
		}
	}
	return now
}

// stretch is a slice of n values that begins with those of s; the others may be any.
func stretch(s []float64, n int) []float64 {
	if n <= cap(s) {
		return s[:n]
	}
	return append(s, make([]float64, n-len(s))...)
}

// weekly reports whether the smoothing knows weeks.
func (s *smoother) weekly() bool { return s.long > 0 && s.Week > 0 }

// dayAt is the component of value i's phase once it is known, weekAt that of the week.
func (s *smoother) dayAt(i int) float64 { return s.day[i+s.short] }

func (s *smoother) weekAt(i int) float64 {
	if !s.weekly() {
		return 0
	}
	return s.week[i+s.long]
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
	s := newSmoother(smoother{}, c, x)
	e := newExam(c, x)
	best, least := before, math.Inf(1)
	if best.known() {
		least = e.loss(s, best, least)
	}
	try := func(p Smoothing) {
		if !p.usable() {
			return
		}
		if l := e.loss(s, p, least); l < least {
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

// exam is what parameters are judged by: forecasts from origins in the second half of the values.
type exam struct {
	x            []float64
	from, stride int
	ahead        [tuneAhead]int
	// short and long are the steps from a target back to its phase's last known day and week.
	short, long [tuneAhead]int
	// count is the number of targets whose value is known.
	count float64
}

func newExam(c Cycle, x []float64) *exam {
	n := len(x)
	e := &exam{x: x, from: max(c.Short, n/2)}
	e.stride = max(1, (n-e.from)/tuneOrigins) | 1
	for j := range e.ahead {
		h := max(j+1, int(math.Round(math.Pow(float64(2*c.Short), float64(j+1)/tuneAhead))))
		e.ahead[j], e.short[j], e.long[j] = h, periods(h, c.Short)*c.Short, periods(h, c.Long)*c.Long
	}
	for t := e.from; t < n; t += e.stride {
		for _, h := range e.ahead {
			if i := t - 1 + h; i < n && !math.IsNaN(x[i]) {
				e.count++
			}
		}
	}
	return e
}

// loss is the mean absolute miss of parameters p, or infinity once it cannot fall below least any more: most parameters are far from the
// best ones, and it shows early.
func (e *exam) loss(s *smoother, p Smoothing, least float64) float64 {
	if e.count == 0 {
		return math.Inf(1)
	}
	var fade [tuneAhead]float64
	for j, h := range e.ahead {
		fade[j] = math.Pow(p.Error, float64(h))
	}
	s.Smoothing = p
	sum, now := 0.0, s.start()
	for t, done := e.from, 0; t < len(e.x); t += e.stride {
		now = s.follow(e.x[done:t], done, now, nil, nil)
		done = t
		for j, h := range e.ahead {
			i := t - 1 + h
			if i >= len(e.x) {
				break
			}
			if !math.IsNaN(e.x[i]) {
				sum += math.Abs(e.x[i] - (now.level + s.dayAt(i-e.short[j]) + s.weekAt(i-e.long[j]) + fade[j]*now.rest))
			}
		}
		if sum/e.count >= least {
			return math.Inf(1)
		}
	}
	return sum / e.count
}

// dice draws numbers in [0, 1) from a seed.
func dice(seed uint64) func() float64 {
	return func() float64 {
		seed++
		return float64(scatter(seed)>>11) / (1 << 53)
	}
}
