package measure

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Step is the longest step that a queue may be played at: shorter than any start-up, and fine enough for "any 15 s of a minute".
const Step = 15 * time.Second

// Patience is how long a request waits before its client gives up.
const Patience = 30 * time.Second

// Station is what one replica of a service can do and what the service promises.
type Station struct {
	// Cores are the cores of one pod, CPUSeconds the mean cost of a request: one core for that long.
	Cores      int
	CPUSeconds float64
	// Burst is how far a pod may use more than its cores while its machine has some to spare, as a multiple of them; 1
	// when 0. It is for services that promise a utilisation: one that promises a latency is computed by the queue of
	// its own cores.
	Burst float64
	// Idle is the share of a pod's cores that a ready pod uses which serves nothing; it competes with no request.
	Idle float64
	// SLO is the promise that the service is judged by.
	SLO fleet.SLO
}

// Capacity is the rate that one ready replica carries while every latency and CPU level of its SLO holds.
func (s *Station) Capacity() float64 {
	busy := math.Inf(1)
	for i := range s.SLO.Levels {
		switch l := &s.SLO.Levels[i]; {
		case l.Name == fleet.LevelNameCPU:
			busy = min(busy, l.Limit-s.Idle)
		case l.Kind == fleet.LevelLatency:
			busy = min(busy, MaxUtilisation(s.Cores, l.Quantile, l.Limit/s.CPUSeconds))
		}
	}
	return busy * float64(s.Cores) / s.CPUSeconds
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
	// Utilisation is the share of the ready pods' cores that was busy with requests; above 1 where they burst.
	Utilisation float64
	// Wait is the time that the backlog adds to every request.
	Wait time.Duration
	// CPU is what one ready pod used, in cores.
	CPU float64
	// Violated says whether the step broke the SLO.
	Violated bool

	station *Station
}

// saturation is the utilisation beyond which the stationary formula would take minutes to come true; the fluid backlog
// covers the rest.
const saturation = 0.98

// Step plays one step. rate is the true load; it spreads evenly over the ready pods (least-loaded balancing), and what they cannot serve
// waits for the next step. A request that would wait longer than its client's Patience is dropped.
func (s *Station) Step(q *Queue, rate float64, ready int, dt time.Duration) Outcome {
	sec := dt.Seconds()
	nominal := float64(ready*s.Cores) / s.CPUSeconds // requests per second with every core of their own busy
	power, most := nominal, float64(s.Cores)
	if s.Burst > 1 {
		power, most = nominal*s.Burst, most*s.Burst
	}
	out := Outcome{Rate: rate, Ready: ready, station: s}

	offered := q.Offered(rate, dt)
	out.Served = min(offered, power)
	left := (offered - out.Served) * sec
	if limit := Patience.Seconds() * max(power, rate); left > limit {
		out.Dropped = (left - limit) / sec
		left = limit
	}
	wait := 0.0
	switch queued := max(left, q.backlog); {
	case queued <= 0:
	case power > 0:
		wait = min(queued/power, Patience.Seconds())
	default:
		wait = Patience.Seconds()
	}
	q.backlog = left
	out.Wait = time.Duration(wait * float64(time.Second))
	if power > 0 {
		out.Utilisation = out.Served / nominal
		out.CPU = min(most, (out.Utilisation+s.Idle)*float64(s.Cores))
	}
	out.Violated = s.violated(&out, offered, nominal)
	return out
}

// violated judges the step by the true load: one broken level is enough.
func (s *Station) violated(o *Outcome, offered, nominal float64) bool {
	switch {
	case offered == 0:
		return false
	case o.Dropped > 0 || nominal == 0:
		return true
	}
	for i := range s.SLO.Levels {
		switch l := &s.SLO.Levels[i]; {
		case l.Name == fleet.LevelNameCPU && offered/nominal+s.Idle > l.Limit:
			return true
		case l.Kind == fleet.LevelLatency && o.Exceeding(l.Duration()) > 1-l.Quantile:
			return true
		}
	}
	return false
}

// Exceeding is the share of the step's requests that took longer than limit.
func (o *Outcome) Exceeding(limit time.Duration) float64 {
	if o.Ready == 0 {
		return 1
	}
	return Tail(o.station.Cores, min(o.Utilisation, saturation), (limit-o.Wait).Seconds()/o.station.CPUSeconds)
}

// Latency is the time that a share q of the step's requests kept under.
func (o *Outcome) Latency(q float64) time.Duration {
	if o.Ready == 0 {
		return Patience
	}
	x := Quantile(o.station.Cores, min(o.Utilisation, saturation), q)
	return o.Wait + time.Duration(x*o.station.CPUSeconds*float64(time.Second))
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
	c := o.station.Cores
	a := min(o.Utilisation, saturation) * float64(c)
	wait := ErlangC(c, a)
	left := 1.0
	for i, b := range Bounds {
		// Beyond a billionth no request is left, and the exponentials can be spared.
		if x := (b - o.Wait.Seconds()) / o.station.CPUSeconds; x > 0 && left > 1e-9 {
			left = tail(c, a, wait, x)
		}
		out.UpTo[i] = 1 - left
	}
	out.Mean = o.Wait.Seconds() + o.station.CPUSeconds*(1+wait/(float64(c)-a))
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
