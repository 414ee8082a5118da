package promql

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
		func(r *refusals) error { return h.prefetchLevels(ctx, r, services, now) },
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
	if err := errors.Join(errs...); err != nil {
		return err
	}
	h.findProblems(ctx, services, now)
	return nil
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

// Live implements the loop's History: the samples as they were read. Every service is in the answer, with what is
// known of it.
func (h *History) Live(_ context.Context, services []fleet.Service, now time.Time) (signal.Samples, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := signal.Samples{Requests: h.index.load.handOut(), CPU: h.index.cpu.handOut(), Unsound: h.index.unsound.handOut(),
		Services: make(map[fleet.ServiceID]signal.Service, len(services))}
	for i := range services {
		out.Services[services[i].ID] = h.index.service(&services[i], h.cadence, h.cadence.measured())
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
func (x *index) service(s *fleet.Service, every cadence, measured time.Duration) signal.Service {
	namespace := s.Target.Namespace
	out := signal.Service{CPUWindow: window(every.cpu.of(namespace)), RequestsWindow: window(every.load.of(namespace)),
		Levels: x.levelsOf(s)}
	if m, ok := loadOf(s); ok {
		if v, ok := lookUp(s, x.levels[m]); ok {
			out.Requests, out.RequestsWindow = v, measured
		}
	}
	if q, ok := arrivals(s); ok {
		out.Requests = x.tenant[q.key]
	}
	for _, m := range s.Metrics {
		v, ok := x.tenant[metricKey{service: s.ID, metric: m.Name, expr: m.Query}]
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
