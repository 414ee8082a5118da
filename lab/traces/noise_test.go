package traces

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/replay"
	"github.com/springtide/springtide/series"
)

// fit sums up the noise of a minute series around the log-linear path between its hourly centres by two moments: a bridge over T minutes
// has the mean variance b²·T/6 and white noise adds w², while the difference of neighbouring minutes has b² + 2w². Medians stand in for
// means, since a spike is an event of its own and no noise; that, and the hourly means moving with the noise, makes b come out about a
// fifth low, on both sides of the comparison.
func fit(s series.Series) (bridge, white float64) {
	const hour = 60
	var centres []float64 // at half past each hour
	for i := 0; i+hour <= s.Len(); i += hour {
		centres = append(centres, math.Log(mean(series.Series{Values: s.Values[i : i+hour]})))
	}
	var residual, difference []float64
	prev := math.NaN()
	for i := hour / 2; i < (len(centres)-1)*hour+hour/2; i++ {
		c, u := math.Modf((float64(i) + 0.5 - hour/2) / hour)
		v := math.Log(s.Values[i]) - (centres[int(c)]*(1-u) + centres[int(c)+1]*u)
		if math.IsInf(v, 0) || math.IsNaN(v) {
			prev = math.NaN()
			continue
		}
		residual = append(residual, v*v)
		if !math.IsNaN(prev) {
			difference = append(difference, (v-prev)*(v-prev))
		}
		prev = v
	}
	const normal = 0.4549 // median of the square of a normal number
	r, d := median(residual)/normal, median(difference)/normal
	b2 := max(0, (r-d/2)/(hour/6.0-0.5))
	return math.Sqrt(b2), math.Sqrt(max(0, (d-b2)/2))
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func TestNoiseIsWhatTheMinuteTracesShow(t *testing.T) {
	var bridge, white []float64
	for _, tr := range Catalog() {
		if tr.Step != time.Minute {
			continue
		}
		parts, err := Load(tr)
		if err != nil {
			t.Fatal(err)
		}
		b, w := fit(parts[0])
		t.Logf("%-12s bridge %.4f white %.4f", tr.Name, b, w)
		bridge, white = append(bridge, b), append(white, w)
	}
	flat := series.New(time.Time{}, time.Hour, 2000)
	for i := range flat.Values {
		flat.Values[i] = 100
	}
	s := replay.Minutes(flat, flat.Len(), rand.New(rand.NewPCG(1, 1)))
	for i := range s.Values {
		s.Values[i]++ // the hundredth of the mean that the path was drawn with
	}
	b, n := fit(s)
	t.Logf("drawn        bridge %.4f white %.4f", b, n)
	if want := median(bridge); math.Abs(b/want-1) > 0.03 {
		t.Errorf("the bridges that we draw fit as %.4f, those of the traces as %.4f", b, want)
	}
	if want := median(white); math.Abs(n/want-1) > 0.03 {
		t.Errorf("the white noise that we draw fits as %.4f, that of the traces as %.4f", n, want)
	}
}

func mean(s series.Series) float64 {
	sum, n := 0.0, 0
	for _, v := range s.Values {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n)
}
