package scripttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/springtide/springtide/series"
)

// History is a load that a script describes, line by line. It begins on Monday, 5 January 2026, at midnight UTC.
//
//	step DURATION            the grid
//	tide DAYS LEVEL SWING    days of load around a level, high at noon by a share of it
//	noise SHARE              with noise of this share of the load
//	weekend SHARE            Saturdays and Sundays have this share of it
//	times FACTOR FROM TO     is multiplied between two points in days
//	gone FROM TO             is missing between them
//	dead FROM TO             is zero between them
type History struct {
	series.Series
}

// numbers is how many numbers follow each word of a history.
var numbers = map[string]int{"tide": 3, "noise": 1, "weekend": 1, "times": 3, "gone": 2, "dead": 2}

// Do carries out one line of a script; false says that its word does not describe a history.
func (h *History) Do(l Line) bool {
	if l[0] == "step" {
		h.Step = l.Duration(1)
		return h.Step > 0
	}
	n, known := numbers[l[0]]
	if !known || len(l) != 1+n {
		return false
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = l.Float(1 + i)
	}
	h.bend(l[0], v)
	return true
}

func (h *History) bend(word string, v []float64) {
	perDay := float64(24*time.Hour) / float64(h.Step)
	if word == "tide" {
		h.Series = series.New(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), h.Step, int(v[0]*perDay))
		for i := range h.Values {
			h.Values[i] = v[1] * (1 - v[2]*math.Cos(2*math.Pi*float64(i)/perDay))
		}
		return
	}
	r := rand.New(rand.NewPCG(1, uint64(len(h.Values))))
	for i := range h.Values {
		at, y := float64(i)/perDay, h.Values[i]
		switch word {
		case "noise":
			y *= math.Exp(v[0] * r.NormFloat64())
		case "weekend":
			if math.Mod(at, 7) >= 5 {
				y *= v[0]
			}
		case "times":
			if at >= v[1] && at < v[2] {
				y *= v[0]
			}
		case "gone":
			if at >= v[0] && at < v[1] {
				y = math.NaN()
			}
		case "dead":
			if at >= v[0] && at < v[1] {
				y = 0
			}
		}
		h.Values[i] = y
	}
}

// Short writes a number with two digits that count, so that the last bits of a sum change no script.
func Short(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprint(v)
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-1)
	return strconv.FormatFloat(math.Round(v/unit)*unit, 'f', max(0, -int(math.Round(math.Log10(unit)))), 64)
}
