package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPagesAreCurrent(t *testing.T) {
	root := filepath.Join("..", "..")
	all, err := pages()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not current: make generate (%v)", name, err)
		}
	}
}

// A component whose registration is forgotten, or whose metrics are no longer found, shows here.
func TestEveryComponentHasMetrics(t *testing.T) {
	list, err := components()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		for _, m := range c.metrics {
			if !strings.HasPrefix(m.name, "springtide_") || m.help == "" {
				t.Errorf("%s: %+v has no help, or not our prefix", c.title, m)
			}
			if (m.kind == "counter") != strings.HasSuffix(m.name, "_total") {
				t.Errorf("%s: %s is a %s", c.title, m.name, m.kind)
			}
		}
		if len(c.metrics) < 10 {
			t.Errorf("%s has %d metrics", c.title, len(c.metrics))
		}
	}
}
