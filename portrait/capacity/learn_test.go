package capacity

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/reason"
)

// The limits are in service times of the queue: a p99 of 4.6 of them is that of an idle one.
var learned = []struct {
	name      string
	queue     queue
	limit     float64
	objective float64
}{
	{"tight", queue{1, 0.010}, 6, 0.995},
	{"tight, strict", queue{1, 0.010}, 6, 0.9995},
	{"tight, eight cores", queue{8, 0.050}, 6, 0.995},
	{"middle", queue{1, 0.010}, 12, 0.995},
	{"middle, four cores", queue{4, 0.020}, 12, 0.999},
	{"loose", queue{1, 0.010}, 50, 0.995},
	{"loose, eight cores", queue{8, 0.050}, 50, 0.9995},
	{"loose, of 1 s", queue{1, 0.010}, 100, 0.99},
}

// A service that is sized by what is learned of it comes within 15 % below what a replica of it truly carries, and at
// no time more than 5 % above it.
func TestLearnsWhatAQueueCarries(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for _, tt := range learned {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range seeds {
				w := newWorld(seed, tt.queue, tt.limit*tt.queue.seconds, tt.objective)
				truth := tt.queue.truth(w.terms.Limit, tt.objective, 60*w.peak)
				w.days(1) // a rule that is above the truth takes a spell to leave
				for day := 2; day <= 35; day++ {
					w.days(1)
					if c := w.level.InForce; c > 1.05*truth {
						t.Fatalf("seed %d, day %d: %.1f is more than 5 %% above the true %.1f", seed, day, c, truth)
					}
				}
				if c := w.level.InForce; c < 0.85*truth {
					t.Errorf("seed %d: %.1f is more than 15 %% below the true %.1f", seed, c, truth)
				}
			}
		})
	}
}

// A service whose forecast keeps a fifth of its replicas in reserve never has the load that its replicas could carry.
// In quiet hours it may go and see.
func TestExploringFindsTheKnee(t *testing.T) {
	for _, explores := range []bool{false, true} {
		w := newWorld(1, queue{8, 0.050}, 0.3, 0.995)
		w.margin = 1.2
		w.explore = &Quiet{Slow: explores, Budget: 1}
		truth := w.queue.truth(w.terms.Limit, w.terms.Objective, 60*w.peak)
		w.days(42)
		if c := w.level.InForce; (c > 0.85*truth) != explores || c > 1.05*truth {
			t.Errorf("explores %v: %.0f, the truth is %.0f", explores, c, truth)
		}
		if objective := float64(w.served) * (1 - w.terms.Objective); float64(w.bad) > objective {
			t.Errorf("explores %v: %d bad minutes, %.0f are allowed", explores, w.bad, objective)
		}
	}
}

// settled is a world that has learned its queue.
func settled(seed uint64) *world {
	w := newWorld(seed, queue{4, 0.020}, 0.25, 0.995)
	w.days(21)
	return w
}

// A release makes the service 30 % slower: the capacity follows within ten bad minutes, and is learned again.
func TestAKneeThatMoves(t *testing.T) {
	for seed := range uint64(4) {
		w := settled(seed)
		w.days(0.4) // the day's peak is near
		w.queue.seconds *= 1.3
		truth := w.queue.truth(w.terms.Limit, w.terms.Objective, 60*w.peak)
		w.bad = 0
		for range 120 {
			if w.minute(); w.level.InForce <= 1.05*truth {
				break
			}
		}
		if w.bad > 10 || w.level.InForce > 1.05*truth {
			t.Errorf("seed %d: %.0f after %d bad minutes, the truth is %.0f", seed, w.level.InForce, w.bad, truth)
		}
		w.bad = 0
		w.days(14)
		if c := w.level.InForce; c < 0.85*truth || c > 1.05*truth || w.bad > 14*24*60*2*5/1000 {
			t.Errorf("seed %d: two weeks later %.0f, the truth is %.0f; %d bad minutes", seed, c, truth, w.bad)
		}
	}
}

// A knee that moved back is found again.
func TestAKneeThatMovesBack(t *testing.T) {
	w := settled(1)
	truth := w.queue.truth(w.terms.Limit, w.terms.Objective, 60*w.peak)
	w.queue.seconds *= 1.3
	w.days(1)
	w.queue.seconds /= 1.3
	w.days(21)
	if c := w.level.InForce; c < 0.85*truth || c > 1.05*truth {
		t.Errorf("three weeks after a release was taken back: %.0f, the truth is %.0f", c, truth)
	}
}

