package scenario

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/springtide/springtide/internal/csvseries"
	"github.com/springtide/springtide/internal/series"
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

// readTrace reads a CSV file, gzipped or not: `ts,value` for one series, `id,ts,value` for several.
func readTrace(path string) ([]trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := unzipped(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: write a CSV file, or a gzipped one", path, err)
	}
	lone, ok, err := csvseries.Lone(path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if ok {
		t, err := traceOf(path, &lone)
		return []trace{t}, err
	}
	shape, err := csvseries.Survey(path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	var out []trace
	for g, err := range csvseries.Groups(path, bytes.NewReader(text), shape.Grouped) {
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

// traceOf judges a series as a load: no value below nothing, and a step that a run can play.
func traceOf(path string, g *csvseries.Group) (trace, error) {
	for _, p := range g.Points {
		if p.Value < 0 {
			return trace{}, &csvseries.Error{File: path, Line: int(p.Line), Field: "value", Problem: fmt.Sprintf("%v is negative, and no load is", p.Value),
				Mend: "write 0 or more, or nothing for a missing value"}
		}
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

func unzipped(r io.Reader) ([]byte, error) {
	in := bufio.NewReader(r)
	magic, err := in.Peek(2)
	if err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return io.ReadAll(in)
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
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
