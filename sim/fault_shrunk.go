package sim

import (
	"math/rand/v2"
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
	shrunkGrace = 4
	// shrunkLevel is the part of a day's mean load under which a fall is no event to a portrait, with a margin.
	shrunkLevel = 0.4
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

// checkShrunk breaks the run when a service loses replicas to a source that lies.
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
		alone := c.eased[i] && w.tick >= f.from+int32(shrunkAlone/tick)
		if s.desired < c.before[i] && !c.bound(i) && !alone {
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

// loaded reports whether a service has a load at a tick that is worth a fall. A storm of retries begins with none: its service fell before the source lied,
// by the truth, and what comes back while the source lies is not seen.
func (w *World) loaded(i int, at int32) bool {
	load := w.services[i].Load
	sum, n := 0.0, 0
	for m := range 24 * 60 {
		if y := load.At(w.timeOf(at).Add(-time.Duration(m) * time.Minute)); y >= 0 {
			sum += y
			n++
		}
	}
	return n > 0 && w.crowdAt(i, at)*load.At(w.timeOf(at)) > shrunkLevel*sum/float64(n)
}
