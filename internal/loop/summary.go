package loop

import (
	"fmt"
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// Summary is what the last days would have been with the service under Auto: shown soon after its creation, so that
// operators can judge before they switch it on.
type Summary struct {
	// Made is when it was made, From and To bound the time that it looks at.
	Made, From, To time.Time
	// CoreHours and CoreHoursStatic compare the cost with holding the peak of the week before × 1.2.
	CoreHours, CoreHoursStatic float64
	// ViolationMinutes are the minutes in which the load would have exceeded what the replicas carry at the SLO.
	ViolationMinutes, ViolationMinutesStatic int
	Verdict                                  string
}

const day, week = 24 * time.Hour, 7 * 24 * time.Hour

// staticMargin is what static provisioning keeps above the peak of the week before.
const staticMargin = 1.2

// Backcast replays the days of a batch, each with a portrait that has seen only the days before it, and sums up what sizing by forecast
// and by the load of the step before would have cost. It leaves out what the lab and the simulator are for: single pods, start-up in
// seconds, budgets. The first week only learns. A service without a capacity a replica, or without a week of history, has no summary.
func Backcast(svc *fleet.Service, b portrait.Batch, o Options) Summary {
	load := b.Load
	if load.Known() == 0 {
		load = b.CPU
	}
	if load.Step <= 0 || load.End().Sub(load.Start) < week+day {
		return Summary{From: load.Start, To: load.Start.Add(time.Duration(load.Len()) * load.Step), Verdict: "needs eight days of history"}
	}
	m := meter{svc: svc, step: load.Step}
	p := portrait.Portrait{Version: portrait.Version, Service: svc.ID}
	from := load.Start
	first := load.End().Add(-load.End().Sub(load.Start.Add(week)).Truncate(day))
	for at := first; at.Before(load.End()); at = at.Add(day) {
		o.Portrait.Backfill = at.Equal(first)
		p = portrait.Fold(p, cut(b, from, at), o.Portrait)
		from = at
		limit, target := capacities(svc, p)
		if limit <= 0 || target <= 0 {
			return Summary{From: first, To: load.End(), Verdict: "the capacity of a replica is not known yet"}
		}
		tide := forecast.Project(p, at, o.Forecast)
		m.day(load, tide, at, at.Add(day), limit, target, ceilDiv(peak(load, at.Add(-week), at)*staticMargin, limit))
	}
	s := Summary{From: first, To: load.End(), CoreHours: m.cores, CoreHoursStatic: m.coresStatic,
		ViolationMinutes: int(m.over.Minutes()), ViolationMinutesStatic: int(m.overStatic.Minutes())}
	s.Verdict = s.verdict()
	return s
}

func (s *Summary) verdict() string {
	saved := 1 - s.CoreHours/s.CoreHoursStatic
	switch {
	case s.ViolationMinutes > s.ViolationMinutesStatic+10:
		return fmt.Sprintf("costs the SLO: %d minutes over the SLO against %d", s.ViolationMinutes, s.ViolationMinutesStatic)
	case saved < 0.05:
		return fmt.Sprintf("little to gain: %.0f %% fewer core-hours", saved*100)
	}
	return fmt.Sprintf("worth it: %.0f %% fewer core-hours, %d minutes over the SLO against %d", saved*100, s.ViolationMinutes, s.ViolationMinutesStatic)
}

// meter adds up days.
type meter struct {
	svc                *fleet.Service
	step               time.Duration
	cores, coresStatic float64
	over, overStatic   time.Duration
}

func (m *meter) day(load series.Series, tide forecast.Tide, from, to time.Time, limit, target float64, static float64) {
	request := m.svc.Request.CPU.Cores()
	quantile := m.svc.Quantile
	if quantile <= 0 {
		quantile = 0.95
	}
	before := math.NaN()
	for at := from; at.Before(to); at = at.Add(m.step) {
		v := load.At(at)
		// Knowledge at the start of a step: the tide, and the load of the step before.
		n := math.Max(float64(m.svc.Min), 1)
		if q := tide.Max(at, at.Add(m.step), quantile); !math.IsNaN(q) {
			n = math.Max(n, math.Ceil(q/target))
		}
		if !math.IsNaN(before) {
			n = math.Max(n, math.Ceil(before/target))
		}
		if m.svc.Max > 0 {
			n = math.Min(n, float64(m.svc.Max))
		}
		m.cores += n * request * m.step.Hours()
		m.coresStatic += static * request * m.step.Hours()
		if v > n*limit {
			m.over += m.step
		}
		if v > static*limit {
			m.overStatic += m.step
		}
		before = v
	}
}

// capacities are the loads of one replica at the SLO and at the utilisation that sizing aims for; zero while they are not known.
func capacities(svc *fleet.Service, p portrait.Portrait) (limit, target float64) {
	// Beyond 85 % waiting takes over from service: the knee that every queue has.
	at, aim := 0.85, 0.6
	switch limit := svc.SLO.CPULimit(); {
	case limit > 0 && svc.SLO.LatencyLimit() > 0:
		at, aim = min(at, limit), min(aim, limit*0.9)
	case limit > 0:
		at, aim = limit, limit*0.9
	}
	return portrait.CapacityPerReplica(p, svc.Request, at).Value, portrait.CapacityPerReplica(p, svc.Request, aim).Value
}

// cut is the part of a batch in [from, to).
func cut(b portrait.Batch, from, to time.Time) portrait.Batch {
	part := func(s series.Series) series.Series {
		s = s.Since(from)
		if s.Step <= 0 || !s.End().After(to) {
			return s
		}
		s.Values = s.Values[:max(s.Index(to), 0)]
		return s
	}
	return portrait.Batch{Load: part(b.Load), CPU: part(b.CPU), Ready: part(b.Ready), StartUps: b.StartUps}
}

func peak(s series.Series, from, to time.Time) float64 {
	most := 0.0
	for at := from; at.Before(to); at = at.Add(s.Step) {
		if v := s.At(at); v > most {
			most = v
		}
	}
	return most
}

func ceilDiv(a, b float64) float64 { return math.Max(math.Ceil(a/b), 1) }
