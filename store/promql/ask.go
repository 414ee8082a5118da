package promql

import (
	"errors"
	"maps"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/springtide/springtide/fleet"
)

// mostQuestions bounds how often one question is divided: to single out one namespace of a thousand takes 20, and three of them 50. Each of them costs the source
// some work, so a source on which everything fails is left alone soon.
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
	left := mostQuestions
	refused = map[string]error{}
	return refused, divide(sc, names, question, &left, refused)
}

func divide(sc scope, names []string, question func(scope) error, left *int, refused map[string]error) error {
	*left--
	err := question(sc)
	switch {
	case err == nil || !ofTheQuestion(err) || *left <= 0 || len(names) == 0:
		return err
	case len(names) == 1:
		refused[names[0]] = err
		return nil
	}
	mid := len(names) / 2
	for _, half := range [][]string{names[:mid], names[mid:]} {
		if err := divide(scopeIn(half), half, question, left, refused); err != nil {
			return err
		}
	}
	return nil
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
