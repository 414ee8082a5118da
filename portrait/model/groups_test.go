package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
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
	p := Parting{Centres: cluster(points, 3)}
	if len(p.Centres) != 3 {
		t.Fatalf("%d groups, want 3", len(p.Centres))
	}
	for i, at := range points {
		c := p.Centres[p.nearest(at)]
		if math.Abs(c[0]-10*float64(i%3)) > 0.2 {
			t.Errorf("centre %v of points near %d", c, 10*(i%3))
		}
	}
	if d := cmp.Diff(p.Centres, cluster(points, 3)); d != "" {
		t.Errorf("grouping is not the same twice: %s", d)
	}
	if c := cluster(points[:1], 4); len(c) != 1 {
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
func miss(lessons []Lesson, kin *Groups) float64 {
	sum := 0.0
	for _, s := range lessons {
		n := len(s.Values) - 24
		st := NewState(time.Hour)
		l := st.Open(nil, 0, nil, n)
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

// taughtKin are those of a family that tests have in common.
var taughtKin = sync.OnceValues(func() (early, final *Groups) { return Teach(time.Hour, family(12, 28, 1), 4*24, inOrder) })

// Kin that saw the same law in many series help those who saw it for two weeks.
func TestKinHelpTheirLike(t *testing.T) {
	t.Parallel()
	early, final := taughtKin()
	if early == nil || final == nil {
		t.Fatal("nobody taught")
	}
	fresh := family(12, 15, 2)
	alone, with := miss(fresh, nil), miss(fresh, final)
	if !(with < 0.97*alone) {
		t.Errorf("misses %v with kin, %v alone", with, alone)
	}
	if len(final.Partings[0].Maps[0]) != 48 || len(final.Partings[0].Maps[0][0]) != 192 {
		t.Errorf("the window maps %d values to %d", len(final.Partings[0].Maps[0][0]), len(final.Partings[0].Maps[0]))
	}
}

// verdicts are series of one group, each of which weighed its members well; the misses of two members are given by series.
func verdicts(a, b int, misses [][2]float64) []*verdict {
	out := make([]*verdict, len(misses))
	for i, m := range misses {
		v := &verdict{errors: [][]float64{make([]float64, triangle)}, missed: []float64{min(m[0], m[1])}}
		for j := range members {
			v.errors[0][entry(j, j)] = 100
		}
		v.errors[0][entry(a, a)], v.errors[0][entry(b, b)] = m[0], m[1]
		out[i] = v
	}
	return out
}

// A group's weights are worth something where its series are alike in who is right, and nothing where each is right in its own way.
func TestKinOfNoKindAreSilent(t *testing.T) {
	for name, tt := range map[string]struct {
		misses [][2]float64
		missed float64 // by their own blends, over the best member
		want   bool
	}{
		"alike, and their own blends were worse":  {[][2]float64{{1, 9}, {1.1, 9}, {0.9, 8}}, 3, true},
		"alike, and their own blends were better": {[][2]float64{{1, 9}, {1.1, 9}, {0.9, 8}}, 0.5, false},
		"each in its own way":                     {[][2]float64{{1, 50}, {50, 1}, {1, 60}, {60, 1}}, 1.5, false},
	} {
		all := verdicts(kinAligned, smoothLog, tt.misses)
		for _, v := range all {
			v.missed[0] *= tt.missed
		}
		k := Groups{Groups: []Group{{Ridge: [][]float64{{1}}, Series: 4}}, Partings: []Parting{{}}}
		k.weigh(all)
		if got := k.Groups[0].speaks(); got != tt.want {
			t.Errorf("%s: speaks: %v, want %v", name, got, tt.want)
		}
		if len(k.Partings) > 0 != tt.want {
			t.Errorf("%s: %d partings", name, len(k.Partings))
		}
		if tt.want != (len(k.Groups[0].Errors) > 0) {
			t.Errorf("%s: errors %v", name, k.Groups[0].Errors)
		}
	}
	// No member was tried, so none speaks.
	k := Groups{Groups: []Group{{Ridge: [][]float64{{1}}}}}
	if k.weigh(nil); k.Speak() != 0 || k.Groups[0].speaks() {
		t.Error("a group that nobody tried speaks")
	}
}

// A series whose group is silent hears nothing, whatever the others of its step know.
func TestSilentKinChangeNothing(t *testing.T) {
	t.Parallel()
	_, final := taughtKin()
	silent := *final
	silent.Groups = slices.Clone(final.Groups)
	for i := range silent.Groups {
		silent.Groups[i].hush()
	}
	fresh := family(3, 15, 2)
	if a, b := miss(fresh, nil), miss(fresh, &silent); a != b {
		t.Errorf("silent kin changed the miss from %v to %v", a, b)
	}
}

// Maps that explain one series alone are not used: a group of few has that of all. The result is the mean over the
// partings.
func TestMaps(t *testing.T) {
	lessons := family(11, 20, 3)
	all, points := make([]*Learner, len(lessons)), make([][nTrait]float64, len(lessons))
	for i := range lessons {
		all[i] = study(time.Hour, lessons[i])
	}
	points[9][0], points[10][0] = 5, 9
	k := Groups{Partings: []Parting{{Centres: [][nTrait]float64{{}, {5}, {9}}}}}
	k.learnWindows(all, points, inOrder)
	maps := k.Partings[0].Maps
	if len(maps[0]) != 48 || len(maps[0][0]) != 192 {
		t.Fatalf("the map is %d by %d", len(maps[0]), len(maps[0][0]))
	}
	if d := cmp.Diff(maps[1], maps[2]); d != "" {
		t.Errorf("two groups of one have different maps: %s", d[:200])
	}
	if cmp.Equal(maps[0], maps[1]) {
		t.Error("a group of nine has the map of all")
	}
	k.Partings = []Parting{
		{Centres: [][nTrait]float64{{}}, Maps: [][][]float64{{{1, 2}}}},
		{Centres: [][nTrait]float64{{9}, {}}, Maps: [][][]float64{{{7, 7}}, {{3, 6}}}},
	}
	if d := cmp.Diff([][]float64{{2, 4}}, k.mapOf([nTrait]float64{1})); d != "" {
		t.Errorf("the mean of the nearest groups' maps: %s", d)
	}
}

// The knowledge of kin lies before the held values: changing those changes nothing that early says.
func TestTeachHoldsBack(t *testing.T) {
	t.Parallel()
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
		if d := cmp.Diff(x.Ridge, y.Ridge); d != "" {
			t.Errorf("group %d has seen the held values: %s", i, d[:200])
		}
	}
	if d := cmp.Diff(one.Partings, other.Partings); d != "" {
		t.Errorf("the maps have seen the held values: %s", d[:200])
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
