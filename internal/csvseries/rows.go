package csvseries

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Error is a row that cannot be read: where it stands, what is wrong with it and what would fix it.
type Error struct {
	File  string
	Line  int
	Field string
	// Problem says what was found, Fix what to write instead.
	Problem, Fix string
}

// Error renders "FILE:LINE: FIELD: PROBLEM: FIX".
func (e *Error) Error() string {
	s := e.File
	if e.Line > 0 {
		s += ":" + strconv.Itoa(e.Line)
	}
	if e.Field != "" {
		s += ": " + e.Field
	}
	return s + ": " + e.Problem + ": " + e.Fix
}

// Row is one value.
type Row struct {
	ID string
	// At is in nanoseconds since the epoch.
	At int64
	// Value is NaN for an empty field: a missing value.
	Value float64
	Line  int
}

// The columns of several series and of one, in this order.
var (
	header     = []string{"id", "ts", "value"}
	loneHeader = []string{"ts", "value"}
)

// Rows reads the rows one by one, of a file that is gzipped or not. A file of one series has no ids. After the first error it ends.
func Rows(file string, r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		p := parser{file: file}
		if err := p.open(r); err != nil {
			yield(Row{}, err)
			return
		}
		p.rows(yield)
	}
}

type parser struct {
	file string
	from *bounded
	csv  *csv.Reader
	// columns are the header or the loneHeader.
	columns []string
	// id is the last one, so that the rows of a series share one string; last is the line of the last record.
	id   string
	last int
}

// open reads up to the header, whose names are compared in small letters and without blanks around them.
func (p *parser) open(r io.Reader) error {
	text, err := unzip(r)
	if err != nil {
		return p.broken(err)
	}
	p.from = &bounded{r: text}
	p.csv = csv.NewReader(skipMark(p.from))
	p.csv.ReuseRecord = true
	p.csv.FieldsPerRecord = -1
	record, err := p.read()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(record) > 0 {
		p.last, _ = p.csv.FieldPos(0)
	}
	for i := range record {
		record[i] = strings.ToLower(strings.TrimSpace(record[i]))
	}
	const want = "begin with the header ts,value, or id,ts,value for several series"
	switch {
	case len(record) == 0:
		return &Error{File: p.file, Problem: "empty", Fix: want}
	case slices.Equal(record, header):
		p.columns = header
	case slices.Equal(record, loneHeader):
		p.columns = loneHeader
	default:
		return &Error{File: p.file, Line: p.last, Field: "header", Problem: fmt.Sprintf("found %s", clip(strings.Join(record, ","))), Fix: want}
	}
	return nil
}

// read reads the next record.
func (p *parser) read() ([]string, error) {
	p.from.begin()
	record, err := p.csv.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, p.broken(err)
	}
	return record, err
}

// rows reads what stands behind the header.
func (p *parser) rows(yield func(Row, error) bool) {
	for n := 0; ; n++ {
		record, err := p.read()
		if errors.Is(err, io.EOF) {
			if n == 0 {
				yield(Row{}, &Error{File: p.file, Problem: "no rows", Fix: "write one row " + strings.Join(p.columns, ",") + " for each value"})
			}
			return
		}
		if err != nil {
			yield(Row{}, err)
			return
		}
		p.last, _ = p.csv.FieldPos(0)
		row, err := p.row(record, p.last)
		if !yield(row, err) || err != nil {
			return
		}
	}
}

// broken turns an error of the CSV reader into ours; an error of the source below it stays as it is.
func (p *parser) broken(err error) error {
	var bad *csv.ParseError
	var much *tooMuch
	switch {
	case errors.As(err, &much):
		return &Error{File: p.file, Line: p.last + 1, Problem: much.problem, Fix: much.fix}
	case badZip(err):
		return &Error{File: p.file, Problem: "broken gzip: " + err.Error(), Fix: "write a CSV file, or a gzipped one"}
	case !errors.As(err, &bad):
		return fmt.Errorf("read %s: %w", p.file, err)
	}
	return &Error{File: p.file, Line: bad.Line, Problem: bad.Err.Error(), Fix: "put a field that holds quotes or commas into double quotes, and double its quotes"}
}

func (p *parser) row(record []string, line int) (Row, error) {
	fail := func(field, problem, fix string) (Row, error) {
		return Row{}, &Error{File: p.file, Line: line, Field: field, Problem: problem, Fix: fix}
	}
	if len(record) != len(p.columns) {
		return fail("", fmt.Sprintf("%d fields", len(record)), fmt.Sprintf("write the %s fields %s", numbers[len(p.columns)], strings.Join(p.columns, ",")))
	}
	if len(record) == len(header) {
		if record[0] == "" {
			return fail("id", "empty", "name the series that the value belongs to")
		}
		if len(record[0]) > mostID {
			return fail("id", fmt.Sprintf("%d bytes, at most %d are read", len(record[0]), mostID), "give the series a shorter name")
		}
		if record[0] != p.id {
			p.id = strings.Clone(record[0])
		}
		record = record[1:]
	}
	at, problem := parseTime(strings.TrimSpace(record[0]))
	if problem != "" {
		return fail("ts", problem, "write seconds since 1970 (1767225600) or RFC 3339 (2026-01-01T00:00:00Z)")
	}
	value, problem := parseValue(strings.TrimSpace(record[1]))
	if problem != "" {
		return fail("value", problem, "write a finite number, or nothing for a missing value")
	}
	return Row{ID: p.id, At: at, Value: value, Line: line}, nil
}

// numbers as words.
var numbers = []string{2: "two", 3: "three"}

// The years between which the distance of any two times fits into nanoseconds.
const (
	earliest = -4_611_686_018
	latest   = 4_611_686_018
)

func parseTime(s string) (at int64, problem string) {
	if s == "" {
		return 0, "empty"
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n <= earliest || n >= latest {
			return 0, fmt.Sprintf("%d seconds lie outside of the years 1824 to 2116 (milliseconds?)", n)
		}
		return n * int64(time.Second), ""
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		if !(f > earliest && f < latest) {
			return 0, fmt.Sprintf("%s seconds lie outside of the years 1824 to 2116 (milliseconds?)", clip(s))
		}
		whole, part := math.Modf(f)
		return int64(whole)*int64(time.Second) + int64(math.Round(part*1e9)), ""
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, fmt.Sprintf("%s is no time", quote(s))
	}
	if u := t.Unix(); u <= earliest || u >= latest {
		return 0, fmt.Sprintf("%s lies outside of the years 1824 to 2116", quote(s))
	}
	return t.UnixNano(), ""
}

func parseValue(s string) (v float64, problem string) {
	if s == "" {
		return math.NaN(), ""
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case math.IsInf(v, 0):
		return 0, fmt.Sprintf("%s is not finite", quote(s))
	case err != nil:
		return 0, fmt.Sprintf("%s is no number", quote(s))
	}
	return v, ""
}

func quote(s string) string { return strconv.Quote(clip(s)) }

// clip keeps a broken file from filling the terminal.
func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// skipMark drops the byte order mark that some spreadsheets write.
func skipMark(r io.Reader) io.Reader {
	b := make([]byte, 3)
	n, err := io.ReadFull(r, b)
	if n == 3 && string(b) == "\ufeff" {
		return r
	}
	head := io.Reader(strings.NewReader(string(b[:n])))
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return io.MultiReader(head, failing{err})
	}
	return io.MultiReader(head, r)
}

// failing is a reader whose source broke.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
