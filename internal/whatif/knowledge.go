package whatif

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

const (
	day = 24 * time.Hour
	// Learns is how much of the history only teaches: a week, so that each weekday was seen.
	Learns = 7 * day
	// Least is the history that a play needs.
	Least = Learns + day
	// knee is the CPU utilization beyond which waiting takes over from service, where no level is learned.
	knee = 0.85
)

// Pace is how finely a history is played.
type Pace struct {
	// Fold is how often the portrait takes in what came since, and a forecast is made of it.
	Fold time.Duration
	// Cycle is the time between two sizings.
	Cycle time.Duration
}

// The paces: by the hour and the minute for a reader who waits, and a coarse one for a controller that judges each of
// its services.
var (
	Fine   = Pace{Fold: time.Hour, Cycle: time.Minute}
	Coarse = Pace{Fold: time.Hour, Cycle: 5 * time.Minute}
)

// Errors of a history that cannot be played.
var (
	ErrShort    = errors.New("eight days of history are needed")
	ErrCapacity = errors.New("what one replica carries is not known: it takes the CPU of its pods, their request and, " +
		"where " +
		"requests are counted, both together")
)

// moment is what was known from a time on: the portrait that has seen all before it, and its forecast.
type moment struct {
	portrait portrait.Portrait
	tide     forecast.Tide
}

// Knowledge is a history, and what was known at each hour of it. It is made once for all cases of a service.
type Knowledge struct {
	// From and To bound what is played.
	From, To time.Time
	// Limit is the load of a ready replica above which a minute is bad, Basis what that is taken from.
	Limit float64
	Basis string
	// StartUp is how long a pod takes from its creation to Ready.
	StartUp time.Duration

	pace        Pace
	load, ready series.Series
	moments     []moment
}

// Learn folds the history of a service into portraits, step by step. The first week only teaches. The error is
// [ErrShort] or [ErrCapacity], with what is there.
func Learn(svc *fleet.Service, b portrait.Batch, pace Pace, po portrait.Options, fo forecast.Options) (*Knowledge,
	error) {
	load := b.Load
	if load.Known() == 0 {
		load = b.CPU
	}
	if load.Step <= 0 || load.End().Sub(load.Start) < Least {
		return nil, fmt.Errorf("there is history of %s: %w", spanText(load), ErrShort)
	}
	k := &Knowledge{pace: pace, load: load, ready: b.Ready, To: load.End()}
	k.From = k.To.Add(-k.To.Sub(load.Start.Add(Learns)).Truncate(day))
	p := portrait.Portrait{Version: portrait.Version, Service: svc.ID}
	folded := load.Start
	for at := k.From; at.Before(k.To); at = at.Add(pace.Fold) {
		po.Backfill = at.Equal(k.From)
		p = portrait.Fold(p, taught(svc, &p, cut(b, folded, at)), po)
		folded = at
		k.moments = append(k.moments, moment{p, forecast.Project(p, at, fo)})
	}
	po.Backfill = false
	p = portrait.Fold(p, taught(svc, &p, cut(b, folded, k.To)), po)
	if k.limit(svc, &p); !(k.Limit > 0) {
		return nil, ErrCapacity
	}
	k.StartUp = hpa.StartUp(svc, &p, hpa.Standard().StartUp)
	return k, nil
}

// taught is a batch with the load that the rule gives a replica by what was known before it: a capacity begins there.
func taught(svc *fleet.Service, p *portrait.Portrait, b portrait.Batch) portrait.Batch {
	b.Levels.Rule = hpa.Rule(svc, p)
	return b
}

// at is what was known at a time.
func (k *Knowledge) at(t time.Time) *moment {
	return &k.moments[min(max(int(t.Sub(k.From)/k.pace.Fold), 0), len(k.moments)-1)]
}

// limit finds the load above which a minute is bad, by all of the history: each case is judged by the same figure. It
// is the smallest load that a stated level was shown to hold at, else a CPU utilization.
func (k *Knowledge) limit(svc *fleet.Service, p *portrait.Portrait) {
	for i := range p.Capacity {
		l := &p.Capacity[i]
		if svc.SLO.Level(l.Name) == nil || l.NotByLoad() {
			continue
		}
		if e := l.Capacity(l.Objective); e.Load > 0 && (k.Limit == 0 || e.Load < k.Limit) {
			k.Limit, k.Basis = e.Load, "learned: "+l.Name
		}
	}
	if k.Limit > 0 {
		return
	}
	util := knee
	if limit := svc.SLO.CPULimit(); limit > 0 {
		util = limit
		if svc.SLO.LatencyLimit() > 0 {
			util = min(util, knee)
		}
	}
	k.Limit = portrait.CapacityPerReplica(*p, svc.Request, util).Value
	k.Basis = fmt.Sprintf("%.0f %% of the CPU request", 100*util)
}

// Peak is the largest known load of a stretch of time; 0 where none is known.
func (k *Knowledge) Peak(from, to time.Time) float64 {
	most := 0.0
	for at := from; at.Before(to); at = at.Add(k.load.Step) {
		if v := k.load.At(at); v > most {
			most = v
		}
	}
	return most
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
	out := portrait.Batch{Load: part(b.Load), CPU: part(b.CPU), Ready: part(b.Ready), StartUps: b.StartUps,
		Levels: b.Levels}
	out.Levels.Of = make([]portrait.LevelValues, len(b.Levels.Of))
	for i, v := range b.Levels.Of {
		v.Values = part(v.Values)
		out.Levels.Of[i] = v
	}
	return out
}

func spanText(s series.Series) string {
	if s.Step <= 0 || s.Known() == 0 {
		return "no minute"
	}
	return fmt.Sprintf("%.1f days", s.End().Sub(s.Start).Hours()/24)
}

func known(v float64) bool { return !math.IsNaN(v) && v >= 0 }
