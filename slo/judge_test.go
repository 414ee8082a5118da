package slo

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/measure"
)

var epoch = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// looks plays looks of one letter a level, a step of 15 s each: g(ood), b(ad), u(nknown), in capitals for a service
// that is idle.
func looks(t *testing.T, names []string, steps ...string) []Minute {
	t.Helper()
	var j Judge
	var out []Minute
	for i, s := range append(steps, steps[0]) {
		at := epoch.Add(time.Duration(i) * 15 * time.Second)
		if i == len(steps) {
			at = at.Add(time.Hour) // a look that ends the last minute
		}
		l := Look{At: at, Names: names, Cause: Cause(1 + i%3)}
		for _, c := range s {
			state, ok := map[rune]State{'g': Good, 'b': Bad, 'u': Unknown, 'G': Good, 'B': Bad, 'U': Unknown}[c]
			if !ok {
				t.Fatalf("a look %q", s)
			}
			l.States, l.Idle = append(l.States, state), c < 'a'
		}
		if m, ok := j.See(l); ok {
			out = append(out, m)
		}
	}
	return out
}

func TestJudge(t *testing.T) {
	two := []string{"latency-p99", "errors"}
	for _, c := range []struct {
		name   string
		steps  []string
		all    State
		levels []State
		cause  Cause
	}{
		{"all kept", []string{"gg", "gg", "gg", "gg"}, Good, []State{Good, Good}, NoCause},
		{"one level in one step", []string{"gg", "gg", "gb", "gg"}, Bad, []State{Good, Bad}, Bounds},
		{"the first cause counts", []string{"gg", "bg", "gb", "gb"}, Bad, []State{Bad, Bad}, Room},
		{"bad is bad next to unknown", []string{"ub", "uu", "uu", "uu"}, Bad, []State{Unknown, Bad}, Lending},
		{"one level unknown", []string{"gu", "gu", "gu", "gu"}, Unknown, []State{Good, Unknown}, NoCause},
		{"half of it known", []string{"gg", "gu", "gg", "gu"}, Good, []State{Good, Good}, NoCause},
		{"less than half of it known", []string{"gg", "gu", "gu", "gu"}, Unknown, []State{Good, Unknown}, NoCause},
		{"nothing to measure of an idle service", []string{"UU", "UU", "UU", "UU"}, Good, []State{Good, Good}, NoCause},
		{"what is measured counts of an idle one too", []string{"UB", "UU", "UU", "UU"}, Bad, []State{Good, Bad}, Lending},
		{"nothing known", []string{"uu", "uu", "uu", "uu"}, Unknown, []State{Unknown, Unknown}, NoCause},
		{"one look only", []string{"gg"}, Good, []State{Good, Good}, NoCause},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := looks(t, two, c.steps...)
			want := []Minute{{At: epoch, All: c.all, Names: two, States: c.levels, Cause: c.cause}}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
	if got := looks(t, nil, "", "", "", ""); len(got) != 1 || got[0].All != Unknown {
		t.Errorf("a service without levels: %+v", got)
	}
}

func TestJudgeKeepsMinutesApart(t *testing.T) {
	got := looks(t, []string{"cpu"}, "g", "g", "g", "b", "g", "g", "g", "g", "b", "g", "g", "g")
	var all []State
	for i, m := range got {
		if want := epoch.Add(time.Duration(i) * time.Minute); !m.At.Equal(want) {
			t.Errorf("minute %d is at %v, want %v", i, m.At, want)
		}
		all = append(all, m.All)
	}
	if d := cmp.Diff([]State{Bad, Good, Bad}, all); d != "" {
		t.Error(d)
	}
}

// A minute in which the levels change is judged by the new ones alone.
func TestJudgeBeginsAgainWithOtherLevels(t *testing.T) {
	var j Judge
	j.See(Look{At: epoch, Names: []string{"cpu"}, States: []State{Bad}})
	j.See(Look{At: epoch.Add(15 * time.Second), Names: []string{"errors"}, States: []State{Good}})
	m, ok := j.See(Look{At: epoch.Add(time.Minute), Names: []string{"errors"}, States: []State{Good}})
	if want := (Minute{At: epoch, All: Good, Names: []string{"errors"},
		States: []State{Good}}); !ok || !cmp.Equal(want, m) {
		t.Errorf("%+v, %v", m, ok)
	}
}

func TestStateOf(t *testing.T) {
	known := func(v float64) fleet.Known[float64] { return fleet.KnownAt(v, epoch) }
	for _, c := range []struct {
		value fleet.Known[float64]
		want  State
	}{
		{fleet.Known[float64]{}, Unknown}, {known(math.NaN()), Unknown}, {known(0.25), Good}, {known(0.2500001), Bad},
		{known(0), Good},
		{known(math.Inf(1)), Bad},
	} {
		if got := StateOf(c.value, 0.25); got != c.want {
			t.Errorf("%v: %v, want %v", c.value, got, c.want)
		}
	}
}

// The lab and the simulator count sloViolationMinutes from the true load: a minute in which any step of 15 s exceeds
// the level, by the share of requests over the limit. The judge compares a measured quantile with the limit. Two
// ways, one count.
func TestJudgeAgreesWithSLOViolationMinutes(t *testing.T) {
	for _, level := range []fleet.SLO{fleet.Levels(fleet.Latency(0.99, 100*time.Millisecond)),
		fleet.Levels(fleet.CPU(0.7))} {
		s := measure.Station{Cores: 4, CPUSeconds: 0.02, SLO: level}
		r := rand.New(rand.NewPCG(7, 7))
		var q measure.Queue
		var j Judge
		violated, judged, counted := 0, 0, int64(-1)
		rate, full := 0.0, 10*s.Capacity()
		const steps = 4 * 3000
		for i := range steps {
			at := epoch.Add(time.Duration(i) * measure.Step)
			switch { // a walk about the capacity, with pauses
			case i%400 < 20:
				rate = 0
			default:
				rate = min(max(rate+full*0.08*(r.Float64()-0.48), 0.5*full), 1.1*full)
			}
			o := s.Step(&q, rate, 10, measure.Step)
			if minute := at.Unix() / 60; o.Violated && counted != minute {
				counted, violated = minute, violated+1
			}
			if m, ok := j.See(Look{At: at, Names: []string{"level"}, States: []State{measured(&s, &o)},
				Idle: o.Served == 0}); ok && m.All == Bad {
				judged++
			}
		}
		if m, ok := j.See(Look{At: epoch.Add(steps * measure.Step), Names: []string{"level"},
			States: []State{Unknown}}); ok && m.All == Bad {
			judged++
		}
		if violated < 100 || violated > steps/4-100 || judged != violated {
			t.Errorf("%+v: the judge calls %d of %d minutes bad, sloViolationMinutes are %d", level, judged, steps/4, violated)
		}
	}
}

// measured is what an exporter without errors would let a judge see of a step.
func measured(s *measure.Station, o *measure.Outcome) State {
	switch {
	case o.Served == 0:
		return Unknown
	case o.Dropped > 0:
		return Bad
	case s.SLO.CPULimit() > 0:
		return StateOf(fleet.KnownAt(o.Utilisation, epoch), s.SLO.CPULimit())
	}
	return StateOf(fleet.KnownAt(o.Latency(s.SLO.LatencyQuantile()).Seconds(), epoch), s.SLO.LatencyLimit().Seconds())
}
