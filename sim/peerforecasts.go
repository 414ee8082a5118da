package sim

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/forecast/peer"
	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
	"github.com/springtide/springtide/sim/scenario"
)

// delay is how old a minute is before it can be read: a scrape and a recording rule.
const delay = 90 * time.Second

// Past is what peers can know of the services' loads at a time, and the forecasts that they make of it. It depends on
// the true load up to that time less the delay of a scrape, in cores, so that the same forecasts serve every target.
// Forecasts are made once and kept.
type Past struct {
	b  *scenario.Built
	mu sync.Mutex
	// kept are forecasts by service and the time at which they were made.
	cranes map[madeAt]series.Series
	tides  map[madeAt]forecast.Tide
	hours  map[madeAt]float64
	newest map[int]followedTo
}

type madeAt struct {
	kind    string
	service int
	at      time.Time
}

// NewPast returns a past without a query yet.
func NewPast(b *scenario.Built) *Past {
	return &Past{b: b, cranes: map[madeAt]series.Series{}, tides: map[madeAt]forecast.Tide{}, hours: map[madeAt]float64{}, newest: map[int]followedTo{}}
}

// known is the load of a service in cores between two times, as far as it can be known at now.
func (p *Past) known(i int, from, now time.Time) series.Series {
	o := &p.b.Services[i]
	s := o.Load.Since(from)
	n := max(0, min(s.Len(), s.Index(now.Add(-delay))))
	out := series.Series{Start: s.Start, Step: s.Step, Values: make([]float64, n)}
	for k := range n {
		out.Values[k] = s.Values[k] * o.CPUSeconds
	}
	return out
}

// hour is the 0.95 quantile of the hour that holds now, a week ago; of yesterday where there is no week of history.
func (p *Past) hour(i int, now time.Time) float64 {
	top := now.Truncate(time.Hour)
	return remember(p, p.hours, madeAt{"hour", i, top}, func() float64 {
		for _, ago := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour} {
			s := p.known(i, top.Add(-ago), now)
			v := slices.Clone(s.Values[:min(60, len(s.Values))])
			if !s.Start.Equal(top.Add(-ago)) || slices.ContainsFunc(v, math.IsNaN) || len(v) < 60 {
				continue
			}
			slices.Sort(v)
			return v[len(v)*95/100]
		}
		return math.NaN()
	})
}

// craneRefit is how often Crane's predictor fits, craneHistory how much it looks at, craneWindow how far ahead its HPA looks.
const (
	craneRefit   = 12 * time.Hour
	craneHistory = 15 * 24 * time.Hour
	craneWindow  = time.Hour
)

// crane is the largest forecast of Crane's DSP in the coming hour; NaN while it finds no period.
func (p *Past) crane(i int, now time.Time) float64 {
	at := now.Truncate(craneRefit)
	f := remember(p, p.cranes, madeAt{"crane", i, at}, func() series.Series {
		h := p.known(i, at.Add(-delay).Truncate(time.Minute).Add(-craneHistory), at) // DSP cuts to whole days: one minute less is a day
		out := series.Series{Start: h.End(), Step: h.Step}
		for h.Len() > 0 && math.IsNaN(h.Values[0]) {
			h = series.Series{Start: h.Time(1), Step: h.Step, Values: h.Values[1:]}
		}
		if h.Known() < 2*24*60 {
			return out
		}
		const steps = int((craneRefit + craneWindow) / time.Minute)
		paths := peer.AsShipped(peer.CraneDSP)(plain.Input{Histories: []plain.History{{ID: "x", Series: h}}, Horizon: steps + 2, Quantiles: []float64{0.5}})[0].Paths
		if len(paths) > 0 && !constant(paths[0]) { // the last value again: no period was found
			out.Values = paths[0]
		}
		return out
	})
	top := math.NaN()
	for t := now.Truncate(time.Minute); t.Before(now.Add(craneWindow)); t = t.Add(time.Minute) {
		if v := f.At(t); f.Step > 0 && !(v <= top) {
			top = v
		}
	}
	return top
}

func constant(v []float64) bool {
	return !slices.ContainsFunc(v, func(x float64) bool { return x != v[0] })
}

const (
	awsRefit   = 6 * time.Hour
	awsHistory = 14 * 24 * time.Hour
	awsAhead   = 48 * time.Hour
)

// hourly is what our forecaster, at AWS' grain, said at the last refit before now of the hour that holds t.
func (p *Past) hourly(i int, now, t time.Time) float64 {
	at := now.Truncate(awsRefit)
	tide := remember(p, p.tides, madeAt{"aws", i, at}, func() forecast.Tide {
		learned := p.learn(portrait.Portrait{Version: portrait.Version, Service: p.b.Services[i].ID()}, p.known(i, at.Add(-awsHistory), at), time.Hour)
		return forecast.Project(learned, at, forecast.Options{Horizon: awsAhead})
	})
	return tide.At(t, 0.5)
}

const (
	ahpaRefit   = time.Hour
	ahpaHistory = 7 * 24 * time.Hour
	ahpaAhead   = 24 * time.Hour
)

// planned is what our forecaster, at AHPA's history, said at the last plan before now of t.
func (p *Past) planned(i int, now, t time.Time) float64 {
	at := now.Truncate(ahpaRefit)
	tide := remember(p, p.tides, madeAt{"ahpa", i, at}, func() forecast.Tide {
		return forecast.Project(p.followed(i, at), at, forecast.Options{Horizon: ahpaAhead})
	})
	return tide.At(t, ahpaQuantile)
}

// followed is a portrait that began with AHPA's history before the run and follows it: what it saw of the run is not forgotten. Plans are
// made in order, so the newest portrait is all that is kept; who is overtaken by another row learns it again.
func (p *Past) followed(i int, at time.Time) portrait.Portrait {
	p.mu.Lock()
	last, ok := p.newest[i]
	p.mu.Unlock()
	if !ok || last.at.After(at) {
		last.at = p.b.RunStart().Truncate(ahpaRefit)
		last.portrait = p.learn(portrait.Portrait{Version: portrait.Version, Service: p.b.Services[i].ID()}, p.known(i, last.at.Add(-ahpaHistory), last.at), 5*time.Minute)
	}
	for last.at.Before(at) {
		last.at = last.at.Add(ahpaRefit)
		last.portrait = p.learn(last.portrait, p.known(i, last.portrait.End, last.at), 5*time.Minute)
	}
	p.mu.Lock()
	p.newest[i] = last
	p.mu.Unlock()
	return last.portrait
}

// followedTo is a portrait and up to when it has followed.
type followedTo struct {
	at       time.Time
	portrait portrait.Portrait
}

func (p *Past) learn(known portrait.Portrait, h series.Series, step time.Duration) portrait.Portrait {
	return portrait.Fold(known, portrait.Batch{CPU: h}, portrait.Options{Step: step, Backfill: true})
}

// remember makes a value once.
func remember[V any](p *Past, kept map[madeAt]V, key madeAt, make func() V) V {
	p.mu.Lock()
	v, ok := kept[key]
	p.mu.Unlock()
	if ok {
		return v
	}
	v = make()
	p.mu.Lock()
	kept[key] = v
	p.mu.Unlock()
	return v
}
