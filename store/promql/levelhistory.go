package promql

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/portrait/capacity"
	"github.com/springtide/springtide/series"
	"github.com/springtide/springtide/slo"
)

const (
	// levelStep is the grid of levels in what was not read before: each known minute teaches. fineSpan is how far back it
	// is asked for; a backfill has the grid of history.
	levelStep = time.Minute
	fineSpan  = 2 * time.Hour
	// ownReadings is how many of the services' own sources one reading of history asks; more take turns. ownTime bounds
	// their time together, and ownPatience one of them, as a multiple of the time of a live one.
	ownReadings = 200
	ownTime     = 20 * time.Second
	ownPatience = 5
)

// grid is where the values of levels stand: value i speaks for the cell from start + i·step on, and was evaluated at
// its end.
type grid struct {
	start time.Time
	step  time.Duration
	cells int
}

// gridOf is the grid of levels of a reading.
func (h *History) gridOf(from, to time.Time) grid {
	g := grid{step: h.o.Step}
	if to.Sub(from) <= fineSpan {
		g.step = min(levelStep, g.step)
	}
	if g.start = from.Truncate(g.step); g.start.Before(from) {
		g.start = g.start.Add(g.step)
	}
	g.cells = max(int(to.Sub(g.start)/g.step), 0)
	return g
}

func (g grid) time(i int) time.Time { return g.start.Add(time.Duration(i) * g.step) }

// fill writes what a stream has for cells.
func (g grid) fill(into []float64, values []model.SamplePair) {
	for _, p := range values {
		i := int(p.Timestamp.Time().Sub(g.start)/g.step) - 1
		if v, ok := finite(p.Value); ok && v >= 0 && i >= 0 && i < len(into) && math.IsNaN(into[i]) {
			into[i] = v
		}
	}
}

// levelReader reads the history of levels.
type levelReader struct {
	h    *History
	grid grid
	// measured is what measures brought, own what services' own sources did.
	measured map[measure]map[workload][]float64
	own      map[metricKey][]float64
	// failed are the services whose load is a query that could not be read.
	failed map[fleet.ServiceID]error
	// aside are the signs of minutes that teach no capacity, by why.
	aside map[capacity.Apart]map[workload][]float64
}

// readLevels reads the levels of services. A level that cannot be read is a hole: it teaches nothing, and holds nothing
// else up.
func (h *History) readLevels(ctx context.Context, services []fleet.Service, from, to time.Time) *levelReader {
	r := &levelReader{h: h, grid: h.gridOf(from, to), measured: map[measure]map[workload][]float64{},
		own: map[metricKey][]float64{}, failed: map[fleet.ServiceID]error{},
		aside: map[capacity.Apart]map[workload][]float64{}}
	if r.grid.cells == 0 {
		return r
	}
	refused := refusals{heavy: &h.heavy, now: to}
	for _, m := range measuresOf(services) {
		if m.quantity == quantityRequests || ctx.Err() != nil {
			continue
		}
		_ = refused.ask(services, func(sc scope) error { return r.readMeasure(ctx, m, sc, len(services)) })
	}
	r.readAside(ctx, services, &refused)
	r.readLoads(ctx, services)
	r.readOwn(ctx, services)
	return r
}

// readMeasure reads a measure.
func (r *levelReader) readMeasure(ctx context.Context, m measure, sc scope, services int) error {
	if r.measured[m] == nil {
		r.measured[m] = map[workload][]float64{}
	}
	return r.readInto(ctx, r.measured[m], m.String(), r.h.valueOf(m, r.h.readingOf(sc, r.h.paces().measured())), services)
}

// readInto reads the values of an expression by workload, in chunks of what the source may answer at once.
func (r *levelReader) readInto(ctx context.Context, into map[workload][]float64, what, expr string,
	services int) error {
	for a := 0; a < r.grid.cells; {
		b := min(a+min(max(r.h.o.MaxSamples/max(services, 1), minCells), maxPoints), r.grid.cells)
		answer, err := r.h.matrix(ctx, "history of "+what, expr, r.span(a, b))
		if err != nil {
			return err
		}
		for _, s := range answer {
			w, ok := homeOf(s.Metric)
			if !ok {
				continue
			}
			if into[w] == nil {
				into[w] = series.New(r.grid.start, r.grid.step, r.grid.cells).Values
			}
			r.grid.fill(into[w], s.Values)
		}
		if r.h.o.Alive != nil {
			r.h.o.Alive()
		}
		a = b
	}
	return nil
}

