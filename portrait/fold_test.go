package portrait

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/series"
)

var (
	nan    = math.NaN()
	monday = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
)

// load makes n values of a service with a day and a week, and noise.
func load(seed uint64, step time.Duration, n int) series.Series {
	r := rand.New(rand.NewPCG(seed, 7))
	s := series.New(monday, step, n)
	for i := range s.Values {
		at := s.Time(i)
		x := 0.8 * math.Sin(2*math.Pi*(float64(at.Hour())+float64(at.Minute())/60-9)/24)
		if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
			x -= 0.4
		}
		s.Values[i] = 500 * math.Exp(x+0.05*r.NormFloat64())
	}
	return s
}

func part(s series.Series, from, to int) series.Series {
	from, to = min(from, s.Len()), min(to, s.Len())
	return series.Series{Start: s.Time(from), Step: s.Step, Values: s.Values[from:to]}
}

// differ names the first place where two values differ by more than within allows; it is a thousand times as fast as cmp.Diff on a portrait.
func differ(at string, a, b reflect.Value) string {
	if t, ok := a.Interface().(time.Time); ok {
		if u := b.Interface().(time.Time); !t.Equal(u) {
			return fmt.Sprintf("%s: %v, %v", at, t, u)
		}
		return ""
	}
	switch a.Kind() {
	case reflect.Float64:
		near, share := 1e-4, 1e-3
		if strings.Contains(at, "Learned") {
			// The weights stop a step before they are exact, and where they stop hangs on the last digits. Values far out make more of it.
			near, share = 0.01, 5e-3
		}
		if judged(at) {
			// A miss on the edge of a judgement falls on the one or the other side as its last digits round. One judgement weighs so much at most.
			near = 1.0 / lately
		}
		if x, y := a.Float(), b.Float(); x != y && math.Abs(x-y) > near+share*math.Abs(x) || math.IsNaN(x) != math.IsNaN(y) {
			return fmt.Sprintf("%s: %v, %v", at, x, y)
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if d := differ(at+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i)); d != "" {
				return d
			}
		}
	case reflect.Slice, reflect.Array:
		if strings.HasSuffix(at, ".Bins") {
			return moved(at, a.Interface().([]float64), b.Interface().([]float64))
		}
		if a.Len() != b.Len() {
			return fmt.Sprintf("%s: lengths %d, %d", at, a.Len(), b.Len())
		}
		for i := range a.Len() {
			if d := differ(fmt.Sprintf("%s[%d]", at, i), a.Index(i), b.Index(i)); d != "" {
				return d
			}
		}
	default:
		if a.Interface() != b.Interface() {
			return fmt.Sprintf("%s: %v, %v", at, a, b)
		}
	}
	return ""
}

// judged reports whether a place holds a share of judgements: each is 0 or 1.
func judged(at string) bool {
	return slices.ContainsFunc([]string{".Lately.Odd", ".Lately.Beaten", ".Lately.Above", ".Lately.Covered"}, func(s string) bool { return strings.HasSuffix(at, s) })
}

// moved names the first bin of two sketches that some count lies more than one bin away from: a miss on the edge of two bins falls into the
// one or the other as its last digits round.
func moved(at string, a, b []float64) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%s: lengths %d, %d", at, len(a), len(b))
	}
	// below[i] is what lies in the bins before i.
	below := func(bins []float64) []float64 {
		out := make([]float64, len(bins)+1)
		for i, n := range bins {
			out[i+1] = out[i] + n
		}
		return out
	}
	x, y := below(a), below(b)
	for i := range x {
		near, all := 0.01+0.05*x[i], 0.01+1e-3*x[i]
		if y[i] < x[max(0, i-1)]-near || y[i] > x[min(len(a), i+1)]+near || i == len(a) && math.Abs(x[i]-y[i]) > all {
			return fmt.Sprintf("%s[%d]: %v up to there, %v", at, i, x[i], y[i])
		}
	}
	return ""
}

// within says how far two portraits of one history may differ: prefix sums that begin elsewhere round elsewhere, and weights settle to
// one part in a hundred thousand.
var within = cmp.Options{cmpopts.EquateApprox(1e-3, 1e-4), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()}

