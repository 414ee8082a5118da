package capacity

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/springtide/springtide/reason"
)

// Level is what was learned of one level. It is a value: [Level.Clone] before a copy learns on.
type Level struct {
	// Name is the level's key within its service: latency-p99, errors, cpu.
	Name string
	// Limit and Objective are those of the newest minute.
	Limit, Objective float64
	// Bins are the counts, by rising load.
	Bins []bin
	// InForce is the capacity that sizes; 0 while the rule does.
	InForce float64
	// Last is the newest minute that was seen, Broke the newest broken one, and BrokeLow that at no more than half of
	// the load seen.
	Last, Broke, BrokeLow time.Time
	// Calm is the most CPU of a replica while the level held, in cores.
	Calm float64
	// Left are the minutes that were kept apart, by reason; they fade too.
	Left [aparts]float64
	// newest are the newest minutes that taught, the last in the lowest bit: set where one broke below the capacity.
	newest uint8
	spell  spell
}

const (
	// risesDaily bounds how fast a capacity rises.
	risesDaily = 1.10
	// pause is after how long without minutes those before say nothing of the ones to come.
	pause = 10 * time.Minute
)

// Clone is a copy that learns by itself.
func (l *Level) Clone() Level {
	c := *l
	c.Bins = slices.Clone(l.Bins)
	return c
}

func hourOf(t time.Time) int64 { return int64(math.Floor(float64(t.Unix()) / 3600)) }

// Observe takes a minute in. Minutes come in the order of time: one that is not after the newest is left out, so that
// a history that is read twice teaches once.
func (l *Level) Observe(m Minute, t Terms) {
	if !t.sound() || !m.At.After(l.Last) {
		return
	}
	l.agree(t)
	l.pass(m.At, t)
	// A minute in which a limit holds replicas back shows no load to be carried; a level that breaks in it is broken for
	// users too.
	broke := m.teaches() && cellOf(m.Value, l.Limit) >= heldCells
	if m.Apart != 0 && !(m.Apart == Throttled && broke) {
		l.keepApart(m.Apart)
		return
	}
	if !m.teaches() {
		return
	}
	cell := cellOf(m.Value, l.Limit)
	if cell < heldCells {
		l.hold(m, cell)
	} else {
		l.suffer(m, cell, t)
	}
}

func (l *Level) keepApart(why Apart) {
	for i := range l.Left {
		if why&(1<<i) != 0 {
			l.Left[i]++
		}
	}
}

// agree takes new terms over. A tighter limit leaves no capacity in force but what the curve shows under it.
func (l *Level) agree(t Terms) {
	if t.Limit == l.Limit {
		l.Objective = t.Objective
		return
	}
	was := l.Limit
	l.Limit, l.Objective, l.spell, l.newest = t.Limit, t.Objective, spell{}, 0
	if was > 0 && t.Limit > 0 {
		l.Bins = limited(l.Bins, was/t.Limit)
	} else {
		l.Bins = nil
	}
	if t.Limit < was {
		low, _ := l.band(t.Objective)
		l.InForce = min(l.InForce, low)
	}
}

// pass lets time go by up to a minute: weights fade, and the capacity moves, both at full hours, so that it makes no
// difference in which pieces a history comes.
func (l *Level) pass(at time.Time, t Terms) {
	hours := hourOf(at) - hourOf(l.Last)
	if l.Last.IsZero() {
		hours = 0
	}
	if at.Sub(l.Last) > pause {
		l.newest = 0
	}
	l.Last = at
	if hours <= 0 {
		return
	}
	l.Bins = fade(l.Bins, hours)
	keep := math.Exp2(-float64(hours) / halfLife.Hours())
	for i := range l.Left {
		l.Left[i] *= keep
	}
	l.Calm *= keep
	if !l.spell.on() && !l.NotByLoad() {
		l.settle(t, float64(hours)/24)
	}
}

