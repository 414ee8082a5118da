package loop_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// history is days of CPU on a grid of five minutes.
func history(days int, load func(hour float64, day int) float64) portrait.Batch {
	s := series.New(monday, 5*time.Minute, days*288)
	for i := range s.Values {
		s.Values[i] = load(float64(i%288)/12, i/288)
	}
	return portrait.Batch{CPU: s}
}

func tidal(hour float64, _ int) float64 { return 10 + 9*math.Cos((hour-20)/24*2*math.Pi) }

// sized is a service of one core a replica whose level is a utilisation of 70 %: a replica carries 0.7 cores.
func sized() *fleet.Service {
	return &fleet.Service{ID: "shop/cart", Min: 1, Max: 100, SLO: fleet.Levels(fleet.CPU(0.7)), Quantile: 0.95,
		Request: fleet.Resources{CPU: 1000}}
}

func TestBackcast(t *testing.T) {
	// The peak of 19 cores × 1.2 asks for ceil(22.8 / 0.7) = 33 replicas, for 24 hours on each of seven days.
	s := loop.Backcast(sized(), history(14, tidal), loop.DefaultOptions())
	if want := 33.0 * 24 * 7; math.Abs(s.CoreHoursToday-want) > 0.01 {
		t.Errorf("static: %.1f core-hours, want %.1f", s.CoreHoursToday, want)
	}
	if !s.From.Equal(monday.Add(7*24*time.Hour)) || !s.To.Equal(monday.Add(14*24*time.Hour)) {
		t.Errorf("replayed from %s to %s", s.From, s.To)
	}
	// A mean of 10 cores at 63 % is 16 replicas: less cannot serve it, and twice that would be no saving.
	if least := 10 / 0.7 * 24 * 7; s.CoreHours < least || s.CoreHours > 0.75*s.CoreHoursToday {
		t.Errorf("%.1f core-hours under Auto; the load alone asks for %.1f, static provisioning for %.1f", s.CoreHours,
			least, s.CoreHoursToday)
	}
	if s.ViolationMinutes != 0 || s.ViolationMinutesToday != 0 || !strings.HasPrefix(s.Verdict, "worth it: ") {
		t.Errorf("a plain tide: %+v", s)
	}
}

// The replay of a day knows only the days before it: a burst that nothing announced costs minutes, and the day after differs.
func TestBackcastDoesNotLookAhead(t *testing.T) {
	burst := func(hour float64, day int) float64 {
		if day == 13 && hour >= 12 {
			return 50
		}
		return tidal(hour, day)
	}
	s := loop.Backcast(sized(), history(14, burst), loop.DefaultOptions())
	// One step of five minutes until the load itself is seen; static provisioning lacks for the whole half day.
	if s.ViolationMinutes < 5 || s.ViolationMinutes > 15 || s.ViolationMinutesToday != 12*60 {
		t.Errorf("a burst of half a day: %+v", s)
	}
}

func TestBackcastVerdicts(t *testing.T) {
	long(t)
	noCost := portrait.Batch{Load: history(14, tidal).CPU}
	small := sized()
	small.Max = 5
	for name, c := range map[string]struct {
		svc   *fleet.Service
		batch portrait.Batch
		want  string
	}{
		"young":            {sized(), history(7, tidal), "needs eight days of history"},
		"empty":            {sized(), portrait.Batch{}, "needs eight days of history"},
		"cost unknown":     {sized(), noCost, "the capacity of a replica is not known yet"},
		"no tide":          {sized(), history(14, func(float64, int) float64 { return 60 }), "worth it: 7 % fewer core-hours"},
		"bounds too small": {small, history(14, tidal), "costs the SLO: "},
	} {
		t.Run(name, func(t *testing.T) {
			if s := loop.Backcast(c.svc, c.batch, loop.DefaultOptions()); !strings.HasPrefix(s.Verdict, c.want) {
				t.Errorf("%q, want %q", s.Verdict, c.want)
			}
		})
	}
}
