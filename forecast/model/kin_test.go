package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Least squares of y = 2a - b, of which the ridge keeps all where it pulls nowhere and half where the pull is as strong as the rows:
// with A = diag(1, 1) and τ = 1 the solution is halfway between (2, -1) and the start (0, 1).
func TestRidgeByHand(t *testing.T) {
	g := newGram(2)
	g.add([]float64{1, 0}, 2, 1)
	g.add([]float64{0, 1}, -1, 1)
	for _, tt := range []struct {
		pull float64
		want []float64
	}{{1e-12, []float64{2, -1}}, {1, []float64{1, 0}}} {
		got := g.ridge(tt.pull, []float64{0, 1})
		for i := range got {
			if math.Abs(got[i]-tt.want[i]) > 1e-9 {
				t.Errorf("pull %g: %v, want %v", tt.pull, got, tt.want)
			}
		}
	}
	empty := newGram(2)
	if got := empty.ridge(1, []float64{3, 4}); got[0] != 3 || got[1] != 4 {
		t.Errorf("without rows: %v, want the start", got)
	}
}

func TestCluster(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var points [][nTrait]float64
	for i := range 90 {
		var p [nTrait]float64
		for j := range p {
			p[j] = 10*float64(i%3) + 0.1*r.NormFloat64()
		}
		points = append(points, p)
	}
	labels, centres := cluster(points, 3)
	if len(centres) != 3 {
		t.Fatalf("%d groups, want 3", len(centres))
	}
	for i := range labels {
		if labels[i] != labels[i%3] {
			t.Errorf("point %d is in group %d, its like in %d", i, labels[i], labels[i%3])
		}
		if math.Abs(centres[labels[i]][0]-10*float64(i%3)) > 0.2 {
			t.Errorf("centre %v of points near %d", centres[labels[i]], 10*(i%3))
		}
	}
	again, _ := cluster(points, 3)
	if d := cmp.Diff(labels, again); d != "" {
		t.Errorf("grouping is not the same twice: %s", d)
	}
	if _, c := cluster(points[:1], 4); len(c) != 1 {
		t.Errorf("%d groups of one point", len(c))
	}
}