// settle moves the capacity in force to the band: up to its lower end at the pace that days allow, down to its upper
// end at once. Evidence that fades lowers nothing, but for the load that was seen: below the rule it is the rule
// that sizes again.
func (l *Level) settle(t Terms, days float64) {
	low, high := l.band(l.Objective)
	switch {
	case l.InForce == 0 && !(t.Rule > 0):
		// The load of a quiet hour is shown to hold first. It is no capacity: it would size for a hundred times too many
		// replicas, and rise by a tenth a day. The rule says how much has to be seen.
	case l.InForce == 0 && low > t.Rule:
		l.InForce = min(low, t.Rule*pace(days))
	case l.InForce == 0 && high <= t.Rule:
		l.InForce = max(low, min(high, t.Rule))
	case l.InForce == 0:
	case low > l.InForce:
		l.InForce = min(low, l.InForce*pace(days))
	case high < l.InForce:
		l.InForce = high
	case l.InForce > t.Rule:
		if l.InForce = min(l.InForce, seenBeyond*l.seen()); l.InForce <= t.Rule {
			l.InForce = 0
		}
	}
}

// pace is how far a capacity may rise within a time. Minutes that were missed give no leap: it is of one day at most.
func pace(days float64) float64 { return math.Pow(risesDaily, min(days, 1)) }

// hold takes in a minute in which the level held.
func (l *Level) hold(m Minute, cell int) {
	l.Bins = count(l.Bins, m.Load, cell)
	l.newest <<= 1
	if m.CPU > l.Calm && m.CPU < hugest {
		l.Calm = m.CPU
	}
	if l.spell.on() {
		l.recover(m.Load)
	}
}

// suffer takes in a minute in which it broke.
func (l *Level) suffer(m Minute, cell int, t Terms) {
	l.Broke = m.At
	if m.Load <= lowShare*l.seen() {
		l.BrokeLow = m.At
	}
	if l.spell.on() {
		l.endure(m)
		return
	}
	l.newest <<= 1
	if l.InForce == 0 || m.Load <= beyond*l.InForce {
		l.newest |= 1
	}
	if l.startSpell(m, t) {
		return
	}
	l.Bins = count(l.Bins, m.Load, cell)
	if l.InForce > 0 && !l.NotByLoad() {
		if _, high := l.band(l.Objective); high < l.InForce {
			l.InForce = high
		}
	}
}

// Estimate is the capacity of a replica by one level.
type Estimate struct {
	// Load is what a replica carries; 0 where it is not known, and Why says why not.
	Load float64
	Why  reason.Reason
	// Low is the largest load that was shown to hold, High the smallest that was shown to break; 0 where none was.
	Low, High float64
	// Seen is the largest load that was seen of a replica for some minutes, Minutes the weight of all that taught.
	Seen, Minutes float64
}

// Capacity is the load that a replica carries at an objective. For another objective than the one that was learned
// for, the band of that objective bounds it.
func (l *Level) Capacity(objective float64) Estimate {
	low, high := l.band(objective)
	e := Estimate{Load: l.InForce, Low: low, Seen: l.seen(), Minutes: l.minutes()}
	if !math.IsInf(high, 1) {
		e.High = high
		if objective != l.Objective {
			e.Load = min(e.Load, high)
		}
	}
	if objective > l.Objective && low > 0 {
		e.Load = min(e.Load, low)
	}
	if e.Load == 0 {
		e.Why = l.unknown(&e, objective)
	}
	return e
}

func (l *Level) minutes() float64 {
	n := 0.0
	for i := range l.Bins {
		n += l.Bins[i].all()
	}
	return n
}

// Needed is how many minutes in a row must hold to show an objective, where their values lie just below the limit.
func Needed(objective float64) float64 {
	return math.Ceil(sure * sure * objective / (1 - objective))
}

// unknown says what is missing.
func (l *Level) unknown(e *Estimate, objective float64) reason.Reason {
	left := 0.0
	for _, n := range l.Left {
		left += n
	}
	switch {
	case l.NotByLoad():
		return reason.Of(reason.LevelNotByLoad, l.Name)
	case l.Last.IsZero() || e.Minutes < faded && left < 1:
		return reason.Of(reason.LevelNotMeasured, l.Name)
	case e.Minutes < faded:
		return reason.Of(reason.MinutesApart, rounded(left), l.Name)
	case e.Low == 0:
		return reason.Of(reason.FewMinutes, rounded(e.Minutes), l.Name, rounded(Needed(objective)))
	}
	return reason.Of(reason.LoadNotSeen, l.Name, figures(e.Low))
}

func rounded(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

// figures renders a load with three significant digits.
func figures(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
