package measure

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Step is the longest step that a queue may be played at: shorter than any start-up, and fine enough for "any 15 s of a minute".
const Step = 15 * time.Second

// Patience is how long a request waits before its client gives up, where a station says nothing else.
const Patience = 30 * time.Second

// Station is what one replica of a service can do and what the service promises.
type Station struct {
	// Cores are the cores of one pod, CPUSeconds the mean cost of a request: one core for that long.
	Cores      int
	CPUSeconds float64
	// Workers are the requests that a pod serves at once, ServiceTime the mean time in seconds that each holds one of
	// them. They are Cores and CPUSeconds when 0: a request that waits for nothing else while it is served. Otherwise
	// the workers are busy before the cores are: Workers × CPUSeconds is at most Cores × ServiceTime.
	Workers     int
	ServiceTime float64
	// Burst is how far a pod may use more than its cores while its machine has some to spare, as a multiple of them; 1
	// when 0. It is for services that promise a utilisation: one that promises a latency is computed by the queue of
	// its own cores.
	Burst float64
	// Idle is the share of a pod's cores that a ready pod uses which serves nothing; it competes with no request.
	Idle float64
	// Patience is how long a request waits before its client gives up; 30 s when 0.
	Patience time.Duration
	// Pauses are a garbage collector's, Cold is what a young pod is like.
	Pauses Pauses
	Cold   Cold
	// SLO is the promise that the service is judged by.
	SLO fleet.SLO
}

// Capacity is the rate that one ready replica carries while every level of its SLO holds.
func (s *Station) Capacity() float64 { return s.CapacityAt(Moment{}) }

// CapacityAt is Capacity at a moment, on pods that are warm. It is 0 where no number of replicas keeps the SLO.
func (s *Station) CapacityAt(m Moment) float64 {
	m.Cold = 0
	rate := math.Inf(1)
	for i := range s.SLO.Levels {
		rate = min(rate, s.capacityOf(&s.SLO.Levels[i], m))
	}
	if most, _ := s.rates(m, 1); s.SLO.Level(fleet.LevelNameErrors) != nil {
		rate = min(rate, most) // beyond it requests wait until their clients give up
	}
	return rate
}

// capacityOf is the rate up to which a level holds.
func (s *Station) capacityOf(l *fleet.Level, m Moment) float64 {
	workers, cores := s.rates(m, 1)
	switch {
	case l.Name == fleet.LevelNameCPU:
		return (l.Limit - s.Idle) * float64(s.Cores) / s.cpu(m)
	case l.Kind != fleet.LevelLatency:
		return math.Inf(1)
	case s.Workers == 0 && s.Pauses.Every == 0:
		busy := MaxUtilisation(s.Cores, l.Quantile, (l.Limit-m.Dependency.Seconds())/s.service(m))
		return busy * float64(s.Cores) / s.service(m)
	}
	holds := func(busy float64) bool {
		k := s.at(m, 1, busy)
		return busy < 1 && k.exceeding(l.Limit-k.before) <= 1-l.Quantile
	}
	if !holds(0) {
		return 0
	}
	return min(bisect(0, 1, holds)*workers, cores)
}

// Queue is the waiting work of one service over all its replicas. The zero value is empty.
type Queue struct {
	backlog float64 // requests
}

// Offered is what waits and what comes within a step, in requests per second.
func (q *Queue) Offered(rate float64, dt time.Duration) float64 { return rate + q.backlog/dt.Seconds() }

// Outcome is what one step did to a service.
type Outcome struct {
	// Rate is the true load, Served what was answered, Dropped what gave up waiting; requests per second.
	Rate, Served, Dropped float64
	// Ready are the replicas that served.
	Ready int
	// Utilisation is the share of the ready pods' cores that was busy with requests; above 1 where they burst. A cold
	// pod counts with what it is worth.
	Utilisation float64
	// Wait is the time that the backlog adds to every request.
	Wait time.Duration
	// CPU is what one ready pod used, in cores.
	CPU float64
	// Violated says whether the step broke the SLO.
	Violated bool

	station *Station
	moment  Moment
	busy    float64 // share of the workers
}

// saturation is the utilisation beyond which the stationary formula would take minutes to come true; the fluid backlog
// covers the rest.
const saturation = 0.98

// Step plays one step at the station's usual state. rate is the true load; it spreads over the ready pods so that all
// are equally busy (least-loaded balancing), and what they cannot serve waits for the next step. A request that would
// wait longer than its client's patience is dropped.
func (s *Station) Step(q *Queue, rate float64, ready int, dt time.Duration) Outcome {
	return s.StepAt(Moment{}, q, rate, ready, dt)
}

