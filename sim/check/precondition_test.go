package check

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// partsOf names what a write depends on: the fields of its precondition, the drain it follows, and its undo.
func partsOf(w *protocol.Write) []string {
	change := reflect.TypeOf(w.Change).Name()
	var out []string
	for v, i := reflect.ValueOf(w.If), 0; i < v.NumField(); i++ {
		if !v.Field(i).IsZero() {
			out = append(out, change+"."+v.Type().Field(i).Name)
		}
	}
	if w.Undo != nil {
		out = append(out, change+".Undo")
	}
	if w.Drained != "" {
		out = append(out, change+".Drained")
	}
	return out
}

// without takes one such part off every write that has it.
func without(part string) Mutant {
	change, field, _ := strings.Cut(part, ".")
	return Mutant{Write: func(w *protocol.Write) {
		if reflect.TypeOf(w.Change).Name() != change {
			return
		}
		switch field {
		case "Undo":
			w.Undo = nil
		case "Drained":
			w.Drained = ""
		default:
			reflect.ValueOf(&w.If).Elem().FieldByName(field).SetZero()
		}
	}}
}

// kindOf is the stage of an act: its action's kind, or the ledger that stands before the stages it is charged to.
func kindOf(a *act) string {
	if a.action == nil {
		return "Ledger"
	}
	if s, ok := a.action.(*planner.Scale); ok && s.To > s.From {
		return "Raise"
	}
	return string(planner.KeyOf(a.action).Kind)
}

func changeOf(w *protocol.Write) string { return reflect.TypeOf(w.Change).Name() }

// ordersOf names what a script writes before what: the writes of one action, and the stages.
func ordersOf(script []act, seen func(first, then string)) {
	for i := range script {
		a := &script[i]
		for k := 1; k < len(a.writes); k++ {
			seen(changeOf(a.writes[k-1]), changeOf(a.writes[k]))
		}
		for k := range script[:i] {
			if was, is := kindOf(&script[k]), kindOf(a); was != is {
				seen(was, is)
			}
		}
	}
}

// reversed turns one such order round.
func reversed(order string) Mutant {
	first, then, _ := strings.Cut(order, " before ")
	return Mutant{Script: func(script []act) []act {
		script = slices.Clone(script)
		for i := range script {
			writes := slices.Clone(script[i].writes)
			for k := 1; k < len(writes); k++ {
				if changeOf(writes[k-1]) == first && changeOf(writes[k]) == then {
					writes[k-1], writes[k] = writes[k], writes[k-1]
				}
			}
			script[i].writes = writes
		}
		at := slices.IndexFunc(script, func(a act) bool { return kindOf(&a) == first })
		if at < 0 {
			return script
		}
		var early, late []act
		for _, a := range script[at:] {
			if kindOf(&a) == then {
				early = append(early, a)
			} else {
				late = append(late, a)
			}
		}
		return slices.Concat(script[:at], early, late)
	}}
}

