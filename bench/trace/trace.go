// Package trace reads what the benchmarks are fed: gzipped CSV files, and the traces among them.
package trace

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/springtide/springtide/series"
)

// ErrLayout says that a file is no trace: it lacks the header ts,value, or two rows below it.
var ErrLayout = errors.New("no trace: want the columns ts,value and two rows or more")

// Read reads a trace, NAME.csv.gz with the columns ts,value: one row for each step, an empty value for a gap.
func Read(path string) (series.Series, error) {
	rows, err := Rows(path)
	if err != nil {
		return series.Series{}, err
	}
	if len(rows) < 3 || !slices.Equal(rows[0], []string{"ts", "value"}) {
		return series.Series{}, fmt.Errorf("%s: %w", path, ErrLayout)
	}
	var s series.Series
	for i, r := range rows[1:] {
		at, v, err := sample(r)
		if err != nil {
			return series.Series{}, fmt.Errorf("%s:%d: %w", path, i+2, err)
		}
		switch i {
		case 0:
			s.Start = at
		case 1:
			s.Step = at.Sub(s.Start)
		}
		if !at.Equal(s.Time(i)) {
			return series.Series{}, fmt.Errorf("%s:%d: ts: %v is off the grid of %v: write one row for each step", path, i+2, at, s.Step)
		}
		s.Values = append(s.Values, v)
	}
	return s, nil
}

// sample reads one row.
func sample(row []string) (at time.Time, v float64, err error) {
	if len(row) != 2 {
		return at, v, fmt.Errorf("%d fields: write the two fields ts,value", len(row))
	}
	if at, err = time.Parse(time.RFC3339, row[0]); err != nil {
		return at, v, err
	}
	if row[1] == "" {
		return at, math.NaN(), nil
	}
	v, err = strconv.ParseFloat(row[1], 64)
	return at, v, err
}

// Rows reads all rows of a gzipped CSV file. They may differ in length.
func Rows(path string) ([][]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := csv.NewReader(z)
	c.FieldsPerRecord = -1
	rows, err := c.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rows, nil
}
