// Package input reads the series of forecast and backtest, from CSV or from a range query of Prometheus.
package input

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/internal/cli/files"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/csvseries"
	"github.com/springtide/springtide/series"
)

// Series are the flags that say which series are meant: those of a CSV file, or of a query of Prometheus.
type Series struct {
	in       string
	step     string
	seasons  []string
	holidays string
	prom     promInput
}

// Flags adds the flags.
func (o *Series) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.in, "in", "-", "CSV file to read, - for standard input")
	f.StringVar(&o.step, "step", "", "bring the series to this step (5m, 1h, 1d) by their means; no shorter than their own, which it is when empty. Of --prometheus, the step of the query (5m when empty)")
	f.StringSliceVar(&o.seasons, "season", nil, "periods to look for: lengths of time (24h, 7d) or numbers of steps (288); the day and the week when empty")
	f.StringVar(&o.holidays, "holidays", "", "file of holidays: CSV with the header date,name or date,name,zone, or region or region,zone for all days of a country (CN, US, GB, DE, ...); or YAML with a list of those fields")
	o.prom.flags(cmd)
}

// Options reads what is known next to the series.
func (o *Series) Options(cmd *cobra.Command) (plain.Options, error) {
	var out plain.Options
	for _, text := range o.seasons {
		s, err := plain.ParseSeason(text)
		if err != nil {
			return out, usage.Error{Err: fmt.Errorf("--season: %w", err)}
		}
		out.Seasons = append(out.Seasons, s)
	}
	if o.holidays == "" {
		return out, nil
	}
	data, err := os.ReadFile(o.holidays)
	if err != nil {
		return out, usage.Error{Err: fmt.Errorf("--holidays: %w", err)}
	}
	if out.Holidays, err = csvseries.Holidays(o.holidays, data); err != nil {
		return out, usage.Error{Err: err}
	}
	return out, nil
}

// Source yields series one by one, from the first whenever it is ranged over.
type Source struct {
	name  string
	Total int
	Each  iter.Seq2[plain.History, error]
	Close func() error
}

// Open reads the series, of a CSV file once to judge it; each reads it again.
func (o *Series) Open(cmd *cobra.Command) (*Source, error) {
	step := time.Duration(0)
	if o.step != "" {
		var err error
		if step, err = plain.ParseLength(o.step); err != nil {
			return nil, usage.Error{Err: fmt.Errorf("--step: %w: write it as in 5m, 1h or 1d", err)}
		}
	}
	if err := o.prom.check(cmd); err != nil {
		return nil, usage.Error{Err: err}
	}
	if o.prom.url != "" {
		return o.prom.open(cmd, step)
	}
	name, file, err := files.Open(o.in, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	far := screen.NewProgress(cmd.ErrOrStderr(), "rows")
	rows := 0
	shape, err := csvseries.Survey(name, file, func(csvseries.Row) error {
		if rows++; rows%screen.ProgressRows == 0 {
			far.At(rows, 0)
		}
		return cmd.Context().Err()
	})
	far.End()
	if err != nil {
		return nil, errors.Join(badInput(err), file.Close())
	}
	first := true // what is said of the series is said once
	each := func(yield func(plain.History, error) bool) {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			yield(plain.History{}, fmt.Errorf("read %s again: %w", name, err))
			return
		}
		defer func() { first = false }()
		for g, err := range csvseries.Groups(name, file, shape.Grouped) {
			h := plain.History{ID: g.ID}
			if g.ID == "" { // a file of one series has no ids
				h.ID = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".gz"), ".csv")
			}
			if err == nil {
				err = cmd.Context().Err()
			}
			if err == nil {
				if line, before, after, mixed := g.MixedSteps(); mixed && first {
					far.Line("%s:%d: series %q has one value in %v from here on, and one in %v before: what lies between counts as missing", name, line, h.ID, after, before)
				}
				h.Series, err = atStep(h.ID, g.Series(), step)
			}
			if !yield(h, badInput(err)) || err != nil {
				return
			}
		}
	}
	return &Source{name: name, Total: shape.IDs, Each: each, Close: file.Close}, nil
}

// atStep brings a series to a step, where one is wanted.
func atStep(id string, s series.Series, step time.Duration) (series.Series, error) {
	if step == 0 || step == s.Step || s.Len() < 2 {
		return s, nil
	}
	if step < s.Step {
		return s, usage.Error{Err: fmt.Errorf("--step %v: series %q has one value in %v: give no shorter step", step, id, s.Step)}
	}
	return s.Align(step, series.Mean), nil
}

// badInput marks rows that cannot be read as what the caller can fix.
func badInput(err error) error {
	var bad *csvseries.Error
	if errors.As(err, &bad) {
		return usage.Error{Err: err}
	}
	return err
}

// QuantilesVar is the flag by which quantiles are named.
func QuantilesVar(f *pflag.FlagSet, to *[]float64, usage string) {
	f.Float64SliceVar(to, "quantiles", []float64{0.5, 0.9, 0.95, 0.99}, usage)
	f.Lookup("quantiles").DefValue = "0.5,0.9,0.95,0.99" // pflag prints six decimals
}

// ByFlags refuses arguments of a verb that reads series.
func ByFlags(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage.Error{Err: fmt.Errorf("%s takes no %q: name the file with --in", cmd.CommandPath(), args[0])}
	}
	return nil
}

// CheckForecast judges the flags --horizon and --quantiles.
func CheckForecast(horizon int, quantiles []float64) error {
	if horizon < 1 || horizon > MostSteps {
		return fmt.Errorf("--horizon %d: give the number of steps to forecast, from 1 to %d", horizon, MostSteps)
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

// MostSteps bounds the horizon: a year of five-minute steps.
const MostSteps = 105_120

// Read holds all series: those of an origin are forecast together.
func (o *Series) Read(cmd *cobra.Command) ([]plain.History, error) {
	source, err := o.Open(cmd)
	if err != nil {
		return nil, err
	}
	var out []plain.History
	for h, err := range source.Each {
		if err != nil {
			return nil, errors.Join(err, source.Close())
		}
		out = append(out, h)
	}
	return out, source.Close()
}