// tried says of each part of a write who finds it missing: a guard of TestEachGuardIsNeeded, or the search does not, since something stands behind it.
var tried = map[string]struct{ guard, behind string }{
	"SetShare.Version":     {guard: "a share is written over the version that was judged"},
	"SetShare.Absent":      {guard: "a share is created where there is none"},
	"SetLoan.Version":      {guard: "a loan is written over the version that was judged"},
	"EvictPod.UID":         {guard: "an eviction names the pod that was judged"},
	"EvictPod.Drained":     {guard: "evictions follow the write of their drain"},
	"SetShare.LeaderEpoch": {behind: "versions (TestSecondLines)"},
	"SetLoan.LeaderEpoch":  {behind: "versions (TestSecondLines)"},
	"SetLoan.UID":          {behind: "the version, which no other object of the name has"},
	"DeleteLoan.UID":       {behind: "the version, which no other object of the name has"},
	"DeleteLoan.Version":   {behind: "a loan that ended never goes on"},
	"CreateLoan.Absent":    {behind: "names of loans hold the time and the cells, and the API refuses a second object of a name"},
	"SetShare.Undo":        {behind: "a loan without a share is cancelled and forgotten"},
	"SetLedger.Version":    {behind: "the pool's leader epoch: one controller plans a charge at a time"},
	"SetLedger.LeaderEpoch": {
		behind: "the pool's version"},
	"SetSize.Size":         {behind: "the door, and the ledger"},
	"SetSize.LeaderEpoch":  {behind: "the size"},
	"SetParallelism.Size":  {behind: "the door: no property asks for the size of a job"},
	"SetNotice.UID":        {behind: "a pod that came later has no notice, so none of its answers counts"},
	"DropNotice.UID":       {behind: "a notice that is gone is given again with a new deadline"},
	"KillPod.UID":          {behind: "a kill comes after the announced time, when each pod of the machine may go"},
	"CreateFiller.Absent":  {behind: "the API refuses a second object of a name"},
	"DeleteFiller.UID":     {behind: "the next cycle creates a filler that lacks"},
	"SetMarks.UID":         {behind: "the share, which is read before a machine opens and goes with its machine"},
	"SetMarks.LeaderEpoch": {behind: "the share, which is read before a machine opens"},

	"SetShare before SetLoan":    {guard: "a share is written before its loan's phase"},
	"CreateLoan before SetShare": {behind: "the share names the UID that the creation gives, and holds no parcel without"},
	"SetShare before DeleteLoan": {behind: "the entry of a loan that ended changes no holder"},
	// A plan may end after each write, and the next one is made from what is there. So what must follow says so itself: Drained, and the charge of a ledger.
	stages: {behind: "Drained, the charge of a ledger, the next plan"},
}

// stages stands for every order of two stages.
const stages = "one stage before another"

// recorded are searches that together make every write of the model.
var recorded = []Options{
	{Shape: Sockets, Turns: 1}, {Shape: Sockets, Turns: 1, Gang: true}, {Shape: Machines, Turns: 1, Borrow: true}, {Shape: Machines, Turns: 1},
	{Shape: Sockets, Turns: 1, Faults: 1, Only: []kind{dies}}, {Shape: Sockets, Turns: 2},
}

// TestEveryPreconditionIsTried: each precondition, undo and order of the writes that plans make is taken away by a guard's mutation, or is listed with
// what stands behind it, and then a search without it finds nothing. A write that gets a new one fails until it is tried, too.
func TestEveryPreconditionIsTried(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("searches some hundred thousand states")
	}
	made := map[string]bool{}
	for _, o := range recorded {
		o.Most = 8_000
		o.Mutant.Write = func(w *protocol.Write) {
			if steers(w) {
				return // played with the size that follows
			}
			for _, p := range partsOf(w) {
				made[p] = true
			}
		}
		o.Mutant.Script = func(script []act) []act {
			ordersOf(script, func(first, then string) { made[first+" before "+then] = true })
			return script
		}
		Run(o)
	}
	alone := func(name string, m Mutant, most int) {
		for _, o := range []Options{crash, usurp} {
			o.Mutant, o.Most = m, most
			if r := Run(o); r.Broken != "" {
				t.Errorf("%s is missed: %s\n%s", name, r.Broken, r.Explain())
			}
		}
	}
	orders := 0
	for part := range made {
		if _, ok := tried[part]; ok {
			continue
		}
		if !strings.Contains(part, " before ") {
			t.Errorf("%s is not tried: add a guard, or what stands behind it", part)
			continue
		}
		orders++
		alone(part, reversed(part), 2_000)
	}
	if made[stages] = orders > 20; !made[stages] {
		t.Errorf("the plans had %d orders of two stages", orders)
	}
	for part, by := range tried {
		switch {
		case strings.HasPrefix(part, "CreateFiller") || strings.HasPrefix(part, "DeleteFiller"):
			// Fillers are made where a pool keeps room on a machine whose rest is lent: no search of these bounds has one in its first states.
		case !made[part]:
			t.Errorf("%s: no write has it", part)
		}
		if by.guard == "" {
			switch {
			case part == stages:
			case strings.Contains(part, " before "):
				alone(part, reversed(part), 4_000)
			default:
				alone(part, without(part), 4_000)
			}
			continue
		}
		if !slices.ContainsFunc(guards, func(g guard) bool { return g.name == by.guard }) {
			t.Errorf("%s: there is no guard %q", part, by.guard)
		}
	}
}
