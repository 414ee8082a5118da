package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/peer"
	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/forecast/score"
)

type model struct {
	name     string
	forecast plain.Forecaster
}

// models are ours and, where asked for, the peers'.
func models(o options) ([]model, error) {
	all := []model{{"springtide", plain.Ours}}
	for _, p := range peer.All() {
		all = append(all, model{p.Name, p.Forecast})
	}
	if o.only != "" {
		var out []model
		for name := range strings.SplitSeq(o.only, ",") {
			i := slices.IndexFunc(all, func(m model) bool { return m.name == name })
			if i < 0 {
				return nil, fmt.Errorf("--only: no model %q", name)
			}
			out = append(out, all[i])
		}
		return out, nil
	}
	if !o.peers {
		return all[:1], nil
	}
	return all, nil
}

// measure asks every model at every origin, as many at once as there are processors: times are those of a machine with all of them busy.
func measure(sets []backtest.Set, ms []model) backtest.Result {
	names := make([]string, len(ms))
	for i, m := range ms {
		names[i] = m.name
	}
	board := backtest.NewBoard(levels, names)
	quantiles := score.Quantiles(levels)
	type job struct{ model, set int }
	type done struct {
		tallies []*score.Tally
		took    time.Duration
	}
	results := make([]done, len(ms)*len(sets))
	jobs := make(chan job)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for j := range jobs {
				s := &sets[j.set]
				begin := time.Now()
				f := backtest.Evaluate(s, quantiles, ms[j.model].forecast)
				took := time.Since(begin)
				results[j.model*len(sets)+j.set] = done{backtest.Score(s, levels, quantiles, f), took}
			}
		})
	}
	for m := range ms {
		for s := range sets {
			jobs <- job{m, s}
		}
		fmt.Fprintf(os.Stderr, "%s\n", ms[m].name)
	}
	close(jobs)
	wait.Wait()
	for m := range ms {
		for s := range sets {
			r := results[m*len(sets)+s]
			board.Add(m, &sets[s], r.tallies, r.took)
		}
	}
	return board.Result()
}
