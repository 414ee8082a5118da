package capacity

import (
	"math"
	"math/bits"
	"time"
)

// A spell is a time in which the level breaks minute after minute at loads that it should carry: the knee moved, or
// the cause is not load. It begins when so many of five minutes broke as an objective explains once in 100,000, and
// ends with five that hold in a row. Its broken minutes stay out of the curve until the end says what they were:
//
//   - The level holds again at a lower load: it was load. What was known above the capacity is void, and the lowest
//     load that broke keeps one broken minute, so that it is tried again after a half-life.
//   - More replicas would not have kept the limit: it was not load. The capacity is as before, and the curve
//     learns nothing.
//   - The same load holds again: it was passing. The capacity is as before, and the minutes count as any others.
type spell struct {
	// from is the highest load of a broken minute, least the lowest. before is the capacity at its beginning, and floor
	// half of that: it does not fall further within an hour.
	from, least, before, floor float64
	// since is its first broken minute; notByLoad is the verdict so far.
	since     time.Time
	notByLoad bool
	// good counts minutes that hold in a row, low the broken ones at loads below from/contrast, calm those at half of the
	// capacity and with little CPU.
	good, low, calm int
	// n, x, y, xx, xy and yy are sums over the broken minutes: x is the log of load, y that of value over limit.
	n, x, y, xx, xy, yy float64
}

const (
	spellOf, spellEnd = 5, 5
	spellRare         = 1e-5
	// contrast is the ratio of loads within a spell from which its cause is judged, lows how many minutes are wanted
	// there.
	contrast, lows = 1.5, 5
	// same is how near to the lowest load that broke one that holds is the same; passing is how many minutes of a passing
	// spell count.
	same, passing = 0.97, 5
	// elastic is the most that a level that does not depend on load may do so.
	elastic = 0.2
	// idle is the share of the CPU at which the level used to hold that is little.
	idle = 0.75
	// spellLong is after how many broken minutes a spell is taken for one of load, where it is at its floor and was for
	// long enough to be judged.
	spellLong = 60
	// tail is Student's t of 99.9 % at 8 degrees of freedom, those of the fewest minutes that are judged; see
	// [Level.NotByLoad].
	tail, fewest = 4.501, 10
)

func (s *spell) on() bool { return !s.since.IsZero() }

// startSpell begins a spell with a minute that broke, where the newest ones make it one.
func (l *Level) startSpell(m Minute, t Terms) bool {
	if !rare(bits.OnesCount8(l.newest&(1<<spellOf-1)), 1-l.Objective+l.baseline()) {
		return false
	}
	l.spell = spell{since: m.At, from: m.Load, least: m.Load, before: l.InForce}
	// Without a capacity and a rule nothing is in force, and the spell is judged alone: the load at which a level breaks
	// in a quiet hour is no capacity to size by.
	if l.InForce == 0 && t.Rule > 0 {
		l.InForce = t.Rule
	}
	l.spell.floor = l.InForce / 2
	l.newest = 0
	l.endure(m)
	return true
}

// rare reports whether k broken of spellOf minutes are too rare where a share p breaks.
func rare(k int, p float64) bool {
	if k == 0 {
		return false
	}
	p = min(p, 1)
	sum, choose := 0.0, [spellOf + 1]float64{1, 5, 10, 10, 5, 1}
	for i := k; i <= spellOf; i++ {
		sum += choose[i] * math.Pow(p, float64(i)) * math.Pow(1-p, float64(spellOf-i))
	}
	return sum <= spellRare*(1+1e-9)
}

// step is how far a capacity falls below a load that broke, by value over limit: the further above it, the more is
// missing. At four times the limit a queue is full, and says no more than that.
func step(over float64) float64 {
	switch {
	case over >= 4:
		return 1.3
	case over >= 2:
		return 1.15
	}
	return 1.05
}

