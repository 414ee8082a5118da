package backtest

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/forecast/peer"
	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/forecast/score"
	"github.com/springtide/springtide/series"
)

var nan = math.NaN()

func hours(id string, from int, values ...float64) plain.History {
	return plain.History{ID: id, Series: series.Series{Start: time.Unix(int64(from)*3600, 0).UTC(), Step: time.Hour, Values: values}}
}

func count(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(i)
	}
	return out
}

// Fill, resample and the rules for what is a case, against values worked out by hand from their definition.
func TestResampleAndFill(t *testing.T) {
	minutes := series.Series{Start: time.Unix(60, 0).UTC(), Step: time.Minute,
		Values: []float64{1, 2, 3, 4 /* 00:05 */, nan, nan, 7, nan, nan /* 00:10 */, 1, 3, nan, nan, 8, nan}}
	got := resample(minutes, 5*time.Minute)
	// Four of five were measured, then one, then three; the sixteenth minute is one of five, and unknown.
	if d := cmp.Diff([]float64{2.5, nan, 4}, got.Values, cmpopts.EquateNaNs()); d != "" || !got.Start.Equal(time.Unix(0, 0)) {
		t.Errorf("from %v: %s", got.Start, d)
	}
	if d := cmp.Diff([]float64{3, 3, 1, 5, 1, 5}, fill([]float64{nan, nan, 1, 5, nan, nan}, 2)); d != "" {
		t.Error(d)
	}
}

func TestTraces(t *testing.T) {
	p := Protocol{Name: "t", Step: time.Hour, Horizon: 4, History: 40, Origins: 3, Gap: 6, Day: 3}
	gappy := count(60)
	for i := 50; i < 53; i++ {
		gappy[i] = nan // more than 0.3 of what came after the newest origin but one
	}
	coarse := plain.History{ID: "coarse", Series: series.Series{Step: 2 * time.Hour, Values: count(60)}}
	sets := Traces(p, []plain.History{hours("a", 0, count(60)...), coarse, hours("gappy", 0, gappy...), hours("short", 0, count(30)...), hours("flat", 0, make([]float64, 60)...)})
	var got []string
	for _, s := range sets {
		for _, c := range s.Cases {
			got = append(got, c.Series+":"+strings.Repeat("+", s.Origin))
			if c.History.Len() > 40 || len(c.Actual) != 4 || c.Period != 3 {
				t.Errorf("%s: %d before, %d after", c.Series, c.History.Len(), len(c.Actual))
			}
			if c.Series == "a" && (c.History.Values[c.History.Len()-1]+1 != c.Actual[0] || c.Actual[3] != float64(59-6*s.Origin)) {
				t.Errorf("origin %d: history to %v, then %v", s.Origin, c.History.Values[c.History.Len()-1], c.Actual)
			}
		}
	}
	if d := cmp.Diff([]string{"a:", "gappy:", "short:", "a:+", "a:++", "gappy:++"}, got); d != "" {
		t.Error(d)
	}
}

func TestM4(t *testing.T) {
	train, test := []Numbers{{"H1", count(700)}}, []Numbers{{"H1", count(48)}}
	for k, offset := range []int{48, 96, 144, 168, 216, 336} {
		c := M4(train)[k].Cases[0]
		if c.History.Len() != 700-offset || c.Actual[0] != float64(700-offset) || len(c.Actual) != 48 {
			t.Errorf("origin %d: %d values, then %d from %v on", k, c.History.Len(), len(c.Actual), c.Actual[0])
		}
	}
	c := M4Test(train, test)[0].Cases[0]
	if c.History.Len() != 700 || c.Actual[47] != 47 {
		t.Errorf("test part: %d values, then %v", c.History.Len(), c.Actual)
	}
}

