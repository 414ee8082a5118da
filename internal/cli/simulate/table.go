package simulate

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/sim"
)

// simulateHead names the columns of a simulation's table, simulateRow fills them.
func simulateHead() []string {
	return []string{"POLICY", "LENDER", "TARGET", "SLO MINUTES", "CALM A WEEK", "BURSTY A WEEK", "HARM", "ONLINE CORE-HOURS", "OF HPA 60 %",
		"OFFLINE CORE-HOURS", "OF ORACLE", "MEAN UTIL", "PEAK UTIL", "LATE", "LOST CORE-HOURS", "MOVES", "TERMS BROKEN", "SCALES", "RETURN TO BOUND"}
}

func simulateRow(r *sim.Result, all []sim.Result) []string {
	share := func(v float64, of *sim.Result, what func(*sim.Result) float64) string {
		if of == nil || what(of) == 0 {
			return cell.None
		}
		return percent(v / what(of))
	}
	return []string{r.Policy, r.Lender, target(r), cell.Number(r.SLOViolationMinutes), perWeek(r.Classes[sim.Calm]), perWeek(r.Classes[sim.Bursty]), cell.Number(r.HarmMinutes),
		whole(r.OnlineCoreHours), share(r.OnlineCoreHours, sim.Find(all, sim.HPA, sim.LendNone), func(x *sim.Result) float64 { return x.OnlineCoreHours }),
		whole(r.OfflineCoreHours), share(r.OfflineCoreHours, sim.Find(all, sim.Oracle, sim.LendOracle), func(x *sim.Result) float64 { return x.OfflineCoreHours }),
		percent(r.MeanUtilisation), percent(r.PeakUtilisation), cell.Number(r.RecallsLate), whole(r.WorkLostCoreHours), cell.Number(r.Moves), termsBroken(r), cell.Number(r.Scales), returnToBound(r)}
}

// termsBroken is nothing where no borrower is promised a term.
func termsBroken(r *sim.Result) string {
	if r.Lender != sim.LendSpringtide {
		return cell.None
	}
	return cell.Number(r.TermsBroken)
}

// returnToBound is how soon pods that wait got the room that came home: the median and the 99th percentile; nothing where none came home for them.
func returnToBound(r *sim.Result) string {
	if r.ReturnToBoundP50Seconds == nil || r.ReturnToBoundP99Seconds == nil {
		return cell.None
	}
	return fmt.Sprintf("%.0f s, p99 %.0f s", *r.ReturnToBoundP50Seconds, *r.ReturnToBoundP99Seconds)
}

// target is what a row was set to; an asterisk marks what the policy comes with.
func target(r *sim.Result) string {
	if r.Knob == "" {
		return cell.None
	}
	text := fmt.Sprintf("%s %s %%", r.Knob, strconv.FormatFloat(r.Target, 'f', -1, 64))
	if r.Default {
		text += " *"
	}
	return text
}

// shortHead and shortRow are what a terminal of 120 columns shows of it; policy and lender stand as --policies takes them.
func shortHead() []string {
	return []string{"POLICY", "TARGET", "SLO MINUTES", "HARM", "CORE-HOURS", "OF HPA", "OFFLINE", "UTIL", "LATE"}
}

func shortRow(full []string) []string {
	return []string{full[0] + "+" + full[1], full[2], full[3], full[6], full[7], full[8], full[9], full[11], full[13]}
}

func perWeek(c sim.Class) string {
	if c.ServiceWeeks == 0 {
		return cell.None
	}
	return strconv.FormatFloat(float64(c.SLOViolationMinutes)/c.ServiceWeeks, 'f', 1, 64)
}

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" }