// Folding a history in one piece or in many gives the same portrait, whatever is wrong with the history.
func TestFoldInPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom([]time.Duration{5 * time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "step")
		n := rapid.IntRange(1, 300).Draw(t, "n")
		s := load(rapid.Uint64().Draw(t, "seed"), step, n)
		for range rapid.IntRange(0, 5).Draw(t, "faults") {
			from := rapid.IntRange(0, n-1).Draw(t, "from")
			bad := rapid.SampledFrom([]float64{nan, 0, -1, 1e9, 1e301, math.Inf(1)}).Draw(t, "bad")
			for i := from; i < min(n, from+rapid.IntRange(1, 100).Draw(t, "long")); i++ {
				s.Values[i] = bad
			}
		}
		cpu, ready := series.New(s.Start, step, n), series.New(s.Start, step, n)
		for i, y := range s.Values {
			cpu.Values[i], ready.Values[i] = 0.01*y+0.3, 10
		}
		starts := []time.Duration{20 * time.Second, 30 * time.Second, 25 * time.Second}
		id := fleet.ServiceID(rapid.SampledFrom([]string{"shop/cart", "shop/web", ""}).Draw(t, "service"))
		whole := Fold(Portrait{Service: id}, Batch{Load: s, CPU: cpu, Ready: ready, StartUps: starts}, Options{Step: step})

		p := Portrait{Service: id}
		for at := 0; at < n; {
			next := at + rapid.IntRange(1, n).Draw(t, "piece")
			from := at
			if p.Doubt.Held() {
				from = s.Index(p.End) // what is in quarantine is read again
			}
			b := Batch{Load: part(s, from, next), CPU: part(cpu, from, next), Ready: part(ready, from, next)}
			if p.StartUps == 0 {
				b.StartUps = starts // they are read again as long as all steps of a piece are in doubt
			}
			p = Fold(p, b, Options{Step: step})
			at = next
		}
		if d := differ("portrait", reflect.ValueOf(whole), reflect.ValueOf(p)); d != "" {
			t.Fatalf("in one piece, and in many: %s", d)
		}
	})
}

// A history whose last step is in doubt keeps the start-ups of all the steps before: no later batch has those steps.
func TestFoldKeepsTheStartUpsBeforeADoubt(t *testing.T) {
	s := load(0, 5*time.Minute, 8*288+1)
	s.Values[8*288] *= 0.01
	cpu, ready := series.New(s.Start, s.Step, s.Len()), series.New(s.Start, s.Step, s.Len())
	for i, y := range s.Values {
		cpu.Values[i], ready.Values[i] = 0.01*y+0.3, 10
	}
	starts := []time.Duration{20 * time.Second, 30 * time.Second}
	p := Fold(Portrait{}, Batch{Load: s, CPU: cpu, Ready: ready, StartUps: starts}, Options{})
	if !p.Doubt.Quarantined() {
		t.Fatal("the last step is not in doubt")
	}
	if p.StartUps != 2 {
		t.Errorf("%d start-ups, want 2", p.StartUps)
	}
	from := s.Index(p.End)
	p = Fold(p, Batch{Load: part(s, from, s.Len()), CPU: part(cpu, from, s.Len()), Ready: part(ready, from, s.Len()), StartUps: starts}, Options{})
	if p.StartUps != 2 {
		t.Errorf("%d start-ups after a batch that is in doubt from its first step, want 2", p.StartUps)
	}
}

// A fault that is set aside in hindsight, in the first piece, changes what is learned in the second as if there were but one.
func TestFoldInPiecesAfterAFault(t *testing.T) {
	s := load(0, time.Hour, 73)
	for i := 27; i < 35; i++ {
		s.Values[i] = 0
	}
	whole := Fold(Portrait{}, Batch{Load: s}, Options{Step: s.Step})
	for cut := 48; cut < 73; cut++ {
		p := Fold(Portrait{}, Batch{Load: part(s, 0, cut)}, Options{Step: s.Step})
		p = Fold(p, Batch{Load: part(s, cut, 73)}, Options{Step: s.Step})
		if d := differ("portrait", reflect.ValueOf(whole), reflect.ValueOf(p)); d != "" {
			t.Errorf("in one piece, and in two of %d and %d: %s", cut, 73-cut, d)
		}
	}
}

