package replay

import (
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/series"
)

// A tide is calm, and so is a burst that comes each day; one that comes out of nothing is not.
func TestCalm(t *testing.T) {
	tide := func(burst func(minute int) bool) series.Series {
		s := series.New(time.Time{}, time.Minute, 14*24*60)
		for i := range s.Values {
			s.Values[i] = 10 + 5*math.Sin(2*math.Pi*float64(i)/1440)
			if burst(i) {
				s.Values[i] *= 3
			}
		}
		return s
	}
	for name, c := range map[string]struct {
		burst func(int) bool
		want  bool
	}{
		"a tide":              {func(int) bool { return false }, true},
		"a burst a day":       {func(i int) bool { return i%1440 == 700 }, true},
		"bursts out of order": {func(i int) bool { return i%397 == 0 }, false},
	} {
		if got := Calm(tide(c.burst)); got != c.want {
			t.Errorf("%s: calm is %v", name, got)
		}
	}
	if Calm(series.New(time.Time{}, time.Minute, 100)) {
		t.Error("a service of which nothing is known is calm")
	}
}
