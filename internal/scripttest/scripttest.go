// Package scripttest runs behaviour that is written down as scripts: archives under testdata in which "NAME.in" is a case, in words that
// the package under test explains, and "NAME.out" what follows. `go test -update` writes the latter anew, to be read as a diff.
package scripttest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite what the scripts in testdata expect")

// Run gives each case of testdata/*.txtar to play, as the words of its lines; empty lines and those that begin with # are left out.
func Run(t *testing.T, play func(t *testing.T, lines [][]string) string) {
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
				if got = play(t, words(string(f.Data))); !*update && got != want[name+".out"] {
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

func words(text string) [][]string {
	var out [][]string
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "#") {
			out = append(out, f)
		}
	}
	return out
}

// Int reads a whole number; like its siblings it ends the case where the word is none.
func Int(t *testing.T, word string) int { return read(t, word, strconv.Atoi) }

// Float reads a number.
func Float(t *testing.T, word string) float64 {
	return read(t, word, func(word string) (float64, error) { return strconv.ParseFloat(word, 64) })
}

// Duration reads a length of time, as in 1h30m.
func Duration(t *testing.T, word string) time.Duration { return read(t, word, time.ParseDuration) }

func read[T any](t *testing.T, word string, parse func(string) (T, error)) T {
	t.Helper()
	v, err := parse(word)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
