package sim

import (
	"context"
	"testing"

	"github.com/springtide/springtide/sim/scenario"
)

// benchDay is a shipped scenario, cut to some days.
func benchDay(b *testing.B, file string, days float64) *scenario.Scenario {
	b.Helper()
	s, err := scenario.Load("scenario/examples/" + file)
	if err != nil {
		b.Fatal(err)
	}
	s.Days = days
	return s
}

// BenchmarkDay plays one day of week.yaml (1,000 machines) and the two hours before it, in each kind of row.
func BenchmarkDay(b *testing.B) {
	built, err := benchDay(b, "week.yaml", 1).Build()
	if err != nil {
		b.Fatal(err)
	}
	for _, row := range []Row{
		{Springtide, LendSpringtide, 95, KnobAvailability, true},
		{Springtide, LendNone, 95, KnobAvailability, true},
		{Reactive, LendSpringtide, 95, KnobAvailability, true},
		{HPA, LendTidal, 60, KnobUtilisation, true},
		{HPA, LendNone, 60, KnobUtilisation, true},
		{AHPA, LendNone, 60, KnobUtilisation, true},
	} {
		b.Run(row.Policy+"+"+row.Lender, func(b *testing.B) {
			for b.Loop() {
				if _, err := Run(context.Background(), built, row, Share(built)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSeed plays seeds of faults.yaml: 42 machines, six hours and the two before them, six faults.
func BenchmarkSeed(b *testing.B) {
	s := benchDay(b, "faults.yaml", 0.25)
	seed := uint64(0)
	for b.Loop() {
		seed++
		out := Seeded{}
		pick := func(*scenario.Built) ([]Row, error) { return []Row{whole}, nil }
		if err := out.play(context.Background(), s, seed, pick); err != nil {
			b.Fatal(err)
		}
		if out.Broken != nil {
			b.Log(out.Broken)
		}
	}
}
