package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/serve/readapi"
)

func newForecastServiceCommand(o *cliOptions) *cobra.Command {
	var hours int
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "service NAME",
		Short: "Print the controller's own forecast of a service",
		Long: "Print the forecast that the controller sizes a service by: its quantiles from now on, in the unit of the service's signal. The controller\n" +
			"answers with what it made last, for those who may read the ElasticService.",
		Example: "  springtide forecast service shop/cart --hours 12\n  springtide forecast service cart -n shop -o json",
		Args:    exactly("NAME"),
		RunE: o.about(func(cmd *cobra.Command, c *clients, name fleet.Name) error {
			m, done, err := o.remember(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer done()
			tides, err := m.TidesOf(cmd.Context(), fleet.ServiceID(name.String()), 1)
			if err != nil {
				return err
			}
			if len(tides) == 0 {
				return errFound("no forecast of ElasticService %s yet: springtide explain service %s says what it waits for", name, name)
			}
			f := readapi.Render(&tides[0])
			if o.output != "table" {
				return encode(cmd.OutOrStdout(), o.output, f)
			}
			t := &table{out: cmd.OutOrStdout()}
			fmt.Fprintf(cmd.OutOrStdout(), "Forecast of %s (%s) made %s by model %s, %s\n", f.Service, f.Signal, stamp(&metav1.Time{Time: f.Made}), f.Model, trustText(f))
			return t.print(forecastRows(f, c.now(), hours, every))
		}),
	}
	o.cluster(cmd)
	o.namespaced(cmd, "namespace of a name that is given without one")
	o.history(cmd)
	o.completes(cmd, services)
	o.formats(cmd, "table", "json", "yaml")
	cmd.Flags().IntVar(&hours, "hours", 24, "hours to print")
	cmd.Flags().DurationVar(&every, "every", time.Hour, "time between two rows")
	before(cmd, func(*cobra.Command, []string) error {
		if hours < 1 || hours > 24*14 || every < time.Minute {
			return usageError{fmt.Errorf("--hours %d --every %s: write 1 to 336 hours, and a minute or more", hours, every)}
		}
		return nil
	})
	return cmd
}

func trustText(f *readapi.Forecast) string {
	switch {
	case f.Trusted:
		return "trusted"
	case f.Note != "":
		return "not trusted: " + f.Note
	}
	return "not trusted"
}

// forecastRows are the quantiles at the steps that are nearest to each row.
func forecastRows(f *readapi.Forecast, now time.Time, hours int, every time.Duration) [][]string {
	titles := []string{"TIME"}
	for _, q := range f.Quantiles {
		titles = append(titles, "P"+strconv.FormatFloat(100*q, 'f', -1, 64))
	}
	rows := [][]string{titles}
	step, err := time.ParseDuration(f.Step)
	if err != nil || step <= 0 {
		return rows
	}
	begin := now.Truncate(every)
	if begin.Before(f.Start) {
		begin = f.Start
	}
	for at := begin; !at.After(begin.Add(time.Duration(hours) * time.Hour)); at = at.Add(every) {
		i := int(at.Sub(f.Start) / step)
		row := []string{stamp(&metav1.Time{Time: at})}
		known := false
		for _, path := range f.Paths {
			if i >= len(path) || i < 0 || path[i] == nil {
				row = append(row, none)
				continue
			}
			row, known = append(row, strconv.FormatFloat(*path[i], 'f', 1, 64)), true
		}
		if known {
			rows = append(rows, row)
		}
	}
	return rows
}
