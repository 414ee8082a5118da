package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/springtide/springtide/bench/trace"
	"github.com/springtide/springtide/forecast/backtest"
	"github.com/springtide/springtide/forecast/plain"
)

// readTraces reads every NAME.csv.gz below a folder that has the columns ts,value, by path. Others, such as those of M4, are no traces.
func readTraces(folder string) ([]plain.History, error) {
	var out []plain.History
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".csv.gz") {
			return err
		}
		s, err := trace.Read(path)
		if errors.Is(err, trace.ErrLayout) {
			return nil
		}
		if err != nil {
			return err
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
	rows, err := trace.Rows(path)
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
