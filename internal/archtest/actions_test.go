package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// executors may look at the type of an action: the room that makes them, the protocol, and what sends its writes. Everything else uses the
// methods of planner.Action, so that a new action is not forgotten anywhere.
var executors = []string{
	"planner", "internal/loop/protocol", "internal/loop/looptest", "internal/kube/act", "sim", "sim/check",
}

func TestOnlyExecutorsTellActionsApart(t *testing.T) {
	files := load(t)
	actions := actionTypes(files)
	if !slices.Contains(actions, "Scale") || slices.Contains(actions, "Plan") {
		t.Fatalf("the actions of package planner are %v: the test reads the wrong thing", actions)
	}
	seen := false
	for _, f := range files {
		if f.test {
			continue
		}
		for _, pos := range typeTests(f.ast, actions) {
			seen = true
			if !slices.Contains(executors, f.pkg) {
				t.Errorf("%s tells actions apart by their type: use the methods of planner.Action", f.fset.Position(pos))
			}
		}
	}
	if !seen {
		t.Error("no executor tells actions apart: the test looks for the wrong thing")
	}
}

// TestTellingActionsApartIsFound plays the ways around on small sources.
func TestTellingActionsApartIsFound(t *testing.T) {
	for src, want := range map[string]int{
		`import "github.com/springtide/springtide/planner"; func f(a planner.Action) { switch a.(type) { case *planner.Move, *planner.Scale: } }`:      2,
		`import p "github.com/springtide/springtide/planner"; func f(a p.Action) bool { _, ok := a.(*p.Move); return ok }`:                             1,
		`import . "github.com/springtide/springtide/planner"; func f(a Action) { switch a.(type) { case *Move: } }`:                                    1,
		`import "github.com/springtide/springtide/planner"; type move = planner.Move; func f(a planner.Action) bool { _, ok := a.(*move); return ok }`: 2,
		`import "github.com/springtide/springtide/planner"; type move = *planner.Move; func f(a planner.Action) bool { _, ok := a.(move); return ok }`: 2,
		`import "github.com/springtide/springtide/planner"; func f(a planner.Action) bool { _, ok := a.(interface{ Move() }); return ok }`:             0,
		`import "github.com/springtide/springtide/planner"; func f(a any) bool { _, ok := a.(*planner.Plan); return ok }`:                              0,
		`import "example.org/planner"; func f(a any) bool { _, ok := a.(*planner.Move); return ok }`:                                                   0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x; "+src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(typeTests(f, []string{"Move", "Scale"})); got != want {
			t.Errorf("%d found, want %d: %s", got, want, src)
		}
	}
}

// actionTypes are the types of package planner with the methods of planner.Action.
func actionTypes(files []file) []string {
	var asked []string
	has := map[string]map[string]bool{}
	for _, f := range files {
		if f.pkg != "planner" || f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if i, ok := n.Type.(*ast.InterfaceType); ok && n.Name.Name == "Action" {
					for _, m := range i.Methods.List {
						for _, name := range m.Names {
							asked = append(asked, name.Name)
						}
					}
				}
			case *ast.FuncDecl:
				if n.Recv != nil {
					of := ast.Unparen(n.Recv.List[0].Type)
					if star, ok := of.(*ast.StarExpr); ok {
						of = star.X
					}
					if id, ok := of.(*ast.Ident); ok {
						if has[id.Name] == nil {
							has[id.Name] = map[string]bool{}
						}
						has[id.Name][n.Name.Name] = true
					}
				}
			}
			return true
		})
	}
	var out []string
	for name, methods := range has {
		if len(asked) > 0 && !slices.ContainsFunc(asked, func(m string) bool { return !methods[m] }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// typeTests are the places of a file where a value is asked for the type of an action, under whatever name the file imports it. An alias of such a type counts
// too: the other files of its package could ask for it.
func typeTests(f *ast.File, actions []string) []token.Pos {
	planner := ""
	for _, s := range f.Imports {
		if p, _ := strconv.Unquote(s.Path.Value); p == module+"planner" {
			planner = "planner"
			if s.Name != nil {
				planner = s.Name.Name
			}
		}
	}
	if f.Name.Name == "planner" && planner == "" {
		planner = "."
	}
	aliases := map[string]ast.Expr{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSpec); ok && s.Assign.IsValid() {
			aliases[s.Name.Name] = s.Type
		}
		return true
	})
	var isAction func(x ast.Expr) bool
	isAction = func(x ast.Expr) bool {
		switch x := ast.Unparen(x).(type) {
		case *ast.StarExpr:
			return isAction(x.X)
		case *ast.SelectorExpr:
			id, ok := x.X.(*ast.Ident)
			return ok && planner != "" && id.Name == planner && slices.Contains(actions, x.Sel.Name)
		case *ast.Ident:
			if of, ok := aliases[x.Name]; ok {
				return isAction(of)
			}
			return planner == "." && slices.Contains(actions, x.Name)
		}
		return false
	}
	var out []token.Pos
	ast.Inspect(f, func(n ast.Node) bool {
		asked := typesAskedFor(n)
		if s, ok := n.(*ast.TypeSpec); ok && s.Assign.IsValid() {
			asked = []ast.Expr{s.Type}
		}
		for _, x := range asked {
			if isAction(x) {
				out = append(out, x.Pos())
			}
		}
		return true
	})
	return out
}

// typesAskedFor are the types of a case of a type switch, or of a type assertion.
func typesAskedFor(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.TypeSwitchStmt:
		var out []ast.Expr
		for _, c := range n.Body.List {
			out = append(out, c.(*ast.CaseClause).List...)
		}
		return out
	case *ast.TypeAssertExpr:
		if n.Type != nil {
			return []ast.Expr{n.Type}
		}
	}
	return nil
}
