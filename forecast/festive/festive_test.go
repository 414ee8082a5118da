package festive

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/forecast/calendar"
	"github.com/springtide/springtide/series"
)

// monday is the first hour of the synthetic histories.
var monday = time.Date(2025, 1, 6, 0, 0, 0, 0, time.UTC)

// on is a day of a name, a number of days after monday.
func on(name string, kind calendar.Kind, n int) calendar.Day {
	return calendar.Day{Name: name, Kind: kind, From: monday.AddDate(0, 0, n), To: monday.AddDate(0, 0, n+1)}
}

// service is some days of a load with a day, a weekend and noise, times what its days do.
func service(seed uint64, days int, lift func(at time.Time) float64) series.Series {
	r := rand.New(rand.NewPCG(seed, 11))
	s := series.New(monday, time.Hour, days*24)
	for i := range s.Values {
		at := s.Time(i)
		x := 0.7 * math.Sin(2*math.Pi*float64(at.Hour()-9)/24)
		if w := at.Weekday(); w == time.Saturday || w == time.Sunday {
			x -= 0.5
		}
		s.Values[i] = 400 * math.Exp(x+0.04*r.NormFloat64()) * lift(at)
	}
	return s
}

// during multiplies on the days given, which differ by hour.
func during(days []calendar.Day, factor func(hour int) float64) func(time.Time) float64 {
	return func(at time.Time) float64 {
		for _, d := range days {
			if !at.Before(d.From) && at.Before(d.To) {
				return factor(at.Hour())
			}
		}
		return 1
	}
}

func treble(int) float64 { return 3 }

// evening is a feast that empties the morning and fills the evening.
func evening(hour int) float64 {
	if hour >= 18 {
		return 4
	}
	return 0.5
}

func ordinary(time.Time) float64 { return 1 }

// factorAt is what is expected at a time, as a factor; 1 where nothing is.
func factorAt(e *Effects, days []calendar.Day, kin *Kin, at time.Time) float64 {
	l := e.Expect(days, kin)
	if d, log := l.day(at); d != nil {
		return math.Exp(log)
	}
	return 1
}

// A festival that was seen twice is expected for the third time, each hour by itself, within a seventh, and the day within a twentieth; the
// day after next is left alone.
func TestKnownLiftIsRecovered(t *testing.T) {
	days := []calendar.Day{on("Feast", calendar.Own, 40), on("Feast", calendar.Own, 82), on("Feast", calendar.Own, 121)}
	for name, factor := range map[string]func(int) float64{"sale": treble, "evening": evening} {
		e := Learn(Effects{}, service(3, 120, during(days, factor)), days)
		off := 0.0
		for h := range 24 {
			at := days[2].From.Add(time.Duration(h) * time.Hour)
			got := factorAt(&e, days, nil, at)
			off += math.Log(got/factor(h)) / 24
			if !(math.Abs(math.Log(got/factor(h))) <= 0.15) {
				t.Errorf("%s: hour %d is expected × %.3f, it does × %.3f", name, h, got, factor(h))
			}
			if got := factorAt(&e, days, nil, at.AddDate(0, 0, 2)); got != 1 {
				t.Errorf("%s: two days after it, hour %d is lifted by %v", name, h, got)
			}
		}
		if math.Abs(off) > 0.05 {
			t.Errorf("%s: the day is off by a factor of %.3f", name, math.Exp(off))
		}
	}
}