// A slow dependency adds to each request, whatever the load: replicas are not added without end, the level says that
// load is not the cause, and the capacity is as before.
func TestASlowDependency(t *testing.T) {
	for seed := range uint64(4) {
		w := settled(seed)
		before := w.level.InForce
		w.days(0.4)
		w.value = func(load float64) float64 {
			return 0.6 + w.queue.quantile(load, 0.99) + 0.02*w.r.NormFloat64()
		}
		alarm := 0
		for minute := 1; minute <= 180; minute++ {
			w.minute()
			if alarm == 0 && w.level.NotByLoad() {
				alarm = minute
			}
			if w.level.InForce < before/2.01 {
				t.Fatalf("seed %d: the capacity fell from %.0f to %.0f", seed, before, w.level.InForce)
			}
		}
		if alarm == 0 || alarm > 40 {
			t.Errorf("seed %d: after %d minutes it was seen that load is not the cause", seed, alarm)
		}
		if e := w.level.Capacity(w.terms.Objective); e.Load < 0.95*before {
			t.Errorf("seed %d: %.0f carried while the dependency is slow, %.0f before", seed, e.Load, before)
		}
		w.value = nil
		w.days(1.0 / 24)
		if w.level.NotByLoad() || w.level.InForce < 0.95*before {
			t.Errorf("seed %d: an hour after its end: %v, %.0f, before %.0f", seed, w.level.NotByLoad(), w.level.InForce, before)
		}
	}
}

// A dependency that is slow in one minute of thirty, at all loads alike.
func TestADependencyThatIsSlowNowAndThen(t *testing.T) {
	w := settled(1)
	before := w.level.InForce
	w.value = func(load float64) float64 {
		if w.r.Float64() < 1.0/30 {
			return 0.6
		}
		return w.queue.quantile(load, 0.99)
	}
	for range 7 { // a minimum of replicas at night gives low loads
		w.fixed = 40
		w.days(0.25)
		w.fixed = 0
		w.days(0.75)
	}
	if !w.level.NotByLoad() {
		t.Error("one minute of thirty breaks at all loads, and it is not said")
	}
	if c := w.level.InForce; c < 0.8*before {
		t.Errorf("the capacity fell from %.0f to %.0f by what is not load", before, c)
	}
}

// Services whose levels break by load alone: knees that move by much and little, at any time of day. NotByLoad is wrong
// here. Its stated rate is one judgement in 1,000, and a spell is judged in each of its minutes, of which most are
// far from it.
func TestNotByLoadIsSeldomWrong(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 12
	}
	alarms, judged := 0, 0
	for seed := range seeds {
		w := newWorld(seed, queue{1 + int(seed%3)*3, 0.020}, 0.14+0.2*float64(seed%4), 0.995)
		w.days(7)
		w.days(w.r.Float64())
		w.queue.seconds *= 1.05 + 0.9*w.r.Float64()
		if w.queue.truth(w.terms.Limit, 0.995, 60*w.peak) < 0.2*w.queue.most() {
			continue // hardly an idle replica keeps the limit now
		}
		judged++
		alarmed := false
		for range 24 * 60 {
			w.minute()
			alarmed = alarmed || w.level.NotByLoad()
		}
		if alarmed {
			alarms++
		}
	}
	if alarms > 0 || judged < int(seeds)/2 {
		t.Errorf("in %d of %d services that break by load it was said that they do not", alarms, judged)
	}
}

// A garbage collection that begins at half of what the cores carry adds 300 ms to the slowest minute-parts: a
// shoulder of the curve. A limit below it makes it the knee, and one above leaves the queue's.
func TestAShoulder(t *testing.T) {
	for _, tt := range []struct{ limit, knee float64 }{{0.2, 0.5}, {0.5, 0.97}} {
		w := newWorld(3, queue{4, 0.020}, tt.limit, 0.995)
		w.value = func(load float64) float64 {
			v := w.queue.quantile(load, 0.99)
			if load > 0.5*w.queue.most() {
				v = max(v, 0.3+0.01*w.r.NormFloat64())
			}
			return v
		}
		w.days(28)
		truth := tt.knee * w.queue.most()
		if c := w.level.InForce; c < 0.85*truth || c > 1.05*truth || w.level.NotByLoad() {
			t.Errorf("limit %v: %.0f (not by load: %v), the knee is at %.0f", tt.limit, c, w.level.NotByLoad(), truth)
		}
	}
}

