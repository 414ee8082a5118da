package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// The limiter lets the process use its quota: work of 60 ms at 30 in 100 takes longer than the work alone. No upper
// bound: the machine may be busy.
func TestTheQuotaIsKept(t *testing.T) {
	l := newLimiter(quota{each: 30 * time.Millisecond, period: 100 * time.Millisecond})
	begin, used := time.Now(), processorTime()
	done := make(chan struct{})
	for range 3 {
		go func() {
			l.work(40 * time.Millisecond)
			done <- struct{}{}
		}()
	}
	for range 3 {
		<-done
	}
	// 120 ms are four quotas at least, of which the last begins after three periods.
	if took := time.Since(begin); took < 290*time.Millisecond {
		t.Errorf("120 ms of work at 30 in 100 took %s", took)
	}
	if used := processorTime() - used; used < 120*time.Millisecond {
		t.Errorf("120 ms of work used %s", used)
	}
}

func TestTheHistogramIsCumulative(t *testing.T) {
	h := &histogram{}
	for _, d := range []time.Duration{3 * time.Millisecond, 250 * time.Millisecond, 251 * time.Millisecond,
		20 * time.Second} {
		h.observe(d)
	}
	var page bytes.Buffer
	h.expose(&page)
	for _, line := range []string{`bucket{le="0.005"} 1`, `bucket{le="0.1"} 1`, `bucket{le="0.25"} 2`,
		`bucket{le="0.5"} 3`, `bucket{le="10"} 3`, `bucket{le="+Inf"} 4`,
		"count 4", "sum 20.504"} {
		if want := "http_server_request_duration_seconds_" + line + "\n"; !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %s:\n%s", want, page.String())
		}
	}
}
