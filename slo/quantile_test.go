package slo

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/springtide/springtide/reason"
)

// asks is what each notch asks for of a load whose logarithm has a known deviation: a forecast without a fault.
func asks(mean, deviation, carries float64) (out Asked) {
	for i, q := range Ladder() {
		out[i] = int32(math.Ceil(mean * math.Exp(deviation*distuv.UnitNormal.Quantile(q)) / carries))
	}
	return out
}

func TestRecordLooksAtWhatWasSaidInTime(t *testing.T) {
	same := func(n int32) (out Asked) {
		for i := range out {
			out[i] = n
		}
		return out
	}
	minute := func(i int) time.Time { return epoch.Add(time.Duration(i) * time.Minute) }
	ask := map[int]int32{0: 5, 3: 9, 4: 2, 6: 7, 8: 20}
	var r Record
	for i := range 10 {
		if n, ok := ask[i]; ok {
			r.Ask(minute(i), same(n))
		}
	}
	r.Ask(minute(6).Add(30*time.Second), same(1)) // later in the same minute: the most counts
	for _, c := range []struct {
		at         int
		lead, hold time.Duration
		want       int32
	}{
		{10, 2 * time.Minute, 0, 20},
		{10, 3 * time.Minute, 0, -1}, // nothing was said in that minute
		{10, 4 * time.Minute, 0, 7},
		{10, 3 * time.Minute, 3 * time.Minute, 7},
		{10, 3 * time.Minute, 4 * time.Minute, 9},
		{10, 5 * time.Minute, time.Hour, 9},
		{10, 11 * time.Minute, 0, -1},
		{63, time.Minute, 2 * time.Hour, 20}, // the oldest are forgotten after an hour
		{69, time.Minute, 2 * time.Hour, -1},
	} {
		if got := r.Foreseen(minute(c.at), c.lead, c.hold, 0.95); got != c.want {
			t.Errorf("at %d, lead %v, hold %v: %d, want %d", c.at, c.lead, c.hold, got, c.want)
		}
	}
}

func TestRecordJudgesEachNotch(t *testing.T) {
	// From 10 replicas at p50 to 20 at p99.9; one carries 10.
	var asked Asked
	for i := range asked {
		asked[i] = int32(10 + i)
	}
	for _, c := range []struct {
		name  string
		trial Trial
		bad   int // notches
		known bool
	}{
		{"all carry it", Trial{Minute: at(5, Good), Load: 100, Carries: 10, Ready: 12}, 0, true},
		{"the lower ones do not", Trial{Minute: at(5, Good), Load: 131, Carries: 10, Ready: 16}, 4, true},
		{"it was good with fewer than the capacity says", Trial{Minute: at(5, Good), Load: 131, Carries: 10, Ready: 12},
			2, true},
		{"none does", Trial{Minute: at(5, Bad), Load: 900, Carries: 10, Ready: 12}, Notches, true},
		{"bad for too few, and more would have carried it", Trial{Minute: at(5, Bad), Load: 151, Carries: 10, Ready: 12},
			6, true},
		{"bad, and no size would have cured it", Trial{Minute: at(5, Bad), Load: 100, Carries: 10, Ready: 12}, 0, false},
		{"bad for quota", Trial{Minute: Minute{At: at(5, Bad).At, All: Bad, Cause: Quota}, Load: 151, Carries: 10,
			Ready: 12}, 0, false},
		{"not known", Trial{Minute: at(5, Unknown), Load: 100, Carries: 10, Ready: 12}, 0, false},
		{"a load that is not known", Trial{Minute: at(5, Good), Load: math.NaN(), Carries: 10, Ready: 12}, 0, false},
		{"a capacity that is not known", Trial{Minute: at(5, Good), Load: 100, Ready: 12}, 0, false},
		{"nothing was said in time", Trial{Minute: at(70, Good), Load: 100, Carries: 10, Ready: 12}, 0, false},
	} {
		var r Record
		r.Ask(epoch.Add(3*time.Minute), asked)
		c.trial.Lead = 2 * time.Minute
		r.Try(&c.trial)
		vs, n := r.Verdicts()
		bad := 0
		for i, v := range vs {
			if v.Bad > 0 {
				bad++
			}
			if c.known && v.Replicas != float64(asked[i]) {
				t.Errorf("%s: %v replicas at %v", c.name, v.Replicas, v.Quantile)
			}
		}
		if bad != c.bad || (n == 1) != c.known {
			t.Errorf("%s: bad at %d notches of %d minutes, want %d", c.name, bad, n, c.bad)
		}
	}
}

