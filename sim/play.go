package sim

import (
	"math"
	"time"

	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/sim/scenario"
)

// play runs the queues of one tick.
func (w *World) play() {
	w.acc.tick(w)
	for i := range w.services {
		w.services[i].rate = w.rates.of[i][w.tick] * w.crowd(i)
		w.turn(&w.services[i])
	}
	at := int(w.tick) % history
	burst, unlent := w.burst()
	for i := range w.services {
		s := &w.services[i]
		o, anyway := s.serve(burst, unlent)
		s.used[at], s.total[at], s.readyThen[at] = o.CPU, o.UsedCores(), s.ready
		s.last = o
		if s.broken++; !o.Violated {
			s.broken = 0
		}
		s.sum.cores += o.UsedCores() / float64(perMinute)
		s.sum.served += o.Served / float64(perMinute)
		s.sum.ready += float64(s.ready) / float64(perMinute)
		if w.learns {
			s.worst(&o)
		}
		if w.unmeasured(i) {
			s.sum.cores, s.sum.served = math.NaN(), math.NaN()
		}
		if (w.tick+1)%perMinute == 0 {
			s.keepMinute(!math.IsNaN(s.sum.served))
			s.minutes = append(s.minutes, s.sum)
			s.sum = minute{}
		}
		w.acc.service(w, i, &o, anyway)
	}
}

// turn brings a service's state to the tick.
func (w *World) turn(s *service) {
	if s.Changes() && w.tick%perMinute == 0 {
		s.moment = s.Moment(w.now)
		s.carries = s.Carries(s.moment)
	}
	if s.Cold.For == 0 {
		return
	}
	s.moment.Cold = 0
	for _, id := range s.pods {
		if p := &w.pods[id]; p.serves() && w.tick-p.readyAt < ticks(s.Cold.For) {
			s.moment.Cold++
		}
	}
}

// burst is the part of what pods would use beyond their own cores that there is for them: cores of online's machines
// that no pod asked for, and those that others asked for and do not use. The cores of offline pods there are not
// theirs; unlent is the part that there would be if nothing were lent.
func (w *World) burst() (part, unlent float64) {
	want, idle := 0.0, float64(w.b.Online*w.b.Fleet.CoresPerNode)
	for i := range w.services {
		s := &w.services[i]
		own := float64(s.ready * s.Cores)
		use := s.use(&s.queue)
		want += max(use-own, 0)
		idle -= min(use, own)
	}
	return partOf(want, idle-float64(w.guests)), partOf(want, idle)
}

// use is what a service's pods would use of as many cores as they may, with a queue.
func (s *service) use(q *measure.Queue) float64 {
	own := float64(s.ready * s.Cores)
	return min(q.Offered(s.rate, tick)*s.CPUAt(s.moment)+own*s.Idle, own*max(s.Burst, 1))
}

// partOf is the part of what is wanted that there is.
func partOf(want, idle float64) float64 {
	if want <= idle {
		return 1
	}
	return max(idle, 0) / want
}

// unmeasured reports whether no source keeps a service's present load.
func (w *World) unmeasured(i int) bool {
	if len(w.faults) == 0 {
		return false
	}
	_, gap := w.hit(scenario.MetricsGaps, i)
	_, odd := w.hit(scenario.MetricsNaN, i)
	return gap || odd
}

// usedBy is what a ready pod used on average, and what all of them did, over the n ticks that ended a number of ticks ago; false while there
// is nothing to look at.
func (s *service) usedBy(now int32, n, ago int) (each, all float64, ok bool) {
	known := 0
	for k := ago + 1; k <= ago+n && k <= history && int32(k) <= now; k++ {
		at := (int(now) - k) % history
		if s.readyThen[at] > 0 {
			each += s.used[at]
			known++
		}
		all += s.total[at]
	}
	if known == 0 {
		return 0, 0, false
	}
	return each / float64(known), all / float64(min(n, int(now)-ago)), true
}

// account is what a run came to.
type account struct {
	services []serviceAccount
	// Sums over the scored ticks, in core-seconds.
	onlineUsed, offlineUsed float64
	// peak is the largest utilisation of any hour, hour the sum of the running one.
	peak, hour float64
	// useful and lost at the start of the scored time do not count.
	usefulBefore, lostBefore float64
	late, short, moves       int
	scales                   int // changes of the replicas that services ask for
	// returns are parcels that came home for pods that wait, took how long it was until the first pod was bound there.
	returns []returned
	took    []time.Duration
	moments []Moment
	moment  Moment
}