// Cold replicas are slow, whatever their load. Kept apart they teach nothing; where it is not known, the capacity
// falls by half at most, and comes back.
func TestAColdCache(t *testing.T) {
	cold := func(known bool) (after, before float64) {
		w := settled(2)
		before = w.level.InForce
		for range 15 {
			w.at = w.at.Add(time.Minute)
			m := Minute{At: w.at, Load: w.load, Value: 1, CPU: math.NaN()}
			if known {
				m.Apart = Young
			}
			w.level.Observe(m, w.terms)
		}
		after = w.level.InForce
		w.days(14)
		if c := w.level.InForce; c < 0.9*before {
			t.Errorf("known %v: two weeks later %.0f, before %.0f", known, c, before)
		}
		return after, before
	}
	if after, before := cold(true); after != before {
		t.Errorf("minutes of young replicas moved the capacity from %.0f to %.0f", before, after)
	}
	if after, before := cold(false); after < before/2.01 || after >= before {
		t.Errorf("15 slow minutes moved the capacity from %.0f to %.0f", before, after)
	}
}

func TestUnknownSaysWhatIsMissing(t *testing.T) {
	level := func(n int, m func(i int) Minute) *Level {
		l := &Level{Name: "latency-p99"}
		for i := range n {
			x := m(i)
			x.At = monday.Add(time.Duration(i) * time.Minute)
			l.Observe(x, Terms{Limit: 0.25, Objective: 0.999, Rule: 60})
		}
		return l
	}
	always := func(m Minute) func(int) Minute { return func(int) Minute { return m } }
	fine := func(load float64) func(int) Minute { return always(Minute{Load: load, Value: 0.2}) }
	for _, tt := range []struct {
		name  string
		level *Level
		want  reason.Reason
	}{
		{"nothing", &Level{Name: "latency-p99"}, reason.Of(reason.LevelNotMeasured, "latency-p99")},
		{"no value", level(100, always(Minute{Load: 50, Value: math.NaN()})),
			reason.Of(reason.LevelNotMeasured, "latency-p99")},
		{"no load", level(100, always(Minute{Load: math.NaN(), Value: 1})),
			reason.Of(reason.LevelNotMeasured, "latency-p99")},
		{"all apart", level(100, always(Minute{Load: 50, Value: 0.1, Apart: RollOver})),
			reason.Of(reason.MinutesApart, 100, "latency-p99")},
		{"few", level(50, fine(50)), reason.Of(reason.FewMinutes, 50, "latency-p99", 2704)},
		{"a low load", level(3500, fine(40)), reason.Of(reason.LoadNotSeen, "latency-p99", "41.6")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := tt.level.Capacity(0.999)
			if e.Load != 0 || !e.Why.Equal(tt.want) || sane(e) != "" {
				t.Errorf("%v, %s: want %s", e.Load, e.Why, tt.want)
			}
		})
	}
	if e := level(3500, fine(62)).Capacity(0.999); e.Load <= 60 || e.Load > 66 {
		t.Errorf("3,500 minutes that hold at 62 give %v", e.Load)
	}
	l := level(3500, fine(62))
	if e := l.Capacity(0.9999); e.Load > 66 || e.Low != 0 {
		t.Errorf("a stricter objective gives %+v", e)
	}
}

// Half of a week old weigh half as much, and what broke long ago is tried again.
func TestDecay(t *testing.T) {
	l := Level{Name: "errors"}
	terms := Terms{Limit: 0.01, Objective: 0.99, Rule: 50}
	for i := range 1000 {
		l.Observe(Minute{At: monday.Add(time.Duration(i) * time.Minute), Load: 40}, terms)
	}
	was := l.minutes()
	l.Observe(Minute{At: l.Last.Add(halfLife), Load: math.NaN()}, terms)
	if got := l.minutes(); math.Abs(got-was/2) > 0.01*was {
		t.Errorf("%v minutes weigh %v a half-life later", was, got)
	}
	l.Observe(Minute{At: l.Last.Add(20 * halfLife), Load: math.NaN()}, terms)
	if got := l.minutes(); got != 0 || len(l.Bins) > 0 {
		t.Errorf("%v minutes in %d bins are left after 20 half-lives", got, len(l.Bins))
	}
}

