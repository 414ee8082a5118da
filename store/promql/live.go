package promql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/signal"
)

var errBusy = errors.New("the previous read is still under way")

// Prefetch implements the loop's History. Samples that were read are kept even when another query fails.
func (h *History) Prefetch(ctx context.Context, services []fleet.Service, now time.Time) error {
	if !h.prefetching.TryLock() {
		return fmt.Errorf("prometheus %s: prefetch: %w", h.name, errBusy)
	}
	defer h.prefetching.Unlock()
	h.meter.turn()
	h.mu.Lock()
	h.index.unsound = byPod[float64]{}
	h.mu.Unlock()
	err := h.prefetch(ctx, services, now)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.index.forget(now)
	h.lastErr = err
	return err
}

func (h *History) prefetch(ctx context.Context, services []fleet.Service, now time.Time) error {
	if err := h.reachable(ctx, now); err != nil {
		return err
	}
	if err := h.probe(ctx, services, now); err != nil {
		return err
	}
	groups := h.paces().groups(services)
	each := func(refused *refusals, read func(g group, sc scope) podSignal) error {
		var errs []error
		for _, g := range groups {
			errs = append(errs, refused.ask(g.services, func(sc scope) error { return h.prefetchPods(ctx, read(g, sc), now) }))
		}
		return errors.Join(errs...)
	}
	jobs := []func(*refusals) error{
		func(r *refusals) error {
			return each(r, func(g group, sc scope) podSignal {
				return podSignal{"CPU by pod", cpuByPod(sc, g.cpu), sampledByPod(cpuCounter(sc), g.cpu), &h.index.cpu}
			})
		},
		func(r *refusals) error {
			return each(r, func(g group, sc scope) podSignal {
				return podSignal{"load by pod", loadByPod(sc, g.load), sampledByPod(loadCounter(sc), g.load), &h.index.load}
			})
		},
		func(r *refusals) error { return h.prefetchLatency(ctx, r, services, now) },
		func(*refusals) error { return h.prefetchTenants(ctx, services, now) },
	}
	errs, refused := make([]error, len(jobs)), make([]refusals, len(jobs))
	for i := range refused {
		refused[i] = refusals{heavy: &h.heavy, now: now}
	}
	var wg sync.WaitGroup
	for i, job := range jobs {
		wg.Go(func() { errs[i] = job(&refused[i]) })
	}
	wg.Wait()
	h.mu.Lock()
	h.index.filled = true
	h.index.refused = map[fleet.ServiceID]error{}
	for i := range refused {
		maps.Copy(h.index.refused, refused[i].byService(services))
		errs[i] = errors.Join(errs[i], refused[i].all(services))
	}
	h.mu.Unlock()
	return errors.Join(errs...)
}

// podSignal is one signal that is read by pod: its rate, the times of the samples behind it, and where it is kept.
type podSignal struct {
	what, expr, sampled string
	into                *byPod[sample]
}

// prefetchPods reads one signal by pod, and when it was scraped.
func (h *History) prefetchPods(ctx context.Context, p podSignal, now time.Time) error {
	values, err := h.instant(ctx, p.what, p.expr, now)
	if err != nil || len(values) == 0 {
		return err
	}
	scraped, err := h.instant(ctx, p.what+" (scrape times)", p.sampled, now)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.index.put(p.into, values, scraped)
	return nil
}

// latencyQueriesPerCycle is how many distinct SLO quantiles are asked for in one cycle; more take turns, so that the number of queries
// stays fixed. Fleets use one to three.
const latencyQueriesPerCycle = 4

// prefetchLatency reads each SLO quantile that some service names.
func (h *History) prefetchLatency(ctx context.Context, refused *refusals, services []fleet.Service, now time.Time) error {
	var qs []float64
	for i := range services {
		if q := services[i].SLO.LatencyQuantile(); q > 0 && q < 1 {
			qs = append(qs, q)
		}
	}
	slices.Sort(qs)
	qs = slices.Compact(qs)
	if n := len(qs); n > latencyQueriesPerCycle {
		h.mu.Lock()
		first := h.nextQuantile % n
		h.nextQuantile = first + latencyQueriesPerCycle
		h.mu.Unlock()
		qs = slices.Concat(qs[first:], qs[:first])[:latencyQueriesPerCycle]
	}
	for _, q := range qs {
		if err := refused.ask(services, func(sc scope) error { return h.prefetchQuantile(ctx, q, sc, now) }); err != nil {
			return err
		}
	}
	return nil
}

