package festive

import (
	"math"
	"testing"

	"github.com/springtide/springtide/forecast/calendar"
)

// Three names of one kind, two years each, in days of one slot. By hand, as in a one-way analysis of variance with random effects (S. R.
// Searle, G. Casella, C. E. McCulloch, "Variance Components", 1992, chapter 3; between names the mean squares' difference), the years'
// variance drawn to a guess that counts for two of them:
//
//	means 0.3, 0.7, 0; squares within 3 · 0.02; mean of the means' squares 0.58 / 3
//	within = (0.06 + 2 · (0.01 + 0.1 · 0.58/3)) / (3 + 2)    = 0.0237333
//	apart  = (0.58/3 − 1/9) · 3/2 − within / 2               = 0.1114667
//	unsure = (apart + within / 2) / 3                        = 0.0411111
//	keep   = (1 − unsure / (1/9)) · 3 / (3 + 2)              = 0.378
//	trust  = apart / (apart + within / 2)                    = 0.9037838
func TestShrinkageByHand(t *testing.T) {
	b := belief{}
	for name, years := range map[string][2]float64{"A": {0.2, 0.4}, "B": {0.6, 0.8}, "C": {-0.1, 0.1}} {
		for _, x := range years {
			b.add(key{name: name, kind: calendar.Own}, []float64{x})
		}
	}
	b.weigh(0.01)
	seen, known := b.expect(key{name: "A", kind: calendar.Own}, 0.01, nil)
	if _, ok := b.expect(key{name: "D", kind: calendar.Own}, 0.01, nil); ok || !known {
		t.Errorf("a name that was seen is expected: %v; one that was not, of names that do not agree: %v", known, ok)
	}
	b.agreed = true
	unseen, _ := b.expect(key{name: "D", kind: calendar.Own}, 0.01, nil)
	for _, x := range []struct {
		what      string
		got, want float64
	}{
		{"within", b.within, 0.0237333}, {"apart", b.apart, 0.1114667}, {"mean", b.mean[0], 0.378 / 3},
		{"a name that was seen", seen.log[0], 0.9037838*0.3 + 0.0962162*0.126},
		{"a name that was not", unseen.log[0], 0.126},
		// 0.9037838 · 0.0118667 + 0.0962162 · 0.378 · 0.0411111 + 0.0237333 − 0.01
		{"its variance", seen.above, 0.0259534},
	} {
		if math.Abs(x.got-x.want) > 1e-6 {
			t.Errorf("%s: %.7f, want %.7f", x.what, x.got, x.want)
		}
	}
}

// One holiday that fell far says that the next may fall as well, less far, and not that it may rise.
func TestOneSided(t *testing.T) {
	b := belief{}
	b.add(key{name: "A", kind: calendar.Holiday}, []float64{-1})
	b.weigh(0.01)
	b.agreed = true
	x, _ := b.expect(key{name: "B", kind: calendar.Holiday}, 0.01, nil)
	if !(x.log[0] < -0.1 && x.log[0] > -0.9) || x.below < 2*x.above {
		t.Errorf("%+v", x)
	}
}

// A kind speaks for a name that was never seen once three names, and most, agree in sign and size; the days of one feast are one name.
func TestAgree(t *testing.T) {
	type day struct {
		name   string
		offset int
		log    float64
	}
	tests := []struct {
		name string
		days []day
		want bool
	}{
		{"one name", []day{{"A", 0, 1}}, false},
		{"two that agree", []day{{"A", 0, 1}, {"B", 0, 1.1}}, false},
		{"three that agree", []day{{"A", 0, 1}, {"B", 0, 1.1}, {"C", 0, 0.9}}, true},
		{"three that fell alike", []day{{"A", 0, -1}, {"B", 0, -1.1}, {"C", 0, -0.9}}, true},
		{"a sign that differs", []day{{"A", 0, 1}, {"B", 0, 1.1}, {"C", 0, -0.9}}, false},
		{"a size that differs", []day{{"A", 0, 1.1}, {"B", 0, 0.9}, {"C", 0, 0.2}}, false},
		{"two that did nothing", []day{{"A", 0, 1.1}, {"B", 0, 0}, {"C", 0, 0}}, false},
		{"four of five", []day{{"A", 0, 1}, {"B", 0, 1.1}, {"C", 0, 0.9}, {"D", 0, 1}, {"E", 0, 0}}, true},
		{"three of seven", []day{{"A", 0, 1}, {"B", 0, 1}, {"C", 0, 1}, {"D", 0, 0}, {"E", 0, 0}, {"F", 0, 0}, {"G", 0, 0}}, false},
		{"three days of one feast", []day{{"A", 0, 1}, {"A", 1, 1.1}, {"A", 2, 0.9}}, false},
	}
	for _, tt := range tests {
		e := Effects{Slots: 1, Week: make([]float64, 7), Noise: 0.001}
		for i, d := range tt.days {
			e.Seen = append(e.Seen, Occurrence{Name: d.name, Kind: calendar.Sale, Offset: d.offset, Day: 20 * i, Log: []float64{d.log}})
		}
		b, ok := e.believe(calendar.Sale)
		if !ok || b.agreed != tt.want {
			t.Errorf("%s: agreed %v, want %v", tt.name, b.agreed, tt.want)
		}
		if _, ok := b.expect(key{name: "new", kind: calendar.Sale}, e.Noise, nil); ok != tt.want {
			t.Errorf("%s: a new name is expected: %v", tt.name, ok)
		}
		if _, ok := b.expect(key{name: "A", kind: calendar.Sale, offset: 9}, e.Noise, nil); !ok {
			t.Errorf("%s: another day of a feast that was seen is not expected", tt.name)
		}
	}
}

