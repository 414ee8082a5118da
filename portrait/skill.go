package portrait

import (
	"fmt"
	"math"
	"time"
)

// Skill says whether the forecasts of a service are as good as they were. It is lost at once and regained after [regainAfter] without doubt,
// so that it does not flutter.
type Skill struct {
	Lost bool
	// Since is when it was lost or regained; zero while it was never lost.
	Since time.Time
	// Calm is since when nothing speaks against the forecasts, while it is lost; zero while something does.
	Calm time.Time
}

const (
	// fewest is the number of judged forecasts before anything is odd, about a day of them, and fewestDoubt that before skill is doubted.
	fewest, fewestDoubt = 40, 120
	// doubtAfter is the history that must have been seen before skill is doubted: a first weekend is unlike what was forecast, and no surprise.
	doubtAfter = week + day
	// regainAfter is how long nothing may speak against forecasts that come back: a night alone is no proof.
	regainAfter = 12 * time.Hour
	// longestDoubt is the longest horizon by which skill is lost: sizing uses the next minutes, and an unannounced
	// holiday makes a day of forecasts a day ahead wrong without making those wrong.
	longestDoubt = time.Hour
)

// bars are what the newest forecasts must not be over: the share of odd ones; how many times as far off as the last
// value they are, and the share of those that it beats, both together, since two bursts make the former; and what the
// 0.9 quantile covers at least. The first two count only with a share of loads above the 0.9 quantile. A forecast that
// is too high puts no SLO at risk, since it is a floor, and a service that is held for it at all that it ever had
// wastes far more than the forecast does.
type bars struct{ odd, last, beaten, above, covered float64 }

// Skill is lost over the first, and comes back under the second. A tenth of the loads should lie above: of sixteen the share then strays by
// 0.05, so that a quarter is three such strays away; from a tenth, three in a row above make it. While the rest is over the lower bars, no
// more than that tenth is calm.
var (
	lostBars = bars{odd: 0.5, last: 1.5, beaten: 0.6, above: 0.25, covered: 0.7}
	calmBars = bars{odd: 0.25, last: 1.2, beaten: 0.5, above: 0.1, covered: 0.75}
)

// next is the skill after another forecast was judged.
func (s Skill) next(at time.Time, horizons []Horizon) Skill {
	lost, calm := false, true
	for i := range horizons {
		h := &horizons[i]
		if h.Ahead > longestDoubt {
			continue
		}
		lost = lost || h.over(lostBars)
		calm = calm && !h.over(calmBars)
	}
	switch {
	case !s.Lost && lost:
		return Skill{Lost: true, Since: at}
	case !s.Lost:
		return s
	case !calm:
		s.Calm = time.Time{}
	case s.Calm.IsZero():
		s.Calm = at
	case at.Sub(s.Calm) >= regainAfter:
		return Skill{Since: at}
	}
	return s
}

// over reports whether the newest forecasts are over one of the bars.
func (h *Horizon) over(b bars) bool {
	if h.Judged < fewestDoubt {
		return false
	}
	l := &h.Lately
	off := l.Odd >= b.odd || l.Miss > leastMiss && l.Miss > b.last*l.Last && l.Beaten >= b.beaten
	return off && l.Above >= b.above || l.Covered < b.covered
}

// grave is how near the newest forecasts are to a bar, from which the worst horizon is chosen.
func (h *Horizon) grave() float64 {
	l := &h.Lately
	off := max(l.Odd/lostBars.odd, min(l.Miss/max(lostBars.last*l.Last, leastMiss), l.Beaten/lostBars.beaten))
	return max(min(off, l.Above/lostBars.above), (1-l.Covered)/(1-lostBars.covered))
}

// String gives the figures of the horizon that speaks loudest, and what must come; empty while the skill is not lost.
func (r *Record) String() string {
	if !r.Skill.Lost {
		return ""
	}
	worst, most := -1, math.Inf(-1)
	for i := range r.Horizons {
		if h := &r.Horizons[i]; h.Ahead <= longestDoubt && h.grave() > most {
			worst, most = i, h.grave()
		}
	}
	if worst < 0 {
		return ""
	}
	h := &r.Horizons[worst]
	text := fmt.Sprintf("of the newest forecasts %s ahead %.0f %% missed by more than %d times what is usual, and %.0f %% were passed by the load at p90; they miss by %.0f %% of the load, the value at hand by %.0f %%, and %.0f %% of what came in days lay below their p90",
		spoken(h.Ahead), 100*h.Lately.Odd, odd, 100*h.Lately.Above, 100*h.Lately.Miss, 100*h.Lately.Last, 100*h.Lately.Covered)
	if !r.Skill.Calm.IsZero() {
		text += fmt.Sprintf("; better since %s, believed again after %s of that", r.Skill.Calm.UTC().Format("2006-01-02 15:04 MST"), spoken(regainAfter))
	}
	return text
}

// spoken renders a duration of minutes, hours or days.
func spoken(d time.Duration) string {
	switch {
	case d%day == 0:
		return fmt.Sprintf("%d d", d/day)
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d min", d/time.Minute)
}
