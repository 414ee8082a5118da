package clitest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/springtide/springtide/internal/scripttest"
)

// Verbs runs each line against a fresh world, and compares all that was printed and written with the room's golden file of that name. The files of this
// folder are named there without it.
func Verbs(t *testing.T, world func(*testing.T) *World, name string, lines ...string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		var got strings.Builder
		for _, line := range lines {
			got.WriteString(world(t).Run(strings.Fields(line)...))
		}
		path := filepath.Join("testdata", "cluster", name+".txt")
		scripttest.Golden(t, path, strings.ReplaceAll(got.String(), "../clitest/", ""))
	})
}
