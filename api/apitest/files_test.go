package apitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/springtide/springtide/internal/scripttest"
	"github.com/springtide/springtide/internal/validate/offline"
)

// judged prints what is wrong in one file of testdata, a finding on each line.
func judged(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	result, err := offline.Files([]offline.Input{{Name: filepath.Base(path), Text: text}}, offline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if result.Objects == 0 && len(result.Findings) == 0 {
		t.Fatalf("%s holds no object", path)
	}
	var out strings.Builder
	for _, f := range result.Findings {
		out.WriteString(f.String() + "\n")
	}
	return out.String()
}

func TestGoodFilesPass(t *testing.T) {
	for _, path := range files(t, "good", 2) {
		if found := judged(t, path); found != "" {
			t.Errorf("%s:\n%s", path, found)
		}
	}
}

// TestBadFilesFail holds the exact sentences that an operator reads. They are rewritten by -update, and reviewed as a diff.
func TestBadFilesFail(t *testing.T) {
	for _, path := range files(t, "bad", 10) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			found := judged(t, path)
			if found == "" {
				t.Fatal("nothing was found wrong")
			}
			scripttest.Golden(t, strings.TrimSuffix(path, ".yaml")+".txt", found)
		})
	}
}

func files(t *testing.T, dir string, atLeast int) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "testdata", dir, "*.yaml"))
	if err != nil || len(paths) < atLeast {
		t.Fatalf("%s: want at least %d files, found %d (%v)", dir, atLeast, len(paths), err)
	}
	return paths
}
