package whatif

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

var monday = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// tidal are days of minutes: a night of 100/s, and a day of 1000/s from eight to twenty, whose flood takes ten minutes.
// A request costs 0.02 cores and an idle replica none; at 85 % of a core a replica carries 42.5/s.
func tidal(days int) portrait.Batch {
	load := make([]float64, days*24*60)
	for i := range load {
		m := i % (24 * 60)
		rise := float64(m-8*60) / 10
		if m >= 20*60 {
			rise = 1 - float64(m-20*60)/10
		}
		load[i] = 100 + 900*min(max(rise, 0), 1)
	}
	of := func(scale float64) series.Series {
		out := series.Series{Start: monday, Step: time.Minute, Values: make([]float64, len(load))}
		for i, v := range load {
			out.Values[i] = v * scale
		}
		return out
	}
	ready := of(0)
	for i := range ready.Values {
		ready.Values[i] = 40
	}
	return portrait.Batch{Load: of(1), CPU: of(0.02), Ready: ready,
		StartUps: slices.Repeat([]time.Duration{3 * time.Minute}, 20)}
}

func cart() fleet.Service {
	return fleet.Service{ID: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, TargetKind: "Deployment",
		SLO: fleet.Levels(fleet.Latency(0.99, 200*time.Millisecond)), Min: 2, Max: 200, Quantile: 0.95,
		Request: fleet.Resources{CPU: 1000, Memory: 2 * fleet.GiB}}
}

func learn(t *testing.T, b portrait.Batch) *Knowledge {
	t.Helper()
	svc := cart()
	k, err := Learn(&svc, b, Fine, portrait.Options{}, forecast.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A flood of ten minutes with a start-up of three: an autoscaler of CPU is late each morning, the forecast is not, and
// the static count for the peak is dearest.
func TestPlay(t *testing.T) {
	svc, k := cart(), learn(t, tidal(16))
	if math.Abs(k.Limit/42.5-1) > 0.02 || k.StartUp != 3*time.Minute || !strings.Contains(k.Basis, "85 %") {
		t.Fatalf("limit %v (%s), start-up %s", k.Limit, k.Basis, k.StartUp)
	}
	if days := k.To.Sub(k.From).Hours() / 24; days != 9 {
		t.Fatalf("%v days are played", days)
	}
	ours := k.Play("springtide", &svc, &Springtide{Service: svc})
	hpa := k.Play("hpa", &svc, &Autoscaler{Request: svc.Request, Min: 2, Max: 200,
		Metrics: []fleet.Metric{{Name: "cpu", Type: fleet.MetricCPU, Target: 0.8}}})
	static := k.Play("static", &svc, Fixed(29))
	for _, r := range []*Result{&ours, &hpa, &static} {
		t.Logf("%s: %d of %d minutes bad, %.0f core-hours, %d moves, smallest margin %.2f at %s", r.Name, r.BadMinutes,
			r.Minutes, r.CoreHours, r.Moves, r.Margin, r.MarginAt.Format("Mon 15:04"))
	}
	if hpa.BadMinutes < 9 || ours.BadMinutes > hpa.BadMinutes/4 || static.BadMinutes != 0 {
		t.Errorf("bad minutes: springtide %d, autoscaler %d, static %d", ours.BadMinutes, hpa.BadMinutes, static.BadMinutes)
	}
	if ours.CoreHours > 0.9*static.CoreHours || static.Moves != 0 || math.Abs(static.CoreHours-29*24*9) > 1 {
		t.Errorf("core-hours: springtide %.0f, static %.0f", ours.CoreHours, static.CoreHours)
	}
	if (hpa.Margin >= 0) != (hpa.BadMinutes == 0) || static.Margin < 0 {
		t.Errorf("margins: autoscaler %v, static %v", hpa.Margin, static.Margin)
	}
}

// A minute without a load is neither good nor bad, and nothing is scaled in for it.
func TestPlayAGap(t *testing.T) {
	b := tidal(16)
	gap := b.Load.Index(monday.Add(15*day + 10*time.Hour))
	for i := range 6 * 60 {
		b.Load.Values[gap+i], b.CPU.Values[gap+i] = math.NaN(), math.NaN()
	}
	svc, k := cart(), learn(t, b)
	for _, s := range []Scaler{&Springtide{Service: svc}, &Autoscaler{Request: svc.Request, Min: 2, Max: 200,
		Metrics: []fleet.Metric{{Name: "cpu", Type: fleet.MetricCPU, Target: 0.8}}}} {
		r := k.Play("", &svc, s)
		if r.Minutes != 9*24*60-6*60 {
			t.Errorf("%T: %d minutes are known", s, r.Minutes)
		}
		first := int(monday.Add(15*day+10*time.Hour).Sub(k.From) / time.Minute)
		if before, after := r.Steps[first+1].Desired, r.Steps[first+6*60-1].Desired; after < before {
			t.Errorf("%T: scaled in from %d to %d without a load", s, before, after)
		}
	}
}

// A window holds its minimum, by its own zone.
func TestWindows(t *testing.T) {
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	a := Autoscaler{Min: 2, Max: 50, Windows: []fleet.Window{{Name: "day", Schedule: "0 9 * * 1-5",
		Duration: 2 * time.Hour,
		Zone:     zone, Min: 30}}}
	for at, want := range map[time.Time]int32{
		time.Date(2026, 6, 1, 0, 59, 0, 0, time.UTC): 2, time.Date(2026, 6, 1, 1, 0, 0, 0, time.UTC): 30,
		time.Date(2026, 6, 1, 2, 59, 0, 0, time.UTC): 30, time.Date(2026, 6, 1, 3, 0, 0, 0, time.UTC): 2,
		time.Date(2026, 6, 6, 1, 30, 0, 0, time.UTC): 2,
	} {
		if got := a.least(at); got != want {
			t.Errorf("%s: %d, want %d", at, got, want)
		}
	}
}

func TestLearnNeedsHistory(t *testing.T) {
	for name, c := range map[string]struct {
		b    portrait.Batch
		says string
	}{
		"none":       {portrait.Batch{}, "no minute"},
		"seven days": {tidal(7), "7.0 days"},
		"no CPU":     {portrait.Batch{Load: tidal(9).Load}, "what one replica carries"},
	} {
		svc := cart()
		if _, err := Learn(&svc, c.b, Fine, portrait.Options{}, forecast.Options{}); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