// Folded samples are not folded again, and the portrait that was given is left as it was.
func TestFoldIsIncrementalAndPure(t *testing.T) {
	s := load(1, 5*time.Minute, 10*288)
	p := Fold(Portrait{Service: "shop/cart"}, Batch{Load: s}, Options{})
	before, err := Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p, Fold(p, Batch{Load: s}, Options{}), within); d != "" {
		t.Errorf("the same batch again changed the portrait:\n%s", d)
	}
	Fold(p, Batch{Load: load(2, 5*time.Minute, 12*288)}, Options{})
	if after, _ := Marshal(p); string(after) != string(before) {
		t.Error("Fold changed the portrait that it was given")
	}
}

func TestFoldTakesFinerSamplesOnWholeStepsOnly(t *testing.T) {
	s := load(1, time.Minute, 288*5+3)
	p := Fold(Portrait{}, Batch{Load: s}, Options{})
	if want := monday.Add(24 * time.Hour); p.Step != 5*time.Minute || !p.End.Equal(want) || p.Quality.Points != 288 {
		t.Fatalf("step %v, end %v, %d points; want 5m, %v, 288", p.Step, p.End, p.Quality.Points, want)
	}
	mean := (s.Values[0] + s.Values[1] + s.Values[2] + s.Values[3] + s.Values[4]) / 5
	if math.Abs(p.Recent.Values[0]-mean) > 1e-9 {
		t.Errorf("first step %v, want the mean %v", p.Recent.Values[0], mean)
	}
}

// A value that comes late is folded when it comes.
func TestFoldWaitsForLateSamples(t *testing.T) {
	s := load(1, 5*time.Minute, 600)
	late := part(s, 0, 600)
	late.Values = append([]float64(nil), s.Values...)
	late.Values[598], late.Values[599] = nan, nan
	p := Fold(Portrait{}, Batch{Load: late}, Options{})
	if !p.End.Equal(s.Time(598)) {
		t.Fatalf("end %v, want %v: the last two values are not there yet", p.End, s.Time(598))
	}
	p = Fold(p, Batch{Load: s}, Options{})
	if d := cmp.Diff(Fold(Portrait{}, Batch{Load: s}, Options{}), p, within); d != "" {
		t.Error(d)
	}
}

func TestFoldYoung(t *testing.T) {
	// The loop begins a service without history like this.
	p := Fold(Portrait{Version: Version, Service: "shop/new", End: monday.Add(10 * time.Minute)}, Batch{}, Options{})
	if p.Quality.Points != 0 || p.Step != 0 || !p.End.Equal(monday.Add(10*time.Minute)) {
		t.Fatalf("an empty batch made %+v", p)
	}
	p = Fold(p, Batch{Load: load(1, 5*time.Minute, 14)}, Options{})
	if p.Quality.Points != 12 || p.Quality.Needed != 576 || p.Service != "shop/new" {
		t.Errorf("%d of %d points of %s, want 12 of 576: what lies before End does not count", p.Quality.Points, p.Quality.Needed, p.Service)
	}
	if want := p.End.Add(564 * 5 * time.Minute); !p.Quality.ReadyAt.Equal(want) || p.Quality.Note == "" {
		t.Errorf("ready at %v (%s), want %v", p.Quality.ReadyAt, p.Quality.Note, want)
	}
}

func TestSignal(t *testing.T) {
	s := load(1, 5*time.Minute, 100)
	none := series.New(monday, 5*time.Minute, 100)
	p := Fold(Portrait{}, Batch{Load: none, CPU: s}, Options{})
	if p.Signal != CPU || p.Quality.Points != 100 {
		t.Fatalf("signal %q with %d points, want cpu with 100", p.Signal, p.Quality.Points)
	}
	more := load(2, 5*time.Minute, 200)
	if q := Fold(p, Batch{Load: more, CPU: more}, Options{}); q.Signal != CPU || q.Quality.Points != 200 {
		t.Errorf("signal %q with %d points: while CPU is there the portrait keeps to it", q.Signal, q.Quality.Points)
	}
	if q := Fold(p, Batch{Load: more}, Options{}); q.Signal != Requests || q.Quality.Points != 100 {
		t.Errorf("signal %q with %d points, want requests from where CPU dried up", q.Signal, q.Quality.Points)
	}
	if q := Fold(Portrait{Version: Version + 1, Service: "a/b", Step: time.Hour, End: monday.Add(time.Hour)}, Batch{CPU: s}, Options{}); q.Quality.Points != 100 || q.Service != "a/b" {
		t.Errorf("a portrait of another version was not learned anew: %+v", q.Quality)
	}
}

