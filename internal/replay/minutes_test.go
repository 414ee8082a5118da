package replay

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/springtide/springtide/series"
)

func TestBridgesArePinnedAtTheCentres(t *testing.T) {
	// At a step of five minutes a centre is a minute's centre too: only white noise is left there.
	var pinned, free float64
	n := 50_000
	for i, v := range bridges(n, 5, rand.New(rand.NewPCG(7, 7))) {
		if i%5 == 2 {
			pinned += v * v / float64(n/5)
		} else {
			free += v * v / float64(n/5*4)
		}
	}
	if got := math.Sqrt(pinned); math.Abs(got/whiteSD-1) > 0.03 {
		t.Errorf("at the centres the noise is %.4f, want white noise of %.4f", got, whiteSD)
	}
	// Var B(u) = b²·u(5−u)/5 at u = 1, 2, 3, 4: mean b².
	if got, want := math.Sqrt(free), math.Hypot(bridgeSD, whiteSD); math.Abs(got/want-1) > 0.03 {
		t.Errorf("between the centres the noise is %.4f, want %.4f", got, want)
	}
}

// Windows of three weeks, cut backwards from the last Saturday, never overlap and keep weekday and hour.
func TestCut(t *testing.T) {
	end := time.Date(2026, 6, 6, 0, 0, 0, 0, time.UTC)
	f := Frame{End: end, Replay: 2 * day, Pitch: 3 * week, Shortest: 16 * day}
	s := series.New(time.Date(2015, 7, 1, 0, 0, 0, 0, time.UTC), time.Hour, 24*56)
	for i := range s.Values {
		s.Values[i] = float64(i)
	}
	got := f.Cut([]series.Series{s})
	if len(got) != 2 {
		t.Fatalf("%d windows", len(got))
	}
	for i, w := range got {
		if !w.Raw.End().Equal(end) || w.Shift%week != 0 || w.Young || w.Number != i+1 || f.Split(w.Raw) != w.Raw.Len()-48 {
			t.Errorf("window %d: ends %v, shifted by %v, young %v, number %d", i, w.Raw.End(), w.Shift, w.Young, w.Number)
		}
		if v := w.Raw.Values[0]; s.Time(int(v)).Weekday() != w.Raw.Start.Weekday() || s.Time(int(v)).Hour() != w.Raw.Start.Hour() {
			t.Errorf("window %d lost its weekday or hour", i)
		}
	}
	if got[0].Raw.Values[got[0].Raw.Len()-1] >= got[1].Raw.Values[0] {
		t.Error("the windows overlap")
	}
	young := f.Cut([]series.Series{{Start: s.Start, Step: s.Step, Values: s.Values[:24*10]}})
	if len(young) != 1 || !young[0].Young {
		t.Errorf("a short trace gives %d windows", len(young))
	}
}
