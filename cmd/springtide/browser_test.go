package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	pure "github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/forecast/score"
	"github.com/springtide/springtide/internal/backtest"
	"github.com/springtide/springtide/internal/series"
	"github.com/springtide/springtide/sim"
)

// judgePage runs in the browser: it lists what a reader would not see. A label of a chart beyond its chart, a plot without a line, and a page wider
// than its window.
const judgePage = `<script>
const bad = [];
if (document.documentElement.scrollWidth > window.innerWidth) bad.push("the page is " + document.documentElement.scrollWidth + " wide, the window " + window.innerWidth);
document.querySelectorAll("svg").forEach((svg, i) => {
  const box = svg.getBoundingClientRect();
  svg.querySelectorAll("text").forEach(t => {
    const r = t.getBoundingClientRect();
    if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1) bad.push("chart " + i + " cuts off " + t.textContent);
  });
  const drawn = [...svg.querySelectorAll("path")].filter(p => p.getTotalLength && p.getTotalLength() > 0 && p.getAttribute("stroke") !== "#e4e4e4");
  if (drawn.length < 2) bad.push("chart " + i + " is empty");
  svg.querySelectorAll("path.breach").forEach(p => {
    const r = p.getBBox();
    if (!(p.getTotalLength() > 1) || r.x < 0 || r.x + r.width > svg.viewBox.baseVal.width + 1) bad.push("chart " + i + " has a mark of a breach that cannot be seen");
  });
});
if (!document.querySelector("path.breach")) bad.push("no breach is marked");
document.body.setAttribute("data-verdict", bad.length ? bad.join("; ") : "fine");
</script>`

var browserVerdict = regexp.MustCompile(`data-verdict="([^"]*)"`)

// TestReportsInABrowser opens the reports in headless Chromium. With -artifacts the screenshots are kept: go test -artifacts -outputdir DIR.
func TestReportsInABrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium here: hack/debian-deps.sh browser installs it")
	}
	if testing.Short() {
		t.Skip("starts a browser; run without -short")
	}
	pages := map[string]func(*bytes.Buffer) error{
		"simulate": func(b *bytes.Buffer) error { return writeSimulatePage(b, sampleSimulation()) },
		"backtest": func(b *bytes.Buffer) error {
			r, kept := sampleBacktest()
			return writeBacktestPage(b, r, kept)
		},
	}
	for name, write := range pages {
		t.Run(name, func(t *testing.T) {
			var page bytes.Buffer
			if err := write(&page); err != nil {
				t.Fatal(err)
			}
			withinChart(t, page.String())
			path := filepath.Join(t.TempDir(), name+".html")
			if err := os.WriteFile(path, bytes.Replace(page.Bytes(), []byte("</body>"), []byte(judgePage+"</body>"), 1), 0o644); err != nil {
				t.Fatal(err)
			}
			shot := filepath.Join(t.ArtifactDir(), name+".png")
			dom := browse(t, chromium, "--dump-dom", "file://"+path)
			if m := browserVerdict.FindSubmatch(dom); m == nil || string(m[1]) != "fine" {
				t.Errorf("%s in the browser: %s", name, m)
			}
			browse(t, chromium, "--screenshot="+shot, "file://"+path)
			if st, err := os.Stat(shot); err != nil || st.Size() < 10_000 {
				t.Errorf("no screenshot at %s: %v", shot, err)
			}
			t.Logf("%s: %s", name, shot)
		})
	}
}

func browse(t *testing.T, chromium string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// The pages are the test's own, so that they need no sandbox, which needs rights that a container lacks.
	cmd := exec.CommandContext(ctx, chromium, append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,5200",
		"--user-data-dir=" + t.TempDir()}, args...)...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	return out.Bytes()
}

