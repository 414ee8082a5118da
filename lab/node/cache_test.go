package node

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestPrune: checkouts that share the cache keep their versions, up to a count and to a size; the last used one stays in any case.
func TestPrune(t *testing.T) {
	const block = 1 << 16
	for _, test := range []struct {
		name  string
		count int
		bytes int64
		used  string // is marked as used before
		want  []string
	}{
		{"all fit", 4, 1 << 30, "", []string{"a", "b", "c", "d"}},
		{"by count", 2, 1 << 30, "", []string{"c", "d"}},
		{"what is used stays", 2, 1 << 30, "a", []string{"a", "d"}},
		{"by size", 4, 3*block - 1, "", []string{"d"}},
		{"the last one is too large", 4, 1, "", []string{"d"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			begin := time.Now().Add(-time.Hour)
			for i, name := range []string{"a", "b", "c", "d"} {
				file := filepath.Join(dir, name, "disk")
				if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, bytes.Repeat([]byte("x"), 2*block), 0o644); err != nil {
					t.Fatal(err)
				}
				at := begin.Add(time.Duration(i) * time.Minute)
				if err := os.Chtimes(filepath.Dir(file), at, at); err != nil {
					t.Fatal(err)
				}
			}
			if test.used != "" && !found(filepath.Join(dir, test.used, "disk")) {
				t.Fatal("it is not found")
			}
			if err := prune(dir, test.count, test.bytes); err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, name := range []string{"a", "b", "c", "d"} {
				if found(filepath.Join(dir, name, "disk")) {
					left = append(left, name)
				}
			}
			if !slices.Equal(left, test.want) {
				t.Errorf("%v are left, want %v", left, test.want)
			}
		})
	}
}
