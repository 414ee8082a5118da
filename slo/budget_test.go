package slo

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

var opts = cmp.Options{cmp.AllowUnexported(Account{}, Budget{}, Record{}, hour{}, tally{}, trials{}),
	cmpopts.EquateEmpty()}

const week = 7 * 24 * time.Hour

// at is a minute of the state, so many after the epoch.
func at(minute int, s State) Minute {
	m := Minute{At: epoch.Add(time.Duration(minute) * time.Minute), All: s, Names: []string{"latency-p99", "cpu"},
		States: []State{s, Good}}
	if s == Bad {
		m.Cause = Forecast
	}
	return m
}

// diary is a budget as anyone would write it: all minutes, one by one.
type diary struct {
	minutes map[int64]Minute
	newest  int64
}

func (d *diary) within(n int64) Count {
	var c Count
	for m := d.newest - n + 1; m <= d.newest; m++ {
		if x, ok := d.minutes[m]; ok {
			c.add(x.All)
		}
	}
	return c
}

// TestBudgetAgreesWithADiary compares sums, burns and what levels and causes have with those of all minutes kept one
// by one.
func TestBudgetAgreesWithADiary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		over := time.Duration(rapid.IntRange(7, 12).Draw(t, "days")) * 24 * time.Hour
		var b Budget
		d := diary{minutes: map[int64]Minute{}}
		now, begin := rapid.IntRange(0, 3000).Draw(t, "begin"), int64(-1)
		for range rapid.IntRange(1, 12).Draw(t, "runs") {
			now += rapid.SampledFrom([]int{0, 0, 1, 7, 59, 60, 61, 500, 3000}).Draw(t, "gap")
			state := State(rapid.IntRange(0, 2).Draw(t, "state"))
			names := rapid.SampledFrom([][]string{{"cpu"}, {"errors", "latency-p99"}, {"latency-p99"}}).Draw(t, "names")
			for range rapid.SampledFrom([]int{1, 3, 60, 240, 3000}).Draw(t, "length") {
				m := Minute{At: epoch.Add(time.Duration(now) * time.Minute), All: state, Names: names, States: make([]State,
					len(names))}
				if state == Bad {
					m.States[0], m.Cause = Bad, Cause(1+now%int(causes-1))
				}
				b.Add(m, over)
				if begin < 0 {
					begin = minuteOf(m.At)
				}
				d.newest = minuteOf(m.At)
				for k := d.newest - 1; k >= begin; k-- { // what was passed over is unknown
					if _, ok := d.minutes[k]; ok {
						break
					}
					d.minutes[k] = Minute{}
				}
				d.minutes[d.newest] = m
				now++
			}
		}
		// The window ends with the running hour.
		inHours := func(hours int64) int64 { return (hours-1)*60 + d.newest%60 + 1 }
		if got, want := b.Sum(), d.within(inHours(int64(over/time.Hour))); got != want {
			t.Fatalf("sum %+v, want %+v", got, want)
		}
		for _, w := range BurnWindows() {
			n := int64(w / time.Minute)
			if n > recentFor {
				n = inHours(int64(w / time.Hour))
			}
			c := d.within(n)
			got := b.Burn(w, 0.99)
			if c.Good+c.Bad == 0 {
				if got.OK {
					t.Fatalf("a burn of %v over %v, of which nothing is known", got.Value, w)
				}
				continue
			}
			want := float64(c.Bad) / math.Max(float64(c.Good+c.Bad), w.Minutes()/2) * 100
			if !got.OK || math.Abs(got.Value-want) > 1e-6 {
				t.Fatalf("burn %v over %v, want %v", got, w, want)
			}
		}
		checkNamed(t, &b, &d)
		back, err := Unmarshal(Marshal(&Account{Budget: b}))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(&b, &back.Budget, opts); d != "" {
			t.Fatal(d)
		}
	})
}

// checkNamed compares what levels and causes have with the diary, from the day on in which the window begins.
func checkNamed(t *rapid.T, b *Budget, d *diary) {
	levels, byCause := map[string]int{}, map[string]int{}
	for m, x := range d.minutes {
		if x.All == Bad && floorDiv(m, perDay) >= floorDiv(minuteOf(b.Since()), perDay) {
			levels[x.Names[0]]++
			byCause[x.Cause.String()]++
		}
	}
	for _, n := range b.ByLevel() {
		if n.Bad != levels[n.Name] {
			t.Fatalf("level %s: %d, want %d", n.Name, n.Bad, levels[n.Name])
		}
		delete(levels, n.Name)
	}
	for _, n := range b.ByCause() {
		if n.Bad != byCause[n.Name] {
			t.Fatalf("cause %s: %d, want %d", n.Name, n.Bad, byCause[n.Name])
		}
		delete(byCause, n.Name)
	}
	if len(levels)+len(byCause) > 0 {
		t.Fatalf("left out: %v, %v", levels, byCause)
	}
}

