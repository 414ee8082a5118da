package traces

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/replay"
	"github.com/springtide/springtide/series"
)

const many, seed = 40, 1

func made(t *testing.T, n int, seed uint64) []Source {
	t.Helper()
	out, err := Services(n, seed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestServicesKeepWhatTheReadmePromises(t *testing.T) {
	sources := made(t, 100, seed)
	names := map[string]bool{}
	taken := map[string][]Source{}
	old := 0
	for _, s := range sources {
		if names[s.Name] {
			t.Errorf("%s appears twice", s.Name)
		}
		names[s.Name] = true
		if !s.Load.End().Equal(End()) || s.Load.Step != time.Minute {
			t.Errorf("%s: ends %s in steps of %s", s.Name, s.Load.End(), s.Load.Step)
		}
		moved := s.Load.Start.Sub(s.MeasuredFrom)
		if moved%(7*day) != 0 {
			t.Errorf("%s: moved by %s, which is not in whole weeks", s.Name, moved)
		}
		h := s.History()
		if !s.Young {
			old++
			if h.Len() < 14*24*60 {
				t.Errorf("%s: only %d minutes of history", s.Name, h.Len())
			}
		}
		if p := replay.Peak(h.Since(ReplayStart().Add(-7 * day))); math.Abs(p-1) > 1e-12 {
			t.Errorf("%s: the last week of history peaks at %v, want 1", s.Name, p)
		}
		if r := s.Load.Since(ReplayStart()); r.Known() != r.Len() || r.Len() != int(Replay/time.Minute) {
			t.Errorf("%s: the replay has %d of %d minutes", s.Name, r.Known(), r.Len())
		}
		for _, o := range taken[s.Trace] {
			if s.MeasuredFrom.Before(o.MeasuredFrom.Add(minutes(o))) && o.MeasuredFrom.Before(s.MeasuredFrom.Add(minutes(s))) {
				t.Errorf("%s and %s share a stretch of their trace", s.Name, o.Name)
			}
		}
		taken[s.Trace] = append(taken[s.Trace], s)
	}
	if old < 90 {
		t.Errorf("%d services have two weeks of history, want at least 90", old)
	}
}

func minutes(s Source) time.Duration { return time.Duration(s.Load.Len()) * time.Minute }

func TestTheMixOfTheDefaultFleet(t *testing.T) {
	mix := map[string]int{}
	young, minute := 0, 0
	for _, s := range made(t, many, seed) {
		mix[s.Trace]++
		if s.Young {
			young++
		}
		if !s.Disaggregated {
			minute++
		}
	}
	t.Log(mix)
	if young != 4 || minute < 7 {
		t.Errorf("%d young and %d one-minute services, want 4 and at least 7", young, minute)
	}
	for trace, n := range mix {
		if n > many/4 {
			t.Errorf("%s makes %d of %d services", trace, n, many)
		}
	}
}

func TestSameSeedSameServices(t *testing.T) {
	a, b := made(t, 20, 3), made(t, 20, 3)
	if !equal(a, b) {
		t.Error("the same seed made other services")
	}
	if equal(a, made(t, 20, 4)) {
		t.Error("another seed made the same services")
	}
}

// equal compares bit by bit: a gap equals a gap.
func equal(a, b []Source) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if !sameValues(x.Load.Values, y.Load.Values) {
			return false
		}
		x.Load.Values, y.Load.Values = nil, nil
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

func sameValues(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return true
}

// Measurements from the start of the replay on must not reach the choice, the scale or the history.
func TestTheReplayDecidesNothing(t *testing.T) {
	for name, change := range map[string]func(v float64) float64{
		"gone":     func(float64) float64 { return math.NaN() },
		"zero":     func(float64) float64 { return 0 },
		"hundred×": func(v float64) float64 { return 100*v + 1 },
	} {
		altered, err := services(many, seed, func(tr Trace) ([]series.Series, error) {
			parts, err := Load(tr)
			for _, w := range windows(tr, parts) {
				for i := w.history().Len(); i < w.raw.Len(); i++ {
					w.raw.Values[i] = change(w.raw.Values[i])
				}
			}
			return parts, err
		})
		if err != nil {
			t.Fatal(err)
		}
		different := false
		for i, s := range made(t, many, seed) {
			a := altered[i]
			if a.Name != s.Name || a.RawPeak != s.RawPeak || !sameValues(a.History().Values, s.History().Values) {
				t.Errorf("%s: %s became %s (peak %v, was %v)", name, s.Name, a.Name, a.RawPeak, s.RawPeak)
			}
			different = different || !sameValues(a.Load.Values, s.Load.Values)
		}
		if !different {
			t.Errorf("%s: the replay did not change, so the test shows nothing", name)
		}
	}
}

func TestDisaggregationKeepsTheHours(t *testing.T) {
	for _, s := range made(t, many, seed) {
		if s.Step != time.Hour || s.Kind != Requests {
			continue
		}
		w := pick(t, s)
		var want, got float64
		for i, v := range w.raw.Values[:w.history().Len()] {
			if m := mean(series.Series{Values: s.Load.Values[i*60 : i*60+60]}); !math.IsNaN(v) && !math.IsNaN(m) {
				want, got = want+v, got+m*s.RawPeak
			}
		}
		// The path cuts peaks and the noise is not centred (its exponential has a mean of 1.004): a few per cent over a history.
		if math.Abs(got/want-1) > 0.05 {
			t.Errorf("%s: %.0f requests in minutes, %.0f in hours", s.Name, got, want)
		}
	}
}

func pick(t *testing.T, s Source) window {
	t.Helper()
	for _, tr := range Catalog() {
		if tr.Name == s.Trace {
			parts, err := Load(tr)
			if err != nil {
				t.Fatal(err)
			}
			return windows(tr, parts)[s.Window-1]
		}
	}
	t.Fatalf("no trace %s", s.Trace)
	return window{}
}

func TestGapsStayInTheHistoryAndAreBridgedInTheReplay(t *testing.T) {
	raw := series.New(ReplayStart().Add(-4*time.Hour), time.Hour, 8)
	copy(raw.Values, []float64{10, 10, math.NaN(), 10, 20, math.NaN(), 20, math.NaN()})
	w := &window{trace: Trace{Name: "synthetic", Step: time.Hour}, raw: raw}
	got := toMinutes(w, 1)
	for i, v := range got.Values {
		if gap := i/60 == 2; math.IsNaN(v) != gap {
			t.Errorf("minute %d is %v", i, v)
		}
	}
	if v := got.Values[7*60]; v < 14 || v > 28 {
		t.Errorf("the last hour of the replay is %v, want about the last known 20", v)
	}
}

func TestTooManyServicesAreRefused(t *testing.T) {
	for _, n := range []int{0, -1, 1000} {
		if _, err := Services(n, 1); err == nil {
			t.Errorf("%d services were made", n)
		}
	}
}

func TestHolidaysAreRedated(t *testing.T) {
	seen := 0
	for _, s := range made(t, 100, seed) {
		for _, h := range s.Holidays {
			seen++
			if h.Date.Before(s.Load.Start) || !h.Date.Before(End()) {
				t.Errorf("%s: %s lies outside of the window", s.Name, h.Name)
			}
			if h.Name == "Labor Day" && h.Date.Weekday() != time.Monday {
				t.Errorf("%s: Labor Day is a %s", s.Name, h.Date.Weekday())
			}
		}
	}
	if seen == 0 {
		t.Error("no window has a holiday")
	}
}

func TestFeedShowsNothingOfTheFuture(t *testing.T) {
	a := made(t, 12, 5)
	for _, after := range []time.Duration{0, 90 * time.Second, 13*time.Hour + 59*time.Minute, 47 * time.Hour} {
		now := ReplayStart().Add(after)
		b := made(t, 12, 5)
		for i := range b {
			for j := b[i].Load.Index(now) + 1; j < b[i].Load.Len(); j++ {
				b[i].Load.Values[j] = -1
			}
		}
		va, vb := NewFeed(a).At(now), NewFeed(b).At(now)
		for i := range a {
			if va.Now(i) != vb.Now(i) || !sameValues(va.Past(i).Values, vb.Past(i).Values) || va.Last(i, 2) != vb.Last(i, 2) {
				t.Errorf("%s after %s: the view shows the future", a[i].Name, after)
			}
			past := vb.Past(i)
			if past.End().After(now) {
				t.Errorf("%s: the past ends at %s, now is %s", a[i].Name, past.End(), now)
			}
			if cap(past.Values) != len(past.Values) {
				t.Errorf("%s: reslicing the past reaches %d minutes of the future", a[i].Name, cap(past.Values)-len(past.Values))
			}
		}
	}
}
