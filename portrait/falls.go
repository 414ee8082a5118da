package portrait

import (
	"math"
	"time"
)

// Falls are the largest relative falls of the load that history shows (0..1): within five minutes (or one step, if longer), within twice that, and
// within three times. Each is learned by itself: a load that once fell by nine tenths in five minutes, and stayed there, has not fallen by 99 % in ten.
type Falls [3]float64

// within is the fall that history explains within n spans. Each span beyond the first allows a tenth of the rest: history holds a sample of the falls.
func (f *Falls) within(n int) float64 {
	largest := leastFall
	for _, x := range f[:min(n, len(f))] {
		largest = max(largest, x)
	}
	left := (1 - min(largest, 1)) * math.Pow(1-leastFall, float64(n-1))
	if beyond := n - len(f); beyond > 0 {
		left *= math.Pow(1-min(f[0], 1), float64(beyond))
	}
	return 1 - left
}

// known reports whether history shows a fall.
func (f *Falls) known() bool { return f[0] > 0 }

// young reports whether a portrait knows no season yet.
func (p *Portrait) young() bool { return p.Quality.Points < p.Quality.Needed }

// doubts reports whether a fall that history does not explain may be a fault. A young portrait has seen few falls, perhaps no night: it doubts those that are never
// usual.
func (p *Portrait) doubts(f Fall) bool { return !p.young() || f.Fell > mostUsual }

// Fall is a fall that history does not explain.
type Fall struct {
	// Top is the load that it fell from, Ago how long before the judged sample that was measured.
	Top float64
	Ago time.Duration
	// Fell is the relative fall, Explained the largest one that history explains.
	Fell, Explained float64
}

// FallFrom judges a live load against the history of a portrait: whether it lies lower than the falls of history explain, looking back as far as
// reach.
func (p *Portrait) FallFrom(load float64, at time.Time, reach time.Duration) (Fall, bool) {
	seen := p.Quality.LastSample
	if p.Doubt.Quarantined() {
		seen = p.Doubt.Since // what came since is in doubt, and is no level to fall from
	}
	f, fell := p.fallOf(load, p.Level, reach, at, at.Sub(seen), func(ago time.Duration) float64 { return p.Recent.At(at.Add(-ago)) })
	return f, fell && (p.FastestFalls.known() || p.doubts(f))
}

// fallOf compares a load with what was measured before it. A lone spike is no level to fall from, and small values have no falls. After a silence
// as long as the reach, or longer, there is nothing to measure a pace by: then the load is in doubt when it lies below all that is usual (the last level
// before the silence, the same time yesterday, a week ago), whatever falls history knows: where a source begins to lie in the first step after the silence, that step
// is a mean of both, and too low for the next one to fall from.
func (p *Portrait) fallOf(load, level float64, reach time.Duration, at time.Time, silent time.Duration, before func(ago time.Duration) float64) (Fall, bool) {
	lag, compared := max(fallWithin, p.Step), false
	reach = max(reach, lag)
	for n := 1; time.Duration(n)*lag <= reach; n++ {
		f := Fall{Ago: time.Duration(n) * lag, Explained: p.explainedFall(n, at)}
		f.Top = levelAt(f.Ago, p.Step, before)
		compared = compared || f.Top >= 0
		f.Fell = 1 - load/f.Top
		if f.Top > fallShare*level && f.Fell > f.Explained+1e-9 {
			return f, true
		}
	}
	if compared || silent < reach || p.Step <= 0 {
		return Fall{}, false
	}
	for ago := reach; ago <= day; ago += p.Step {
		f := Fall{Ago: ago, Top: levelAt(ago, p.Step, before)}
		if !(f.Top >= 0) {
			continue
		}
		f.Fell, f.Explained = 1-load/f.Top, 1-backShare*usual(f.Top, before)/f.Top
		return f, f.Top > fallShare*level && f.Fell > f.Explained+1e-9
	}
	return Fall{}, false
}

// levelAt is the smaller load of two steps in a row, or that of the later one where the other is not known.
func levelAt(ago, step time.Duration, before func(ago time.Duration) float64) float64 {
	top := before(ago)
	if y := before(ago + step); y < top {
		return y
	}
	return top
}

// explainedFall is the fall within n spans that history explains at a time: by a fall that stayed, or by dips that come back as often.
func (p *Portrait) explainedFall(n int, at time.Time) float64 {
	return max(p.FastestFalls.within(n), usualSwing(p.Dips, n, at, dipsSeen, dipsWithin))
}

// usual is the smallest of a level, the load at the same time yesterday, and that of a week ago.
func usual(level float64, before func(ago time.Duration) float64) float64 {
	for _, ago := range [...]time.Duration{day, week} {
		if y := before(ago); y >= 0 {
			level = min(level, y)
		}
	}
	return level
}

// learnFalls notes the falls into a step that was learned some time before the step i, which comes next: once it is known what became of them, [DefaultHoldFor] later. A load that fell below what is usual and came
// back was an outage, of the service or of its measurement: it must not teach that such falls are normal.
func (s *suspects) learnFalls(i int, level float64) {
	p := s.p
	p.forget(1)
	after := max(1, int(DefaultHoldFor/p.Step))
	j := i - after
	y := s.l.Before(after)
	if since, yes := p.Doubt.unconfirmed(); !(y >= 0) || yes && !s.time(j).Before(since) {
		return // what nothing confirmed is no fall to measure others by
	}
	for n := range p.FastestFalls {
		ago := (n + 1) * s.k
		top := min(s.l.Before(after+ago), s.l.Before(after+ago+1))
		if fell := 1 - y/top; top > fallShare*level && fell > p.FastestFalls[n] && !s.cameBack(after, y, top) {
			p.FastestFalls[n] = fell
		}
	}
}

// cameBack reports whether the load of some steps ago lay below what is usual and was usual again in two steps in a row since.
func (s *suspects) cameBack(steps int, y, top float64) bool {
	least := backShare * usual(top, func(ago time.Duration) float64 { return s.l.Before(steps + int(ago/s.p.Step)) })
	if y >= least {
		return false
	}
	row := 0
	for k := steps - 1; k > 0; k-- {
		if row++; !(s.l.Before(k) >= least) {
			row = 0
		}
		if row > s.k {
			return true
		}
	}
	return false
}

// forget lets the fastest falls and rises of history fade over some steps.
func (p *Portrait) forget(steps int) {
	keep := math.Exp2(-float64(steps) * float64(p.Step) / float64(fallMemory))
	for n := range p.FastestFalls {
		p.FastestFalls[n] *= keep
		p.FastestRises[n] *= keep
	}
}
