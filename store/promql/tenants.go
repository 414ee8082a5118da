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

// tenantQueries lists what services measure by sources of their own, in the order of the services, and the metrics over
// the cap of a service. A level has one source at most, so that the SLO bounds those.
func (h *History) tenantQueries(services []fleet.Service) (asked []ownQuery, over []metricKey) {
	for i := range services {
		s, n := &services[i], 0
		for _, m := range s.Metrics {
			if m.Type != fleet.MetricQuery {
				continue
			}
			k := metricKey{service: s.ID, metric: m.Name, expr: m.Query}
			if n++; n > h.o.TenantQueriesPerService {
				over = append(over, k)
				continue
			}
			asked = append(asked, ownQuery{key: k})
		}
		for k := range s.SLO.Levels {
			asked = append(asked, ownQueries(s, &s.SLO.Levels[k])...)
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
		q := all[h.nextTenant%len(all)]
		h.nextTenant = (h.nextTenant + 1) % len(all)
		h.mu.Unlock()
		v, err := h.askTenant(ctx, &q, now)
		if !answered(err) {
			// A query may bring an error of the server, or of a proxy before it, that speaks of this query alone. Our own question decides.
			if down := h.reachable(ctx, now); down != nil {
				return down
			}
			err = because(loop.CauseNoAnswer, "the source did not answer this query, though it answers others: make the query cheaper, or ask who runs Prometheus")
		}
		h.mu.Lock()
		h.index.putTenant(q.key, v, err)
		h.mu.Unlock()
	}
	return nil
}

// askTenant asks one of a service's own sources.
func (h *History) askTenant(ctx context.Context, q *ownQuery, now time.Time) (sample, error) {
	expr, confined, err := h.ownExpr(q)
	if err != nil {
		return sample{}, problemOf(err, loop.CauseQueryRefused)
	}
	ctx, cancel := context.WithTimeout(ctx, h.o.TenantTimeout)
	defer cancel()
	h.meter.add(Cost{TenantQueries: 1})
	v, warnings, _, err := h.api.Query(ctx, expr, now, append(h.tenantLimits(q), apiv1.WithTimeout(h.o.TenantTimeout))...)
	if errors.Is(err, context.DeadlineExceeded) {
		// A slow query does not mean that the source is down.
		h.meter.failed()
		return sample{}, because(loop.CauseNoAnswer, "no answer within %v: make the query cheaper", h.o.TenantTimeout)
	}
	if err := h.outcome(q.key.String()+" of "+string(q.key.service), withoutLimit(warnings), err); err != nil {
		return sample{}, err
	}
	answer, ok := v.(model.Vector)
	if !ok {
		return sample{}, because(loop.CauseQueryRefused, "the answer is a %s: want one value, as of sum(...)", v.Type())
	}
	if q.histogram.Name != "" {
		return ofHistogram(q, answer)
	}
	if q.key.level && isNaN(answer) {
		return sample{}, errIdle
	}
	value, err := single(answer)
	if err != nil && err.Error() == "" {
		return sample{}, h.diagnose(ctx, q.key, confined, now)
	}
	return value, err
}

// isNaN reports whether the one value of an answer is that of no requests, which a level may have at night.
func isNaN(answer model.Vector) bool {
	values := 0
	for _, s := range answer {
		if s.Metric[answerIs] == isValue {
			values++
			if s.Value == s.Value {
				return false
			}
		}
	}
	return values == 1
}

// ownExpr is the question of one of a service's own sources as it is sent, and that of a query as it is confined.
func (h *History) ownExpr(q *ownQuery) (expr, confined string, err error) {
	// The namespace is the ElasticService's own, which its author may write in.
	namespace := fleet.ParseName(string(q.key.service)).Namespace
	if q.histogram.Name != "" {
		f, err := ownForm(&q.histogram)
		if err != nil {
			return "", "", err
		}
		p := Preset{forms: []form{f}}
		r := h.readingOf(scopeIn([]string{namespace}), h.paces().measured())
		expr, err = h.own.query(timed(p.latency(q.quantile, r), p.sampled(r)))
		return expr, "", err
	}
	within := Confine
	if q.key.level {
		within = ConfineLevel
	}
	confined, err = within(q.key.expr, h.o.NamespaceLabel, namespace)
	if err == nil {
		confined, err = h.own.tenant(confined)
	}
	if err == nil {
		expr, err = timedQuery(confined)
	}
	return expr, confined, err
}

// tenantLimits bound the answer to one question. Two series and a time are enough to know that a query has too many, so
// no more are fetched; and the lookback is short, so that what ended has no time.
func (h *History) tenantLimits(q *ownQuery) []apiv1.Option {
	out := []apiv1.Option{apiv1.WithLookbackDelta(h.tenantLookback())}
	if q.histogram.Name == "" {
		out = append(out, apiv1.WithLimit(3))
	}
	return out
}

// ofHistogram is the value of a service's own histogram. Where its series are there and no request was counted, it is
// not known, and that is no problem.
func ofHistogram(q *ownQuery, answer model.Vector) (sample, error) {
	if v, ok := measuredOf(answer)[q.target]; ok {
		return v, nil
	}
	for _, s := range answer {
		if workloadOf(s.Metric) == q.target && s.Metric[answerIs] == isTime {
			return sample{}, errIdle
		}
	}
	return sample{}, because(loop.CauseNoSeries, "no pod of the service exports the histogram %s with the labels "+
		"namespace and pod; to fix: correct its name and "+
		"matchers, or scrape it with these labels", q.histogram.Name)
}

// errIdle says that a level has no value, since no request was counted.
var errIdle = errors.New("no requests")

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

// single is the value of an answer that must hold exactly one, which is no negative number: no load is. It is as old as
// the samples that it depends on. Its errors are problems; one without a message is of an empty answer.
func single(answer model.Vector) (sample, error) {
	var values []*model.Sample
	var at time.Time
	sampled := false
	for _, s := range answer {
		switch what := s.Metric[answerIs]; {
		case what == isValue:
			values = append(values, s)
		case what == isTime:
			at, sampled = known(float64(s.Value))
		}
	}
	switch len(values) {
	case 0:
		return sample{}, problem{Cause: loop.CauseNoSeries}
	case 1:
	default:
		return sample{}, because(loop.CauseSeveralValues, "more than one value%s: aggregate it, as in sum(...)",
			differ(values[0].Metric, values[1].Metric))
	}
	value := values[0].Value
	switch f, ok := finite(value); {
	case !ok && f != f:
		return sample{}, because(loop.CauseNotFinite, "the value is NaN, as of 0 / 0 or a quantile of no requests: say "+
			"what that means, as in (QUERY) >= 0 or vector(0)")
	case !ok:
		return sample{}, because(loop.CauseNotFinite, "the value is %v, as of a division by zero: say what that means, "+
			"as in (QUERY) < Inf or vector(0)", value)
	case f < 0:
		return sample{}, because(loop.CauseNegative, "the value is %v: want a number that is not negative", value)
	case !sampled:
		return sample{}, because(loop.CauseSamplesTooOld, "the value %v depends on series without new samples: a range, "+
			"a constant or an offset goes on after they "+
			"end; look whether their target is still scraped, and write what is true without them as (QUERY) or 0 * "+
			"sum(SERIES THAT IS ALWAYS THERE)", value)
	default:
		return fleet.KnownAt(f, at), nil
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
func (x *index) keepTenants(all []ownQuery) {
	have := make(map[metricKey]bool, len(all))
	for i := range all {
		have[all[i].key] = true
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
	if errors.Is(err, errIdle) {
		delete(x.problems, k)
		return
	}
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