// A holiday that looks like a Sunday does so on whatever weekday it falls.
func TestHolidaysResembleSundays(t *testing.T) {
	asSunday := func(days []calendar.Day) func(time.Time) float64 {
		return func(at time.Time) float64 {
			w := at.Weekday()
			if during(days, treble)(at) == 1 || w == time.Saturday || w == time.Sunday {
				return 1
			}
			return math.Exp(-0.5)
		}
	}
	// A Wednesday, a Friday, a Saturday and a Thursday, then a Sunday and a Monday.
	var days []calendar.Day
	for i, n := range []int{44, 60, 75, 108, 132, 140} {
		days = append(days, on(fmt.Sprint("Holiday ", i), calendar.Holiday, n))
	}
	e := Learn(Effects{}, service(5, 125, asSunday(days)), days)
	for i, want := range map[int]float64{4: 1, 5: math.Exp(-0.5)} {
		if got := factorAt(&e, days, nil, days[i].From.Add(12*time.Hour)); math.Abs(math.Log(got/want)) > 0.12 {
			t.Errorf("a holiday on a %v is expected × %.3f, want × %.3f", days[i].From.Weekday(), got, want)
		}
	}
}

// A service that never saw a festival expects what its kin saw, and its own sight of it comes to outweigh theirs.
func TestKin(t *testing.T) {
	days := []calendar.Day{on("Feast", calendar.Own, 60), on("Feast", calendar.Own, 125)}
	var kin []Effects
	for i := range uint64(5) {
		kin = append(kin, Learn(Effects{}, service(10+i, 120, during(days, treble)), days))
	}
	young := service(20, 120, ordinary)
	young = young.Since(monday.AddDate(0, 0, 70))
	e := Learn(Effects{}, young, days)
	if len(e.Seen) != 0 {
		t.Fatalf("a service that is younger than the feast saw %+v", e.Seen)
	}
	noon := days[1].From.Add(12 * time.Hour)
	if got := factorAt(&e, days, nil, noon); got != 1 {
		t.Errorf("without kin a feast that was never seen is expected × %v", got)
	}
	if got := factorAt(&e, days, Pool(kin), noon); math.Abs(math.Log(got/3)) > 0.15 {
		t.Errorf("kin trebled, and it is expected × %.3f", got)
	}
	if got := factorAt(&e, days, Pool(kin[:leastKin-1]), noon); got != 1 {
		t.Errorf("%d kin are too few, and yet × %.3f is expected", leastKin-1, got)
	}
	own := Learn(Effects{}, service(21, 120, during(days, func(int) float64 { return 1.2 })), days)
	alone, beside := factorAt(&own, days, nil, noon), factorAt(&own, days, Pool(kin), noon)
	if !(alone < beside && beside < 2) {
		t.Errorf("a service that saw × 1.2 expects × %.3f by itself and × %.3f beside kin that trebled", alone, beside)
	}
	// The pool does not depend on who comes first.
	back := slices.Clone(kin)
	slices.Reverse(back)
	a, b := Pool(kin), Pool(back)
	if x, y := factorAt(&e, days, a, noon), factorAt(&e, days, b, noon); math.Abs(x-y) > 1e-9 {
		t.Errorf("× %v, and × %v with the kin in another order", x, y)
	}
}

// Nothing is learned of days that are to come, or of what comes after the history: the same history gives the same bytes.
func TestNoLookAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := []calendar.Day{on("Feast", calendar.Own, 30), on("Feast", calendar.Own, 70), on("Feast", calendar.Own, 95)}
		s := service(rapid.Uint64().Draw(t, "seed"), 110, during(days, treble))
		end := rapid.IntRange(20*24, 100*24).Draw(t, "end")
		other := series.Series{Start: s.Start, Step: s.Step, Values: slices.Clone(s.Values)}
		for i := end; i < len(other.Values); i++ {
			other.Values[i] = rapid.SampledFrom([]float64{0, 1e6, math.NaN()}).Draw(t, "after")
		}
		s.Values, other.Values = s.Values[:end:end], other.Values[:end:end]
		a, b := Learn(Effects{}, s, days), Learn(Effects{}, other, days)
		if x, y := text(t, a), text(t, b); x != y {
			t.Fatalf("the values after the history show:\n%s\n%s", x, y)
		}
		for _, o := range a.Seen {
			if last := monday.AddDate(0, 0, (end-1)/24); int64(o.Day)*86400 > last.Unix() {
				t.Fatalf("%s of day %d was seen in a history that ends on %v", o.Name, o.Day, last)
			}
		}
	})
}

