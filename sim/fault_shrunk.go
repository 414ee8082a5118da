package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/sim/scenario"
)

const (
	// shrunkOdds is the share of the seeds that draw a source which divides all that it is asked.
	shrunkOdds = 0.25
	// leastShrunk and mostShrunk bound how long it does.
	leastShrunk, mostShrunk = 20 * time.Minute, 4 * time.Hour
	// shrunkAlone is when a service may resume. Simulated replicas use no CPU of their own, so their CPU tells nothing of a fall (what it contradicts is held
	// longer: TestWhatEndsAHold). After [portrait.DefaultHoldFor] its fall counts as true, and the step in which that
	// begins may lie five minutes before it.
	shrunkAlone = 110 * time.Minute
	// shrunkGrace is how long after its begin a cycle may still act on what was measured before.
	// Where the source stops at the same time, the newest sample is of before for as long as samples count, shrunkOld.
	shrunkGrace = 4
	shrunkOld   = 3 * perMinute
	// shrunkLevel is the part of a day's mean load under which a fall is no event to a portrait, with a margin, and
	// shrunkSeen for how long before the lie the load must have been above it: for as long as falls are looked back
	// for, and a step. A rise while the source lies is not seen.
	shrunkLevel = 0.4
	shrunkSeen  = 20 * time.Minute
	// shrunkAsks is how long an ask of the true load counts, the window over which a scale-in is stabilised, and shrunkSpare how much more than it a service must be
	// left with: a tide that is sized by the truth leaves about as much.
	shrunkAsks  = 5 * time.Minute
	shrunkSpare = 1.25
)

// drawShrunk draws a source that divides every signal of every service by a hundred. It has a stream of its own, so the other faults of a seed stay.
func drawShrunk(b *scenario.Built, last time.Duration) []scenario.Fault {
	r := rand.New(rand.NewPCG(b.Seed, 4))
	if b.Faults.Random == 0 || len(b.Faults.Kinds) > 0 || r.Float64() >= shrunkOdds || last < leastShrunk {
		return nil
	}
	span := min(leastShrunk+time.Duration(r.Float64()*float64(mostShrunk-leastShrunk)), last).Truncate(tick)
	after := time.Duration(r.Float64() * float64(last-span)).Truncate(tick)
	return []scenario.Fault{{Kind: scenario.MetricsShrunk, After: config.Duration(after), For: config.Duration(span), Share: 1, Factor: 0.01}}
}

// shrunk is what the source multiplies the signals of the i-th service by, as of a tick.
func (w *World) shrunk(i int, at int32) float64 {
	for k := range w.faults {
		f := &w.faults[k]
		if f.Kind == scenario.MetricsShrunk && at >= f.from && at < f.to && w.draws(f, i) {
			return f.Factor
		}
	}
	return 1
}

// checkShrunk breaks the run when a service loses replicas to a source that lies: replicas that its true load asks for,
// with a quarter to spare. Replicas that a trusted forecast and the truth before the lie gave up are no loss. Nor are
// those that a quota takes back after its notice, which asks no signal.
func (c *controller) checkShrunk() {
	w := c.w
	f := w.on(scenario.MetricsShrunk)
	switch {
	case f == nil || f.Factor >= 1 || w.tick < f.from+shrunkGrace:
		c.before = nil
		return
	case c.before == nil:
		c.before = make([]int32, len(w.services))
		for i := range w.services {
			if w.draws(f, i) && w.loaded(i, f.from) && !w.unseen(i, f.from) {
				c.before[i] = w.services[i].desired
			}
		}
	}
	for i := range w.services {
		s := &w.services[i]
		if c.before[i] > 0 && w.tick < f.from+shrunkOld && w.unseen(i, w.tick) {
			c.before[i] = s.desired
		}
		alone := c.eased[i] && w.tick >= f.from+int32(shrunkAlone/tick)
		if s.desired < c.before[i] && !c.bound(i) && !c.judge.beyond[s.Name.Namespace] && !alone && s.desired < w.asked(i) {
			c.breaks("service %s goes from %d to %d replicas while its metrics say %g of the truth", s.id, c.before[i], s.desired, f.Factor)
		}
		c.before[i] = min(c.before[i], s.desired)
	}
}

// unseen reports whether a service has no measurements as of a tick. The value from which a source that begins to lie fell is
// unknown then, and after a quarter of an hour without a sample any load can be true.
func (w *World) unseen(i int, at int32) bool {
	for k := range w.faults {
		f := &w.faults[k]
		if (f.Kind == scenario.MetricsGaps || f.Kind == scenario.MetricsNaN) && at >= f.from && at < f.to && w.draws(f, i) {
			return true
		}
	}
	return false
}

// asked are the replicas that the true load of a service asked for within the last minutes, and a quarter more.
func (w *World) asked(i int) int32 {
	var rates []float64
	for at := max(0, w.tick-int32(shrunkAsks/tick)); at <= w.tick; at++ {
		rates = append(rates, w.rates.of[i][at]*w.crowdAt(i, at))
	}
	o := w.services[i].Online
	need, _ := needed(o, statesOf(o, w.now.Add(-time.Duration(len(rates)-1)*tick), len(rates)), rates)
	return int32(math.Ceil(shrunkSpare * slices.Max(need)))
}

// loaded reports whether a service has had a load for some time before a tick that is worth a fall, in each five minutes of it: where it had none, it fell before
// the source lied, by the truth, and what comes back while the source lies is not seen.
func (w *World) loaded(i int, at int32) bool {
	load := w.services[i].Load
	mean := func(from, span time.Duration) float64 {
		sum, n := 0.0, 0
		for m := time.Duration(0); m < span; m += time.Minute {
			ago := from + m
			if y := load.At(w.timeOf(at).Add(-ago)); y >= 0 {
				if then := at - int32(ago/tick); span < time.Hour && then >= 0 {
					y *= w.crowdAt(i, then)
				}
				sum += y
				n++
			}
		}
		return sum / float64(n)
	}
	day := mean(0, 24*time.Hour)
	if !(mean(0, time.Minute) > shrunkLevel*day) {
		return false
	}
	for ago := time.Duration(0); ago < shrunkSeen; ago += 5 * time.Minute {
		if !(mean(ago, 5*time.Minute) > shrunkLevel*day) {
			return false
		}
	}
	return true
}