func TestRolling(t *testing.T) {
	r := Rolling{Horizon: 10, Stride: 5, Origins: 3, Options: plain.Options{Seasons: []plain.Season{{Steps: 4}}}}
	late := hours("late", 100, count(50)...)   // ends at 150
	early := hours("early", 90, count(57)...)  // ends at 147, so it shares late's origins
	other := hours("other", 0, count(60)...)   // ends at 60
	short := hours("short", 130, count(18)...) // too little before the origins 140 and 135, and too little after 130
	sets, skipped := r.Sets([]plain.History{short, early, other, late, hours("none", 140, nan, nan)})
	type got struct {
		series  string
		origin  int
		before  int
		first   float64
		unknown int
	}
	var all []got
	for _, s := range sets {
		for _, c := range s.Cases {
			g := got{series: c.Series, origin: s.Origin, before: c.History.Len(), first: c.Actual[0]}
			for _, v := range c.Actual {
				if math.IsNaN(v) {
					g.unknown++
				}
			}
			all = append(all, g)
		}
	}
	want := []got{
		{"short", 0, 10, 10, 2}, {"early", 0, 50, 50, 3}, {"late", 0, 40, 40, 0},
		{"early", 1, 45, 45, 0}, {"late", 1, 35, 35, 0},
		{"early", 2, 40, 40, 0}, {"late", 2, 30, 30, 0},
		{"other", 0, 50, 50, 0}, {"other", 1, 45, 45, 0}, {"other", 2, 40, 40, 0},
	}
	if d := cmp.Diff(want, all, cmp.AllowUnexported(got{})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"none: no origin: 0 values are known, and a backtest needs 9 before an origin and half of the 10 after it"}, skipped); d != "" {
		t.Error(d)
	}
}

// Whatever the series, no history of a set reaches past the moment at which another's future begins.
func TestOriginsAreMoments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rolling{Horizon: rapid.IntRange(1, 12).Draw(t, "horizon"), Stride: rapid.IntRange(1, 12).Draw(t, "stride"), Origins: 3,
			Options: plain.Options{Seasons: []plain.Season{{Steps: 2}}}}
		var all []plain.History
		for range rapid.IntRange(1, 6).Draw(t, "n") {
			h := hours("x", rapid.IntRange(0, 30).Draw(t, "from"), count(rapid.IntRange(1, 60).Draw(t, "len"))...)
			h.Start = h.Start.Add(time.Duration(rapid.IntRange(0, 59).Draw(t, "minute")) * time.Minute)
			all = append(all, h)
		}
		sets, _ := r.Sets(all)
		for _, s := range sets {
			first, last := time.Unix(1<<40, 0), time.Unix(0, 0)
			for _, c := range s.Cases {
				if end := c.History.End(); end.After(last) {
					last = end
				}
				// Its future ends a step after its origin at the earliest: a step that began before a common origin ends after it.
				if next := c.History.End().Add(time.Hour); next.Before(first) {
					first = next
				}
			}
			if last.After(first) {
				t.Fatalf("a history reaches %v, the first step of another's future ended at %v", last, first)
			}
		}
	})
}

// models are all forecasters that are measured.
func models() map[string]plain.Forecaster {
	out := map[string]plain.Forecaster{"springtide": plain.Ours}
	for _, p := range peer.All() {
		out[p.Name] = p.Forecast
	}
	return out
}

// Replacing everything at and after an origin changes no digit of any forecast made at it, and no forecaster changes what others see.
func TestNoForecasterLooksAhead(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	tides := func(id string) plain.History {
		h := hours(id, 0, count(24*18)...)
		for i := range h.Values {
			h.Values[i] = 100 + 50*math.Sin(2*math.Pi*float64(i)/24) + 5*r.NormFloat64()
		}
		return h
	}
	rolling := Rolling{Horizon: 24, Stride: 24, Origins: 3}
	truth := []plain.History{tides("a"), tides("b"), tides("c")}
	sets, _ := rolling.Sets(truth)
	for _, s := range sets {
		forged := make([]plain.History, len(truth))
		for i, h := range truth {
			forged[i] = h
			forged[i].Values = slices.Clone(h.Values)
			for j := s.Cases[i].History.Len(); j < h.Len(); j++ {
				forged[i].Values[j] = 1e6 * r.Float64()
			}
		}
		other, _ := rolling.Sets(forged)
		for name, f := range models() {
			want, got := Evaluate(&s, score.Quantiles([]float64{0.9}), f), Evaluate(&other[s.Origin], score.Quantiles([]float64{0.9}), f)
			if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" {
				t.Fatalf("%s sees what comes after origin %d:\n%s", name, s.Origin, d)
			}
			if want[0].Paths == nil {
				t.Errorf("%s: no forecast", name)
			}
		}
	}
	again, _ := rolling.Sets(truth)
	if d := cmp.Diff(sets, again); d != "" {
		t.Errorf("a forecaster changed the histories: %s", d)
	}
}

