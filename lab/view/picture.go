package view

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/model"
	"github.com/springtide/springtide/lab/world"
)

// The palette: the tide in blues, what is lent in amber, harm in red.
var (
	blue  = lipgloss.Color("39")
	deep  = lipgloss.Color("27")
	grey  = lipgloss.Color("245")
	amber = lipgloss.Color("214")
	green = lipgloss.Color("78")
	red   = lipgloss.Color("203")

	faint = lipgloss.NewStyle().Foreground(grey)
	title = lipgloss.NewStyle().Bold(true).Foreground(blue)
)

// besideCurve is the room that names and numbers take next to a curve.
const besideCurve = 74

// trailEvery is the grain of the trails: a day is 288 points.
const trailEvery = 5 * time.Minute

// trails are what the picture's curves are drawn from: a point for each grain of the run, NaN where it has not been yet.
type trails struct {
	start                                                   time.Time
	demand, forecast, ready, lent, offline, violating, used []float64
}

// add takes the newest point.
func (t *trails) add(v *world.View) {
	if t.start.IsZero() {
		t.start = v.At.Truncate(trailEvery)
		n := int(v.End.Sub(t.start)/trailEvery) + 1
		for _, line := range t.all() {
			*line = slices.Repeat([]float64{math.NaN()}, n)
		}
	}
	i := int(v.At.Sub(t.start) / trailEvery)
	if i < 0 || i >= len(t.demand) {
		return
	}
	values := []float64{v.Demand, v.Forecast, v.Ready, v.Lent, v.OfflineRequested, float64(v.Violating), v.Used}
	for k, line := range t.all() {
		(*line)[i] = values[k]
	}
}

func (t *trails) all() []*[]float64 {
	return []*[]float64{&t.demand, &t.forecast, &t.ready, &t.lent, &t.offline, &t.violating, &t.used}
}

// picture is the whole view, line by line.
func (s *Screen) picture(v *world.View) []string {
	curve := max(16, min(72, s.width()-besideCurve))
	// The online curves share one scale, so that what stands ready can be compared with what is asked for.
	top := max(v.Static, most(s.trails.demand), most(s.trails.ready))
	row := func(group, name string, values []float64, top float64, c color.Color, text string) string {
		line := lipgloss.NewStyle().Foreground(c).Render(pad(model.Sparkline(values, curve, top), curve))
		return fmt.Sprintf("  %s %s %s  %s", title.Render(pad(group, 8)), pad(name, 9), line, text)
	}
	t := &s.trails
	out := []string{
		s.head(v), "",
		row("online", "demand", t.demand, top, blue, fmt.Sprintf("%s cores", count(v.Demand))),
		row("", "forecast", t.forecast, top, deep, forecastText(v)),
		row("", "ready", t.ready, top, green, fmt.Sprintf("%s cores %s", count(v.Ready), faint.Render("static "+count(v.Static)))),
		fmt.Sprintf("  %s %s", pad("", 8), replicasText(v)), "",
		row("offline", "lent", t.lent, v.OnlineHome, amber, fmt.Sprintf("%s cores in %d machines, %d sockets", count(v.Lent), v.NodesLent, v.SocketsLent)),
		row("", "work", t.offline, v.Allocatable, amber, fmt.Sprintf("%s cores in %d pods", count(v.OfflineRequested), v.OfflinePods)),
		fmt.Sprintf("  %s %s", title.Render(pad("jobs", 8)), jobsText(v)),
		fmt.Sprintf("  %s %s", title.Render(pad("loans", 8)), loansText(v, s.width()-11)), "",
		row("SLO", "broken", t.violating, max(1, most(t.violating)), red, fmt.Sprintf("%d of %d services now, %d minutes %s", v.Violating,
			v.Services, v.ViolationMinutes, faint.Render(fmt.Sprintf("static %d", v.ViolationMinutesStatic)))),
		row("fleet", "in use", t.used, v.Allocatable, green, fmt.Sprintf("%s of %s cores, mean %.1f %% %s", count(v.Used), count(v.Allocatable),
			100*v.Utilisation, faint.Render(fmt.Sprintf("static %.1f %%", 100*v.UtilisationStatic)))),
	}
	if len(v.Down) > 0 {
		out = append(out, "", lipgloss.NewStyle().Foreground(red).Bold(true).Render(fmt.Sprintf("  down on purpose: %v", v.Down)))
	}
	out = append(out, "", faint.Render("  Ctrl-C stops everything and prints the report so far. In another terminal:"))
	cut := lipgloss.NewStyle().MaxWidth(s.width()) // a line that wraps would push the picture off the screen
	for i := range out {
		out[i] = cut.Render(out[i])
	}
	for _, h := range s.Hints { // whole, since they are copied; they are the last lines, so one that wraps pushes nothing
		out = append(out, faint.Render("    "+h))
	}
	return out
}

