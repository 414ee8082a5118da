package promql

import (
	"context"
	"fmt"
	"time"
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

// cadence is how often the counters that live rates are made of are sampled; zero while unknown. Two sources, since they are scraped by
// jobs of their own.
type cadence struct{ cpu, load time.Duration }

// window is the window of live rates for an interval.
func window(every time.Duration) time.Duration {
	if every <= 0 {
		every = unknownInterval
	}
	w := scrapesInWindow * min(every, longestInterval)
	return max((w + windowGrid - 1).Truncate(windowGrid), minWindow)
}

// intervalExpr is the number of samples that the median series of a counter had within the span, of those that were there before it. Scrapes
// that were lost are missing in it, as they are in the windows: a source that loses a fifth is as slow as one that is asked as much less often.
func intervalExpr(counter string) string {
	span := promDuration(intervalSpan)
	return fmt.Sprintf("quantile(0.5, count_over_time(%[1]s[%[2]s]) and (%[1]s offset %[2]s))", counter, span)
}

// learnIntervals reads how often the sources are sampled, unless the configuration says so. A source that is too young, or has no series,
// keeps what is known of it.
func (h *History) learnIntervals(ctx context.Context, sc scope, now time.Time) error {
	if every := h.o.ScrapeInterval; every > 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.cadence = cadence{cpu: every, load: every}
		return nil
	}
	learn := func(what, counter string, into *time.Duration) error {
		v, err := h.instant(ctx, what, intervalExpr(counter), now)
		if err != nil || len(v) == 0 {
			return err
		}
		if n, ok := finite(v[0].Value); ok && n >= 1 {
			h.mu.Lock()
			defer h.mu.Unlock()
			*into = time.Duration(float64(intervalSpan) / n).Round(time.Millisecond)
		}
		return nil
	}
	if err := learn("scrape interval of cAdvisor", cpuCounter(sc), &h.cadence.cpu); err != nil {
		return err
	}
	return learn("scrape interval of requests", loadCounter(sc), &h.cadence.load)
}

// windows are the windows of live rates of CPU and of requests.
func (h *History) windows() (cpu, load time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return window(h.cadence.cpu), window(h.cadence.load)
}
