package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var nan = math.NaN()

func TestCycleOf(t *testing.T) {
	for _, tt := range []struct {
		step time.Duration
		want Cycle
	}{
		{time.Minute, Cycle{1440, 10080}},
		{5 * time.Minute, Cycle{288, 2016}},
		{7 * time.Minute, Cycle{206, 1442}},
		{time.Hour, Cycle{24, 168}},
		{6 * time.Hour, Cycle{4, 28}},
		{12 * time.Hour, Cycle{14, 0}},
		{24 * time.Hour, Cycle{7, 0}},
		{7 * 24 * time.Hour, Cycle{}},
		{0, Cycle{}},
	} {
		if got := CycleOf(tt.step); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.step, got, tt.want)
		}
	}
}

func TestHorizons(t *testing.T) {
	for _, tt := range []struct {
		step time.Duration
		want []int
	}{
		{5 * time.Minute, []int{1, 2, 6, 12, 36, 144, 288, 576}},
		{time.Hour, []int{1, 2, 3, 12, 24, 48}},
		{24 * time.Hour, []int{1, 2, 3, 7, 14}},
	} {
		if d := cmp.Diff(tt.want, Horizons(CycleOf(tt.step))); d != "" {
			t.Errorf("%v: %s", tt.step, d)
		}
	}
}

func TestChooseTransform(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []float64
		want Transform
	}{
		{"clear of zero", []float64{120, 80, 100}, Transform{Least: 2}},
		{"with zeros", []float64{0, 120, 0, 80, 100}, Transform{Shift: 10, Least: 10}},
		{"near zero", []float64{1, 120, 80, 100, 90}, Transform{Shift: 9, Least: 9}},
		{"nothing positive", []float64{0, 0}, Transform{Shift: 1, Least: 1, Blank: true}},
	} {
		if got := choose(tt.in); math.Abs(got.Shift-tt.want.Shift) > 1e-12 || math.Abs(got.Least-tt.want.Least) > 1e-12 || got.Blank != tt.want.Blank {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestTransformComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1e-300, 1e300)), 1, 30).Draw(t, "values")
		tr := choose(slices.Clone(v))
		for _, y := range v {
			if tr.Blank {
				continue
			}
			// A shift hides what is far below it.
			if back := tr.Back(tr.Forward(y)); math.Abs(back-y) > 1e-12*(y+tr.Shift) {
				t.Fatalf("%v came back as %v under %+v", y, back, tr)
			}
		}
	})
}

func TestHistoryMeans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.OneOf(rapid.Just(nan), rapid.Float64Range(-5, 5)), 0, 40).Draw(t, "x")
		h := newHistory(History{}, 0, 0, 0)
		for _, v := range x {
			h.push(v, v)
		}
		from, to := rapid.IntRange(-3, 42).Draw(t, "from"), rapid.IntRange(-3, 42).Draw(t, "to")
		sum, n, want := 0.0, 0, nan
		if from >= 0 && to <= len(x) && from < to {
			for _, v := range x[from:to] {
				if !math.IsNaN(v) {
					sum, n = sum+v, n+1
				}
			}
			if n > 0 && 2*n >= to-from {
				want = sum / float64(n)
			}
		}
		if got := h.mean(from, to); !(math.Abs(got-want) < 1e-9) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("mean of [%d, %d) of %v is %v, want %v", from, to, x, got, want)
		}
	})
}

// The quantiles of the sketch lie in the bin of the true ones.
func TestSketchQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(-5, 5), 50, 400).Draw(t, "misses")
		q := rapid.Float64Range(0.05, 0.95).Draw(t, "q")
		var s Sketch
		for _, x := range v {
			s.add(x, 1e12) // practically no decay
		}
		slices.Sort(v)
		n := float64(len(v))
		rank := n * (0.5 + (q-0.5)*(1+1/n))
		lo, _ := edges(binOf(v[max(0, int(math.Ceil(rank-1e-6))-1)]))
		_, hi := edges(binOf(v[min(len(v)-1, int(math.Floor(rank+1e-6)))]))
		if got := s.Quantile(q); got < lo-1e-9 || got > hi+1e-9 {
			t.Fatalf("quantile %v is %v, want it in [%v, %v]", q, got, lo, hi)
		}
	})
}

