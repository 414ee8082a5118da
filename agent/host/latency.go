package host

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/agent/notice"
	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/fleet"
)

const (
	// latencyFresh is how old a pod's file may be to speak of now, latencyGiven how old to say that the pod still measures: in between the signal is
	// stale, and stops growth.
	latencyFresh = 15 * time.Second
	latencyGiven = 5 * time.Minute
)

// latencyOf is the indicator of the pods that measure their own latency: how long it is as a share of its limit, that of the pod that fares worst. It is
// not there while no pod measures.
func latencyOf(boxes []notice.Box, now time.Time) (shape.Indicator, bool) {
	out, given := shape.Latency(fleet.Known[float64]{}), false
	for _, b := range boxes {
		said := b.Read(notice.FileLatency)
		age := now.Sub(said.At)
		ratio, ok := parseLatency(said.Text)
		if !ok || age > latencyGiven || age < -latencyFresh {
			continue
		}
		given = true
		if age <= latencyFresh && (!out.Value.OK || ratio > out.Value.Value) {
			out.Value = fleet.KnownAt(ratio, now)
		}
	}
	return out, given
}

// parseLatency reads a latency and its limit, both in seconds, as in "0.18 0.25".
func parseLatency(text string) (ratio float64, ok bool) {
	f := strings.Fields(text)
	if len(f) != 2 {
		return 0, false
	}
	is, err := strconv.ParseFloat(f[0], 64)
	limit, err2 := strconv.ParseFloat(f[1], 64)
	ratio = is / limit
	return ratio, err == nil && err2 == nil && is >= 0 && limit > 0 && !math.IsInf(ratio, 0) && !math.IsNaN(ratio)
}
