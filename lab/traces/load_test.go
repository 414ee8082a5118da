package traces

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// Every shipped file stands in the README with its size, its digest, a source and a licence that allows shipping it.
func TestReadmeListsEveryFile(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(readme)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) == 11 && strings.Contains(cells[0], "/") {
			rows[cells[0]] = cells
		}
	}
	total := 0
	err = fs.WalkDir(files, "data", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimPrefix(path, "data/")
		row, ok := rows[name]
		if !ok {
			t.Errorf("%s is shipped but has no row", name)
			return nil
		}
		delete(rows, name)
		b, err := files.ReadFile(path)
		total += len(b)
		sum := sha256.Sum256(b)
		if row[5] != fmt.Sprint(len(b)) || row[6] != hex.EncodeToString(sum[:])[:12] {
			t.Errorf("%s: README has %s bytes and %s, the file %d and %s", name, row[5], row[6], len(b), hex.EncodeToString(sum[:])[:12])
		}
		if !strings.Contains(row[7], "@") {
			t.Errorf("%s: source %q names no commit", name, row[7])
		}
		if l := row[8]; !strings.HasPrefix(l, "MIT (c)") && !strings.HasPrefix(l, "CC-BY") && !strings.HasPrefix(l, "Internet Traffic Archive") {
			t.Errorf("%s: licence %q is not one that we ship", name, l)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range rows {
		t.Errorf("README lists %s, which is not shipped", name)
	}
	if total > 2_500_000 {
		t.Errorf("the traces take %d bytes, more than 2.5 MB", total)
	}
}

func TestCatalogAndFilesAgree(t *testing.T) {
	used := map[string]bool{}
	for _, tr := range Catalog() {
		used[tr.File], used[tr.Holidays] = true, true
		parts, err := Load(tr)
		if err != nil {
			t.Errorf("%s: %v", tr.Name, err)
		}
		for _, p := range parts {
			if p.Step != tr.Step || p.Known() == 0 {
				t.Errorf("%s: step %s, %d values", tr.Name, p.Step, p.Known())
			}
		}
	}
	err := fs.WalkDir(files, "data", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !used[strings.TrimPrefix(path, "data/")] {
			t.Errorf("%s is shipped but used by no trace", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The two logs of the NASA trace: the archive says that the server was down from 1 August 14:52 to 3 August 04:36.
func TestTheSecondNasaLogIsDatedByItsOutage(t *testing.T) {
	for _, tr := range Catalog() {
		if tr.Name != "nasa" {
			continue
		}
		parts, err := Load(tr)
		if err != nil {
			t.Fatal(err)
		}
		down := time.Date(1995, 8, 1, 14, 52, 0, 0, time.UTC)
		up := time.Date(1995, 8, 3, 4, 36, 0, 0, time.UTC)
		for at := down; at.Before(up.Add(-time.Minute)); at = at.Add(time.Minute) {
			if v := parts[1].At(at); v != 0 {
				t.Fatalf("%v requests at %s, in the outage", v, at)
			}
		}
		if parts[1].At(down.Add(-time.Minute)) == 0 || parts[1].At(up.Add(-time.Minute)) == 0 {
			t.Error("the outage is longer than the archive says")
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parse(strings.NewReader("ts,value\n2024-01-01T00:00:00Z,1.5\n2024-01-01T01:00:00Z,\n2024-01-01T02:00:00Z,0\n"), time.Hour)
	if err != nil || got.Len() != 3 || got.Values[0] != 1.5 || !math.IsNaN(got.Values[1]) || got.Values[2] != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	for want, in := range map[string]string{
		"line 1: want the header": "value,ts\n",
		"line 2: want two col":    "ts,value\n2024-01-01T00:00:00Z\n",
		"line 3: ts is":           "ts,value\n2024-01-01T00:00:00Z,1\n2024-01-01T02:00:00Z,1\n",
		"line 2: value \"-1\"":    "ts,value\n2024-01-01T00:00:00Z,-1\n",
		"line 2: value \"NaN\"":   "ts,value\n2024-01-01T00:00:00Z,NaN\n",
		"line 2: parsing time":    "ts,value\n2024-01-01,1\n",
	} {
		if _, err := parse(strings.NewReader(in), time.Hour); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", in, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("ts,value\n2024-01-01T00:00:00Z,1\n2024-01-01T01:00:00Z,\n")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := parse(strings.NewReader(in), time.Hour)
		if err != nil {
			return
		}
		for i, v := range s.Values {
			if v < 0 || math.IsInf(v, 0) {
				t.Errorf("value %d is %v", i, v)
			}
		}
	})
}
