package csvseries

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var nan = math.NaN()

func read(t *testing.T, text string, grouped bool) []Group {
	t.Helper()
	var out []Group
	for g, err := range Groups("in.csv", strings.NewReader(text), grouped) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

func TestErrorsNameTheRowAndTheFix(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", "in.csv: empty: begin with the header ts,value, or id,ts,value for several series"},
		{"header only", "id,ts,value\n", "in.csv: no rows: write one row id,ts,value for each value"},
		{"another header", "name,time,value\na,1,2\n", "in.csv:1: header: found name,time,value: begin with the header ts,value, or id,ts,value for several series"},
		{"no header", "a,1,2\n", "in.csv:1: header: found a,1,2: begin with the header ts,value, or id,ts,value for several series"},
		{"fields missing", "id,ts,value\na,1\n", "in.csv:2: 2 fields: write the three fields id,ts,value"},
		{"too many fields", "id,ts,value\na,1,2,3\n", "in.csv:2: 4 fields: write the three fields id,ts,value"},
		{"no id", "id,ts,value\na,1,2\n,2,2\n", "in.csv:3: id: empty: name the series that the value belongs to"},
		{"no time", "id,ts,value\na,,2\n", "in.csv:2: ts: empty: write seconds since 1970 (1767225600) or RFC 3339 (2026-01-01T00:00:00Z)"},
		{"a date alone", "id,ts,value\na,2026-01-01,2\n", `in.csv:2: ts: "2026-01-01" is no time: write seconds since 1970 (1767225600) or RFC 3339 (2026-01-01T00:00:00Z)`},
		{"milliseconds", "id,ts,value\na,1767225600000,2\n", "in.csv:2: ts: 1767225600000 seconds lie outside of the years 1824 to 2116 (milliseconds?): write seconds since 1970 (1767225600) or RFC 3339 (2026-01-01T00:00:00Z)"},
		{"year 9999", "id,ts,value\na,9999-01-01T00:00:00Z,2\n", `in.csv:2: ts: "9999-01-01T00:00:00Z" lies outside of the years 1824 to 2116: write seconds since 1970 (1767225600) or RFC 3339 (2026-01-01T00:00:00Z)`},
		{"text", "id,ts,value\n\na,1,many\n", `in.csv:3: value: "many" is no number: write a finite number, or nothing for a missing value`},
		{"infinite", "id,ts,value\na,1,-inf\n", `in.csv:2: value: "-inf" is not finite: write a finite number, or nothing for a missing value`},
		{"beyond a number", "id,ts,value\na,1,1e999\n", `in.csv:2: value: "1e999" is not finite: write a finite number, or nothing for a missing value`},
		{"a quote within", "id,ts,value\na\"b,1,2\n", `in.csv:2: bare " in non-quoted-field: put a field that holds quotes or commas into double quotes, and double its quotes`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Survey("in.csv", strings.NewReader(tt.in), nil)
			var bad *Error
			if !errors.As(err, &bad) || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestTimesTwiceAreRefused(t *testing.T) {
	const in = "id,ts,value\na,1,2\na,2,2\na,1970-01-01T00:00:01Z,3\n"
	for _, grouped := range []bool{true, false} {
		var err error
		for _, err = range Groups("in.csv", strings.NewReader(in), grouped) {
		}
		const want = `in.csv:4: ts: id "a" has this time on line 2 already: keep one value for each time`
		if err == nil || err.Error() != want {
			t.Errorf("grouped %v: got %v, want %s", grouped, err, want)
		}
	}
}

// A file of one series needs no ids; blanks around its fields are none of theirs, and its errors speak of its own two columns.
func TestLone(t *testing.T) {
	want := []Group{{Points: []Point{{At: 10e9, Value: nan, Line: 4}, {At: 20e9, Value: 2, Line: 3}}}}
	for _, in := range []string{"ts,value\n\n20,2\n10,\n", "\ufeffTS , Value\r\n\r\n20, 2\r\n 10 , \r\n", "\"ts\",\"value\"\n\n20,2\n10,", "\n ts,value\n20,2\n10,\n"} {
		shape, err := Survey("in.csv", strings.NewReader(in), nil)
		if err != nil || shape != (Shape{Rows: 2, IDs: 1, Grouped: true}) {
			t.Errorf("%q: %+v, %v", in, shape, err)
		}
		if d := cmp.Diff(want, read(t, in, true), cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%q: %s", in, d)
		}
	}
	for in, want := range map[string]string{
		"":                          "in.csv: empty: begin with the header ts,value, or id,ts,value for several series",
		"ts,value\n":                "in.csv: no rows: write one row ts,value for each value",
		"timestamp,value\n1,2\n":    "in.csv:1: header: found timestamp,value: begin with the header ts,value, or id,ts,value for several series",
		"ts;value\n1;2\n":           "in.csv:1: header: found ts;value: begin with the header ts,value, or id,ts,value for several series",
		"ts,value\n1,2,3\n":         "in.csv:2: 3 fields: write the two fields ts,value",
		"ts,value\n1,2\n2,3\n1,4\n": "in.csv:4: ts: this time stands on line 2 already: keep one value for each time",
		"ts,value\nsoon,2\n":        `in.csv:2: ts: "soon" is no time: write seconds since 1970 (1767225600) or RFC 3339 (2026-01-01T00:00:00Z)`,
	} {
		var got error
		for _, err := range Groups("in.csv", strings.NewReader(in), true) {
			got = err
		}
		if got == nil || got.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", in, got, want)
		}
	}
}

// A disk that fails is no bad row.
func TestBrokenSource(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := Survey("in.csv", iotest.ErrReader(broken), nil)
	var bad *Error
	if !errors.Is(err, broken) || errors.As(err, &bad) {
		t.Errorf("got %v", err)
	}
}

func TestSurvey(t *testing.T) {
	tests := []struct {
		in   string
		want Shape
	}{
		{"id,ts,value\na,1,2\na,2,\nb,1,3\n", Shape{Rows: 3, IDs: 2, Grouped: true}},
		{"\ufeffID, TS ,Value\na,1,2\nb,1,3\na,2,2\n", Shape{Rows: 3, IDs: 2, Grouped: false}},
	}
	for _, tt := range tests {
		got, err := Survey("in.csv", strings.NewReader(tt.in), nil)
		if err != nil || got != tt.want {
			t.Errorf("%q: got %+v, %v, want %+v", tt.in, got, err, tt.want)
		}
	}
}

func TestGroups(t *testing.T) {
	const in = "id,ts,value\nb,20,2\na,1.5,7\nb,10,\n\"x,y\",2026-01-01T00:00:00+08:00,1e3\na,1,6\n"
	want := []Group{
		{ID: "b", Points: []Point{{At: 10e9, Value: nan, Line: 4}, {At: 20e9, Value: 2, Line: 2}}},
		{ID: "a", Points: []Point{{At: 1e9, Value: 6, Line: 6}, {At: 15e8, Value: 7, Line: 3}}},
		{ID: "x,y", Points: []Point{{At: time.Date(2025, 12, 31, 16, 0, 0, 0, time.UTC).UnixNano(), Value: 1000, Line: 5}}},
	}
	if d := cmp.Diff(want, read(t, in, false), cmpopts.EquateNaNs()); d != "" {
		t.Error(d)
	}
}

func TestSeriesFindsTheStep(t *testing.T) {
	at := func(s ...float64) Group {
		g := Group{}
		for i, v := range s {
			g.Points = append(g.Points, Point{At: int64(v * 1e9), Value: float64(i + 1)})
		}
		return g
	}
	dates := func(ds ...string) Group {
		g := Group{}
		for i, d := range ds {
			v, err := time.Parse(time.DateOnly, d)
			if err != nil {
				t.Fatal(err)
			}
			g.Points = append(g.Points, Point{At: v.UnixNano(), Value: float64(i + 1)})
		}
		return g
	}
	tests := []struct {
		name string
		g    Group
		step time.Duration
		want []float64
	}{
		{"hours", at(0, 3600, 7200), time.Hour, []float64{1, 2, 3}},
		{"hours with a hole", at(0, 3600, 7200, 14400, 18000), time.Hour, []float64{1, 2, 3, nan, 4, 5}},
		{"scrapes that come late", at(0, 61, 119, 180), 61 * time.Second, []float64{1, 2, 3, 4}},
		{"late scrapes with a hole", at(0, 61, 120, 181, 240, 359, 420), 61 * time.Second, []float64{1, 2, 3, 4, 5, nan, 6, 7}},
		{"two in one step", at(0, 60, 70, 120, 180, 240, 300, 360), time.Minute, []float64{1, 2.5, 4, 5, 6, 7, 8}},
		{"one value", at(77), loneStep, []float64{1}},
		{"below a second", at(0, 0.25, 0.5), 250 * time.Millisecond, []float64{1, 2, 3}},
		{"months", dates("2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01"), 31 * day, []float64{1, 2, 3, 4}},
		{"months with a hole", dates("2024-01-01", "2024-02-01", "2024-03-01", "2024-05-01", "2024-06-01", "2024-07-01"), time.Duration(365.2425 / 12 * float64(day)),
			[]float64{1, 2, 3, nan, 4, 5, 6}},
		{"days over a change of clocks", at(0, 82800, 169200, 255600), day, []float64{1, 2, 3, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.g.Series()
			if s.Step != tt.step {
				t.Errorf("step %v, want %v", s.Step, tt.step)
			}
			if d := cmp.Diff(tt.want, s.Values, cmpopts.EquateNaNs()); d != "" {
				t.Error(d)
			}
		})
	}
}

// A value of long ago costs no more than the steps that are kept.
func TestSeriesIsBounded(t *testing.T) {
	g := Group{Points: []Point{{At: -4e18, Value: 1}, {At: 0, Value: 2}, {At: 1e9, Value: 3}, {At: 2e9, Value: 4}}}
	s := g.Series()
	if s.Len() != longest || s.Values[s.Len()-1] != 4 || s.Values[s.Len()-3] != 2 || !s.End().Equal(time.Unix(3, 0)) {
		t.Errorf("%d steps to %v, the last of them %v", s.Len(), s.End(), s.Values[s.Len()-3:])
	}
}

func TestWriter(t *testing.T) {
	var b strings.Builder
	w, err := NewWriter(&b, []float64{0.9, 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write("a,b", time.Unix(3600, 0), time.Hour, 2, [][]float64{{1.5, nan}, {1, 123456789012}}), w.Write("c", time.Time{}, 0, 1, [][]float64{{nan}, {nan}}), w.Flush()); err != nil {
		t.Fatal(err)
	}
	if want := "id,step,ts,q0.9,q0.5\n\"a,b\",1,1970-01-01T01:00:00Z,1.5,1\n\"a,b\",2,1970-01-01T02:00:00Z,,1.23456789e+11\nc,1,,,\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// Whatever the bytes, reading ends in an error with a place, or in groups whose points rise in time and hold every row.
func FuzzGroups(f *testing.F) {
	f.Add([]byte("id,ts,value\na,1,2\na,2,3\nb,1,\n"), true)
	f.Add([]byte("id,ts,value\na,2026-01-01T00:00:00Z,2\nb,1e9,NaN\na,-5,0x1p4\n"), false)
	f.Add([]byte("\ufeffid,ts,value\r\n\"q\"\"x\",1,2\r\n"), true)
	f.Add([]byte("id,ts,value\na,1"), true)
	f.Add([]byte("ts,value\n1,2\n1767225600,\n"), true)
	f.Add([]byte("\x1f\x8b\b\x00\x00\x00\x00\x00\x02\xff"), true)
	f.Fuzz(func(t *testing.T, in []byte, grouped bool) {
		shape, err := Survey("f", strings.NewReader(string(in)), nil)
		if err != nil {
			var bad *Error
			if !errors.As(err, &bad) || bad.Fix == "" {
				t.Fatalf("error without a fix: %v", err)
			}
			return
		}
		rows := 0
		for g, err := range Groups("f", strings.NewReader(string(in)), grouped && shape.Grouped) {
			if err != nil {
				return // a time twice
			}
			rows += len(g.Points)
			for i := 1; i < len(g.Points); i++ {
				if g.Points[i].At <= g.Points[i-1].At {
					t.Fatalf("%q: time %d after %d", g.ID, g.Points[i].At, g.Points[i-1].At)
				}
			}
			if len(g.Points) > 0 && g.Points[len(g.Points)-1].At-g.Points[0].At < 1e15 {
				if s := g.Series(); s.Known() > len(g.Points) || s.Step <= 0 {
					t.Fatalf("%d known values at step %v from %d points", s.Known(), s.Step, len(g.Points))
				}
			}
		}
		if rows != shape.Rows {
			t.Fatalf("%d rows in groups, %d surveyed", rows, shape.Rows)
		}
	})
}
