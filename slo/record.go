package slo

import (
	"fmt"
	"slices"
	"time"
)

// Notches is the number of quantiles that are compared.
const Notches = 11

// Asked is a number of replicas for each notch.
type Asked [Notches]int32

// ladder are the notches. The share above each is between a half and four fifths of the one below, so that a notch
// is a step that can be felt and not a jump.
var ladder = [Notches]float64{0.50, 0.60, 0.70, 0.80, 0.85, 0.90, 0.95, 0.975, 0.99, 0.995, 0.999}

// Ladder lists the quantiles of the notches, in rising order.
func Ladder() []float64 { return slices.Clone(ladder[:]) }

// notchOf is the first notch that is no lower than a quantile.
func notchOf(q float64) int {
	for i, v := range ladder {
		if v >= q-1e-9 {
			return i
		}
	}
	return Notches - 1
}

const (
	// askedFor is how many minutes what was asked for is remembered: a lead of half an hour and a stabilisation of as
	// much.
	askedFor = 60
	// recordDays is how long the record reaches back: four weeks have each day of the week four times, and a change of
	// release is forgotten in a month.
	recordDays = 28
)

// Record says of each notch in how many minutes of the last four weeks its size would have broken the promise, and
// what it would have cost.
//
// # How that is known
//
// Nothing in it is computed after the load was seen. Each minute the sizing says what it would ask for at each
// notch, with all its other parts as they are ([Record.Ask]): the tide as it was forecast then, the live load as it
// was measured then, the bounds and plans in force. A notch has ready in a minute the most that it asked for between
// one lead before it and one stabilisation window earlier: what was asked for later cannot be ready yet, and what
// was asked for earlier may have been taken away. That minute is then judged by what came ([Record.Try]): the notch
// keeps it where the load is no more than its replicas carry by the learned capacity.
//
// Experience beats the model where it can: a minute that was good with so many replicas is good for every notch that
// has as many. A bad minute at a load that the ready replicas carry was not caused by their number: it is left out
// of the comparison. So are bad minutes that were caused by missing room, quota or bounds, since no quantile would
// have cured them. So the record can only be as honest as the capacity: while no capacity is learned it is the rule
// of 60 % of CPU, which calls minutes bad that were good, and the choice errs towards safety.
//
// The load is taken to be the same under each notch. That is wrong where a slow service makes its clients try again,
// which makes the notches below the one in force look a little better than they are; one notch a day bounds what
// that costs.
type Record struct {
	asked  [askedFor]Asked
	minute [askedFor]int64 // of which each is, 0 for none
	days   []trials
	first  int64 // day of days[0]
}

// trials are the minutes of one day that were compared, those that no notch could have cured, and of each notch the
// bad minutes and its replicas, summed.
type trials struct {
	known, apart int
	bad          [Notches]int
	cost         [Notches]int64
}

// Ask remembers what would be asked for now at each notch.
func (r *Record) Ask(now time.Time, asked Asked) {
	at := minuteOf(now)
	k := at % askedFor
	if r.minute[k] == at {
		for i := range asked { // of one minute the most counts: the size follows it at once
			asked[i] = max(asked[i], r.asked[k][i])
		}
	}
	r.asked[k], r.minute[k] = asked, at
}

// Trial is what came of one minute.
type Trial struct {
	Minute Minute
	// Load is the highest load of the minute, Carries what one ready replica carries of it while all levels hold.
	Load, Carries float64
	// Ready are the replicas that served.
	Ready int32
	// Lead is how long before they are ready replicas are asked for, Hold how long a size stands before it may fall.
	Lead, Hold time.Duration
}

// Try judges each notch by what came. A minute of which anything is unknown is left out.
func (r *Record) Try(t *Trial) {
	had, ok := r.had(t.Minute.At, t.Lead, t.Hold)
	if !ok || t.Minute.All == Unknown || !(t.Carries > 0) || !(t.Load >= 0) {
		return
	}
	day := r.day(floorDiv(minuteOf(t.Minute.At), perDay))
	if day == nil {
		return
	}
	short := t.Load > float64(t.Ready)*t.Carries
	if t.Minute.All == Bad && (!short || !t.Minute.Cause.Curable()) {
		day.apart++
		return
	}
	day.known++
	for i, n := range had {
		day.cost[i] += int64(n)
		kept := t.Load <= float64(n)*t.Carries || t.Minute.All == Good && n >= t.Ready
		if !kept {
			day.bad[i]++
		}
	}
}

