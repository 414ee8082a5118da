// Command festive measures what holidays are worth to forecasts: each day of the traces that are long enough is forecast from the midnight
// before it, with its calendar and without. It prints docs/benchmarks/festive.md.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/springtide/springtide/bench/trace"
	"github.com/springtide/springtide/forecast/calendar"
	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/forecast/score"
	"github.com/springtide/springtide/internal/csvseries"
	"github.com/springtide/springtide/series"
)

//go:embed victoria.csv
var victoria []byte

const head = `# Holidays

Written by ` + "`make bench-festive`" + ` from the shipped traces that are long enough to show holidays: hourly means, in the local time of the place.

Each day is forecast from the midnight before it, 24 hours ahead, by ` + "`springtide forecast`" + `'s methods from all hours before, once with
` + "`--holidays`" + ` and once without. *Holidays* are the days of the list (feasts that are no days off left out), *beside* the days next to one, and
*ordinary* every fifth of the others. **WQL** is pooled over the steps, the mean of the quantiles .5, .9, .95 and .99 (less is better); **MASE** is
of the median; **cover** is the share of values at or below the path of .95. [What is learned](../calendar.md).

| trace | calendar | days | n | WQL without | with | MASE without | with | cover .95 without | with |
|---|---|---|---|---|---|---|---|---|---|
`

const tail = `
- i94 sees its second and third year, the pedestrians their second (and of 2016 alone), from the day named in ` + "`bench/festive/main.go`" + ` on.
- ms-ecommerce-api is eight months long: no holiday comes twice. It is a service that rose threefold at Christmas and by half at New Year, and
  took no notice of Memorial Day and Independence Day. A kind speaks for a new name only once three of its names agree, so that those two are
  forecast as ordinary days. What is still worse than without a calendar lies in January, right after Christmas was taken out of the history
  that is forecast from. An operator who knows that leaves the region out and names the days that matter.
- The traces were looked at while the methods were made (the share by which a mean counts in a match, the two quiet names that every kind is
  taken to have, when names agree, and which American holidays are minor were settled with them in sight), so the figures flatter. The list of Victoria's public holidays is the state government's.
`

// levels are the quantiles that losses are taken at.
var levels = []float64{0.5, 0.9, 0.95, 0.99}

// one is a trace with a calendar, measured from a day on.
type one struct {
	trace, file, calendar string
	from                  time.Time
	days                  func(s series.Series, folder string) ([]plain.Holiday, error)
}

func region(code string) func(series.Series, string) ([]plain.Holiday, error) {
	return func(s series.Series, _ string) ([]plain.Holiday, error) {
		return calendar.Days(code, s.Start, s.End(), time.UTC), nil
	}
}

func listed(s series.Series, folder string) ([]plain.Holiday, error) {
	rows, err := os.ReadFile(filepath.Join(folder, "tides", "metro-i94-holidays.csv"))
	if err != nil {
		return nil, err
	}
	return csvseries.Holidays("metro-i94-holidays.csv", rows)
}

func victorian(series.Series, string) ([]plain.Holiday, error) {
	return csvseries.Holidays("victoria.csv", victoria)
}

func date(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }

var all = []one{
	{"i94", "tides/metro-i94-traffic.csv.gz", "US", date(2016, 7, 1), region("US")},
	{"i94", "tides/metro-i94-traffic.csv.gz", "its list", date(2016, 7, 1), listed},
	{"southern-cross", "tides/pedestrian-southern-cross.csv.gz", "Victoria", date(2016, 1, 1), victorian},
	{"bourke-st-mall", "tides/pedestrian-bourke-st-mall.csv.gz", "Victoria", date(2016, 1, 1), victorian},
	{"ms-ecommerce-api", "cloud/ms-ecommerce-api-01.csv.gz", "US", date(2018, 1, 1), region("US")},
}

// kinds of days that are distinguished in the table.
const (
	holiday = iota
	beside
	ordinary
)

var kindNames = [...]string{"holidays", "beside", "ordinary"}

func main() {
	folder := flag.String("traces", "lab/traces/data", "folder of the traces")
	flag.Parse()
	fmt.Print(head)
	for _, o := range all {
		if err := o.run(*folder); err != nil {
			fmt.Fprintln(os.Stderr, "bench/festive:", err)
			os.Exit(1)
		}
	}
	fmt.Print(tail)
}

func (o *one) run(folder string) error {
	s, err := trace.Read(filepath.Join(folder, o.file))
	if err != nil {
		return err
	}
	s = s.Align(time.Hour, series.Mean)
	days, err := o.days(s, folder)
	if err != nil {
		return err
	}
	marked := map[time.Time]bool{}
	for _, d := range days {
		marked[d.From] = marked[d.From] || d.Kind != calendar.Feast
	}
	type origin struct {
		at   time.Time
		kind int
	}
	var origins []origin
	n := 0
	for at := o.from; !at.AddDate(0, 0, 1).After(s.End()); at = at.AddDate(0, 0, 1) {
		kind := ordinary
		switch {
		case marked[at]:
			kind = holiday
		case marked[at.AddDate(0, 0, -1)] || marked[at.AddDate(0, 0, 1)]:
			kind = beside
		default:
			if n++; n%5 != 0 {
				continue
			}
		}
		origins = append(origins, origin{at, kind})
	}
	forecasts := make([][2]score.Forecast, len(origins))
	var wait sync.WaitGroup
	for w := range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := w; i < len(origins); i += runtime.GOMAXPROCS(0) {
				forecasts[i] = forecastDay(s, days, origins[i].at)
			}
		})
	}
	wait.Wait()
	var tallies [3][2]*score.Tally
	for k := range tallies {
		tallies[k] = [2]*score.Tally{score.NewTally(levels), score.NewTally(levels)}
	}
	for i, x := range origins {
		for v := range 2 {
			tallies[x.kind][v].Add(forecasts[i][v])
		}
	}
	for k, t := range tallies {
		a, b := t[0].Report(), t[1].Report()
		fmt.Printf("| %s | %s | %s | %d | %.4f | %.4f | %.3f | %.3f | %.3f | %.3f |\n", o.trace, o.calendar, kindNames[k], a.Forecasts,
			a.WQL, b.WQL, a.MASE, b.MASE, a.Levels[2].Coverage, b.Levels[2].Coverage)
	}
	return nil
}

// forecastDay forecasts the day after a midnight without holidays and with them.
func forecastDay(s series.Series, days []plain.Holiday, at time.Time) (out [2]score.Forecast) {
	k := s.Index(at)
	past := series.Series{Start: s.Start, Step: s.Step, Values: s.Values[:k:k]}
	in := plain.Input{Histories: []plain.History{{ID: "trace", Series: past}}, Horizon: 24, Quantiles: score.Quantiles(levels)}
	for v := range out {
		if v == 1 {
			in.Options.Holidays = days
		}
		out[v] = score.Forecast{History: past.Values, Period: 24, Actual: s.Values[k : k+24], Quantiles: in.Quantiles, Paths: plain.Ours(in)[0].Paths}
	}
	return out
}