// span asks for cells [a, b), each at its end.
func (r *levelReader) span(a, b int) apiv1.Range {
	return apiv1.Range{Start: r.grid.time(a + 1), End: r.grid.time(b), Step: r.grid.step}
}

// readLoads reads the queries that are the loads of services. One that fails leaves its service unread until the next
// reading: a hole that was folded into a portrait would never be read again.
func (r *levelReader) readLoads(ctx context.Context, services []fleet.Service) {
	ctx, cancel := context.WithTimeout(ctx, ownTime)
	defer cancel()
	for _, q := range r.h.loadsInTurn(services) {
		values, err := r.askOwn(ctx, &q)
		r.h.noteLoad(q.key, err != nil, r.grid.time(r.grid.cells))
		if err != nil {
			r.failed[q.key.service] = fmt.Errorf("spec.slo.throughput.query: %w", err)
			continue
		}
		r.own[q.key] = values
	}
}

// loadsInTurn are the queries of loads in the order in which they are asked: those that failed come last, the one that
// failed longest ago first. So a query that takes all the time keeps no other service from being read.
func (h *History) loadsInTurn(services []fleet.Service) []ownQuery {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []ownQuery
	failed := map[metricKey]time.Time{}
	for i := range services {
		if q, ok := arrivals(&services[i]); ok {
			all = append(all, q)
			if at, ok := h.loadFailed[q.key]; ok {
				failed[q.key] = at
			}
		}
	}
	h.loadFailed = failed // what is stated no more is forgotten
	slices.SortStableFunc(all, func(a, b ownQuery) int { return failed[a.key].Compare(failed[b.key]) })
	return all
}

// noteLoad notes how a query of a load went.
func (h *History) noteLoad(key metricKey, failed bool, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if failed {
		h.loadFailed[key] = at
	} else {
		delete(h.loadFailed, key)
	}
}

// arrivals is the query of the work that arrives at a service, which is its load.
func arrivals(s *fleet.Service) (ownQuery, bool) {
	if l := s.SLO.Level(fleet.LevelNameThroughput); l != nil {
		if of := ownQueries(s, l); len(of) == 1 {
			return of[0], true
		}
	}
	return ownQuery{}, false
}

// loadFor is the load of a service on the grid of history: the work that arrives, by its query, else what a preset
// counts, else the requests that are read for all services.
func (r *levelReader) loadFor(s *fleet.Service, b *batch, start time.Time, step time.Duration) []float64 {
	q, ok := arrivals(s)
	if !ok {
		return b.loadFor(s)
	}
	out := series.New(start, step, len(b.cpu)).Values
	sum, n := make([]float64, len(out)), make([]int, len(out))
	for i, v := range r.own[q.key] {
		if k := int(r.grid.time(i).Sub(start) / step); !math.IsNaN(v) && k >= 0 && k < len(out) &&
			!r.grid.time(i).Before(start) {
			sum[k] += v
			n[k]++
		}
	}
	for k := range out {
		if 2*n[k]*int(r.grid.step/time.Second) >= int(step/time.Second) && n[k] > 0 {
			out[k] = sum[k] / float64(n[k])
		}
	}
	return out
}

