package promql

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
)

// tenantQueries lists the services' own queries in the order of the services, and those over the cap of a service.
func (h *History) tenantQueries(services []fleet.Service) (asked, over []metricKey) {
	for i := range services {
		s, n := &services[i], 0
		for _, m := range s.Metrics {
			if m.Type != fleet.MetricQuery {
				continue
			}
			k := metricKey{s.ID, m.Name, m.Query}
			if n++; n > h.o.TenantQueriesPerService {
				over = append(over, k)
				continue
			}
			asked = append(asked, k)
		}
	}
	return asked, over
}

// prefetchTenants asks the next few of the tenants' queries, round robin over cycles and within the time of one query of our own: slow
// queries delay other tenants' by a cycle at worst, and never the cycle. A query that fails is its tenant's problem, shown in [Stats];
// only a source that cannot be reached is an error.
func (h *History) prefetchTenants(ctx context.Context, services []fleet.Service, now time.Time) error {
	all, over := h.tenantQueries(services)
	h.mu.Lock()
	h.index.keepTenants(all)
	for _, k := range over {
		h.index.problems[k] = fmt.Sprintf("not asked: a service may have %d queries; remove some", h.o.TenantQueriesPerService)
	}
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, h.o.Timeout)
	defer cancel()
	for range min(len(all), h.o.TenantQueriesPerCycle) {
		if ctx.Err() != nil {
			return nil
		}
		h.mu.Lock()
		k := all[h.nextTenant%len(all)]
		h.nextTenant = (h.nextTenant + 1) % len(all)
		h.mu.Unlock()
		v, err := h.askTenant(ctx, k, now)
		if err != nil && h.down.Load() {
			// A query may bring an error of the server, or of a proxy before it, that speaks of this query alone. Our own question decides.
			if down := h.reachable(ctx, now); down != nil {
				return down
			}
			err = errors.New("the source did not answer this query, though it answers others: make the query cheaper, or ask who runs Prometheus")
		}
		h.mu.Lock()
		h.index.putTenant(k, sample{v, now}, err)
		h.mu.Unlock()
	}
	return nil
}

// askTenant evaluates one confined query. Two series are enough to know that it has too many, so no more are fetched; and the lookback is
// short, so that a value is never older than it claims by more than the window of live rates.
func (h *History) askTenant(ctx context.Context, k metricKey, now time.Time) (float64, error) {
	// The namespace is the ElasticService's own, which its author may write in.
	expr, err := Confine(k.expr, h.o.NamespaceLabel, fleet.ParseName(string(k.service)).Namespace)
	if err == nil {
		expr, err = h.own.tenant(expr)
	}
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.o.TenantTimeout)
	defer cancel()
	h.meter.add(Cost{TenantQueries: 1})
	v, warnings, _, err := h.api.Query(ctx, expr, now,
		apiv1.WithTimeout(h.o.TenantTimeout), apiv1.WithLimit(2), apiv1.WithLookbackDelta(h.tenantLookback()))
	if errors.Is(err, context.DeadlineExceeded) {
		// A slow query does not mean that the source is down.
		h.meter.failed()
		return 0, fmt.Errorf("no answer within %v: make the query cheaper", h.o.TenantTimeout)
	}
	if err := h.outcome("query "+k.metric+" of "+string(k.service), withoutLimit(warnings), err); err != nil {
		return 0, err
	}
	return single(v)
}

// withoutLimit drops the warning that our own limit causes.
func withoutLimit(ws apiv1.Warnings) apiv1.Warnings {
	var out apiv1.Warnings
	for _, w := range ws {
		if w != "results truncated due to limit" {
			out = append(out, w)
		}
	}
	return out
}

// single is the value of an answer that must hold exactly one, which is no negative number: no load is.
func single(v model.Value) (float64, error) {
	var value model.SampleValue
	switch v := v.(type) {
	case *model.Scalar:
		value = v.Value
	case model.Vector:
		if len(v) == 0 {
			return 0, errors.New("no value: the series may not exist in this namespace")
		}
		if len(v) > 1 {
			return 0, errors.New("more than one value: aggregate it, as in sum(...)")
		}
		value = v[0].Value
	default:
		return 0, fmt.Errorf("the answer is a %s: want one value, as of sum(...)", v.Type())
	}
	f, ok := finite(value)
	if !ok || f < 0 {
		return 0, fmt.Errorf("the value is %v: want a number that is not negative", value)
	}
	return f, nil
}

// keepTenants forgets the samples and problems of queries that are no longer there.
func (x *index) keepTenants(all []metricKey) {
	have := make(map[metricKey]bool, len(all))
	for _, k := range all {
		have[k] = true
	}
	for k := range x.tenant {
		if !have[k] {
			delete(x.tenant, k)
		}
	}
	for k := range x.problems {
		if !have[k] {
			delete(x.problems, k)
		}
	}
}

func (x *index) putTenant(k metricKey, s sample, err error) {
	if err != nil {
		x.problems[k] = err.Error()
		return
	}
	delete(x.problems, k)
	x.tenant[k] = s
}

// tenantLookback is how old the series of a tenant's query may be. How often they are scraped is their owner's choice: as often as the sources
// that are known, unless that is oftener than usual.
func (h *History) tenantLookback() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	cpu, _ := h.cadence.cpu.slowest()
	load, _ := h.cadence.load.slowest()
	return max(missingAfter, scrapesInWindow*max(cpu, load))
}
