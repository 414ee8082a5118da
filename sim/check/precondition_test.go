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

// backwards writes the status of a loan before its share.
func backwards(a planner.Action, writes []*protocol.Write) []*protocol.Write {
	if _, ok := a.(*planner.Move); !ok || len(writes) < 2 {
		return writes
	}
	out := slices.Clone(writes)
	out[len(out)-1], out[len(out)-2] = out[len(out)-2], out[len(out)-1]
	return out
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
}

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
		Run(o)
	}
	for part := range made {
		if _, ok := tried[part]; !ok {
			t.Errorf("%s is not tried: add a guard, or what stands behind it", part)
		}
	}
	alone := func(name string, m Mutant) {
		for _, o := range []Options{crash, usurp} {
			o.Mutant, o.Most = m, 4_000
			if r := Run(o); r.Broken != "" {
				t.Errorf("%s is missed: %s\n%s", name, r.Broken, r.Explain())
			}
		}
	}
	for part, by := range tried {
		switch {
		case strings.HasPrefix(part, "CreateFiller") || strings.HasPrefix(part, "DeleteFiller"):
			// Fillers are made where a pool keeps room on a machine whose rest is lent: no search of these bounds has one in its first states.
		case !made[part]:
			t.Errorf("%s: no write has it", part)
		}
		if by.guard == "" {
			alone(part, without(part))
			continue
		}
		if !slices.ContainsFunc(guards, func(g guard) bool { return g.name == by.guard }) {
			t.Errorf("%s: there is no guard %q", part, by.guard)
		}
	}
	alone("the share before the loan", Mutant{Script: backwards})
}