// endure takes in a broken minute of a spell.
func (l *Level) endure(m Minute) {
	s := &l.spell
	s.good = 0
	s.from, s.least = max(s.from, m.Load), min(s.least, m.Load)
	over := hugest
	if l.Limit > 0 {
		over = m.Value / l.Limit
	}
	x, y := math.Log(m.Load), math.Log(over)
	s.n, s.x, s.y, s.xx, s.xy, s.yy = s.n+1, s.x+x, s.y+y, s.xx+x*x, s.xy+x*y, s.yy+y*y
	if m.Load*contrast <= s.from {
		s.low++
	}
	if s.notByLoad {
		return
	}
	if s.before > 0 && m.Load*2 <= s.before && m.CPU <= idle*l.Calm {
		s.calm++
	}
	if s.calm >= fewest || s.low >= lows && s.n >= fewest && !l.busy(m) && s.flat() {
		s.notByLoad = true
		l.InForce = s.before
		return
	}
	l.InForce = min(l.InForce, max(s.floor, m.Load/step(over)))
	if s.stuck(m.Load) {
		l.endSpell(false)
	}
}

// stuck reports whether a spell is at its floor and lasts, though it was long enough at low loads to be judged.
// One without a floor began before a rule was known: the next one begins at it.
func (s *spell) stuck(load float64) bool {
	return s.n >= spellLong && (s.floor == 0 || load <= beyond*s.floor) && (s.low == 0 || s.low >= 2*lows)
}

// busy reports whether replicas use more CPU than they ever did while the level held: then they are short of it, and a
// level that stays at the same height at half the load is a full queue.
func (l *Level) busy(m Minute) bool { return l.Calm > 0 && m.CPU > l.Calm*1.02 }

// flat reports whether the level hardly depends on load, and would still be broken at a quarter of it, with the
// steepest slope that its minutes leave open. An elasticity of 0.2 takes 13 % off a level at half of the load; that
// of a queue is load/(1 - load), of a load as a share of what fills it.
func (s *spell) flat() bool {
	mx, my := s.x/s.n, s.y/s.n
	sxx, sxy, syy := s.xx-s.n*mx*mx, s.xy-s.n*mx*my, s.yy-s.n*my*my
	if !(sxx > 1e-9) {
		return false
	}
	slope := sxy / sxx
	miss := max(syy-slope*sxy, 0) / (s.n - 2)
	steepest := max(slope, 0) + tail*math.Sqrt(miss/sxx)
	return steepest <= elastic && my+steepest*(math.Log(s.from/4)-mx) > 0
}

// recover takes in a load that held within a spell, which five of them in a row end.
func (l *Level) recover(load float64) {
	s := &l.spell
	if s.good++; s.good >= spellEnd {
		l.endSpell(load >= same*s.least)
	}
}

// endSpell says what a spell was; again says that the same load holds again.
func (l *Level) endSpell(again bool) {
	s := l.spell
	l.spell = spell{}
	switch {
	case s.notByLoad:
		l.InForce = s.before
	case again:
		l.InForce = s.before
		for range int(min(s.n, passing)) {
			l.Bins = count(l.Bins, s.least, heldCells)
		}
	default:
		if l.InForce > 0 {
			l.void(l.InForce)
		}
		l.Bins = count(l.Bins, s.least, heldCells)
	}
}

// void forgets what held at a load and above.
func (l *Level) void(load float64) {
	for i := range l.Bins {
		if b := &l.Bins[i]; loadOf(b.Key) >= load {
			clear(b.N[:heldCells])
		}
	}
	l.Bins = fade(l.Bins, 0)
}

// NotByLoad reports whether more replicas would not bring the level under its limit: it breaks at low loads too.
//
// Within a spell, a line through its broken minutes (log of value over log of load, at loads that differ by half and
// more) must be flat for each slope that Student's t leaves open at 99.9 %: one judgement in 1,000 is false where
// values scatter independently around the line. Ten broken minutes at half of the
// capacity, and at little CPU, are enough too. Outside of spells the share of minutes that hold at half of the load
// seen must lie below the objective by Wilson's edge at 99.9 %, and minutes at higher loads must not break more than
// twice as often.
func (l *Level) NotByLoad() bool {
	if l.spell.on() {
		return l.spell.notByLoad
	}
	if l.BrokeLow.IsZero() || l.Last.Sub(l.BrokeLow) > 24*time.Hour {
		return false
	}
	low, high := l.lows()
	if low.all() < leastLows || wilson(low.held(), low.all(), surest) >= l.Objective {
		return false
	}
	return high.broken()*low.all() <= 2*low.broken()*high.all()
}

// leastLows is how many minutes at half of the load are wanted to judge them.
const leastLows = 60