// It makes no difference in which pieces a history comes, whether a piece comes twice, or whether the process began
// again between two.
func TestPieces(t *testing.T) {
	var minutes []Minute
	w := newWorld(5, queue{1, 0.010}, 0.12, 0.995)
	for range 3 * 24 * 60 {
		w.minute()
		p := 0.99 + deviation(6000)*w.r.NormFloat64()
		v := w.queue.quantile(w.load, p)
		minutes = append(minutes, Minute{At: w.at, Load: w.load, Value: v, CPU: w.load * w.queue.seconds})
	}
	var whole, twice, restarted Set
	learn := func(s Set, ms []Minute) Set {
		s, l := s.Clone().With("latency-p99")
		for _, m := range ms {
			l.Observe(m, w.terms)
		}
		return s
	}
	whole = learn(nil, minutes)
	for i := 0; i < len(minutes); i += 7 {
		twice = learn(twice, minutes[max(0, i-5):min(i+7, len(minutes))])
		if i%700 == 0 {
			b, _ := restarted.MarshalBinary()
			if err := restarted.UnmarshalBinary(b); err != nil {
				t.Fatal(err)
			}
		}
		restarted = learn(restarted, minutes[i:min(i+7, len(minutes))])
	}
	a, _ := whole.MarshalBinary()
	if b, _ := twice.MarshalBinary(); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("in pieces it is learned otherwise: %+v, %+v", twice[0].InForce, whole[0].InForce)
	}
	if x, y := whole[0].InForce, restarted[0].InForce; math.Abs(x/y-1) > 0.02 {
		t.Errorf("%v with restarts, %v without", y, x)
	}
}

// An operator changes the limit: a tighter one leaves in force what is known under it, a looser one what was.
func TestAnotherLimit(t *testing.T) {
	w := settled(1)
	was := w.level.InForce
	tight, loose := w.level.Clone(), w.level.Clone()
	m := Minute{At: w.at.Add(time.Minute), Load: w.load, Value: 0.01}
	tight.Observe(m, Terms{Limit: 0.25 / 2, Objective: 0.995, Rule: w.terms.Rule})
	loose.Observe(m, Terms{Limit: 0.25 * 2, Objective: 0.995, Rule: w.terms.Rule})
	truth := w.queue.truth(0.25/2, 0.995, 60*w.peak)
	if c := tight.InForce; c > 1.05*truth || c < 0.6*truth {
		t.Errorf("under half of the limit: %.0f, the truth is %.0f", c, truth)
	}
	if c := loose.InForce; c != was {
		t.Errorf("under twice the limit: %.0f, it was %.0f", c, was)
	}
	if w.level.InForce != was {
		t.Error("a clone changed what it was cloned of")
	}
}

func TestExplore(t *testing.T) {
	w := settled(1)
	l := &w.level
	l.Broke = time.Time{}
	q := Quiet{Now: w.at, Slow: true, Hours: true, Budget: 0.9}
	if got := l.Explore(q, 0); got <= l.InForce || got > beyond*l.InForce || got > seenBeyond*l.seen() {
		t.Errorf("%v with %v in force and %v seen: want a step", got, l.InForce, l.seen())
	}
	for name, change := range map[string]func(){
		"it is off":               func() { q.Slow = false },
		"hours are not quiet":     func() { q.Hours = false },
		"the budget is spent":     func() { q.Budget = 0.75 },
		"the budget is not known": func() { q.Budget = math.NaN() },
		"a minute broke":          func() { l.Broke = w.at.Add(-time.Hour) },
		"it breaks now":           func() { l.spell.since = w.at },
		"more than was ever seen": func() { l.Bins = l.Bins[:1] },
	} {
		keep, level := q, l.Clone()
		change()
		if got := l.Explore(q, 0); got != l.InForce {
			t.Errorf("%s: %v, %v is in force", name, got, l.InForce)
		}
		q, w.level = keep, level
	}
	if got := new(Level).Explore(q, 50); got != 50 {
		t.Errorf("no minute is known, and %v is explored", got)
	}
	few := level100()
	if got := few.Explore(q, 40); got <= 40 || got > 42 {
		t.Errorf("where the rule sizes for 40, %v is explored", got)
	}
}

