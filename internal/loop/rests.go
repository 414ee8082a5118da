package loop

import (
	"math"
	"time"

	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// rests are the times in which a service stood at zero and was seen all the same, the newest last. Its pods wrote no
// samples then, and its load was nothing: a gap would leave the portrait with what the hour held before, and a forecast
// without fresh samples is not trusted.
type rests []rest

type rest struct{ from, to time.Time }

// restsFor is how long rests are kept: history is read again as far back as samples may be late, or while a fall is in
// doubt.
const restsFor = 48 * time.Hour

// note adds what a cycle saw. Cycles that lie further apart than pause say nothing of the time between them.
func (r *rests) note(at time.Time, atRest bool, pause time.Duration) {
	if !atRest {
		return
	}
	list := *r
	if n := len(list); n > 0 && !at.Before(list[n-1].to) && at.Sub(list[n-1].to) <= pause {
		list[n-1].to = at
	} else {
		list = append(list, rest{at, at})
	}
	for len(list) > 0 && at.Sub(list[0].to) > restsFor {
		list = list[1:]
	}
	*r = list
}

func (r rests) cover(from, to time.Time) bool {
	for _, x := range r {
		if !x.from.After(from) && !x.to.Before(to) {
			return true
		}
	}
	return false
}

// fill puts the load of rests into a batch where it has gaps, or where it ends, up to a time. A batch without samples
// begins at from. Of a service whose requests are known those were nothing, too.
func (r rests) fill(b portrait.Batch, of portrait.Signal, step time.Duration, from, to time.Time) portrait.Batch {
	if len(r) == 0 {
		return b
	}
	start := b.CPU.Start
	if b.CPU.Len() == 0 {
		if start = from.Truncate(step); start.Before(from) {
			start = start.Add(step)
		}
	} else {
		step = b.CPU.Step
	}
	if step <= 0 || !to.After(start) {
		return b
	}
	last := b.CPU.Len() - 1
	var still []int
	for i := range int(to.Sub(start) / step) {
		if at := start.Add(time.Duration(i) * step); r.cover(at, at.Add(step)) {
			still, last = append(still, i), max(last, i)
		}
	}
	if len(still) == 0 {
		return b
	}
	quiet := func(s series.Series) series.Series {
		out := series.New(start, step, last+1)
		copy(out.Values, s.Values)
		for _, i := range still {
			if math.IsNaN(out.Values[i]) {
				out.Values[i] = 0
			}
		}
		return out
	}
	b.CPU, b.Ready = quiet(b.CPU), quiet(b.Ready)
	if b.Load.Len() > 0 || of == portrait.Requests {
		b.Load = quiet(b.Load)
	}
	return b
}
