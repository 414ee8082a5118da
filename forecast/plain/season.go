package plain

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/portrait/model"
)

// Season is one period: a length of time, or a number of steps whatever their length.
type Season struct {
	Length time.Duration
	Steps  int
}

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// mostSeasonSteps bounds a season: a year of five-minute steps.
const mostSeasonSteps = 105_120

// In is the period in whole steps, or 0 where a step is too long to show it.
func (s Season) In(step time.Duration) int {
	n := s.Steps
	if s.Length > 0 && step > 0 {
		n = int(math.Round(float64(s.Length) / float64(step)))
	}
	if n < 2 || n > mostSeasonSteps {
		return 0
	}
	return n
}

// String writes the season as [ParseSeason] reads it.
func (s Season) String() string {
	if s.Length > 0 {
		return s.Length.String()
	}
	return strconv.Itoa(s.Steps)
}

// ParseSeason reads a length of time (24h, 7d, 1w) or a number of steps (288).
func ParseSeason(text string) (Season, error) {
	text = strings.TrimSpace(text)
	if n, err := strconv.Atoi(text); err == nil {
		if n < 2 || n > mostSeasonSteps {
			return Season{}, fmt.Errorf("%q: a season has from 2 to %d steps", text, mostSeasonSteps)
		}
		return Season{Steps: n}, nil
	}
	length, err := ParseLength(text)
	if err != nil {
		return Season{}, fmt.Errorf("%q is no season: write a length of time (24h, 7d, 1w) or a number of steps (288)", text)
	}
	return Season{Length: length}, nil
}

// ParseLength reads a positive length of time: what time.ParseDuration reads, or whole days (7d) or weeks (1w).
func ParseLength(text string) (time.Duration, error) {
	unit := time.Duration(0)
	switch {
	case strings.HasSuffix(text, "d"):
		unit = day
	case strings.HasSuffix(text, "w"):
		unit = week
	}
	if unit > 0 {
		n, err := strconv.Atoi(text[:len(text)-1])
		if err != nil || n < 1 || n > int(math.MaxInt64/unit) {
			return 0, fmt.Errorf("%q is no length of time", text)
		}
		return time.Duration(n) * unit, nil
	}
	length, err := time.ParseDuration(text)
	if err != nil || length <= 0 {
		return 0, fmt.Errorf("%q is no length of time", text)
	}
	return length, nil
}

// cycle are the shortest and the longest of the periods that were asked for.
func (o Options) cycle(step time.Duration) model.Cycle {
	p := o.Periods(step)
	switch len(p) {
	case 0:
		return model.Cycle{}
	case 1:
		return model.Cycle{Short: p[0]}
	}
	return model.Cycle{Short: p[0], Long: p[len(p)-1]}
}

// Periods are the seasons that a step can show, in steps, rising and each once: those that were asked for, else the day and the week.
func (o Options) Periods(step time.Duration) []int {
	seasons := o.Seasons
	if len(seasons) == 0 {
		seasons = []Season{{Length: day}, {Length: week}}
	}
	var out []int
	for _, s := range seasons {
		if n := s.In(step); n > 0 {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
