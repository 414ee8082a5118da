package store

import (
	"slices"
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// Every action of a plan is found by what it concerns, with what became of it; a resize and a withheld resize are found by their service.
func TestSubjectsOfEveryAction(t *testing.T) {
	pod := planner.PodRef{Name: fleet.Name{Namespace: "train", Name: "bert-0"}, ID: "p"}
	loan := fleet.Loan{ID: "l1", NodeName: "n1", Phase: fleet.Noticed}
	drained := loan
	drained.Phase = fleet.Draining
	p := &planner.Plan{
		Unmarks:   []planner.Unmark{{Service: "shop/cart", Pod: pod, Node: "n1"}},
		Lowers:    []planner.Scale{{Service: "shop/cart", From: 3, To: 2}},
		GiveBacks: []planner.GiveBack{{HPA: fleet.Name{Namespace: "shop", Name: "hpa"}, From: 5, To: 2}},
		Moves:     []planner.Move{{Kind: planner.MoveDrain, Before: loan, After: drained, Node: "n1"}},
		Notices:   []planner.Notice{{Pod: pod, Loan: "l1"}},
		Evictions: []planner.Eviction{{Pod: pod, Loan: "l1", Job: "train/bert"}},
		Kills:     []planner.Kill{{Pod: pod, Loan: "l1", Job: "train/bert"}},
		Jobs:      []planner.JobScale{{Job: "train/bert", Role: "worker", From: 2, To: 1}},
		Fillers:   []planner.Filler{{Name: "f", Node: "n1", Loan: "l1", Purpose: "KeptSocket"}},
		Marks:     []planner.Mark{{Node: "n1"}},
		Raises:    []planner.Scale{{Service: "shop/pay", From: 3, To: 4}},
		Resizes:   []planner.Resize{{Service: "shop/pay", By: fleet.RequestsRecreate, Why: reason.Of(reason.OutOfBounds, "3.5", "less", "more")}},
		Withheld: []planner.Withheld{
			{Subject: planner.Subject{Kind: "requests", Name: "shop/cart"}, Action: reason.Of(reason.ResizeTo,
				"InPlace", "a", "b"), By: reason.Of(reason.ModeObserve)},
			{Subject: planner.Subject{Kind: "service", Name: "shop/cart"}, Action: reason.Of(reason.ScaleTo, 2, 3),
				By: reason.Of(reason.Frozen, "a change")},
		},
	}
	var results []loop.Result
	for a := range p.Actions() {
		k := planner.KeyOf(a)
		results = append(results, loop.Result{Action: k.Kind, Subject: k.Subject, Outcome: loop.Done})
	}
	if len(results) != p.CountActions() || len(results) != 12 {
		t.Fatalf("%d actions are yielded, %d counted, want 12", len(results), p.CountActions())
	}
	lines := subjectsOf(&loop.Record{Plan: p, Receipt: &loop.Receipt{Results: results}})
	for _, want := range []subject{
		{KindService, "shop/cart", "Unmark train/bert-0", "", "", "Done"},
		{KindNode, "n1", "Unmark train/bert-0", "", "", "Done"},
		{KindService, "shop/cart", "Scale 3 -> 2", "", "", "Done"},
		{KindHPA, "shop/hpa", "Give back 5 -> 2", "", "", "Done"},
		{KindLoan, "l1", "Drain: Noticed -> Draining", "", "", "Done"},
		{KindNode, "n1", "Drain: Noticed -> Draining", "", "", "Done"},
		{KindLoan, "l1", "Notice train/bert-0", "", "", "Done"},
		{KindJob, "train/bert", "Evict train/bert-0", "", "", "Done"},
		{KindJob, "train/bert", "Kill train/bert-0", "", "", "Done"},
		{KindJob, "train/bert", "Scale worker 2 -> 1", "", "", "Done"},
		{KindNode, "n1", "Mark", "", "", "Done"},
		{KindService, "shop/pay", "Scale 3 -> 4", "", "", "Done"},
		{KindService, "shop/pay", p.Resizes[0].Summary().Text(), "OutOfBounds",
			"3.5 days of usage ask for less a replica; it requests more", "Done"},
		{KindService, "shop/cart", "Resize InPlace a -> b", "ModeObserve", "held by mode Observe", OutcomeWithheld},
		{KindService, "shop/cart", "Scale 2 -> 3", "Frozen", "held by freeze: a change", OutcomeWithheld},
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("%+v is not among\n%+v", want, lines)
		}
	}
}

// An action that is held back is news once for each cause: what the cause counts changes, and is no other one.
func TestNewWithheld(t *testing.T) {
	var j journal
	j.init()
	size := planner.Subject{Kind: planner.SubjectService, Name: "shop/cart"}
	held := func(to int, by reason.Reason) int {
		return len(j.newWithheld(&planner.Plan{Withheld: []planner.Withheld{{Subject: size,
			Action: reason.Of(reason.ScaleTo, 2, to), By: by}}}))
	}
	contested := func(times int) reason.Reason {
		return reason.Of(reason.Contested, "argocd", "spec.replicas", "cart", times)
	}
	for _, c := range []struct {
		name string
		to   int
		by   reason.Reason
		want int
	}{
		{"the first time", 3, contested(3), 1},
		{"again", 3, contested(3), 0},
		{"taken back once more", 3, contested(4), 0},
		{"another cause", 3, reason.Of(reason.Frozen, "a change"), 1},
		{"another action", 4, reason.Of(reason.Frozen, "a change"), 1},
	} {
		if got := held(c.to, c.by); got != c.want {
			t.Errorf("%s: %d are news, want %d", c.name, got, c.want)
		}
	}
}
