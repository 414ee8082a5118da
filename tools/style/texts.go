package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

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

// comments checks the comments and the declared names of a Go file, and its own name. Generated code is not checked.
func comments(at, name string) ([]finding, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, at, nil, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(f) {
		return nil, nil
	}
	var out []finding
	base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".go"), "_test")
	if instead := files[base]; instead != "" {
		out = append(out, finding{at, 1, fmt.Sprintf("the name of the file: write %s", instead)})
	} else if text := judgeName(base); text != "" {
		out = append(out, finding{at, 1, "the file: " + text})
	}
	for _, g := range f.Comments {
		for _, c := range paragraphs(fset, g) {
			out = append(out, judgeWords(at, c.line, c.text)...)
		}
	}
	declared := func(id *ast.Ident) {
		if text := judgeName(id.Name); text != "" {
			out = append(out, finding{at, fset.Position(id.Pos()).Line, text})
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			declared(n.Name)
			if instead := methods[strings.ToLower(n.Name.Name)]; n.Recv != nil && instead != "" {
				out = append(out, finding{at, fset.Position(n.Pos()).Line, fmt.Sprintf("the method %s: write %s", n.Name.Name, instead)})
			}
		case *ast.TypeSpec:
			declared(n.Name)
		case *ast.Field:
			for _, id := range n.Names {
				declared(id)
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				declared(id)
			}
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					declared(id)
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					declared(id)
				}
			}
		}
		return true
	})
	return out, nil
}

// block is a text and the line at which it begins.
type block struct {
	line int
	text string
}

// paragraphs are the prose of a group of comments, line by line as it stands: code that is indented and directives are left out.
func paragraphs(fset *token.FileSet, g *ast.CommentGroup) (out []block) {
	for _, c := range g.List {
		line := fset.Position(c.Pos()).Line
		text, ok := strings.CutPrefix(c.Text, "//")
		if !ok {
			out = append(out, block{line, strings.TrimSuffix(strings.TrimPrefix(text, "/*"), "*/")})
			continue
		}
		prose := strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "  ") && !strings.HasPrefix(text, " +")
		last := len(out) - 1
		switch {
		case !prose:
			out = append(out, block{line: line + 1})
		case last >= 0 && out[last].line+strings.Count(out[last].text, "\n") == line:
			out[last].text += strings.TrimSpace(text) + "\n"
		default:
			out = append(out, block{line, strings.TrimSpace(text) + "\n"})
		}
	}
	return out
}

// document checks the comments of a YAML or JSON file, and its values that are prose: descriptions, titles and annotations, not expressions.
func document(at string) ([]finding, error) {
	text, err := os.ReadFile(at)
	if err != nil {
		return nil, err
	}
	var out []finding
	for i, line := range strings.Split(string(text), "\n") {
		if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "# "); ok {
			out = append(out, judgeWords(at, i+1, comment)...)
		}
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 1 && c.Kind == yaml.ScalarNode && prose[n.Content[i-1].Value] {
				if text := strings.ReplaceAll(c.Value, upstream, ""); strings.Contains(text, " ") {
					out = append(out, judge(at, c.Line, text)...)
				}
			}
			walk(c)
		}
	}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var n yaml.Node
		if err := d.Decode(&n); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		walk(&n)
	}
}

// upstream is a sentence of Kubernetes' own definition of a condition.
const upstream = "This field may not be empty."

// prose are the fields of documents that people read.
var prose = map[string]bool{"description": true, "title": true, "summary": true, "content": true, "message": true, "text": true, "legendFormat": true}

// judge checks one block of what operators read.
func judge(path string, line int, text string) []finding {
	return append(judgeWords(path, line, text), judgeSentences(path, line, text)...)
}

func plain(text string) string {
	return link.ReplaceAllString(code.ReplaceAllString(text, "x"), "$1")
}

func judgeWords(path string, line int, text string) (out []finding) {
	text = plain(text)
	for _, w := range words {
		for _, hit := range w.pattern.FindAllStringIndex(text, -1) {
			out = append(out, finding{path, line + strings.Count(text[:hit[0]], "\n"), fmt.Sprintf("%q: write %s", opening(text[hit[0]:hit[1]]), w.instead)})
		}
	}
	return out
}

func judgeSentences(path string, line int, text string) (out []finding) {
	for _, paragraph := range strings.Split(plain(text), "\n\n") {
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
