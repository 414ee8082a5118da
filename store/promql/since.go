package promql

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

const (
	// maxPoints is Prometheus' own limit of points per series of a range query, less one for the inclusive end.
	maxPoints = 10_999
	// minCells is the smallest range that is still asked in halves after an answer was too large.
	minCells = 12
	// longestStartUp drops times to Ready that are rather a pod that lost and regained its readiness.
	longestStartUp = 30 * time.Minute
)

// kindOfHistory is one kind of history: its recorded form and, where that is missing, the raw one. Both are means over one step, but for memory:
// its peak is what a replica needs.
type kindOfHistory struct {
	name     string
	recorded func(scope, time.Duration) string
	raw      func(scope, time.Duration) string
	of       func(*batch) []float64
}

var signals = []kindOfHistory{
	{"load", recordedMean(recordedLoad), rawMean(loadByPod), func(b *batch) []float64 { return b.load }},
	{"CPU", recordedMean(recordedCPU), rawMean(cpuByPod), func(b *batch) []float64 { return b.cpu }},
	// A pod's readiness is a level, so the raw form reads it once, at the end of the step.
	{"ready replicas", recordedMean(recordedReady), rawMean(func(s scope, _ time.Duration) string { return readyByPod(s) }),
		func(b *batch) []float64 { return b.ready }},
	{"memory", func(s scope, step time.Duration) string {
		return fmt.Sprintf("max_over_time(%s[%s])", s.sel(recordedMemory), promDuration(step))
	}, func(s scope, step time.Duration) string {
		return joinedBy("max", memoryByPod(s, step), ownerExpr(s), "")
	}, func(b *batch) []float64 { return b.memory }},
}

func recordedMean(name string) func(scope, time.Duration) string {
	return func(s scope, step time.Duration) string {
		return fmt.Sprintf("avg_over_time(%s[%s])", s.sel(name), promDuration(step))
	}
}

func rawMean(byPod func(scope, time.Duration) string) func(scope, time.Duration) string {
	return func(s scope, step time.Duration) string { return joined(byPod(s, step), ownerExpr(s), "") }
}

// batch is the history of one service while it is assembled; cell i is the mean over [start + i·step, start + (i+1)·step).
type batch struct {
	load, cpu, ready, memory []float64
	// requests are those that presets count, by what counts them.
	requests map[measure][]float64
	startUps []time.Duration
}

// loadFor is the load of a service: its preset's requests where that knows any, else what is read for all services.
func (b *batch) loadFor(s *fleet.Service) []float64 {
	if m, ok := loadOf(s); ok {
		if slices.ContainsFunc(b.requests[m], func(v float64) bool { return !math.IsNaN(v) }) {
			return b.requests[m]
		}
	}
	return b.load
}

// reader assembles the history of all services over one grid.
type reader struct {
	h       *History
	scope   scope
	start   time.Time // of the first cell
	cells   int
	batches map[workload]*batch
	// named are the same workloads without their kinds.
	named map[workload][]workload
	// loads are the requests that presets count for some of the services.
	loads []measure
	// series is the largest number of series seen in an answer, which chunks are cut by.
	series int
}

