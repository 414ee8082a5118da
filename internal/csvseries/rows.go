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

// Error is a row that cannot be read: where it stands, what is wrong with it and what would mend it.
type Error struct {
	File  string
	Line  int
	Field string
	// Problem says what was found, Mend what to write instead.
	Problem, Mend string
}

// Error renders "FILE:LINE: FIELD: PROBLEM: MEND".
func (e *Error) Error() string {
	s := e.File
	if e.Line > 0 {
		s += ":" + strconv.Itoa(e.Line)
	}
	if e.Field != "" {
		s += ": " + e.Field
	}
	return s + ": " + e.Problem + ": " + e.Mend
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

// Rows reads the rows one by one. After the first error it ends.
func Rows(file string, r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		c, p := open(r), parser{file: file, columns: header}
		found, err := p.header(c)
		if err == nil && !slices.Equal(found, header) {
			err = p.unknown(c, found, "id,ts,value")
		}
		if err != nil {
			yield(Row{}, err)
			return
		}
		p.rows(c)(yield)
	}
}

// Lone reads a file of one series, `ts,value`: its points in time order, without an id. A file of several is left to [Survey] and [Groups]; then
// ok is false.
func Lone(file string, r io.Reader) (g Group, ok bool, err error) {
	c, p := open(r), parser{file: file, columns: loneHeader}
	found, err := p.header(c)
	switch {
	case err != nil:
		return Group{}, true, err
	case slices.Equal(found, header):
		return Group{}, false, nil
	case !slices.Equal(found, loneHeader):
		return Group{}, true, p.unknown(c, found, "ts,value, or id,ts,value for several series")
	}
	var points []Point
	for row, err := range p.rows(c) {
		if err != nil {
			return Group{}, true, err
		}
		points = append(points, point(row))
	}
	if len(points) == 0 {
		return Group{}, true, noRows(file, loneHeader)
	}
	g, err = group(file, "", points)
	return g, true, err
}

func open(r io.Reader) *csv.Reader {
	c := csv.NewReader(skipMark(r))
	c.ReuseRecord = true
	c.FieldsPerRecord = -1
	return c
}

type parser struct {
	file    string
	columns []string
	// id is the last one, so that the rows of a series share one string.
	id string
}

// header is the first record, as names are compared: in small letters, without blanks around them. An empty file has none.
func (p *parser) header(c *csv.Reader) ([]string, error) {
	record, err := c.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, p.broken(err)
	}
	for i := range record {
		record[i] = strings.ToLower(strings.TrimSpace(record[i]))
	}
	return record, nil
}

// unknown refuses a header that is not the one that is wanted.
func (p *parser) unknown(c *csv.Reader, found []string, want string) error {
	want = "begin with the header " + want
	if len(found) == 0 {
		return &Error{File: p.file, Problem: "empty", Mend: want}
	}
	line, _ := c.FieldPos(0)
	return &Error{File: p.file, Line: line, Field: "header", Problem: fmt.Sprintf("found %s", clip(strings.Join(found, ","))), Mend: want}
}

// rows reads what stands behind the header.
func (p *parser) rows(c *csv.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for {
			record, err := c.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Row{}, p.broken(err))
				return
			}
			line, _ := c.FieldPos(0)
			row, err := p.row(record, line)
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// broken turns an error of the CSV reader into ours; an error of the source below it stays as it is.
func (p *parser) broken(err error) error {
	var bad *csv.ParseError
	if !errors.As(err, &bad) {
		return fmt.Errorf("read %s: %w", p.file, err)
	}
	return &Error{File: p.file, Line: bad.Line, Problem: bad.Err.Error(), Mend: "put a field that holds quotes or commas into double quotes, and double its quotes"}
}

func (p *parser) row(record []string, line int) (Row, error) {
	fail := func(field, problem, mend string) (Row, error) {
		return Row{}, &Error{File: p.file, Line: line, Field: field, Problem: problem, Mend: mend}
	}
	if len(record) != len(p.columns) {
		return fail("", fmt.Sprintf("%d fields", len(record)), fmt.Sprintf("write the %s fields %s", numbers[len(p.columns)], strings.Join(p.columns, ",")))
	}
	if len(record) == len(header) {
		if record[0] == "" {
			return fail("id", "empty", "name the series that the value belongs to")
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