func text(t interface{ Fatal(...any) }, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A series without the day, or whose history holds none of it, stays as it is to the bit.
func TestOrdinaryDaysAreLeftAlone(t *testing.T) {
	s := service(7, 90, ordinary)
	for name, days := range map[string][]calendar.Day{"no days": nil, "days to come": {on("Feast", calendar.Own, 100)}} {
		e := Learn(Effects{}, s, days)
		l := e.Expect(days, nil)
		paths := [][]float64{{1, 2, 3}, {2, 3, 4}}
		l.Apply(monday.AddDate(0, 0, 100), time.Hour, []float64{0.5, 0.9}, paths)
		if d := cmp.Diff([][]float64{{1, 2, 3}, {2, 3, 4}}, paths); d != "" {
			t.Errorf("%s: paths changed:\n%s", name, d)
		}
		if d := cmp.Diff(s.Values, e.Clean(s, days, nil).Values); d != "" {
			t.Errorf("%s: the history changed:\n%s", name, d)
		}
	}
}

// Taking days out of a history and learning again finds nothing unusual in them.
func TestClean(t *testing.T) {
	days := []calendar.Day{on("Feast", calendar.Own, 40), on("Feast", calendar.Own, 82)}
	s := service(3, 120, during(days, evening))
	e := Learn(Effects{}, s, days)
	cleaned := e.Clean(s, days, nil)
	again := Learn(Effects{}, cleaned, days)
	for _, o := range again.Seen {
		if m := math.Sqrt(square(o.Log)); o.Name == "Feast" && o.Kind == calendar.Own && m > 0.1 {
			t.Errorf("day %d still is off by %.3f", o.Day, m)
		}
	}
	for i := range s.Values {
		if n := i / 24; n != 39 && n != 40 && n != 41 && n != 81 && n != 82 && n != 83 && s.Values[i] != cleaned.Values[i] {
			t.Fatalf("hour %d of ordinary day %d was changed from %v to %v", i%24, n, s.Values[i], cleaned.Values[i])
		}
	}
}

// Learning piece by piece from the newest weeks remembers what lies before them, and no more of a name than its newest occurrences.
func TestLearnInPieces(t *testing.T) {
	var days []calendar.Day
	for i := range 5 {
		days = append(days, on("Feast", calendar.Own, 60+70*i))
	}
	s := service(9, 400, during(days, treble))
	var e Effects
	for day := 100; day <= 400; day += 25 {
		e = Learn(e, series.Series{Start: s.Start, Step: s.Step, Values: s.Values[:day*24]}.Since(monday.AddDate(0, 0, day-95)), days)
	}
	var got []int
	for _, o := range e.Seen {
		if o.Kind == calendar.Own {
			got = append(got, o.Day-dayNumber(monday))
		}
	}
	if d := cmp.Diff([]int{200, 270, 340}, got); d != "" {
		t.Errorf("occurrences kept: %s", d)
	}
	var back Effects
	if err := json.Unmarshal([]byte(text(t, e)), &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(e, back); d != "" {
		t.Errorf("stored and read again: %s", d)
	}
	if n := len(text(t, e)); n > 8<<10 {
		t.Errorf("nine occurrences take %d bytes", n)
	}
}

// Whatever the history, what is said stays finite, non-negative, in order, and within the bounds of what one day may promise.
func TestWhatIsSaidIsSane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := calendar.Kinds()
		var days []calendar.Day
		for i := range rapid.IntRange(1, 6).Draw(t, "days") {
			days = append(days, on(fmt.Sprint("Day ", rapid.IntRange(0, 2).Draw(t, "name")), kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")],
				10*i+rapid.IntRange(0, 9).Draw(t, "on")))
		}
		s := service(rapid.Uint64().Draw(t, "seed"), 56, ordinary)
		for range rapid.IntRange(0, 4).Draw(t, "faults") {
			from := rapid.IntRange(0, s.Len()-1).Draw(t, "from")
			bad := rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), 1e-300, 1e300, -1}).Draw(t, "bad")
			for i := from; i < min(s.Len(), from+rapid.IntRange(1, 300).Draw(t, "long")); i++ {
				s.Values[i] = bad
			}
		}
		e := Learn(Effects{}, s, days)
		text(t, e) // no number that JSON cannot hold
		kin := Pool([]Effects{e, e, e})
		quantiles := []float64{0.05, 0.5, 0.9, 0.99}
		paths, before := make([][]float64, 4), make([][]float64, 4)
		for range 240 {
			y := 0.0
			for i := range paths {
				y += rapid.SampledFrom([]float64{0, 1, 1e-9, 40, 1e200}).Draw(t, "y")
				paths[i], before[i] = append(paths[i], y), append(before[i], y)
			}
		}
		l := e.Expect(days, kin)
		l.Apply(monday.AddDate(0, 0, 50), time.Hour, quantiles, paths)
		for j := range paths[0] {
			for i := range paths {
				y := paths[i][j]
				if !(y >= 0) || math.IsInf(y, 0) || i > 0 && y < paths[i-1][j] {
					t.Fatalf("step %d: %v became %v, %v, %v, %v", j, y, paths[0][j], paths[1][j], paths[2][j], paths[3][j])
				}
			}
			if median := before[1][j]; paths[1][j] > (median+e.Shift)*50*(1+1e-9)+1e-9 {
				t.Fatalf("step %d: a median of %v became %v", j, median, paths[1][j])
			}
		}
		for i, y := range e.Clean(s, days, kin).Values {
			if math.IsInf(y, 0) && !math.IsInf(s.Values[i], 0) || math.IsNaN(y) != math.IsNaN(s.Values[i]) {
				t.Fatalf("value %d: %v was cleaned to %v", i, s.Values[i], y)
			}
		}
	})
}

