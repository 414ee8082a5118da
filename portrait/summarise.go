package portrait

import (
	"math"
	"time"

	"github.com/springtide/springtide/series"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// summarise brings the figures that follow from the newest values up to date.
func (p *Portrait) summarise() {
	p.Noise = p.Learned.Noise()
	p.price(p.End)
	v := p.Recent.Values
	n, perDay := len(v), max(1, int(day/p.Step))
	p.Level = mean(v[max(0, n-perDay):])
	if math.IsNaN(p.Level) {
		p.Level = mean(v)
	}
	p.Trend = trend(v, perDay)
	if p.PeakAt.Before(p.End.Add(-week)) {
		p.findPeak()
	}
}

// trend is the change a step between the last three days and the same weekdays a week before: like is compared with like, so that a
// weekend is no fall. It is zero while there is no such week.
func trend(v []float64, perDay int) float64 {
	n, days := len(v), 3*perDay
	if n < 7*perDay+days {
		return 0
	}
	change := mean(v[n-days:]) - mean(v[n-days-7*perDay:n-7*perDay])
	if math.IsNaN(change) {
		return 0
	}
	return change / float64(7*perDay)
}

// findPeak looks for the largest load of the last seven days.
func (p *Portrait) findPeak() {
	p.Peak, p.PeakAt = 0, time.Time{}
	last := p.Recent.Since(p.End.Add(-week))
	for i, y := range last.Values {
		if y >= p.Peak || p.PeakAt.IsZero() && !math.IsNaN(y) {
			p.Peak, p.PeakAt = y, last.Time(i)
		}
	}
}

// mean of the known values, as a running mean so that it cannot overflow; NaN where none is known.
func mean(v []float64) float64 {
	m, n := math.NaN(), 0.0
	for _, x := range v {
		if math.IsNaN(x) {
			continue
		}
		if n++; n == 1 {
			m = x
		} else {
			m += (x - m) / n
		}
	}
	return m
}

// needed is the number of samples before the first season counts: two days, or two weeks where a step is too long to show a day.
func needed(step time.Duration) int {
	if step <= day/4 {
		return int(2 * day / step)
	}
	return max(2, int(2*week/step))
}

// judgeQuality brings the score and its reasons up to date.
func (p *Portrait) judgeQuality() {
	q := &p.Quality
	if q.Needed == 0 {
		q.Needed = needed(p.Step)
	}
	last := p.Recent.Since(p.End.Add(-week))
	share := 0.0
	if last.Len() > 0 {
		share = float64(last.Known()) / float64(last.Len())
	}
	q.Score = min(1, float64(q.Points)/float64(q.Needed)) * share
	q.ReadyAt, q.Note = time.Time{}, ""
	switch {
	case q.Points == 0:
		q.Note = "no samples yet"
	case q.Points < q.Needed:
		// Samples come as densely as they did so far.
		seen := max(int(series.GridIndex(p.End, p.Step)-series.GridIndex(p.Begin, p.Step)), q.Points)
		q.ReadyAt = p.End.Add(time.Duration(float64(q.Needed-q.Points) * float64(seen) / float64(q.Points) * float64(p.Step)))
		q.Note = "too young for a season"
	case p.Learned.SetAside > 0:
		q.Note = "the newest samples look like an outage and are set aside"
	case share < 0.5:
		q.Note = "more than half of the last week is missing"
	case p.End.Sub(p.Shape.Shift.At) < shiftDoubt:
		q.Note = p.Shape.Shift.String()
	}
}