func TestSketchForgets(t *testing.T) {
	var s Sketch
	for range 1000 {
		s.add(1, 100)
	}
	if n := s.Count(); math.Abs(n-100) > 2 {
		t.Errorf("a memory of 100 holds %v samples", n)
	}
	for range 300 {
		s.add(-0.01, 100)
	}
	if q := s.Quantile(0.5); math.Abs(q+0.01) > 0.003 {
		t.Errorf("median %v after 300 samples of -0.01, want about that", q)
	}
	s.fade(10)
	if n := s.Count(); math.Abs(n-10) > 1e-6 {
		t.Errorf("faded to %v samples, want 10", n)
	}
	for range 100_000 { // the running unit is brought down many times
		s.add(0.5, 100)
	}
	if n := s.Count(); math.Abs(n-100) > 2 || s.Unit > 1e7 || math.Abs(s.Quantile(0.5)-0.5) > 0.1 {
		t.Errorf("%v samples, unit %v, median %v", n, s.Unit, s.Quantile(0.5))
	}
	if s := (Sketch{}); !math.IsNaN(s.Quantile(0.5)) || s.Count() != 0 {
		t.Error("an empty sketch has a median")
	}
}

func TestBins(t *testing.T) {
	for _, v := range []float64{0, 1e-5, -1e-5, 1.1e-5, -1, 0.3, 9, -9} {
		if lo, hi := edges(binOf(v)); v < lo-1e-12 || v > hi+1e-12 {
			t.Errorf("%v is not in its bin [%v, %v]", v, lo, hi)
		}
	}
	for _, v := range []float64{math.Inf(1), 1e300, math.Inf(-1)} {
		if b := binOf(v); b != 0 && b != sketchBins-1 {
			t.Errorf("%v is in bin %d", v, b)
		}
	}
}

// Independent errors of unlike size: minimum variance weighs by inverse variance (Bates, Granger 1969), here with a pull of 0.5 · 0.5 = 0.25 towards
// their sixth powers. With d = 24 other members of variance 2 the lean is 4096 to 1, and the optimum, by hand, w = (c + 0.25·least)/0.75 for the
// member of variance 0.5 and (c + 0.25·rest)/2.25 for the others, where c makes their sum one.
func TestWeighByInverseVariance(t *testing.T) {
	b := newBlock()
	b.Scores = 1e9
	for i := range members {
		b.Errors[entry(i, i)] = 2
	}
	b.Errors[entry(lagLong, lagLong)] = 0.5
	for range 20 {
		b.weigh()
	}
	const d = members - 1
	least := 4096 / (4096.0 + d)
	rest := 1 / (4096.0 + d)
	c := (1 - 0.25*least/0.75 - d*0.25*rest/2.25) / (1/0.75 + d/2.25)
	for i, w := range b.Weights {
		want := (c + 0.25*rest) / 2.25
		if i == lagLong {
			want = (c + 0.25*least) / 0.75
		}
		if math.Abs(w-want) > 1e-3 {
			t.Fatalf("member %d weighs %v, want %v", i, w, want)
		}
	}
}

// Nothing that weigh may choose is better than what it chooses.
func TestWeighIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBlock()
		b.Spoke = kinBits
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		for range 60 {
			e, f := r.NormFloat64(), r.NormFloat64()
			var said [members]float64
			for i := range said {
				said[i] = e + float64(i%5)*f/4 + 0.3*r.NormFloat64()
			}
			b.Scores++
			b.learn(0, &said, 1/b.Scores, 1)
		}
		for range 30 {
			b.weigh()
		}
		mean, least := 0.0, math.Inf(1)
		for i := range members {
			mean, least = mean+b.Errors[entry(i, i)]/members, min(least, b.Errors[entry(i, i)])
		}
		lean := b.lean(mean)
		cost := func(w []float64) float64 {
			v := quadratic(b.Errors, w)
			for i := range w {
				v += ridge * (least + 1e-3*mean) * (w[i] - lean[i]) * (w[i] - lean[i])
			}
			return v
		}
		best, sum := cost(b.Weights), 0.0
		for _, w := range b.Weights {
			if sum += w; w < 0 {
				t.Fatalf("weight %v", w)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("weights sum to %v", sum)
		}
		from, to := rapid.IntRange(0, members-1).Draw(t, "from"), rapid.IntRange(0, members-1).Draw(t, "to")
		other := slices.Clone(b.Weights)
		other[from], other[to] = 0, other[to]+other[from]
		if c := cost(other); from != to && c < best*(1-1e-4) {
			t.Fatalf("all of member %d's weight on %d costs %v, less than %v", from, to, c, best)
		}
	})
}

