// Package simulate plays scenarios: the command, its tables and its page.
package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/files"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/sim"
	"github.com/springtide/springtide/sim/scenario"
)

// simulateFlags are what `springtide simulate` is asked.
type simulateFlags struct {
	scenario, seeds, out, html, markdown string
	tick                                 time.Duration
	policies                             []string
}

// NewCommand makes `springtide simulate`.
func NewCommand() *cobra.Command {
	var o simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Play a fleet on virtual time, under Springtide, other autoscalers and perfect foresight",
		Long: "Plays the services, offline jobs and machines of a scenario file in steps of 15 seconds, and counts what each policy comes to:\n" +
			"service-minutes that broke the SLO, core-hours that online held, useful core-hours of offline work. Springtide is the real loop:\n" +
			"portraits, forecasts, sizing, quota, lending and recall are the controller's code.\n\n" +
			"Without --policies Springtide is played alone, as it comes. With them each policy is played without lending at several targets,\n" +
			"its default one first, and with the lenders that it is compared with; what others reach is read off the curves at equal cost.\n" +
			"With faults in the file invariants are checked at every step; every row that breaks one is listed, and the exit code is 1.\n" +
			"docs/scenario.md says what a scenario holds, docs/simulator.md how each policy is played and what the numbers mean. The policies:\n\n  " +
			strings.Join(sim.Policies(), ", ") + ", or all. A name such as hpa+none picks one of the lenders.",
		Example: "  springtide simulate --scenario sim/scenario/examples/week.yaml\n" +
			"  springtide simulate --scenario fleet.yaml --policies all --out result.json --html result.html\n" +
			"  springtide simulate --scenario fleet.yaml --policies springtide,hpa --seeds 1..5\n" +
			"  springtide simulate --scenario fleet.yaml --policies hpa+none,springtide+springtide,oracle\n" +
			"  springtide simulate --scenario sim/scenario/examples/faults.yaml --seeds 1..100",
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.scenario, "scenario", "", "scenario file to play (required)")
	f.StringSliceVar(&o.policies, "policies", nil, "policies to play with their sweeps, by the names above")
	f.DurationVar(&o.tick, "tick", 0, "time between two plans instead of the scenario's, 15s to 5m")
	f.StringVar(&o.seeds, "seeds", "", "seeds to play instead of the scenario's, one or a range such as 1..5")
	f.StringVar(&o.out, "out", "", "JSON file to write, - for standard output instead of the table")
	f.StringVar(&o.html, "html", "", "HTML page with the table and the plots to write")
	f.StringVar(&o.markdown, "markdown", "", "Markdown file with the tables to write")
	_ = cmd.RegisterFlagCompletionFunc("policies", cobra.FixedCompletions(append(sim.Policies(), sim.All), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// mostSeeds bounds --seeds: more would be a slip.
const mostSeeds = 1_000_000

// seedRange reads A or A..B.
func seedRange(text string) ([]uint64, error) {
	first, last, ranged := strings.Cut(text, "..")
	a, err := strconv.ParseUint(first, 10, 63)
	b := a
	if ranged && err == nil {
		b, err = strconv.ParseUint(last, 10, 63)
	}
	if err != nil || b < a || b-a >= mostSeeds {
		return nil, fmt.Errorf("--seeds %q: write one seed, or a range such as 1..5 of at most %d", text, mostSeeds)
	}
	var out []uint64
	for s := a; s <= b; s++ {
		out = append(out, s)
	}
	return out, nil
}

// garbage is how much of it a simulation lets gather, in percent of what is in use, where GOGC says nothing else: it makes much and keeps
// little, and at the usual 100 a sixth of its time goes into collecting.
const garbage = 400

func (o *simulateFlags) run(cmd *cobra.Command) error {
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(garbage))
	}
	if o.scenario == "" {
		return usage.Error{Err: errors.New("--scenario: name the file to play")}
	}
	s, err := readScenario(cmd, o.scenario)
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	if err != nil {
		return usage.Error{Err: err}
	}
	if o.tick > 0 {
		if o.tick < 15*time.Second || o.tick > 5*time.Minute {
			return fmt.Errorf("--tick %s is out of bounds: write 15s to 5m", o.tick)
		}
		s.Tick = config.Duration(o.tick)
	}
	seeds := []uint64{s.Seed}
	if o.seeds != "" {
		if seeds, err = seedRange(o.seeds); err != nil {
			return usage.Error{Err: err}
		}
	}
	return o.play(cmd, s, seeds)
}

// readScenario reads a scenario and its traces, which may be large, and ends when the command is to end.
func readScenario(cmd *cobra.Command, path string) (*scenario.Scenario, error) {
	type answer struct {
		s   *scenario.Scenario
		err error
	}
	read := make(chan answer, 1)
	go func() {
		s, err := scenario.Load(path)
		read <- answer{s, err}
	}()
	far := screen.NewProgress(cmd.ErrOrStderr(), "scenarios read")
	defer far.End()
	far.At(0, 1)
	select {
	case a := <-read:
		return a.s, a.err
	case <-cmd.Context().Done():
		return nil, cmd.Context().Err()
	}
}

