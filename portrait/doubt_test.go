package portrait

import (
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/series"
)

// heldDays is the history before the fall.
const heldDays = 9

// foldOn folds a history as a controller does: every five minutes what is newer than the portrait, up to a time.
func foldOn(p Portrait, b Batch, to time.Time, o Options) Portrait {
	for at := p.End.Add(o.step()); !at.After(to); at = at.Add(o.step()) {
		cut := func(s series.Series) series.Series {
			from, end := max(0, s.Index(p.End)), s.Index(at)
			return series.Series{Start: s.Time(from), Step: s.Step, Values: s.Values[from:end]}
		}
		p = Fold(p, Batch{Load: cut(b.Load), CPU: cut(b.CPU), Ready: cut(b.Ready), PodsReady: b.PodsReady}, o)
	}
	return p
}

// fallen is a history whose requests and CPU are changed from the tenth day's noon on for a while.
func fallen(length time.Duration, requests func(y float64) float64, cpu func(requests, cpu float64) float64) (b Batch, fall time.Time) {
	b.Load = load(3, defaultStep, (heldDays+3)*int(day/defaultStep))
	n := b.Load.Len()
	b.CPU, b.Ready, b.PodsReady = series.New(b.Load.Start, defaultStep, n), series.New(b.Load.Start, defaultStep, n), 10
	fall = b.Load.Start.Add(heldDays*day + 12*time.Hour)
	for i := range n {
		y := b.Load.Values[i]
		// The replicas go with the tide, so that a line of costs can be drawn.
		b.Ready.Values[i] = 10
		b.CPU.Values[i] = 0.01*y + 10*0.3
		if at := b.Load.Time(i); !at.Before(fall) && at.Before(fall.Add(length)) {
			b.Load.Values[i] = requests(y)
			b.CPU.Values[i] = cpu(b.Load.Values[i], b.CPU.Values[i])
		}
	}
	return b, fall
}

func hundredth(y float64) float64 { return 0.01 * y }

// A fall that nothing confirms is held, its samples are in quarantine, and where the load comes back nothing was learned of it.
func TestAFaultyFallIsNeverLearned(t *testing.T) {
	t.Parallel()
	for name, cpu := range map[string]func(requests, cpu float64) float64{
		"a proxy that divides all by a hundred": func(_, cpu float64) float64 { return 0.01 * cpu },
		"a counter of requests alone":           func(_, cpu float64) float64 { return cpu },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, fall := fallen(time.Hour, hundredth, cpu)
			before := foldOn(Fold(Portrait{}, upTo(b, fall.Add(-day)), Options{}), b, fall, Options{})
			if !before.Doubt.Since.IsZero() {
				t.Fatalf("a fall is held before there is one: %+v", before.Doubt)
			}
			during := foldOn(before, b, fall.Add(50*time.Minute), Options{})
			if !during.Doubt.Held() || !during.Doubt.Since.Equal(fall) || !during.End.Equal(fall) {
				t.Fatalf("fifty minutes on: hold %+v, folded up to %s, the fall was at %s", during.Doubt, during.End, fall)
			}
			if age := fall.Add(50 * time.Minute).Sub(during.Quality.LastSample); age > 0 {
				t.Errorf("the newest sample is said to be %s old", age)
			}
			stored, err := Marshal(during)
			if err != nil {
				t.Fatal(err)
			}
			restarted, err := Unmarshal(stored)
			if err != nil || restarted.Doubt != during.Doubt {
				t.Fatalf("stored and loaded: %+v, %v", restarted.Doubt, err)
			}
			for _, p := range []Portrait{during, restarted, before} {
				after := foldOn(p, b, fall.Add(2*time.Hour), Options{})
				if !after.Doubt.Since.IsZero() || !after.End.Equal(fall.Add(2*time.Hour)) {
					t.Fatalf("the load is back for an hour: hold %+v, folded up to %s", after.Doubt, after.End)
				}
				if after.FastestFalls[0] > before.FastestFalls[0] {
					t.Errorf("the fastest fall was %.3f and is %.3f: the fault was learned", before.FastestFalls[0], after.FastestFalls[0])
				}
				for at := fall; at.Before(fall.Add(time.Hour)); at = at.Add(defaultStep) {
					if y := after.Recent.At(at); !math.IsNaN(y) {
						t.Fatalf("%v of %s was folded", y, at)
					}
				}
			}
		})
	}
}

