package promql

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/slo"
)

// judgedByHour is what the controller itself exported of the minutes that it judged, by hour. Each process of it
// counts from zero.
const judgedByHour = `sum by (namespace, service, result) (` +
	`increase(springtide_slo_judged_seconds_total{result=~"good|bad"}[1h]))`

// minutesAtOnce is how much of it one question covers.
const minutesAtOnce = 24 * time.Hour

// Minutes implements the loop's MinuteHistory, where the source scrapes the controller: it reads back the whole
// hours in [from, to).
func (h *History) Minutes(ctx context.Context, services []fleet.Service, from,
	to time.Time) (map[fleet.ServiceID][]slo.Hour, error) {
	if !h.reading.TryLock() {
		return nil, fmt.Errorf("prometheus %s: counted minutes: %w", h.name, errBusy)
	}
	defer h.reading.Unlock()
	if err := h.reachable(ctx, to); err != nil {
		return nil, err
	}
	wanted := make(map[fleet.ServiceID]bool, len(services))
	for i := range services {
		wanted[services[i].ID] = true
	}
	out := map[fleet.ServiceID][]slo.Hour{}
	// An hour is asked for at its end.
	for at := from.Truncate(time.Hour).Add(time.Hour); !at.After(to); at = at.Add(minutesAtOnce) {
		r := apiv1.Range{Start: at, End: earlier(at.Add(minutesAtOnce-time.Hour), to.Truncate(time.Hour)), Step: time.Hour}
		answer, err := h.matrix(ctx, "counted minutes", judgedByHour, r)
		if err != nil {
			return nil, err
		}
		for _, s := range answer {
			id := fleet.ServiceID(fleet.Name{Namespace: string(s.Metric["namespace"]),
				Name: string(s.Metric["service"])}.String())
			if wanted[id] {
				out[id] = counted(out[id], s)
			}
		}
	}
	return out, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// counted adds what a series says of each hour.
func counted(hours []slo.Hour, s *model.SampleStream) []slo.Hour {
	for _, v := range s.Values {
		n := float64(v.Value) / 60
		if !(n >= 0 && n <= 1e6) {
			continue
		}
		begin := v.Timestamp.Time().UTC().Add(-time.Hour)
		i := slices.IndexFunc(hours, func(x slo.Hour) bool { return x.At.Equal(begin) })
		if i < 0 {
			i = len(hours)
			hours = append(hours, slo.Hour{At: begin})
		}
		if s.Metric["result"] == "bad" {
			hours[i].Bad = int(math.Round(n))
		} else {
			hours[i].Good = int(math.Round(n))
		}
	}
	return hours
}
