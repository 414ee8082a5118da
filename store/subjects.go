package store

import (
	"fmt"
	"strings"

	"github.com/springtide/springtide/fleet"
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
	results map[[2]string]loop.Result
}

// subjectsOf lists what a record did to whom, in the order of the plan: first how services were sized, then the actions with what became
// of them, then what was held back.
func subjectsOf(r *loop.Record) []subject {
	if r.Plan == nil {
		return nil
	}
	x := &indexer{results: map[[2]string]loop.Result{}}
	if r.Receipt != nil {
		for _, res := range r.Receipt.Results {
			x.results[[2]string{res.Action, res.Subject}] = res
		}
	}
	p := r.Plan
	for i := range p.Targets {
		t := &p.Targets[i]
		why := t.Held
		if why == "" {
			why = t.Limited
		}
		x.lines = append(x.lines, subject{KindService, string(t.Service), fmt.Sprintf("Size %d", t.Replicas), why, t.Reason, ""})
	}
	for i := range p.Unmarks {
		u := &p.Unmarks[i]
		x.action("Unmark", u.Pod.Name.String(), "Unmark "+u.Pod.Name.String(), u.Why, whom{KindService, string(u.Service)}, whom{KindNode, u.Node})
	}
	for i := range p.Lowers {
		x.scale(&p.Lowers[i])
	}
	for i := range p.GiveBacks {
		g := &p.GiveBacks[i]
		x.action("GiveBack", g.HPA.String(), fmt.Sprintf("Give back %d -> %d", g.From, g.To), g.Why, whom{KindHPA, g.HPA.String()})
	}
	for i := range p.Moves {
		x.move(&p.Moves[i])
	}
	for _, n := range p.Notices {
		x.action("Notice", n.Pod.Name.String(), "Notice "+n.Pod.Name.String(), planner.Why{}, whom{KindLoan, string(n.Loan)})
	}
	for _, e := range p.Evictions {
		x.action("Evict", e.Pod.Name.String(), "Evict "+e.Pod.Name.String(), e.Why, whom{KindLoan, string(e.Loan)}, whom{KindJob, string(e.Job)})
	}
	for _, k := range p.Kills {
		x.action("Kill", k.Pod.Name.String(), "Kill "+k.Pod.Name.String(), k.Why, whom{KindLoan, string(k.Loan)}, whom{KindJob, string(k.Job)})
	}
	for _, j := range p.Jobs {
		x.action("JobScale", string(j.Job)+"/"+j.Role, fmt.Sprintf("Scale %s %d -> %d", j.Role, j.From, j.To), j.Why, whom{KindJob, string(j.Job)})
	}
	for _, f := range p.Fillers {
		verb := "Fill"
		if f.Delete {
			verb = "Unfill"
		}
		x.action("Filler", f.Name, verb+" "+f.Room.String(), planner.Why{Reason: f.Purpose}, whom{KindNode, f.Node}, whom{KindLoan, string(f.Loan)})
	}
	for _, m := range p.Marks {
		x.action("Mark", m.Node, "Mark", planner.Why{}, whom{KindNode, m.Node})
	}
	for i := range p.Raises {
		x.scale(&p.Raises[i])
	}
	for _, w := range p.Withheld {
		kind, name, _ := strings.Cut(w.Subject, " ")
		x.lines = append(x.lines, subject{kind, name, w.Action, w.By, w.Why.Message, OutcomeWithheld})
	}
	return x.lines
}

// whom is what a line concerns.
type whom struct{ kind, name string }

func (x *indexer) scale(s *planner.Scale) {
	x.action("Scale", string(s.Service), fmt.Sprintf("Scale %d -> %d", s.From, s.To), s.Why, whom{KindService, string(s.Service)})
}

func (x *indexer) move(m *planner.Move) {
	text := string(m.Kind)
	if m.Before.Phase != m.After.Phase {
		text = fmt.Sprintf("%s: %s -> %s", m.Kind, orNone(m.Before.Phase), m.After.Phase)
	}
	x.action("Move", string(m.Before.ID), text, m.Why, whom{KindLoan, string(m.Before.ID)}, whom{KindNode, m.Node})
}

func orNone(p fleet.Phase) fleet.Phase {
	if p == "" {
		return "none"
	}
	return p
}

// action adds a line for each whom the action concerns. name and subject are as in the receipt.
func (x *indexer) action(name, subjectName, text string, why planner.Why, about ...whom) {
	res := x.results[[2]string{name, subjectName}]
	message := why.Message
	if res.Message != "" {
		message = strings.TrimPrefix(message+"; "+res.Message, "; ")
	}
	for _, w := range about {
		if w.name != "" {
			x.lines = append(x.lines, subject{w.kind, w.name, text, why.Reason, message, string(res.Outcome)})
		}
	}
}
