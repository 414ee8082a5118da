package plain

import (
	"slices"
	"time"

	"github.com/springtide/springtide/forecast/calendar"
	"github.com/springtide/springtide/forecast/festive"
)

// Holiday is a named day: the same name on another date is another occurrence of it, and a feast of several days has one for each.
type Holiday = calendar.Day

// WithHolidays makes a forecaster of one that knows nothing of holidays: their effects are taken out of the histories before, and lifted
// onto the paths after it. Effects are learned from each history, and from those of the other series of the origin for what it never saw.
// Without holidays, and for series that fall below zero, it is that forecaster.
func WithHolidays(f Forecaster) Forecaster {
	return func(in Input) []Forecast {
		if len(in.Options.Holidays) == 0 {
			return f(in)
		}
		days := near(in.Options.Holidays, &in)
		effects := make([]festive.Effects, len(in.Histories))
		for i, h := range in.Histories {
			if !slices.ContainsFunc(h.Values, func(v float64) bool { return v < 0 }) {
				effects[i] = festive.Learn(festive.Effects{}, h.Series, days)
			}
		}
		kin := festive.Pool(effects)
		plain := in
		plain.Histories = slices.Clone(in.Histories)
		for i := range effects {
			if effects[i].Slots > 0 {
				plain.Histories[i].Series = effects[i].Clean(in.Histories[i].Series, days, kin)
			}
		}
		out := f(plain)
		for i, h := range in.Histories {
			lifts := effects[i].Expect(days, kin)
			lifts.Apply(h.End(), h.Step, in.Quantiles, out[i].Paths)
		}
		return out
	}
}

// near are the holidays that matter to an origin: a list of a region spans a century.
func near(holidays []Holiday, in *Input) []Holiday {
	var from, to time.Time
	for i := range in.Histories {
		h := &in.Histories[i]
		if from.IsZero() || h.Start.Before(from) {
			from = h.Start
		}
		if end := h.Time(h.Len() + in.Horizon); end.After(to) {
			to = end
		}
	}
	// The neighbours of a holiday are learned as well, and a feast is numbered from its first day on.
	const margin = 31 * day
	from, to = from.Add(-margin), to.Add(margin)
	var out []Holiday
	for _, d := range holidays {
		if d.To.After(from) && d.From.Before(to) {
			out = append(out, d)
		}
	}
	return calendar.Number(out)
}
