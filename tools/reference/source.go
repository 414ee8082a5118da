package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/springtide/springtide/reason"
)

// folders are where events and conditions are set, and where their names come from.
var folders = []string{"internal/kube", "internal/kube/adapter", "scheduler/host", "agent/host", "api/v1alpha1", "fleet", "planner", "hpa", "internal/loop"}

// source is the code of those folders.
type source struct {
	fset *token.FileSet
	pkgs map[string]*pkg // by the name of the package
}

// pkg is one package without its tests.
type pkg struct {
	name   string
	path   string
	files  []*ast.File
	consts map[string]constant
	// calls are the calls of each function by name, with the function that they are in.
	calls map[string][]call
}

// constant is a string constant with its comment.
type constant struct {
	name, value, doc, of string
	at                   token.Pos
}

type call struct {
	in   *ast.FuncDecl
	expr *ast.CallExpr
}

func readSource(root string) (*source, error) {
	s := &source{fset: token.NewFileSet(), pkgs: map[string]*pkg{}}
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(root, folder))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			f, err := parser.ParseFile(s.fset, filepath.Join(root, folder, e.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			p := s.pkgs[folder]
			if p == nil {
				p = &pkg{name: f.Name.Name, path: folder, consts: map[string]constant{}, calls: map[string][]call{}}
				s.pkgs[folder] = p
			}
			p.add(f)
		}
	}
	return s, nil
}

func (p *pkg) add(f *ast.File) {
	p.files = append(p.files, f)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, c := range constantsOf(d) {
				p.consts[c.name] = c
			}
		case *ast.FuncDecl:
			ast.Inspect(d, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					if name := called(c); name != "" {
						p.calls[name] = append(p.calls[name], call{d, c})
					}
				}
				return true
			})
		}
	}
}

// constantsOf reads the string constants of a declaration.
func constantsOf(d *ast.GenDecl) (out []constant) {
	if d.Tok != token.CONST {
		return nil
	}
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		for i, name := range v.Names {
			if i >= len(v.Values) {
				continue
			}
			lit, ok := v.Values[i].(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				continue
			}
			value, err := strconv.Unquote(lit.Value)
			if err != nil {
				continue
			}
			c := constant{name: name.Name, value: value, doc: comment(v), at: name.Pos()}
			if id, ok := v.Type.(*ast.Ident); ok {
				c.of = id.Name
			}
			out = append(out, c)
		}
	}
	return out
}

func comment(v *ast.ValueSpec) string {
	for _, g := range []*ast.CommentGroup{v.Comment, v.Doc} {
		if g != nil {
			return strings.TrimSpace(strings.ReplaceAll(g.Text(), "\n", " "))
		}
	}
	return ""
}

// called is the name of what a call calls.
func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// word is a reason or type that an expression may have, with what it means where a constant says it.
type word struct{ value, doc string }

// refusal stands for every reason for which an object is refused.
const refusal = "\x00refusal"

// words finds what an expression may be.
func (s *source) words(p *pkg, in *ast.FuncDecl, e ast.Expr) ([]word, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return []word{{value: text}}, err
	case *ast.SelectorExpr:
		if c, ok := s.constant(e); ok {
			return []word{{c.value, c.doc}}, nil
		}
	case *ast.Ident:
		if c, ok := p.consts[e.Name]; ok {
			return []word{{c.value, c.doc}}, nil
		}
		return s.variable(p, in, e)
	}
	if code, ok := strings.CutPrefix(s.text(e), "string(reason."); ok {
		if list := reasons(reason.Code(strings.TrimSuffix(code, ")"))); list[0].doc != "" {
			return list, nil
		}
	}
	if list := s.enumeration(s.text(e)); len(list) > 0 {
		return list, nil
	}
	return nil, fmt.Errorf("%s: cannot tell what %s may be: name a constant, or add it to the enumerations of tools/reference", s.fset.Position(e.Pos()), s.text(e))
}

// variable finds what a local name may be: a constant of the function, what a loop goes over, what callers pass, or the reason of a refusal.
func (s *source) variable(p *pkg, in *ast.FuncDecl, id *ast.Ident) ([]word, error) {
	var out []word
	var failed error
	take := func(e ast.Expr) {
		list, err := s.words(p, in, e)
		out, failed = append(out, list...), cmp.Or(failed, err)
	}
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if name.Name == id.Name && i < len(n.Values) {
					take(n.Values[i])
				}
			}
		case *ast.RangeStmt:
			list, ok := n.X.(*ast.CompositeLit)
			if v, is := n.Value.(*ast.Ident); ok && is && v.Name == id.Name {
				for _, e := range list.Elts {
					take(e)
				}
			}
		}
		return true
	})
	if i := parameter(in, id.Name); i >= 0 && len(out) == 0 {
		for _, c := range p.calls[in.Name.Name] {
			list, err := s.words(p, c.in, c.expr.Args[i])
			out, failed = append(out, list...), cmp.Or(failed, err)
		}
	}
	if len(out) == 0 && failed == nil {
		failed = fmt.Errorf("%s: cannot tell what %s may be", s.fset.Position(id.Pos()), id.Name)
	}
	return out, failed
}

