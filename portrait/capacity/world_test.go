package capacity

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/springtide/springtide/internal/measure"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// queue is a replica as an M/M/c queue, whose curve has a closed form.
type queue struct {
	cores   int
	seconds float64 // mean cost of a request
}

// most is the load at which all cores are busy.
func (q queue) most() float64 { return float64(q.cores) / q.seconds }

// quantile is the level's value at a load; beyond 98 % of the cores a full queue, as of impatient clients.
func (q queue) quantile(load, p float64) float64 {
	rho := load / q.most()
	if rho > 0.98 {
		return 30
	}
	return q.seconds * measure.Quantile(q.cores, rho, p)
}

// truth is the largest load at which the measured p99 of n requests a minute keeps a limit in the objective's share of
// minutes: a sample's 0.99 quantile is the p quantile of the queue, with p around 0.99 as normal numbers are.
func (q queue) truth(limit, objective, n float64) float64 {
	p := 0.99 + deviation(n)*normalQuantile(objective)
	return q.most() * measure.MaxUtilisation(q.cores, min(p, 1-1e-9), limit/q.seconds)
}

func deviation(n float64) float64 { return math.Sqrt(0.99 * 0.01 / n) }

func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// world is a service that is sized by what is learned of it.
type world struct {
	r     *rand.Rand
	level Level
	terms Terms
	queue queue
	// peak is its largest demand, in requests a second; ready are the replicas, and ordered those that come.
	peak    float64
	ready   float64
	ordered []float64
	at      time.Time
	// value overrides the queue's.
	value func(load float64) float64
	// fixed replicas, where above 0.
	fixed float64
	// margin is what a tide's upper quantile asks for beyond its middle.
	margin      float64
	load        float64
	bad, served int
	explore     *Quiet
}

// quietUntil is the hour at which a day's quiet hours end.
const quietUntil = 8

func newWorld(seed uint64, q queue, limit, objective float64) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 60)), queue: q, at: monday, peak: 40 * q.most(), margin: 1.05}
	w.level.Name = "latency-p99"
	w.terms = Terms{Limit: limit, Objective: objective, Rule: 0.6 * q.most()}
	w.ready = w.want()
	return w
}

// demand is a day's wave between a quarter of the peak and all of it, with a noise of 3 %.
func (w *world) demand(at time.Time) float64 {
	hour := at.Sub(at.Truncate(24 * time.Hour)).Hours()
	return w.peak * (0.625 - 0.375*math.Cos(2*math.Pi*(hour-4)/24))
}

// capacity is what sizes: the capacity where it is known, else the rule.
func (w *world) capacity() float64 {
	if w.explore != nil {
		q := *w.explore
		q.Now = w.at
		q.Hours = w.at.Hour() < quietUntil
		return w.level.Explore(q, w.terms.Rule)
	}
	if w.level.InForce > 0 {
		return w.level.InForce
	}
	return w.terms.Rule
}

// want is how many replicas the demand of three minutes ahead asks for, with the margin.
func (w *world) want() float64 {
	if w.fixed > 0 {
		return w.fixed
	}
	margin := w.margin
	if w.explore != nil && w.explore.Slow && w.at.Hour() < quietUntil {
		margin = min(margin, 1.05) // to see a load, a replica must have it
	}
	return math.Ceil(margin * w.demand(w.at.Add(3*time.Minute)) / w.capacity())
}

// minute plays one: replicas come after two minutes and go at once.
func (w *world) minute() {
	w.ordered = append(w.ordered, w.want())
	last := w.ordered[max(0, len(w.ordered)-3):]
	w.ready = min(last[0], w.ordered[len(w.ordered)-1])
	w.ordered = slices.Clone(last)
	demand := w.demand(w.at) * (1 + 0.03*w.r.NormFloat64())
	w.load = demand / w.ready
	p := 0.99 + deviation(60*demand)*w.r.NormFloat64()
	v := 0.0
	if w.value != nil {
		v = w.value(w.load)
	} else {
		v = w.queue.quantile(w.load, min(p, 1-1e-9))
	}
	w.served++
	if v > w.terms.Limit {
		w.bad++
	}
	w.at = w.at.Add(time.Minute)
	cpu := min(w.load/w.queue.most(), 1) * float64(w.queue.cores)
	w.level.Observe(Minute{At: w.at, Load: w.load, Value: v, CPU: cpu}, w.terms)
}

func (w *world) days(n float64) {
	for range int(n * 24 * 60) {
		w.minute()
	}
}
