package promql

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/springtide/springtide/fleet"
)

// mostQuestions bounds how often one question is divided: to single out one namespace of a thousand takes 20, and three
// of them 50. Each of them costs the source some work, so a source on which everything fails is left alone soon. A
// question that is not divided by then is refused as a whole.
const mostQuestions = 64

// ofTheQuestion reports an error that speaks of what was asked and not of the source: the answer is too large for the engine or for us, or the series do not
// fit the expression. A smaller question may be answered. Timeouts are not among them: a busy source does not want more questions.
func ofTheQuestion(err error) bool {
	var e *apiv1.Error
	if errors.As(err, &e) {
		return e.Type == apiv1.ErrExec
	}
	return errors.Is(err, errTooLarge)
}

// ask puts a question about namespaces. Where it cannot be answered, it is divided until it is about one namespace, which bears the error: what one tenant
// writes into the source takes no metrics from the others. An error that comes with the refused namespaces concerns all that were asked about.
func ask(sc scope, names []string, question func(scope) error) (refused map[string]error, err error) {
	type part struct {
		sc    scope
		names []string
	}
	refused = map[string]error{}
	// The larger parts come first: where the questions run out, what is left undivided is small everywhere.
	parts := []part{{sc, names}}
	for left := mostQuestions; len(parts) > 0; left-- {
		x := parts[0]
		parts = parts[1:]
		err := question(x.sc)
		switch {
		case err == nil:
		case !ofTheQuestion(err) || len(x.names) == 0:
			return refused, err
		case len(x.names) == 1 || left <= len(parts)+2: // the parts that wait have a question each
			for _, n := range x.names {
				refused[n] = err
			}
		default:
			mid := len(x.names) / 2
			parts = append(parts, part{scopeIn(x.names[:mid]), x.names[:mid]}, part{scopeIn(x.names[mid:]), x.names[mid:]})
		}
	}
	return refused, nil
}

const (
	// manySeries is from how many series of one namespace on it is asked alone: questions about it take seconds, and might take longer than a cycle waits.
	manySeries = 100_000
	// mostHeavy bounds how many namespaces are asked alone.
	mostHeavy = 8
	// restAfterTimeout is how long a namespace is left alone that took too long to answer for.
	restAfterTimeout = probeEvery
)

var errResting = errors.New("the namespace has so many series that the last question about it took too long: it is asked again in a few minutes")

// heavy are the namespaces with so many series that each is asked alone, so that the time that it takes is its own; each with the time until which it rests. It is safe for
// concurrent use.
type heavy struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// set replaces the namespaces, and keeps the rest of those that stay.
func (h *heavy) set(names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := make(map[string]time.Time, len(names))
	for _, n := range names {
		until[n] = h.until[n]
	}
	h.until = until
}

// names are the namespaces in order.
func (h *heavy) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.until))
}

// ask puts a question about one of them. A failure is its own, but for that of a source that is gone.
func (h *heavy) ask(name string, now time.Time, question func(scope) error) error {
	h.mu.Lock()
	rests := now.Before(h.until[name])
	h.mu.Unlock()
	if rests {
		return errResting
	}
	err := question(scopeIn([]string{name}))
	var e *apiv1.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &e) && e.Type == apiv1.ErrTimeout {
		h.mu.Lock()
		h.until[name] = now.Add(restAfterTimeout)
		h.mu.Unlock()
	}
	return err
}

// refusals are the namespaces for which a cycle's questions got no answer.
type refusals struct {
	heavy *heavy
	now   time.Time
	of    map[string]error
}

// ask puts a question about the services' namespaces and keeps what was refused. It asks about most namespaces together, and then about each heavy one.
func (r *refusals) ask(services []fleet.Service, question func(scope) error) error {
	apart := r.heavy.names()
	var light []fleet.Service
	var alone []string
	for i := range services {
		if n := services[i].Target.Namespace; slices.Contains(apart, n) {
			alone = append(alone, n)
		} else {
			light = append(light, services[i])
		}
	}
	if len(light) > 0 {
		refused, err := ask(scopeOf(light).but(apart), namespacesOf(light), question)
		r.refuse(refused)
		if err != nil {
			return err
		}
	}
	slices.Sort(alone)
	for _, n := range slices.Compact(alone) {
		if err := r.heavy.ask(n, r.now, question); err != nil {
			r.refuse(map[string]error{n: err})
		}
	}
	return nil
}

func (r *refusals) refuse(of map[string]error) {
	if r.of == nil {
		r.of = map[string]error{}
	}
	maps.Copy(r.of, of)
}

// all is the error where the namespaces of all services were refused: it is the source's fault, or its limits'. A
// caller that asks about a part of the fleet cannot know that.
func (r *refusals) all(services []fleet.Service) error {
	var err error
	for i := range services {
		if err = r.of[services[i].Target.Namespace]; err == nil {
			return nil
		}
	}
	return err
}

// byService is the error of each service whose namespace was refused.
func (r *refusals) byService(services []fleet.Service) map[fleet.ServiceID]error {
	out := map[fleet.ServiceID]error{}
	for i := range services {
		if err := r.of[services[i].Target.Namespace]; err != nil {
			out[services[i].ID] = err
		}
	}
	return out
}