// level100 has seen a hundred minutes at the rule's load, which show too little.
func level100() *Level {
	l := &Level{Name: "latency-p99"}
	for i := range 100 {
		m := Minute{At: monday.Add(time.Duration(i) * time.Minute), Load: 40, Value: 0.2}
		l.Observe(m, Terms{Limit: 0.25, Objective: 0.999, Rule: 40})
	}
	return l
}

// A dependency that is slow from the first minute on, at loads that hardly differ for an hour and then halve.
func TestNotByLoadFromTheBeginning(t *testing.T) {
	l := Level{Name: "latency-p99"}
	for i := range 110 {
		load := 10.0
		if i >= 90 {
			load = 5
		}
		l.Observe(Minute{At: monday.Add(time.Duration(i) * time.Minute), Load: load, Value: 0.6, CPU: math.NaN()},
			Terms{Limit: 0.25, Objective: 0.99})
	}
	if e := l.Capacity(0.99); !l.NotByLoad() || e.Load != 0 || e.Why.Code != reason.LevelNotByLoad {
		t.Errorf("%v, %+v", l.NotByLoad(), e)
	}
}

// A history begins in a quiet hour, and what a rule would give a replica is not known while it is read for the first
// time. The loads of that hour are no capacity: once the rule is known, it is where the capacity begins.
func TestAQuietHourIsNoCapacity(t *testing.T) {
	for name, loads := range map[string][]float64{
		"night, then day": {0.03, 0.05, 5, 20, 40},
		"night alone":     {0.03, 0.05, 0.04},
		"idle at first":   {0, 0, 0, 1, 40},
	} {
		t.Run(name, func(t *testing.T) {
			var l Level
			at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
			observe := func(load, rule float64) {
				at = at.Add(time.Minute)
				l.Observe(Minute{At: at, Load: load, Value: 0.2, CPU: math.NaN()},
					Terms{Limit: 0.25, Objective: 0.995, Rule: rule})
			}
			for _, load := range loads {
				for range 2000 {
					observe(load, 0)
				}
			}
			if l.InForce != 0 {
				t.Errorf("%v a replica is in force without a rule", l.InForce)
			}
			for range 60 {
				observe(loads[len(loads)-1], 30)
			}
			if l.InForce != 0 && l.InForce < 30 {
				t.Errorf("%v a replica, and the rule gives it 30", l.InForce)
			}
		})
	}
}

// Minutes that break in a quiet hour, before a rule is known, put no capacity in force either.
func TestABrokenQuietHourIsNoCapacity(t *testing.T) {
	for name, broken := range map[string]int{"a spell": 10, "an hour": 60, "half a day": 720} {
		t.Run(name, func(t *testing.T) {
			var l Level
			at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
			for i := range 2000 {
				value := 0.2
				if i < broken {
					value = 0.9
				}
				at = at.Add(time.Minute)
				l.Observe(Minute{At: at, Load: 0.03, Value: value, CPU: math.NaN()}, Terms{Limit: 0.25, Objective: 0.995})
				if l.InForce != 0 {
					t.Fatalf("%v a replica is in force after %d minutes without a rule", l.InForce, i)
				}
			}
		})
	}
}

// TestThrottled: what a CPU limit holds back teaches nothing while the level holds, and a broken minute lowers the
// capacity as any other: the limit is broken for users too.
func TestThrottled(t *testing.T) {
	for _, c := range []struct {
		name  string
		apart Apart
		value float64
		left  bool
	}{
		{"holds", Throttled, 0.1, true},
		{"breaks", Throttled, 2, false},
		{"breaks while it rolls over", Throttled | RollOver, 2, true},
		{"breaks as it rolls over", RollOver, 2, true},
	} {
		var l Level
		at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
		for i := range 10 {
			l.Observe(Minute{At: at.Add(time.Duration(i) * time.Minute), Load: 50, Value: c.value, Apart: c.apart},
				Terms{Limit: 1, Objective: 0.99, Rule: 60})
		}
		if left := l.Left != [aparts]float64{}; left != c.left || (len(l.Bins) == 0) != c.left {
			t.Errorf("%s: kept apart %v, %d bins; want %v", c.name, l.Left, len(l.Bins), c.left)
		}
	}
}
