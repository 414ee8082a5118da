package forecast

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/serve/readapi"
)

func newForecastServiceCommand(o *cluster.Options) *cobra.Command {
	var hours int
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "service NAME",
		Short: "Print the controller's own forecast of a service",
		Long: "Print the forecast that the controller sizes a service by: its quantiles from now on, in the unit of the service's signal. The controller\n" +
			"answers with what it made last, for those who may read the ElasticService.",
		Example: "  springtide forecast service shop/cart --hours 12\n  springtide forecast service cart -n shop -o json",
		Args:    usage.Exactly("NAME"),
		RunE: o.About(func(cmd *cobra.Command, c *cluster.Clients, name fleet.Name) error {
			m, done, err := o.Remember(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer done()
			tides, err := m.TidesOf(cmd.Context(), fleet.ServiceID(name.String()), 1)
			if err != nil {
				return err
			}
			if len(tides) == 0 {
				return usage.Found("no forecast of ElasticService %s yet: springtide explain service %s says what it waits for", name, name)
			}
			f := readapi.Render(&tides[0])
			if o.Output != "table" {
				return screen.Encode(cmd.OutOrStdout(), o.Output, f)
			}
			t := &screen.Table{Out: cmd.OutOrStdout()}
			fmt.Fprintf(cmd.OutOrStdout(), "Forecast of %s (%s) made %s by model %s, %s\n", f.Service, f.Signal, cell.Stamp(&metav1.Time{Time: f.Made}), f.Model, trustText(f))
			return t.Print(forecastRows(f, c.Now(), hours, every))
		}),
	}
	o.Cluster(cmd)
	o.Namespaced(cmd, "namespace of a name that is given without one")
	o.History(cmd)
	o.Completes(cmd, cluster.Services)
	o.Formats(cmd, "table", "json", "yaml")
	cmd.Flags().IntVar(&hours, "hours", 24, "hours to print")
	cmd.Flags().DurationVar(&every, "every", time.Hour, "time between two rows")
	usage.Before(cmd, func(*cobra.Command, []string) error {
		if hours < 1 || hours > 24*14 || every < time.Minute {
			return usage.Error{Err: fmt.Errorf("--hours %d --every %s: write 1 to 336 hours, and a minute or more", hours, every)}
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
		row := []string{cell.Stamp(&metav1.Time{Time: at})}
		known := false
		for _, path := range f.Paths {
			if i >= len(path) || i < 0 || path[i] == nil {
				row = append(row, cell.None)
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