// play plays the rows of all seeds and reports them.
func (o *simulateFlags) play(cmd *cobra.Command, s *scenario.Scenario, seeds []uint64) error {
	if err := sim.Known(o.policies); err != nil {
		return usage.Error{Err: fmt.Errorf("--policies: %w", err)}
	}
	// A run takes hours: what cannot be written is refused before it.
	if err := errors.Join(files.Check("--out", o.out), files.Check("--html", o.html), files.Check("--markdown", o.markdown)); err != nil {
		return err
	}
	things := "rows"
	if len(seeds) > 1 {
		things = "seeds"
	}
	far := screen.NewProgress(cmd.ErrOrStderr(), things)
	all, err := sim.SimulateSeeds(cmd.Context(), s, seeds, o.rows, far.At)
	far.End()
	switch {
	case err != nil && all == nil:
		return usage.Error{Err: fmt.Errorf("%s: %w", o.scenario, err)}
	case err != nil:
		return err
	}
	first := all[0].Built
	for _, n := range first.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), n)
	}
	report := &simulateReport{Scenario: s.Name, Days: s.Days, Nodes: first.Online + first.Fleet.OfflineNodes, Services: len(first.Services), Notes: first.Notes, Seeds: len(seeds), Policies: []simulated{}}
	for i := range all {
		if len(all[i].Broken) == 0 {
			report.held++
		}
		for _, r := range all[i].Results {
			report.Policies = append(report.Policies, simulated{Seed: seeds[i], Result: r})
		}
	}
	return errors.Join(o.write(cmd, report), o.complain(cmd, all, seeds))
}

// shrunk bounds the rows that are shrunk: each costs several runs, and the first ones tell most.
const shrunk = 3

// complain reports every row whose invariants broke: what, how to play it again, and the fewest faults that still do
// it.
func (o *simulateFlags) complain(cmd *cobra.Command, all []sim.Seeded, seeds []uint64) error {
	broken, rows := 0, 0
	for i := range all {
		if len(all[i].Broken) > 0 {
			broken++
		}
		for _, b := range all[i].Broken {
			fmt.Fprintf(cmd.ErrOrStderr(), "%v\n  play it again: %s\n", b.Why, o.again(b.Why.Row, seeds[i]))
			if rows++; rows > shrunk || b.Why.Faults == "" {
				continue // without faults there are no fewer
			}
			less, err := sim.Shrink(cmd.Context(), all[i].Built, b.Row)
			if err != nil {
				return err
			}
			if less != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "  less is enough: %s\n", cmp.Or(less.Faults, "no fault at all"))
			}
		}
	}
	if broken > 0 {
		return fmt.Errorf("%s of %d broke an invariant", cell.Count(broken, "seed"), len(seeds))
	}
	return nil
}

// again is the command that plays a row of one seed once more.
func (o *simulateFlags) again(row string, seed uint64) string {
	words := []string{"springtide", "simulate", "--scenario", o.scenario, "--policies", row, "--seeds", strconv.FormatUint(seed, 10)}
	for i, w := range words {
		if !plainWord.MatchString(w) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// plainWord is what a shell takes as it stands.
var plainWord = regexp.MustCompile(`^[\w./,:=+@%-]+$`)

// rows are Springtide as it comes, or the sweeps that were asked for.
func (o *simulateFlags) rows(b *scenario.Built) ([]sim.Row, error) {
	b.Charts = o.html != "" && !strings.Contains(o.seeds, "..") // many seeds would take too much memory, and too many charts
	if len(o.policies) == 0 {
		rows, err := sim.Rows(b, []string{sim.Springtide})
		return rows[:1], err
	}
	names := o.policies
	if slices.Contains(names, sim.All) {
		names = sim.Policies()
	}
	return sim.Rows(b, names)
}

// simulateReport is the JSON of a simulation.
type simulateReport struct {
	Scenario string      `json:"scenario"`
	Days     float64     `json:"days"`
	Nodes    int         `json:"nodes"`
	Services int         `json:"services"`
	Notes    []string    `json:"notes,omitempty"`
	Seeds    int         `json:"seeds"`
	Policies []simulated `json:"policies"`

	// held are the seeds of which no row broke an invariant; those of which some did have the results of the others.
	held int
}

// simulated is one row at one seed.
type simulated struct {
	Seed uint64 `json:"seed"`
	sim.Result
}

// of are the rows of one seed.
func (r *simulateReport) of(seed uint64) []sim.Result {
	var out []sim.Result
	for i := range r.Policies {
		if r.Policies[i].Seed == seed {
			out = append(out, r.Policies[i].Result)
		}
	}
	return out
}

// seeds are those of which there are results, in order.
func (r *simulateReport) seeds() []uint64 {
	var out []uint64
	for i := range r.Policies {
		if s := r.Policies[i].Seed; !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func (o *simulateFlags) write(cmd *cobra.Command, r *simulateReport) error {
	var marked error
	if o.markdown != "" {
		marked = files.Write("--markdown", o.markdown, cmd.OutOrStdout(), func(w io.Writer) error { return markSimulation(w, r) })
	}
	return errors.Join(marked, files.WriteReport(cmd.OutOrStdout(), o.html, o.out, r,
		func(w io.Writer) error { return writeSimulatePage(w, r) }, func(w io.Writer) error { return printSimulation(w, r) }))
}
