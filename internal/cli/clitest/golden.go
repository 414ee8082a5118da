package clitest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update is the flag -update: golden files are rewritten instead of compared.
var Update = flag.Bool("update", false, "rewrite golden files")

// Golden compares with a file, or rewrites it.
func Golden(t *testing.T, path, got string) {
	t.Helper()
	if *Update {
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

// Verbs runs each line against a fresh world, and compares all that was printed and written with the room's golden file of that name. The files of this
// folder are named there without it.
func Verbs(t *testing.T, world func(*testing.T) *World, name string, lines ...string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		var got strings.Builder
		for _, line := range lines {
			got.WriteString(world(t).Run(strings.Fields(line)...))
		}
		Golden(t, filepath.Join("testdata", "cluster", name+".txt"), strings.ReplaceAll(got.String(), "../clitest/", ""))
	})
}
