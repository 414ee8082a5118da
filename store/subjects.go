package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// The kinds that the journal is indexed by.
const (
	KindService = "service"
	KindLoan    = "loan"
	KindNode    = "node"
	KindJob     = "job"
	KindHPA     = "hpa"
)

// OutcomeWithheld is the outcome of an action that a mode, freeze, pause or budget held back.
const OutcomeWithheld = "Withheld"

// subject is one line of the journal's index.
type subject struct{ kind, name, action, reason, message, outcome string }

// indexer collects the lines of one record.
type indexer struct {
	lines   []subject
	results map[planner.Key]loop.Result
}

// subjectsOf lists what a record did to whom, in the order of the plan: first how services were sized, then the actions with what became
// of them, then what was held back.
func subjectsOf(r *loop.Record) []subject {
	if r.Plan == nil {
		return nil
	}
	x := &indexer{results: map[planner.Key]loop.Result{}}
	if r.Receipt != nil {
		for _, res := range r.Receipt.Results {
			x.results[planner.Key{Kind: res.Action, Subject: res.Subject}] = res
		}
	}
	p := r.Plan
	for i := range p.Targets {
		t := &p.Targets[i]
		x.lines = append(x.lines, subject{KindService, string(t.Service), fmt.Sprintf("Size %d", t.Replicas),
			string(cmp.Or(t.Held, t.Limited)), t.Why().Text(), ""})
	}
	for a := range p.Actions() {
		x.action(a)
	}
	for _, w := range p.Withheld {
		kind := w.Subject.Kind
		if kind == planner.SubjectRequests {
			kind = planner.SubjectService
		}
		x.lines = append(x.lines, subject{string(kind), w.Subject.Name, w.Action.Text(), string(w.By.Code),
			joined("held by "+w.By.Text(), w.Why.Text()), OutcomeWithheld})
	}
	return x.lines
}

// joined is one text of those that are not empty.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "; ")
}

// indexed are the kinds of objects that the journal is asked for.
var indexed = []string{KindService, KindLoan, KindNode, KindJob, KindHPA}

// action adds a line for each object that the action concerns, with what became of it.
func (x *indexer) action(a planner.Action) {
	key, why := planner.KeyOf(a), a.ActionWhy()
	res := x.results[key]
	message := joined(why.Text(), res.Message)
	for _, s := range a.Subjects() {
		if slices.Contains(indexed, string(s.Kind)) {
			x.lines = append(x.lines, subject{string(s.Kind), s.Name, a.Summary().Text(), string(why.Code), message,
				string(res.Outcome)})
		}
	}
}
