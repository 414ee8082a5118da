// Command slo measures what service levels cost and whether they are kept, in the simulator: the fixed rule of 60 % of
// CPU next to what the product learned, and to a sizer that knows the true curve. It prints the tables of
// docs/benchmarks/slo.md; hack/bench-slo.sh puts them there. Its test measures a real server.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/springtide/springtide/sim"
	"github.com/springtide/springtide/sim/scenario"
)

func main() {
	part := flag.String("part", "cost", "cost, objectives, release or wall")
	folder := flag.String("scenarios", "sim/scenario/examples", "folder of the scenarios")
	seeds := flag.Uint64("seeds", 3, "seeds that are played")
	days := flag.Float64("days", 0, "shorten the runs to so many days")
	short := flag.Bool("short", false, "for cost: the default quantile alone")
	in := flag.String("in", "", "for wall: what the test measured")
	flag.Parse()
	if *short {
		quantiles = []float64{byDefault}
	}
	if err := run(*part, *folder, *in, *seeds, *days); err != nil {
		fmt.Fprintln(os.Stderr, "bench/slo:", err)
		os.Exit(1)
	}
}

func run(part, folder, in string, seeds uint64, days float64) error {
	b := &bench{out: os.Stdout, seeds: seeds, days: days, folder: folder}
	switch part {
	case "cost":
		return b.cost()
	case "objectives":
		return b.objectives()
	case "release":
		return b.release()
	case "wall":
		return byTheWall(b.out, in)
	}
	return fmt.Errorf("-part %q: write cost, objectives, release or wall", part)
}

// bench plays scenarios.
type bench struct {
	out    io.Writer
	folder string
	seeds  uint64
	days   float64
}

// sizing is one of what is compared, by its name in the tables.
type sizing struct {
	name        string
	capacity    sim.Capacity
	byObjective bool
	explores    bool
}

// matches reports whether a row is sized so.
func (z sizing) matches(r *sim.Row) bool {
	return r.Capacity == z.capacity && r.ByObjective == z.byObjective && r.Explores == z.explores
}

var (
	byRule      = sizing{name: "60 % rule", capacity: sim.CapacityRule}
	asItIs      = sizing{name: "Springtide", byObjective: true}
	atOneNotch  = sizing{name: "Springtide at a stated quantile"}
	exploring   = sizing{name: "Springtide at a stated quantile, explore: Slow", explores: true}
	byTrueCurve = sizing{name: "true curve", capacity: sim.CapacityTrue}
	sizings     = []sizing{byRule, asItIs, atOneNotch, exploring, byTrueCurve}
)

// played is one service in one row.
type played struct {
	sim.ServiceResult
	online    *scenario.Online
	class     string // its namespace
	minutes   int
	row       sim.Row
	seed      uint64
	objective float64
}

// sizing is what the service was sized by.
func (p *played) sizing() sizing {
	return sizings[slices.IndexFunc(sizings, func(z sizing) bool { return z.matches(&p.row) })]
}

// good is the share of minutes that were good.
func (p *played) good() float64 { return 1 - float64(p.SLOViolationMinutes)/float64(p.minutes) }

// load reads a scenario at a seed.
func (b *bench) load(file string, seed uint64) (*scenario.Scenario, error) {
	s, err := scenario.Load(filepath.Join(b.folder, file))
	if err != nil {
		return nil, err
	}
	s.Seed = seed
	if b.days > 0 {
		s.Days = b.days
	}
	return s, nil
}

// play plays the rows of a scenario and returns what each service came to in each of them.
func (b *bench) play(s *scenario.Scenario, rows []sim.Row) ([]played, error) {
	built, err := s.Build()
	if err != nil {
		return nil, err
	}
	results, broken, err := sim.Simulate(context.Background(), built, rows, func(done int) {
		fmt.Fprintf(os.Stderr, "%s, seed %d: %d of %d rows\n", s.Name, s.Seed, done, len(rows))
	})
	if err != nil {
		return nil, err
	}
	for _, x := range broken {
		return nil, fmt.Errorf("%s, seed %d, %s: %w", s.Name, s.Seed, x.Row.Capacity, x.Why)
	}
	var out []played
	for i := range results {
		for k, r := range results[i].Services {
			o := &built.Services[k]
			out = append(out, played{ServiceResult: r, online: o, class: o.Name.Namespace, minutes: int(s.Duration().Minutes()),
				row: rows[i], seed: s.Seed,
				objective: o.SLO.Objective.GoodMinutes})
		}
	}
	return out, nil
}

// row is Springtide without lending at a quantile of the forecast, in percent.
func row(z sizing, quantile float64) sim.Row {
	return sim.Row{Policy: sim.Springtide, Lender: sim.LendNone, Target: quantile, Knob: sim.KnobAvailability,
		Default: quantile == byDefault, Capacity: z.capacity, ByObjective: z.byObjective,
		Explores: z.explores}
}

// byDefault is the quantile that a service has without saying so, in percent.
const byDefault = 95.0

// heads begins a table.
func (b *bench) heads(names ...string) {
	fmt.Fprintf(b.out, "| %s |\n%s|\n", strings.Join(names, " | "), strings.Repeat("|---", len(names)))
}

// met marks whether a must holds.
func met(ok bool) string {
	if ok {
		return "*met*"
	}
	return "*missed*"
}
