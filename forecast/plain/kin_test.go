package plain

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/series"
)

// wavy is n histories of hours with a period, each of its own size.
func wavy(n, hours, period int, seed uint64) []History {
	r := rand.New(rand.NewPCG(seed, seed))
	out := make([]History, n)
	for i := range out {
		size, drift := math.Exp(2*r.NormFloat64()), 0.0
		out[i] = History{ID: string(rune('a' + i)), Series: series.New(time.Unix(0, 0).UTC(), time.Hour, hours)}
		for j := range hours {
			drift = 0.9*drift + 0.15*r.NormFloat64()
			out[i].Values[j] = 100 * size * math.Exp(math.Sin(2*math.Pi*float64(j)/float64(period))+drift)
		}
	}
	return out
}

// The earlier lessons of kin are those that the series of an origin teach each other.
func TestKinTaughtBefore(t *testing.T) {
	t.Parallel()
	all := wavy(8, 17*24, 24, 1)
	in := Input{Histories: all, Horizon: 12, Quantiles: []float64{0.5, 0.9}}
	together := Ours(in)
	in.Kin = Teach(all, inOrder)
	for _, i := range []int{0, 3, 7} {
		one := in
		one.Histories = all[i : i+1]
		if d := cmp.Diff(together[i].Paths, Ours(one)[0].Paths); d != "" {
			t.Fatalf("series %d: %s", i, d)
		}
	}
	if m := together[0].Model; !strings.HasSuffix(m, forecast.WithKin) {
		t.Errorf("%s spoke, and kin with it", m)
	}
	alone := in
	alone.Kin, alone.Histories = nil, all[:1]
	if m := Ours(alone)[0].Model; strings.HasSuffix(m, forecast.WithKin) {
		t.Errorf("%s spoke, and nobody taught", m)
	}
	if cmp.Equal(together[0].Paths, Ours(alone)[0].Paths) {
		t.Error("kin changed nothing")
	}
	named := in
	named.Options.Seasons = []Season{{Steps: 24}, {Length: week}}
	if d := cmp.Diff(together, Ours(named)); d != "" {
		t.Errorf("naming the seasons of the step changed the answer:\n%s", d)
	}
	if k := Teach(all[:forecast.LeastKin-1], inOrder); k.of(time.Hour) != nil {
		t.Error("a few series taught")
	}
}

// A period that is neither day nor week is followed once it is named.
func TestSeasonsThatAreNamed(t *testing.T) {
	miss := func(o Options) float64 {
		h := wavy(1, 500, 35, 3)[0]
		known := h
		known.Values = h.Values[:465]
		f := Ours(Input{Histories: []History{known}, Horizon: 35, Quantiles: []float64{0.5}, Options: o})[0]
		sum := 0.0
		for j, v := range f.Paths[0] {
			sum += math.Abs(math.Log(v/h.Values[465+j])) / 35
		}
		return sum
	}
	named, unnamed := miss(Options{Seasons: []Season{{Steps: 35}}}), miss(Options{})
	if !(named < 0.8*unnamed) {
		t.Errorf("misses %v with the season, %v without", named, unnamed)
	}
	if _, err := ParseSeason("35"); err != nil {
		t.Error(err)
	}
}
