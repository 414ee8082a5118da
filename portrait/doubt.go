package portrait

import (
	"math"
	"time"

	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/series"
)

// Doubt is a fall or a rise of the load that history does not know. It counts as a fault of the measurement, or of what stands before the service, until
// shown otherwise: while it is held, its samples are in quarantine. A portrait that holds one ends where the doubt begins, so the next fold is
// given the same samples again, and a restart forgets nothing.
type Doubt struct {
	// Since is the begin of the first step that is held; zero while nothing is in doubt.
	Since time.Time
	// Top is the load that it fell from, or rose from.
	Top float64
	// Rise says that the load rose: its samples are not learned yet, and sizing goes on by what is measured.
	Rise bool
	// Eased says that nothing confirmed the fall for [Options.HoldFor] in which nothing contradicted it, or for a day: its samples are folded, and
	// scale-in goes on slowly.
	Eased bool
	// FirstSince and FirstTop are of an eased fall on which a second one came: once that was judged, the first one is in force again.
	FirstSince time.Time
	FirstTop   float64
}

// next is a doubt that begins at a time with a load of top before it. The first one is kept where it was eased.
func (h Doubt) next(since time.Time, top float64, rise bool) Doubt {
	first := h.first()
	if h.Eased && first == (Doubt{}) {
		first = h
	}
	return Doubt{Since: since, Top: top, Rise: rise, FirstSince: first.Since, FirstTop: first.Top}
}

// first is what is in force once a doubt is over.
func (h Doubt) first() Doubt {
	if h.FirstSince.IsZero() {
		return Doubt{}
	}
	return Doubt{Since: h.FirstSince, Top: h.FirstTop, Eased: true}
}

// unconfirmed is since when loads are of falls that nothing confirmed: they are learned, and are no falls to measure others by.
func (h Doubt) unconfirmed() (since time.Time, yes bool) {
	if !h.FirstSince.IsZero() {
		return h.FirstSince, true
	}
	return h.Since, h.Eased
}

// Held reports whether a fall is in doubt: nothing scales in.
func (h Doubt) Held() bool { return h.Quarantined() && !h.Rise }

// Quarantined reports whether samples are in quarantine: nothing is learned from Since on.
func (h Doubt) Quarantined() bool { return !h.Since.IsZero() && !h.Eased }

const (
	// DefaultHoldFor is how long an unconfirmed fall is held. Outages of a metrics path last minutes to an hour; two hours of idle replicas
	// are the price of a true fall that nothing confirms.
	DefaultHoldFor = 2 * time.Hour
	// heldAtMost bounds a hold that the CPU contradicts as well: by then each hour of the day was as low.
	heldAtMost = day
	// easedFor is until when after the fall scale-in stays slow.
	easedFor = 2 * day
	// leastFall is the relative fall that is never a fault, fallReach how far back a fall is looked for; hpa judges live samples by the same.
	leastFall = 0.1
	fallReach = 15 * time.Minute
	// backShare is the part of the usual load at which a fall is no fault: days differ by a fifth.
	backShare = 0.75
	// agreeFor is how long a witness must agree: one sample may be right by chance.
	agreeFor = 15 * time.Minute
	// againShare is the part of the load before a fall from which a second one is distinguished from noise.
	againShare = 0.05
	// agreeWithin is how far the CPU may be from what the portrait's costs say, agreeApart how far that must be from a CPU that only fell by
	// the same factor as the requests.
	agreeWithin, agreeApart = 0.25, 1.5
)

// suspects judges the new samples of a fold, each before it is learned.
type suspects struct {
	p *Portrait
	l *model.Learner
	// load, cpu and ready are the batch's, on the grid of the portrait, whose newest step ends at end.
	load, cpu, ready series.Series
	first            int64
	end              time.Time
	// pods are the ready replicas by the Kubernetes API.
	pods float64
	// most is the CPU that they can be given, in cores; 0 where that is not known.
	most    float64
	holdFor time.Duration
	// backfill is [Options.Backfill].
	backfill bool
	k        int // steps within fallWithin
	// now is the step that is learned next; faultEnd is the step before which samples were a fault, judged the step before which all are judged.
	now, faultEnd, judged int
}