func (h *History) prefetchQuantile(ctx context.Context, q float64, sc scope, now time.Time) error {
	expr, source := h.latencyExpr(q, sc)
	what := fmt.Sprintf("latency quantile %g", q)
	values, err := h.instant(ctx, what, expr, now)
	if err != nil || len(values) == 0 {
		return err
	}
	scraped := make(map[workload]time.Time, len(values))
	if source != "" {
		times, err := h.instant(ctx, what+" (sample times)", fmt.Sprintf("min by (%s) (timestamp(%s))", byWorkload, source), now)
		if err != nil {
			return err
		}
		for _, s := range times {
			scraped[workloadOf(s.Metric)] = fromSeconds(float64(s.Value))
		}
	}
	latencyWindow := h.latencyWindow()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range values {
		w := workloadOf(s.Metric)
		at, ok := scraped[w]
		if !ok && source == "" {
			// The raw expression is computed over the window that ends now: its middle is the age it can claim.
			at, ok = now.Add(-latencyWindow/2), true
		}
		if f, number := finite(s.Value); number && ok && f >= 0 {
			h.index.latency[latencyKey{w, q}] = fleet.KnownAt(f, at)
		}
	}
	return nil
}

// latencyExpr is the expression for a latency quantile, and the recorded series that its age is read from; empty for the raw one.
func (h *History) latencyExpr(q float64, sc scope) (expr, source string) {
	if q == 0.99 && h.has(recordedP99) > 0 {
		s := sc.sel(recordedP99)
		return s, s
	}
	if h.has(recordedBuckets) > 0 {
		s := sc.sel(recordedBuckets)
		return fmt.Sprintf("histogram_quantile(%g, %s)", q, s), s
	}
	return fmt.Sprintf("histogram_quantile(%g, %s)", q, joined(bucketsByPod(sc, h.latencyWindow()), ownerExpr(sc), ", le")), ""
}

// latencyWindow is the window of the raw latency quantiles: that of the rules, or longer where scrapes are further apart.
func (h *History) latencyWindow() time.Duration {
	load, _ := h.paces().load.slowest()
	return max(ruleWindow, window(load))
}

// Live implements the loop's History: the samples as they were read. Every service is in the answer, with what is
// known of it.
func (h *History) Live(_ context.Context, services []fleet.Service, now time.Time) (signal.Samples, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := signal.Samples{Requests: h.index.load.handOut(), CPU: h.index.cpu.handOut(), Unsound: h.index.unsound.handOut(),
		Services: make(map[fleet.ServiceID]signal.Service, len(services))}
	for i := range services {
		out.Services[services[i].ID] = h.index.service(&services[i], h.cadence)
	}
	switch {
	case h.lastErr != nil:
		return out, h.lastErr
	case !h.index.filled:
		return out, fmt.Errorf("prometheus %s: %w", h.name, loop.ErrNotRead)
	}
	return out, nil
}

// service is what the index knows of one service and not of its pods.
func (x *index) service(s *fleet.Service, every cadence) signal.Service {
	namespace := s.Target.Namespace
	out := signal.Service{CPUWindow: window(every.cpu.of(namespace)), RequestsWindow: window(every.load.of(namespace))}
	if v, ok := x.latency[latencyKey{targetOf(s), s.SLO.LatencyQuantile()}]; ok {
		out.Latency = fleet.KnownAt(time.Duration(math.Round(v.Value*float64(time.Second))), v.At)
	}
	for _, m := range s.Metrics {
		v, ok := x.tenant[metricKey{s.ID, m.Name, m.Query}]
		if m.Type != fleet.MetricQuery || !ok {
			continue
		}
		if out.Queries == nil {
			out.Queries = map[string]fleet.Known[float64]{}
		}
		out.Queries[m.Name] = v
	}
	return out
}
