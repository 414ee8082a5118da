package looptest

import (
	"context"
	"hash/fnv"
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
	"github.com/springtide/springtide/signal"
)

const (
	step = 5 * time.Minute
	// delay is how old a sample is before it can be read: a scrape and a recording rule.
	delay = 90 * time.Second
	// trough is the load of the night as a share of the peak.
	trough = 0.15
)

// Truth is the CPU that a service uses at a time, in cores: one tide a day that is highest at 20:00, lower at weekends, with a little noise
// that hangs on the service and the minute alone.
func (w *World) Truth(id fleet.ServiceID, at time.Time) float64 {
	load := w.nature(id, at)
	if w.o.Twist != nil {
		return w.o.Twist(id, at, load)
	}
	return load
}

// nature is the truth before it is twisted.
func (w *World) nature(id fleet.ServiceID, at time.Time) float64 {
	hours := float64(at.Unix()%86400) / 3600
	tide := (1 + math.Cos((hours-20)/24*2*math.Pi)) / 2
	load := w.o.Peak * (trough + (1-trough)*tide*tide)
	if d := at.UTC().Weekday(); d == time.Saturday || d == time.Sunday {
		load *= 0.8
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	h.Write([]byte(strconv.FormatInt(at.Unix()/60, 10)))
	return load * (1 + 0.04*(float64(h.Sum64()%2000)/1000-1))
}

// Since implements loop.History.
func (w *World) Since(_ context.Context, services []fleet.Service, from, to time.Time) (iter.Seq2[fleet.ServiceID, portrait.Batch], error) {
	w.Reads = append(w.Reads, Read{At: w.now, From: from, Services: len(services)})
	if w.HistoryErr != nil {
		return nil, w.HistoryErr
	}
	if begin := w.o.Start.Add(-w.o.History); from.Before(begin) {
		from = begin
	}
	first, last := from.Truncate(step), to.Add(-delay).Truncate(step)
	if first.Before(from) {
		first = first.Add(step)
	}
	var err error
	if len(w.Unread) > 0 {
		err = &loop.UnreadError{Services: w.Unread}
	}
	return func(yield func(fleet.ServiceID, portrait.Batch) bool) {
		for i := range services {
			if w.Unread[services[i].ID] != nil {
				continue
			}
			n := max(int(last.Sub(first)/step), 0)
			b := portrait.Batch{CPU: series.New(first, step, n)}
			if w.o.Requests > 0 {
				b.Load = series.New(first, step, n)
			}
			for j := range n {
				at := b.CPU.Time(j).Add(step / 2)
				load := w.Truth(services[i].ID, at)
				b.CPU.Values[j] = w.answer(at, portrait.CPU, load)
				if w.o.Requests > 0 {
					b.Load.Values[j] = w.answer(at, portrait.Requests, load*w.o.Requests)
				}
			}
			if b.CPU.Known() > 0 && !yield(services[i].ID, b) {
				return
			}
		}
	}, err
}

// Live implements loop.History: what Prefetch read last, ageing while it cannot read.
func (w *World) Live(context.Context, []fleet.Service, time.Time) (signal.Samples, error) {
	return w.live, w.HistoryErr
}

// Prefetch implements loop.History: the pods that are ready share the load.
func (w *World) Prefetch(_ context.Context, services []fleet.Service, now time.Time) error {
	if w.HistoryErr != nil {
		return w.HistoryErr
	}
	w.live = signal.Samples{CPU: map[fleet.Name]fleet.Known[float64]{}, Services: map[fleet.ServiceID]signal.Service{}}
	for i := range services {
		load := w.Truth(services[i].ID, now)
		if math.IsNaN(load) {
			continue
		}
		var of signal.Service
		if w.o.Requests > 0 {
			of.Requests = w.sample(now, portrait.Requests, load*w.o.Requests)
		} else {
			of.CPU = w.sample(now, portrait.CPU, load)
		}
		for _, m := range services[i].Metrics {
			if m.Type == fleet.MetricQuery { // a queue in which a second's work waits
				if of.Queries == nil {
					of.Queries = map[string]fleet.Known[float64]{}
				}
				of.Queries[m.Name] = w.sample(now, portrait.Requests, load)
			}
		}
		for j := range services[i].Pods {
			p := &services[i].Pods[j]
			if each := w.sample(now, portrait.CPU, load/float64(services[i].Ready())); p.Ready && each.OK && !math.IsNaN(each.Value) {
				w.live.CPU[p.Name] = fleet.KnownAt(each.Value, now)
			}
		}
		w.live.Services[services[i].ID] = of
	}
	return nil
}

// answer is what the source says of a value, NaN where it does not answer.
func (w *World) answer(at time.Time, of portrait.Signal, value float64) float64 {
	if k := w.sample(at, of, value); k.OK {
		return k.Value
	}
	return math.NaN()
}

// sample is what the source says of a value.
func (w *World) sample(at time.Time, of portrait.Signal, value float64) fleet.Known[float64] {
	if w.o.Lie == nil {
		return fleet.KnownAt(value, at)
	}
	said, ok := w.o.Lie(w.now, at, of, value)
	return fleet.Known[float64]{Value: said, At: at, OK: ok}
}
