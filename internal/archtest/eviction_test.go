package archtest

import (
	"go/ast"
	"testing"
)

// TestEvictionsAreAskedForOnce: client-go's own call waits for a disruption budget that refuses, in the goroutine of its caller. The product asks by
// internal/eviction.
func TestEvictionsAreAskedForOnce(t *testing.T) {
	for _, f := range load(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Evictions" {
					t.Errorf("%s asks client-go for evictions: call eviction.Once", f.fset.Position(s.Pos()))
				}
			}
			return true
		})
	}
}