func upTo(b Batch, end time.Time) Batch {
	cut := func(s series.Series) series.Series {
		s.Values = s.Values[:s.Index(end)]
		return s
	}
	b.Load, b.CPU, b.Ready = cut(b.Load), cut(b.CPU), cut(b.Ready)
	return b
}

// Ends of a hold: the CPU that the costs foretell, or the bound; never two series that fell by one factor.
func TestWhatEndsAHold(t *testing.T) {
	t.Parallel()
	cost := func(requests, _ float64) float64 { return 0.01*requests + 10*0.3 }
	for name, c := range map[string]struct {
		cpu  func(requests, cpu float64) float64
		pods float64
		// after is how long the fall has lasted.
		after          time.Duration
		held, eased    bool
		requestsFactor float64
	}{
		"CPU as it costs, for a quarter of an hour": {cost, 10, 15 * time.Minute, false, false, 0.01},
		"CPU as it costs, too short":                {cost, 10, 10 * time.Minute, true, false, 0.01},
		"CPU as it costs, pods unknown":             {cost, 0, time.Hour, true, false, 0.01},
		"CPU by the same factor":                    {func(_, c float64) float64 { return 0.01 * c }, 10, time.Hour, true, false, 0.01},
		"CPU as before":                             {func(_, c float64) float64 { return c }, 10, time.Hour, true, false, 0.01},
		"no CPU":                                    {func(_, _ float64) float64 { return nan }, 10, time.Hour, true, false, 0.01},
		"no CPU, at the bound":                      {func(_, _ float64) float64 { return nan }, 10, DefaultHoldFor, false, true, 0.01},
		"CPU by the same factor, past the bound":    {func(_, c float64) float64 { return 0.01 * c }, 10, 5 * time.Hour, true, false, 0.01},
		"CPU by the same factor, a day":             {func(_, c float64) float64 { return 0.01 * c }, 10, heldAtMost, false, true, 0.01},
		"the same, pods unknown, at the bound":      {func(_, c float64) float64 { return 0.01 * c }, 0, DefaultHoldFor, false, true, 0.01},
		"the same, a day and an hour":               {func(_, c float64) float64 { return 0.01 * c }, 10, heldAtMost + time.Hour, false, true, 0.01},
		"one factor, two days after":                {func(_, c float64) float64 { return 0.01 * c }, 10, easedFor + time.Hour, false, false, 0.01},
		"no fall":                                   {cost, 10, time.Hour, false, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, fall := fallen(3*day, func(y float64) float64 { return c.requestsFactor * y }, c.cpu)
			b.PodsReady = c.pods
			before := foldOn(Fold(Portrait{}, upTo(b, fall.Add(-day)), Options{}), b, fall, Options{})
			p := foldOn(before, b, fall.Add(c.after), Options{})
			if p.Doubt.Held() != c.held || p.Doubt.Eased != c.eased {
				t.Errorf("hold %+v, want held %v, eased %v", p.Doubt, c.held, c.eased)
			}
			if p.FastestFalls[0] > before.FastestFalls[0] {
				t.Errorf("the fastest fall was %v and is %v", before.FastestFalls[0], p.FastestFalls[0])
			}
			if !c.held && !p.End.Equal(fall.Add(c.after)) {
				t.Errorf("folded up to %s only", p.End)
			}
		})
	}
}

