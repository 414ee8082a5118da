package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"

	pure "github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/peer"
	"github.com/springtide/springtide/internal/backtest"
)

// models are ours and, where asked for, the peers'.
func models(o options) ([]backtest.Model, error) {
	var names []string
	if o.only != "" {
		names = strings.Split(o.only, ",")
	}
	ms, err := backtest.Pick(names, o.peers)
	if err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	return ms, nil
}

// naive2Name is M4's yardstick, by which OWA is measured.
const naive2Name = "naive2"

func naive2() backtest.Model {
	return backtest.Model{Name: naive2Name, Forecast: peer.AsShipped(peer.Naive2), Alone: true}
}

// measure asks every model at every origin.
func measure(title string, sets []pure.Set, ms []backtest.Model) (pure.Result, error) {
	last := 0
	r, _, err := backtest.Run(context.Background(), sets, ms, backtest.Options{Levels: levels, Progress: func(done, total int) {
		if tenth := 10 * done / total; tenth > last {
			last = tenth
			fmt.Fprintf(os.Stderr, "%s: %d of %d forecasts\n", title, done, total)
		}
	}})
	return r, err
}

// keepSteps forgets what came at other steps of the horizon than those from the first to the last that are named, as in "1-12".
func keepSteps(sets []pure.Set, steps string) error {
	if steps == "" {
		return nil
	}
	var first, last int
	if n, err := fmt.Sscanf(steps, "%d-%d", &first, &last); n != 2 || err != nil || first < 1 || last < first {
		return fmt.Errorf("--steps %q: write the first and the last step, as in 1-12", steps)
	}
	for s := range sets {
		for c := range sets[s].Cases {
			// The traces' values are shared between origins, so what is forgotten is forgotten in a copy.
			sets[s].Cases[c].Actual = forget(sets[s].Cases[c].Actual, first-1, last)
		}
	}
	return nil
}

// forget copies values, with gaps outside of [from, to).
func forget(values []float64, from, to int) []float64 {
	out := make([]float64, len(values))
	for j, v := range values {
		out[j] = v
		if j < from || j >= to {
			out[j] = math.NaN()
		}
	}
	return out
}