func whole(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

// equalCost are the violations of each policy at the cost of HPA at its default target, read off the curves, and with a target for each service
// by hindsight; nil without it. A policy whose curve does not reach that cost has a note instead.
func equalCost(all []sim.Result) [][]string {
	at := sim.Find(all, sim.HPA, sim.LendNone)
	if at == nil {
		return nil
	}
	rows, notes := [][]string{{"AT HPA'S COST", "SLO MINUTES", "CALM", "BURSTY", "EACH TUNED", "NOTE"}}, false
	for _, p := range sim.Policies() {
		if !slices.ContainsFunc(all, func(r sim.Result) bool { return r.Policy == p }) {
			continue
		}
		row, why := []string{p}, ""
		for _, class := range []string{"", sim.Calm, sim.Bursty} {
			text := cell.None
			if minutes, ok := sim.At(sim.Curve(all, p, class), at.OnlineCoreHours); ok {
				text = whole(minutes)
			} else if class == "" {
				why, notes = note(sim.Curve(all, p, ""), at.OnlineCoreHours), true
			}
			row = append(row, text)
		}
		tuned := cell.None
		if minutes, ok := sim.Tuned(all, p, at.OnlineCoreHours); ok {
			tuned = whole(minutes)
		}
		rows = append(rows, append(row, tuned, why))
	}
	if len(rows) < 3 {
		return nil // HPA alone
	}
	if !notes {
		for i := range rows {
			rows[i] = rows[i][:len(rows[i])-1]
		}
	}
	return rows
}

// conclusions are the sentences below the tables of a seed.
func conclusions(all []sim.Result) (out []string) {
	for _, s := range []string{sentence(fleetVerdict(all)), hint(all)} {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// shownSeeds bounds the seeds that are printed; the JSON has all.
const shownSeeds = 20

// markSimulation writes the tables as Markdown, a heading for each seed where there are several.
func markSimulation(out io.Writer, r *simulateReport) error {
	seeds := r.seeds()
	for _, seed := range seeds[:min(len(seeds), shownSeeds)] {
		if len(seeds) > 1 {
			fmt.Fprintf(out, "## Seed %d\n\n", seed)
		}
		all := r.of(seed)
		rows := [][]string{simulateHead()}
		for i := range all {
			rows = append(rows, simulateRow(&all[i], all))
		}
		if err := markTable(out, rows); err != nil {
			return err
		}
		if equal := equalCost(all); equal != nil {
			if err := markTable(out, equal); err != nil {
				return err
			}
		}
		for _, s := range conclusions(all) {
			fmt.Fprintf(out, "%s\n\n", s)
		}
	}
	return nil
}

// markTable writes rows as a table of Markdown, the head in small letters.
func markTable(out io.Writer, rows [][]string) error {
	var b strings.Builder
	for i, row := range rows {
		line := "| " + strings.Join(row, " | ") + " |\n"
		if i == 0 {
			line = strings.NewReplacer("slo", "SLO", "hpa", "HPA").Replace(strings.ToLower(line)) + strings.Repeat("|---", len(row)) + "|\n"
		}
		b.WriteString(line)
	}
	b.WriteString("\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// printSimulation writes a table for each seed.
func printSimulation(out io.Writer, r *simulateReport) error {
	fmt.Fprintf(out, "%s: %s, %s, %s days\n", r.Scenario, cell.Count(r.Nodes, "machine"), cell.Count(r.Services, "service"), strconv.FormatFloat(r.Days, 'f', -1, 64))
	if r.Seeds > shownSeeds {
		fmt.Fprintf(out, "%d of %d seeds held every invariant; the numbers are in --out\n", r.held, r.Seeds)
		return nil
	}
	for _, seed := range r.seeds() {
		all := r.of(seed)
		fmt.Fprintf(out, "\nseed %d\n", seed)
		rows := [][]string{shortHead()}
		for i := range all {
			rows = append(rows, shortRow(simulateRow(&all[i], all)))
		}
		if err := (&screen.Table{Out: out}).Print(rows); err != nil {
			return err
		}
		if equal := equalCost(all); equal != nil {
			fmt.Fprintln(out)
			if err := (&screen.Table{Out: out}).Print(equal); err != nil {
				return err
			}
		}
		if list := conclusions(all); len(list) > 0 {
			fmt.Fprintf(out, "\n%s\n", strings.Join(list, "\n"))
		}
	}
	fmt.Fprintln(out, "\nCORE-HOURS are online's, OFFLINE is useful work. --html, --markdown and --out have classes, moves and lost work too.")
	return nil
}