// A lifted tide names its days and keeps the ordinary tide next to it; one that no day touches is the same.
func TestLift(t *testing.T) {
	days := []calendar.Day{on("Feast", calendar.Own, 40), on("Feast", calendar.Own, 82), on("Feast", calendar.Own, 121)}
	e := Learn(Effects{}, service(3, 120, during(days, treble)), days)
	tide := forecast.Tide{Start: days[2].From.Add(-2 * time.Hour), Step: time.Hour, Quantiles: []float64{0.5, 0.9},
		Paths: [][]float64{{100, 100, 100, 100}, {110, 110, 110, 110}}}
	l := e.Expect(days, nil)
	got := l.Lift(tide)
	// The eve is known as well, and does next to nothing.
	if len(got.Days) != 2 || got.Days[0].Name != "eve of Feast" || got.Days[1].Name != "Feast" || got.Days[1].Kin ||
		math.Abs(got.Days[0].Factor-1) > 0.2 || math.Abs(got.Days[1].Factor/3-1) > 0.2 {
		t.Fatalf("days %+v", got.Days)
	}
	if m := got.Paths[0]; math.Abs(m[0]/100-1) > 0.05 || math.Abs(m[3]/300-1) > 0.1 || !(got.Paths[1][3] > m[3]) {
		t.Errorf("paths %v", got.Paths)
	}
	if d := cmp.Diff(tide.Paths, got.Ordinary); d != "" {
		t.Errorf("the ordinary tide changed: %s", d)
	}
	planned := got.Planned(days[2].From, days[2].To)
	if planned.Paths[0][2] != 100 || planned.Paths[0][1] != got.Paths[0][1] || len(planned.Days) != 1 || got.Paths[0][2] == 100 {
		t.Errorf("planned: %v of %+v", planned.Paths, planned.Days)
	}
	tide.Start = monday
	if d := cmp.Diff(tide, l.Lift(tide)); d != "" {
		t.Errorf("an ordinary tide: %s", d)
	}
}
