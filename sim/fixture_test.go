package sim

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/series"
	"github.com/springtide/springtide/sim/scenario"
)

var begin = time.Date(2026, 6, 7, 0, 0, 0, 0, time.UTC)

// past is a week for those who look back one, and no more than tests have time for.
const past = 7*24*time.Hour + scenario.WarmUp

// tiny is a fleet of services with the given loads in replicas at their SLO: hours of history and run, the run beginning at begin.
func tiny(machines, hours int, loads ...func(at time.Time) float64) *scenario.Built {
	return tinyAfter(past, machines, hours, loads...)
}

// tinyAfter is tiny with another history.
func tinyAfter(past time.Duration, machines, hours int, loads ...func(at time.Time) float64) *scenario.Built {
	d := func(v time.Duration) config.Duration { return config.Duration(v) }
	s := &scenario.Scenario{Name: "tiny", Seed: 1, Start: begin, Days: float64(hours) / 24, History: d(past), DemandShare: 1,
		Defaults: scenario.Service{ForecastPercent: 95},
		Fleet: scenario.Fleet{Nodes: machines, CoresPerNode: 64, Sockets: 2, Zones: 1, StaticShare: 1, Lending: scenario.Lending{Unit: "Node", LowPercent: 5,
			HighPercent: 15, Notice: d(2 * time.Minute), NoticeMax: d(10 * time.Minute), MinimumTerm: d(30 * time.Minute), MovesAtOnce: 20, MovesPerHour: 120}},
		Jobs: []scenario.Job{
			{Name: "batch", Namespace: "offline", Cores: 16, Priority: "High", Share: 0.5, Every: d(10 * time.Minute), Save: d(30 * time.Second), Restore: d(30 * time.Second)},
			{Name: "deaf", Namespace: "offline", Cores: 8, Priority: "Low", Share: 0.5, Every: d(2 * time.Minute), Restore: d(10 * time.Second), Deaf: true}}}
	b := &scenario.Built{Scenario: s, Online: machines}
	for i, load := range loads {
		spec := &scenario.Service{Name: fmt.Sprintf("svc-%d", i), Namespace: "shop", Cores: 8, Burst: 2, StartUp: d(3 * time.Minute), SLO: scenario.SLO{Utilisation: 0.85},
			Min: 1, ForecastPercent: 95}
		o := scenario.Online{Spec: spec, Name: fleet.Name{Namespace: "shop", Name: spec.Name}, Calm: true,
			Station: measure.Station{Cores: 8, CPUSeconds: 1, Burst: 2, SLO: fleet.Levels(fleet.CPU(0.85))}}
		o.Load = series.New(begin.Add(-past), time.Minute, int(past/time.Minute)+hours*60)
		peak := 0.0
		for k := range o.Load.Values {
			o.Load.Values[k] = load(o.Load.Time(k)) * o.Capacity()
			if o.Load.Time(k).Before(begin) {
				peak = max(peak, o.Load.Values[k])
			}
		}
		o.Static = int(math.Ceil(peak * scenario.Headroom / o.Capacity()))
		b.Services = append(b.Services, o)
	}
	return b
}

// tide is a load with one flood a day, at six in the evening.
func tide(low, high float64) func(time.Time) float64 {
	return func(at time.Time) float64 {
		h := float64(at.Hour()) + float64(at.Minute())/60
		return low + (high-low)*(1+math.Cos((h-18)/24*2*math.Pi))/2
	}
}

func play(t *testing.T, b *scenario.Built, r Row) Result {
	t.Helper()
	out, err := Run(context.Background(), b, r, Share(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// watched plays a row and calls look at each tick.
func watched(t *testing.T, b *scenario.Built, r Row, look func(w *World)) *World {
	t.Helper()
	return prepared(t, b, r, func(w *World, _ *Past) { w.watch = func() { look(w) } })
}

// prepared plays a row on a world that was prepared before.
func prepared(t *testing.T, b *scenario.Built, r Row, prepare func(w *World, p *Past)) *World {
	t.Helper()
	shared := Share(b)
	w := NewWorld(b, shared.rates)
	prepare(w, shared.past)
	if o := r.controller(b); o != nil {
		if err := runController(context.Background(), w, *o, shared, lenderOf(r.Lender)...); err != nil {
			t.Fatal(err)
		}
		return w
	}
	policies := append([]Policy{r.scaler(w, shared.past)}, lenderOf(r.Lender)...)
	for !w.over() {
		w.step(policies)
	}
	return w
}
