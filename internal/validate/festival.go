package validate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/festival"
	"github.com/springtide/springtide/fleet"
)

// longestFestival is the most days that a festival may last.
const longestFestival = 31

// FestivalPlan judges what the API server cannot of a plan: zone, dates, the day, and the order of its phases.
func FestivalPlan(p *v1alpha1.FestivalPlan) []Problem {
	_, problems := Festival(p)
	return problems
}

// Festival reads a plan. One that cannot be read says why in its problem.
func Festival(p *v1alpha1.FestivalPlan) (festival.Plan, []Problem) {
	s := &p.Spec
	out := festival.Plan{ID: p.Name, Priority: s.Priority, TakeStable: s.TakeStable, Approved: s.Approved,
		Since: p.CreationTimestamp.UTC()}
	if s.TimeZone == "" && len(s.Phases) == 0 {
		// Kept by the API server from before: its fields are gone, so only what stands in their place can be named.
		out.Problem = "the plan has neither timeZone nor phases: write it again, as docs/howto.md shows"
		return out, []Problem{{"spec", out.Problem}}
	}
	var problems []Problem
	wrong := func(field string, err error) {
		if err != nil {
			problems = append(problems, Problem{field, err.Error()})
		}
	}
	var err error
	out.Zone, err = Zone(s.TimeZone)
	wrong("spec.timeZone", err)
	field, err := when(&s.When, &out.When)
	wrong("spec.when."+field, err)
	if err == nil {
		problems = append(problems, phases(s.Phases, &out)...)
	}
	if len(problems) > 0 {
		out.Problem = Sentence(problems)
	}
	return out, problems
}

// when reads the time of a plan; the field is that of an error.
func when(w *v1alpha1.FestivalWhen, out *festival.When) (field string, err error) {
	if w.Day == "" {
		from, err := localTime(w.From)
		if err != nil {
			return "from", err
		}
		to, err := localTime(w.To)
		if err != nil {
			return "to", err
		}
		out.First = fleet.Date{Year: from.Year(), Month: from.Month(), Day: from.Day()}
		out.From = festival.Clock{Hour: from.Hour(), Minute: from.Minute()}
		days := int(to.Truncate(24*time.Hour).Sub(from.Truncate(24*time.Hour)) / (24 * time.Hour))
		out.To = festival.Clock{Day: days, Hour: to.Hour(), Minute: to.Minute()}
		return "to", spanOf(out)
	}
	out.From, out.To = festival.Clock{Day: -int(w.Before)}, festival.Clock{Day: int(w.After) + 1}
	if out.Day, err = festival.ParseDay(w.Region, w.Day); err != nil {
		return "day", err
	}
	if w.Year != nil {
		out.Year = int(*w.Year)
		if _, comes := out.Day.In(out.Year); !comes {
			return "year", fmt.Errorf("%s does not come in %d, as far as the calendar knows: write another year, or from and to",
				w.Day, out.Year)
		}
	}
	return "after", spanOf(out)
}

func localTime(text string) (time.Time, error) {
	t, err := time.Parse("2006-01-02T15:04", text)
	if err != nil {
		return t, fmt.Errorf("%q is no local time: write one such as 2026-11-10T20:00", text)
	}
	return t, nil
}

func spanOf(w *festival.When) error {
	switch long := minuteOf(w.To) - minuteOf(w.From); {
	case long <= 0:
		return errors.New("the festival ends before it begins: write a later time")
	case long > longestFestival*24*60:
		return fmt.Errorf("a festival lasts at most %d days: split the plan", longestFestival)
	}
	return nil
}

func minuteOf(c festival.Clock) int { return (c.Day*24+c.Hour)*60 + c.Minute }

// phases reads the phases of a plan, which follow each other within its time.
func phases(list []v1alpha1.FestivalPhase, out *festival.Plan) []Problem {
	var problems []Problem
	begun := minuteOf(out.When.From)
	for i := range list {
		ph, field := &list[i], fmt.Sprintf("spec.phases[%d]", i)
		x := festival.Phase{Name: ph.Name, Freeze: ph.Freeze}
		if i > 0 {
			var err error
			if x.Start, err = startOf(ph.Start); err == nil && minuteOf(x.Start) <= begun {
				err = fmt.Errorf("phase %s begins no later than the phase before it: put the phases in order of time", ph.Name)
			}
			if err == nil && minuteOf(x.Start) >= minuteOf(out.When.To) {
				err = fmt.Errorf("phase %s begins when the festival is over: let it begin before the festival's end", ph.Name)
			}
			if err != nil {
				problems = append(problems, Problem{field + ".start", err.Error()})
			}
			begun = minuteOf(x.Start)
		}
		var err error
		if x.RampUp, err = rampOf(ph.RampUp); err != nil {
			problems = append(problems, Problem{field + ".rampUp", err.Error()})
		}
		if x.RampDown, err = rampOf(ph.RampDown); err != nil {
			problems = append(problems, Problem{field + ".rampDown", err.Error()})
		}
		for k := range ph.Lifts {
			l, err := liftOf(&ph.Lifts[k])
			if err != nil {
				problems = append(problems, Problem{fmt.Sprintf("%s.lifts[%d].factor", field, k), err.Error()})
			}
			x.Lifts = append(x.Lifts, l)
		}
		out.Phases = append(out.Phases, x)
	}
	return problems
}

func startOf(s *v1alpha1.FestivalStart) (festival.Clock, error) {
	if s == nil {
		return festival.Clock{}, errors.New(`the phase has no start: write one, as in start: {at: "20:00"}`)
	}
	t, err := time.Parse("15:04", s.At)
	if err != nil {
		return festival.Clock{}, fmt.Errorf(`%q is no time of a day: write one such as "20:00"`, s.At)
	}
	return festival.Clock{Day: int(s.Day), Hour: t.Hour(), Minute: t.Minute()}, nil
}

func rampOf(d v1alpha1.Duration) (time.Duration, error) {
	if d == "" {
		return 0, nil
	}
	return d.Parse()
}

func liftOf(l *v1alpha1.FestivalLift) (festival.Lift, error) {
	out := festival.Lift{Service: fleet.ServiceID(fleet.Name{Namespace: l.Namespace, Name: l.Service}.String())}
	if l.Replicas != nil {
		out.Floor = *l.Replicas
	}
	if l.Factor == "" {
		return out, nil
	}
	f, err := strconv.ParseFloat(strings.TrimSuffix(l.Factor, "x"), 64)
	if err != nil || !(f >= 1 && f < 100) {
		return out, fmt.Errorf("factor %q is not one from 1x to 99.99x: write one such as 1.5x", l.Factor)
	}
	out.Factor = f
	return out, nil
}
