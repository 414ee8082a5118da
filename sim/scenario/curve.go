package scenario

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/measure"
)

// station is what one replica can do and what the service promises.
func (v *Service) station() measure.Station {
	if v.Curve.stated() {
		return v.curved()
	}
	st := measure.Station{Cores: v.Cores, CPUSeconds: 1, Burst: v.Burst, SLO: fleet.Levels(fleet.CPU(v.SLO.Utilisation))}
	if limit := time.Duration(v.SLO.Latency); limit > 0 {
		st.SLO, st.Burst = fleet.Levels(fleet.Latency(v.SLO.Quantile, limit)), 1
		st.CPUSeconds = limit.Seconds() / measure.Quantile(v.Cores, v.SLO.Utilisation, v.SLO.Quantile)
	}
	st.SLO.Objective = v.SLO.objective()
	return st
}

// curved is the station of a service with a curve of its own.
func (v *Service) curved() measure.Station {
	u := &v.Curve
	seconds := time.Duration(u.ServiceTime).Seconds()
	st := measure.Station{Cores: v.Cores, CPUSeconds: seconds, Burst: v.Burst, Patience: time.Duration(u.Patience),
		Pauses: measure.Pauses{Every: u.Pauses.Every, For: time.Duration(u.Pauses.For)},
		Cold:   measure.Cold{Factor: u.Cold.Factor, For: time.Duration(u.Cold.For)},
		SLO:    fleet.SLO{Levels: v.SLO.levels(), Objective: v.SLO.objective()}}
	if u.CPUTime > 0 || u.Parallel > 0 {
		st.Workers, st.ServiceTime = v.Cores, seconds
	}
	if u.CPUTime > 0 {
		st.CPUSeconds = time.Duration(u.CPUTime).Seconds()
	}
	if u.Parallel > 0 {
		st.Workers = u.Parallel
	}
	if st.SLO.LatencyLimit() > 0 {
		st.Burst = 1
	}
	return st
}

// levels of a service with a curve, latencies by quantile first.
func (l *SLO) levels() []fleet.Level {
	all := l.Latencies
	if l.Latency > 0 {
		all = append([]Latency{{Quantile: l.Quantile, Under: l.Latency}}, all...)
	}
	var out []fleet.Level
	for _, x := range all {
		out = append(out, fleet.Latency(x.Quantile, time.Duration(x.Under)))
	}
	slices.SortStableFunc(out, func(a, b fleet.Level) int { return cmp.Compare(a.Quantile, b.Quantile) })
	if l.Errors > 0 {
		out = append(out, fleet.Level{Kind: fleet.LevelErrors, Name: fleet.LevelNameErrors, Limit: l.Errors,
			Source: fleet.Source{Preset: fleet.PresetOTel}})
	}
	if l.Utilisation > 0 {
		out = append(out, fleet.CPU(l.Utilisation))
	}
	return out
}

func (l *SLO) objective() fleet.Objective {
	return fleet.Objective{GoodMinutes: l.Objective.GoodMinutes, Over: time.Duration(l.Objective.Over)}
}

// Become makes the service what an entry says; its load and size stay as they are.
func (o *Online) Become(spec *Service) {
	o.Spec, o.Station, o.slow = spec, spec.station(), spec.Curve.Dependency.windows()
}

// slow is a window in which a dependency takes its time.
type slow struct {
	opens hpa.Schedule
	zone  *time.Location
	lasts time.Duration
	takes time.Duration
}

// windows are those of a dependency; the file was refused for one that cannot be read.
func (d *Dependency) windows() []slow {
	var out []slow
	for i := range d.Slow {
		w := d.Slow[i].Named("")
		opens, err := hpa.ParseSchedule(w.Schedule)
		if err != nil || w.Zone == nil {
			continue
		}
		out = append(out, slow{opens: opens, zone: w.Zone, lasts: w.Duration, takes: time.Duration(d.Slow[i].Time)})
	}
	return out
}

func (w *slow) open(at time.Time) bool {
	start := w.opens.Next(at.Add(-w.lasts), w.zone)
	return !start.IsZero() && !start.After(at)
}

// Moment is the state of the service at a time, with all of its pods warm.
func (o *Online) Moment(at time.Time) measure.Moment {
	u := &o.Spec.Curve
	m := measure.Moment{Dependency: time.Duration(u.Dependency.Time)}
	first := true
	for i := range o.slow {
		if w := &o.slow[i]; w.open(at) && (first || w.takes > m.Dependency) {
			m.Dependency, first = w.takes, false
		}
	}
	for i := range u.Releases {
		if r := &u.Releases[i]; !at.Before(r.At) {
			m.Slower = r.Factor
		}
	}
	return m
}

// Carries is the rate that one warm replica carries at a moment. Where no number of replicas keeps the SLO, since a
// dependency is too slow, it is what one carries without the dependency: more of them would not help.
func (o *Online) Carries(m measure.Moment) float64 {
	c := o.CapacityAt(m)
	if c == 0 {
		m.Dependency = 0
		c = o.CapacityAt(m)
	}
	return c
}

// Changes reports whether the service is not the same at all times.
func (o *Online) Changes() bool { return len(o.slow) > 0 || len(o.Spec.Curve.Releases) > 0 }