func TestSaneAnswers(t *testing.T) {
	t.Parallel()
	const n = 4 * 288
	fill := func(f func(i int) float64) series.Series {
		s := series.New(monday, 5*time.Minute, n)
		for i := range s.Values {
			s.Values[i] = f(i)
		}
		return s
	}
	tests := map[string]series.Series{
		"constant":   fill(func(int) float64 { return 7 }),
		"zero":       fill(func(int) float64 { return 0 }),
		"tiny":       fill(func(i int) float64 { return 1e-300 * float64(1+i%288) }),
		"subnormal":  fill(func(i int) float64 { return math.SmallestNonzeroFloat64 * float64(i%3) }),
		"huge":       fill(func(i int) float64 { return 1e298 * float64(1+i%288) }),
		"too huge":   fill(func(i int) float64 { return math.MaxFloat64 }),
		"infinite":   fill(func(i int) float64 { return math.Inf(1 - 2*(i%2)) }),
		"negative":   fill(func(i int) float64 { return -float64(i) }),
		"nothing":    fill(func(i int) float64 { return nan }),
		"one":        fill(func(i int) float64 { return []float64{nan, 3}[min(1, max(0, i-n+2))] }),
		"sparse":     fill(func(i int) float64 { return []float64{1, 0, 0, 0, 0, 0, nan}[i%7] }),
		"both sizes": fill(func(i int) float64 { return math.Pow(10, float64(i%500)-250) }),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			p := Fold(Portrait{}, Batch{Load: s, CPU: s, Ready: s}, Options{})
			for what, v := range map[string]float64{
				"noise": p.Noise, "fastest fall": p.FastestFalls[0], "score": p.Quality.Score, "peak": p.Peak, "trend": p.Trend,
				"cost": p.CPUPerLoad.Value, "idle": p.CPUIdle.Value,
			} {
				if math.IsNaN(v) || math.IsInf(v, 0) || what != "trend" && v < 0 {
					t.Errorf("%s is %v", what, v)
				}
			}
			if p.FastestFalls[0] > 1 || p.Quality.Score > 1 {
				t.Errorf("fall %v, score %v", p.FastestFalls[0], p.Quality.Score)
			}
			if b, err := Marshal(p); err != nil {
				t.Error(err)
			} else if _, err := Unmarshal(b); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestQualityCounts(t *testing.T) {
	s := load(1, 5*time.Minute, 8*288)
	s.Values[100], s.Values[101], s.Values[102] = nan, -3, 1e305
	for i := 6 * 288; i < 6*288+5; i++ {
		s.Values[i] = 0 // a deployment that went wrong
	}
	q := Fold(Portrait{}, Batch{Load: s}, Options{}).Quality
	if q.Gaps != 1 || q.Resets != 1 || q.Outliers != 6 || q.Points != 8*288-8 {
		t.Errorf("%d gaps, %d resets, %d outliers, %d points; want 1, 1, 6, %d", q.Gaps, q.Resets, q.Outliers, q.Points, 8*288-8)
	}
	if !(q.Score > 0.99 && q.Score < 1) || q.Note != "" || !q.ReadyAt.IsZero() || !q.LastSample.Equal(s.End()) {
		t.Errorf("%+v", q)
	}
}

// Hours of zeros, or of nothing, must leave the portrait of a normal day standing.
func TestOutageIsNotLearned(t *testing.T) {
	t.Parallel()
	whole := load(1, 5*time.Minute, 10*288)
	normal := Fold(Portrait{}, Batch{Load: whole}, Options{})
	for name, bad := range map[string]float64{"zeros": 0, "gap": nan, "a trickle": 2} {
		s := part(whole, 0, whole.Len())
		s.Values = append([]float64(nil), whole.Values...)
		for i := 9*288 + 120; i < 9*288+180; i++ {
			s.Values[i] = bad
		}
		p := Fold(Portrait{}, Batch{Load: s}, Options{})
		if p.FastestFalls[0] > normal.FastestFalls[0]+0.01 {
			t.Errorf("%s: the fall of %v is taken for normal, history has %v", name, p.FastestFalls[0], normal.FastestFalls[0])
		}
		for i, v := range p.Learned.Week.Slots {
			if d := math.Abs(v - normal.Learned.Week.Slots[i]); d > 0.2 {
				t.Errorf("%s: slot %d of the week moved by %v", name, i, d)
				break
			}
		}
		if i := p.Recent.Index(s.Time(9*288 + 150)); !math.IsNaN(p.Recent.Values[i]) {
			t.Errorf("%s: kept %v as a load", name, p.Recent.Values[i])
		}
	}
}

// A service that was switched off for good is believed in the end.
func TestFallThatLastsIsBelieved(t *testing.T) {
	s := load(1, 5*time.Minute, 12*288)
	for i := 10 * 288; i < s.Len(); i++ {
		s.Values[i] = 0
	}
	p := Fold(Portrait{}, Batch{Load: s}, Options{})
	if p.Learned.SetAside != 72 && p.Quality.Outliers != 72 || p.Level != 0 {
		t.Errorf("%d values set aside, level %v; want six hours' worth, and nothing", p.Quality.Outliers, p.Level)
	}
}

func TestFastestFall(t *testing.T) {
	flat := func(step time.Duration, per int) series.Series {
		s := series.New(monday, step, 3*per)
		for i := range s.Values {
			s.Values[i] = 100
		}
		return s
	}
	five := flat(5*time.Minute, 288)
	for i := 400; i < 440; i++ {
		five.Values[i] = 60
	}
	five.Values[500] = 1000 // a lone spike is no level to fall from
	p := Fold(Portrait{}, Batch{Load: five}, Options{})
	for n, f := range p.FastestFalls {
		if math.Abs(f-0.4) > 0.02 {
			t.Errorf("%d minutes: %v, want 0.4: what it fell by in five minutes and kept, it has fallen by in %d too", 5*(n+1), f, 5*(n+1))
		}
	}
	one := flat(time.Minute, 1440)
	for i := 2000; i < 2300; i++ {
		one.Values[i] = 100 - 5*float64(min(i-2000, 10)) // 5 a minute: a quarter in five minutes, half in ten
	}
	p = Fold(Portrait{}, Batch{Load: one}, Options{Step: time.Minute})
	for n, want := range [...]float64{25.0 / 75, 0.5, 0.5} {
		if math.Abs(p.FastestFalls[n]-want) > 0.02 {
			t.Errorf("%d minutes: %v, want %v", 5*(n+1), p.FastestFalls[n], want)
		}
	}
	// An outage of an hour and a half teaches nothing; a fall to where the load was yesterday does, though the load rises again.
	for name, c := range map[string]struct{ yesterday, want float64 }{"an outage": {100, 0}, "a habit": {40, 0.6}} {
		s := flat(5*time.Minute, 288)
		for i := range 18 {
			s.Values[300+i], s.Values[300+288+i] = c.yesterday, 40
		}
		if p := Fold(Portrait{}, Batch{Load: s}, Options{}); math.Abs(p.FastestFalls[0]-c.want) > 0.02 {
			t.Errorf("%s: %v, want %v", name, p.FastestFalls[0], c.want)
		}
	}
}

func TestPeakIsOfTheLastSevenDays(t *testing.T) {
	s := load(1, 5*time.Minute, 10*288)
	for i := range 8 { // shorter crowds are not learned
		s.Values[288+i], s.Values[4*288+5+i] = 9000, 8000
	}
	p := Fold(Portrait{}, Batch{Load: part(s, 0, 5*288)}, Options{})
	if p.Peak != 9000 || !p.PeakAt.Equal(s.Time(288+7)) {
		t.Errorf("peak %v at %v, want 9000", p.Peak, p.PeakAt)
	}
	p = Fold(p, Batch{Load: s}, Options{})
	if p.Peak != 8000 || !p.PeakAt.Equal(s.Time(4*288+5+7)) {
		t.Errorf("peak %v at %v, want 8000: the larger one is eight days old", p.Peak, p.PeakAt)
	}
}

func TestLevelAndTrend(t *testing.T) {
	s := series.New(monday, time.Hour, 14*24)
	for i := range s.Values {
		s.Values[i] = 1000 + 2*float64(i) + 300*math.Sin(2*math.Pi*float64(i%24)/24)
	}
	p := Fold(Portrait{}, Batch{Load: s}, Options{Step: time.Hour})
	if want := 1000 + 2*(13*24+11.5); math.Abs(p.Level-want) > 1e-6 || math.Abs(p.Trend-2) > 1e-9 {
		t.Errorf("level %v, trend %v; want %v and 2 a step", p.Level, p.Trend, want)
	}
}

func TestStartUps(t *testing.T) {
	var p Portrait
	for i := range 10 {
		var b Batch
		for j := range 10 {
			b.StartUps = append(b.StartUps, time.Duration(10*i+j+1)*time.Second)
		}
		p = Fold(p, b, Options{})
	}
	p = Fold(p, Batch{StartUps: []time.Duration{0, -time.Second}}, Options{})
	// The newest 64 are 37 s .. 100 s.
	if want := [3]time.Duration{68 * time.Second, 94 * time.Second, 100 * time.Second}; p.StartUp != want || p.StartUps != 100 {
		t.Errorf("%v of %d, want %v of 100", p.StartUp, p.StartUps, want)
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	s := load(3, 5*time.Minute, 5*288)
	cpu, ready := series.New(monday, s.Step, s.Len()), series.New(monday, s.Step, s.Len())
	for i, y := range s.Values {
		ready.Values[i] = 8 + float64(i%5)
		cpu.Values[i] = 0.2*ready.Values[i] + 0.004*y*(1+0.02*r.NormFloat64())
		if i%40 == 7 {
			cpu.Values[i] += 5 // a deployment warms its caches
		}
	}
	p := Fold(Portrait{}, Batch{Load: s, CPU: cpu, Ready: ready}, Options{})
	if !p.CPUPerLoad.OK || math.Abs(p.CPUPerLoad.Value-0.004) > 0.0003 || !p.CPUIdle.OK || math.Abs(p.CPUIdle.Value-0.2) > 0.03 {
		t.Errorf("cost %+v, idle %+v; want 0.004 and 0.2", p.CPUPerLoad, p.CPUIdle)
	}
	alone := Fold(Portrait{}, Batch{Load: s, CPU: cpu}, Options{})
	if !alone.CPUPerLoad.OK || alone.CPUIdle.OK {
		t.Errorf("without replicas the cost is %+v and idle %+v; want known and unknown", alone.CPUPerLoad, alone.CPUIdle)
	}
	if q := Fold(Portrait{}, Batch{Load: s}, Options{}); q.CPUPerLoad.OK {
		t.Error("a cost without CPU")
	}
	held := series.New(monday, s.Step, s.Len())
	for i, y := range s.Values { // a scaler that holds the load of a replica constant leaves no slope to see
		held.Values[i], cpu.Values[i] = y/50, 0.01*y
	}
	if q := Fold(Portrait{}, Batch{Load: s, CPU: cpu, Ready: held}, Options{}); math.Abs(q.CPUPerLoad.Value-0.01) > 1e-4 || q.CPUIdle.Value > 1e-3 {
		t.Errorf("constant load by replica: cost %v, idle %v; want 0.01 and 0", q.CPUPerLoad.Value, q.CPUIdle.Value)
	}
}

func TestCapacityPerReplica(t *testing.T) {
	two := fleet.Resources{CPU: 2000}
	cost := func(per, idle float64) Portrait {
		return Portrait{Signal: Requests, CPUPerLoad: fleet.KnownAt(per, monday), CPUIdle: fleet.KnownAt(idle, monday)}
	}
	tests := []struct {
		name string
		p    Portrait
		r    fleet.Resources
		util float64
		want float64 // 0: unknown
	}{
		{"cpu", Portrait{Signal: CPU}, two, 0.6, 1.2},
		{"requests", cost(0.01, 0), two, 0.6, 120},
		{"less the idle share", cost(0.01, 0.2), two, 0.6, 100},
		{"idle alone is too much", cost(0.01, 1.3), two, 0.6, 0},
		{"cost unknown", Portrait{Signal: Requests}, two, 0.6, 0},
		{"no request", cost(0.01, 0), fleet.Resources{}, 0.6, 0},
		{"no utilisation", Portrait{Signal: CPU}, two, nan, 0},
	}
	for _, tt := range tests {
		got := CapacityPerReplica(tt.p, tt.r, tt.util)
		if got.OK != (tt.want > 0) || math.Abs(got.Value-tt.want) > 1e-9 {
			t.Errorf("%s: %+v, want %v", tt.name, got, tt.want)
		}
	}
}
