// Package backtest runs forecasters over rolling origins: in parallel, timed and with word of how far it is. Package
// forecast/backtest, which is pure, defines origins and judges forecasts.
package backtest

import (
	"context"
	"fmt"
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

// Ours is the name of our own methods.
const Ours = "springtide"

// Model is a forecaster by the name that it has in tables.
type Model struct {
	Name, About string
	Forecast    plain.Forecaster
	// Alone says that it looks at one series at a time, so that the series of an origin may be shared out.
	Alone bool
}

// Models are ours, first, and the peers'.
func Models() []Model {
	out := []Model{{Name: Ours, About: "the controller's methods", Forecast: plain.Ours}}
	for _, p := range peer.All() {
		out = append(out, Model{Name: p.Name, About: p.About, Forecast: p.Forecast, Alone: true})
	}
	return out
}

// Pick returns the models of the names, in their order; ours, or all where peers are asked for, when none is named.
func Pick(names []string, peers bool) ([]Model, error) {
	all := Models()
	if len(names) == 0 {
		if peers {
			return all, nil
		}
		return all[:1], nil
	}
	var out []Model
	for _, name := range names {
		i := slices.IndexFunc(all, func(m Model) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%q is no model: write some of %s", name, strings.Join(Names(all), ", "))
		}
		if slices.ContainsFunc(out, func(m Model) bool { return m.Name == name }) {
			return nil, fmt.Errorf("%q stands twice", name)
		}
		out = append(out, all[i])
	}
	if !peers {
		return out, nil
	}
	for _, m := range all[1:] {
		if !slices.ContainsFunc(out, func(o Model) bool { return o.Name == m.Name }) {
			out = append(out, m)
		}
	}
	return out, nil
}

// Names are the models' names.
func Names(models []Model) []string {
	out := make([]string, len(models))
	for i, m := range models {
		out[i] = m.Name
	}
	return out
}

// Options tune a run.
type Options struct {
	// Levels are the quantiles that losses and coverage are taken at.
	Levels []float64
	// Keep asks for the forecasts of the newest origin.
	Keep bool
	// Progress, where set, receives how many of the forecasts are done. It is not called from two goroutines at once.
	Progress func(done, total int)
}

// Kept is what the models said at one origin: Forecasts[m][i] is model m on case i.
type Kept struct {
	Set       *backtest.Set
	Quantiles []float64
	Forecasts [][]plain.Forecast
}

// share is how many series of an origin one job takes of a model that looks at them one by one.
const share = 16

// job is a part of a set for one model.
type job struct {
	model, set, from, to int
	forecasts            []plain.Forecast
	tallies              []*score.Tally
	took                 time.Duration
}

// Run measures the models on the sets, as many jobs at once as there are processors: the times are those of a machine with all of them
// busy. The result does not depend on how many there are, times apart.
func Run(ctx context.Context, sets []backtest.Set, models []Model, o Options) (backtest.Result, []Kept, error) {
	jobs, total := split(sets, models)
	quantiles := score.Quantiles(o.Levels)
	var wait sync.WaitGroup
	var mu sync.Mutex
	next, done := 0, 0
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for {
				mu.Lock()
				if next == len(jobs) || ctx.Err() != nil {
					mu.Unlock()
					return
				}
				j := &jobs[next]
				next++
				mu.Unlock()
				j.run(sets, models, quantiles, o)
				mu.Lock()
				if done += j.to - j.from; o.Progress != nil {
					o.Progress(done, total)
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return backtest.Result{}, nil, err
	}
	board := backtest.NewBoard(o.Levels, Names(models))
	for i := range jobs {
		j := &jobs[i]
		part := sets[j.set]
		part.Cases = part.Cases[j.from:j.to]
		board.Add(j.model, &part, j.tallies, j.took)
	}
	return board.Result(), gather(sets, len(models), quantiles, jobs, o.Keep), nil
}

func split(sets []backtest.Set, models []Model) (jobs []job, total int) {
	for m := range models {
		for s := range sets {
			n := len(sets[s].Cases)
			total += n
			size := n
			if models[m].Alone {
				size = share
			}
			for from := 0; from < n; from += size {
				jobs = append(jobs, job{model: m, set: s, from: from, to: min(n, from+size)})
			}
		}
	}
	return jobs, total
}

func (j *job) run(sets []backtest.Set, models []Model, quantiles []float64, o Options) {
	part := sets[j.set]
	part.Cases = part.Cases[j.from:j.to]
	begin := time.Now()
	forecasts := backtest.Evaluate(&part, quantiles, models[j.model].Forecast)
	j.took = time.Since(begin)
	j.tallies = backtest.Score(&part, o.Levels, quantiles, forecasts)
	if o.Keep && part.Origin == 0 {
		j.forecasts = forecasts
	}
}

// gather puts the parts of the newest origins together again.
func gather(sets []backtest.Set, models int, quantiles []float64, jobs []job, keep bool) []Kept {
	if !keep {
		return nil
	}
	var out []Kept
	for s := range sets {
		if sets[s].Origin != 0 {
			continue
		}
		k := Kept{Set: &sets[s], Quantiles: quantiles, Forecasts: make([][]plain.Forecast, models)}
		for i := range jobs {
			if jobs[i].set == s {
				k.Forecasts[jobs[i].model] = append(k.Forecasts[jobs[i].model], jobs[i].forecasts...)
			}
		}
		out = append(out, k)
	}
	return out
}
