package trial

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/whatif"
)

// Print writes the table, and the worst day of today's sizing as a plot.
func (t *Trial) Print(out io.Writer) error {
	const stamp = "2006-01-02 15:04Z"
	fmt.Fprintf(out, "%s from %s to %s, played minute by minute. A minute is bad when a ready replica has more than %s "+
		"(%s).\n"+
		"A pod is ready %s after it was made.\n\n", t.Service, t.From.Format(stamp), t.To.Format(stamp), t.Carries, t.Basis,
		t.StartUp)
	rows := [][]string{{"SIZED BY", "BAD MINUTES", "GOOD", "CORE-HOURS", "MOVES", "LEAST MARGIN"}}
	for _, c := range t.Cases {
		margin := "-"
		if !c.LeastMarginT.IsZero() {
			margin = fmt.Sprintf("%+.0f %% at %s", 100*c.LeastMargin, c.LeastMarginT.Format("Mon 15:04Z"))
		}
		rows = append(rows, []string{c.Name, fmt.Sprintf("%d of %d", c.BadMinutes, c.Minutes),
			fmt.Sprintf("%.3f %%", c.GoodPercent), fmt.Sprintf("%.0f", c.CoreHours), fmt.Sprint(c.Moves), margin})
	}
	if err := (&screen.Table{Out: out}).Print(rows); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n\n%s", t.Verdict(), t.plot())
	for _, n := range t.Notes {
		fmt.Fprintf(out, "note: %s\n", n)
	}
	return nil
}

// Verdict compares Springtide with today's sizing in a sentence.
func (t *Trial) Verdict() string {
	if len(t.Cases) < 2 {
		return ""
	}
	was, now := &t.Cases[0], &t.Cases[1]
	cost := "the same core-hours"
	if was.CoreHours > 0 {
		switch part := now.CoreHours/was.CoreHours - 1; {
		case part <= -0.005:
			cost = fmt.Sprintf("%.0f %% fewer core-hours", -100*part)
		case part >= 0.005:
			cost = fmt.Sprintf("%.0f %% more core-hours", 100*part)
		}
	}
	switch bad := now.BadMinutes - was.BadMinutes; {
	case bad < 0:
		return fmt.Sprintf("Springtide: %d fewer bad minutes, %s.", -bad, cost)
	case bad > 0:
		return fmt.Sprintf("Springtide: %d more bad minutes, %s.", bad, cost)
	}
	return fmt.Sprintf("Springtide: as many bad minutes, %s.", cost)
}

// The plot in the terminal: a day in columns of twenty minutes.
const (
	plotWide = 72
	plotHigh = 12
)

// plot draws the day with the smallest margin of today's sizing: replicas that the load needs, and those that are
// ready.
func (t *Trial) plot() string {
	begin := t.worstDay()
	need, was, now := t.columns(begin, -1), t.columns(begin, 0), t.columns(begin, 1)
	top := 0.0
	for i := range plotWide {
		for _, v := range []float64{need[i], was[i], now[i]} {
			if v > top { // never NaN
				top = v
			}
		}
	}
	if !(top > 0) {
		return ""
	}
	grid := make([][]rune, plotHigh)
	for y := range grid {
		grid[y] = []rune(strings.Repeat(" ", plotWide))
	}
	for _, line := range []struct {
		values []float64
		mark   rune
	}{{need, '.'}, {was, 'o'}, {now, '#'}} {
		for x, v := range line.values {
			if !math.IsNaN(v) {
				grid[plotHigh-1-int(v/top*(plotHigh-1)+0.5)][x] = line.mark
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Ready replicas on %s (UTC):  . needed   o today   # Springtide\n", begin.Format("Mon 2006-01-02"))
	for y, row := range grid {
		label := ""
		if y == 0 {
			label = fmt.Sprintf("%.0f", top)
		} else if y == plotHigh-1 {
			label = "0"
		}
		fmt.Fprintf(&b, "%6s |%s\n", label, strings.TrimRight(string(row), " "))
	}
	fmt.Fprintf(&b, "%6s +%s\n%8s", "", strings.Repeat("-", plotWide), "")
	for h := 0; h < 24; h += 4 {
		fmt.Fprintf(&b, "%-12s", fmt.Sprintf("%02d:00", h))
	}
	return strings.TrimRight(b.String(), " ") + "\n\n"
}

// worstDay is the whole day in which one of the cases has the smallest margin.
func (t *Trial) worstDay() time.Time {
	const day = 24 * time.Hour
	begin := t.From.UTC().Truncate(day)
	if begin.Before(t.From) {
		begin = begin.Add(day)
	}
	worst, least := begin, math.Inf(1)
	for _, p := range t.played {
		for _, s := range p.Steps {
			of := s.At.UTC().Truncate(day)
			margin := float64(s.Ready) * t.knowledge.Limit / s.Load
			if margin < least && !of.Before(begin) && !of.Add(day).After(t.To) {
				worst, least = of, margin
			}
		}
	}
	return worst
}

// columns are the largest numbers of a day by columns: the replicas that are needed for -1, else the ready ones of a
// case, of which the smallest counts. NaN is a column of which nothing is known.
func (t *Trial) columns(begin time.Time, of int) []float64 {
	out := make([]float64, plotWide)
	for i := range out {
		out[i] = math.NaN()
	}
	for _, s := range t.played[max(of, 0)].Steps {
		x := int(s.At.Sub(begin) / (24 * time.Hour / plotWide))
		if s.At.Before(begin) || x >= plotWide {
			continue
		}
		v := float64(s.Ready)
		if of < 0 {
			v = t.need(&s)
		}
		switch {
		case math.IsNaN(v):
		case math.IsNaN(out[x]):
			out[x] = v
		case of < 0:
			out[x] = max(out[x], v)
		default:
			out[x] = min(out[x], v)
		}
	}
	return out
}

// need is how many replicas the load of a minute needs.
func (t *Trial) need(s *whatif.Step) float64 {
	return math.Ceil(s.Load / t.knowledge.Limit)
}