func inOrder(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

func backwards(n int, f func(i int)) {
	for i := range n {
		f(n - 1 - i)
	}
}

// family is series of hours of one kind: a wave of the day, a level that goes back to its mean within a day, and noise.
func family(n, days int, seed uint64) []Lesson {
	r := rand.New(rand.NewPCG(seed, seed))
	out := make([]Lesson, n)
	for i := range out {
		drift, size := 0.0, math.Exp(2*r.NormFloat64())
		out[i].Values = make([]float64, days*24)
		for j := range out[i].Values {
			drift = 0.9*drift + 0.2*r.NormFloat64()
			out[i].Values[j] = 100 * size * math.Exp(math.Sin(2*math.Pi*float64(j)/24)+drift+0.02*r.NormFloat64())
		}
	}
	return out
}

// miss is the mean absolute log error over the day after each series, asked with and without kin.
func miss(lessons []Lesson, kin *Kin) float64 {
	sum := 0.0
	for _, s := range lessons {
		n := len(s.Values) - 24
		st := NewState(time.Hour)
		l := st.Open(0, nil, n)
		if kin != nil {
			l.Ask(kin, int64(n-4*24))
		}
		for _, y := range s.Values[:n] {
			l.Observe(y)
		}
		for j, v := range l.Project(1, 24, []float64{0.5})[0] {
			sum += math.Abs(math.Log(v/s.Values[n+j])) / float64(24*len(lessons))
		}
	}
	return sum
}

// Kin that saw the same law in many series help those who saw it for two weeks.
func TestKinHelpTheirLike(t *testing.T) {
	early, final := Teach(time.Hour, family(16, 32, 1), 4*24, inOrder)
	if early == nil || final == nil {
		t.Fatal("nobody taught")
	}
	fresh := family(12, 15, 2)
	alone, with := miss(fresh, nil), miss(fresh, final)
	if !(with < 0.97*alone) {
		t.Errorf("misses %v with kin, %v alone", with, alone)
	}
	if len(final.Groups[0].Window) != 48 || len(final.Groups[0].Window[0]) != 192 {
		t.Errorf("the window maps %d values to %d", len(final.Groups[0].Window[0]), len(final.Groups[0].Window))
	}
}

// Series that have nothing in common but noise teach nothing, and say so.
func TestKinOfNoKindAreSilent(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	lessons := make([]Lesson, 9)
	for i := range lessons {
		lessons[i].Values = make([]float64, 15*24)
		for j := range lessons[i].Values {
			lessons[i].Values[j] = 100 * math.Exp(0.3*r.NormFloat64())
		}
	}
	_, final := Teach(time.Hour, lessons, 4*24, inOrder)
	for i, g := range final.Groups {
		if len(g.Ridge)+len(g.Window) > 0 {
			t.Errorf("group %d speaks", i)
		}
	}
	if a, b := miss(lessons, nil), miss(lessons, final); a != b {
		t.Errorf("silent kin changed the miss from %v to %v", a, b)
	}
}

// What kin know of lies before the held values: changing those changes nothing that early says.
func TestTeachHoldsBack(t *testing.T) {
	a, b := family(9, 16, 5), family(9, 16, 5)
	for i := range b {
		for j := len(b[i].Values) - 96; j < len(b[i].Values); j++ {
			b[i].Values[j] *= 3
		}
	}
	one, _ := Teach(time.Hour, a, 96, inOrder)
	other, _ := Teach(time.Hour, b, 96, backwards)
	for i := range one.Groups {
		x, y := one.Groups[i], other.Groups[i]
		// Whether a group speaks, and how its members are weighed, is judged by the held values.
		if len(x.Ridge) == 0 || len(y.Ridge) == 0 {
			continue
		}
		if d := cmp.Diff(x.Ridge, y.Ridge) + cmp.Diff(x.Window, y.Window); d != "" {
			t.Errorf("group %d has seen the held values: %s", i, d[:200])
		}
	}
	if early, final := Teach(time.Hour, []Lesson{{Values: []float64{1, 2}}}, 1, inOrder); early != nil || final != nil {
		t.Error("two values taught something")
	}
}

// The days most like the last ones are found, and what followed them is said on today's level.
func TestSimilar(t *testing.T) {
	shapes := [][]float64{make([]float64, 24), make([]float64, 24)}
	for i := range 24 {
		shapes[0][i] = math.Sin(2 * math.Pi * float64(i) / 24)
		shapes[1][i] = 0.2 * math.Cos(4*math.Pi*float64(i)/24)
	}
	var x []float64
	// Runs of days of two kinds: four of the one, then three of the other.
	for d := range 40 {
		kind := 0
		if d%7 >= 4 {
			kind = 1
		}
		x = append(x, shapes[kind]...)
	}
	values := make([]float64, len(x))
	for i, v := range x {
		values[i] = 50 * math.Exp(v)
	}
	l := learned(time.Hour, values[:36*24]) // day 36 is the second of a run of four
	o := l.from(36*24, 1)
	if o.nAlike != 4 && o.nAlike != alikeMost {
		t.Fatalf("%d neighbours", o.nAlike)
	}
	if d := (36*24 - o.alike[0].at) % (7 * 24); d != 0 {
		t.Errorf("the nearest neighbour is %d hours off a whole week", d)
	}
	for i := range 20 {
		if got := l.saySimilar(&o, 36*24+i); math.Abs(got-l.Transform.Forward(values[36*24+i])) > 0.1 {
			t.Errorf("%d hours ahead: %v, want %v", i+1, got, l.Transform.Forward(values[36*24+i]))
		}
	}
	if !slices.IsSortedFunc(o.alike[:o.nAlike], func(a, b neighbour) int { return int(math.Copysign(1, b.weight-a.weight)) }) {
		t.Error("neighbours are not in order of nearness")
	}
}
