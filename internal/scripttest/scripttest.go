// Package scripttest runs behaviour that is written down as scripts: archives under testdata in which "NAME.in" is a case, in words that
// the package under test explains, and "NAME.out" what follows. `go test -update` writes the latter again, to be read as a diff.
package scripttest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite what the scripts in testdata expect, and golden files")

// Updates reports whether the flag -update is set.
func Updates() bool { return *update }

// Golden compares with a file, or rewrites it.
func Golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", path, d)
	}
}

// Line is the words of one line of a case. A word that is missing, or that is none of what is read, fails the case and names the line.
type Line []string

// Script plays one case.
type Script struct {
	// Line carries out one line; false says that its first word is unknown.
	Line func(l Line) bool
	// Out is what follows from all lines.
	Out func() string
}

// Run plays each case of testdata/*.txtar by a script of its own. Empty lines and those that begin with # are left out.
func Run(t *testing.T, begin func(t *testing.T) Script) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for _, f := range a.Files {
			want[f.Name] = string(f.Data)
		}
		out := &txtar.Archive{Comment: a.Comment}
		for _, f := range a.Files {
			name, isCase := strings.CutSuffix(f.Name, ".in")
			if !isCase {
				continue
			}
			got := want[name+".out"] // stays, where -run leaves the case out
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+name, func(t *testing.T) {
				if got = begin(t).play(t, string(f.Data)); !*update && got != want[name+".out"] {
					t.Errorf("got:\n%swant:\n%s", got, want[name+".out"])
				}
			})
			out.Files = append(out.Files, f, txtar.File{Name: name + ".out", Data: []byte(got)})
		}
		if data := txtar.Format(out); *update && !bytes.Equal(data, txtar.Format(a)) {
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// play carries out the lines of a case.
func (s Script) play(t *testing.T, text string) string {
	for line := range strings.Lines(text) {
		if l := Line(strings.Fields(line)); len(l) > 0 && !strings.HasPrefix(l[0], "#") {
			s.carryOut(t, l)
		}
	}
	return s.Out()
}

// wrong is what a line cannot be read by.
type wrong struct{ err error }

func (s Script) carryOut(t *testing.T, l Line) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case wrong:
			t.Fatalf("%q: %v", l, why.err)
		default:
			panic(why)
		}
	}()
	if !s.Line(l) {
		t.Fatalf("%q: unknown words", l)
	}
}

// Has reports whether there is an i-th word; the first is number 0.
func (l Line) Has(i int) bool { return i < len(l) }

// Word is the i-th word.
func (l Line) Word(i int) string {
	if !l.Has(i) {
		panic(wrong{fmt.Errorf("word %d is missing", i)})
	}
	return l[i]
}

// Rest is what stands from the i-th word on, as one text.
func (l Line) Rest(i int) string { return strings.Join(l[min(i, len(l)):], " ") }

// Int reads the i-th word as a whole number, Float as a number, Duration as a length of time, as in 1h30m.
func (l Line) Int(i int) int { return Int(l.Word(i)) }

// Float is as [Line.Int].
func (l Line) Float(i int) float64 { return Float(l.Word(i)) }

// Duration is as [Line.Int].
func (l Line) Duration(i int) time.Duration { return Duration(l.Word(i)) }

// Int reads a whole number of a word, or of a part of one.
func Int(word string) int { return read(word, strconv.Atoi) }

// Float reads a number.
func Float(word string) float64 {
	return read(word, func(word string) (float64, error) { return strconv.ParseFloat(word, 64) })
}

// Duration reads a length of time.
func Duration(word string) time.Duration { return read(word, time.ParseDuration) }

func read[T any](word string, parse func(string) (T, error)) T {
	v, err := parse(word)
	if err != nil {
		panic(wrong{err})
	}
	return v
}
