package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
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
		{Policy: Springtide, Lender: LendSpringtide, Target: 95, Knob: KnobAvailability, Default: true},
		{Policy: Springtide, Lender: LendNone, Target: 95, Knob: KnobAvailability, Default: true},
		{Policy: Reactive, Lender: LendSpringtide, Target: 95, Knob: KnobAvailability, Default: true},
		{Policy: HPA, Lender: LendTidal, Target: 60, Knob: KnobUtilisation, Default: true},
		{Policy: HPA, Lender: LendNone, Target: 60, Knob: KnobUtilisation, Default: true},
		{Policy: AHPA, Lender: LendNone, Target: 60, Knob: KnobUtilisation, Default: true},
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
		for _, r := range out.Broken {
			b.Log(r.Why)
		}
	}
}

// BenchmarkRecall recalls a part of a fleet: the load doubles from one moment to the next, unforeseen. lent are the
// machines that were away, called those that were recalled within two minutes, home those of them that came, home-min
// the virtual minutes from the first recall until the last of them was home (notice, save and node side included);
// writes the API objects that were written meanwhile (a move counts two, its share and its loan), plan-ms the wall time
// of the plan that recalls the most. The take-back ends where online has the room: awaited are the parcels that came
// home while pods waited that fit them, bound-p50-s and bound-p99-s the virtual seconds from there to the first pod
// that was bound on the machine, in steps of 15 s. The cluster's own scheduler places the pods here, and waits for the
// marks; TestReturnToBoundPod has the bundled one, and `make bench-demand` measures it by the wall.
func BenchmarkRecall(b *testing.B) {
	for _, machines := range []int{400, 20_000} {
		b.Run(fmt.Sprintf("nodes=%d", machines), func(b *testing.B) {
			for b.Loop() {
				recall(b, machines)
			}
		})
	}
}

func recall(b *testing.B, machines int) {
	flood := begin.Add(15 * time.Minute)
	built := recallFleet(machines, flood)
	shared := Share(built)
	w := NewWorld(built, shared.rates)
	var lent, called, writes, most int
	var first, last time.Time
	var planned time.Duration
	away := map[fleet.LoanID]bool{}
	w.journal = func(r *loop.Record) {
		if r.At.Before(flood) {
			lent = w.borrowed
			return
		}
		recalls := 0
		for i := range r.Plan.Moves {
			m := &r.Plan.Moves[i]
			switch {
			case m.Kind == planner.MoveRecall && r.At.Before(flood.Add(2*time.Minute)):
				if first.IsZero() {
					first = r.At
				}
				away[m.Before.ID] = true
				recalls++
			case m.Kind == planner.MoveReturn && away[m.Before.ID]:
				delete(away, m.Before.ID)
				last = r.At
			}
		}
		if called += recalls; recalls > 0 || len(away) > 0 || last.Equal(r.At) {
			writes += r.Receipt.Count(loop.Done) + len(r.Plan.Moves)
		}
		if recalls > most {
			most, planned = recalls, r.Took["plan"]
		}
	}
	if err := runController(context.Background(), w, controllerOptions{Lends: true}, shared); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(lent), "lent")
	b.ReportMetric(float64(called), "called")
	b.ReportMetric(float64(called-len(away)), "home")
	b.ReportMetric(last.Sub(first).Minutes(), "home-min")
	awaited, p50, p99 := w.returnsTaken()
	b.ReportMetric(float64(awaited), "awaited")
	if awaited > 0 {
		b.ReportMetric(*p50, "bound-p50-s")
		b.ReportMetric(*p99, "bound-p99-s")
	}
	b.ReportMetric(float64(writes), "writes")
	b.ReportMetric(planned.Seconds()*1000, "plan-ms")
}

// recallFleet is a fleet that has lent what its night leaves free, with a flood at a time that no day before had.
func recallFleet(machines int, flood time.Time) *scenario.Built {
	const services = 40
	var loads []func(time.Time) float64
	per := float64(machines) * 8 / services * 0.8 // replicas of 8 cores
	for range services {
		loads = append(loads, func(at time.Time) float64 {
			if h := at.Hour(); h >= 8 && h < 22 || !at.Before(flood) {
				return per
			}
			return per / 2
		})
	}
	built := tinyAfter(2*24*time.Hour+scenario.WarmUp, machines, 1, loads...)
	built.Fleet.Lending.MovesAtOnce, built.Fleet.Lending.MovesPerHour = machines, machines
	built.Jobs = built.Jobs[:1] // it saves in half a minute
	built.Jobs[0].Share = 1
	return built
}
