package main

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// leastHeld is how many files the list had when it was counted last: it only grows.
const leastHeld = 352

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
		{"an example of the command line", "a.go", "package a\n\nvar x = \"  springtide " + long + "\\n  springtide mend\"\n", 0},
		{"a table in a message", "a.go", "package a\n\nvar x = \"| " + strings.Repeat("word ", 20) + " | " + strings.Repeat("word ", 20) + " |\"\n", 0},
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

// mostWordsOfAPage is the most that a page may have: a longer one is split into concept and reference.
const mostWordsOfAPage = 2000

func pagesBelow(t *testing.T, folder string) (out []string) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		name, err := filepath.Rel(root, path)
		out = append(out, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPagesAreShort(t *testing.T) {
	for _, page := range append(pagesBelow(t, "docs"), "README.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md") {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(strings.Fields(string(text))); n > mostWordsOfAPage {
			t.Errorf("%s has %d words, at most %d: split it into concept and reference", page, n, mostWordsOfAPage)
		}
	}
}

var (
	target  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notSlug = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// headings are the anchors of a page, as GitHub makes them.
func headings(t *testing.T, path string) map[string]bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]bool{}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if title, ok := strings.CutPrefix(strings.TrimLeft(s.Text(), "#"), " "); ok && strings.HasPrefix(s.Text(), "#") {
			title = notSlug.ReplaceAllString(strings.ToLower(link.ReplaceAllString(title, "$1")), "")
			out[strings.ReplaceAll(strings.TrimSpace(title), " ", "-")] = true
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLinksLead: each link of a page to a file, or to a heading of a page, has its target.
func TestLinksLead(t *testing.T) {
	n := 0
	for _, page := range append(pagesBelow(t, "docs"), "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "deploy/README.md") {
		at := filepath.Join("..", "..", page)
		text, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range target.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, ":") {
				continue // another site
			}
			n++
			to := at
			if file != "" {
				to = filepath.Join(filepath.Dir(at), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, m[1])
			} else if anchor != "" && strings.HasSuffix(to, ".md") && !headings(t, to)[anchor] {
				t.Errorf("%s: the link %s names no heading", page, m[1])
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d links were found", n)
	}
}

// indexes are pages that list those of their name: conditions.md lists conditions-loan.md.
var indexes = []string{"docs/cli.md", "docs/reference/metrics.md", "docs/reference/events.md", "docs/reference/conditions.md", "docs/reference/reasons.md"}

// TestEntranceLeadsToEveryPage: each page is linked exactly once from docs/README.md, the README.md of its folder, or the index of its name.
func TestEntranceLeadsToEveryPage(t *testing.T) {
	links := map[string]int{}
	pages := pagesBelow(t, "docs")
	for _, page := range pages {
		readme, index := filepath.Base(page) == "README.md", slices.Contains(indexes, page)
		if !readme && !index {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range target.FindAllStringSubmatch(string(text), -1) {
			file, _, _ := strings.Cut(m[1], "#")
			to := filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
			if page == "docs/README.md" || readme && filepath.Dir(to) == filepath.Dir(page) || index && strings.HasPrefix(to, strings.TrimSuffix(page, ".md")+"-") {
				links[to]++
			}
		}
	}
	for _, page := range pages {
		if page != "docs/README.md" && links[page] != 1 {
			t.Errorf("%s is linked %d times from docs/README.md, the README.md of its folder and the index of its name, want once", page, links[page])
		}
	}
}
