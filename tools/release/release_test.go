package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheCheckoutAgrees: VERSION, charts, kustomizations and the Dockerfile hold one version.
func TestTheCheckoutAgrees(t *testing.T) {
	root := filepath.Join("..", "..")
	v, err := version(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := agree(root, v); err != nil {
		t.Error(err)
	}
}

// TestSetAndCut: a new version is written everywhere, what forgets it is named, and the changelog gets its release.
func TestSetAndCut(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("VERSION", "0.1.0\n")
	write("deploy/chart/a/Chart.yaml", "apiVersion: v2\nversion: 0.1.0\nappVersion: 0.1.0\n")
	write("deploy/base/kustomization.yaml", "images:\n  - name: springtide\n    newTag: 0.1.0\n")
	write("Dockerfile", "# docker build -t springtide.dev/springtide:0.1.0 .\n")
	write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n")
	if err := agree(root, "0.1.0"); err != nil {
		t.Fatal(err)
	}
	if err := agree(root, "0.2.0"); err == nil || strings.Count(err.Error(), "to fix") != 4 {
		t.Errorf("another version: %v", err)
	}
	if err := run(root, []string{"set", "0.2.0"}); err != nil {
		t.Fatal(err)
	}
	if err := agree(root, "0.2.0"); err != nil {
		t.Error(err)
	}
	if title, text, err := notes(root, "0.2.0"); err != nil || title != unreleased || !strings.HasSuffix(text, "- A thing.") {
		t.Errorf("before the cut: %q %q %v", title, text, err)
	}
	if err := run(root, []string{"check", "cut"}); err == nil || !strings.Contains(err.Error(), "the notes of 0.2.0 are not cut; to fix") {
		t.Errorf("a tag before the cut: %v", err)
	}
	if err := run(root, []string{"cut", "2026-12-01"}); err != nil {
		t.Fatal(err)
	}
	if title, _, err := notes(root, "0.2.0"); err != nil || title != "0.2.0 - 2026-12-01" {
		t.Errorf("after the cut: %q %v", title, err)
	}
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil || !strings.HasPrefix(string(text), "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-12-01\n\n### Added\n") {
		t.Errorf("%s (%v)", text, err)
	}
	write("CHANGELOG.md", strings.Replace(string(text), "## Unreleased\n", "## Unreleased\n\n### Added\n\n- More.\n", 1))
	if _, _, err := notes(root, "0.2.0"); err == nil || !strings.Contains(err.Error(), "entries after release 0.2.0") {
		t.Errorf("entries after the release: %v", err)
	}
	write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n")
	if _, _, err := notes(root, "0.2.0"); err == nil || !strings.Contains(err.Error(), "no notes for 0.2.0") {
		t.Errorf("no notes: %v", err)
	}
	if err := run(root, []string{"set", "v1"}); err == nil {
		t.Error("v1 was taken for a version")
	}
	if err := archives(root, "0.2.0"); err == nil || !strings.Contains(err.Error(), "make images") {
		t.Errorf("no images: %v", err)
	}
}
