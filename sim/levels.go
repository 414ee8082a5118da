package sim

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// measured reports whether a level has values by minute: a utilisation is a load, and sized as one.
func measured(l *fleet.Level) bool {
	return l.Kind == fleet.LevelLatency || l.Kind == fleet.LevelErrors
}

// valueOf is a level's value in a step.
func valueOf(l *fleet.Level, o *measure.Outcome) float64 {
	switch {
	case o.Rate == 0 && o.Served == 0:
		return math.NaN() // of no requests
	case l.Kind == fleet.LevelErrors:
		return o.Errors()
	}
	return o.Latency(l.Quantile).Seconds()
}

// live are the values of a service's levels in the last step.
func (s *service) live(at time.Time) map[string]fleet.Known[float64] {
	out := make(map[string]fleet.Known[float64], len(s.SLO.Levels))
	for i := range s.SLO.Levels {
		l := &s.SLO.Levels[i]
		if l.Kind == fleet.LevelLatency {
			out[l.Name] = fleet.KnownAt(s.last.Latency(l.Quantile).Seconds(), at)
		} else if v := valueOf(l, &s.last); l.Kind == fleet.LevelErrors && v == v {
			out[l.Name] = fleet.KnownAt(v, at)
		}
	}
	return out
}

// worst takes the values of a step into those of its minute: a minute is as bad as the worst of its steps, as the judge
// has it.
func (s *service) worst(o *measure.Outcome) {
	if s.values == nil {
		s.values, s.value = make([][]float64, len(s.SLO.Levels)), make([]float64, len(s.SLO.Levels))
		s.newMinute()
	}
	for i := range s.SLO.Levels {
		if l := &s.SLO.Levels[i]; measured(l) {
			if v := valueOf(l, o); !(v <= s.value[i]) && v == v {
				s.value[i] = v
			}
		}
	}
}

// newMinute begins a minute without values.
func (s *service) newMinute() {
	for i := range s.value {
		s.value[i] = math.NaN()
	}
}

// keepMinute ends a minute.
func (s *service) keepMinute(known bool) {
	for i := range s.values {
		v := s.value[i]
		if !known {
			v = math.NaN()
		}
		s.values[i] = append(s.values[i], v)
	}
	s.newMinute()
}

// levels are the values of a service's levels in some minutes.
func (c *controller) levels(i int, from time.Time, n int) portrait.Levels {
	s := &c.w.services[i]
	var out portrait.Levels
	if !c.learns() {
		return out
	}
	for k := range s.SLO.Levels {
		l := &s.SLO.Levels[k]
		if !measured(l) {
			continue
		}
		of := portrait.LevelValues{Name: l.Name, Limit: l.Limit, Objective: s.objective(),
			Values: series.New(from, time.Minute, n)}
		first := int(math.Floor(from.Sub(c.w.start).Minutes()))
		for j := range of.Values.Values {
			switch at := first + j; {
			case at < 0:
				of.Values.Values[j] = s.before(l, from.Add(time.Duration(j)*time.Minute), c.w.b.Jitter)
			case k < len(s.values) && at < len(s.values[k]):
				of.Values.Values[j] = s.values[k][at]
			}
		}
		out.Of = append(out.Of, of)
	}
	out.Rule = hpa.Standard().LatencyUtilisation * float64(s.Cores) / s.CPUAt(s.moment)
	return out
}

// learns reports whether the loop learns what a replica carries: the other rows are given it.
func (c *controller) learns() bool { return c.o.Target == 0 && !c.o.Knows }

// forget takes from what was learned of the history what this row is not to know.
func (c *controller) forget() {
	if c.learns() {
		return
	}
	for id, p := range c.Portraits {
		p.Capacity = nil
		c.Portraits[id] = p
	}
}

// before is a level's value in a minute of the history, in which static provisioning served. Its steps are off the
// minute's load as those of the run are.
func (s *service) before(l *fleet.Level, at time.Time, jitter float64) float64 {
	rate := s.Load.At(at)
	if math.IsNaN(rate) {
		return rate
	}
	draw, most := s.Draws(uint64(at.Unix())), math.Inf(-1)
	for range perMinute {
		most = max(most, draw.NormFloat64())
	}
	o := s.StepAt(s.Moment(at), &measure.Queue{}, rate*math.Exp(jitter*most), s.Static, tick)
	return valueOf(l, &o)
}

// objective is the share of minutes that must be good.
func (s *service) objective() float64 {
	if good := s.SLO.Objective.GoodMinutes; good > 0 {
		return good
	}
	return goodByDefault
}
