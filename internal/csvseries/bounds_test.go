package csvseries

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// zipped is a gzipped text.
func zipped(t *testing.T, parts ...io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := io.Copy(z, io.MultiReader(parts...)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// endless is a text that repeats.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

// Gzip is recognised by the first bytes, whatever the file is called, and a broken one is named.
func TestGzip(t *testing.T) {
	const text = "id,ts,value\na,1,2\na,2,3\n"
	whole := zipped(t, strings.NewReader(text))
	got, err := Survey("in.csv", bytes.NewReader(whole), nil)
	if err != nil || got != (Shape{Rows: 2, IDs: 1, Grouped: true}) {
		t.Errorf("%+v, %v", got, err)
	}
	bent := bytes.Clone(whole)
	bent[len(bent)-6] ^= 1
	for name, in := range map[string][]byte{"cut": whole[:len(whole)-9], "bent": bent, "no more than its magic": {0x1f, 0x8b, 0, 0, 0, 0, 0, 0, 0, 0}} {
		_, err := Survey("in.csv", bytes.NewReader(in), nil)
		var bad *Error
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), "broken gzip") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A small file may unzip to one row of gigabytes, by a line that does not end or by a quote that is not closed. The reading ends at the bound, which the error tells.
func TestARowIsBounded(t *testing.T) {
	const rest = "a row of more than 64 KiB: end each row with a line break, and close each quote"
	for name, c := range map[string]struct{ head, more, want string }{
		"a line of digits":      {"id,ts,value\na,1,2\n", "1", "in.csv:3: " + rest},
		"a header without end":  {"", "id,", "in.csv:1: " + rest},
		"a quote over lines":    {"ts,value\n1,2\n3,\"", "4\n", "in.csv:3: " + rest},
		"nothing but zeros":     {"", "\x00", "in.csv:1: " + rest},
		"an id that is as long": {"id,ts,value\n", "x", "in.csv:2: " + rest},
	} {
		t.Run(name, func(t *testing.T) {
			const size = 16 << 20
			file := zipped(t, strings.NewReader(c.head), io.LimitReader(&endless{text: c.more}, size))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Survey("in.csv", bytes.NewReader(file), nil)
			runtime.ReadMemStats(&after)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
				t.Errorf("%d bytes of memory for a file of %d", took, len(file))
			}
		})
	}
}

func TestIDsAreBounded(t *testing.T) {
	_, err := Survey("in.csv", strings.NewReader("id,ts,value\n"+strings.Repeat("x", mostID+1)+",1,2\n"), nil)
	if want := "in.csv:2: id: 1025 bytes, at most 1024 are read: give the series a shorter name"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if testing.Short() {
		return
	}
	many := make(chan []byte, 1)
	r, w := io.Pipe()
	go func() {
		fmt.Fprint(w, "id,ts,value\n")
		for i := range mostIDs + 2 {
			if _, err := fmt.Fprintf(w, "%d,1,2\n", i); err != nil {
				break
			}
		}
		w.Close()
		close(many)
	}()
	_, err = Survey("in.csv", r, nil)
	r.Close()
	<-many
	if want := fmt.Sprintf("in.csv:%d: id: more than 1048576 series: split the file", mostIDs+2); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The rows that must be held at once are bounded; of a file whose rows stand together by their ids that is one series.
func TestHeldRowsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 17 million rows")
	}
	const rows = mostHeld + 1
	text := io.MultiReader(strings.NewReader("ts,value\n"), io.LimitReader(&endless{text: "1,1\n"}, 4*rows))
	_, err := Survey("in.csv", text, nil)
	if want := fmt.Sprintf("in.csv:%d: more than 16777216 rows that must be held at once: let the rows of each id stand together, and split longer series", rows+1); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The check of each row ends the reading at the first row that it refuses.
func TestACheckEndsTheReading(t *testing.T) {
	seen := 0
	wrong := errors.New("wrong")
	_, err := Survey("in.csv", io.MultiReader(strings.NewReader("ts,value\n"), &endless{text: "1,-1\n"}), func(r Row) error {
		if seen++; r.Value < 0 {
			return wrong
		}
		return nil
	})
	if !errors.Is(err, wrong) || seen != 1 {
		t.Errorf("%v after %d rows", err, seen)
	}
}

// A series whose step changes is no series that lacks values, and none whose values come a little late.
func TestMixedSteps(t *testing.T) {
	points := func(gaps ...int64) (g Group) {
		at := int64(0)
		g.Points = []Point{{At: at, Line: 2}}
		for _, d := range gaps {
			at += d * 1e9
			g.Points = append(g.Points, Point{At: at, Line: int32(len(g.Points) + 2)})
		}
		return g
	}
	repeat := func(n int, of ...int64) (out []int64) {
		for range n {
			out = append(out, of...)
		}
		return out
	}
	for name, c := range map[string]struct {
		g    Group
		line int
	}{
		"one step":            {points(repeat(40, 300)...), 0},
		"coarse, then fine":   {points(append(repeat(20, 3600), repeat(20, 300)...)...), 23},
		"fine, then coarse":   {points(append(repeat(20, 300), repeat(20, 3600)...)...), 23},
		"gaps now and then":   {points(repeat(10, 300, 300, 300, 900, 300, 3600)...), 0},
		"late by a little":    {points(repeat(20, 300, 330, 290)...), 0},
		"a night is missing":  {points(append(append(repeat(20, 300), 30000), repeat(20, 300)...)...), 0},
		"nothing":             {Group{}, 0},
		"one value":           {points(), 0},
		"doubled by a scrape": {points(append(repeat(20, 60), repeat(20, 30)...)...), 23},
	} {
		if line, before, after, mixed := c.g.MixedSteps(); line != c.line || mixed != (c.line > 0) || mixed && before == after {
			t.Errorf("%s: line %d, %v, %v, %v", name, line, before, after, mixed)
		}
	}
}