// StepAt is Step at a moment.
func (s *Station) StepAt(m Moment, q *Queue, rate float64, ready int, dt time.Duration) Outcome {
	sec := dt.Seconds()
	nominal, cores := s.rates(m, ready)
	power, most := nominal, float64(s.Cores)
	if s.Burst > 1 {
		power, most = nominal*s.Burst, most*s.Burst
	}
	out := Outcome{Rate: rate, Ready: ready, station: s, moment: m}

	offered := q.Offered(rate, dt)
	out.Served = min(offered, power)
	left := (offered - out.Served) * sec
	patience := s.patience().Seconds()
	if limit := patience * max(power, rate); left > limit {
		out.Dropped = (left - limit) / sec
		left = limit
	}
	wait := 0.0
	switch queued := max(left, q.backlog); {
	case queued <= 0:
	case power > 0:
		wait = min(queued/power, patience)
	default:
		wait = patience
	}
	q.backlog = left
	out.Wait = time.Duration(wait * float64(time.Second))
	if power > 0 {
		out.busy, out.Utilisation = out.Served/nominal, out.Served/cores
		out.CPU = min(most, (out.Utilisation+s.Idle)*float64(s.Cores))
	}
	out.Violated = s.violated(&out, offered, cores)
	return out
}

// violated judges the step by the true load: one broken level is enough.
func (s *Station) violated(o *Outcome, offered, nominal float64) bool {
	switch {
	case offered == 0:
		return false
	case nominal == 0:
		return true
	case o.Dropped > 0 && s.SLO.Level(fleet.LevelNameErrors) == nil:
		return true
	}
	for i := range s.SLO.Levels {
		if s.breaks(&s.SLO.Levels[i], o, offered, nominal) {
			return true
		}
	}
	return false
}

// breaks judges one level.
func (s *Station) breaks(l *fleet.Level, o *Outcome, offered, nominal float64) bool {
	switch {
	case l.Name == fleet.LevelNameCPU:
		return offered/nominal+s.Idle > l.Limit
	case l.Kind == fleet.LevelLatency:
		return o.Exceeding(l.Duration()) > 1-l.Quantile
	case l.Kind == fleet.LevelErrors:
		return o.Errors() > l.Limit
	}
	return false
}

// Errors is the share of the step's requests that failed: their clients gave up.
func (o *Outcome) Errors() float64 {
	if o.Dropped == 0 {
		return 0
	}
	return o.Dropped / (o.Served + o.Dropped)
}

// curve is the distribution of the step's latencies, without the wait of the backlog.
func (o *Outcome) curve() curve { return o.station.at(o.moment, o.Ready, min(o.busy, saturation)) }

// Exceeding is the share of the step's requests that took longer than limit.
func (o *Outcome) Exceeding(limit time.Duration) float64 {
	if o.Ready == 0 {
		return 1
	}
	k := o.curve()
	return k.exceeding((limit - o.Wait - o.moment.Dependency).Seconds())
}

// Latency is the time that a share q of the step's requests kept under.
func (o *Outcome) Latency(q float64) time.Duration {
	if o.Ready == 0 {
		return o.station.patience()
	}
	k := o.curve()
	return o.Wait + o.moment.Dependency + time.Duration(k.quantile(q)*k.unit*float64(time.Second))
}

// UsedCores are the cores that the ready pods used.
func (o *Outcome) UsedCores() float64 { return o.CPU * float64(o.Ready) }

// Bounds are the bucket bounds in seconds that OpenTelemetry's semantic conventions advise for http.server.request.duration.
var Bounds = [...]float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// Latencies is the distribution of the step's latencies: the share of requests up to each bound, and their mean in seconds.
type Latencies struct {
	UpTo [len(Bounds)]float64
	Mean float64
}

// Latencies of the step. It equals what Exceeding says at each bound, at the cost of one Erlang formula for all of them.
func (o *Outcome) Latencies() Latencies {
	var out Latencies
	if o.Ready == 0 || o.Served <= 0 {
		return out
	}
	k := o.curve()
	before := o.Wait.Seconds() + k.before
	left := 1.0
	for i, b := range Bounds {
		// Beyond a billionth no request is left, and the exponentials can be spared.
		if x := b - before; x > 0 && left > 1e-9 {
			left = k.exceeding(x)
		}
		out.UpTo[i] = 1 - left
	}
	out.Mean = before + k.unit*k.average()
	return out
}

// Quantile reads a quantile off the buckets as PromQL's histogram_quantile does: linearly within a bucket, and the last bound for what
// lies beyond it. NaN when nothing was served.
func (l *Latencies) Quantile(q float64) float64 {
	if l.Mean == 0 {
		return math.NaN()
	}
	below, bound := 0.0, 0.0
	for i, b := range Bounds {
		if l.UpTo[i] >= q {
			return bound + (b-bound)*(q-below)/(l.UpTo[i]-below)
		}
		below, bound = l.UpTo[i], b
	}
	return Bounds[len(Bounds)-1]
}
