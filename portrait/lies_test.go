package portrait

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/springtide/springtide/series"
)

// bent is a source that says a multiple of the truth, which changes with the time; NaN is no sample at all.
type bent struct {
	b      Batch
	factor func(at time.Time) float64
}

// at is what a controller reads of it.
func (o *bent) at(since, now time.Time) Batch {
	cut := func(s series.Series) series.Series {
		from, end := max(0, s.Index(since)), s.Index(now)
		out := series.Series{Start: s.Time(from), Step: s.Step, Values: append([]float64(nil), s.Values[from:end]...)}
		for i := range out.Values {
			out.Values[i] *= o.factor(out.Time(i))
		}
		return out
	}
	b := Batch{Load: cut(o.b.Load), CPU: cut(o.b.CPU), PodsReady: 10, CoresMost: 40}
	b.Ready = series.New(b.Load.Start, b.Load.Step, b.Load.Len())
	for i := range b.Ready.Values {
		b.Ready.Values[i] = 10
	}
	return b
}

// ahead is the median of the next day, as the methods say it.
func ahead(p *Portrait) []float64 {
	l := p.Learned.Open(nil, series.GridIndex(p.Recent.Start, p.Step), p.Recent.Values, 0)
	return l.Project(1, int(day/p.Step), []float64{0.5})[0]
}

// served is a history of a service of ten replicas, and the portrait of its first days.
func served(days int) (Batch, Portrait, time.Time) {
	n := (days + 3) * int(day/defaultStep)
	b := Batch{Load: load(3, defaultStep, n), CPU: series.New(monday, defaultStep, n)}
	for i, y := range b.Load.Values {
		b.CPU.Values[i] = 0.01*y + 3
	}
	from := monday.Add(time.Duration(days)*day + 12*time.Hour)
	truth := bent{b, func(time.Time) float64 { return 1 }}
	return b, Fold(Portrait{}, truth.at(monday, from), Options{}), from
}

// Whatever shape a lie of all signals has, nothing of it is learned: fifteen minutes after its end the next day is foreseen as without it. A lie may follow another one, a
// silence, or a fall that was eased; it may last for more than a day, and meet a portrait without a season.
func TestLiesOfAnyShapeTeachNothing(t *testing.T) {
	t.Parallel()
	const m, h = time.Minute, time.Hour
	first := func(a float64, d time.Duration, b float64) func(time.Duration) float64 {
		return func(at time.Duration) float64 {
			if at < d {
				return a
			}
			return b
		}
	}
	turns := func(each time.Duration, f ...float64) func(time.Duration) float64 {
		return func(at time.Duration) float64 { return f[int(at/each)%len(f)] }
	}
	week := sync.OnceValues(func() (Batch, Portrait) { b, p, _ := served(9); return b, p })
	for name, c := range map[string]struct {
		factor func(at time.Duration) float64
		length time.Duration
		days   int
	}{
		"a hundred times, then a hundredth":             {first(100, 20*m, 0.01), h, 9},
		"a hundredth, then a hundred times":             {first(0.01, 20*m, 100), h, 9},
		"a hundredth, then a hundred times, then again": {turns(25*m, 0.01, 100), 100 * m, 9},
		"by turns":                                         {turns(10*m, 100, 0.01), 2 * h, 9},
		"by turns with the truth":                          {turns(5*m, 0.01, 1, 100, 1), 2 * h, 9},
		"silence, then a hundred times":                    {first(nan, 40*m, 100), 80 * m, 9},
		"a short silence, then ten times":                  {first(nan, 15*m, 10), 55 * m, 9},
		"silence for a night, then a hundred times":        {first(nan, 10*h, 100), 11 * h, 9},
		"silence, then a hundredth":                        {first(nan, 40*m, 0.01), 80 * m, 9},
		"a hundredth until it is eased, then a hundred":    {first(0.01, 150*m, 100), 190 * m, 9},
		"a hundredth until it is eased, then ten times":    {first(0.01, 150*m, 10), 190 * m, 9},
		"a hundred times for more than a day":              {turns(h, 100), 30 * h, 9},
		"a hundred times, without a season":                {turns(h, 100), 40 * m, 1},
		"a hundred times for a night, without a season":    {turns(h, 100), 8 * h, 1},
		"a thousand times and a hundredth, with no season": {first(1000, 30*m, 100), h, 1},
		"a hundredth, without a season":                    {turns(h, 0.01), 40 * m, 1},
		"a fiftieth for an hour, without a season":         {turns(h, 0.02), h, 1},
		"nothing but zeros, without a season":              {turns(h, 0), 30 * m, 1},
		"a hundredth by turns with the truth, no season":   {turns(5*m, 0.01, 1), h, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && c.length > 3*h {
				t.Skip("long")
			}
			var b Batch
			var before Portrait
			from := monday.Add(time.Duration(c.days)*day + 12*h)
			if c.days == 9 {
				b, before = week()
			} else {
				b, before, _ = served(c.days)
			}
			begin := from.Add(2 * m)
			end := begin.Add(c.length)
			lie := bent{b, func(at time.Time) float64 {
				if d := at.Add(defaultStep).Sub(begin); d > 0 && at.Before(end) {
					return c.factor(max(0, d-defaultStep))
				}
				return 1
			}}
			truth := bent{b, func(at time.Time) float64 { // a silence costs what it costs
				if math.IsNaN(c.factor(0)) && !at.Before(from) && at.Before(end) {
					return nan
				}
				return 1
			}}
			p, honest := before, before
			for at := from.Add(defaultStep); !at.After(end.Add(15 * m)); at = at.Add(defaultStep) {
				p, honest = Fold(p, lie.at(p.End, at), Options{}), Fold(honest, truth.at(honest.End, at), Options{})
			}
			eased := c.factor(0) == 0.01 && c.factor(125*m) == 0.01 // a fall that stays for two hours is learned
			for at := from; at.Before(end) && !eased; at = at.Add(defaultStep) {
				if y := p.Recent.At(at); !math.IsNaN(y) && math.Abs(math.Log(y/b.Load.At(at))) > 0.3 {
					t.Fatalf("%.0f was learned at %s, the truth is %.0f; hold %+v", y, at.Format("15:04"), b.Load.At(at), p.Doubt)
				}
			}
			for at := from; at.Before(end); at = at.Add(defaultStep) {
				if y := p.Recent.At(at); y > 1.5*b.Load.At(at) {
					t.Fatalf("%.0f was learned at %s, the truth is %.0f; hold %+v", y, at.Format("15:04"), b.Load.At(at), p.Doubt)
				}
			}
			if eased {
				return
			}
			if p.Doubt.Quarantined() {
				t.Fatalf("held still: %+v", p.Doubt)
			}
			shift := int(honest.End.Sub(p.End) / defaultStep)
			if c.days == 1 {
				return // a day tells too little to foresee one
			}
			want := ahead(&honest)
			for i, y := range ahead(&p)[shift:] {
				if math.Abs(math.Log(y/want[i])) > 0.12 {
					t.Fatalf("%d steps ahead %.0f is foreseen, %.0f without the lie", i, y, want[i])
				}
			}
		})
	}
}
