package promql

import (
	"errors"
	"maps"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/springtide/springtide/fleet"
)

// mostQuestions bounds how often one question is divided: to single out one namespace of a thousand takes 20, and three of them 50. Each of them costs the source
// some work, so a source on which everything fails is left alone soon. What is not divided by then is refused as a whole.
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

// refusals are the namespaces for which a cycle's questions got no answer. The zero value is ready to use.
type refusals struct{ of map[string]error }

// ask puts a question about the services' namespaces and keeps what was refused.
func (r *refusals) ask(services []fleet.Service, question func(scope) error) error {
	refused, err := ask(scopeOf(services), namespacesOf(services), question)
	if len(refused) > 0 {
		if r.of == nil {
			r.of = map[string]error{}
		}
		maps.Copy(r.of, refused)
	}
	return err
}

// all is the error where the namespaces of all services were refused: it is the source's fault, or its limits'. Who asks about a part of the fleet cannot know that.
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