// Two members with opposite errors cancel out: together they beat either, which weights by single errors would not see.
func TestWeighUsesHowErrorsGoTogether(t *testing.T) {
	b := newBlock()
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		e, noise := r.NormFloat64(), 0.01*r.NormFloat64()
		var said [members]float64
		for i := range said {
			said[i] = 2 * r.NormFloat64()
		}
		said[lagShort], said[phases] = e+noise, -e+noise
		b.Scores++
		b.learn(0, &said, 1/b.Scores, 1)
	}
	for range 100 {
		b.weigh()
	}
	if w, v := b.Weights[lagShort], b.Weights[phases]; w+v < 0.6 || w < 0.2 || v < 0.2 {
		t.Errorf("weights %v", b.Weights)
	}
}

func TestProfile(t *testing.T) {
	c := CycleOf(5 * time.Minute)
	p := newProfile(c)
	if p.Width != 3 || len(p.Slots) != 672 {
		t.Fatalf("width %d, %d slots", p.Width, len(p.Slots))
	}
	wave := func(i int64) float64 { return math.Sin(2 * math.Pi * float64(mod(i, 2016)) / 2016) }
	for i := int64(-500); i < 4*2016; i++ {
		p.learn(i, c, wave(i), 0.1)
	}
	for i := int64(0); i < 2016; i++ {
		if d := math.Abs(p.at(i, c) - wave(i)); d > 0.01 {
			t.Fatalf("slot of step %d is off by %v", i, d)
		}
	}
	// A wild week moves a slot by no more than its clip allows.
	before := p.at(7, c)
	p.learn(7, c, 1000, 0.1)
	if d := p.at(7, c) - before; !(d > 0 && d <= clip*0.1/profileMemory) {
		t.Errorf("one wild sample moved its slot by %v", d)
	}
	for _, w := range []struct {
		n      int
		before int64
	}{{1, 5}, {6, 4}, {36, 2016}, {288, -77}, {2016, 100}} {
		sum := 0.0
		for i := range w.n {
			sum += p.at(w.before-int64(i)-1, c)
		}
		if got, want := p.mean(w.n, w.before, c), sum/float64(w.n); math.Abs(got-want) > 1e-9 {
			t.Errorf("mean of %d slots before %d is %v, want %v", w.n, w.before, got, want)
		}
	}
	if q := newProfile(Cycle{Short: 7}); !math.IsNaN(q.at(3, Cycle{Short: 7})) || !math.IsNaN(q.mean(3, 3, Cycle{Short: 7})) {
		t.Error("a series without a long period has a weekly profile")
	}
}

func TestTemper(t *testing.T) {
	b := newBlock()
	b.Miss = 0.1
	b.Stray[lagLong-lagShort] = Usual{Mean: 0.2, N: 100}
	b.Stray[profiled-lagShort] = Usual{Mean: 0.2, N: 5}
	var said [members]float64
	said[lagLong], said[profiled], said[lastValue] = 3, 3, 3
	b.temper(&said, 50)
	if want := reach*0.2 + 0.1; math.Abs(said[lagLong]-want) > 1e-12 {
		t.Errorf("a member that strays by 3 was kept at %v, want %v from its anchor", said[lagLong], want)
	}
	if said[profiled] != 3 || said[lastValue] != 3 {
		t.Errorf("members without enough precedent, or without an anchor, were moved: %v, %v", said[profiled], said[lastValue])
	}
}

// learned returns a learner that has seen the values at a step, from a Monday on.
func learned(step time.Duration, values []float64) *Learner {
	s := NewState(step)
	l := s.Open(nil, int64(4*24*time.Hour/step), nil, len(values)) // 5 January 1970 was a Monday
	for _, v := range values {
		l.Observe(v)
	}
	return l
}