// sampleSimulation is a week of policies with curves of all kinds, loans, and services with breaches.
func sampleSimulation() *simulateReport {
	r := &simulateReport{Scenario: "a week of a small fleet", Days: 7, Nodes: 120, Services: 3}
	moments := 7 * 288
	wave := func(i int, high float64) float64 {
		return high * (0.55 - 0.45*math.Cos(2*math.Pi*float64(i)/288))
	}
	for k, p := range sim.Policies() {
		for j, target := range []float64{95, 80, 90, 99} {
			x := sim.Result{Policy: p, Lender: sim.LendNone, Target: target, Knob: sim.KnobAvailability, Default: j == 0, OnlineCoreHours: 90000 + 4000*float64(k) + 9000*float64(j),
				SLOViolationMinutes: 40 * (13 - k) / (1 + j*j), Classes: map[string]sim.Class{sim.Calm: {ServiceWeeks: 2, SLOViolationMinutes: 20 * (13 - k) / (1 + j*j)}, sim.Bursty: {ServiceWeeks: 1, SLOViolationMinutes: 20 * (13 - k) / (1 + j)}}}
			if p == sim.HPA && j == 0 {
				x.Services = sampleServices(moments, wave, 6)
			}
			r.Policies = append(r.Policies, simulated{1, x})
		}
	}
	lent := sim.Result{Policy: sim.Springtide, Lender: sim.LendSpringtide, Target: 95, Knob: sim.KnobAvailability, Default: true, OnlineCoreHours: 91000, OfflineCoreHours: 30000, Classes: map[string]sim.Class{}}
	lent.Services = sampleServices(moments, wave, 2)
	for i := range moments {
		online := wave(i, 900)
		lent.Timeline = append(lent.Timeline, sim.Moment{Demand: online * 0.8, Ready: online, Online: online, Lent: 1000 - online, Used: online*0.6 + 800 - 0.8*online})
	}
	r.Policies = append(r.Policies, simulated{1, lent})
	return r
}

func sampleServices(moments int, wave func(int, float64) float64, breaches int) (out []sim.ServiceResult) {
	for k, name := range []string{"shop/cart", "shop/search", "an-unusually-long-namespace/a-service-with-a-very-long-name-indeed"} {
		s := sim.ServiceResult{Service: name, Class: sim.Calm}
		for i := range moments {
			m := sim.ServiceMoment{Need: float32(wave(i, 20*float64(k+1))), Ready: float32(math.Ceil(wave(i+3, 22*float64(k+1))))}
			if i%288 < breaches*(3-k) {
				m.Broken = 2
				s.SLOViolationMinutes += 2
			}
			s.Timeline = append(s.Timeline, m)
		}
		out = append(out, s)
	}
	return out
}

// sampleBacktest are series of all sizes, one that a model explodes on.
func sampleBacktest() (*backtestReport, []backtest.Kept) {
	set := pure.Set{Horizon: 24}
	kept := backtest.Kept{Set: &set, Quantiles: []float64{0.1, 0.5, 0.9}, Forecasts: make([][]plain.Forecast, 3)}
	for k, unit := range []float64{0.004, 3, 1.2e7} {
		value := func(i int) float64 { return unit * (2 + math.Sin(2*math.Pi*float64(i)/24)) }
		h := series.Series{Start: time.Date(2026, 3, 2, 7, 0, 0, 0, time.UTC), Step: time.Hour}
		for i := range 96 {
			h.Values = append(h.Values, value(i))
		}
		c := pure.Case{Series: fmt.Sprintf("series-%d", k), History: h, Period: 24}
		for m := range kept.Forecasts {
			paths := make([][]float64, 3)
			for i := range 24 {
				for q, f := range []float64{0.9, 1, 1.1} {
					paths[q] = append(paths[q], value(96+i)*f*math.Pow(1.3, float64(m*k)*float64(i)/4))
				}
			}
			kept.Forecasts[m] = append(kept.Forecasts[m], plain.Forecast{Paths: paths})
		}
		for i := range 24 {
			surge := 1.02
			if k == 1 && i < 5 { // above the highest quantile of each model
				surge = 1.5
			}
			c.Actual = append(c.Actual, value(96+i)*surge)
		}
		set.Cases = append(set.Cases, c)
	}
	r := &backtestReport{Horizon: 24, Stride: 24, Origins: 1, Result: pure.Result{Levels: []float64{0.5, 0.9}, Models: []pure.ModelResult{
		{Model: "springtide", Pooled: score.Report{Forecasts: 3, WQL: 0.09}}, {Model: "seasonal-naive", Pooled: score.Report{Forecasts: 3, WQL: 0.1}}, {Model: "drift", Pooled: score.Report{Forecasts: 3, WQL: 0.4}}}}}
	return r, []backtest.Kept{kept}
}
