package traces

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/series"
)

// fit sums up the noise of a minute series around the log-linear path between its hourly centres by two moments: a bridge over T minutes
// has the mean variance b²·T/6 and white noise adds w², while the difference of neighbouring minutes has b² + 2w². Medians stand in for
// means, since a spike is an event of its own and no noise; that, and the hourly means moving with the noise, makes b come out about a
// fifth low, on both sides of the comparison.
func fit(s series.Series) (bridge, white float64) {
	const hour = 60
	var centres []knot
	for i := 0; i+hour <= s.Len(); i += hour {
		centres = append(centres, knot{float64(i) + hour/2, math.Log(mean(series.Series{Values: s.Values[i : i+hour]}))})
	}
	var residual, difference []float64
	prev := math.NaN()
	for i := hour / 2; i < (len(centres)-1)*hour+hour/2; i++ {
		v := math.Log(s.Values[i]) - at(centres, float64(i)+0.5)
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
	w := &window{trace: Trace{Name: "synthetic", Step: time.Hour}}
	s := series.New(time.Time{}, time.Minute, 2000*60)
	for i, v := range bridges(w, s.Len(), 60, 1) {
		s.Values[i] = 100 * math.Exp(v)
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

func TestBridgesArePinnedAtTheCentres(t *testing.T) {
	// At a step of five minutes a centre is a minute's centre too: only white noise is left there.
	w := &window{trace: Trace{Name: "synthetic", Step: 5 * time.Minute}}
	var pinned, free float64
	n := 50_000
	for i, v := range bridges(w, n, 5, 7) {
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
