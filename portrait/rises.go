package portrait

import (
	"math"
	"time"
)

const (
	// leastRise is the relative rise (1 − before/after) that is never in doubt: half as much again. hpa answers every rise at once; the doubt is about
	// what is learned of it, and half as much again for half an hour is forgotten soon.
	leastRise = 1.0 / 3
	// BeyondCores is how many times the CPU that machines and limits can give is no measurement any more. Rates overshoot at the edges of their
	// windows, and a rate still counts the pods that have just left.
	BeyondCores = 1.5
	// BeyondCarried is how many times the largest rate that a replica ever carried is far above it. A replica that is sized for 60 % of its CPU
	// carries 1.7 times as much at all of it.
	BeyondCarried = 2
	// countedFor is for how long the replicas that the API counts stand for those of a step; mostGone is how many times as many there may have been before.
	countedFor = 30 * time.Minute
	mostGone   = 5
	// carriedGrowth bounds what one step may add to the largest rate that a replica carried: a count of replicas that is wrong for a while must not
	// disarm the guard.
	carriedGrowth = 1.1
)

// rose reports whether the load of a step lies higher than the rises of history explain, and what it rose from.
func (s *suspects) rose(i int) (base float64, rose bool) {
	most := len(s.p.FastestRises)
	for n := 1; n <= most; n++ {
		if from, by := s.risen(i, s.before(i, n)); by > s.p.explainedRise(n, s.time(i))+1e-9 {
			return from, true
		}
	}
	if s.before(i, most) >= 0 {
		return 0, false
	}
	// After a silence there is nothing to measure a pace by: the load is compared with the last level before it.
	for ago := most; ago*s.k <= int(day/s.p.Step); ago++ {
		if from := s.before(i, ago); from >= 0 {
			from, by := s.risen(i, from)
			return from, by > s.p.explainedRise(most, s.time(i))+1e-9
		}
	}
	return 0, false
}

// before is the load some spans before a step, the larger of two steps in a row: a lone dip is no level to rise from. NaN where neither is known.
func (s *suspects) before(i, spans int) float64 {
	return larger(s.at(i-spans*s.k), s.at(i-spans*s.k-1))
}

// explainedRise is the rise within n spans that history explains at a time: twice the rise that stayed, or that came
// and went. The measured load of a crowd that saturates its replicas is what they can carry, so the next one shows more
// of it.
func (p *Portrait) explainedRise(n int, at time.Time) float64 {
	known := max(p.FastestRises.within(n), usualSwing(p.Bursts, n, at, burstsSeen, burstsWithin))
	if known <= leastRise {
		return leastRise
	}
	return 1 - (1-known)/2
}

// risen is the relative rise of the load of a step above an earlier one and all that is usual, and the load that it
// rose from. A load that is small against the last day is no rise.
func (s *suspects) risen(i int, from float64) (base, by float64) {
	y := s.at(i)
	if !(y > fallShare*s.l.Level()) || !(from >= 0) {
		return 0, 0
	}
	from = s.usualMost(i, from)
	return from, 1 - from/y
}

// usualMost is the largest of a level, and of the loads about the same time yesterday and a week ago.
func (s *suspects) usualMost(i int, level float64) float64 {
	for _, ago := range [...]time.Duration{day, week} {
		for k := -1; k <= 1; k++ {
			if j := i - int(ago/s.p.Step) + k; j < s.now && (s.p.Doubt.Since.IsZero() || s.time(j).Before(s.p.Doubt.Since)) {
				level = larger(level, s.at(j))
			}
		}
	}
	return level
}

// larger is the larger of two numbers, or the one that is known.
func larger(a, b float64) float64 {
	if b > a || math.IsNaN(a) {
		return b
	}
	return a
}

