package scenario

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/springtide/springtide/internal/csvseries"
	"github.com/springtide/springtide/series"
)

// trace is one series of a file.
type trace struct {
	// id is empty where the file holds one series.
	id     string
	series series.Series
}

// traces reads a file once.
func (s *Scenario) traces(path string) ([]trace, error) {
	if t, ok := s.read[path]; ok {
		return t, nil
	}
	t, err := readTrace(path)
	if err == nil && s.read != nil {
		s.read[path] = t
	}
	return t, err
}

// readTrace reads a CSV file, gzipped or not: `ts,value` for one series, `id,ts,value` for several. It is read twice: to judge it, and for its series.
func readTrace(path string) ([]trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	shape, err := csvseries.Survey(path, f, func(row csvseries.Row) error {
		if row.Value < 0 {
			return &csvseries.Error{File: path, Line: row.Line, Field: "value", Problem: fmt.Sprintf("%v is negative, and no load is", row.Value),
				Fix: "write 0 or more, or nothing for a missing value"}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read %s again: %w: write it to a file first", path, err)
	}
	var out []trace
	for g, err := range csvseries.Groups(path, f, shape.Grouped) {
		if err != nil {
			return nil, err
		}
		t, err := traceOf(path, &g)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// traceOf judges a series as a load that a run can play: one step, of whole minutes.
func traceOf(path string, g *csvseries.Group) (trace, error) {
	if line, before, after, mixed := g.MixedSteps(); mixed {
		return trace{}, &csvseries.Error{File: path, Line: line, Field: "ts", Problem: fmt.Sprintf("one value in %v from here on, one in %v before", after, before),
			Fix: "resample the series to one step"}
	}
	s, err := onMinutes(g.Series())
	if err != nil {
		if g.ID != "" {
			path += fmt.Sprintf(": id %q", g.ID)
		}
		return trace{}, fmt.Errorf("%s: %w", path, err)
	}
	return trace{id: g.ID, series: s}, nil
}

// onMinutes brings finer steps to minutes, and refuses those that no minute fits.
func onMinutes(s series.Series) (series.Series, error) {
	switch {
	case s.Step < time.Minute:
		return s.Align(time.Minute, series.Mean), nil
	case s.Step%time.Minute != 0:
		return s, fmt.Errorf("a step of %s: resample it to whole minutes", s.Step)
	case s.Step > time.Hour:
		return s, fmt.Errorf("a step of %s is too coarse to replay: give one value an hour, or more", s.Step)
	}
	return s, nil
}