// A load in other units is learned alike from the first day on: in the transformed space all members say the same but for the unit.
func TestUnitsDoNotMatter(t *testing.T) {
	values := tide(9)
	for i := 2000; i < 2040; i++ {
		values[i] = 0 // an outage leaves a hole
	}
	small := make([]float64, len(values))
	for i, y := range values {
		small[i] = math.Ldexp(y, -20)
	}
	for _, n := range []int{300, 2 * 288, 2016, len(values)} {
		a, b := learned(5*time.Minute, values[:n]), learned(5*time.Minute, small[:n])
		for k := range a.Blocks {
			for e, v := range a.Blocks[k].Errors {
				if w := b.Blocks[k].Errors[e]; math.Abs(v-w) > 1e-3*(1+math.Abs(v)) {
					t.Fatalf("%d values, block %d, errors %d: %v, in other units %v", n, k, e, v, w)
				}
			}
		}
	}
}

// Half a day of the first week on which load fell to a quarter is not forecast for the second week, though the second week was like the first
// ever since.
func TestFallOfTheFirstWeekIsNotForecast(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	values := make([]float64, 13*96)
	for i := range values {
		values[i] = 90 * math.Exp(0.02*r.NormFloat64())
		if at := float64(i) / 96; at >= 6.1 && at < 6.6 {
			values[i] *= 0.28
		}
	}
	path := learned(15*time.Minute, values).Project(1, 96, []float64{0.5})[0]
	for j, y := range path {
		if y < 65 {
			t.Fatalf("%d steps ahead %.0f, where only an accident ever was below 80", j+1, y)
		}
	}
}

// A series that repeats itself exactly is forecast exactly, and the members of its season get the weight.
func TestExactRepetition(t *testing.T) {
	for _, tt := range []struct {
		name   string
		step   time.Duration
		period int
		n      int
	}{
		{"day", time.Hour, 24, 8 * 24}, {"week", time.Hour, 168, 8 * 168}, {"five minutes", 5 * time.Minute, 288, 9 * 288}, {"week of days", 24 * time.Hour, 7, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 5))
			shape := make([]float64, tt.period)
			for i := range shape {
				shape[i] = 100 * math.Exp(0.7*math.Sin(2*math.Pi*float64(i)/float64(tt.period))+0.1*r.NormFloat64())
			}
			values := make([]float64, tt.n)
			for i := range values {
				values[i] = shape[i%tt.period]
			}
			got := learned(tt.step, values).Project(1, 2*tt.period, []float64{0.5})[0]
			worst := 0.0
			for j, v := range got {
				worst = max(worst, math.Abs(v/shape[(tt.n+j)%tt.period]-1))
			}
			if worst > 0.06 {
				t.Errorf("off by up to %.1f %%", 100*worst)
			}
		})
	}
}

func TestProjectIsOfOneOrigin(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	values := make([]float64, 30*24)
	for i := range values {
		values[i] = 50 * math.Exp(math.Sin(2*math.Pi*float64(i)/24)+0.1*r.NormFloat64())
	}
	q := []float64{0.1, 0.5, 0.9}
	l := learned(time.Hour, values)
	near, late := l.Project(1, 60, q), l.Project(13, 48, q)
	for i := range q {
		if d := cmp.Diff(near[i][12:], late[i]); d != "" {
			t.Errorf("quantile %v: a later start is not the same path cut off: %s", q[i], d)
		}
	}
	// Gaps at the end are time that passed.
	for range 12 {
		l.Note(nan)
	}
	if d := cmp.Diff(late, l.Project(1, 48, q)); d != "" {
		t.Errorf("after twelve gaps: %s", d)
	}
}

func TestOutage(t *testing.T) {
	day := make([]float64, 24)
	for i := range day {
		day[i] = 100 + 90*math.Sin(2*math.Pi*float64(i)/24) // 10 .. 190
	}
	values := slices.Concat(day, day, day)
	tests := []struct {
		name string
		y    float64
		seen int // values seen before it
		kept bool
	}{
		{"zero at the crest", 0, 78, false},
		{"an eighth of the crest", day[6] / 8, 78, false},
		{"a deep fall, still a load", 0.3 * day[6], 78, true},
		{"zero on the second day", 0, 30, true},
		{"the ebb itself", day[18], 90, true},
	}
	for _, tt := range tests {
		l := learned(time.Hour, slices.Concat(values, day)[:tt.seen])
		if got := l.Observe(tt.y); got != tt.kept {
			t.Errorf("%s: kept %v, want %v", tt.name, got, tt.kept)
		}
	}
	l := learned(time.Hour, slices.Concat(values, day[:6]))
	aside := 0
	for range 12 {
		if !l.Observe(0) {
			aside++
		}
	}
	if aside != 6 {
		t.Errorf("%d hours of zeros set aside before they are believed, want 6", aside)
	}
}

