package csvseries

import (
	"bufio"
	"encoding/csv"
	"io"
	"math"
	"strconv"
	"time"
)

// Writer writes forecasts as `id,step,ts,q0.5,...`; ts is when the step begins, in RFC 3339.
type Writer struct {
	out    *bufio.Writer
	csv    *csv.Writer
	record []string
}

// NewWriter writes the header for the quantiles.
func NewWriter(w io.Writer, quantiles []float64) (*Writer, error) {
	out := bufio.NewWriter(w)
	f := &Writer{out: out, csv: csv.NewWriter(out), record: []string{"id", "step", "ts"}}
	for _, q := range quantiles {
		f.record = append(f.record, "q"+strconv.FormatFloat(q, 'g', -1, 64))
	}
	return f, f.csv.Write(f.record)
}

// Write writes one series: paths[i][j] is quantile i at step j+1, the first of which begins at a time. NaN becomes an empty field, and so does a time that is
// not known.
func (f *Writer) Write(id string, begin time.Time, step time.Duration, steps int, paths [][]float64) error {
	f.record[0] = id
	for j := range steps {
		f.record[1] = strconv.Itoa(j + 1)
		if f.record[2] = ""; !begin.IsZero() {
			f.record[2] = begin.Add(time.Duration(j) * step).UTC().Format(time.RFC3339Nano)
		}
		for i := range paths {
			f.record[3+i] = ""
			if v := paths[i][j]; !math.IsNaN(v) {
				// Nine digits: more than any forecast knows, and the last ones may differ between processors.
				f.record[3+i] = strconv.FormatFloat(v, 'g', 9, 64)
			}
		}
		if err := f.csv.Write(f.record); err != nil {
			return err
		}
	}
	return nil
}

// Flush hands everything on.
func (f *Writer) Flush() error {
	f.csv.Flush()
	if err := f.csv.Error(); err != nil {
		return err
	}
	return f.out.Flush()
}
