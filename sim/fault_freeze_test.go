package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/sim/scenario"
)

// A crowd recalls machines in the middle of a freeze: nothing happens before the thaw, and then what is due.
func TestAFreezeHoldsEveryAction(t *testing.T) {
	long(t)
	const begins, holds = 2 * time.Hour, 30 * time.Minute
	type state struct {
		sizes []int32
		loans []string
	}
	moves := func(frozen bool) (during, after int) {
		f := scenario.Faults{Quiet: config.Duration(90 * time.Minute), List: []scenario.Fault{
			{Kind: scenario.FlashCrowd, After: config.Duration(begins + 5*time.Minute), For: config.Duration(time.Hour), Share: 1, Factor: 3}}}
		if frozen {
			f.List = append(f.List, scenario.Fault{Kind: scenario.Freeze, After: config.Duration(begins), For: config.Duration(holds)})
		}
		from := int32((scenario.WarmUp + begins) / tick)
		to := from + ticks(holds)
		var last state
		watched(t, troubled(2, 6, f), whole, func(w *World) {
			var now state
			for i := range w.services {
				now.sizes = append(now.sizes, w.services[i].desired)
			}
			for i := range w.facts {
				for _, e := range w.facts[i].Share.Parcels {
					now.loans = append(now.loans, string(e.Loan)+" "+string(e.Next))
				}
			}
			changed := !slices.Equal(now.sizes, last.sizes) || !slices.Equal(now.loans, last.loans)
			switch last = now; {
			case !changed:
			case w.tick > from && w.tick < to:
				during++
			case w.tick >= to:
				after++
			}
		})
		return during, after
	}
	if during, _ := moves(false); during == 0 {
		t.Error("without a freeze nothing happens in that time: the test cannot fail")
	}
	if during, after := moves(true); during > 0 || after == 0 {
		t.Errorf("sizes and loans changed %d times under the freeze and %d times after it", during, after)
	}
}

// A quarter of the seeds freeze the cluster, and the freeze is over when the quiet time begins. A list of kinds draws none.
func TestSeedsDrawFreezes(t *testing.T) {
	f := scenario.Faults{Random: 6, Quiet: config.Duration(90 * time.Minute)}
	last := 4*time.Hour - time.Duration(f.Quiet)
	isFreeze := func(f fault) bool { return f.Kind == scenario.Freeze }
	drawn := 0
	for seed := range uint64(400) {
		all := drawFaults(troubled(seed, 4, f))
		if i := slices.IndexFunc(all, isFreeze); i >= 0 {
			drawn++
			if x := &all[i]; time.Duration(x.For) < leastFrozen || time.Duration(x.For) > mostFrozen || time.Duration(x.After+x.For) > last {
				t.Errorf("seed %d draws %s", seed, x)
			}
		}
	}
	if drawn < 80 || drawn > 120 {
		t.Errorf("%d of 400 seeds freeze the cluster, want about 100", drawn)
	}
	f.Kinds = []string{scenario.Crash}
	for seed := range uint64(40) {
		if slices.ContainsFunc(drawFaults(troubled(seed, 4, f)), isFreeze) {
			t.Errorf("seed %d draws a freeze, which its file does not name", seed)
		}
	}
}

// The status of the pools says that a leader saw a freeze, unless the leader has lost its lease.
func TestTheStatusTellsOfAFreeze(t *testing.T) {
	c := accused(t, wholeLoan())
	c.w.faults = []fault{{Fault: scenario.Fault{Kind: scenario.Freeze}, to: 1 << 30}}
	report := func(l *leadership) bool {
		s, err := l.controller.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Report(t.Context(), &loop.Report{Snapshot: s}); err != nil {
			t.Fatal(err)
		}
		return (&fleet.Snapshot{Pools: c.pools}).SeenFrozen()
	}
	if report(&leadership{controller: c, lost: &lastPlan{}}) {
		t.Error("a leader without a lease wrote the status")
	}
	if !report(&leadership{controller: c}) {
		t.Error("the leader wrote nothing of the freeze")
	}
	if c.w.faults = nil; report(&leadership{controller: c}) {
		t.Error("the status still tells of the freeze")
	}
}