func TestBudgetFigures(t *testing.T) {
	var b Budget
	if b.Met().OK || b.Burn(time.Hour, 0.99).OK || !b.Since().IsZero() || math.Abs(b.Left(0.99, week)-100.8) > 1e-9 {
		t.Error("an empty budget")
	}
	for i := range 1000 {
		s := Good
		if i >= 995 {
			s = Bad
		}
		b.Add(at(i, s), DefaultOver)
	}
	b.Add(at(500, Bad), DefaultOver) // not newer
	if got := b.Met(); got != fleet.KnownAt(0.995, epoch.Add(1000*time.Minute)) {
		t.Errorf("met %v", got)
	}
	// 0.5 % of 28 days are 201.6 minutes.
	if got := b.Left(DefaultGood, DefaultOver); math.Abs(got-196.6) > 1e-9 {
		t.Errorf("left %v", got)
	}
	for _, c := range []struct {
		window time.Duration
		want   float64
	}{
		{5 * time.Minute, 1 / 0.005}, {30 * time.Minute, 5. / 30 / 0.005}, {time.Hour, 5. / 60 / 0.005}, {6 * time.Hour,
			5. / 360 / 0.005},
		{24 * time.Hour, 5. / 1000 / 0.005},
		{72 * time.Hour, 5. / 2160 / 0.005}, // 1000 minutes are less than half of it
	} {
		if got := b.Burn(c.window, DefaultGood); math.Abs(got.Value-c.want) > 1e-9 {
			t.Errorf("burn over %v: %v, want %v", c.window, got.Value, c.want)
		}
	}
	if d := cmp.Diff([]Named{{"Forecast", 5}}, b.ByCause()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Named{{"latency-p99", 5}, {"cpu", 0}}, b.ByLevel()); d != "" {
		t.Error(d)
	}
}

// One bad minute of a service that was measured for three is no burn that wakes an operator.
func TestBurnOfAYoungService(t *testing.T) {
	var b Budget
	for i, s := range []State{Good, Bad, Good} {
		b.Add(at(i, s), DefaultOver)
	}
	if got := b.Burn(time.Hour, DefaultGood).Value; got >= 14.4 {
		t.Errorf("a burn of %v", got)
	}
}

// The form of 28 days has at most 3 KB whatever happened in them, and a tenth of it for a service that is seldom bad.
func TestBudgetIsSmall(t *testing.T) {
	names := []string{"latency-p50", "latency-p90", "latency-p99", "latency-p99.9", "errors", "throughput", "backlog",
		"cpu", "memory", "gpu"}
	fill := func(f func(i int) Minute) []byte {
		var b Budget
		for i := range 29 * perDay {
			b.Add(f(i), DefaultOver)
		}
		w := &writer{}
		w.budget(&b)
		return w.buf
	}
	r := rand.New(rand.NewPCG(1, 1))
	wild := fill(func(i int) Minute {
		m := Minute{At: epoch.Add(time.Duration(i) * time.Minute), All: State(r.IntN(3)), Names: names,
			Cause: Cause(1 + r.IntN(int(causes-1)))}
		for range names {
			m.States = append(m.States, State(r.IntN(3)))
		}
		return m
	})
	if len(wild) > 3<<10 {
		t.Errorf("%d bytes of the wildest service", len(wild))
	}
	calm := fill(func(i int) Minute {
		if i%5000 == 17 {
			return at(i, Bad)
		}
		return at(i, Good)
	})
	if len(calm) > 300 {
		t.Errorf("%d bytes of a calm service", len(calm))
	}
}

