package festival

import (
	"fmt"
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Plan is a festival plan as it was written. Its zone is resolved, and its phases follow each other.
type Plan struct {
	ID   string
	Zone *time.Location
	When When
	// Phases begin at their Start, the first one with the plan.
	Phases []Phase
	// Priority orders plans that lift one service at one time.
	Priority   int32
	TakeStable bool
	Approved   bool
	// Since is when the plan was made; of two plans that exclude each other the older one stays.
	Since time.Time
	// Problem says why the plan cannot be read; it lifts nothing then.
	Problem string
}

// When is the time of a plan: dates, or a day of the calendar with days before and after it.
type When struct {
	// First is the first day of dates, and From and To count from it. First is zero for a day of the calendar.
	First    fleet.Date
	From, To Clock
	Day      Day
	// Year is that of the day; 0 where it comes every year.
	Year int
}

// Phase is a part of the plan with lifts of its own.
type Phase struct {
	Name string
	// Start is ignored in the first phase.
	Start            Clock
	RampUp, RampDown time.Duration
	// Freeze holds what Springtide would take or move of its own will while the phase lasts.
	Freeze bool
	Lifts  []Lift
}

// Lift raises one service: by a factor on its forecast, to a floor of replicas, or both. Either may be zero.
type Lift struct {
	Service fleet.ServiceID
	Factor  float64
	Floor   int32
}

// yearsAhead is how far a yearly day is looked for: the longest that 29 February stays away.
const yearsAhead = 8

// Expand is the occurrence of a plan that lasts at a time, or else the next one; the last one where none comes.
func Expand(p *Plan, now time.Time) fleet.Festival {
	f := fleet.Festival{ID: p.ID, Approved: p.Approved, TakeStable: p.TakeStable, Problem: p.Problem}
	if f.Problem != "" {
		return f
	}
	switch {
	case p.When.First != (fleet.Date{}):
		p.occur(&f, p.When.First)
		return f
	case p.When.Year != 0:
		if first, ok := p.When.Day.In(p.When.Year); ok {
			p.occur(&f, first)
			return f
		}
		f.Problem = fmt.Sprintf("the day does not come in %d, as far as the calendar knows: "+
			"write another year, or dates", p.When.Year)
		return f
	}
	this := now.In(p.Zone).Year()
	for year := this - 1; year <= this+yearsAhead; year++ {
		if first, ok := p.When.Day.In(year); ok {
			f.Lifts, f.Freezes = nil, nil
			if p.occur(&f, first); now.Before(f.End) {
				return f
			}
		}
	}
	return f
}

// occur fills in the times of the occurrence whose first day is given.
func (p *Plan) occur(f *fleet.Festival, first fleet.Date) {
	f.Start, f.End = p.When.From.at(first, p.Zone), p.When.To.at(first, p.Zone)
	start, end := f.Start, f.End
	for i := range p.Phases {
		ph := &p.Phases[i]
		from, to := start, end
		if i > 0 {
			from = ph.Start.at(first, p.Zone)
		}
		if i+1 < len(p.Phases) {
			to = p.Phases[i+1].Start.at(first, p.Zone)
		}
		if ph.Freeze {
			f.Freezes = append(f.Freezes, fleet.Freeze{Phase: ph.Name, Start: from, End: to})
		}
		for _, l := range ph.Lifts {
			f.Lifts = append(f.Lifts, ph.ramp(l, from.Add(-ph.RampUp), ph.RampUp, false)...)
			f.Lifts = append(f.Lifts, ph.part(l, 1, from, to))
			f.Lifts = append(f.Lifts, ph.ramp(l, to, ph.RampDown, true)...)
		}
		if len(ph.Lifts) > 0 && from.Add(-ph.RampUp).Before(f.Start) {
			f.Start = from.Add(-ph.RampUp)
		}
		if len(ph.Lifts) > 0 && to.Add(ph.RampDown).After(f.End) {
			f.End = to.Add(ph.RampDown)
		}
	}
}

// A ramp has steps of five minutes, and no more of them than rampSteps, since each is a lift of its own.
const (
	rampStep  = 5 * time.Minute
	rampSteps = 12
)

// ramp is a lift on its way up, or down, from a time on. Each step is as high as its higher end.
func (ph *Phase) ramp(l Lift, from time.Time, length time.Duration, down bool) []fleet.Lift {
	step := max(rampStep, length/rampSteps)
	var out []fleet.Lift
	for done := time.Duration(0); done < length; done += step {
		next := min(done+step, length)
		share := float64(next) / float64(length)
		if down {
			share = 1 - float64(done)/float64(length)
		}
		part := ph.part(l, share, from.Add(done), from.Add(next))
		part.Ramp = true
		out = append(out, part)
	}
	return out
}

// part is a share of a lift: of what its factor adds, and of its floor.
func (ph *Phase) part(l Lift, share float64, from, to time.Time) fleet.Lift {
	out := fleet.Lift{Service: l.Service, Start: from, End: to, Phase: ph.Name}
	if l.Factor > 0 {
		out.Factor = 1 + (l.Factor-1)*share
	}
	if l.Floor > 0 {
		out.Floor = int32(math.Ceil(share*float64(l.Floor) - 1e-9))
	}
	return out
}
