package simulate

import (
	"bytes"
	"math"
	"testing"

	"github.com/springtide/springtide/internal/cli/chart/charttest"
	"github.com/springtide/springtide/sim"
)

// TestReportsInABrowser opens the report in headless Chromium.
func TestReportsInABrowser(t *testing.T) {
	charttest.InABrowser(t, "simulate", func(b *bytes.Buffer) error { return writeSimulatePage(b, sampleSimulation()) })
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