// parameter is the place of a name among the parameters of a function, or -1.
func parameter(in *ast.FuncDecl, name string) int {
	i := 0
	for _, f := range in.Type.Params.List {
		for _, n := range f.Names {
			if n.Name == name {
				return i
			}
			i++
		}
	}
	return -1
}

// constant finds package.Name.
func (s *source) constant(e *ast.SelectorExpr) (constant, bool) {
	x, ok := e.X.(*ast.Ident)
	if !ok {
		return constant{}, false
	}
	for _, p := range s.pkgs {
		if p.name == x.Name {
			if c, ok := p.consts[e.Sel.Name]; ok {
				return c, true
			}
		}
	}
	return constant{}, false
}

// enumeration lists what an expression may be that is made of a named set. The same text means the same set in all of internal/kube.
func (s *source) enumeration(text string) []word {
	switch text {
	case "refused.Reason", "problem.Reason", "j.Blocked.Reason", "v.svc.Blocked.Reason", "p.Refused.Reason", "t.Refused.Reason":
		return []word{{value: refusal}}
	case "string(m.Kind)":
		return s.set("planner", "MoveKind", "", "MoveForget")
	case "string(problem.Cause)":
		return s.set("internal/loop", "Cause", "")
	case "string(g.Phase)":
		return s.set("fleet", "GangPhase", "")
	case `"Mode" + string(v.svc.Mode)`, `"Mode" + string(p.Mode)`:
		list := s.set("fleet", "Mode", "", "Auto")
		for i := range list {
			list[i].value = "Mode" + list[i].value
		}
		return list
	case "string(t.Held)":
		return reasons(reason.StaleMetrics, reason.FallFasterThanHistory) // those that loud lets through
	case "string(v.target.Limited)":
		return reasons(reason.MaxReplicas, reason.Quota, reason.PoolRoom, reason.Rate, reason.UnconfirmedFall)
	}
	return nil
}

func (s *source) named(pkg, name string) word {
	c := s.pkgs[pkg].consts[name]
	return word{c.value, c.doc}
}

// set lists the constants of a type, or of a prefix, in the order of the source.
func (s *source) set(pkg, of, prefix string, without ...string) []word {
	var list []constant
	for _, c := range s.pkgs[pkg].consts {
		if c.of == of && strings.HasPrefix(c.name, prefix) && !slices.Contains(without, c.name) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b constant) int { return cmp.Compare(a.at, b.at) })
	out := make([]word, len(list))
	for i, c := range list {
		out[i] = word{c.value, c.doc}
	}
	return out
}

// reasons are codes of the table of reasons.
func reasons(codes ...reason.Code) (out []word) {
	for _, c := range codes {
		out = append(out, word{string(c), c.Means()})
	}
	return out
}

func (s *source) text(e ast.Expr) string {
	var b strings.Builder
	if err := printer.Fprint(&b, s.fset, e); err != nil {
		return err.Error()
	}
	return b.String()
}

var verb = regexp.MustCompile(`%%|%[-+# 0]*[0-9.]*[a-zA-Z]`)

// sentence is the text of a message with an ellipsis for each value; only an ellipsis where all of it is a value. It follows local names, constants
// and functions of the package to the first text that they give.
func (p *pkg) sentence(in *ast.FuncDecl, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return joined(p.sentence(in, e.X) + p.sentence(in, e.Y))
	case *ast.CallExpr:
		if called(e) == "Sprintf" {
			return p.format(in, e.Args[0])
		}
		if id, ok := e.Fun.(*ast.Ident); ok {
			return p.returned(id.Name)
		}
	case *ast.Ident:
		if c, ok := p.consts[e.Name]; ok {
			return c.value
		}
		return p.assigned(in, e)
	}
	return "…"
}

// assigned is the text that a function first gives a local name.
func (p *pkg) assigned(in *ast.FuncDecl, id *ast.Ident) string {
	out := "…"
	if in == nil {
		return out
	}
	ast.Inspect(in, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || a.Tok != token.DEFINE || a.Pos() > id.Pos() || len(a.Lhs) != len(a.Rhs) {
			return true
		}
		for i, l := range a.Lhs {
			if name, ok := l.(*ast.Ident); ok && name.Name == id.Name && out == "…" {
				out = p.sentence(in, a.Rhs[i])
			}
		}
		return true
	})
	return out
}

// returned is the first text that a function returns.
func (p *pkg) returned(name string) string {
	out := "…"
	for _, f := range p.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Name.Name != name || fn.Recv != nil || fn.Body == nil {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 && strings.Trim(out, "…") == "" {
					out = p.sentence(fn, r.Results[0])
				}
				return true
			})
		}
	}
	return out
}

// format is the text of a format.
func (p *pkg) format(in *ast.FuncDecl, e ast.Expr) string { return blanks(p.sentence(in, e)) }

// blanks puts an ellipsis for each verb of a format.
func blanks(format string) string {
	return joined(verb.ReplaceAllStringFunc(format, func(v string) string {
		if v == "%%" {
			return "%"
		}
		return "…"
	}))
}

var ellipses = regexp.MustCompile(`…(…)+`)

func joined(s string) string { return ellipses.ReplaceAllString(s, "…") }