// Nor do kin: series of one law that help each other, of which one is forged after the origin.
func TestKinDoNotLookAhead(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 8))
	truth := make([]plain.History, 8)
	for i := range truth {
		truth[i] = hours(string(rune('a'+i)), 0, count(24*18)...)
		drift := 0.0
		for j := range truth[i].Values {
			drift = 0.9*drift + 0.2*r.NormFloat64()
			truth[i].Values[j] = 100 * math.Exp(math.Sin(2*math.Pi*float64(j)/24)+drift)
		}
	}
	forged := slices.Clone(truth)
	forged[3].Values = slices.Clone(truth[3].Values)
	for j := len(forged[3].Values) - 24; j < len(forged[3].Values); j++ {
		forged[3].Values[j] = 1e6 * r.Float64()
	}
	rolling := Rolling{Horizon: 24, Stride: 24, Origins: 1}
	sets, _ := rolling.Sets(truth)
	other, _ := rolling.Sets(forged)
	levels := score.Quantiles([]float64{0.9})
	want := Evaluate(&sets[0], levels, plain.Ours)
	if d := cmp.Diff(want, Evaluate(&other[0], levels, plain.Ours), cmpopts.EquateNaNs()); d != "" {
		t.Errorf("kin see what comes after the origin:\n%s", d)
	}
	alone := sets[0]
	alone.Cases = alone.Cases[:1]
	if cmp.Equal(want[:1], Evaluate(&alone, levels, plain.Ours)) {
		t.Error("kin said nothing, so that nothing was shown")
	}
}

// A forecaster that reaches past the end of what it is shown, or writes into it, harms no other.
func TestEvaluateShowsCopies(t *testing.T) {
	s := Set{Horizon: 1, Cases: []Case{{Series: "a", History: hours("a", 0, count(4)[:2]...).Series, Actual: []float64{2}, Period: 1}}}
	Evaluate(&s, []float64{0.5}, func(in plain.Input) []plain.Forecast {
		v := in.Histories[0].Values
		if cap(v) != len(v) {
			t.Errorf("%d values are shown and %d can be reached", len(v), cap(v))
		}
		v[0] = 99
		return []plain.Forecast{{}}
	})
	if s.Cases[0].History.Values[0] != 0 {
		t.Error("a forecaster changed the history")
	}
}

func TestBoard(t *testing.T) {
	set := Set{Horizon: 2, Cases: []Case{
		{Series: "a", History: hours("a", 0, 1, 2, 3, 4).Series, Actual: []float64{4, 4}, Period: 1},
		{Series: "b", History: hours("b", 0, 1, 1, 3, 1).Series, Actual: []float64{1, 1}, Period: 1},
		{Series: "c", History: hours("c", 0, 1, 1, 3, 1).Series, Actual: []float64{1, 1}, Period: 1},
	}}
	levels := []float64{0.5}
	at := func(values ...float64) plain.Forecaster {
		return func(in plain.Input) []plain.Forecast {
			out := make([]plain.Forecast, len(values))
			for i, v := range values {
				if !math.IsNaN(v) {
					out[i].Paths = [][]float64{{v, v}}
				}
			}
			return out
		}
	}
	b := NewBoard(levels, []string{"ours", "theirs"})
	for m, f := range []plain.Forecaster{at(4, 2, 1), at(5, 1, nan)} {
		b.Add(m, &set, Score(&set, levels, levels, Evaluate(&set, levels, f)), 3*time.Second)
	}
	r := b.Result()
	theirs := r.Models[1]
	if theirs.BetterOn != 1 || theirs.ComparedOn != 2 || theirs.Seconds != 1 || theirs.Pooled.Missed != 1 || theirs.Pooled.Forecasts != 2 {
		t.Errorf("%+v", theirs)
	}
	// Ours misses by 0 and 1 of loads 8, 2 and 2; half of twice the pinball loss at the median is the error itself.
	if got := r.Models[0].Pooled.WQL; math.Abs(float64(got)-2.0/12) > 1e-12 {
		t.Errorf("WQL %v, want 2/12", got)
	}
	if r.Models[0].Series[1].Series != "b" || r.Models[0].Series[1].WQL != 1 {
		t.Errorf("%+v", r.Models[0].Series)
	}
}
