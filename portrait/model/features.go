package model

import "math"

// features describe a target seen from an origin, each as a distance from the mean of the origin's last day, so that no fit has to learn
// the level: the same phase of the days and weeks before, and where the newest values stand against yesterday's, last week's and the
// usual ones.
const (
	fDays       = 0               // same phase of seven days back, smoothed
	fDay        = fDays + 7       // same phase of the last known day, as it was
	fWeeks      = fDay + 1        // same phase of three weeks back, smoothed
	fWeek       = fWeeks + 3      // same phase of the last known week, as it was
	fProfile    = fWeek + 1       // the weekly profile
	fRecent     = fProfile + 1    // mean of the newest values over five windows
	fExcess     = fRecent + 5     // the same against the day before
	fExcessWeek = fExcess + 5     // the same against the week before
	fUsual      = fExcessWeek + 5 // mean of the last half hour and three hours against the usual day
	fTrend      = fUsual + 2      // the last day against the day and the week before it, and last week's level
	nFeature    = fTrend + 3
)

// row is one row of features. The features of the newest values belong to the origin, the others to the target.
type row struct {
	v    [nFeature]float64
	base float64
	ok   bool
}

// recentWindows are the windows of the newest values in steps.
func (c Cycle) recentWindows() [5]int {
	near, far, unit := c.windows()
	return [5]int{1, near, far, max(4, unit/4), max(5, unit/2)}
}

// beginRow lays the features of the origin.
func (l *Learner) beginRow(o *origin) {
	c, h, t := l.Cycle, l.hist, o.t
	unit, r := c.unit(), &o.row
	r.base = h.mean(t-unit, t)
	if math.IsNaN(r.base) || c.Short == 0 {
		return
	}
	r.ok = true
	at := func(f int, v, against float64) { r.v[f] = gap0(v - against) }
	for i, w := range c.recentWindows() {
		m := h.lately(w, t)
		at(fRecent+i, m, r.base)
		at(fExcess+i, m, h.mean(t-w-c.Short, t-c.Short))
		r.v[fExcessWeek+i] = r.v[fExcess+i]
		if c.Long > 0 && t-w-c.Long >= 0 {
			at(fExcessWeek+i, m, h.mean(t-w-c.Long, t-c.Long))
		}
	}
	r.v[fUsual], r.v[fUsual+1] = o.phase[0], o.phase[1]
	at(fTrend, r.base, h.mean(t-2*unit, t-unit))
	if c.Long > 0 {
		at(fTrend+1, r.base, o.week)
		at(fTrend+2, h.mean(t-c.Long-unit, t-c.Long), r.base)
	}
}

// fillRow lays the features of the target at index i. usual is the mean of its phase over the last days, which stands in for what is missing.
func (l *Learner) fillRow(o *origin, i int, usual float64) {
	c, h, r := l.Cycle, l.hist, &o.row
	half := c.Short / 96
	usual -= r.base
	smooth := func(at int) float64 {
		if m := h.mean(at-half, min(at+half+1, o.t)); !math.IsNaN(m) {
			return m - r.base
		}
		return usual
	}
	for j := range 7 {
		r.v[fDays+j] = smooth(i - (o.k+j)*c.Short)
	}
	r.v[fDay] = r.v[fDays]
	if v := h.at(i - o.k*c.Short); !math.IsNaN(v) {
		r.v[fDay] = v - r.base
	}
	for j := range 3 {
		r.v[fWeeks+j] = usual
		if c.Long > 0 {
			r.v[fWeeks+j] = smooth(i - (o.kw+j)*c.Long)
		}
	}
	r.v[fWeek], r.v[fProfile] = r.v[fWeeks], usual
	if c.Long > 0 {
		if v := h.at(i - o.kw*c.Long); !math.IsNaN(v) {
			r.v[fWeek] = v - r.base
		}
		if v := l.Week.at(h.first+int64(i), c); !math.IsNaN(v) {
			r.v[fProfile] = v + o.week - r.base
		}
	}
}

// apply is the value that coefficients make of the row.
func (r *row) apply(coefficients []float64) float64 {
	v := r.base
	for j, c := range coefficients {
		v += c * r.v[j]
	}
	return v
}
