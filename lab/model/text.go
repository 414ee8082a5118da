package model

import (
	"fmt"
	"math"
	"strings"
)

// Sparkline draws values as a line of blocks of the given width on a scale from 0 to top. Several values that share a column are drawn by
// the largest, so that no peak is averaged away. NaN is a space.
func Sparkline(values []float64, width int, top float64) string {
	const blocks = "▁▂▃▄▅▆▇█"
	ramp := []rune(blocks)
	width = min(width, len(values))
	var b strings.Builder
	for c := range width {
		v := math.NaN()
		for _, x := range values[c*len(values)/width : (c+1)*len(values)/width] {
			if !(x <= v) && !math.IsNaN(x) {
				v = x
			}
		}
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case top <= 0:
			b.WriteRune(ramp[0])
		default:
			b.WriteRune(ramp[max(0, min(len(ramp)-1, int(v/top*float64(len(ramp)))))])
		}
	}
	return b.String()
}

// Text renders the report for a terminal of the given width.
func (r *Report) Text(width int) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-20s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "%.4g virtual hours, %d services on %d machines (a virtual day took %.0f s)\n\n", r.VirtualHours, r.Services, r.Nodes, r.WallSecondsPerVirtualDay)
	r.plot(&b, max(24, width-40))
	b.WriteByte('\n')
	line("SLO violations", "%d service-minutes (static %d), %d of them while a replica waited for lent room", r.SLOViolationMinutes, r.SLOViolationMinutesStatic, r.HarmMinutes)
	for _, g := range r.Groups {
		if g.Services > 0 {
			line("  "+g.Name, "%d in %d services (static %d)", g.SLOViolationMinutes, g.Services, g.SLOViolationMinutesStatic)
		}
	}
	line("mean utilisation", "%.1f %% (static %.1f %%)", 100*r.MeanUtilisation, 100*r.MeanUtilisationStatic)
	line("online core-hours", "%s (static %s, %s)", count(r.OnlineCoreHours), count(r.OnlineCoreHoursStatic), change(r.OnlineCoreHours, r.OnlineCoreHoursStatic))
	line("offline core-hours", "%s of %s wanted (static %s), %s lost", count(r.OfflineCoreHours), count(r.OfflineDemandCoreHours), count(r.OfflineCoreHoursStatic), count(r.OfflineCoreHoursLost))
	line("lent", "%s core-hours in %d machines and %d sockets", count(r.CoreHoursLent), r.Loans.Node, r.Loans.Socket)
	line("recalls", "%d, %d late, p50 %s, p99 %s", r.Recalls.Count, r.Recalls.Late, optional(r.Recalls.P50Seconds, "%.0f s"), optional(r.Recalls.P99Seconds, "%.0f s"))
	for _, l := range r.Recalls.LateLoans[:min(5, len(r.Recalls.LateLoans))] {
		line("  late", "%s", l)
	}
	if r.Demands.Count == 0 {
		line("demand to notice", "none: no pod waited for lent room")
	} else {
		line("demand to notice", "%d, p50 %s, p99 %s; by the wall p50 %s, p99 %s", r.Demands.Count, optional(r.Demands.P50Seconds, "%.0f s"),
			optional(r.Demands.P99Seconds, "%.0f s"), optional(r.Demands.P50WallSeconds, "%.2f s"), optional(r.Demands.P99WallSeconds, "%.2f s"))
	}
	if r.Returns.Count == 0 {
		line("return to bound pod", "none: no pod waited for a machine that came home")
	} else {
		line("return to bound pod", "%d with pods that wait, %d of them not taken, p50 %s, p99 %s; by the wall p50 %s, p99 %s", r.Returns.Count, r.Returns.Unbound,
			optional(r.Returns.P50Seconds, "%.0f s"), optional(r.Returns.P99Seconds, "%.0f s"), optional(r.Returns.P50WallSeconds, "%.2f s"), optional(r.Returns.P99WallSeconds, "%.2f s"))
	}
	line("forecast", "weighted quantile loss %s, the 0.9 quantile covered %s (%d forecasts)", optional(r.Forecast.WQL, "%.3f"), optional(r.Forecast.Coverage90, "%.3f"), r.Forecast.Count)
	if j := r.Judge; j != nil {
		line("judge", "%s", j.Line())
		for _, f := range j.Findings[:min(10, len(j.Findings))] {
			line("  "+f.Rule, "%s", f)
		}
	}
	pinned := map[string]bool{}
	for _, p := range r.Pinned {
		pinned[p.Node] = true
	}
	line("pinned nodes", "%d of %d at some time, for %d reasons", len(pinned), r.Nodes, len(r.Pinned))
	for _, p := range r.Pinned[:min(5, len(r.Pinned))] {
		line("  "+p.Node, "%.0f min by %s", p.Minutes, p.By)
	}
	return b.String()
}

// plot draws demand, ready and lent cores on one scale.
func (r *Report) plot(b *strings.Builder, width int) {
	top := 0.0
	lines := make([][]float64, 3)
	for _, m := range r.Timeline {
		for i, v := range []float64{m.Demand, m.Ready, m.Lent} {
			lines[i] = append(lines[i], v)
			top = max(top, v)
		}
	}
	for i, name := range []string{"demand", "ready", "lent"} {
		most := 0.0
		for _, v := range lines[i] {
			most = max(most, v)
		}
		fmt.Fprintf(b, "%-7s %s  up to %s cores\n", name, Sparkline(lines[i], width, top), count(most))
	}
}

// count writes a number with thousands apart.
func count(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func change(now, then float64) string {
	if then == 0 {
		return "no static"
	}
	return fmt.Sprintf("%+.1f %%", 100*(now/then-1))
}

func optional(v *float64, format string) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf(format, *v)
}
