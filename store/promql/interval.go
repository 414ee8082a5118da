package promql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
)

const (
	// scrapesInWindow is how many scrapes the window of a live rate holds: a rate needs two, one may be late, and one may be lost.
	scrapesInWindow = 4
	// minWindow is the shortest window of live rates, longestInterval the longest interval that is followed: beyond it Prometheus, which looks
	// back five minutes, knows no newest sample half of the time.
	minWindow       = time.Minute
	longestInterval = 150 * time.Second
	// unknownInterval holds until the first ten minutes of a source were seen: Prometheus' default.
	unknownInterval = time.Minute
	// intervalSpan is what an interval is learned from.
	intervalSpan = 10 * time.Minute
	// windowGrid rounds windows up, so that the loss of one scrape in ten minutes does not change every query.
	windowGrid = 15 * time.Second
)

// cadence is how often the counters that live rates are made of are sampled. Two sources, since they are scraped by jobs of their own.
type cadence struct{ cpu, load source }

// source is how often one counter is sampled: in the usual namespace, and in each. Teams have scrape jobs of their own. Zero is unknown.
type source struct {
	every time.Duration
	in    map[string]time.Duration
}

// of is the interval in a namespace.
func (s source) of(namespace string) time.Duration {
	if every, ok := s.in[namespace]; ok {
		return every
	}
	return s.every
}

// slowest is the longest interval, and the namespace where it is longer than usual.
func (s source) slowest() (every time.Duration, namespace string) {
	every = s.every
	for _, n := range slices.Sorted(maps.Keys(s.in)) {
		if s.in[n] > every {
			every, namespace = s.in[n], n
		}
	}
	return every, namespace
}

// sourceOf sorts the counts of samples by namespace into a source. The usual namespace is the one in the middle, of two the slower one.
func sourceOf(counts model.Vector) (source, bool) {
	s := source{in: map[string]time.Duration{}}
	var all []time.Duration
	for _, c := range counts {
		if n, ok := finite(c.Value); ok && n >= 1 {
			every := time.Duration(float64(intervalSpan) / n).Round(time.Millisecond)
			s.in[string(c.Metric["namespace"])] = every
			all = append(all, every)
		}
	}
	if len(all) == 0 {
		return s, false
	}
	slices.Sort(all)
	s.every = all[len(all)/2]
	return s, true
}

// group are services whose sources are sampled alike, so that one query serves them.
type group struct {
	cpu, load  time.Duration // windows
	namespaces int
	services   []fleet.Service
}

// groups divides services by the windows of their sources, the largest group first: where it is too large to be named, its query is about the whole
// fleet, and what the later ones say of their own counts.
func (c cadence) groups(services []fleet.Service) []group {
	var out []group
	for i := range services {
		n := services[i].Target.Namespace
		g := group{cpu: window(c.cpu.of(n)), load: window(c.load.of(n))}
		at := slices.IndexFunc(out, func(o group) bool { return o.cpu == g.cpu && o.load == g.load })
		if at < 0 {
			at, out = len(out), append(out, g)
		}
		out[at].services = append(out[at].services, services[i])
	}
	for i := range out {
		out[i].namespaces = len(namespacesOf(out[i].services))
	}
	slices.SortStableFunc(out, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.namespaces, a.namespaces), cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.load, b.load))
	})
	return out
}

// window is the window of live rates for an interval.
func window(every time.Duration) time.Duration {
	if every <= 0 {
		every = unknownInterval
	}
	w := scrapesInWindow * min(every, longestInterval)
	return max((w + windowGrid - 1).Truncate(windowGrid), minWindow)
}

// measured is the window of what is measured by workload: that of the rules, or longer where scrapes are further apart.
// Exporters of levels are taken to be scraped as the sources that are known.
func (c cadence) measured() time.Duration {
	cpu, _ := c.cpu.slowest()
	load, _ := c.load.slowest()
	return max(ruleWindow, window(max(cpu, load)))
}

// intervalExpr is the number of samples that the median series of a counter had within the span in each namespace, of those that were there before it and
// still are: a container that ended, as all do in a rollout, has fewer samples and says nothing of the interval. Scrapes that were lost are missing in it,
// as they are in the windows: a source that loses a fifth is as slow as one that is asked as much less often.
func intervalExpr(counter string) string {
	return fmt.Sprintf("quantile by (namespace) (0.5, count_over_time(%[1]s[%[2]s]) and (%[1]s offset %[2]s) and (timestamp(%[1]s) >= time() - %[3]g))",
		counter, promDuration(intervalSpan), longestInterval.Seconds())
}

// learnIntervals reads how often the sources are sampled, unless the configuration says so. A source that is too young, or has no series,
// keeps what is known of it. The question is about the whole fleet; where the source cannot answer that, about these namespaces.
func (h *History) learnIntervals(ctx context.Context, names []string, now time.Time) error {
	if every := h.o.ScrapeInterval; every > 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.cadence = cadence{cpu: source{every: every}, load: source{every: every}}
		return nil
	}
	apart := h.heavy.names()
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(apart, n) })
	learn := func(what string, counter func(scope) string, into *source) error {
		var all model.Vector
		asked := 0
		_, err := ask(scope{}.but(apart), names, func(sc scope) error {
			v, err := h.instant(ctx, what, intervalExpr(counter(sc)), now)
			all = append(all, v...)
			asked++
			return err
		})
		if s, ok := sourceOf(all); ok {
			h.mu.Lock()
			defer h.mu.Unlock()
			if asked > 1 && into.every > 0 { // of a part of the fleet: what is known of the rest stays
				s.every = into.every
				for namespace, every := range into.in {
					if _, ok := s.in[namespace]; !ok {
						s.in[namespace] = every
					}
				}
			}
			*into = s
		}
		return err
	}
	return errors.Join(learn("scrape interval of cAdvisor", cpuCounter, &h.cadence.cpu), learn("scrape interval of requests", loadCounter, &h.cadence.load))
}

// paces are the intervals as they are known now.
func (h *History) paces() cadence {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cadence
}
