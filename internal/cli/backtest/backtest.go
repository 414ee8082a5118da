// Package backtest measures forecasts at rolling origins: the command, its table and its page.
package backtest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	pure "github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/peer"
	"github.com/springtide/springtide/internal/backtest"
	"github.com/springtide/springtide/internal/cli/files"
	"github.com/springtide/springtide/internal/cli/input"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
)

// backtestFlags are what `springtide backtest` is asked.
type backtestFlags struct {
	input                    input.Series
	horizon, stride, origins int
	levels                   []float64
	models                   []string
	peers                    bool
	out, html                string
}

// NewCommand makes `springtide backtest`.
func NewCommand() *cobra.Command {
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
		Args: input.ByFlags,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.input.Flags(cmd)
	f := cmd.Flags()
	f.IntVar(&o.horizon, "horizon", 0, "steps to forecast (required)")
	f.IntVar(&o.stride, "stride", 0, "steps between two origins; the horizon when 0")
	f.IntVar(&o.origins, "origins", 4, "origins, counted from the newest")
	input.QuantilesVar(f, &o.levels, "quantiles between 0 and 1 that losses and coverage are taken at")
	f.StringSliceVar(&o.models, "models", nil, "models to measure, by the names above; "+backtest.Ours+" when empty")
	f.BoolVar(&o.peers, "peers", false, "measure all peers too")
	f.StringVar(&o.out, "out", "", "JSON file to write, - for standard output instead of the table")
	f.StringVar(&o.html, "html", "", "HTML page with the table and a chart of each series to write")
	return cmd
}

// Bounds of --origins: more would take long and say no more.
const mostOrigins = 1000

func (o *backtestFlags) check() error {
	if err := input.CheckForecast(o.horizon, o.levels); err != nil {
		return err
	}
	if o.stride == 0 {
		o.stride = o.horizon
	}
	if o.stride < 0 || o.stride > input.MostSteps {
		return fmt.Errorf("--stride %d: give the number of steps between two origins, from 1 to %d", o.stride, input.MostSteps)
	}
	if o.origins < 1 || o.origins > mostOrigins {
		return fmt.Errorf("--origins %d: give a number from 1 to %d", o.origins, mostOrigins)
	}
	slices.Sort(o.levels)
	return nil
}

func (o *backtestFlags) run(cmd *cobra.Command) error {
	if err := o.check(); err != nil {
		return usage.Error{Err: err}
	}
	models, err := backtest.Pick(o.models, o.peers)
	if err != nil {
		return usage.Error{Err: fmt.Errorf("--models: %w", err)}
	}
	if err := errors.Join(files.Check("--out", o.out), files.Check("--html", o.html)); err != nil {
		return err
	}
	options, err := o.input.Options(cmd)
	if err != nil {
		return err
	}
	all, err := o.input.Read(cmd)
	if err != nil {
		return err
	}
	sets, skipped := pure.Rolling{Horizon: o.horizon, Stride: o.stride, Origins: o.origins, Options: options}.Sets(all)
	for _, s := range skipped {
		fmt.Fprintln(cmd.ErrOrStderr(), s)
	}
	if len(sets) == 0 {
		return usage.Error{Err: errors.New("no series is long enough: give a shorter --horizon, or more history")}
	}
	far := screen.NewProgress(cmd.ErrOrStderr(), "forecasts")
	result, kept, err := backtest.Run(cmd.Context(), sets, models, backtest.Options{Levels: o.levels, Keep: o.html != "", Progress: far.At})
	far.End()
	if err != nil {
		return err
	}
	return o.write(cmd, &backtestReport{Horizon: o.horizon, Stride: o.stride, Origins: o.origins, Skipped: skipped, Result: result}, kept)
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
	return files.WriteReport(cmd.OutOrStdout(), o.html, o.out, r,
		func(w io.Writer) error { return writeBacktestPage(w, r, kept) }, func(w io.Writer) error { return printBacktest(w, r) })
}
