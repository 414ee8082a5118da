package main

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/internal/series"
)

// readTraces reads every NAME.csv.gz below a folder that has the columns ts,value, by path. Others, such as those of M4, are no traces.
func readTraces(folder string) ([]plain.History, error) {
	var out []plain.History
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".csv.gz") {
			return err
		}
		rows, err := readCSV(path)
		if err != nil {
			return err
		}
		if len(rows) < 3 || !slices.Equal(rows[0], []string{"ts", "value"}) {
			return nil
		}
		samples := make([]series.Sample, 0, len(rows)-1)
		for i, r := range rows[1:] {
			at, err := time.Parse(time.RFC3339, r[0])
			v := math.NaN()
			if err == nil && r[1] != "" {
				v, err = strconv.ParseFloat(r[1], 64)
			}
			if err != nil {
				return fmt.Errorf("%s:%d: %w", path, i+2, err)
			}
			samples = append(samples, series.Sample{At: at, Value: v})
		}
		s := series.Series{Start: samples[0].At, Step: samples[1].At.Sub(samples[0].At)}
		for i, x := range samples {
			if !x.At.Equal(s.Time(i)) {
				return fmt.Errorf("%s:%d: ts: %v is off the grid of %v: write one row for each step", path, i+2, x.At, s.Step)
			}
			s.Values = append(s.Values, x.Value)
		}
		out = append(out, plain.History{ID: strings.TrimSuffix(filepath.Base(path), ".csv.gz"), Series: s})
		return nil
	})
	if err == nil && len(out) == 0 {
		err = errors.New("no traces: want files NAME.csv.gz with the columns ts,value")
	}
	if err != nil {
		return nil, fmt.Errorf("traces of %s: %w", folder, err)
	}
	return out, nil
}

func readCSV(path string) ([][]string, error) {
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

// readM4 reads the hourly part of M4. The test part is opened only where it is asked for.
func readM4(folder string, test bool) (sets []backtest.Set, title string, err error) {
	train, err := readNumbers(filepath.Join(folder, "Hourly-train.csv.gz"))
	if err != nil {
		return nil, "", err
	}
	if !test {
		return backtest.M4(train), "M4 hourly, origins within the training part", nil
	}
	actual, err := readNumbers(filepath.Join(folder, "Hourly-test.csv.gz"))
	if err != nil {
		return nil, "", err
	}
	if len(actual) != len(train) {
		return nil, "", fmt.Errorf("M4 hourly: %d series to train, %d to test", len(train), len(actual))
	}
	for i := range train {
		if train[i].ID != actual[i].ID {
			return nil, "", fmt.Errorf("M4 hourly: row %d is %s to train and %s to test", i+2, train[i].ID, actual[i].ID)
		}
	}
	return backtest.M4Test(train, actual), "M4 hourly, test part", nil
}

// readNumbers reads rows of an id and its values; rows are as long as the longest, with empty fields.
func readNumbers(path string) ([]backtest.Numbers, error) {
	rows, err := readCSV(path)
	if err != nil {
		return nil, err
	}
	var out []backtest.Numbers
	for i, r := range rows[1:] {
		n := backtest.Numbers{ID: r[0]}
		for _, field := range r[1:] {
			if field == "" {
				break
			}
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, i+2, err)
			}
			n.Values = append(n.Values, v)
		}
		out = append(out, n)
	}
	return out, nil
}