// A service that once fell by nineteen twentieths may fall so again. A load that comes back to a twelfth of the usual
// load from a deeper fall is still fallen: here a flash crowd, seen through a source that says a hundredth of
// everything.
func TestACrowdWithinAFaultIsNotTheLoadComeBack(t *testing.T) {
	t.Parallel()
	b, fall := fallen(time.Hour, hundredth, func(_, cpu float64) float64 { return 0.01 * cpu })
	crowd := fall.Add(20 * time.Minute)
	for at := crowd; at.Before(fall.Add(time.Hour)); at = at.Add(defaultStep) {
		b.Load.Values[b.Load.Index(at)] *= 8
		b.CPU.Values[b.CPU.Index(at)] *= 8
	}
	before := foldOn(Fold(Portrait{}, upTo(b, fall.Add(-day)), Options{}), b, fall, Options{})
	before.FastestFalls = Falls{0.95, 0.95, 0.95}
	if p := foldOn(before, b, crowd.Add(30*time.Minute), Options{}); !p.Doubt.Held() {
		t.Errorf("the crowd lifts what is measured from 1 to 8 %% of the usual: hold %+v, folded up to %s", p.Doubt, p.End)
	}
	if p := foldOn(before, b, fall.Add(90*time.Minute), Options{}); !p.Doubt.Since.IsZero() {
		t.Errorf("the load is back for half an hour: hold %+v", p.Doubt)
	}
}

// The end of a flash crowd is faster than history, and ends where the load usually is: nothing is held for long.
func TestTheEndOfAFlashCrowdIsNoFault(t *testing.T) {
	t.Parallel()
	b, crowd := fallen(time.Hour, func(y float64) float64 { return 3 * y }, func(requests, _ float64) float64 { return 0.01*requests + 3 })
	p := foldOn(Fold(Portrait{}, upTo(b, crowd), Options{}), b, crowd.Add(90*time.Minute), Options{})
	if !p.Doubt.Since.IsZero() {
		t.Errorf("hold %+v", p.Doubt)
	}
}

// A fall that begins while nothing is measured has no pace. It is held when the load afterwards lies below all that is usual.
func TestAFallAfterASilence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		factor float64
		held   bool
	}{"a hundredth": {0.01, true}, "as usual": {1, false}} {
		b, fall := fallen(3*time.Hour, func(y float64) float64 { return c.factor * y }, func(_, cpu float64) float64 { return c.factor * cpu })
		silent := fall.Add(-40 * time.Minute)
		for at := silent; at.Before(fall); at = at.Add(defaultStep) {
			b.Load.Values[b.Load.Index(at)], b.CPU.Values[b.CPU.Index(at)] = nan, nan
		}
		p := foldOn(Fold(Portrait{}, upTo(b, silent), Options{}), b, fall.Add(30*time.Minute), Options{})
		if p.Doubt.Held() != c.held {
			t.Errorf("%s: hold %+v, folded up to %s, the fall was at %s", name, p.Doubt, p.End, fall)
		}
	}
}

// A silence as long as a fall is looked back for leaves nothing to measure a pace by, like a longer one; after a shorter one the last level is in reach.
func TestAFallAfterASilenceAsLongAsTheReach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		silent time.Duration
		last   float64 // the part of the truth that the last step before the silence holds: the source may have begun to lie within it
	}{{10 * time.Minute, 1}, {15 * time.Minute, 1}, {15 * time.Minute, 0.6}, {15 * time.Minute, 0.3}, {20 * time.Minute, 0.6}} {
		b, fall := fallen(3*time.Hour, hundredth, func(_, _ float64) float64 { return nan })
		silent := fall.Add(-c.silent)
		for at := silent; at.Before(fall); at = at.Add(defaultStep) {
			b.Load.Values[b.Load.Index(at)], b.CPU.Values[b.CPU.Index(at)] = nan, nan
		}
		p := Fold(Portrait{}, upTo(b, silent.Add(-defaultStep)), Options{})
		p.FastestFalls = Falls{0.8, 0.9, 0.93} // such falls were seen: they explain the step that is a mean of both
		b.Load.Values[b.Load.Index(silent)-1] *= c.last
		if p = foldOn(p, b, fall.Add(time.Hour), Options{}); !p.Doubt.Held() {
			t.Errorf("%s without a sample, the last one at %g: hold %+v, folded up to %s, the fall was at %s", c.silent, c.last, p.Doubt, p.End, fall)
		}
	}
}

