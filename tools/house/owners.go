package main

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
)

// decision is one of the twelve questions that each cycle answers, and the functions that answer it. One function is
// the aim; several are named where several judge the same question.
type decision struct {
	question string
	// owners answer it now, before did so at the commit that the page compares with: room.Function or room.Type.Method.
	owners, before []string
}

// decisions are kept by hand, and checked: a function that is gone fails the command.
var decisions = []decision{
	{
		question: "what is free on a machine",
		before: []string{
			"planner.maker.newLedger", "planner.newYardage", "planner.newEstimate",
			"planner.tenants.supply", "planner.tenants.holes", "reclaim.group.fill",
		},
		owners: []string{"fleet.OccupancyOf"},
	},
	{
		question: "what a service will ask",
		before:   []string{"hpa.Size", "hpa.Week", "hpa.Outlook", "hpa.FestivalCheck", "planner.sized.replicas"},
		owners:   []string{"hpa.sizer.along"},
	},
	{
		question: "may this action be done",
		before: []string{
			"planner.maker.heldBack", "planner.maker.poolHeld", "planner.maker.mayTake", "planner.maker.giveBacks",
			"hpa.sizer.permit",
		},
		owners: []string{"planner.Input.permit"},
	},
	always("which machine is lent", "reclaim.Lendable"),
	always("which machine comes home", "reclaim.Choose"),
	always("when a recall is due", "reclaim.times"),
	always("how a loan moves", "planner.resolve"),
	always("how big a job is", "planner.maker.jobs"),
	always("which offline work gives way", "planner.staffing.makeRoom", "planner.leveller.takeFor",
		"planner.maker.shed", "planner.staffing.shedParcels"),
	{
		question: "what a reason says",
		before:   []string{"planner.maker.heldBack", "hpa.sizer.reason", "internal/kube.camel"},
		owners:   []string{"reason.Reason.Text"},
	},
	{
		question: "which sample is fresh",
		before:   []string{"hpa.sizer.judge", "hpa.freshFor", "forecast.Options.maxStale", "store/promql.total"},
		owners:   []string{"signal.Ages.Judge"},
	},
	{
		question: "who leads",
		before:   []string{"internal/kube.Cluster.Lead"},
		owners:   []string{"internal/kube/election.Elector.Lead"},
	},
}

// always is a decision whose owners are those of before.
func always(question string, owners ...string) decision {
	return decision{question: question, owners: owners, before: owners}
}

// missing names the owners that are no functions of the house.
func (h *house) missing(ownersOf func(decision) []string) []error {
	var out []error
	for _, d := range decisions {
		for _, o := range ownersOf(d) {
			if !h.declares(o) {
				out = append(out, fmt.Errorf("%q: there is no function %s; to fix: name its owner in tools/house/owners.go",
					d.question, o))
			}
		}
	}
	return out
}

func now(d decision) []string  { return d.owners }
func then(d decision) []string { return d.before }

// several counts the decisions with more than one owner.
func several(ownersOf func(decision) []string) (n int) {
	for _, d := range decisions {
		if len(ownersOf(d)) > 1 {
			n++
		}
	}
	return n
}

// declares reports whether a function exists: room.Function or room.Type.Method.
func (h *house) declares(name string) bool {
	dir, base := path.Split(name)
	pkg, fn, _ := strings.Cut(base, ".")
	r := h.rooms[dir+pkg]
	if r == nil {
		return false
	}
	on, method, isMethod := strings.Cut(fn, ".")
	if !isMethod {
		on, method = "", fn
	}
	for _, f := range r.files {
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Name.Name == method && receiverOf(d) == on {
				return true
			}
		}
	}
	return false
}
