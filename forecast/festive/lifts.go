package festive

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/forecast/calendar"
	"github.com/springtide/springtide/series"
)

// Lifts are what days will do to one series: nothing outside of them.
type Lifts struct {
	shift float64
	slots int
	days  []lifted
}

// lifted is one day's lift: its logarithm by slot, and how unsure that is on either side, in standard deviations. kin says that its kind was
// seen by kin alone.
type lifted struct {
	name         string
	from, to     time.Time
	log          []float64
	below, above float64
	kin          bool
}

// The bounds of what is said of a day: a load that falls to a fiftieth, or rises fifty-fold, is the most that one occurrence may promise,
// and a band is not drawn wider than by a factor of two at one standard deviation. Beyond them an operator's plan must speak.
var (
	mostLog    = math.Log(50)
	mostSpread = math.Log(2)
)

// Expect says what days will do. kin may be nil. Days of which nothing is known are left out.
func (e *Effects) Expect(days []calendar.Day, kin *Kin) Lifts {
	out := Lifts{shift: e.Shift, slots: e.Slots}
	if e.Slots == 0 {
		return out
	}
	beliefs := map[calendar.Kind]*belief{}
	for n, d := range mark(days) {
		b, ok := beliefs[d.Kind]
		if !ok {
			b = e.beliefOf(d.Kind, kin)
			beliefs[d.Kind] = b
		}
		if b == nil {
			continue
		}
		x, ok := b.expect(keyOf(&d), e.Noise, kin.name(keyOf(&d), e, b.match))
		if !ok {
			continue
		}
		log := slices.Clone(x.log)
		for s := range log {
			if b.match != own {
				log[s] += e.of(b.match)[s] - e.of(weekday(n))[s]
			}
			log[s] = max(-mostLog, min(mostLog, log[s]))
		}
		out.days = append(out.days, lifted{name: title(&d), from: d.From, to: d.To, log: log, kin: !e.saw(d.Kind),
			below: min(math.Sqrt(x.below), mostSpread), above: min(math.Sqrt(x.above), mostSpread)})
	}
	slices.SortFunc(out.days, func(a, b lifted) int { return a.from.Compare(b.from) })
	return out
}

// day is the lift of a time and the logarithm by which it is lifted; nil on days that are ordinary as far as anyone knows.
func (l *Lifts) day(t time.Time) (d *lifted, log float64) {
	i, found := slices.BinarySearchFunc(l.days, t, func(d lifted, t time.Time) int { return d.from.Compare(t) })
	if !found {
		i--
	}
	if i < 0 || !t.Before(l.days[i].to) {
		return nil, 0
	}
	d = &l.days[i]
	return d, d.log[slotOf(t.In(d.from.Location()), l.slots)]
}

// Apply lifts quantile paths whose step j begins at start + j·step. The band of a lifted step is widened in quadrature by how unsure
// the lift is:
//
//	log q = log median + lift ± √((log q − log median)² + (z·spread)²), z the normal quantile, the spread that of its side
//
// so that it stays in order, and no path falls below zero.
func (l *Lifts) Apply(start time.Time, step time.Duration, quantiles []float64, paths [][]float64) {
	if len(paths) == 0 {
		return
	}
	for j := range paths[0] {
		d, log := l.day(start.Add(time.Duration(j) * step))
		if d == nil {
			continue
		}
		centre := math.Log(middle(quantiles, paths, j) + l.shift)
		for i, q := range quantiles {
			x := math.Log(paths[i][j]+l.shift) - centre
			if math.IsInf(centre, -1) || math.IsInf(x, -1) {
				// There is no ratio to nothing: nothing stays nothing.
				paths[i][j] *= math.Exp(log)
				continue
			}
			z := math.Sqrt2 * math.Erfinv(2*q-1)
			wide := math.Hypot(x, z*d.above)
			if q < 0.5 {
				wide = -math.Hypot(x, z*d.below)
			}
			paths[i][j] = min(max(0, math.Exp(centre+log+wide)-l.shift), math.MaxFloat64)
		}
	}
}

// middle is the median of step j, interpolated between the quantiles around it.
func middle(quantiles []float64, paths [][]float64, j int) float64 {
	i, exact := slices.BinarySearch(quantiles, 0.5)
	switch {
	case exact || i == 0:
		return paths[i][j]
	case i == len(quantiles):
		return paths[i-1][j]
	}
	w := (0.5 - quantiles[i-1]) / (quantiles[i] - quantiles[i-1])
	return (1-w)*paths[i-1][j] + w*paths[i][j]
}

// Lift returns a tide with the days on it, and the tide without them next to it. One that no day touches is returned as
// it is.
func (l *Lifts) Lift(t forecast.Tide) forecast.Tide {
	if len(t.Paths) == 0 || t.Step <= 0 {
		return t
	}
	end := t.Start.Add(time.Duration(len(t.Paths[0])) * t.Step)
	for i := range l.days {
		d := &l.days[i]
		if !d.from.Before(end) || !t.Start.Before(d.to) {
			continue
		}
		most := 0.0
		for _, x := range d.log {
			if math.Abs(x) > math.Abs(most) {
				most = x
			}
		}
		t.Days = append(t.Days, forecast.LiftedDay{Name: d.name, From: d.from, To: d.to, Factor: math.Exp(most), Kin: d.kin})
	}
	if t.Days == nil {
		return t
	}
	t.Ordinary = t.Paths
	t.Paths = make([][]float64, len(t.Ordinary))
	for i := range t.Paths {
		t.Paths[i] = slices.Clone(t.Ordinary[i])
	}
	l.Apply(t.Start, t.Step, t.Quantiles, t.Paths)
	return t
}

// title names a day as operators do: its name, which day of the feast it is, or that it lies next to one.
func title(d *calendar.Day) string {
	switch {
	case d.Kind == eve:
		return "eve of " + d.Name
	case d.Kind == after:
		return "day after " + d.Name
	case d.Kind == bridge:
		return "bridge day beside " + d.Name
	case d.Offset < 0:
		return fmt.Sprintf("%s, %d before", d.Name, -d.Offset)
	case d.Offset > 0:
		return fmt.Sprintf("%s, day %d", d.Name, d.Offset+1)
	}
	return d.Name
}

// saw reports whether a day of a kind was seen by the series itself.
func (e *Effects) saw(kind calendar.Kind) bool {
	return slices.ContainsFunc(e.Seen, func(o Occurrence) bool { return o.Kind == kind })
}

// Clean takes the effects of days out of a history, so that what is learned from it is an ordinary day. Of a day that was seen whole its own
// effect is taken out, as far as it stands out of the noise; of one that is not over, what is expected of it.
func (e *Effects) Clean(history series.Series, days []calendar.Day, kin *Kin) series.Series {
	l := e.Expect(days, kin)
	for i := range l.days {
		d := &l.days[i]
		n := dayNumber(d.from)
		k := slices.IndexFunc(e.Seen, func(o Occurrence) bool { return o.Day == n })
		if k < 0 {
			continue
		}
		keep := 0.0
		if s := square(e.Seen[k].Log); s > 0 {
			keep = max(0, 1-e.Noise/s)
		}
		d.log = make([]float64, e.Slots)
		for s, x := range e.Seen[k].Log {
			d.log[s] = keep * x
		}
	}
	out := series.Series{Start: history.Start, Step: history.Step, Values: slices.Clone(history.Values)}
	for i, y := range out.Values {
		if d, log := l.day(history.Time(i)); d != nil && y >= 0 {
			out.Values[i] = min(max(0, (y+l.shift)*math.Exp(-log)-l.shift), math.MaxFloat64)
		}
	}
	return out
}