// held reports whether a step is in doubt: nothing from it on may be learned yet. A portrait without a season has little history to compare with: there
// only what is never usual is in doubt, CPU that no machine can have given and a load that falls to less than a tenth. A second fall after one that was eased is a
// doubt of its own, and so is a rise.
func (s *suspects) held(i, n int) bool {
	s.now = i
	h := &s.p.Doubt
	if i < s.judged {
		return false
	}
	if h.Eased && (s.back(i) > s.k || s.time(i).Sub(h.Since) >= easedFor) {
		*h = Doubt{}
	}
	if !h.Quarantined() {
		if f, fell := s.fell(i); fell && s.p.doubts(f) && !(s.backfill && s.p.young()) {
			*h = h.next(s.time(i), f.Top, false)
		} else if base, rose := s.rose(i); rose && !s.served(i) && (!s.p.young() || s.beyond(i)) {
			*h = h.next(s.time(i), base, true)
		} else {
			return false
		}
	}
	if h.Rise {
		return !s.riseOver(i, n)
	}
	return !s.over(i, n)
}

// fault reports whether the sample of a step was a fault.
func (s *suspects) fault(i int) bool { return i < s.faultEnd }

// over looks for the end of the hold that begins with the step i.
func (s *suspects) over(i, n int) bool {
	// A service with one signal resumes after a bound. Where a second one contradicts the first, the bound counts from then; and where the load falls
	// once more, from there: a second fall does not inherit the clock of the first.
	agreed, alone, high := 0, s.p.Doubt.Since, 0
	for j := i; j < n; j++ {
		if !math.IsNaN(s.at(j)) {
			s.p.Quality.LastSample = s.time(j + 1)
		}
		tells, agrees := s.witness(j)
		if agreed++; !agrees {
			agreed = 0
		}
		if tells && !agrees {
			alone = s.time(j + 1)
		}
		if s.fellAgain(j) {
			agreed, alone = 0, s.time(j)
		}
		if high++; !s.high(j) {
			high = 0
		} else {
			agreed, alone = 0, s.time(j+1)
		}
		back := s.backFrom(i, j)
		switch {
		case high > s.k:
			return s.turns(j-high+1, n, true)
		case back > s.k:
			s.faultEnd = j - back + 1
			top := s.p.Doubt.Top
			s.p.Dips = noteSwing(s.p.Dips, s.p.Doubt.Since, s.swing(i, j, func(y float64) float64 { return 1 - y/top }))
			s.p.Doubt = s.p.Doubt.first()
		case agreed > 0 && time.Duration(agreed)*s.p.Step >= agreeFor:
			s.p.Doubt = s.p.Doubt.first()
		case s.time(j+1).Sub(alone) >= s.holdFor, s.time(j+1).Sub(s.p.Doubt.Since) >= max(heldAtMost, s.holdFor):
			s.p.Doubt.Eased = true
		default:
			continue
		}
		s.judged = j + 1
		return true
	}
	return false
}

// turns ends a doubt by one of the other direction that begins with a step: a source that said a hundredth says a
// hundred times as much, or the other way round. Its earlier values were a fault, and both are measured by the load
// before that.
func (s *suspects) turns(i, n int, rise bool) bool {
	s.p.Doubt = s.p.Doubt.next(s.time(i), s.p.Doubt.Top, rise)
	switch {
	case i > s.now:
		s.faultEnd, s.judged = i, i
		return true
	case rise:
		return s.riseOver(i, n)
	}
	return s.over(i, n)
}

