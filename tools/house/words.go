package main

import (
	"cmp"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// prose are the words that comments do not use, as the rules of style list them.
var prose = []struct {
	word    string
	pattern *regexp.Regexp
}{
	{"reckon", regexp.MustCompile(`(?i)\breckon(ed|s|ing)?\b`)},
	{"is told, tell", regexp.MustCompile(`(?i)\b(told|tells?|telling)\b`)},
	{"anew", regexp.MustCompile(`(?i)\banew\b`)},
	{"mend", regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`)},
	{"nobody, somebody, whoever", regexp.MustCompile(`(?i)\b(nobody|somebody|whoever)\b`)},
	{"beside", regexp.MustCompile(`(?i)\bbeside\b`)},
	{"goes by, rests on", regexp.MustCompile(`(?i)\b(go(es)? by|rests? on)\b`)},
	{"come to, come about", regexp.MustCompile(`(?i)\bcom(es?|ing) (to|about)\b`)},
	{"may not", regexp.MustCompile(`(?i)\bmay not\b`)},
	{"for want of, lest, heed, hasten", regexp.MustCompile(`(?i)\b(for want of|lest|heed(s|ed)?|hasten(s|ed)?)\b`)},
}

// named are the words that names do not hold: in functions, types, variables, fields and files.
var named = []string{
	"ousted", "echo", "crumbs", "unstick", "squeeze", "crew", "leavers", "foothold", "errand", "yardage",
	"hasten", "hastened",
}

// begun are the words that names of methods do not begin with.
var begun = []string{"tell", "catch", "give", "keep"}

// oddWord is a word of the left column, and how often it stands.
type oddWord struct {
	word  string
	where string
	count int
}

// oddWords counts the words of the left columns: in comments, and in each name where it is declared.
func (h *house) oddWords() []oddWord {
	count := map[oddWord]int{}
	for _, r := range h.rooms {
		for _, f := range r.files {
			inComments(f.ast, count)
			inNames(f, count)
			inMethods(f.ast, count)
		}
	}
	var out []oddWord
	for w, n := range count {
		if n > 0 {
			w.count = n
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b oddWord) int {
		return cmp.Or(cmp.Compare(a.where, b.where), cmp.Compare(b.count, a.count), cmp.Compare(a.word, b.word))
	})
	return out
}

func inComments(f *ast.File, count map[oddWord]int) {
	for _, group := range f.Comments {
		for _, w := range prose {
			count[oddWord{word: w.word, where: "comments"}] += len(w.pattern.FindAllString(group.Text(), -1))
		}
	}
}

func inNames(f *source, count map[oddWord]int) {
	for _, name := range declared(f.ast) {
		for _, w := range splitName(name) {
			if slices.Contains(named, strings.TrimSuffix(w, "s")) || slices.Contains(named, w) {
				count[oddWord{word: w, where: "names"}]++
			}
		}
	}
	for _, w := range splitName(strings.TrimSuffix(f.name, ".go")) {
		if slices.Contains(named, w) {
			count[oddWord{word: w, where: "files"}]++
		}
	}
}

func inMethods(f *ast.File, count map[oddWord]int) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
			if first := splitName(fn.Name.Name)[0]; slices.Contains(begun, first) {
				count[oddWord{word: first + "...", where: "methods"}]++
			}
		}
	}
}

// declared are the names that a file declares, wherever in it.
func declared(f *ast.File) []string {
	var out []string
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			out = append(out, id.Name)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.Field:
			add(n.Names...)
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok && n.Tok.String() == ":=" {
					add(id)
				}
			}
		}
		return true
	})
	return out
}

// splitName is a name in words of small letters: newPoolRoom is new, pool and room.
func splitName(name string) []string {
	var out []string
	begin := 0
	rs := []rune(name)
	for i := range rs {
		if i > begin && (unicode.IsUpper(rs[i]) && !unicode.IsUpper(rs[i-1]) || rs[i-1] == '_') {
			out = append(out, strings.ToLower(strings.Trim(string(rs[begin:i]), "_")))
			begin = i
		}
	}
	return append(out, strings.ToLower(string(rs[begin:])))
}
