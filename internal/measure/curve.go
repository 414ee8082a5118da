package measure

import (
	"math"
	"time"
)

// Pauses are what a garbage collector does to a pod: after every so many requests it stands still. The share of the
// requests that meet a pause grows with the load, so that a high quantile has a shoulder long before the queue has its
// knee. The zero value never pauses.
type Pauses struct {
	// Every is the number of requests of one pod between two pauses, For how long each of them lasts.
	Every float64
	For   time.Duration
}

// Cold is what a pod is like whose caches are empty: for a time after it is ready, each request takes Factor times as
// long there, and as much CPU. The zero value is a pod that is as good as any from the start.
type Cold struct {
	Factor float64
	For    time.Duration
}

// Moment is what changes about a station from one time to another. The zero value is its usual state.
type Moment struct {
	// Dependency is the time that each request spends at what the service depends on. It holds no worker, and no number
	// of replicas changes it.
	Dependency time.Duration
	// Slower is what a release multiplied the service time and the CPU of a request by; 1 when 0.
	Slower float64
	// Cold are the ready pods whose caches are empty.
	Cold int
}

// workers are the requests that a pod serves at once.
func (s *Station) workers() int {
	if s.Workers > 0 {
		return s.Workers
	}
	return s.Cores
}

// service is the mean time in seconds that a request holds a worker of a warm pod, cpu the CPU that it costs there.
func (s *Station) service(m Moment) float64 { return m.slow(s.ServiceTime, s.CPUSeconds) }

func (s *Station) cpu(m Moment) float64 { return m.slow(s.CPUSeconds, s.CPUSeconds) }

// CPUAt is the mean cost of a request at a moment, on a warm pod: one core for so many seconds.
func (s *Station) CPUAt(m Moment) float64 { return s.cpu(m) }

func (m Moment) slow(seconds, otherwise float64) float64 {
	if seconds == 0 {
		seconds = otherwise
	}
	if m.Slower > 0 {
		seconds *= m.Slower
	}
	return seconds
}

// patience is how long a request waits before its client gives up.
func (s *Station) patience() time.Duration {
	if s.Patience > 0 {
		return s.Patience
	}
	return Patience
}

// warm is what the ready pods are worth in warm ones, as a share of them.
func (s *Station) warm(m Moment, ready int) float64 {
	if !s.chills(m) || ready == 0 {
		return 1
	}
	cold := float64(min(m.Cold, ready))
	return (float64(ready) - cold + cold/s.Cold.Factor) / float64(ready)
}

func (s *Station) chills(m Moment) bool { return m.Cold > 0 && s.Cold.Factor > 1 }

// rates are what all ready pods do at most: requests per second with every worker busy, and with every core busy.
func (s *Station) rates(m Moment, ready int) (workers, cores float64) {
	each := s.service(m)
	if s.Pauses.Every > 0 {
		each += float64(s.workers()) * s.Pauses.For.Seconds() / s.Pauses.Every
	}
	workers, cores = float64(ready*s.workers())/each, float64(ready*s.Cores)/s.cpu(m)
	if warm := s.warm(m, ready); warm < 1 {
		workers, cores = workers*warm, cores*warm
	}
	return workers, cores
}

// curve is the distribution of the time that requests spend in a service at one load: queue and service (M/M/c on each
// pod), what its pauses add, and what its dependency adds. Numbers without a unit are mean service times of a warm
// pod.
//
// A pause of length d makes the pod's work wait. Requests that arrive in it, or before the queue has caught up (for
// d/(1−ρ) in all), are delayed by anything from d down to nothing, evenly. Requests that are in the pod when it begins
// are delayed by all of d.
type curve struct {
	workers int
	a, wait float64 // erlangs, and the probability of having to wait
	unit    float64 // seconds
	// before is in seconds: the dependency's.
	before float64
	// cold is the share of the requests that cold pods serve, factor how much longer they take there.
	cold, factor float64
	// late is the share of the requests that a pause delays by a part of it, full the share that it delays by all of
	// pause.
	late, full, pause float64
}

// at is the curve with a share of the workers busy.
func (s *Station) at(m Moment, ready int, busy float64) curve {
	k := curve{workers: s.workers(), unit: s.service(m), before: m.Dependency.Seconds()}
	k.a = busy * float64(k.workers)
	if s.Pauses.Every > 0 {
		k.pauses(&s.Pauses, busy)
	}
	k.wait = ErlangC(k.workers, k.a)
	if s.Pauses.Every > 0 {
		k.late *= 1 / (1 - k.a/float64(k.workers))
		k.full *= k.stay()
		if most := k.late + k.full; most > 1 {
			k.late, k.full = k.late/most, k.full/most
		}
	}
	if s.chills(m) {
		cold := float64(min(m.Cold, ready)) / s.Cold.Factor
		k.factor = s.Cold.Factor
		k.cold = cold / (cold + float64(ready-min(m.Cold, ready)))
	}
	return k
}

// pauses puts a collector's pauses in the curve of an idle queue: a busy worker is at rest while its pod is.
func (k *curve) pauses(p *Pauses, busy float64) {
	k.pause = p.For.Seconds() / k.unit
	each := 1 + float64(k.workers)*k.pause/p.Every
	k.a /= each
	often := k.a / p.Every // pauses per service time
	k.late, k.full = often*k.pause, often
}

// stay is the mean time in queue and service.
func (k *curve) stay() float64 { return 1 + k.wait/(float64(k.workers)-k.a) }

// exceeding is the share of the requests that take longer than a time on top of what all of them wait.
func (k *curve) exceeding(seconds float64) float64 { return k.over(seconds / k.unit) }

// over is exceeding in service times.
func (k *curve) over(x float64) float64 {
	if k.cold == 0 {
		return k.paused(x, k.pause)
	}
	// On a cold pod all times are longer but that of a pause.
	return (1-k.cold)*k.paused(x, k.pause) + k.cold*k.paused(x/k.factor, k.pause/k.factor)
}

// paused is the tail of a pod that pauses.
func (k *curve) paused(x, pause float64) float64 {
	if k.late+k.full == 0 {
		return k.plain(x)
	}
	return (1-k.late-k.full)*k.plain(x) + k.late*k.mean(x-pause, x) + k.full*k.plain(x-pause)
}

// plain is the tail of queue and service.
func (k *curve) plain(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return tail(k.workers, k.a, k.wait, x)
}

// mean is the mean of the tail between two times.
func (k *curve) mean(from, to float64) float64 {
	area := max(0, min(to, 0)-from) // below 0 all requests take longer
	if from, to := max(from, 0), max(to, 0); to > from {
		area += k.area(to) - k.area(from)
	}
	return area / (to - from)
}

// area is the integral of the tail from 0 to x.
func (k *curve) area(x float64) float64 {
	alone := -math.Expm1(-x)
	d := float64(k.workers) - 1 - k.a
	if math.Abs(d) < 1e-9 {
		return alone + k.wait*(alone-x*math.Exp(-x))
	}
	return alone + k.wait/d*(alone+math.Expm1(-(d+1)*x)/(d+1))
}

// quantile is the time in service times that a share q of the requests keeps under.
func (k *curve) quantile(q float64) float64 {
	slow := func(x float64) bool { return k.over(x) > 1-q }
	lo, hi := 0.0, 1.0
	for slow(hi) {
		lo, hi = hi, 2*hi
	}
	return bisect(lo, hi, slow)
}

// average is the mean of the time in queue, service and pauses.
func (k *curve) average() float64 {
	warm := k.stay()
	out := warm + k.cold*warm*(k.factor-1)
	return out + k.pause*(k.late/2+k.full)
}
