package archtest

import (
	"go/ast"
	"slices"
	"testing"
)

// actionTypes are the types of planner that implement planner.Action.
var actionTypes = []string{"Unmark", "Scale", "GiveBack", "Move", "Notice", "Eviction", "Kill", "JobScale", "Filler", "Mark", "Resize"}

// executors may look at the type of an action: the room that makes them, the protocol, and what sends its writes. Everything else uses the
// methods of planner.Action, so that a new action is not forgotten anywhere.
var executors = []string{"planner", "internal/loop/protocol", "internal/loop/looptest", "internal/kube", "sim", "sim/check"}

func TestOnlyExecutorsTellActionsApart(t *testing.T) {
	seen := false
	for _, f := range load(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, x := range typesAskedFor(n) {
				if !isAction(x) {
					continue
				}
				seen = true
				if !slices.Contains(executors, f.pkg) {
					t.Errorf("%s tells actions apart by their type: use the methods of planner.Action", f.fset.Position(x.Pos()))
				}
			}
			return true
		})
	}
	if !seen {
		t.Error("no executor tells actions apart: the test looks for the wrong thing")
	}
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

// isAction reports whether a type is a pointer to an action of package planner.
func isAction(x ast.Expr) bool {
	star, ok := x.(*ast.StarExpr)
	if !ok {
		return false
	}
	sel, ok := star.X.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == "planner" && slices.Contains(actionTypes, sel.Sel.Name)
}
