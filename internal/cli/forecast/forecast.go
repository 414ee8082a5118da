// Package forecast prints forecasts: of series by the methods of the controller, and those that the controller made.
package forecast

import (
	"errors"
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
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/files"
	"github.com/springtide/springtide/internal/cli/input"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/csvseries"
)

// NewCommand makes `springtide forecast`.
func NewCommand() *cobra.Command {
	var from input.Series
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
		Args: input.ByFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := input.CheckForecast(horizon, quantiles); err != nil {
				return usage.Error{Err: err}
			}
			options, err := from.Options(cmd)
			if err != nil {
				return err
			}
			source, err := from.Open(cmd)
			if err != nil {
				return err
			}
			return errors.Join(runForecast(cmd, source, out, horizon, quantiles, options), source.Close())
		},
	}
	from.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&out, "out", "-", "CSV file to write, - for standard output")
	f.IntVar(&horizon, "horizon", 0, "steps to forecast (required)")
	input.QuantilesVar(f, &quantiles, "quantiles between 0 and 1, in the order of the columns")
	cmd.AddCommand(newForecastServiceCommand(&cluster.Options{Connect: cluster.Connect}))
	return cmd
}

func runForecast(cmd *cobra.Command, source *input.Source, out string, horizon int, quantiles []float64, options plain.Options) error {
	return files.Write("--out", out, cmd.OutOrStdout(), func(w io.Writer) error {
		rows, err := csvseries.NewWriter(w, quantiles)
		if err != nil {
			return err
		}
		far := screen.NewProgress(cmd.ErrOrStderr(), "series")
		defer far.End()
		kin, err := teachKin(source, far)
		if err != nil {
			return err
		}
		done := 0
		for p, err := range projections(source.Each, plain.Input{Horizon: horizon, Quantiles: quantiles, Options: options, Kin: kin}) {
			if err != nil {
				return err
			}
			if p.note != "" {
				far.Line("%s: %s", p.id, p.note)
			}
			if err := rows.Write(p.id, p.begin, p.step, horizon, p.paths); err != nil {
				return err
			}
			done++
			far.At(done, source.Total)
		}
		return rows.Flush()
	})
}

// teachKin lets the series teach what they have in common, of very many every nth.
func teachKin(source *input.Source, far *screen.Progress) (*plain.Groups, error) {
	stride := forecast.Stride(source.Total, plain.MostKin)
	var taught []plain.History
	n := 0
	for h, err := range source.Each {
		if err != nil {
			return nil, err
		}
		if n++; (n-1)%stride == 0 {
			taught = append(taught, h)
		}
	}
	if len(taught) >= plain.MostKin/8 {
		far.Line("learning what %d series have in common", len(taught))
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
