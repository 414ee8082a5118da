package hpa

import (
	"fmt"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // the tests name zones, and no machine need have them

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// noon is a Monday, far from every edge.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// world is everything that one sizing sees. The zero world does nothing; calm builds one in which all is well.
type world struct {
	svc  fleet.Service
	p    portrait.Portrait
	t    forecast.Tide
	live Live
	now  time.Time
	o    Options
	// within are the bounds that others set.
	within Bounds
}

func (w *world) size() Target { return Ask(&w.svc, w.p, w.t, w.live, w.now, w.o).Within(w.within) }

// calm is a service of n replicas with a latency level, every signal fresh and at ease, a flat tide and a history that covers the
// stabilisation window: whatever a test changes is the only reason for what follows. A replica carries (1.0 × 0.60 − 0.1) / 0.02 = 25
// requests per second, and the load is 20 a replica.
func calm(n int32) *world {
	w := &world{now: noon}
	w.svc = fleet.Service{
		ID: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, TargetKind: "Deployment", TargetFound: true,
		Mode: fleet.Auto, Pause: fleet.PauseNone, Actuation: fleet.ByScale,
		SLO: fleet.Levels(fleet.Latency(0.99, 200*time.Millisecond)),
		Min: 2, Max: 40, Quantile: 0.95,
		Request: fleet.Resources{CPU: 1000, Memory: 2 * fleet.GiB},
		Desired: fleet.KnownAt(n, noon),
	}
	w.p = portrait.Portrait{
		Version: portrait.Version, Service: w.svc.ID, Signal: portrait.Requests, Step: time.Minute,
		CPUPerLoad: fleet.KnownAt(0.02, noon), CPUIdle: fleet.KnownAt(0.1, noon),
		StartUp: [3]time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}, StartUps: 20,
		FastestFalls: portrait.Falls{0.5, 0.75, 0.875}, Quality: portrait.Quality{Score: 1, Points: 20000, Needed: 1440},
	}
	w.live = Live{Signals: map[string]fleet.Known[float64]{}}
	w.o.Defaults.ShrinkShare = 1 // one test looks at the rate of scale-in, the others at where it goes
	w.watched(time.Hour)
	w.remember(n)
	w.pods(n)
	w.load(float64(n) * 20)
	w.tide(float64(n) * 20)
	w.cpu(500)
	w.latency(100 * time.Millisecond)
	return w
}

// falling is a service whose every part agrees, and has agreed for ten minutes, to go from n to m replicas.
func falling(n, m int32) *world {
	w := calm(n)
	w.remember(m)
	for i := range w.o.History {
		w.o.History[i].From = n
	}
	w.load(float64(m) * 25)
	w.tide(float64(m) * 25)
	w.cpu(fleet.MilliCPU(600 * m / n))
	w.latency(50 * time.Millisecond)
	return w
}

func (w *world) watched(d time.Duration) { w.o.WatchedSince = w.now.Add(-d) }

// remember fills ten minutes of history with one ask.
func (w *world) remember(n int32) {
	w.o.History = nil
	for age := 10 * time.Minute; age > 0; age -= time.Minute {
		w.o.History = append(w.o.History, Decision{At: w.now.Add(-age), Replicas: n, From: n})
	}
}

// pods lists n pods that have been ready for an hour.
func (w *world) pods(n int32) {
	w.svc.Pods = nil
	for i := range n {
		w.svc.Pods = append(w.svc.Pods, w.pod(fmt.Sprintf("cart-%03d", i), time.Hour))
	}
}

func (w *world) pod(name string, age time.Duration) fleet.Pod {
	started := w.now.Add(-age)
	return fleet.Pod{
		Name: fleet.Name{Namespace: "shop", Name: name}, Class: fleet.PodOnline, Service: w.svc.ID, Requests: w.svc.Request,
		Phase: fleet.PodRunning, Ready: true, CurrentRevision: true, Created: started,
		Started: fleet.KnownAt(started, started), ReadySince: fleet.KnownAt(started.Add(time.Minute), started.Add(time.Minute)),
	}
}

// cpu gives every pod the same usage.
func (w *world) cpu(m fleet.MilliCPU) {
	w.live.CPU = map[fleet.Name]fleet.Known[fleet.MilliCPU]{}
	for i := range w.svc.Pods {
		w.live.CPU[w.svc.Pods[i].Name] = fleet.KnownAt(m, w.now.Add(-15*time.Second))
	}
}

func (w *world) load(v float64) { w.live.Load = fleet.KnownAt(v, w.now.Add(-15*time.Second)) }

func (w *world) latency(d time.Duration) {
	w.live.Latency = fleet.KnownAt(d, w.now.Add(-15*time.Second))
}

func (w *world) signal(name string, v float64) {
	w.live.Signals[name] = fleet.KnownAt(v, w.now.Add(-15*time.Second))
}

// tide is a trusted tide of two days in steps of five minutes. It runs through the given values an hour each and keeps the last.
func (w *world) tide(hours ...float64) {
	const step = 5 * time.Minute
	w.t = forecast.Tide{
		Service: w.svc.ID, Signal: w.p.Signal, Made: w.now, Start: w.now, Step: step, Quantiles: []float64{0.5, 0.95},
		Paths: [][]float64{make([]float64, 2*288), make([]float64, 2*288)}, Model: "seasonal", Trusted: true,
	}
	for i := range w.t.Paths[0] {
		v := hours[min(i/12, len(hours)-1)]
		w.t.Paths[0][i], w.t.Paths[1][i] = v*0.9, v
	}
}

// recent sets the portrait's newest values, one a minute, the last of them a minute ago.
func (w *world) recent(values ...float64) {
	w.p.Recent = series.Series{Start: w.now.Add(-time.Duration(len(values)) * time.Minute), Step: time.Minute, Values: values}
}

// part finds a part by name.
func part(t *testing.T, tg Target, name string) Part {
	t.Helper()
	i := slices.IndexFunc(tg.Parts, func(p Part) bool { return p.String() == name })
	if i < 0 {
		t.Fatalf("no part %q in %+v", name, tg.Parts)
	}
	return tg.Parts[i]
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}
