package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// leastHeld is how many files the list had when it was counted last: it only grows.
const leastHeld = 168

func TestHeldFilesFollowTheRules(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := held(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < leastHeld {
		t.Errorf("%d files are held, %d were: none is taken off the list", len(files), leastHeld)
	}
	found, err := check(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Errorf("%s:%d: %s", f.file, f.line, f.text)
	}
}

func TestJudge(t *testing.T) {
	long := strings.Repeat("word ", 31)
	for _, c := range []struct {
		name, file, text string
		want             int
	}{
		{"a long sentence", "a.md", long + ".\n", 1},
		{"two short ones", "a.md", strings.Repeat("word ", 20) + "end. " + strings.Repeat("word ", 20) + "end.\n", 0},
		{"over two lines", "a.md", strings.Repeat("word ", 16) + "\n" + strings.Repeat("word ", 16) + "\n", 1},
		{"code", "a.md", "```\n" + long + "mend\n```\n`mend`\n", 0},
		{"a word of the left column", "a.md", "| a | it is reckoned anew |\n", 2},
		{"a link", "a.md", "[the lead](reckoned.md)\n", 0},
		{"a message", "a.go", "package a\n\nvar x = \"a file that nobody wrote: \" +\n\t\"mend it\"\n", 2},
		{"a comment", "a.go", "package a\n\n// Nobody mends it.\nvar x = \"a\"\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range map[string]string{list: c.file + "\n", c.file: c.text} {
				at := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			found, err := check(root)
			if err != nil || len(found) != c.want {
				t.Errorf("found %v (%v), want %d", found, err, c.want)
			}
		})
	}
}