// head is the first line: the time, how much of the day is over, and the pace.
func (s *Screen) head(v *world.View) string {
	const bar = 24
	share := float64(v.At.Sub(v.Start)) / float64(v.End.Sub(v.Start))
	done := max(0, min(bar, int(share*bar)))
	text := fmt.Sprintf("%.0f %%", max(0, 100*share))
	if share < 0 {
		text = "warming up"
	}
	return fmt.Sprintf("  %s  %s  %s%s %s  %s", title.Render("Springtide lab"), v.At.Format("Mon 2 Jan 15:04"),
		strings.Repeat("█", done), faint.Render(strings.Repeat("░", bar-done)), text,
		faint.Render(fmt.Sprintf("a virtual day takes %s", v.WallPerDay.Round(time.Second))))
}

func forecastText(v *world.View) string {
	if math.IsNaN(v.Forecast) {
		return faint.Render("nothing yet")
	}
	return fmt.Sprintf("%s cores in an hour", count(v.Forecast))
}

func replicasText(v *world.View) string {
	text := fmt.Sprintf("%d of %d replicas ready", v.ReadyReplicas, v.Replicas)
	if v.Waiting > 0 {
		text += lipgloss.NewStyle().Foreground(red).Render(fmt.Sprintf(", %d wait for room", v.Waiting))
	}
	return text
}

// jobsText says how far each job is. A machine that is lent while no work is left stands idle, and the line says why.
func jobsText(v *world.View) string {
	if len(v.Jobs) == 0 {
		return faint.Render("none")
	}
	var parts []string
	left := 0
	for _, j := range v.Jobs {
		if j.Done {
			parts = append(parts, j.Name+" finished")
			continue
		}
		left++
		parts = append(parts, fmt.Sprintf("%s %.0f %%", j.Name, 100*j.Share))
	}
	text := strings.Join(parts, " · ")
	if left == 0 {
		text += faint.Render(": no work is left, what is lent stands idle")
	}
	return text
}

// loansText counts the loans by phase, those phases that have any.
func loansText(v *world.View, width int) string {
	var parts []string
	for i, phase := range fleet.Phases() {
		if v.Loans[i] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", phase, v.Loans[i]))
		}
	}
	if len(parts) == 0 {
		return faint.Render("none")
	}
	text := strings.Join(parts, " · ")
	if lipgloss.Width(text) > width { // all phases at once
		text = strings.Join(parts, " ")
	}
	return text
}

// line is the world in one line.
func line(v *world.View) string {
	text := fmt.Sprintf("%s  demand %s, ready %s cores; %d/%d replicas; lent %s cores (%d machines, %d sockets); %d violation-minutes; %.1f %% used; %s a day",
		v.At.Format("Mon 15:04"), count(v.Demand), count(v.Ready), v.ReadyReplicas, v.Replicas, count(v.Lent), v.NodesLent, v.SocketsLent,
		v.ViolationMinutes, 100*v.Utilisation, v.WallPerDay.Round(time.Second))
	if len(v.Down) > 0 {
		text += fmt.Sprintf("; down: %v", v.Down)
	}
	return text
}

func most(values []float64) float64 {
	out := 0.0
	for _, v := range values {
		if v > out {
			out = v
		}
	}
	return out
}

// pad fills a text up to a width.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-lipgloss.Width(s)))
}

// count writes a number with thousands apart.
func count(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