// Since implements the loop's History. The grid is aligned to multiples of the step, so that equal times of day fall into equal cells; a
// cell that is not over yet is left to the next call, and so are the last ones while the source does not know them yet. A batch begins with
// a cell in which something is known. It fails as a whole, since a hole that was folded into a portrait would never be read again.
func (h *History) Since(ctx context.Context, services []fleet.Service, from, to time.Time) (iter.Seq2[fleet.ServiceID, portrait.Batch], error) {
	if !h.reading.TryLock() {
		return nil, fmt.Errorf("prometheus %s: history: %w", h.name, errBusy)
	}
	defer h.reading.Unlock()
	if err := h.reachable(ctx, to); err != nil {
		return nil, err
	}
	if err := h.probe(ctx, services, to); err != nil {
		return nil, err
	}
	start := from.Truncate(h.o.Step)
	if start.Before(from) {
		start = start.Add(h.o.Step)
	}
	cells := max(int(to.Sub(start)/h.o.Step), 0)
	if cells == 0 {
		return func(func(fleet.ServiceID, portrait.Batch) bool) {}, nil
	}
	refused := refusals{heavy: &h.heavy, now: to}
	batches := map[workload]*batch{}
	err := refused.ask(services, func(sc scope) error {
		// Samples read before an error are dropped with its reader: a smaller question reads it again.
		r := &reader{h: h, scope: sc, start: start, cells: cells, batches: map[workload]*batch{},
			named: map[workload][]workload{}}
		r.series = max(len(services), h.has(recordedCPU), 1)
		for i := range services {
			w := targetOf(&services[i])
			r.batches[w] = nil
			name := workload{namespace: w.namespace, name: w.name}
			r.named[name] = append(r.named[name], w)
		}
		r.loads = slices.DeleteFunc(measuresOf(services), func(m measure) bool { return m.quantity != quantityRequests })
		if err := r.readAll(ctx); err != nil {
			return err
		}
		for w, b := range r.batches {
			if b != nil {
				batches[w] = b
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	levels := h.readLevels(ctx, services, from, to)
	out := func(yield func(fleet.ServiceID, portrait.Batch) bool) {
		for i := range services {
			if b := batches[targetOf(&services[i])]; b != nil && levels.failed[services[i].ID] == nil {
				out, ok := trim(b, levels.loadFor(&services[i], b, start, h.o.Step), start, h.o.Step)
				out.Levels = levels.of(&services[i])
				if ok && !yield(services[i].ID, out) {
					return
				}
			}
		}
	}
	unread := refused.byService(services)
	maps.Copy(unread, levels.failed)
	if len(unread) > 0 {
		return out, &loop.UnreadError{Services: unread}
	}
	return out, nil
}

// readAll reads all cells, in chunks of what the source may answer at once.
func (r *reader) readAll(ctx context.Context) error {
	for a := 0; a < r.cells; {
		b := min(a+min(max(r.h.o.MaxSamples/r.series, minCells), maxPoints), r.cells)
		if err := r.read(ctx, a, b); err != nil {
			return err
		}
		if r.h.o.Alive != nil {
			r.h.o.Alive()
		}
		a = b
	}
	return nil
}

// read reads cells [a, b) of every signal.
func (r *reader) read(ctx context.Context, a, b int) error {
	for _, s := range signals {
		if err := r.readSignal(ctx, s, a, b); err != nil {
			return err
		}
	}
	for _, m := range r.loads {
		expr := m.value(&reading{scope: r.scope, owner: r.owner(), window: r.h.o.Step})
		of := func(b *batch) []float64 { return b.requests[m] }
		if _, _, err := r.readRange(ctx, kindOfHistory{name: m.String(), of: of}, expr, a, b); err != nil {
			return err
		}
	}
	return r.readStartUps(ctx, a, b)
}

// readSignal reads the recorded series, and the raw ones for the head and tail that those do not cover: the rules may have been installed
// only lately, or removed. One missing cell is left as a gap.
func (r *reader) readSignal(ctx context.Context, s kindOfHistory, a, b int) error {
	step := r.h.o.Step
	first, last, err := r.readRange(ctx, s, s.recorded(r.scope, step), a, b)
	if err != nil {
		return err
	}
	if first < 0 {
		_, _, err = r.readRange(ctx, s, s.raw(r.scope, step), a, b)
		return err
	}
	if first > a+1 {
		if _, _, err := r.readRange(ctx, s, s.raw(r.scope, step), a, first); err != nil {
			return err
		}
	}
	if last < b-2 {
		if _, _, err := r.readRange(ctx, s, s.raw(r.scope, step), last+1, b); err != nil {
			return err
		}
	}
	return nil
}

// readRange fills cells [a, b) that are still gaps, and returns the first and last cell that the answer had a number for, or -1. An
// answer that is too large, or takes too long, is asked for again in halves.
func (r *reader) readRange(ctx context.Context, s kindOfHistory, expr string, a, b int) (first, last int, err error) {
	what := "history of " + s.name
	m, err := r.h.matrix(ctx, what, expr, apiv1.Range{Start: r.time(a + 1), End: r.time(b), Step: r.h.o.Step})
	if err != nil {
		if b-a < 2*minCells || !r.smaller(ctx, err) {
			return -1, -1, err
		}
		mid := a + (b-a)/2
		first, last, err = r.readRange(ctx, s, expr, a, mid)
		if err != nil {
			return -1, -1, err
		}
		f, l, err := r.readRange(ctx, s, expr, mid, b)
		if first < 0 {
			first = f
		}
		return first, max(last, l), err
	}
	r.series = max(r.series, len(m))
	first, last = -1, -1
	for _, stream := range m {
		if len(stream.Values) == 0 {
			continue
		}
		f, l := r.cell(stream.Values[0].Timestamp), r.cell(stream.Values[len(stream.Values)-1].Timestamp)
		if first < 0 || f < first {
			first = f
		}
		last = max(last, l)
		for _, w := range r.wanted(stream.Metric) {
			known := r.batches[w]
			if known == nil {
				known = r.newBatch(w)
			}
			r.fill(s.of(known), stream.Values)
		}
	}
	return first, last, nil
}

// wanted are the workloads that a series is of: some sources name a workload without its kind.
func (r *reader) wanted(m model.Metric) []workload {
	w, ok := homeOf(m)
	if !ok {
		return nil
	}
	if w.kind == "" {
		return r.named[w]
	}
	if _, ok := r.batches[w]; ok {
		return []workload{w}
	}
	return nil
}

// fill writes values into the cells that are gaps.
func (r *reader) fill(cells []float64, values []model.SamplePair) {
	for _, p := range values {
		i := r.cell(p.Timestamp)
		if v, ok := finite(p.Value); ok && v >= 0 && i >= 0 && i < len(cells) && math.IsNaN(cells[i]) {
			cells[i] = v
		}
	}
}

// cell is the cell whose mean was evaluated at t, its end.
func (r *reader) cell(t model.Time) int { return int(t.Time().Sub(r.start)/r.h.o.Step) - 1 }

// smaller reports whether the question is worth asking again in halves: when the answer was too large, or when it took too long and the
// source is alive.
func (r *reader) smaller(ctx context.Context, err error) bool {
	if tooMuch(err) {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && r.h.reachable(ctx, r.time(0)) == nil
}

func (r *reader) newBatch(w workload) *batch {
	gaps := func() []float64 { return series.New(r.start, r.h.o.Step, r.cells).Values }
	b := &batch{load: gaps(), cpu: gaps(), ready: gaps(), memory: gaps()}
	for _, m := range r.loads {
		if b.requests == nil {
			b.requests = map[measure][]float64{}
		}
		b.requests[m] = gaps()
	}
	r.batches[w] = b
	return b
}

// readStartUps reads the times to Ready of the pods that became ready in cells [a, b) and still live at their end. It is a sample of all
// pods, which is what quantiles need.
func (r *reader) readStartUps(ctx context.Context, a, b int) error {
	at := r.time(b)
	window := at.Sub(r.time(a))
	since, err := r.seenSince(ctx, r.time(a), at)
	if err != nil {
		return err
	}
	expr := fmt.Sprintf("sum by (namespace, pod, workload_kind, workload) (%s * on (namespace, pod) group_left (workload_kind, workload) %s)",
		startUpByPod(r.scope, window, since), r.owner())
	v, err := r.h.instant(ctx, "times to Ready", expr, at)
	if err != nil {
		return err
	}
	for _, s := range v {
		f, ok := finite(s.Value)
		d := time.Duration(f * float64(time.Second))
		if known := r.batches[workloadOf(s.Metric)]; ok && known != nil && d >= 0 && d <= longestStartUp {
			known.startUps = append(known.startUps, d)
		}
	}
	return nil
}

// seenSince is when kube-state-metrics came back last within the longest start-up before a window; zero where it was there throughout, or was not looked at: windows of a
// backfill are long, and a few odd start-ups among its many change no quantile.
func (r *reader) seenSince(ctx context.Context, from, to time.Time) (time.Time, error) {
	if to.Sub(from) > time.Hour {
		return time.Time{}, nil
	}
	const step = time.Minute
	begin := from.Add(-longestStartUp)
	// A sample counts as long as a late scrape takes, not as long as Prometheus looks back.
	m, err := r.h.matrix(ctx, "kube-state-metrics' presence", fmt.Sprintf("count(last_over_time(%s[%s]))", r.scope.sel("kube_pod_start_time"), promDuration(longestInterval)),
		apiv1.Range{Start: begin, End: to, Step: step})
	if err != nil {
		return time.Time{}, err
	}
	var since time.Time
	last := begin.Add(-step)
	for _, stream := range m {
		for _, p := range stream.Values {
			if t := p.Timestamp.Time(); t.Sub(last) > step {
				since = t
			}
			last = p.Timestamp.Time()
		}
	}
	return since, nil
}

// owner maps pods to workloads: recorded where the rules are installed.
func (r *reader) owner() string {
	if r.h.has(recordedOwner) > 0 {
		return r.scope.sel(recordedOwner)
	}
	return ownerExpr(r.scope)
}

// time is the start of cell i, and the end of cell i-1.
func (r *reader) time(i int) time.Time { return r.start.Add(time.Duration(i) * r.h.o.Step) }

// lateCells is how many cells at the end may still arrive, after late scrapes and rule evaluations. Older ones that are not known now never
// will be: they are given as gaps, so that the portrait's end moves on and the next call does not read them again.
const lateCells = 2

// trim cuts the cells in which nothing is known from both ends: those before, since the service did not exist or was not measured then,
// and the last few, since they may still arrive.
func trim(b *batch, load []float64, start time.Time, step time.Duration) (portrait.Batch, bool) {
	cells := len(load)
	known := func(i int) bool {
		return !math.IsNaN(load[i]) || !math.IsNaN(b.cpu[i]) || !math.IsNaN(b.ready[i])
	}
	lo, hi := 0, cells
	for lo < hi && !known(lo) {
		lo++
	}
	slices.Sort(b.startUps) // an instant query answers in no particular order
	if lo == hi {
		return portrait.Batch{}, false
	}
	for hi > cells-lateCells && hi > lo && !known(hi-1) {
		hi--
	}
	cut := func(v []float64) series.Series {
		return series.Series{Start: start.Add(time.Duration(lo) * step), Step: step, Values: v[lo:hi]}
	}
	out := portrait.Batch{Load: cut(load), CPU: cut(b.cpu), Ready: cut(b.ready), StartUps: b.startUps}
	if memory := cut(b.memory); memory.Known() > 0 {
		out.Memory = memory
	}
	if out.Load.Known() == 0 {
		out.Load = series.Series{}
	}
	return out, true
}