// TestRecordForgets: four weeks, and each survives a restart.
func TestRecordForgets(t *testing.T) {
	var r Record
	one := Asked{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	play := func(days int, from int) {
		for i := range days * perDay {
			m := at(from*perDay+i, Good)
			r.Ask(m.At, one)
			r.Try(&Trial{Minute: m, Load: 1, Carries: 1, Ready: 1})
		}
	}
	play(40, 0)
	if _, n := r.Verdicts(); n != recordDays*perDay {
		t.Errorf("%d minutes", n)
	}
	back, err := Unmarshal(Marshal(&Account{Record: r}))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r.days, back.Record.days, opts); d != "" || back.Record.first != r.first {
		t.Error(d)
	}
	r.Try(&Trial{Minute: at(0, Good), Load: 1, Carries: 1, Ready: 1})
	if _, n := r.Verdicts(); n != recordDays*perDay {
		t.Errorf("%d minutes with one of the past", n)
	}
	play(1, 200) // after half a year nothing of before counts
	if _, n := r.Verdicts(); n != perDay {
		t.Errorf("%d minutes after half a year", n)
	}
}

// With a forecast that is right, the share of bad minutes at a quantile is what lies above it. The choice then is
// the notch that the objective asks for, which it reaches by a notch a day, and stays there.
func TestChoiceFindsTheNotchOfTheObjective(t *testing.T) {
	for _, c := range []struct{ good, least, most float64 }{
		{0.80, 0.80, 0.90}, {0.95, 0.95, 0.975}, {0.99, 0.99, 0.995}, {0.995, 0.995, 0.999}, {0.5, 0.5, 0.7},
	} {
		rnd := rand.New(rand.NewPCG(3, uint64(c.good*1000)))
		var r Record
		var choice Choice
		moves, last := 0, 0.0
		for day := range 60 {
			asked := asks(1000, 0.3, 10)
			for i := range perDay {
				m := at(day*perDay+i, Good)
				r.Ask(m.At.Add(-time.Minute), asked)
				load := 1000 * math.Exp(0.3*rnd.NormFloat64())
				// The notch in force runs.
				ready := asked[notchOf(max(choice.Quantile, 0.5))]
				if load > float64(ready)*10 {
					m.All, m.Cause = Bad, Forecast
				}
				r.Try(&Trial{Minute: m, Load: load, Carries: 10, Ready: ready, Lead: time.Minute})
			}
			before := choice.Quantile
			choice = Choose(choice, &r, Terms{Now: epoch.Add(time.Duration(day+1) * 24 * time.Hour), Good: c.good,
				Over: DefaultOver})
			if before != 0 && math.Abs(float64(notchOf(before)-notchOf(choice.Quantile))) > 1 {
				t.Fatalf("from %v to %v in a day", before, choice.Quantile)
			}
			if day > 40 && choice.Quantile != last {
				moves++
			}
			if day+1 < leastDays && choice.Why.Code != reason.QuantileLearning {
				t.Fatalf("day %d: %v", day, choice)
			}
			last = choice.Quantile
		}
		if choice.Quantile < c.least || choice.Quantile > c.most {
			t.Errorf("objective %v: %v", c.good, choice)
		}
		if moves > 2 {
			t.Errorf("objective %v: %d moves in the last weeks", c.good, moves)
		}
	}
}

// compared is a record of some days in which so many minutes were bad at each notch, and what no notch could have
// cured.
func compared(days, apart int, bad [Notches]int) Record {
	r := Record{first: 1}
	for range days {
		d := trials{known: perDay}
		for k := range d.cost {
			d.cost[k] = int64(100+k) * perDay
		}
		r.days = append(r.days, d)
	}
	if days > 0 {
		r.days[0].bad, r.days[0].apart = bad, apart
	}
	return r
}