// readOwn reads the services' own sources, as many as there is time for.
func (r *levelReader) readOwn(ctx context.Context, services []fleet.Service) {
	var all []ownQuery
	for i := range services {
		for k := range services[i].SLO.Levels {
			if l := &services[i].SLO.Levels[k]; teaches(l) {
				all = append(all, ownQueries(&services[i], l)...)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, ownTime)
	defer cancel()
	for range min(len(all), ownReadings) {
		if ctx.Err() != nil {
			return
		}
		r.h.mu.Lock()
		q := all[r.h.nextOwn%len(all)]
		r.h.nextOwn = (r.h.nextOwn + 1) % len(all)
		r.h.mu.Unlock()
		if values, _ := r.askOwn(ctx, &q); values != nil {
			r.own[q.key] = values
		}
	}
}

// askOwn reads one of a service's own sources, in chunks of what Prometheus answers at once; nil where it gives no
// single series. A value without new samples is a hole.
func (r *levelReader) askOwn(ctx context.Context, q *ownQuery) ([]float64, error) {
	expr, _, err := r.h.ownExpr(q)
	if err != nil {
		return nil, err
	}
	var out []float64
	for a := 0; a < r.grid.cells; a += maxPoints {
		b := min(a+maxPoints, r.grid.cells)
		answer, err := r.askSpan(ctx, q, expr, a, b)
		if err != nil {
			return nil, err
		}
		if part := r.ofOwn(q, answer); part != nil {
			if out == nil {
				out = series.New(r.grid.start, r.grid.step, r.grid.cells).Values
			}
			copy(out[a:b], part[a:b])
		}
		if r.h.o.Alive != nil {
			r.h.o.Alive()
		}
	}
	return out, nil
}

// askSpan asks a service's own source for the cells [a, b).
func (r *levelReader) askSpan(ctx context.Context, q *ownQuery, expr string, a, b int) (model.Matrix, error) {
	patience := ownPatience * r.h.o.TenantTimeout
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r.h.meter.add(Cost{TenantQueries: 1})
	v, warnings, _, err := r.h.api.QueryRange(ctx, expr, r.span(a, b),
		append(r.h.tenantLimits(q), apiv1.WithTimeout(patience))...)
	if err != nil {
		return nil, err
	}
	if err := r.h.outcome(q.key.String()+" of "+string(q.key.service), withoutLimit(warnings), nil); err != nil {
		return nil, err
	}
	answer, _ := v.(model.Matrix)
	return answer, nil
}

// ofOwn is the one series of an answer, where its samples were new; nil where there is none, or more than one.
func (r *levelReader) ofOwn(q *ownQuery, answer model.Matrix) []float64 {
	gaps := func() []float64 { return series.New(r.grid.start, r.grid.step, r.grid.cells).Values }
	out, sampled, found := gaps(), gaps(), 0
	for _, s := range answer {
		if q.histogram.Name != "" && workloadOf(s.Metric) != q.target {
			continue
		}
		switch s.Metric[answerIs] {
		case isValue:
			found++
			r.grid.fill(out, s.Values)
		case isTime:
			r.grid.fill(sampled, s.Values)
		}
	}
	if found != 1 {
		return nil
	}
	for i := range out {
		if !(sampled[i] > 0) {
			out[i] = math.NaN()
		}
	}
	return out
}

// teaches reports whether minutes of a level are good or bad by its value.
func teaches(l *fleet.Level) bool {
	return l.Kind == fleet.LevelLatency || l.Kind == fleet.LevelErrors || l.Kind == fleet.LevelUtilization
}

// of are the levels of a service as the portrait takes them.
func (r *levelReader) of(s *fleet.Service) portrait.Levels {
	var out portrait.Levels
	good := s.SLO.Objective.GoodMinutes
	if !(good > 0 && good < 1) {
		good = slo.DefaultGood
	}
	for i := range s.SLO.Levels {
		l := &s.SLO.Levels[i]
		if values := r.values(s, l); values != nil {
			out.Of = append(out.Of, portrait.LevelValues{Name: l.Name, Limit: l.Limit, Objective: good,
				Values: series.Series{Start: r.grid.start, Step: r.grid.step, Values: values}})
		}
	}
	out.Apart = r.apart(s)
	return out
}

// values are those of a level that teaches and is not CPU, which is learned as a load; gaps where it was not measured.
func (r *levelReader) values(s *fleet.Service, l *fleet.Level) []float64 {
	if !teaches(l) || l.Name == fleet.LevelNameCPU || r.grid.cells == 0 {
		return nil
	}
	var out []float64
	if m, ok := measureOf(l); ok {
		out, _ = lookUp(s, r.measured[m])
	} else {
		out = r.ownValues(ownQueries(s, l))
	}
	if out == nil {
		out = series.New(r.grid.start, r.grid.step, r.grid.cells).Values
	}
	return out
}

// ownValues are those of a service's own source: of two queries the share of failed requests.
func (r *levelReader) ownValues(of []ownQuery) []float64 {
	switch len(of) {
	case 1:
		return r.own[of[0].key]
	case 2:
		bad, total := r.own[of[0].key], r.own[of[1].key]
		if bad == nil || total == nil {
			return nil
		}
		out := make([]float64, len(bad))
		for i := range out {
			if out[i] = min(bad[i]/total[i], 1); !(total[i] > 0) {
				out[i] = math.NaN()
			}
		}
		return out
	}
	return nil
}
