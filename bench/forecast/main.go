// Command forecast measures forecasts on rolling origins over a folder of traces, or over the hourly set of the M4 competition, beside the
// peers', and prints the tables of docs/benchmarks/forecast.md. hack/bench-forecast.sh runs it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/springtide/springtide/forecast/backtest"
)

// levels are the quantiles that losses and coverage are taken at.
var levels = []float64{0.5, 0.9, 0.95, 0.99}

func main() {
	var o options
	flag.StringVar(&o.traces, "traces", "", "folder of traces, NAME.csv.gz with the columns ts,value in any subfolder")
	flag.StringVar(&o.m4, "m4", "", "folder of Hourly-train.csv.gz and Hourly-test.csv.gz")
	flag.BoolVar(&o.m4Test, "m4-test", false, "score the test part of M4 instead of origins within its training part")
	flag.BoolVar(&o.peers, "peers", false, "measure the peers too")
	flag.StringVar(&o.only, "only", "", "measure these models alone, by name, separated by commas")
	flag.BoolVar(&o.bySeries, "by-series", false, "print the measures of each series too")
	out := flag.String("out", "-", "Markdown file to write, - for standard output")
	flag.Parse()
	if err := run(o, *out); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

type options struct {
	traces, m4, only        string
	m4Test, peers, bySeries bool
}

func run(o options, path string) error {
	ms, err := models(o)
	if err != nil {
		return err
	}
	var page strings.Builder
	if o.traces != "" {
		traces, err := readTraces(o.traces)
		if err != nil {
			return err
		}
		for _, p := range backtest.Protocols() {
			sets := backtest.Traces(p, traces)
			write(&page, "Traces, "+p.Name, measure(sets, ms), o.bySeries)
		}
	}
	if o.m4 != "" {
		sets, title, err := readM4(o.m4, o.m4Test)
		if err != nil {
			return err
		}
		write(&page, title, measure(sets, ms), o.bySeries)
	}
	if path == "-" {
		_, err := io.WriteString(os.Stdout, page.String())
		return err
	}
	return os.WriteFile(path, []byte(page.String()), 0o644)
}