func TestChoose(t *testing.T) {
	now := epoch.Add(100 * 24 * time.Hour)
	at95 := func(ago time.Duration) Choice { return Choice{Quantile: 0.95, Moved: now.Add(-ago)} }
	// 28 days are 40,320 minutes, of which 0.1 % are 40.
	falling := [Notches]int{2000, 1000, 500, 200, 100, 60, 25, 10, 4, 2, 0}
	for _, c := range []struct {
		name   string
		before Choice
		record Record
		terms  Terms
		want   float64
		code   reason.Code
		says   string
	}{
		{"a new service", Choice{}, Record{}, Terms{}, 0.95, reason.QuantileLearning, "0 of 14 days"},
		{"too little is known",
			at95(48 * time.Hour), compared(13, 0, falling),
			Terms{}, 0.95, reason.QuantileLearning, "13 of 14 days"},
		{"the operator's word",
			at95(0), compared(28, 0, falling),
			Terms{Stated: 0.93}, 0.93, reason.QuantileStated, "p93, by spec.forecast.quantile"},
		{"the operator's word while it burns",
			at95(0), compared(28, 0, falling),
			Terms{Stated: 0.5, Burning: true}, 0.5, reason.QuantileStated, "p50"},
		{"the cheapest that keeps it",
			at95(48 * time.Hour), compared(28, 0, falling),
			Terms{}, 0.95, reason.QuantileKeeps,
			"p95 is the cheapest that keeps the objective: 25 bad minutes by its size, where 40"},
		{"one notch down",
			at95(48 * time.Hour), compared(28, 0, [Notches]int{20}),
			Terms{}, 0.90, reason.QuantileFalling, "down to p50, which would have had 20"},
		{"not twice a day",
			at95(23 * time.Hour), compared(28, 0, [Notches]int{20}),
			Terms{}, 0.95, reason.QuantileFalling, ""},
		{"a cheaper one that would only just do",
			Choice{Quantile: 0.975}, compared(28, 0, [Notches]int{99, 99, 99, 99, 99, 99, 39, 2}),
			Terms{}, 0.975, reason.QuantileKeeps, ""},
		{"one notch up",
			at95(25 * time.Hour), compared(28, 0, [Notches]int{300, 300, 300, 300, 300, 300, 50, 45, 30}),
			Terms{}, 0.975, reason.QuantileRising,
			"p97.5 would have had 45 bad minutes by its size, where 40 are allowed: a notch a day up to p99"},
		{"up at once while it burns",
			at95(7 * time.Hour), compared(28, 0, falling),
			Terms{Burning: true}, 0.975, reason.QuantileBurning, "p97.5, as the budget burns"},
		{"not faster than a notch in six hours",
			at95(5 * time.Hour), compared(28, 0, falling),
			Terms{Burning: true}, 0.95, reason.QuantileBurning, ""},
		{"up while it burns and little is known",
			at95(7 * time.Hour), Record{},
			Terms{Burning: true}, 0.975, reason.QuantileBurning, ""},
		{"nothing is left above",
			Choice{Quantile: 0.999}, compared(28, 0, [Notches]int{99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}),
			Terms{Burning: true}, 0.999, reason.QuantileNoneKeeps, "p99.9 would have had 99"},
		{"others use half of it",
			at95(48 * time.Hour), compared(28, 20, falling),
			Terms{}, 0.975, reason.QuantileKeeps, "where 20 are allowed"},
		{"others use all of it: a quarter is left",
			at95(48 * time.Hour), compared(28, 2000, [Notches]int{99, 99, 99, 99, 99, 99, 11, 10}),
			Terms{}, 0.975, reason.QuantileKeeps, ""},
		{"a stated one is over",
			Choice{Quantile: 0.93, Moved: now.Add(-time.Hour)}, compared(28, 0, falling),
			Terms{}, 0.95, reason.QuantileKeeps, ""},
	} {
		c.terms.Now, c.terms.Good, c.terms.Over = now, 0.999, DefaultOver
		got := Choose(c.before, &c.record, c.terms)
		if got.Quantile != c.want || got.Why.Code != c.code || !strings.Contains(got.Why.Text(), c.says) {
			t.Errorf("%s: %v (%s)", c.name, got, got.Why.Code)
		}
		changed := got.Quantile != c.before.Quantile && c.before.Quantile != 0.93 || c.before.Moved.Equal(now)
		if changed != got.Moved.Equal(now) {
			t.Errorf("%s: moved at %v", c.name, got.Moved)
		}
	}
}

// A choice is the same after a restart, and so is none.
func TestChoiceSurvivesARestart(t *testing.T) {
	var none Account
	moved := Account{Choice: Choice{Quantile: 0.99, Moved: epoch, Why: reason.Of(reason.QuantileKeeps, "p99", 3, "40")}}
	for _, a := range []Account{none, moved} {
		back, err := Unmarshal(Marshal(&a))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(a.Choice, back.Choice); d != "" {
			t.Error(d)
		}
	}
}

func TestLadder(t *testing.T) {
	l := Ladder()
	if len(l) != Notches || l[0] != 0.5 || l[Notches-1] != 0.999 {
		t.Errorf("%v", l)
	}
	for i := 1; i < len(l); i++ {
		if share := (1 - l[i]) / (1 - l[i-1]); share < 0.19 || share > 0.81 {
			t.Errorf("from %v to %v", l[i-1], l[i])
		}
		if notchOf(l[i]) != i || notchOf(l[i]-1e-4) != i {
			t.Errorf("notch of %v", l[i])
		}
	}
}
