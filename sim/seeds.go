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
	// Broken are the rows in which an invariant did not hold; the results are those of the others.
	Broken []BrokenRow
}

// SimulateSeeds plays the rows of a scenario at each seed and returns them in order: several seeds at once, or several rows of a single one.
// An invariant that breaks ends its row, and no other of its seed or of other seeds. tell hears of what is done.
func SimulateSeeds(ctx context.Context, s *scenario.Scenario, seeds []uint64, pick func(*scenario.Built) ([]Row, error), tell func(done, of int)) ([]Seeded, error) {
	out := make([]Seeded, len(seeds))
	// The first one reads the traces, for all of them.
	for i := range min(1, len(seeds)) {
		if err := prepare(s, seeds[i], pick, &out[i]); err != nil {
			return nil, err
		}
	}
	if len(seeds) == 1 {
		var err error
		out[0].Results, out[0].Broken, err = Simulate(ctx, out[0].Built, out[0].Rows, func(done int) { tell(done, len(out[0].Rows)) })
		return out, err
	}
	numbers := make([]int, len(seeds))
	for i := range numbers {
		numbers[i] = i
	}
	err := atOnce(ctx, numbers, func(ctx context.Context, i int) error {
		defer func() {
			if i > 0 && len(out[i].Broken) == 0 {
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
	for _, r := range out.Rows {
		x, err := Run(ctx, out.Built, r, shared)
		var why *Broken
		switch {
		case errors.As(err, &why):
			out.Broken = append(out.Broken, BrokenRow{r, why})
		case err != nil:
			return err
		default:
			out.Results = append(out.Results, x)
		}
	}
	return nil
}