// serviceAccount is one service's part. A service-minute counts as violated when any tick in it is.
type serviceAccount struct {
	cores             float64 // core-seconds
	violations, harms int
	desired           int32 // replicas asked for at the last look
	// The last minutes, and one more, that were violated, and that would have been without lending too.
	violated, anyway int32
	// broken are the minutes that were violated, from the start of the scored time.
	broken []int32
	// The data of a chart, where the scenario asks for it.
	moments []ServiceMoment
	moment  ServiceMoment
}

// ServiceMoment is one service over five minutes: the replicas that its load needs at its SLO, those that are ready, and the minutes that broke it.
type ServiceMoment struct {
	Need, Ready float32
	Broken      uint8
}

// Moment is the fleet over five minutes, in cores: what the load needs at its SLOs, what stands ready for it, what online holds with its
// starting and leaving pods, what offline holds, and what all of it uses.
type Moment struct {
	Demand float64 `json:"demandCores"`
	Ready  float64 `json:"readyCores"`
	Online float64 `json:"onlineCores"`
	Lent   float64 `json:"offlineCores"`
	Used   float64 `json:"usedCores"`
}

const momentTicks = 5 * perMinute

func newAccount(w *World) account {
	return account{services: make([]serviceAccount, len(w.services))}
}

// tick begins the account of one tick.
func (a *account) tick(w *World) {
	if w.tick == w.scored {
		a.usefulBefore, a.lostBefore = w.offlineWork()
		w.dueWork()
	}
	if w.tick < w.scored {
		return
	}
	// A full bucket is closed before anything of this tick is added.
	since := w.tick - w.scored
	if since > 0 && since%perHour == 0 {
		a.peak, a.hour = max(a.peak, a.hour/float64(perHour)), 0
	}
	if since > 0 && since%momentTicks == 0 {
		a.moments, a.moment = append(a.moments, a.moment), Moment{}
		for i := range a.services {
			if v := &a.services[i]; w.b.Charts {
				v.moments, v.moment = append(v.moments, v.moment), ServiceMoment{}
			}
		}
	}
	used := w.offlineCores()
	a.offlineUsed += used * tick.Seconds()
	a.hour += used
	a.moment.Lent += float64(w.offlineHeld) / float64(momentTicks)
	a.moment.Used += used / float64(momentTicks)
}

// peakHour is the mean of the fullest hour, the one at the end of so many scored ticks included.
func (a *account) peakHour(ticks int32) float64 {
	last := ticks % perHour
	if last == 0 {
		last = min(ticks, perHour)
	}
	return max(a.peak, a.hour/float64(max(last, 1)))
}

// service accounts one service's tick. anyway says whether it would have broken the SLO without lending too.
func (a *account) service(w *World, i int, o *measure.Outcome, anyway bool) {
	s, v := &w.services[i], &a.services[i]
	scaled := s.desired != v.desired
	v.desired = s.desired
	if w.tick < w.scored {
		return
	}
	if scaled {
		a.scales++
	}
	cores := float64(s.Cores)
	holds := float64(s.ready+s.standing+s.starting+s.leaving) * cores
	v.cores += holds * tick.Seconds()
	a.onlineUsed += o.UsedCores() * tick.Seconds()
	a.hour += o.UsedCores()
	a.moment.Demand += o.Rate / s.carries * cores / float64(momentTicks)
	a.moment.Ready += float64(s.ready) * cores / float64(momentTicks)
	a.moment.Online += holds / float64(momentTicks)
	a.moment.Used += o.UsedCores() / float64(momentTicks)
	minute := w.tick/perMinute + 1
	if anyway {
		v.anyway = minute
	}
	if o.Violated && v.violated != minute {
		v.violated, v.violations = minute, v.violations+1
		v.broken = append(v.broken, minute-1-w.scored/perMinute)
		v.moment.Broken++
	}
	v.moment.Need += float32(o.Rate / s.carries / float64(momentTicks))
	v.moment.Ready += float32(s.ready) / float32(momentTicks)
	if (w.tick+1)%perMinute == 0 && v.violated == minute && v.anyway != minute {
		v.harms++
	}
}

// move counts a machine or socket that begins to change hands from online to offline.
func (a *account) move(w *World) {
	if w.tick >= w.scored {
		a.moves++
	}
}
