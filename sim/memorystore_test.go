package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reclaim"
	"github.com/springtide/springtide/sim/scenario"
	"github.com/springtide/springtide/slo"
)

// A leader that comes while the store is down begins without what the one before it knew, and plays otherwise than one that was handed it.
func TestALeaderWithoutAStoreBeginsAgain(t *testing.T) {
	long(t)
	with := func(kinds ...string) []entry {
		f := scenario.Faults{Quiet: config.Duration(20 * time.Minute), List: []scenario.Fault{
			{Kind: scenario.FlashCrowd, After: config.Duration(14 * time.Minute), For: config.Duration(10 * time.Minute), Share: 1, Factor: 3}, // who acts may die of it
			{Kind: scenario.Crash, After: config.Duration(15 * time.Minute), For: config.Duration(5 * time.Minute)}}}
		for _, kind := range kinds {
			f.List = append(f.List, scenario.Fault{Kind: kind, After: config.Duration(10 * time.Minute), For: config.Duration(15 * time.Minute), Share: 1})
		}
		return keepDiary(t, troubled(1, 1, f), whole)
	}
	says := func(lines []entry, what string) bool {
		return slices.ContainsFunc(lines, func(e entry) bool { return strings.Contains(e.text, what) })
	}
	const again = "portraits could not be loaded and are learned again"
	handed, without := with(), with(scenario.StoreDown)
	if says(handed, again) || !says(without, again) || !says(without, "nothing scales in for one window") {
		t.Errorf("a leader says that it knows nothing: %t while the store answers, %t while it is down", says(handed, again), says(without, again))
	}
	decided := func(lines []entry) (out []entry) { // what stands in the fleet, whatever was said of it
		for _, e := range lines {
			if strings.Contains(e.text, " held ") {
				out = append(out, e)
			}
		}
		return out
	}
	if slices.Equal(decided(handed), decided(without)) {
		t.Error("what the next leader did not know changed nothing that it did")
	}
}

// While the store is down nothing is kept and nothing is handed out; after it, what was kept before.
func TestAStoreThatIsDownKeepsNothing(t *testing.T) {
	c := accused(t, wholeLoan())
	ctx, id := context.Background(), c.w.services[0].id
	save := func(n int) []error {
		return []error{
			c.SavePortraits(ctx, []portrait.Portrait{{Service: id, Version: n}}),
			c.SaveSummaries(ctx, map[fleet.ServiceID]loop.Summary{id: {}}),
			c.SaveDays(ctx, map[fleet.ServiceID]loop.Days{id: {}}),
			c.SavePaces(ctx, reclaim.Paces{}),
			c.SaveAccounts(ctx, map[fleet.ServiceID]*slo.Account{id: {}}),
			c.SaveTides(ctx, nil),
			c.SaveDecisions(ctx, map[fleet.ServiceID][]hpa.Decision{id: {{At: c.w.now}}}),
			c.Append(ctx, &loop.Record{}),
		}
	}
	load := func() (version, known int, errs []error) {
		ps, err1 := c.LoadPortraits(ctx)
		sums, err2 := c.LoadSummaries(ctx)
		days, err3 := c.LoadDays(ctx)
		paces, err4 := c.LoadPaces(ctx)
		ds, err5 := c.LoadDecisions(ctx, c.w.start)
		accounts, err6 := c.LoadAccounts(ctx)
		known = len(ps) + len(sums) + len(days) + len(paces) + len(ds[id]) + len(accounts)
		return ps[id].Version, known, []error{err1, err2, err3, err4, err5, err6}
	}
	all := func(errs []error, want error) bool {
		return !slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, want) })
	}
	c.w.faults = []fault{{Fault: scenario.Fault{Kind: scenario.StoreDown}, from: 10, to: 20}}
	if errs := save(1); !all(errs, nil) {
		t.Fatal(errs)
	}
	c.w.tick = 10
	if errs := save(2); !all(errs, errDown) {
		t.Error(errs)
	}
	if _, known, errs := load(); known != 0 || !all(errs, errDown) {
		t.Errorf("a store that is down hands out %d: %v", known, errs)
	}
	c.w.tick = 20
	if version, known, errs := load(); version != 1 || known != 5 || !all(errs, nil) {
		t.Errorf("it hands out version %d, %d in all: %v", version, known, errs)
	}
}