func TestLaplaceAndPinball(t *testing.T) {
	// Closed forms: ln(2q) below the middle, -ln(2(1-q)) above.
	for _, tt := range []struct{ got, want float64 }{
		{laplace(0.5), 0}, {laplace(0.9), 1.6094379124341003}, {laplace(0.1), -1.6094379124341003}, {laplace(0.99), 3.912023005428146},
		{pinball(0.9, 2), 1.8}, {pinball(0.9, -2), 0.2},
	} {
		if math.Abs(tt.got-tt.want) > 1e-12 {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}
}

// The first value of the published generator with seed 0.
func TestScatter(t *testing.T) {
	if got := scatter(0); got != 0xe220a8397b1dcdaf {
		t.Errorf("got %#x", got)
	}
}

func TestBandPrefersTheCheaperSpace(t *testing.T) {
	var multiplicative, additive Band
	r := rand.New(rand.NewPCG(9, 9))
	tr, none := Transform{Least: 1e-9}, windowCuts{}
	feed := func(b *Band, miss func(f float64) float64) {
		for i := range 4000 {
			f := math.Log(100) + 1.5*math.Sin(float64(i)/40)
			y := max(miss(math.Exp(f)), 1e-6)
			if i > 500 {
				b.compare(tr, judged{f: f, y: y, level: 100, windows: &none}, 100, spreadMemory)
			}
			b.Log.add(math.Log(y)-f, 1000)
			b.Raw.add((y-math.Exp(f))/100, 1000)
			if i%72 == 0 {
				b.recut()
			}
		}
	}
	feed(&multiplicative, func(f float64) float64 { return f * math.Exp(0.2*r.NormFloat64()) })
	feed(&additive, func(f float64) float64 { return f + 4*r.NormFloat64() })
	if m, a := multiplicative.logShare(), additive.logShare(); !(m > 0.6 && a < 0.4) {
		t.Errorf("log space has %.2f of the say where misses multiply, %.2f where they add", m, a)
	}
	if (&Band{}).logShare() != 0.5 {
		t.Error("without losses both spaces have half of the say")
	}
}

func TestCheckRefusesWhatDoesNotFit(t *testing.T) {
	s := NewState(time.Hour)
	if err := s.Check(time.Hour); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*State){
		"another cycle":    func(s *State) { s.Cycle.Long = 7 },
		"a missing block":  func(s *State) { s.Blocks = s.Blocks[1:] },
		"a short profile":  func(s *State) { s.Week.Slots = s.Week.Slots[1:] },
		"few weights":      func(s *State) { s.Blocks[0].Weights = s.Blocks[0].Weights[1:] },
		"a sum of two":     func(s *State) { s.Blocks[0].Weights[0] += 1 },
		"no number":        func(s *State) { s.Blocks[0].Weights[0] = nan },
		"few coefficients": func(s *State) { s.Blocks[0].Ridge = []float64{1} },
		"wild smoothing":   func(s *State) { s.Raw = Smoothing{Level: 0.9, Day: 0.9} },
		"a small sketch":   func(s *State) { s.Blocks[0].Band.Log.Bins = make([]float64, 3) },
	} {
		bad := s.Clone()
		spoil(&bad)
		if bad.Check(time.Hour) == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if s.Check(time.Minute) == nil {
		t.Error("a state of an hour was accepted at a minute")
	}
}

func TestBandCorrectsItsTail(t *testing.T) {
	for _, tt := range []struct {
		name string
		held Usual
		q    float64
		want float64
	}{
		{"no record", Usual{}, 0.9, 0.9},
		{"as it should", Usual{Mean: 0.9, N: 1000}, 0.99, 0.99},
		{"too narrow", Usual{Mean: 0.86, N: 100}, 0.9, 0.92},    // half trusted: 0.4 · 0.5 of the tail
		{"too wide", Usual{Mean: 0.94, N: 100}, 0.9, 0.89},      // and half believed
		{"far too narrow", Usual{Mean: 0, N: 1e9}, 0.99, 0.995}, // at most half of the tail
		{"the lower half", Usual{Mean: 0.5, N: 1e9}, 0.1, 0.1},
	} {
		b := Band{Held: tt.held}
		if got := b.corrected(tt.q); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
