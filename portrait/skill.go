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
	// fewest is the number of judged forecasts before anything is odd: a day of them. fewestLately is the number of the newest before skill
	// is doubted, fewestCovered that before coverage is: three days.
	fewest, fewestLately, fewestCovered = 40, 10, 120
	// Skill is lost where half of the newest forecasts are odd, where they miss half as much again as the last value does, or where the 0.9
	// quantile covers less than 0.7. The lower bars are what must hold for it to come back.
	lostOdd, calmOdd         = 0.5, 0.25
	lostLast, calmLast       = 1.5, 1.2
	lostCovered, calmCovered = 0.7, 0.75
	// regainAfter is how long nothing may speak against forecasts that come back: a night alone is no proof.
	regainAfter = 12 * time.Hour
)

// next is the skill after another forecast was judged.
func (s Skill) next(at time.Time, horizons []Horizon) Skill {
	lost, calm := false, true
	for i := range horizons {
		h := &horizons[i]
		if h.Ahead > longestDoubt {
			continue
		}
		lost = lost || h.worse(lostOdd, lostLast, lostCovered)
		calm = calm && !h.worse(calmOdd, calmLast, calmCovered)
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

// longestDoubt is the longest horizon by which skill is lost: sizing goes by the next minutes, and a holiday that nobody told of makes a day
// of forecasts a day ahead wrong without making those wrong.
const longestDoubt = time.Hour

// worse reports whether the newest forecasts are over one of three bars.
func (h *Horizon) worse(oddShare, overLast, covered float64) bool {
	l := &h.Lately
	if h.Judged < fewest+fewestLately || l.Judged < fewestLately {
		return false
	}
	return l.Odd >= oddShare || l.Miss > leastOdd && l.Miss > overLast*l.Last || h.Judged >= fewestCovered && l.Covered < covered
}

// String tells the figures of the horizon that speaks loudest, and what must come; empty while the skill is not lost.
func (r *Record) String() string {
	if !r.Skill.Lost {
		return ""
	}
	worst, most := -1, math.Inf(-1)
	for i := range r.Horizons {
		h := &r.Horizons[i]
		if grave := max(h.Lately.Odd/lostOdd, h.Lately.Miss/max(lostLast*h.Lately.Last, leastOdd), (1-h.Lately.Covered)/(1-lostCovered)); h.Ahead <= longestDoubt && grave > most {
			worst, most = i, grave
		}
	}
	if worst < 0 {
		return ""
	}
	h := &r.Horizons[worst]
	text := fmt.Sprintf("of the newest forecasts %s ahead %.0f %% missed by more than %d times what is usual; they miss by %.0f %% of the load, the last value by %.0f %%, and %.0f %% of what came lay below their p90",
		spoken(h.Ahead), 100*h.Lately.Odd, odd, 100*h.Lately.Miss, 100*h.Lately.Last, 100*h.Lately.Covered)
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
