package sim

import (
	"context"
	"errors"

	"github.com/springtide/springtide/sim/scenario"
)

// Seeded is what the rows of one seed came to.
type Seeded struct {
	// Built is what was played; of many seeds the first keeps it, and those that broke.
	Built   *scenario.Built
	Rows    []Row
	Results []Result
	// Broken is the invariant that did not hold; the results are those of the rows that were played to their end.
	Broken *Broken
}

// SimulateSeeds plays the rows of a scenario at each seed and returns them in order: several seeds at once, or several rows of a single one.
// An invariant that breaks ends its seed and no other. tell hears of what is done.
func SimulateSeeds(ctx context.Context, s *scenario.Scenario, seeds []uint64, pick func(*scenario.Built) ([]Row, error), tell func(done, of int)) ([]Seeded, error) {
	out := make([]Seeded, len(seeds))
	// The first one reads the traces, for all of them.
	for i := range min(1, len(seeds)) {
		if err := prepare(s, seeds[i], pick, &out[i]); err != nil {
			return nil, err
		}
	}
	if len(seeds) == 1 {
		results, err := Simulate(ctx, out[0].Built, out[0].Rows, func(done int) { tell(done, len(out[0].Rows)) })
		return out, out[0].take(results, err)
	}
	numbers := make([]int, len(seeds))
	for i := range numbers {
		numbers[i] = i
	}
	err := atOnce(ctx, numbers, func(ctx context.Context, i int) error {
		defer func() {
			if i > 0 && out[i].Broken == nil {
				out[i].Built = nil // half a megabyte each
			}
		}()
		return out[i].play(ctx, s, seeds[i], pick)
	}, func(done int) { tell(done, len(seeds)) })
	return out, err
}

// prepare builds a scenario at a seed.
func prepare(s *scenario.Scenario, seed uint64, pick func(*scenario.Built) ([]Row, error), out *Seeded) error {
	own := *s
	own.Seed = seed
	var err error
	if out.Built, err = own.Build(); err != nil {
		return err
	}
	out.Rows, err = pick(out.Built)
	return err
}

// play plays one seed, row after row.
func (out *Seeded) play(ctx context.Context, s *scenario.Scenario, seed uint64, pick func(*scenario.Built) ([]Row, error)) error {
	select {
	case <-ctx.Done():
		return nil // another seed has failed, and says why
	default:
	}
	if out.Built == nil {
		if err := prepare(s, seed, pick, out); err != nil {
			return err
		}
	}
	shared := Share(out.Built)
	var results []Result
	for _, r := range out.Rows {
		x, err := Run(ctx, out.Built, r, shared)
		if err != nil {
			return out.take(results, err)
		}
		results = append(results, x)
	}
	return out.take(results, nil)
}

// take keeps results, or the invariant that broke; other errors are not the seed's.
func (out *Seeded) take(results []Result, err error) error {
	out.Results = results
	if errors.As(err, &out.Broken) {
		return nil
	}
	return err
}
