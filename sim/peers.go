package sim

import (
	"math"
	"time"

	"github.com/springtide/springtide/hpa"
)

// static keeps last week's peak and a margin.
func static(margin, headroom float64) Policy { return staticPolicy{margin / headroom} }

type staticPolicy struct{ factor float64 }

// Decide implements Policy.
func (p staticPolicy) Decide(w *World) {
	for i := range w.services {
		s := &w.services[i]
		s.desired = int32(math.Ceil(float64(s.Static)*p.factor - 1e-9))
	}
}

// byLastWeek is a cron schedule of floors: for each hour the 0.95 quantile of the same hour a week ago, or of yesterday's where there is no
// week of history.
func byLastWeek(p *Past, target float64) ask {
	return func(w *World, i int, _ int32) int32 {
		return w.services[i].replicasAt(p.hour(i, w.now), target)
	}
}

// byCrane is the metric of Crane's DSP: the largest forecast of the next hour.
func byCrane(p *Past, target float64) ask {
	return func(w *World, i int, current int32) int32 {
		s := &w.services[i]
		v := p.crane(i, w.now)
		if math.IsNaN(v) {
			return 0
		}
		return hpa.ReactiveValue(v, target*float64(s.Cores), current, tolerance)
	}
}

// phpaPoints is how many of the newest replica counts PHPA's line goes through, phpaAhead how far it looks.
const (
	phpaPoints = 6
	phpaAhead  = 10 * time.Second
)

// byLine is PHPA's linear regression over the counts that its HPA asked for.
func byLine(services int, metric ask) ask {
	counts := make([][]float64, services)
	return func(w *World, i int, current int32) int32 {
		now := metric(w, i, current)
		c := append(counts[i], float64(now))
		if len(c) > phpaPoints {
			c = c[1:]
		}
		counts[i] = c
		n := float64(len(c))
		if n < 2 {
			return now
		}
		meanX, meanY, xy, xx := (n-1)/2, 0.0, 0.0, 0.0
		for _, y := range c {
			meanY += y / n
		}
		for x, y := range c {
			xy += (float64(x) - meanX) * (y - meanY)
			xx += (float64(x) - meanX) * (float64(x) - meanX)
		}
		ahead := meanY + xy/xx*(n-1+float64(phpaAhead)/float64(tick)-meanX)
		return max(now, int32(math.Ceil(ahead-1e-9)))
	}
}

// awsLead is how long before the top of its hour a forecast capacity stands.
const awsLead = 300 * time.Second

// byAWS is the capacity of an hourly forecast, out only: from 300 s before an hour what that hour is said to need, and until it is over.
func byAWS(p *Past, target float64) ask {
	return func(w *World, i int, _ int32) int32 {
		s := &w.services[i]
		return max(s.replicasAt(p.hourly(i, w.now, w.now), target), s.replicasAt(p.hourly(i, w.now, w.now.Add(awsLead)), target))
	}
}

// The parameters of AHPA's documentation.
const (
	ahpaForward  = 180 * time.Second
	ahpaQuantile = 0.95
)

// byAHPA is the proactive part of AHPA: the 0.95 quantile of a plan of a day, 180 s ahead.
func byAHPA(p *Past, target float64) ask {
	return func(w *World, i int, _ int32) int32 {
		s := &w.services[i]
		return s.replicasAt(p.planned(i, w.now, w.now.Add(ahpaForward)), target)
	}
}
