package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/internal/csvseries"
	"github.com/springtide/springtide/internal/series"
)

// seriesInput are the flags that say which series are meant: those of a CSV file, or of a query of Prometheus.
type seriesInput struct {
	in       string
	step     string
	seasons  []string
	holidays string
	prom     promInput
}

func (o *seriesInput) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.in, "in", "-", "CSV file to read, - for standard input")
	f.StringVar(&o.step, "step", "", "bring the series to this step (5m, 1h, 1d) by their means; no shorter than their own, which it is when empty. Of --prometheus, the step of the query (5m when empty)")
	f.StringSliceVar(&o.seasons, "season", nil, "periods to look for: lengths of time (24h, 7d) or numbers of steps (288); the day and the week when empty")
	f.StringVar(&o.holidays, "holidays", "", "file of holidays: CSV with the header date,name or date,name,zone, or region or region,zone for all days of a country (CN, US, GB, DE, ...); or YAML with a list of those fields")
	o.prom.flags(cmd)
}

// options reads what is known beside the series.
func (o *seriesInput) options(cmd *cobra.Command) (plain.Options, error) {
	var out plain.Options
	for _, text := range o.seasons {
		s, err := plain.ParseSeason(text)
		if err != nil {
			return out, usageError{fmt.Errorf("--season: %w", err)}
		}
		out.Seasons = append(out.Seasons, s)
	}
	if o.holidays == "" {
		return out, nil
	}
	data, err := os.ReadFile(o.holidays)
	if err != nil {
		return out, usageError{fmt.Errorf("--holidays: %w", err)}
	}
	if out.Holidays, err = csvseries.Holidays(o.holidays, data); err != nil {
		return out, usageError{err}
	}
	return out, nil
}

// seriesSource yields series one by one, from the first whenever it is ranged over.
type seriesSource struct {
	name  string
	total int
	each  iter.Seq2[plain.History, error]
	close func() error
}

// open reads the series, of a CSV file once to judge it; each reads it again.
func (o *seriesInput) open(cmd *cobra.Command) (*seriesSource, error) {
	step := time.Duration(0)
	if o.step != "" {
		var err error
		if step, err = plain.ParseLength(o.step); err != nil {
			return nil, usageError{fmt.Errorf("--step: %w: write it as in 5m, 1h or 1d", err)}
		}
	}
	if err := o.prom.check(cmd); err != nil {
		return nil, usageError{err}
	}
	if o.prom.url != "" {
		return o.prom.open(cmd, step)
	}
	name, file, err := openInput(o.in, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	far := newProgress(cmd.ErrOrStderr(), "rows")
	rows := 0
	shape, err := csvseries.Survey(name, file, func(csvseries.Row) error {
		if rows++; rows%progressRows == 0 {
			far.at(rows, 0)
		}
		return cmd.Context().Err()
	})
	far.end()
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
					far.line("%s:%d: series %q has one value in %v from here on, and one in %v before: what lies between counts as missing", name, line, h.ID, after, before)
				}
				h.Series, err = atStep(h.ID, g.Series(), step)
			}
			if !yield(h, badInput(err)) || err != nil {
				return
			}
		}
	}
	return &seriesSource{name: name, total: shape.IDs, each: each, close: file.Close}, nil
}

// atStep brings a series to a step, where one is wanted.
func atStep(id string, s series.Series, step time.Duration) (series.Series, error) {
	if step == 0 || step == s.Step || s.Len() < 2 {
		return s, nil
	}
	if step < s.Step {
		return s, usageError{fmt.Errorf("--step %v: series %q has one value in %v: give no shorter step", step, id, s.Step)}
	}
	return s.Align(step, series.Mean), nil
}

// badInput marks rows that cannot be read as what the caller can mend.
func badInput(err error) error {
	var bad *csvseries.Error
	if errors.As(err, &bad) {
		return usageError{err}
	}
	return err
}

// quantilesVar is the flag by which quantiles are named.
func quantilesVar(f *pflag.FlagSet, to *[]float64, usage string) {
	f.Float64SliceVar(to, "quantiles", []float64{0.5, 0.9, 0.95, 0.99}, usage)
	f.Lookup("quantiles").DefValue = "0.5,0.9,0.95,0.99" // pflag prints six decimals
}
