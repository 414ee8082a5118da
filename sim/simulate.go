package sim

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/springtide/springtide/sim/scenario"
)

// BrokenRow is a row that ended at an invariant that did not hold.
type BrokenRow struct {
	Row Row
	Why *Broken
}

// Simulate plays rows, several at once, and returns their results in order. tell, where it is set, hears of each row that is done. An invariant that
// breaks ends its row and no other: such rows have no result and are returned apart, in order, too.
func Simulate(ctx context.Context, b *scenario.Built, rows []Row, tell func(done int)) ([]Result, []BrokenRow, error) {
	shared, out, why := Share(b), make([]Result, len(rows)), make([]*Broken, len(rows))
	err := atOnce(ctx, slowestFirst(rows), func(ctx context.Context, i int) (err error) {
		start := time.Now()
		out[i], err = Run(ctx, b, rows[i], shared)
		out[i].Took = time.Since(start)
		if errors.As(err, &why[i]) {
			return nil
		}
		return err
	}, tell)
	var broken []BrokenRow
	for i, w := range why {
		if w != nil {
			broken = append(broken, BrokenRow{rows[i], w})
		}
	}
	return slices.DeleteFunc(out, func(r Result) bool { return r.Policy == "" }), broken, err
}

// atOnce does what has these numbers, begun in their order and as many at once as there are processors. The first error ends the context of the
// others and is returned. tell, where it is set, hears how many are done.
func atOnce(ctx context.Context, numbers []int, do func(ctx context.Context, i int) error, tell func(done int)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(runtime.GOMAXPROCS(0), len(numbers)) {
		wg.Go(func() {
			for i := range todo {
				if err := do(ctx, i); err != nil {
					cancel(err)
					continue
				}
				mu.Lock()
				done++
				if tell != nil {
					tell(done)
				}
				mu.Unlock()
			}
		})
	}
	for _, i := range numbers {
		todo <- i
	}
	close(todo)
	wg.Wait()
	return context.Cause(ctx)
}

// slowestFirst puts the rows in which the whole loop runs before the others, so that none of them is left for the end.
func slowestFirst(rows []Row) []int {
	var out, rest []int
	for i, r := range rows {
		if r.Policy == Springtide || r.Policy == Reactive || r.Policy == HPA && r.Lender == LendSpringtide {
			out = append(out, i)
		} else {
			rest = append(rest, i)
		}
	}
	return append(out, rest...)
}
