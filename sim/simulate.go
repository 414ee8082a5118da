package sim

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/springtide/springtide/sim/scenario"
)

// Simulate plays rows, several at once, and returns their results in order. tell, where it is set, hears of each row that is done.
func Simulate(ctx context.Context, b *scenario.Built, rows []Row, tell func(done int)) ([]Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	shared, out := Share(b), make([]Result, len(rows))
	todo := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(runtime.GOMAXPROCS(0), len(rows)) {
		wg.Go(func() {
			for i := range todo {
				start := time.Now()
				r, err := Run(ctx, b, rows[i], shared)
				if err != nil {
					cancel(err)
					continue
				}
				r.Took = time.Since(start)
				mu.Lock()
				out[i] = r
				done++
				if tell != nil {
					tell(done)
				}
				mu.Unlock()
			}
		})
	}
	for _, i := range slowestFirst(rows) {
		todo <- i
	}
	close(todo)
	wg.Wait()
	return out, context.Cause(ctx)
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