// The first steps after a silence are no level to measure a pace by: the source may have begun to lie within them. Where it did not, nothing is held.
func TestAFallInTheFirstStepAfterASilence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		silent time.Duration
		truth  float64 // the part of the truth that the first step after the silence shows
		then   float64 // and those that come after it
		held   bool
	}{
		{15 * time.Minute, 0.12, 0.01, true},
		{40 * time.Minute, 0.12, 0.01, true},
		{40 * time.Minute, 0.11, 0.002, true},
		{3 * time.Hour, 0.11, 0.01, true},
		{40 * time.Minute, 1, 1, false},
		{40 * time.Minute, 0.9, 1, false},
	} {
		b, fall := fallen(3*time.Hour, func(y float64) float64 { return c.then * y }, func(_, _ float64) float64 { return nan })
		first := b.Load.Index(fall)
		b.Load.Values[first] *= c.truth / c.then
		for k := 1; k <= int(c.silent/defaultStep); k++ {
			b.Load.Values[first-k], b.CPU.Values[first-k] = nan, nan
		}
		silent := fall.Add(-c.silent)
		p := Fold(Portrait{}, upTo(b, silent), Options{})
		p.FastestFalls = Falls{0.92, 0.94, 0.95} // such falls were seen: they explain the step that is a mean of both
		p = foldOn(p, b, fall.Add(defaultStep), Options{})
		live := b.Load.Values[first+1]
		if _, fell := p.FallFrom(live, fall.Add(defaultStep+2*time.Minute), fallReach); fell != c.held && !p.Doubt.Held() {
			t.Errorf("%s without a sample, %g and then %g of the truth: the live load falls %v", c.silent, c.truth, c.then, fell)
		}
		if p = foldOn(p, b, fall.Add(time.Hour), Options{}); p.Doubt.Held() != c.held {
			t.Errorf("%s without a sample, %g and then %g of the truth: hold %+v, folded up to %s, the fall was at %s", c.silent, c.truth, c.then, p.Doubt, p.End, fall)
		}
	}
}

// A second fall does not inherit the clock of the first, whatever the first one was: here a dip that stays, or a fall that was eased long ago, and
// then a source that says a hundredth.
func TestASecondFallHasAClockOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// first is the part of the load that the dip leaves, second how long after it the source begins to lie.
		first, lie float64
		second     time.Duration
	}{
		"half an hour after a dip to a third":       {0.33, 0.01, 30 * time.Minute},
		"an hour and a half after a dip to a tenth": {0.1, 0.01, 90 * time.Minute},
		"a hundredth after a quarter":               {0.25, 0.04, 110 * time.Minute},
		"three hours after, when it was eased":      {0.33, 0.01, 3 * time.Hour},
	} {
		b, fall := fallen(3*day, func(y float64) float64 { return c.first * y }, func(_, _ float64) float64 { return nan })
		for at := fall.Add(c.second); at.Before(b.Load.End()); at = at.Add(defaultStep) {
			b.Load.Values[b.Load.Index(at)] *= c.lie
		}
		before := foldOn(Fold(Portrait{}, upTo(b, fall.Add(-day)), Options{}), b, fall, Options{})
		if p := foldOn(before, b, fall.Add(c.second+DefaultHoldFor-10*time.Minute), Options{}); !p.Doubt.Held() {
			t.Errorf("%s: ten minutes before its two hours are over the second fall is not held: %+v", name, p.Doubt)
		}
		if p := foldOn(before, b, fall.Add(c.second+DefaultHoldFor+20*time.Minute), Options{}); !p.Doubt.Eased {
			t.Errorf("%s: twenty minutes after its two hours nothing is eased: %+v", name, p.Doubt)
		}
	}
}

