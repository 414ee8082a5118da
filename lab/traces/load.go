package traces

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/series"
)

//go:embed data
var files embed.FS

// Load reads a trace. It comes in one series for each stretch with a clock of its own; gaps are NaN.
func Load(t Trace) ([]series.Series, error) {
	f, err := files.Open("data/" + t.File)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", t.Name, err)
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("trace %s: %s: %w", t.Name, t.File, err)
	}
	whole, err := parse(z, t.Step)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %s: %w", t.Name, t.File, err)
	}
	if len(t.parts) == 0 {
		return []series.Series{whole}, nil
	}
	var out []series.Series
	for _, p := range t.parts {
		to := p.to
		if to == 0 {
			to = whole.Len()
		}
		s := series.Series{Start: whole.Time(p.from), Step: t.Step, Values: whole.Values[p.from:to]}
		if !p.start.IsZero() {
			s.Start = p.start
		}
		out = append(out, s)
	}
	return out, nil
}

// parse reads "ts,value" rows on a regular grid.
func parse(r io.Reader, step time.Duration) (series.Series, error) {
	in := bufio.NewScanner(r)
	if !in.Scan() || in.Text() != "ts,value" {
		return series.Series{}, fmt.Errorf(`line 1: want the header "ts,value"`)
	}
	out := series.Series{Step: step}
	for line := 2; in.Scan(); line++ {
		stamp, text, ok := strings.Cut(in.Text(), ",")
		if !ok {
			return series.Series{}, fmt.Errorf("line %d: want two columns", line)
		}
		at, err := time.Parse(time.RFC3339, stamp)
		if err != nil {
			return series.Series{}, fmt.Errorf("line %d: %w", line, err)
		}
		if out.Len() == 0 {
			out.Start = at
		}
		if want := out.End(); !at.Equal(want) {
			return series.Series{}, fmt.Errorf("line %d: ts is %s, but the grid wants %s", line, stamp, want.Format(time.RFC3339))
		}
		v := math.NaN()
		if text != "" {
			if v, err = strconv.ParseFloat(text, 64); err != nil {
				return series.Series{}, fmt.Errorf("line %d: %w", line, err)
			}
			if v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
				return series.Series{}, fmt.Errorf("line %d: value %q is no load: leave a missing value empty", line, text)
			}
		}
		out.Values = append(out.Values, v)
	}
	if err := in.Err(); err != nil {
		return series.Series{}, err
	}
	return out, nil
}

// Holiday is a named day.
type Holiday struct {
	Date time.Time // midnight at its beginning
	Name string
}

// holidays reads the holidays that fall into a trace, in order.
func holidays(t Trace) ([]Holiday, error) {
	if t.Holidays == "" {
		return nil, nil
	}
	b, err := files.ReadFile("data/" + t.Holidays)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", t.Name, err)
	}
	var out []Holiday
	in := bufio.NewScanner(bytes.NewReader(b))
	for line := 1; in.Scan(); line++ {
		if line == 1 {
			continue // header
		}
		day, name, ok := strings.Cut(in.Text(), ",")
		at, err := time.Parse(time.DateOnly, day)
		if !ok || err != nil {
			return nil, fmt.Errorf("trace %s: %s: line %d: want DATE,NAME", t.Name, t.Holidays, line)
		}
		out = append(out, Holiday{Date: at, Name: name})
	}
	return out, in.Err()
}