// high reports whether the load of a step is more than usual and more than the replicas could have served.
func (s *suspects) high(i int) bool {
	return s.at(i) > s.usualMost(i, s.p.Doubt.Top)/backShare && !s.served(i)
}

// low reports whether the load of a step is less than usual.
func (s *suspects) low(i int) bool { return s.at(i) < s.least(i, s.p.Doubt.Top) }

func (s *suspects) time(i int) time.Time { return series.GridTime(s.first+int64(i), s.p.Step) }

// at is the load of a step: a new sample, or one that the portrait knows.
func (s *suspects) at(i int) float64 {
	if i < s.now {
		return s.l.Before(s.now - i)
	}
	if y := s.load.At(s.time(i)); y >= 0 && y <= hugest {
		return y
	}
	return math.NaN()
}

// fell reports whether the load of a step lies lower than the falls of history explain. The end of a flash crowd is fast too, but it ends
// where the load usually is, and the verdict says so a step later. The step in which a fault begins is a mean of both and may look usual alone.
func (s *suspects) fell(i int) (Fall, bool) {
	y := s.at(i)
	if !(y >= 0) {
		return Fall{}, false
	}
	return s.p.fallOf(y, s.l.Level(), fallReach, s.time(i), s.time(i).Sub(s.p.Quality.LastSample), func(ago time.Duration) float64 { return s.at(i - int(ago/s.p.Step)) })
}

// fellAgain reports whether the load of a step lies lower than history explains against what was measured since the fall that is held.
func (s *suspects) fellAgain(i int) bool {
	h := &s.p.Doubt
	_, fell := s.p.fallOf(s.at(i), againShare/fallShare*h.Top, fallReach, s.time(i), 0, func(ago time.Duration) float64 {
		if j := i - int(ago/s.p.Step); !s.time(j).Before(h.Since) {
			return s.at(j)
		}
		return math.NaN()
	})
	return fell
}

// least is the load from which on a fall is over. It is more than the load at which none begins: a history of deep
// falls explains nearly every load, also a crowd that is measured at a hundredth. Samples since the fall do not show
// what is usual.
func (s *suspects) least(i int, top float64) float64 {
	return backShare * usual(top, func(ago time.Duration) float64 {
		if k := i - int(ago/s.p.Step); s.time(k).Before(s.p.Doubt.Since) {
			return s.at(k)
		}
		return math.NaN()
	})
}

// back counts the steps up to i in which the load was usual again, in a row.
func (s *suspects) back(i int) int { return s.backFrom(i-s.k, i) }

func (s *suspects) backFrom(from, i int) int {
	n := 0
	for ; i >= from && s.at(i) > 0 && !s.low(i) && !s.high(i); i-- {
		n++
	}
	return n
}

// witness reports whether the CPU distinguishes a true fall from a false one, and whether it confirms the requests. Two
// series that fell by the same factor at once confirm nothing: one proxy, one relabelling or one counter in wrong units
// explains both. A true fall of the requests leaves what idle replicas use, and the Kubernetes API says how many there
// are; so the CPU of a true fall is known in advance, and it is not the CPU of a common factor. Where the two are close
// to each other, or to the CPU before the fall, the CPU says nothing.
func (s *suspects) witness(i int) (tells, agrees bool) {
	p, y, cpu := s.p, s.at(i), s.cpu.At(s.time(i))
	if p.Signal != Requests || !p.CPUPerLoad.OK || !p.CPUIdle.OK || !(s.pods > 0) || !(y >= 0) || !(cpu >= 0) {
		return false, false
	}
	idle := s.pods * max(p.CPUIdle.Value, 0)
	before, now := idle+p.CPUPerLoad.Value*p.Doubt.Top, idle+p.CPUPerLoad.Value*y
	scaled := before * y / p.Doubt.Top
	tells = now > 0 && now >= agreeApart*scaled && now < backShare*before
	return tells, tells && math.Abs(cpu/now-1) <= agreeWithin
}
