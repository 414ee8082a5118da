// Command style holds what operators read to the project's rules of style: no sentence of more than 30 words, and none of the words that the
// field has a better one for. It reads tools/style/held.txt: Markdown pages, and Go files whose texts are conditions, events, alerts or output
// of the command line. It runs at the root of the checkout, and names file, line and fix.
//
// A file that was cleaned is added to the list. None is taken off it.
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// mostWords is the most that a sentence may have.
const mostWords = 30

const list = "tools/style/held.txt"

// words are those that are not used, each with what is.
var words = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\breckon(ed|s|ing)?\b`), "compute, count or estimate"},
	{regexp.MustCompile(`(?i)\b(is|are|was|were|be|been) told\b`), "report, notify, log, or set the condition"},
	{regexp.MustCompile(`(?i)\banew\b`), "again"},
	{regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`), "fix; in messages: to fix"},
	{regexp.MustCompile(`(?i)\b(nobody|somebody|whoever)\b`), "the component, the user, the tenant"},
	{regexp.MustCompile(`(?i)\bbeside\b`), "next to, or in addition to"},
	{regexp.MustCompile(`(?i)\b(goes by|rests on)\b`), "uses, or depends on"},
	{regexp.MustCompile(`(?i)\bcom(e|es|ing) about\b`), "happen"},
	{regexp.MustCompile(`(?i)\b(for want of|lest|heed(s|ed)?|hasten(s|ed)?)\b`), "without, so that ... not, use, shorten"},
}

// finding is one thing to change.
type finding struct {
	file string
	line int
	text string
}

func main() {
	found, err := check(".")
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range found {
		fmt.Printf("%s:%d: %s\n", f.file, f.line, f.text)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// held reads the list of files below a folder; patterns stand for files.
func held(root string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, list))
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, line))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("%s: %s is not there (%w)", list, line, err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				out = append(out, f)
			}
		}
	}
	return out, nil
}

func check(root string) ([]finding, error) {
	files, err := held(root)
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, f := range files {
		var found []finding
		if strings.HasSuffix(f, ".go") {
			found, err = goTexts(f)
		} else {
			found, err = page(f)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

var (
	code = regexp.MustCompile("`[^`]*`")
	link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// ends are where a sentence ends: a full stop, question or exclamation mark, colon or semicolon before a space.
	ends = regexp.MustCompile(`[.!?:;]["')*]*(\s|$)`)
)

// page checks a Markdown page: prose by paragraphs, table cells and list items each by themselves, code not at all.
func page(path string) ([]finding, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []finding
	var block strings.Builder
	begin, line, fenced := 0, 0, false
	flush := func() {
		out = append(out, judge(path, begin, block.String())...)
		block.Reset()
	}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line++
		text := strings.TrimSpace(s.Text())
		if strings.HasPrefix(text, "```") {
			flush()
			fenced = !fenced
			continue
		}
		switch {
		case fenced:
		case text == "" || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "<"):
			flush()
		case strings.HasPrefix(text, "|"):
			flush()
			for cell := range strings.SplitSeq(text, "|") {
				out = append(out, judge(path, line, cell)...)
			}
		default:
			if strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "* ") || len(text) > 2 && text[0] >= '0' && text[0] <= '9' && text[1] == '.' {
				flush()
			}
			if block.Len() == 0 {
				begin = line
			}
			block.WriteString(text + " ")
		}
	}
	flush()
	return out, s.Err()
}

// goTexts checks the string literals of a Go file that are sentences; adjacent ones that are added are one.
func goTexts(path string) ([]finding, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []finding
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field: // paths and tags
			return false
		case *ast.BinaryExpr:
			if text, ok := joined(n); ok {
				out = append(out, judge(path, fset.Position(n.Pos()).Line, text)...)
				return false
			}
		case *ast.BasicLit:
			if text, ok := literal(n); ok {
				out = append(out, judge(path, fset.Position(n.Pos()).Line, text)...)
			}
		}
		return true
	})
	return out, nil
}

// examples are lines of an example of the command line: code, as a block of a page is.
var examples = regexp.MustCompile(`(?m)^  \S*(springtide|kubectl) .*$`)

func literal(n *ast.BasicLit) (string, bool) {
	if n.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(n.Value)
	// Cells of a table are judged each by itself, as those of a page are.
	return strings.ReplaceAll(examples.ReplaceAllString(text, ""), " |", "\n\n"), err == nil
}

func joined(n ast.Expr) (string, bool) {
	switch n := n.(type) {
	case *ast.BasicLit:
		return literal(n)
	case *ast.BinaryExpr:
		a, okA := joined(n.X)
		b, okB := joined(n.Y)
		return a + b, n.Op == token.ADD && okA && okB
	}
	return "", false
}

// judge checks one block of prose.
func judge(path string, line int, text string) []finding {
	text = link.ReplaceAllString(code.ReplaceAllString(text, "x"), "$1")
	var out []finding
	for _, w := range words {
		if hit := w.pattern.FindString(text); hit != "" {
			out = append(out, finding{path, line, fmt.Sprintf("%q: write %s", hit, w.instead)})
		}
	}
	for _, paragraph := range strings.Split(text, "\n\n") {
		for _, sentence := range ends.Split(paragraph, -1) {
			if n := len(strings.Fields(sentence)); n > mostWords {
				out = append(out, finding{path, line, fmt.Sprintf("a sentence of %d words, at most %d: %s...", n, mostWords, opening(sentence))})
			}
		}
	}
	return out
}

func opening(sentence string) string {
	f := strings.Fields(sentence)
	return strings.Join(f[:min(len(f), 8)], " ")
}
