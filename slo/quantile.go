package slo

import (
	"fmt"
	"strconv"
	"time"

	"github.com/springtide/springtide/reason"
)

const (
	// StartQuantile is in force until the record says more: what is used today.
	StartQuantile = 0.95
	// leastDays is how much must have been compared before the record chooses: each day of the week twice.
	leastDays = 14
	// moveEvery is the time between two moves of a notch, riseEvery that between two upwards while the budget burns: a
	// quarter of a day shows what the notch before has done.
	moveEvery = 24 * time.Hour
	riseEvery = 6 * time.Hour
	// leastShare is the share of the allowed minutes that the size may always use. Without it one incident of the
	// service's own code would hold the highest quantile for four weeks, which would cost much and cure nothing.
	leastShare = 0.25
	// fallShare is the share of what the size may use that a cheaper notch must keep under before it is chosen, so that
	// two notches do not take turns.
	fallShare = 0.75
	// BurnRises is the burn over an hour and over six from which the quantile rises without waiting for the record: a
	// twelfth of the budget of a month in six hours, the slower of the SRE workbook's two pages.
	BurnRises = 6
)

// Choice is the quantile of the tide in force.
type Choice struct {
	Quantile float64
	// Moved is when it changed last.
	Moved time.Time
	// Why is the reason for its being what it is.
	Why reason.Reason
}

// Terms are what a choice is made by.
type Terms struct {
	Now time.Time
	// Good is the objective's share of good minutes, Over its window.
	Good float64
	Over time.Duration
	// Stated is the operator's own quantile, which overrides the record; 0 where there is none.
	Stated float64
	// Burning says that the budget burns at [BurnRises] or more over an hour and over six, for causes that a quantile
	// can cure.
	Burning bool
}

// Choose says which quantile is in force: the operator's; or the cheapest notch that would have kept the objective,
// of which one notch a day is moved. While the budget burns it rises by one notch each six hours.
func Choose(now Choice, r *Record, t Terms) Choice {
	if t.Stated > 0 {
		return now.to(t.Stated, t.Now, reason.Of(reason.QuantileStated, percentile(t.Stated)))
	}
	if now.Quantile == 0 {
		now = Choice{Quantile: StartQuantile, Moved: t.Now}
	}
	at := notchOf(now.Quantile)
	// A quantile that was stated until now lies between notches: the one above is the next.
	now.Quantile = ladder[at]
	since := t.Now.Sub(now.Moved)
	verdicts, compared := r.Verdicts()
	days := compared / perDay
	switch {
	case t.Burning && at < Notches-1:
		why := reason.Of(reason.QuantileBurning, percentile(ladder[at]))
		if since >= riseEvery {
			return now.to(ladder[at+1], t.Now, reason.Of(reason.QuantileBurning, percentile(ladder[at+1])))
		}
		now.Why = why
		return now
	case days < leastDays:
		now.Why = reason.Of(reason.QuantileLearning, percentile(now.Quantile), days, leastDays)
		return now
	}
	may := mayUse(r, compared, t.Good)
	want, kept := cheapest(&verdicts, may, at)
	next := at
	if since >= moveEvery {
		next = at + min(max(want-at, -1), 1)
	}
	return now.to(ladder[next], t.Now, explain(&verdicts, next, want, kept, may))
}

// to moves the choice to a quantile.
func (c Choice) to(quantile float64, now time.Time, why reason.Reason) Choice {
	if c.Quantile != quantile {
		c.Quantile, c.Moved = quantile, now
	}
	c.Why = why
	return c
}

// mayUse is how many of the compared minutes may be bad by the size: what the objective allows, less the minutes
// that no size could have cured.
func mayUse(r *Record, compared int, good float64) float64 {
	apart := float64(r.apart())
	allowed := (1 - good) * (float64(compared) + apart)
	return max(allowed-apart, leastShare*allowed)
}

// cheapest is the notch that would have cost least of those that keep within what may be used; the highest one where
// none does. Notches below the one in force must keep well within it.
func cheapest(vs *[Notches]Verdict, may float64, at int) (notch int, kept bool) {
	notch = Notches - 1
	for i := Notches - 1; i >= 0; i-- {
		within := may
		if i < at {
			within *= fallShare
		}
		if float64(vs[i].Bad) <= within && (!kept || vs[i].Replicas <= vs[notch].Replicas) {
			notch, kept = i, true
		}
	}
	return notch, kept
}

// explain says why a notch is in force while another is wanted.
func explain(vs *[Notches]Verdict, at, want int, kept bool, may float64) reason.Reason {
	v := vs[at]
	allowed := strconv.FormatFloat(may, 'f', 0, 64)
	switch {
	case !kept:
		return reason.Of(reason.QuantileNoneKeeps, percentile(v.Quantile), v.Bad, allowed)
	case want > at:
		return reason.Of(reason.QuantileRising, percentile(v.Quantile), v.Bad, allowed, percentile(vs[want].Quantile))
	case want < at:
		return reason.Of(reason.QuantileFalling, percentile(v.Quantile), percentile(vs[want].Quantile), vs[want].Bad, allowed)
	}
	return reason.Of(reason.QuantileKeeps, percentile(v.Quantile), v.Bad, allowed)
}

// percentile is a quantile as operators write it: p99.9.
func percentile(q float64) string {
	return "p" + strconv.FormatFloat(float64(int(q*1e4+0.5))/100, 'f', -1, 64)
}

// String shows the choice with its reason.
func (c Choice) String() string {
	return fmt.Sprintf("%s: %s", percentile(c.Quantile), c.Why)
}
