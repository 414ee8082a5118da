package traces

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/springtide/springtide/internal/replay"
	"github.com/springtide/springtide/series"
)

// Source is the load of one online service, made from one window of one trace.
type Source struct {
	// Name is unique and fit for a Kubernetes name, Group for a namespace.
	Name, Group string
	// Trace and Window say where the load comes from; windows of a trace are numbered from 1 in order of time.
	Trace  string
	Window int
	Kind   Kind
	// Step is the interval at which the trace was measured. Disaggregated marks a load that was brought from a coarser step to minutes.
	Step          time.Duration
	Disaggregated bool
	// Young marks a service with less than two weeks of history.
	Young bool
	// MeasuredFrom is when the window began in the trace's own time.
	MeasuredFrom time.Time
	// RawPeak is the largest value of the last week of history in the trace's own unit, which is 1 in Load.
	RawPeak float64
	// Load has one-minute steps and ends at End. Its unit is the peak of the last week before ReplayStart; before that a missing value is
	// NaN, after it there is none.
	Load series.Series
	// Holidays are the known holidays, in virtual time. A trace without a list of holidays has none here.
	Holidays []Holiday
}

// History is the part of the load before the replay.
func (s *Source) History() series.Series {
	n := s.Load.Index(ReplayStart())
	return series.Series{Start: s.Load.Start, Step: s.Load.Step, Values: s.Load.Values[:n:n]}
}

// Services makes n services. The choice depends on n, the seed and the histories alone: it goes round the catalogue and takes from each
// trace the next window of a shuffled order, so that traces are mixed evenly. At most a tenth of the services (and at least one) are
// young, since young services cannot show what a forecast is good for.
func Services(n int, seed uint64) ([]Source, error) { return services(n, seed, Load) }

func services(n int, seed uint64, load func(Trace) ([]series.Series, error)) ([]Source, error) {
	catalog := Catalog()
	decks := make([][]window, len(catalog))
	usable := 0
	for i, t := range catalog {
		parts, err := load(t)
		if err != nil {
			return nil, err
		}
		for _, w := range windows(t, parts) {
			if w.usable() {
				decks[i] = append(decks[i], w)
				usable++
			}
		}
		r := rand.New(rand.NewPCG(seed, replay.Seed("deck", t.Name)))
		r.Shuffle(len(decks[i]), func(a, b int) { decks[i][a], decks[i][b] = decks[i][b], decks[i][a] })
	}
	if n < 1 || n > usable {
		return nil, fmt.Errorf("services: want 1 to %d, have %d: the traces hold no more windows that do not overlap", usable, n)
	}
	picked := deal(decks, n)
	if len(picked) < n {
		return nil, fmt.Errorf("services: %d were asked for, but only %d windows remain when at most a tenth may be young", n, len(picked))
	}
	out := make([]Source, 0, n)
	for i := range picked {
		s, err := source(&picked[i], seed)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// deal takes one window of each trace in turn, until n are taken or none is left.
func deal(decks [][]window, n int) []window {
	var out []window
	young := max(1, n/10)
	for took := true; took && len(out) < n; {
		took = false
		for i := range decks {
			if len(decks[i]) == 0 || len(out) == n {
				continue
			}
			w := decks[i][0]
			decks[i] = decks[i][1:]
			took = true
			if w.young {
				if young == 0 {
					continue
				}
				young--
			}
			out = append(out, w)
		}
	}
	return out
}

func source(w *window, seed uint64) (Source, error) {
	s := Source{
		Name: fmt.Sprintf("%s-%02d", w.trace.Name, w.number), Group: w.trace.Group,
		Trace: w.trace.Name, Window: w.number, Kind: w.trace.Kind,
		Step: w.trace.Step, Disaggregated: w.trace.Step > time.Minute, Young: w.young,
		MeasuredFrom: w.raw.Start.Add(-w.shift), Load: toMinutes(w, seed),
	}
	s.RawPeak = replay.Peak(frame().LastWeek(s.Load))
	for i := range s.Load.Values {
		s.Load.Values[i] /= s.RawPeak
	}
	days, err := holidays(w.trace)
	if err != nil {
		return Source{}, err
	}
	for _, d := range days {
		if d.Date = d.Date.Add(w.shift); !d.Date.Before(s.Load.Start) && d.Date.Before(End()) {
			s.Holidays = append(s.Holidays, d)
		}
	}
	return s, nil
}
