package scenario

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
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
	lone := loneSeries(text)
	if lone {
		text = withID(text)
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
		t := trace{series: g.Series()}
		if !lone {
			t.id = g.ID
		}
		if t.series, err = onMinutes(t.series); err != nil {
			return nil, fmt.Errorf("%s: id %q: %w", path, g.ID, err)
		}
		out = append(out, t)
	}
	return out, nil
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

// loneSeries reports whether the header is that of one series.
func loneSeries(text []byte) bool {
	head, _, _ := bytes.Cut(text, []byte("\n"))
	return strings.EqualFold(strings.TrimSpace(strings.TrimPrefix(string(head), "\ufeff")), "ts,value")
}

// withID gives every row of one series the same id, line by line, so that errors name the lines of the file.
func withID(text []byte) []byte {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	var out bytes.Buffer
	out.Grow(len(text) + len(text)/8)
	for i, line := range bytes.SplitAfter(text, []byte("\n")) {
		switch {
		case i == 0:
			out.WriteString("id,")
		case len(bytes.TrimSpace(line)) > 0:
			out.WriteString("1,")
		}
		out.Write(line)
	}
	return out.Bytes()
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