// had is what each notch would have had ready in a minute; false where it was not said in time what it would ask for.
func (r *Record) had(at time.Time, lead, hold time.Duration) (Asked, bool) {
	latest := minuteOf(at.Add(-lead))
	oldest := max(minuteOf(at.Add(-lead-hold)), minuteOf(at)-askedFor+1)
	var out Asked
	ok := false
	for m := oldest; m <= latest; m++ {
		if k := m % askedFor; m > 0 && r.minute[k] == m {
			ok = true
			for i := range out {
				out[i] = max(out[i], r.asked[k][i])
			}
		}
	}
	return out, ok
}

// Foreseen is what had been asked for at a quantile early enough to be ready now; -1 where that is not known.
func (r *Record) Foreseen(now time.Time, lead, hold time.Duration, quantile float64) int32 {
	had, ok := r.had(now, lead, hold)
	if !ok {
		return -1
	}
	return had[notchOf(quantile)]
}

// day is the trials of a day, which is made where it is new; nil where it is older than the record.
func (r *Record) day(at int64) *trials {
	if len(r.days) == 0 || at-r.first >= recordDays+int64(len(r.days)) {
		r.first, r.days = at, []trials{{}}
	}
	for r.first+int64(len(r.days)) <= at {
		r.days = append(r.days, trials{})
	}
	if n := len(r.days) - recordDays; n > 0 {
		r.days = slices.Delete(r.days, 0, n)
		r.first += int64(n)
	}
	if at < r.first {
		return nil
	}
	return &r.days[at-r.first]
}

// Verdict is what the record says of one notch.
type Verdict struct {
	Quantile float64
	// Bad are the minutes that its size would have broken, Replicas is what it would have had ready on average.
	Bad      int
	Replicas float64
}

// Verdicts are those of all notches over the minutes that were compared.
func (r *Record) Verdicts() (out [Notches]Verdict, compared int) {
	var sum trials
	for i := range r.days {
		sum.known += r.days[i].known
		for k := range Notches {
			sum.bad[k] += r.days[i].bad[k]
			sum.cost[k] += r.days[i].cost[k]
		}
	}
	for k := range Notches {
		out[k] = Verdict{Quantile: ladder[k], Bad: sum.bad[k], Replicas: float64(sum.cost[k]) / float64(max(sum.known, 1))}
	}
	return out, sum.known
}

// apart is how many bad minutes no notch could have cured.
func (r *Record) apart() int {
	n := 0
	for i := range r.days {
		n += r.days[i].apart
	}
	return n
}

// mostCost is the most replica-minutes of a day that are believed.
const mostCost = 1 << 40

// record writes the days. Bad minutes fall and costs rise from notch to notch, so the differences are small.
func (w *writer) record(r *Record) {
	w.uint(len(r.days))
	w.int(r.first)
	for i := range r.days {
		d := &r.days[i]
		w.uint(d.known)
		w.uint(d.apart)
		bad, cost := 0, int64(0)
		for k := range Notches {
			w.int(int64(d.bad[k] - bad))
			w.int(d.cost[k] - cost)
			bad, cost = d.bad[k], d.cost[k]
		}
	}
}

func (r *reader) record() Record {
	n := r.uint(recordDays)
	out := Record{first: r.int()}
	if out.first < 0 || out.first > mostMinute/perDay {
		r.fail(fmt.Errorf("a record from day %d on", out.first))
	}
	for range n {
		d := trials{known: r.uint(perDay), apart: r.uint(perDay)}
		bad, cost := int64(0), int64(0)
		for k := range Notches {
			bad, cost = bad+r.int(), cost+r.int()
			if bad < 0 || bad > perDay || cost < 0 || cost > mostCost {
				r.fail(fmt.Errorf("a day of %d bad minutes and %d replica-minutes", bad, cost))
				return Record{}
			}
			d.bad[k], d.cost[k] = int(bad), cost
		}
		out.days = append(out.days, d)
	}
	return out
}
