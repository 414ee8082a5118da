package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	pure "github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/peer"
	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/internal/backtest"
)

// backtestFlags are what `springtide backtest` is asked.
type backtestFlags struct {
	input                    seriesInput
	horizon, stride, origins int
	levels                   []float64
	models                   []string
	peers                    bool
	out, html                string
}

func newBacktestCommand() *cobra.Command {
	var o backtestFlags
	var about strings.Builder
	for _, m := range backtest.Models() {
		if !strings.HasSuffix(m.Name, peer.Residuals) {
			fmt.Fprintf(&about, "  %s: %s\n", m.Name, m.About)
		}
	}
	cmd := &cobra.Command{
		Use:   "backtest",
		Short: "Measure forecasts on series of a CSV file or of Prometheus, at rolling origins, next to those of other autoscalers",
		Long: "Forecasts every series at some moments of its past, each time from what came before, and measures what was said by what came\n" +
			"after: one horizon long, the newest origin a horizon before the end, the others --stride steps before each other. Series\n" +
			"that end together share their origins. The input is that of springtide forecast.\n\n" +
			"sMAPE (0 to 200) and MASE are of the median; MASE and MSIS (95 % interval) are scaled by the naive error of the season within\n" +
			"the history, and MASE, sMAPE and MSIS are means over the forecasts. WQL is twice the quantile losses over the load, the mean\n" +
			"over the quantiles: pooled over all steps, with every series scaled to a mean of one, and as the mean of the forecasts'.\n" +
			"Coverage is the share of values at or below a quantile's path. BETTER ON says on how many series the first model has the\n" +
			"smaller WQL.\n\n" +
			"Models that say a single number are there twice: as shipped, with it at every quantile, and under their name and\n" +
			peer.Residuals + ", with the quantiles of their own errors on origins before the one in question. The models:\n\n" + strings.TrimSuffix(about.String(), "\n"),
		Example: "  springtide backtest --in load.csv --horizon 288 --stride 288 --origins 7 --peers\n" +
			"  springtide backtest --in load.csv --horizon 48 --models springtide,crane-dsp --out result.json --html result.html\n" +
			"  springtide backtest --prometheus http://prometheus:9090 --query 'sum by (service) (rate(requests_total[5m]))' --horizon 288",
		Args: inputByFlags,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.input.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&o.horizon, "horizon", 0, "steps to forecast (required)")
	f.IntVar(&o.stride, "stride", 0, "steps between two origins; the horizon when 0")
	f.IntVar(&o.origins, "origins", 4, "origins, counted from the newest")
	quantilesVar(f, &o.levels, "quantiles between 0 and 1 that losses and coverage are taken at")
	f.StringSliceVar(&o.models, "models", nil, "models to measure, by the names above; "+backtest.Ours+" when empty")
	f.BoolVar(&o.peers, "peers", false, "measure all peers too")
	f.StringVar(&o.out, "out", "", "JSON file to write, - for standard output instead of the table")
	f.StringVar(&o.html, "html", "", "HTML page with the table and a chart of each series to write")
	return cmd
}

// Bounds of --origins: more would take long and say no more.
const mostOrigins = 1000

func (o *backtestFlags) check() error {
	if err := checkForecastFlags(o.horizon, o.levels); err != nil {
		return err
	}
	if o.stride == 0 {
		o.stride = o.horizon
	}
	if o.stride < 0 || o.stride > mostSteps {
		return fmt.Errorf("--stride %d: give the number of steps between two origins, from 1 to %d", o.stride, mostSteps)
	}
	if o.origins < 1 || o.origins > mostOrigins {
		return fmt.Errorf("--origins %d: give a number from 1 to %d", o.origins, mostOrigins)
	}
	slices.Sort(o.levels)
	return nil
}

func (o *backtestFlags) run(cmd *cobra.Command) error {
	if err := o.check(); err != nil {
		return usageError{err}
	}
	models, err := backtest.Pick(o.models, o.peers)
	if err != nil {
		return usageError{fmt.Errorf("--models: %w", err)}
	}
	if err := errors.Join(checkOutput("--out", o.out), checkOutput("--html", o.html)); err != nil {
		return err
	}
	options, err := o.input.options(cmd)
	if err != nil {
		return err
	}
	all, err := o.input.read(cmd)
	if err != nil {
		return err
	}
	sets, skipped := pure.Rolling{Horizon: o.horizon, Stride: o.stride, Origins: o.origins, Options: options}.Sets(all)
	for _, s := range skipped {
		fmt.Fprintln(cmd.ErrOrStderr(), s)
	}
	if len(sets) == 0 {
		return usageError{errors.New("no series is long enough: give a shorter --horizon, or more history")}
	}
	far := newProgress(cmd.ErrOrStderr(), "forecasts")
	result, kept, err := backtest.Run(cmd.Context(), sets, models, backtest.Options{Levels: o.levels, Keep: o.html != "", Progress: far.at})
	far.end()
	if err != nil {
		return err
	}
	return o.write(cmd, &backtestReport{Horizon: o.horizon, Stride: o.stride, Origins: o.origins, Skipped: skipped, Result: result}, kept)
}

// read holds all series: those of an origin are forecast together.
func (o *seriesInput) read(cmd *cobra.Command) ([]plain.History, error) {
	source, err := o.open(cmd)
	if err != nil {
		return nil, err
	}
	var out []plain.History
	for h, err := range source.each {
		if err != nil {
			return nil, errors.Join(err, source.close())
		}
		out = append(out, h)
	}
	return out, source.close()
}

// backtestReport is the JSON of a backtest.
type backtestReport struct {
	Horizon int      `json:"horizonSteps"`
	Stride  int      `json:"strideSteps"`
	Origins int      `json:"origins"`
	Skipped []string `json:"skipped,omitempty"`
	pure.Result
}

func (o *backtestFlags) write(cmd *cobra.Command, r *backtestReport, kept []backtest.Kept) error {
	return writeReport(cmd.OutOrStdout(), o.html, o.out, r,
		func(w io.Writer) error { return writeBacktestPage(w, r, kept) }, func(w io.Writer) error { return printBacktest(w, r) })
}