// A form that is damaged anywhere is refused or read, and never read as nonsense.
func TestDamagedForms(t *testing.T) {
	var a Account
	for i := range 4000 {
		a.Budget.Add(at(i, State((i/7)%3)), DefaultOver)
		a.Record.Ask(at(i, Good).At, Asked{1, 2, 3})
		a.Record.Try(&Trial{Minute: at(i, Good), Load: 10, Carries: 4, Ready: 3, Lead: time.Minute, Hold: time.Minute})
	}
	a.Choice = Choose(a.Choice, &a.Record, Terms{Now: epoch, Good: 0.99, Over: DefaultOver})
	form := Marshal(&a)
	for i := range form {
		if _, err := Unmarshal(form[:i]); err == nil {
			t.Fatalf("%d of %d bytes were read", i, len(form))
		}
	}
	if _, err := Unmarshal(append(form, 0)); err == nil {
		t.Error("a byte too many was read")
	}
	for i := range form {
		for bit := range 8 {
			damaged := append([]byte{}, form...)
			damaged[i] ^= 1 << bit
			checkSound(t, damaged)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	var a Account
	f.Add(Marshal(&a))
	for i := range 200 {
		a.Budget.Add(at(i*7, State(i%3)), DefaultOver)
	}
	f.Add(Marshal(&a))
	f.Fuzz(func(t *testing.T, form []byte) { checkSound(t, form) })
}

// checkSound reads a form. The account of a form that is read can be used, and its sums are no nonsense.
func checkSound(t *testing.T, form []byte) {
	a, err := Unmarshal(form)
	if err != nil {
		return
	}
	b := &a.Budget
	if sum := b.Sum(); sum.Good < 0 || sum.Bad < 0 || sum.Unknown < 0 || sum.Known()+sum.Unknown > (mostHours+1)*perHour {
		t.Fatalf("a sum of %+v", sum)
	}
	for _, w := range BurnWindows() {
		if x := b.Burn(w, 0.99); x.OK && !(x.Value >= 0 && x.Value <= 101) {
			t.Fatalf("a burn of %v", x.Value)
		}
	}
	b.Add(Minute{At: b.Until().Add(time.Minute), All: Bad, Names: []string{"x"}, States: []State{Bad}, Cause: Room},
		DefaultOver)
	a.Record.Try(&Trial{Minute: at(0, Good), Load: 1, Carries: 1})
	a.Record.Verdicts()
}

func TestRestore(t *testing.T) {
	now := epoch.Add(30*time.Hour + 20*time.Minute)
	hours := func(bad ...int) []Hour {
		var out []Hour
		for i, n := range bad {
			out = append(out, Hour{At: epoch.Add(time.Duration(i) * time.Hour), Good: 60 - n, Bad: n})
		}
		return out
	}
	t.Run("a store that was lost", func(t *testing.T) {
		var b Budget
		b.Restore(hours(0, 5, 0, 70), now, DefaultOver)
		if got, want := b.Sum(), (Count{Good: 175, Bad: 65, Unknown: 26*60 + 20}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if !b.Since().Equal(epoch) {
			t.Errorf("since %v", b.Since())
		}
		b.Add(Minute{At: now, All: Good, Names: []string{"cpu"}, States: []State{Good}}, DefaultOver)
		if got := b.Sum(); got.Good != 176 {
			t.Errorf("after another minute: %+v", got)
		}
		if d := cmp.Diff([]Named{{"Unwatched", 65}}, b.ByCause()); d != "" {
			t.Error(d)
		}
		if back, err := Unmarshal(Marshal(&Account{Budget: b})); err != nil || !cmp.Equal(b, back.Budget, opts) {
			t.Errorf("%v: %s", err, cmp.Diff(b, back.Budget, opts))
		}
	})
	t.Run("only what is not known", func(t *testing.T) {
		var b Budget
		for i := range 60 {
			b.Add(at(60+i, Bad), DefaultOver)
		}
		b.Add(at(30*60, Good), DefaultOver)
		b.Restore(hours(0, 5, 9), now, DefaultOver)
		if got, want := b.Sum(), (Count{Good: 60 + 51 + 1, Bad: 60 + 9, Unknown: 27 * 60}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
	t.Run("nothing older than the window, nothing to come", func(t *testing.T) {
		var b Budget
		old := Hour{At: now.Add(-8 * 24 * time.Hour), Good: 60}
		ahead := Hour{At: now.Add(2 * time.Hour), Good: 60}
		b.Restore([]Hour{old, ahead}, now, week)
		if got := b.Sum(); got.Known() != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("no record", func(t *testing.T) {
		var b Budget
		if b.Restore(nil, now, DefaultOver); !b.Empty() {
			t.Error("something was made of nothing")
		}
	})
}

// A budget that is restored from hours has the sums of the minutes, without their causes.
func TestRestoreBringsBackTheSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var whole Budget
		var record []Hour
		start := rapid.IntRange(0, 500).Draw(t, "start")
		for i := range rapid.IntRange(1, 4000).Draw(t, "minutes") {
			m := at(start+i, State((i/(1+start))%3))
			whole.Add(m, week)
			hour := m.At.Truncate(time.Hour)
			if n := len(record); n == 0 || !record[n-1].At.Equal(hour) {
				record = append(record, Hour{At: hour})
			}
			switch h := &record[len(record)-1]; m.All {
			case Good:
				h.Good++
			case Bad:
				h.Bad++
			}
		}
		var b Budget
		b.Restore(record, whole.Until(), week)
		got, want := b.Sum(), whole.Sum()
		if got.Good != want.Good || got.Bad != want.Bad {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}
