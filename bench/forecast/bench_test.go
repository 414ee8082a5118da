package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func pack(t *testing.T, path, text string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// hourly is a trace of days that repeat themselves to the digit.
func hourly(hours int) string {
	var b strings.Builder
	b.WriteString("ts,value\n")
	for i := range hours {
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Hour)
		fmt.Fprintf(&b, "%s,%.6f\n", at.Format(time.RFC3339), 100+50*math.Sin(2*math.Pi*float64(i)/24))
	}
	return b.String()
}

func bench(t *testing.T, o options) string {
	t.Helper()
	o.out = filepath.Join(t.TempDir(), "page.md")
	if err := run(o); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(o.out)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestTracesBench(t *testing.T) {
	folder := t.TempDir()
	pack(t, filepath.Join(folder, "web", "tide.csv.gz"), hourly(24*30))
	pack(t, filepath.Join(folder, "m4", "Hourly-train.csv.gz"), "V1,V2\nH1,3\nH2,4\n") // no trace
	page := bench(t, options{traces: folder, only: "last-value,seasonal-day"})
	for _, want := range []string{
		"## Traces at 5 min", "0 series, 0 forecasts.", "## Traces at 1 h", "1 series, 6 forecasts.",
		"| seasonal-day | 0.0000 | 0.0000 | 0.0000 | 0.0000 | 0.0000 | 0.0000 | 0.0000 | 0 of 1 (0 %) |",
		"| tide | 6 |", "| seasonal-day | 0.0000 |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	// Every origin is at the same hour of the day or seven hours from it; the first step alone is near the last value.
	if first := bench(t, options{traces: folder, only: "last-value,seasonal-day", steps: "1-1"}); first == page {
		t.Error("--steps changed nothing")
	}
}

func TestM4Bench(t *testing.T) {
	folder := t.TempDir()
	row := func(id string, n int, at float64) string {
		text := id
		for i := range n {
			text += fmt.Sprintf(",%g", at+float64(i%24))
		}
		return text + ",,\n"
	}
	pack(t, filepath.Join(folder, "Hourly-train.csv.gz"), "id\n"+row("H1", 700, 10)+row("H2", 960, 20))
	// The test part is not there, so it cannot be read.
	page := bench(t, options{m4: folder, only: "last-value"})
	if !strings.Contains(page, "2 series, 12 forecasts.") || !strings.Contains(page, "| naive2 | 0.000 |") {
		t.Errorf("%s", page)
	}
	if err := run(options{m4: folder, only: "last-value", m4Test: true, out: filepath.Join(folder, "x")}); err == nil || !strings.Contains(err.Error(), "Hourly-test.csv.gz") {
		t.Errorf("the test part: %v", err)
	}
	pack(t, filepath.Join(folder, "Hourly-test.csv.gz"), "id\n"+row("H1", 48, 14)+row("H2", 48, 20))
	if page := bench(t, options{m4: folder, only: "last-value", m4Test: true}); !strings.Contains(page, "2 series, 2 forecasts.") {
		t.Errorf("%s", page)
	}
	pack(t, filepath.Join(folder, "Hourly-test.csv.gz"), "id\n"+row("H2", 48, 20)+row("H1", 48, 14))
	if err := run(options{m4: folder, m4Test: true, out: filepath.Join(folder, "x")}); err == nil || !strings.Contains(err.Error(), "row 2 is H1 to train and H2 to test") {
		t.Errorf("rows in another order: %v", err)
	}
}

func TestBadTraces(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"off the grid": {"ts,value\n2026-01-01T00:00:00Z,1\n2026-01-01T01:00:00Z,1\n2026-01-01T01:30:00Z,1\n", "a.csv.gz:4: ts: "},
		"no number":    {"ts,value\n2026-01-01T00:00:00Z,1\n2026-01-01T01:00:00Z,x\n", "a.csv.gz:3: "},
		"no traces":    {"a,b\n1,2\n3,4\n", "want files NAME.csv.gz with the columns ts,value"},
	} {
		folder := t.TempDir()
		pack(t, filepath.Join(folder, "a.csv.gz"), tt.text)
		if err := run(options{traces: folder, out: "-"}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if err := run(options{traces: t.TempDir(), only: "prophet", out: "-"}); err == nil {
		t.Error("an empty folder passed")
	}
}