// Dips that come back several times in a week are usual: they are held no more. A fall by more than nine tenths is
// never usual.
func TestWhatIsUsualIsNotHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		factor float64
		held   bool
	}{"to four tenths": {0.4, false}, "to a fifth": {0.2, false}, "to a hundredth": {0.01, true}, "to nothing": {0, true}} {
		b, fall := fallen(0, nil, nil)
		for k := range 5 {
			for i := range 3 {
				b.Load.Values[b.Load.Index(fall.Add(-time.Duration(k)*day-time.Duration(k+2)*time.Hour))+i] *= c.factor
			}
		}
		for i := range 2 {
			b.Load.Values[b.Load.Index(fall)+i] *= c.factor
		}
		p := Fold(Portrait{}, upTo(b, fall.Add(defaultStep)), Options{})
		if p.Doubt.Held() != c.held {
			t.Errorf("a dip %s, like five in as many days: hold %+v, dips %v", name, p.Doubt, p.Dips)
		}
	}
}

// A rise that the replicas could have served is learned at once, whether history knows it or not. Load that they could
// not have served is not learned while it lasts, and never where it went away. Where it stays and enough replicas come,
// it is learned from then on.
func TestARiseIsLearnedOnceItCanBeServed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		factor    float64
		length    time.Duration
		most      float64 // cores that the pods can be given
		after     time.Duration
		grown     time.Duration // after which the machines can give ten times as much; 0: never
		in, wants bool          // quarantine, and whether the load was learned where the rise begins
		later     bool          // whether it was learned an hour after
	}{
		"twice, for a quarter of an hour":        {2, 15 * time.Minute, 0, 2 * time.Hour, 0, false, true, true},
		"a hundred times, as long":               {100, 15 * time.Minute, 20, 2 * time.Hour, 0, false, false, true},
		"five times, that can be served":         {5, 3 * time.Hour, 0, 2 * time.Hour, 0, false, true, true},
		"five times, more than they can have":    {5, 3 * time.Hour, 10, 2 * time.Hour, 0, true, false, false},
		"five times, and replicas come":          {5, 3 * time.Hour, 10, 2 * time.Hour, 20 * time.Minute, false, true, true},
		"a hundred times, and some of them come": {100, 3 * time.Hour, 10, 2 * time.Hour, 20 * time.Minute, true, false, false},
		"a hundred times, then five times":       {100, 3 * time.Hour, 40, 2 * time.Hour, 0, false, false, true},
		"as much again by a half":                {1.4, 3 * time.Hour, 0, 2 * time.Hour, 0, false, true, true},
	} {
		b, rise := fallen(c.length, func(y float64) float64 { return c.factor * y }, func(requests, _ float64) float64 { return 0.01*requests + 3 })
		b.CoresMost = c.most
		if name == "a hundred times, then five times" {
			for i := b.Load.Index(rise) + 3; i < b.Load.Len(); i++ {
				b.Load.Values[i] *= 0.05
			}
		}
		before := foldOn(Fold(Portrait{}, upTo(b, rise.Add(-day)), Options{}), b, rise, Options{})
		before.Carried = 0 // the machines decide
		p := before
		for at := p.End.Add(defaultStep); !at.After(rise.Add(c.after)); at = at.Add(defaultStep) {
			n := upTo(b, at)
			n.CoresMost = c.most
			if c.grown > 0 && !at.Before(rise.Add(c.grown)) {
				n.CoresMost *= 10
			}
			p = Fold(p, n, Options{})
		}
		if p.Doubt.Held() {
			t.Errorf("%s: a rise holds scale-in: %+v", name, p.Doubt)
		}
		if p.Doubt.Quarantined() != c.in {
			t.Errorf("%s: %+v, folded up to %s", name, p.Doubt, p.End)
		}
		if learned := !math.IsNaN(p.Recent.At(rise)); learned != c.wants {
			t.Errorf("%s: learned %v, want %v", name, learned, c.wants)
		}
		if learned := !math.IsNaN(p.Recent.At(rise.Add(time.Hour))); learned != c.later {
			t.Errorf("%s: an hour after its begin learned %v, want %v", name, learned, c.later)
		}
	}
}
