package whatif

import (
	"fmt"
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Scaler decides how many replicas there are to be from what is known at a time.
type Scaler interface {
	Replicas(w *World) int32
}

// World is what a scaler sees.
type World struct {
	// Now is the time, Load what was measured of the last minute: NaN where nothing was.
	Now  time.Time
	Load float64
	// Desired is spec.replicas, Ready how many of them serve.
	Desired, Ready int32
	// Pods are the pods that exist, the oldest first.
	Pods []fleet.Pod

	know   *Knowledge
	now    *moment
	serial int
}

// Step is one sizing of a play.
type Step struct {
	At             time.Time
	Load           float64 // NaN where it is not known
	Desired, Ready int32
}

// Result is what a scaler came to.
type Result struct {
	Name string
	// BadMinutes are those in which a ready replica had more than it carries, Minutes those whose load is known.
	BadMinutes, Minutes int
	CoreHours           float64
	// Moves is how often the number of replicas was changed.
	Moves int
	// Margin is the smallest room that was left, as a part of the load: -0.2 is a load a quarter above what was carried.
	Margin float64
	// MarginAt is when that was.
	MarginAt time.Time
	Steps    []Step
	// Note says what of the scaler is not played; empty for nothing.
	Note string
}

// Play runs one scaler through the history, from as many replicas as were ready when it begins.
func (k *Knowledge) Play(name string, svc *fleet.Service, s Scaler) Result {
	w := &World{know: k, Load: math.NaN(), Desired: k.begin(svc)}
	if f, ok := s.(Fixed); ok {
		w.Desired = int32(f)
	}
	for range w.Desired {
		w.start(svc, k.From.Add(-day))
	}
	r := Result{Name: name, Margin: math.Inf(1), Steps: make([]Step, 0, int(k.To.Sub(k.From)/k.pace.Cycle))}
	request := svc.Request.CPU.Cores()
	for at := k.From; at.Before(k.To); at = at.Add(k.pace.Cycle) {
		w.Now, w.now = at, k.at(at)
		w.ready(k.StartUp)
		load := k.load.At(at)
		r.see(w, load, k.Limit, int(k.pace.Cycle/time.Minute))
		r.CoreHours += float64(len(w.Pods)) * request * k.pace.Cycle.Hours()
		w.Load = load
		if next := max(s.Replicas(w), 0); next != w.Desired {
			r.Moves++
			w.scale(svc, next)
		}
	}
	return r
}

// begin is how many replicas were ready when the play begins; enough for its first load where that is not known.
func (k *Knowledge) begin(svc *fleet.Service) int32 {
	n := int32(1)
	if v := k.ready.At(k.From); known(v) {
		n = int32(math.Round(v))
	} else if v := k.Peak(k.From, k.From.Add(time.Hour)); v > 0 {
		n = int32(math.Ceil(v / k.Limit))
	}
	return max(n, svc.Min, 1)
}

// see judges a step of so many minutes.
func (r *Result) see(w *World, load, limit float64, minutes int) {
	r.Steps = append(r.Steps, Step{At: w.Now, Load: load, Desired: w.Desired, Ready: w.Ready})
	if !known(load) {
		return
	}
	r.Minutes += minutes
	carried := float64(w.Ready) * limit
	if load > carried {
		r.BadMinutes += minutes
	}
	if load > 0 {
		if margin := carried/load - 1; margin < r.Margin {
			r.Margin, r.MarginAt = margin, w.Now
		}
	}
}

// start adds a pod.
func (w *World) start(svc *fleet.Service, at time.Time) {
	w.serial++
	w.Pods = append(w.Pods, fleet.Pod{ID: fleet.UID(fmt.Sprintf("pod-%d", w.serial)),
		Name:     fleet.Name{Namespace: svc.Target.Namespace, Name: fmt.Sprintf("%s-%d", svc.Target.Name, w.serial)},
		NodeName: "node", Class: fleet.PodOnline, Service: svc.ID, Requests: svc.Request, Phase: fleet.PodRunning,
		Created: at, Started: fleet.KnownAt(at, at), ReadySince: fleet.KnownAt(at, at), CurrentRevision: true})
}

// ready lets pods become ready whose start-up is over.
func (w *World) ready(startUp time.Duration) {
	w.Ready = 0
	for i := range w.Pods {
		p := &w.Pods[i]
		if !p.Ready && !p.Created.Add(startUp).After(w.Now) {
			p.Ready, p.ReadySince = true, fleet.KnownAt(p.Created.Add(startUp), w.Now)
		}
		if p.Ready {
			w.Ready++
		}
	}
}

// scale makes or deletes pods; the youngest leave first.
func (w *World) scale(svc *fleet.Service, to int32) {
	w.Desired = to
	for int32(len(w.Pods)) < to {
		w.start(svc, w.Now)
	}
	w.Pods = w.Pods[:to]
}
