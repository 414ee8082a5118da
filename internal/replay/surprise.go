package replay

import (
	"math"
	"time"

	"github.com/springtide/springtide/series"
)

const (
	// surprise is how far above all that should have warned of it a minute is a surprise, calmMinutes how many of them a week a calm
	// service may have.
	surprise    = 1.4
	calmMinutes = 10.0
	// warnMinutes are the newest minutes that warn of the next one, warnAround how far around the same time of yesterday and last week
	// does.
	warnMinutes = 10
	warnAround  = 15
)

// Calm reports whether a service is predictable by history alone: at most ten minutes a week whose load is more than
// 1.4 times the maximum of the ten minutes before them and of a quarter of an hour around the same time yesterday and a
// week ago. Every other service is bursty. A history of less than a day says nothing, and is bursty.
func Calm(minutes series.Series) bool {
	const perDay, perWeek = int(day / time.Minute), int(week / time.Minute)
	v := minutes.Values
	surprises, judged := 0, 0
	for i := perDay + warnAround; i < len(v); i++ {
		if math.IsNaN(v[i]) {
			continue
		}
		warned := highest(v, i-warnMinutes, i)
		warned = max(warned, highest(v, i-perDay-warnAround, i-perDay+warnAround+1))
		warned = max(warned, highest(v, i-perWeek-warnAround, i-perWeek+warnAround+1))
		judged++
		if v[i] > surprise*warned {
			surprises++
		}
	}
	return judged > 0 && float64(surprises) <= calmMinutes*float64(judged)/float64(perWeek)
}

// highest is the largest known value of [from, to), 0 where there is none.
func highest(v []float64, from, to int) float64 {
	out := 0.0
	for _, x := range v[max(0, min(from, len(v))):max(0, min(to, len(v)))] {
		if x > out {
			out = x
		}
	}
	return out
}
