package promql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/signal"
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
		h.index.problems[k] = problem{Cause: loop.CauseQueryRefused, Message: fmt.Sprintf("not asked: a service may have %d queries; remove some", h.o.TenantQueriesPerService)}
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
		if !answered(err) {
			// A query may bring an error of the server, or of a proxy before it, that speaks of this query alone. Our own question decides.
			if down := h.reachable(ctx, now); down != nil {
				return down
			}
			err = because(loop.CauseNoAnswer, "the source did not answer this query, though it answers others: make the query cheaper, or ask who runs Prometheus")
		}
		h.mu.Lock()
		h.index.putTenant(k, fleet.KnownAt(v, now), err)
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
		return 0, problemOf(err, loop.CauseQueryRefused)
	}
	ctx, cancel := context.WithTimeout(ctx, h.o.TenantTimeout)
	defer cancel()
	h.meter.add(Cost{TenantQueries: 1})
	v, warnings, _, err := h.api.Query(ctx, expr, now,
		apiv1.WithTimeout(h.o.TenantTimeout), apiv1.WithLimit(2), apiv1.WithLookbackDelta(h.tenantLookback()))
	if errors.Is(err, context.DeadlineExceeded) {
		// A slow query does not mean that the source is down.
		h.meter.failed()
		return 0, because(loop.CauseNoAnswer, "no answer within %v: make the query cheaper", h.o.TenantTimeout)
	}
	if err := h.outcome("query "+k.metric+" of "+string(k.service), withoutLimit(warnings), err); err != nil {
		return 0, err
	}
	value, err := single(v)
	if err != nil && err.Error() == "" {
		return 0, h.diagnose(ctx, k, expr, now)
	}
	return value, err
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

// single is the value of an answer that must hold exactly one, which is no negative number: no load is. Its errors are problems; one without a message is of an empty answer.
func single(v model.Value) (float64, error) {
	var value model.SampleValue
	switch v := v.(type) {
	case *model.Scalar:
		value = v.Value
	case model.Vector:
		if len(v) == 0 {
			return 0, problem{Cause: loop.CauseNoSeries}
		}
		if len(v) > 1 {
			return 0, because(loop.CauseSeveralValues, "more than one value%s: aggregate it, as in sum(...)", differ(v[0].Metric, v[1].Metric))
		}
		value = v[0].Value
	default:
		return 0, because(loop.CauseQueryRefused, "the answer is a %s: want one value, as of sum(...)", v.Type())
	}
	switch f, ok := finite(value); {
	case !ok && f != f:
		return 0, because(loop.CauseNotFinite, "the value is NaN, as of 0 / 0 or a quantile of no requests: say what that means, as in (QUERY) >= 0 or vector(0)")
	case !ok:
		return 0, because(loop.CauseNotFinite, "the value is %v, as of a division by zero: say what that means, as in (QUERY) < Inf or vector(0)", value)
	case f < 0:
		return 0, because(loop.CauseNegative, "the value is %v: want a number that is not negative", value)
	default:
		return f, nil
	}
}

// differ names a label that two series differ by: it is the one to aggregate over, or the one under which the source holds copies.
func differ(a, b model.Metric) string {
	var names []model.LabelName
	for l := range a {
		names = append(names, l)
	}
	for l := range b {
		names = append(names, l)
	}
	slices.Sort(names)
	for _, l := range names {
		if a[l] != b[l] {
			return fmt.Sprintf(", as of %s=%q and %q", l, min(a[l], b[l]), max(a[l], b[l])) // in one order, so that a condition does not change
		}
	}
	return ""
}

// problem is an error of a tenant's query that has a cause.
type problem struct {
	Cause   loop.Cause
	Message string
	// at is when it was found out.
	at time.Time
}

func (p problem) Error() string { return p.Message }

func because(c loop.Cause, format string, args ...any) error {
	return problem{Cause: c, Message: fmt.Sprintf(format, args...)}
}

// problemOf is the problem of an error; what has no cause of its own has the given one.
func problemOf(err error, otherwise loop.Cause) problem {
	var p problem
	if errors.As(err, &p) {
		return p
	}
	return problem{Cause: otherwise, Message: err.Error()}
}

const (
	// diagnoseEvery is how often it is found out why an answer is empty: that takes two questions more.
	diagnoseEvery = 5 * time.Minute
	// lateBy is how far back series are looked for that end.
	lateBy = time.Hour
)

// diagnose finds out why the answer to a confined query is empty: which of its series are not there, which have no new samples, or that the query leaves none of them.
func (h *History) diagnose(ctx context.Context, k metricKey, expr string, now time.Time) error {
	h.mu.Lock()
	last := h.index.problems[k]
	h.mu.Unlock()
	if !last.at.IsZero() && now.Sub(last.at) < diagnoseEvery {
		return last
	}
	e, err := tenantParser.ParseExpr(expr)
	if err != nil {
		return err
	}
	var selectors []string
	for s := range selectorsOf(e) {
		bare := *s
		bare.OriginalOffset, bare.Offset, bare.Timestamp, bare.StartOrEnd = 0, 0, nil, 0
		selectors = append(selectors, bare.String())
	}
	missing := func(span time.Duration) (string, error) {
		var parts []string
		for i, s := range selectors {
			parts = append(parts, fmt.Sprintf(`label_replace(count(last_over_time(%s[%s])), "springtide_selector", "%d", "", "")`, s, promDuration(span), i))
		}
		v, _, _, err := h.api.Query(ctx, strings.Join(parts, " or "), now, apiv1.WithTimeout(h.o.TenantTimeout))
		there, ok := v.(model.Vector)
		if err != nil || !ok {
			return "", err
		}
		for i, s := range selectors {
			if !slices.ContainsFunc(there, func(x *model.Sample) bool { return string(x.Metric["springtide_selector"]) == strconv.Itoa(i) }) {
				return s, nil
			}
		}
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.o.TenantTimeout)
	defer cancel()
	h.meter.add(Cost{TenantQueries: 2})
	found := problem{at: now}
	if s, err := missing(lateBy); err != nil {
		return because(loop.CauseNoValue, "no value, and why could not be found out: %v", withoutURL(err))
	} else if s != "" {
		found.Cause = loop.CauseNoSeries
		found.Message = fmt.Sprintf("no value: no series of the last hour match %s; correct the name and the labels, or scrape it with the label %s", s, h.o.NamespaceLabel)
		return found
	}
	s, err := missing(h.tenantLookback())
	switch {
	case err != nil:
		return because(loop.CauseNoValue, "no value, and why could not be found out: %v", withoutURL(err))
	case s != "":
		found.Cause, found.Message = loop.CauseSamplesTooOld, fmt.Sprintf("no value: the newest samples of %s are older than %v; look whether its target is still scraped", s, h.tenantLookback())
	default:
		found.Cause, found.Message = loop.CauseNoValue, "no value: the series are there, and the query leaves none of them, as a comparison or a join does; say what that means, as in (QUERY) or vector(0)"
	}
	return found
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
		x.problems[k] = problemOf(err, loop.CauseNoAnswer)
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
	return signal.MissingAfter(scrapesInWindow * max(cpu, load))
}
