package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/internal/csvseries"
)

// mostSteps bounds the horizon: a year of five-minute steps.
const mostSteps = 105_120

func newForecastCommand() *cobra.Command {
	var in, out string
	var horizon int
	var quantiles []float64
	cmd := &cobra.Command{
		Use:   "forecast",
		Short: "Forecast series of a CSV file with the methods that the controller uses",
		Long: "Reads long CSV with the header id,ts,value (ts in seconds since 1970 or RFC 3339; an empty value is missing) and writes\n" +
			"id,step,q0.5,... with one row for each id and step. The step is read from the data of each id: five minutes, hours, days or\n" +
			"anything else; days and weeks are the seasons. Rows may stand in any order, but one id is held at a time only where the rows\n" +
			"of each id stand together. Nothing is written unless all rows are good.",
		Example: "  springtide forecast --in load.csv --horizon 288 --quantiles 0.5,0.9,0.99 --out tide.csv\n" +
			"  springtide forecast --horizon 48 < load.csv",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("springtide forecast takes no %q: name the file with --in", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkForecastFlags(horizon, quantiles); err != nil {
				return usageError{err}
			}
			err := runForecast(cmd, in, out, horizon, quantiles)
			var bad *csvseries.Error
			if errors.As(err, &bad) {
				return usageError{err}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&in, "in", "-", "CSV file to read, - for standard input")
	f.StringVar(&out, "out", "-", "CSV file to write, - for standard output")
	f.IntVar(&horizon, "horizon", 0, "steps to forecast (required)")
	f.Float64SliceVar(&quantiles, "quantiles", []float64{0.5, 0.9, 0.95, 0.99}, "quantiles between 0 and 1, in the order of the columns")
	return cmd
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

func runForecast(cmd *cobra.Command, in, out string, horizon int, quantiles []float64) error {
	name, file, err := openInput(in, cmd.InOrStdin())
	if err != nil {
		return err
	}
	defer file.Close()
	shape, err := csvseries.Survey(name, file)
	if err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read %s again: %w", name, err)
	}
	groups := csvseries.Groups(name, file, shape.Grouped)
	return writeOutput(out, cmd.OutOrStdout(), func(w io.Writer) error {
		rows, err := csvseries.NewWriter(w, quantiles)
		if err != nil {
			return err
		}
		for done, err := range projections(groups, horizon, quantiles) {
			if err != nil {
				return err
			}
			if done.note != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", done.id, done.note)
			}
			if err := rows.Write(done.id, horizon, done.paths); err != nil {
				return err
			}
		}
		return rows.Flush()
	})
}

// projection is the forecast of one series.
type projection struct {
	id    string
	paths [][]float64
	note  string
}

// projections forecasts the groups, as many at once as there are processors, and yields them in their order.
func projections(groups iter.Seq2[csvseries.Group, error], horizon int, quantiles []float64) iter.Seq2[projection, error] {
	return func(yield func(projection, error) bool) {
		next, stop := iter.Pull2(groups)
		defer stop()
		batch := make([]csvseries.Group, 0, runtime.GOMAXPROCS(0))
		for more := true; more; {
			batch = batch[:0]
			var failed error
			for len(batch) < cap(batch) {
				g, err, ok := next()
				if !ok || err != nil {
					failed, more = err, false
					break
				}
				batch = append(batch, g)
			}
			done := make([]projection, len(batch))
			var wait sync.WaitGroup
			for i := range batch {
				wait.Go(func() { done[i] = projectOne(&batch[i], horizon, quantiles) })
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
func projectOne(g *csvseries.Group, horizon int, quantiles []float64) projection {
	rising := slices.Sorted(slices.Values(quantiles))
	f := plain.Ours(plain.Input{Histories: []plain.History{{ID: g.ID, Series: g.Series()}}, Horizon: horizon, Quantiles: rising})[0]
	out := projection{id: g.ID, paths: make([][]float64, len(quantiles))}
	if f.Paths == nil {
		out.note = "no value to forecast from; its rows are empty"
	}
	for i, q := range quantiles {
		if f.Paths == nil {
			out.paths[i] = slices.Repeat([]float64{math.NaN()}, horizon)
			continue
		}
		k, _ := slices.BinarySearch(rising, q)
		out.paths[i] = f.Paths[k]
	}
	return out
}

// openInput opens the file, or copies standard input to a temporary one, since the input is read twice.
func openInput(path string, stdin io.Reader) (name string, f *os.File, err error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return path, nil, usageError{fmt.Errorf("--in: %w", err)}
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return path, f, nil
		}
		defer f.Close()
		f2, err := spool(f)
		return path, f2, err
	}
	f, err = spool(stdin)
	return "stdin", f, err
}

// spool copies a stream to a file that vanishes when it is closed.
func spool(r io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "springtide-forecast-*.csv")
	if err != nil {
		return nil, fmt.Errorf("keep the input: %w", err)
	}
	_ = os.Remove(f.Name())
	if _, err = io.Copy(f, r); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("keep the input: %w", err)
	}
	return f, nil
}

// writeOutput hands write a destination. A regular file is replaced only when all of it was written.
func writeOutput(path string, stdout io.Writer, write func(io.Writer) error) error {
	if path == "-" {
		return write(stdout)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return usageError{fmt.Errorf("--out: %w", err)}
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return usageError{fmt.Errorf("--out: %w", err)}
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
