package portrait

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/series"
)

func TestSkillNext(t *testing.T) {
	at := func(h int) time.Time { return monday.Add(time.Duration(h) * time.Hour) }
	good := Lately{Odd: 0.05, Miss: 0.05, Last: 0.1, Above: 0.1, Covered: 0.9}
	with := func(change func(*Lately)) Lately {
		l := good
		l.Above = 0.25
		change(&l)
		return l
	}
	lost := Skill{Lost: true, Since: at(-20)}
	tests := []struct {
		name   string
		was    Skill
		ahead  time.Duration
		judged int
		lately Lately
		want   Skill
	}{
		{"good", Skill{}, time.Hour, 500, good, Skill{}},
		{"half are odd", Skill{}, time.Hour, 500, with(func(l *Lately) { l.Odd = 0.5 }), Skill{Lost: true, Since: at(0)}},
		{"fewer than half are odd", Skill{}, time.Hour, 500, with(func(l *Lately) { l.Odd = 0.49 }), Skill{}},
		{"half are odd of too few", Skill{}, time.Hour, 119, with(func(l *Lately) { l.Odd = 0.5 }), Skill{}},
		{"half are odd a day ahead", Skill{}, day, 500, with(func(l *Lately) { l.Odd = 0.5 }), Skill{}},
		{"the last value is better", Skill{}, time.Hour, 500, with(func(l *Lately) { l.Miss, l.Last, l.Beaten = 0.16, 0.1, 0.6 }), Skill{Lost: true, Since: at(0)}},
		{"the last value is a little better", Skill{}, time.Hour, 500, with(func(l *Lately) { l.Miss, l.Last, l.Beaten = 0.14, 0.1, 0.6 }), Skill{}},
		{"the last value is better at a small miss", Skill{}, time.Hour, 500, with(func(l *Lately) { l.Miss, l.Last, l.Beaten = 0.09, 0.01, 1 }), Skill{}},
		{"the last value is better by two bursts", Skill{}, time.Hour, 500, with(func(l *Lately) { l.Miss, l.Last, l.Beaten = 0.2, 0.1, 0.55 }), Skill{}},
		{"half are odd, and too high", Skill{}, time.Hour, 500, with(func(l *Lately) { l.Odd, l.Above = 0.5, 0.24 }), Skill{}},
		{"the last value is better, and lower", Skill{}, time.Hour, 500, with(func(l *Lately) { l.Miss, l.Last, l.Beaten, l.Above = 0.16, 0.1, 0.6, 0.24 }), Skill{}},
		{"the band is too narrow", Skill{}, time.Hour, 500, with(func(l *Lately) { l.Covered = 0.69 }), Skill{Lost: true, Since: at(0)}},
		{"the band is a little narrow", Skill{}, time.Hour, 500, with(func(l *Lately) { l.Covered = 0.7 }), Skill{}},
		{"regained once, lost again", Skill{Since: at(-5)}, time.Hour, 500, with(func(l *Lately) { l.Odd = 0.6 }), Skill{Lost: true, Since: at(0)}},
		{"stays lost between the bars", lost, time.Hour, 500, with(func(l *Lately) { l.Odd, l.Above = 0.3, 0.11 }), lost},
		{"calms down, being too high", lost, time.Hour, 500, with(func(l *Lately) { l.Odd, l.Above = 0.3, 0.09 }), Skill{Lost: true, Since: at(-20), Calm: at(0)}},
		{"calms down", lost, time.Hour, 500, good, Skill{Lost: true, Since: at(-20), Calm: at(0)}},
		{"calm, not for long", Skill{Lost: true, Since: at(-20), Calm: at(-11)}, time.Hour, 500, good, Skill{Lost: true, Since: at(-20), Calm: at(-11)}},
		{"calm no more", Skill{Lost: true, Since: at(-20), Calm: at(-11)}, time.Hour, 500, with(func(l *Lately) { l.Covered = 0.74 }), lost},
		{"calm for long", Skill{Lost: true, Since: at(-20), Calm: at(-12)}, time.Hour, 500, good, Skill{Since: at(0)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fine := Horizon{Ahead: 15 * time.Minute, Judged: 500, Lately: good}
			got := tt.was.next(at(0), []Horizon{fine, {Ahead: tt.ahead, Judged: tt.judged, Lately: tt.lately}})
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// The memories are means at first and decay then; misses are bounded by the usual ones, so that one burst is one miss.
func TestHorizonLearns(t *testing.T) {
	var h Horizon
	for range 200 {
		h.learn(0.04, 0.08, true, 40)
	}
	if h.Judged != 200 || math.Abs(h.Miss-0.04) > 1e-9 || h.Covered != 1 || h.Lately.Odd != 0 {
		t.Fatalf("after two hundred like misses: %+v", h)
	}
	h.learn(7, 0.08, false, 40)
	want := Lately{Odd: 1. / 16, Miss: 0.04 + (4*0.04-0.04)/16, Last: 0.08, Beaten: 1. / 16, Above: 1. / 16, Covered: 1 - 1./120}
	if d := cmp.Diff(want, h.Lately, within); d != "" {
		t.Errorf("after a burst (-want +got)\n%s", d)
	}
	if want := 0.04 + 3*0.04/201; math.Abs(h.Miss-want) > 1e-9 {
		t.Errorf("usual miss %v, want %v", h.Miss, want)
	}
	var young Horizon
	young.learn(7, 0.1, true, 40)
	young.learn(math.MaxFloat64, 0.1, true, 40)
	if young.Lately.Odd != 0 || young.Miss != (7.+mostMiss)/2 {
		t.Errorf("while nothing is usual: %+v", young)
	}
}

func TestHorizonsOfSteps(t *testing.T) {
	tests := []struct {
		step time.Duration
		want []time.Duration
		each int64
	}{
		{time.Minute, []time.Duration{15 * time.Minute, time.Hour, day}, 31},
		{5 * time.Minute, []time.Duration{15 * time.Minute, time.Hour, day}, 7},
		{15 * time.Minute, []time.Duration{15 * time.Minute, time.Hour, day}, 3},
		{time.Hour, []time.Duration{time.Hour, day}, 1},
		{day, []time.Duration{day}, 1},
		{week, nil, 1},
	}
	for _, tt := range tests {
		var got []time.Duration
		for _, h := range horizons(tt.step) {
			got = append(got, h.Ahead)
		}
		if d := cmp.Diff(tt.want, got); d != "" || sayEach(tt.step) != tt.each {
			t.Errorf("%v: a forecast each %d steps, want %d (-want +got)\n%s", tt.step, sayEach(tt.step), tt.each, d)
		}
	}
}

// turns folds a history day by day, each time through the stored form, and returns the days on which skill was lost and regained.
func turns(t *testing.T, s series.Series) (out []float64, p Portrait) {
	t.Helper()
	was := false
	perDay := int(day / s.Step)
	for from := 0; from < s.Len(); from += perDay {
		p = Fold(p, Batch{Load: part(s, from, from+perDay)}, Options{})
		b, err := Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if p, err = Unmarshal(b); err != nil {
			t.Fatal(err)
		}
		if k := &p.Record.Skill; k.Lost != was {
			was = k.Lost
			out = append(out, k.Since.Sub(s.Start).Hours()/24)
			if text := p.Record.String(); k.Lost != strings.Contains(text, "missed by more than 3 times") {
				t.Errorf("lost %v: %q", k.Lost, text)
			}
		}
	}
	return out, p
}

// A service whose day turns round loses skill within a day, till when forecasts follow the newest values, and regains it in days. One that
// stays as it is never does, bursts or not, nor one whose floods stay out: what was said of it was too high, which takes nothing away from
// anybody.
func TestSkillOverDays(t *testing.T) {
	t.Parallel()
	const step, perDay, changed = quarter, int(day / quarter), 15
	calm := load(3, step, 60*perDay)
	bursty := load(4, step, 30*perDay)
	r, burst := rand.New(rand.NewPCG(4, 4)), 0.0
	for i := range bursty.Values {
		if burst *= 0.73; r.Float64() < 0.015 { // more than one a day, at up to four and a half times the load
			burst = 1.5
		}
		bursty.Values[i] *= math.Exp(burst)
	}
	spared := load(7, fiveMinutes, 30*288)
	for i := range spared.Values {
		if h := i % 288 / 12; h >= 13 && h < 22 && i/288 != changed { // a match each afternoon, and one day without
			spared.Values[i] *= 3
		}
	}
	flipped := load(5, step, 30*perDay)
	for i, y := range load(5, step, 31*perDay).Values[perDay/2:] {
		if i >= changed*perDay && i < flipped.Len() {
			flipped.Values[i] = y
		}
	}
	for name, s := range map[string]series.Series{"calm": calm, "bursty": bursty, "spared": spared} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, p := turns(t, s)
			if len(got) > 0 {
				t.Errorf("skill turned on days %.2f", got)
			}
			for i := range p.Record.Horizons {
				h := &p.Record.Horizons[i]
				if h.Judged < 200 || math.Abs(h.Covered-Nominal) > 0.06 {
					t.Errorf("of %d forecasts %v ahead %.3f were covered", h.Judged, h.Ahead, h.Covered)
				}
			}
		})
	}
	t.Run("flipped", func(t *testing.T) {
		t.Parallel()
		if got, _ := turns(t, flipped); len(got) != 2 || got[0] <= changed || got[0] > changed+1 || got[1] > changed+7 {
			t.Errorf("the day turns on day %d: skill turned on days %.2f, want within a day and back within a week", changed, got)
		}
	})
}

// A waiting forecast is dropped when no value comes, and a pause loses no skill.
func TestRecordOverAGap(t *testing.T) {
	s := load(6, 5*time.Minute, 20*288)
	for i := 12 * 288; i < 14*288; i++ {
		s.Values[i] = nan
	}
	got, p := turns(t, s)
	if len(got) > 0 {
		t.Errorf("skill turned on days %.2f", got)
	}
	for i := range p.Record.Horizons {
		h := &p.Record.Horizons[i]
		if most := int(h.Ahead / (35 * time.Minute)); len(h.Said) > most+1 || h.Said[0].For < series.GridIndex(p.End, p.Step) {
			t.Errorf("%d forecasts wait %v ahead, the oldest for %v before the end", len(h.Said), h.Ahead, h.Said[0].For-series.GridIndex(p.End, p.Step))
		}
	}
}
