package archtest

import (
	"go/ast"
	"testing"

	"github.com/springtide/springtide/reason"
)

// A reason is made with as many arguments and parts as its words take, and no code of the table is without use.
func TestReasonsFitTheirWords(t *testing.T) {
	used := map[reason.Code]bool{}
	for _, f := range load(t) {
		if f.test || f.pkg == "reason" && f.name != "reason/reason.go" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "reason" {
					used[reason.Code(n.Sel.Name)] = true
				}
			case *ast.Ident:
				if f.pkg == "reason" {
					used[reason.Code(n.Name)] = true
				}
			case *ast.CallExpr:
				code, ok := reasonMade(n)
				if !ok {
					return true
				}
				if takes, more := code.Takes(); len(n.Args)-1 != takes && !(more && len(n.Args)-1 > takes) {
					t.Errorf("%s: %s takes %d arguments and parts: %q", f.fset.Position(n.Pos()), code, takes, code.Words())
				}
			}
			return true
		})
	}
	for _, c := range reason.Codes() {
		if !used[c] && !made[c] {
			t.Errorf("%s is in the table, and no code gives it", c)
		}
	}
}

// made are codes that are put together from the value of another type.
var made = map[reason.Code]bool{reason.ModeObserve: true, reason.ModeRecommend: true, reason.GangWaiting: true, reason.GangForming: true, reason.GangWhole: true, reason.GangBackedOff: true}

// reasonMade is the code of a call of reason.Of, where the call names it.
func reasonMade(call *ast.CallExpr) (reason.Code, bool) {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || of.Sel.Name != "Of" || len(call.Args) == 0 || call.Ellipsis.IsValid() {
		return "", false
	}
	if x, ok := of.X.(*ast.Ident); !ok || x.Name != "reason" {
		return "", false
	}
	code, ok := call.Args[0].(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	if x, ok := code.X.(*ast.Ident); !ok || x.Name != "reason" {
		return "", false
	}
	return reason.Code(code.Sel.Name), true
}
