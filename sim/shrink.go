package sim

import (
	"context"
	"errors"
	"slices"

	"github.com/springtide/springtide/sim/scenario"
)

// Shrink finds fewer faults under which a row still breaks an invariant: it leaves them out one by one, as long as something breaks. It
// returns what breaks then, or nil when nothing breaks to begin with.
func Shrink(ctx context.Context, b *scenario.Built, r Row) (*Broken, error) {
	faults := drawFaults(b)
	broken, err := breaks(ctx, b, r, faults)
	if broken == nil || err != nil {
		return nil, err
	}
	for i := 0; i < len(faults); {
		fewer := slices.Delete(slices.Clone(faults), i, i+1)
		still, err := breaks(ctx, b, r, fewer)
		if err != nil {
			return nil, err
		}
		if still == nil {
			i++
			continue
		}
		faults, broken = fewer, still
	}
	return broken, nil
}

// breaks plays a row under faults and returns the invariant that broke, if any.
func breaks(ctx context.Context, b *scenario.Built, r Row, faults []fault) (*Broken, error) {
	own := *b.Scenario
	own.Faults.Random, own.Faults.List = 0, nil
	for i := range faults {
		own.Faults.List = append(own.Faults.List, faults[i].Fault)
	}
	with := *b
	with.Scenario = &own
	_, err := Run(ctx, &with, r, Share(&with))
	var broken *Broken
	if errors.As(err, &broken) {
		return broken, nil
	}
	return nil, err
}
