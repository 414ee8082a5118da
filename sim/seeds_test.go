package sim

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/sim/scenario"
)

// Every row is played, and every one that breaks an invariant is told: rows of a single seed at once, and of several seeds one after the other.
func TestARowThatBreaksTakesNoOtherWithIt(t *testing.T) {
	long(t)
	s, err := scenario.Load(filepath.Join("scenario", "examples", "faults.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// A crowd recalls machines of which no agent says that they are clean, up to the end.
	s.Days = 0.125
	s.Faults = scenario.Faults{List: []scenario.Fault{
		{Kind: scenario.AgentSilent, After: config.Duration(time.Hour), For: config.Duration(2 * time.Hour), Share: 1},
		{Kind: scenario.FlashCrowd, After: config.Duration(time.Hour), For: config.Duration(2 * time.Hour), Share: 1, Factor: 2}}}
	alone := Row{Policy: HPA, Lender: LendNone, Target: 60, Knob: KnobUtilisation, Default: true}
	beside := alone
	beside.Lender = LendSpringtide
	pick := func(*scenario.Built) ([]Row, error) { return []Row{whole, alone, beside}, nil }
	for _, seeds := range [][]uint64{{1}, {1, 2}} {
		all, err := SimulateSeeds(context.Background(), s, seeds, pick, func(int, int) {})
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			x := &all[i]
			held, broke := "", ""
			for _, r := range x.Results {
				held += r.Policy + "+" + r.Lender + " "
			}
			for _, b := range x.Broken {
				broke += b.Why.Row + " "
			}
			if held != "hpa+none " || broke != "springtide+springtide hpa+springtide " || x.Broken[0].Row != whole || x.Broken[1].Row != beside {
				t.Errorf("%d seeds, seed %d: %sheld, %sbroke", len(seeds), seeds[i], held, broke)
			}
			if x.Built == nil {
				t.Errorf("%d seeds, seed %d: what broke is not kept", len(seeds), seeds[i])
			}
		}
	}
}
