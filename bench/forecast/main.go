// Command forecast measures forecasts on rolling origins over a folder of traces, or over the hourly set of the M4 competition, next to the
// peers', and writes the tables of docs/benchmarks/forecast*.md. hack/bench-forecast.sh runs it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	pure "github.com/springtide/springtide/forecast/backtest"
)

// levels are the quantiles that losses and coverage are taken at.
var levels = []float64{0.5, 0.9, 0.95, 0.99}

type options struct {
	traces, m4, only, steps, out string
	m4Test, peers                bool
}

func main() {
	var o options
	flag.StringVar(&o.traces, "traces", "", "folder of traces: NAME.csv.gz with the columns ts,value, in any subfolder")
	flag.StringVar(&o.m4, "m4", "", "folder of Hourly-train.csv.gz and Hourly-test.csv.gz")
	flag.BoolVar(&o.m4Test, "m4-test", false, "score the test part of M4 instead of origins within its training part")
	flag.BoolVar(&o.peers, "peers", false, "measure the peers too")
	flag.StringVar(&o.only, "only", "", "measure these models alone, by name, separated by commas")
	flag.StringVar(&o.steps, "steps", "", "score these steps of the horizon alone, as in 1-12")
	flag.StringVar(&o.out, "out", "-", "Markdown file to write, - for standard output")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if flag.NArg() > 0 || o.traces == "" && o.m4 == "" {
		return fmt.Errorf("give --traces or --m4, and nothing else (found %q)", flag.Args())
	}
	var page strings.Builder
	if o.traces != "" {
		if err := benchTraces(&page, o); err != nil {
			return err
		}
	}
	if o.m4 != "" {
		if err := benchM4(&page, o); err != nil {
			return err
		}
	}
	if o.out == "-" {
		_, err := io.WriteString(os.Stdout, page.String())
		return err
	}
	return os.WriteFile(o.out, []byte(page.String()), 0o644)
}

func benchTraces(w io.Writer, o options) error {
	traces, err := readTraces(o.traces)
	if err != nil {
		return err
	}
	ms, err := models(o)
	if err != nil {
		return err
	}
	for _, p := range pure.Protocols() {
		sets := pure.Traces(p, traces)
		if err := keepSteps(sets, o.steps); err != nil {
			return err
		}
		title := "Traces at " + p.Name
		r, err := measure(title, sets, ms)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "## %s\n\n%d steps ahead from up to %d origins %d steps apart, each from up to %d steps of history.\n\n",
			title, p.Horizon, p.Origins, p.Gap, p.History)
		write(w, &r, true)
	}
	return nil
}

func benchM4(w io.Writer, o options) error {
	sets, title, err := readM4(o.m4, o.m4Test)
	if err != nil {
		return err
	}
	if err := keepSteps(sets, o.steps); err != nil {
		return err
	}
	ms, err := models(o)
	if err != nil {
		return err
	}
	ms = append(ms, naive2())
	r, err := measure(title, sets, ms)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "## %s\n\n", title)
	writeOWA(w, &r)
	write(w, &r, false)
	return nil
}