// Its place in the week makes a bridge day: one says something of the next, whatever holiday that is next to.
func TestBridgesAreOfOneName(t *testing.T) {
	e := Effects{Slots: 1, Week: make([]float64, 7), Noise: 0.001, Seen: []Occurrence{{Name: "A", Kind: bridge, Log: []float64{-1}}}}
	b, _ := e.believe(bridge)
	if x, ok := b.expect(key{name: "B", kind: bridge}, e.Noise, nil); !ok || !(x.log[0] < -0.1) {
		t.Errorf("the bridge day beside another holiday: %+v, %v", x, ok)
	}
}

// A kind is matched with the type of day that makes its days most alike; sales alone are not drawn to one that makes them look ordinary.
func TestMatch(t *testing.T) {
	week := []float64{0.2, 1, 1, 1, 1, 1, 0.5} // Sunday first
	// Day 4 is a Monday, day 8 a Friday, day 9 a Saturday, day 16 one too.
	seen := func(kind calendar.Kind, days []int, load float64) Effects {
		e := Effects{Slots: 1, Week: week, Noise: 0.001}
		for _, d := range days {
			e.Seen = append(e.Seen, Occurrence{Name: "x", Kind: kind, Day: d, Log: []float64{load - week[weekday(d)]}})
		}
		return e
	}
	tests := []struct {
		name string
		e    Effects
		kind calendar.Kind
		want int
	}{
		{"one Monday off, like a Sunday", seen(calendar.Holiday, []int{4}, 0.2), calendar.Holiday, sunday},
		{"a Saturday that is worked", seen(calendar.Work, []int{9}, 1), calendar.Work, midweek},
		{"a Saturday's sale, like a midweek", seen(calendar.Sale, []int{9}, 1), calendar.Sale, own},
		{"two Saturdays' sales", seen(calendar.Sale, []int{9, 16}, 1.5), calendar.Sale, own},
		{"own days off on a Monday and a Saturday", seen(calendar.Own, []int{4, 9}, 0.2), calendar.Own, sunday},
		{"a Friday that is ordinary", seen(calendar.Holiday, []int{8}, 1), calendar.Holiday, own},
	}
	for _, tt := range tests {
		b, ok := tt.e.believe(tt.kind)
		if !ok || b.match != tt.want {
			t.Errorf("%s: matched with %d, want %d", tt.name, b.match, tt.want)
		}
	}
}

// The days next to a holiday are learned under names of their own, a working day between two free ones as a bridge.
func TestNeighbours(t *testing.T) {
	// Day 3 after monday is a Thursday, day 14 a Monday, day 24 a Thursday.
	days := []calendar.Day{on("A", calendar.Holiday, 3), on("Feast", calendar.Feast, 10), on("Minor", calendar.Minor, 16), on("B", calendar.Holiday, 24), on("B", calendar.Sale, 24)}
	marks := mark(days)
	first := dayNumber(monday)
	for n, want := range map[int]calendar.Kind{2: eve, 3: calendar.Holiday, 4: bridge, 9: "", 10: calendar.Feast, 11: "", 15: "", 16: calendar.Minor, 17: "", 23: eve, 24: calendar.Sale} {
		if got := marks[first+n].Kind; got != want {
			t.Errorf("day %d is %q, want %q", n, got, want)
		}
	}
}
