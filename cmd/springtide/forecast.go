package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/internal/csvseries"
)

// mostSteps bounds the horizon: a year of five-minute steps.
const mostSteps = 105_120

func newForecastCommand() *cobra.Command {
	var input seriesInput
	var out string
	var horizon int
	var quantiles []float64
	cmd := &cobra.Command{
		Use:   "forecast",
		Short: "Forecast series of a CSV file or of Prometheus with the methods that the controller uses",
		Long: "Reads long CSV with the header id,ts,value (ts in seconds since 1970 or RFC 3339; an empty value is missing) and writes\n" +
			"id,step,ts,q0.5,... with one row for each id and step; ts is when that step begins. A file of one series needs no ids:\n" +
			"ts,value. Both may be gzipped. The step is read from the data of each id, unless --step names one: five minutes, hours, days\n" +
			"or anything else; days and weeks are the seasons, unless --season names others. Rows may stand in any order, but one id is\n" +
			"held at a time only where the rows of each id stand together. Nothing is written unless all rows are good.\n\n" +
			"With --prometheus and --query the series are those of a range query instead, and their labels are the ids.",
		Example: "  springtide forecast --in load.csv --horizon 288 --quantiles 0.5,0.9,0.99 --out tide.csv\n" +
			"  springtide forecast --horizon 48 < load.csv\n" +
			"  springtide forecast --prometheus http://prometheus:9090 --query 'sum by (service) (rate(requests_total[5m]))' --horizon 288",
		Args: inputByFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkForecastFlags(horizon, quantiles); err != nil {
				return usageError{err}
			}
			options, err := input.options(cmd)
			if err != nil {
				return err
			}
			source, err := input.open(cmd)
			if err != nil {
				return err
			}
			return errors.Join(runForecast(cmd, source, out, horizon, quantiles, options), source.close())
		},
	}
	input.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&out, "out", "-", "CSV file to write, - for standard output")
	f.IntVar(&horizon, "horizon", 0, "steps to forecast (required)")
	quantilesVar(f, &quantiles, "quantiles between 0 and 1, in the order of the columns")
	cmd.AddCommand(newForecastServiceCommand(&cliOptions{connect: connect}))
	return cmd
}

// inputByFlags refuses arguments of a verb that reads series.
func inputByFlags(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no %q: name the file with --in", cmd.CommandPath(), args[0])}
	}
	return nil
}

func checkForecastFlags(horizon int, quantiles []float64) error {
	if horizon < 1 || horizon > mostSteps {
		return fmt.Errorf("--horizon %d: give the number of steps to forecast, from 1 to %d", horizon, mostSteps)
	}
	if len(quantiles) == 0 {
		return errors.New("--quantiles: give at least one, as in 0.5,0.9,0.99")
	}
	for i, q := range quantiles {
		if !(q > 0 && q < 1) {
			return fmt.Errorf("--quantiles: %v does not lie between 0 and 1", q)
		}
		if slices.Contains(quantiles[:i], q) {
			return fmt.Errorf("--quantiles: %v stands twice", q)
		}
	}
	return nil
}

func runForecast(cmd *cobra.Command, source *seriesSource, out string, horizon int, quantiles []float64, options plain.Options) error {
	return writeOutput("--out", out, cmd.OutOrStdout(), func(w io.Writer) error {
		rows, err := csvseries.NewWriter(w, quantiles)
		if err != nil {
			return err
		}
		far := newProgress(cmd.ErrOrStderr(), "series")
		defer far.end()
		kin, err := teachKin(source, far)
		if err != nil {
			return err
		}
		done := 0
		for p, err := range projections(source.each, plain.Input{Horizon: horizon, Quantiles: quantiles, Options: options, Kin: kin}) {
			if err != nil {
				return err
			}
			if p.note != "" {
				far.line("%s: %s", p.id, p.note)
			}
			if err := rows.Write(p.id, p.begin, p.step, horizon, p.paths); err != nil {
				return err
			}
			done++
			far.at(done, source.total)
		}
		return rows.Flush()
	})
}

// teachKin lets the series teach what they have in common, of very many every nth.
func teachKin(source *seriesSource, far *progress) (*plain.Kin, error) {
	stride := forecast.Stride(source.total, plain.MostKin)
	var taught []plain.History
	n := 0
	for h, err := range source.each {
		if err != nil {
			return nil, err
		}
		if n++; (n-1)%stride == 0 {
			taught = append(taught, h)
		}
	}
	if len(taught) >= plain.MostKin/8 {
		far.line("learning what %d series have in common", len(taught))
	}
	return plain.Teach(taught, inParallel), nil
}

// inParallel calls f for 0..n-1 on all processors.
func inParallel(n int, f func(i int)) {
	var wait sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), n)
	for w := range workers {
		wait.Go(func() {
			for i := w; i < n; i += workers {
				f(i)
			}
		})
	}
	wait.Wait()
}

// projection is the forecast of one series.
type projection struct {
	id string
	// begin is when the first step that is foreseen begins.
	begin time.Time
	step  time.Duration
	paths [][]float64
	note  string
}

// projections forecasts series one by one, as many at once as there are processors, and yields them in their order.
func projections(histories iter.Seq2[plain.History, error], in plain.Input) iter.Seq2[projection, error] {
	return func(yield func(projection, error) bool) {
		next, stop := iter.Pull2(histories)
		defer stop()
		batch := make([]plain.History, 0, runtime.GOMAXPROCS(0))
		for more := true; more; {
			batch = batch[:0]
			var failed error
			for len(batch) < cap(batch) {
				h, err, ok := next()
				if !ok || err != nil {
					failed, more = err, false
					break
				}
				batch = append(batch, h)
			}
			done := make([]projection, len(batch))
			var wait sync.WaitGroup
			for i := range batch {
				wait.Go(func() { done[i] = projectOne(batch[i], in) })
			}
			wait.Wait()
			for _, d := range done {
				if !yield(d, nil) {
					return
				}
			}
			if failed != nil {
				yield(projection{}, failed)
				return
			}
		}
	}
}

// projectOne forecasts one series by our own methods.
func projectOne(h plain.History, in plain.Input) projection {
	wanted := in.Quantiles
	in.Histories = []plain.History{h}
	in.Quantiles = slices.Sorted(slices.Values(wanted))
	f := plain.Ours(in)[0]
	out := projection{id: h.ID, step: h.Series.Step, paths: make([][]float64, len(wanted))}
	if n := h.Series.Len(); n > 0 {
		out.begin = h.Series.Time(n)
	}
	if f.Paths == nil {
		out.note = "no value to forecast from; its rows are empty"
	}
	for i, q := range wanted {
		if f.Paths == nil {
			out.paths[i] = slices.Repeat([]float64{math.NaN()}, in.Horizon)
			continue
		}
		k, _ := slices.BinarySearch(in.Quantiles, q)
		out.paths[i] = f.Paths[k]
	}
	return out
}
