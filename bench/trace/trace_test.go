package trace_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/bench/trace"
)

func pack(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tide.csv.gz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	s, err := trace.Read(pack(t, "ts,value\n2026-01-01T00:00:00Z,1.5\n2026-01-01T01:00:00Z,\n2026-01-01T02:00:00Z,3\n"))
	if err != nil || s.Step != time.Hour || !s.Start.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) ||
		s.Len() != 3 || s.Values[0] != 1.5 || !math.IsNaN(s.Values[1]) || s.Values[2] != 3 {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestReadRefuses(t *testing.T) {
	const head = "ts,value\n2026-01-01T00:00:00Z,1\n2026-01-01T01:00:00Z,2\n"
	for _, tt := range []struct{ name, text, want string }{
		{"a step left out", head + "2026-01-01T03:00:00Z,3\n", "tide.csv.gz:4: ts: 2026-01-01 03:00:00 +0000 UTC is off the grid of 1h0m0s"},
		{"a field missing", head + "2026-01-01T02:00:00Z\n", "tide.csv.gz:4: 1 fields"},
		{"no time", head + "today,3\n", "tide.csv.gz:4: parsing time"},
		{"no number", head + "2026-01-01T02:00:00Z,many\n", "tide.csv.gz:4: strconv"},
	} {
		if _, err := trace.Read(pack(t, tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, trace.ErrLayout) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	for _, text := range []string{"", "ts,value\n2026-01-01T00:00:00Z,1\n", "V1,V2\nH1,3\nH2,4\n"} {
		if _, err := trace.Read(pack(t, text)); !errors.Is(err, trace.ErrLayout) {
			t.Errorf("%q: %v, want a file of another layout", text, err)
		}
	}
}