// riseOver looks for the end of the doubt of a rise that begins with the step i. Where the load is usual again, its samples were a fault. Where it
// stays and replicas have come that can serve it, it was a crowd: it is learned from the first of those steps on. One step is not enough for
// either, since the step in which a fault ends is a mean of both. After a day it is learned in any case, unless its CPU is impossible.
func (s *suspects) riseOver(i, n int) bool {
	h := &s.p.Doubt
	row, served, most := 0, 0, 0.0
	for j := i; j < n; j++ {
		y := s.at(j)
		if !math.IsNaN(y) {
			s.p.Quality.LastSample = s.time(j + 1)
		}
		most = max(most, y)
		if s.low(j) {
			return s.turns(j, n, false)
		}
		if row++; !(y <= s.usualMost(j, h.Top)/backShare) {
			row = 0
		}
		if served++; row > 0 || !s.served(j) {
			served = 0
		}
		switch {
		case row > s.k:
			s.faultEnd = j - row + 1
			s.p.Bursts = noteSwing(s.p.Bursts, h.Since, s.swing(i, j, func(y float64) float64 { return 1 - h.Top/y }))
		case served > s.k:
			s.faultEnd = j - served + 1
		case s.time(j+1).Sub(h.Since) < heldAtMost:
			continue
		case s.beyond(j): // a lie for a day is one on the next day, too
			return s.turns(j+1, n, true)
		}
		*h = h.first()
		s.judged = j + 1
		return true
	}
	return false
}

// served reports whether the replicas could have served the load of a step. Older load was served by the replicas of
// its time, which only the history knows: few may be left of them at night, or after a controller was away. A source
// that lies of the load may lie of them too, so what the API counts now bounds them.
func (s *suspects) served(i int) bool {
	y := s.at(i)
	if math.IsNaN(y) || !(s.pods > 0) {
		return true
	}
	pods := s.podsAt(i)
	return s.p.couldServe(y, pods, s.most*pods/s.pods)
}

// podsAt is how many replicas may have served a step.
func (s *suspects) podsAt(i int) float64 {
	if then := s.ready.At(s.time(i)); then > s.pods && s.end.Sub(s.time(i)) > countedFor {
		return min(then, mostGone*s.pods)
	}
	return s.pods
}

// beyond reports whether the CPU of a step is more than the machines and limits of its replicas can give: whatever else is true, the source lies.
func (s *suspects) beyond(i int) bool {
	return s.most > 0 && s.pods > 0 && s.cpu.At(s.time(i)) > BeyondCores*s.most*s.podsAt(i)/s.pods
}

// couldServe reports whether some replicas could have served a load: whether it costs no more CPU than their machines
// and limits can give, and whether it is not far above the largest rate that a replica ever carried. An unknown value
// refuses nothing.
func (p *Portrait) couldServe(load, pods, cores float64) bool {
	if p.Signal == CPU {
		return !(cores > 0) || load <= BeyondCores*cores
	}
	if cores > 0 && p.CPUPerLoad.OK && p.CPUPerLoad.Value*load > BeyondCores*cores {
		return false
	}
	return !(p.Carried > 0) || load <= BeyondCarried*p.Carried*pods
}

// CouldServe reports whether some ready replicas could have served a load in the portrait's signal, whose machines and limits can give them so many cores
// (0 where that is not known).
func (p *Portrait) CouldServe(load, pods, cores float64) bool { return p.couldServe(load, pods, cores) }

// carry notes the load that a replica carried in a step.
func (p *Portrait) carry(load, ready float64) {
	each := load / ready
	if p.Signal != Requests || !(ready > 0) || !(each >= 0) || each > hugest {
		return
	}
	most := math.Inf(1)
	if p.Carried > 0 {
		p.Carried *= math.Exp2(-float64(p.Step) / float64(fallMemory))
		most = carriedGrowth * p.Carried
	}
	p.Carried = max(p.Carried, min(each, most))
}

// learnRises notes the rises into the step that was learned last.
func (s *suspects) learnRises(i int) {
	s.now = i + 1
	for n := range s.p.FastestRises {
		if _, by := s.risen(i, s.before(i, n+1)); by > s.p.FastestRises[n] {
			s.p.FastestRises[n] = by
		}
	}
}
