package promql

import (
	"context"
	"fmt"
	"time"

	"github.com/springtide/springtide/fleet"
)

// measuresPerCycle is how many measures are asked for in one cycle; more take turns, so that the number of queries
// stays fixed. Fleets use two to six.
const measuresPerCycle = 8

// prefetchLevels reads what the SLOs of services need, but for CPU and what belongs to one service alone: within the
// time of one query of our own, so that a slow measure costs other measures a cycle and never the cycle. A measure that
// is not answered leaves its levels as they were, aged; only a source that is gone is an error.
func (h *History) prefetchLevels(ctx context.Context, refused *refusals, services []fleet.Service,
	now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, h.o.Timeout)
	defer cancel()
	all := measuresOf(services)
	for range min(len(all), measuresPerCycle) {
		if ctx.Err() != nil {
			return nil
		}
		h.mu.Lock()
		m := all[h.nextMeasure%len(all)]
		h.nextMeasure = (h.nextMeasure + 1) % len(all)
		h.mu.Unlock()
		err := refused.ask(services, func(sc scope) error { return h.prefetchMeasure(ctx, m, sc, now) })
		if err == nil {
			continue
		}
		if down := h.reachable(ctx, now); down != nil {
			return down
		}
	}
	return nil
}

func (h *History) prefetchMeasure(ctx context.Context, m measure, sc scope, now time.Time) error {
	answer, err := h.instant(ctx, m.String(), h.timed(m, sc), now)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	into := h.index.levels[m]
	if into == nil {
		into = map[workload]sample{}
		h.index.levels[m] = into
	}
	for w, v := range measuredOf(answer) {
		into[w] = v
	}
	return nil
}

// timed is the expression of a measure and of its sample times. Where the recording rules are installed the latency of
// OpenTelemetry is read from them.
func (h *History) timed(m measure, sc scope) string {
	r := h.readingOf(sc, h.paces().measured())
	sampled := m.sampled(r)
	if source, _ := h.recordedLatency(m, sc); source != "" {
		sampled = fmt.Sprintf("max by (%s) (timestamp(%s))", byWorkload, source) + onWorkload + sampled
	}
	return timed(h.valueOf(m, r), sampled)
}

// valueOf is the expression of a measure.
func (h *History) valueOf(m measure, r *reading) string {
	value := m.value(r)
	if source, expr := h.recordedLatency(m, r.scope); source != "" {
		value = expr + onWorkload + value
	}
	return value
}

// readingOf is what expressions of a scope are made with now.
func (h *History) readingOf(sc scope, window time.Duration) *reading {
	r := &reading{scope: sc, owner: ownerExpr(sc), window: window}
	if h.has(recordedOwner) > 0 {
		r.owner = sc.sel(recordedOwner)
	}
	return r
}

// recordedLatency is the recorded series that a measure can be read from, and how; empty where there is none.
func (h *History) recordedLatency(m measure, sc scope) (source, expr string) {
	switch {
	case m.quantity != quantityLatency || m.preset != fleet.PresetOTel:
		return "", ""
	case m.quantile == 0.99 && h.has(recordedP99) > 0:
		s := sc.sel(recordedP99)
		return s, s
	case h.has(recordedBuckets) > 0:
		s := sc.sel(recordedBuckets)
		return s, fmt.Sprintf("histogram_quantile(%g, %s)", m.quantile, s)
	}
	return "", ""
}

// levelsOf are the newest values of a service's levels, by name.
func (x *index) levelsOf(s *fleet.Service) map[string]fleet.Known[float64] {
	var out map[string]fleet.Known[float64]
	for i := range s.SLO.Levels {
		l := &s.SLO.Levels[i]
		v, ok := x.level(s, l)
		if !ok {
			continue
		}
		if out == nil {
			out = make(map[string]fleet.Known[float64], len(s.SLO.Levels))
		}
		out[l.Name] = v
	}
	return out
}

// level is the newest value of a level.
func (x *index) level(s *fleet.Service, l *fleet.Level) (sample, bool) {
	if m, ok := measureOf(l); ok {
		return lookUp(s, x.levels[m])
	}
	var of []sample
	for _, q := range ownQueries(s, l) {
		v, ok := x.tenant[q.key]
		if !ok {
			return sample{}, false
		}
		of = append(of, v)
	}
	switch len(of) {
	case 1:
		return of[0], true
	case 2:
		return shareOf(of[0], of[1])
	}
	return sample{}, false
}

// shareOf is the share of failed requests; unknown where there are none. It is as old as the older of both.
func shareOf(bad, total sample) (sample, bool) {
	if !(total.Value > 0) {
		return sample{}, false
	}
	at := bad.At
	if total.At.Before(at) {
		at = total.At
	}
	return fleet.KnownAt(min(bad.Value/total.Value, 1), at), true
}
