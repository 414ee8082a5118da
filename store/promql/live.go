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
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
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
	clear(h.index.strange)
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
				return podSignal{"CPU by pod", cpuByPod(sc, g.cpu), sampledByPod(cpuCounter(sc), g.cpu), h.index.cpu}
			})
		},
		func(r *refusals) error {
			return each(r, func(g group, sc scope) podSignal {
				return podSignal{"load by pod", loadByPod(sc, g.load), sampledByPod(loadCounter(sc), g.load), h.index.load}
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
	into                map[fleet.Name]sample
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

// Live implements the loop's History. Every service is in the answer, with what is known of it.
func (h *History) Live(_ context.Context, services []fleet.Service, now time.Time) (map[fleet.ServiceID]hpa.Live, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[fleet.ServiceID]hpa.Live, len(services))
	clear(h.index.causes)
	for i := range services {
		l := h.index.live(&services[i], h.cadence, now)
		out[services[i].ID] = l
		h.index.causes[services[i].ID] = h.index.cause(&services[i], &l, now)
	}
	switch {
	case h.lastErr != nil:
		return out, h.lastErr
	case !h.index.filled:
		return out, fmt.Errorf("prometheus %s: %w", h.name, loop.ErrNotRead)
	}
	return out, nil
}

// live assembles what the index knows of one service.
func (x *index) live(s *fleet.Service, every cadence, now time.Time) hpa.Live {
	cpuWindow, loadWindow := window(every.cpu.of(s.Target.Namespace)), window(every.load.of(s.Target.Namespace))
	l := hpa.Live{CPU: map[fleet.Name]fleet.Known[fleet.MilliCPU]{}, Signals: map[string]fleet.Known[float64]{}}
	for i := range s.Pods {
		if v, ok := x.cpu[s.Pods[i].Name]; ok {
			l.CPU[s.Pods[i].Name] = fleet.KnownAt(fleet.FromCores(v.Value), v.At)
		}
	}
	requests := x.total(s, portrait.Requests, loadWindow, now)
	l.Load, l.LoadSignal, l.Window = requests, portrait.Requests, max(cpuWindow, loadWindow)
	if !requests.OK {
		l.Load, l.LoadSignal = x.total(s, portrait.CPU, cpuWindow, now), portrait.CPU
		l.Window = cpuWindow
	}
	if v, ok := x.latency[latencyKey{targetOf(s), s.SLO.LatencyQuantile()}]; ok {
		l.Latency = fleet.KnownAt(time.Duration(math.Round(v.Value*float64(time.Second))), v.At)
	}
	for _, m := range s.Metrics {
		switch m.Type {
		case fleet.MetricRequests:
			l.Signals[m.Name] = requests
		case fleet.MetricQuery:
			if v, ok := x.tenant[metricKey{s.ID, m.Name, m.Query}]; ok {
				l.Signals[m.Name] = v
			}
		}
	}
	return l
}

// total is the load of a service in one signal, and remembers it for the next look.
func (x *index) total(s *fleet.Service, of portrait.Signal, window time.Duration, now time.Time) fleet.Known[float64] {
	samples, countUnready := x.load, true
	if of == portrait.CPU {
		samples, countUnready = x.cpu, false
	}
	key := shareKey{s.ID, of}
	out, next := signal.Total(s, samples, x.shares[key], window, now, countUnready)
	x.shares[key] = next
	return out
}

// cause is why the load of a service is missing; none where it is fresh, or no pod ought to be measured.
func (x *index) cause(s *fleet.Service, l *hpa.Live, now time.Time) loop.DataProblem {
	if l.Load.Fresh(now, signal.MissingAfter(l.Window)) || !slices.ContainsFunc(s.Pods, func(p fleet.Pod) bool { return signal.MustReport(&p, l.Window, now) }) {
		return loop.DataProblem{}
	}
	for i := range s.Pods {
		if v, ok := x.strange[s.Pods[i].Name]; ok {
			return loop.DataProblem{Cause: loop.CauseNotFinite, Message: fmt.Sprintf("the rate of pod %s is %v, which no load is; to fix: correct the exporter, or drop its series", s.Pods[i].Name.Name, v)}
		}
	}
	if l.Load.OK {
		return loop.DataProblem{Cause: loop.CauseSamplesTooOld, Message: "the newest samples of its pods are of " + l.Load.At.UTC().Format("15:04:05 UTC") +
			"; to fix: look whether the kubelets of their machines, and the pods, are still scraped"}
	}
	return loop.DataProblem{Cause: loop.CauseNoSeries, Message: "the source has no series of CPU or requests of most of its pods; to fix: springtide doctor --prometheus URL says what the source lacks"}
}
