package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rawAmounts are conversions of quantities that answer with 0, or with a negative number, where the result does not fit: "10P" of CPU would count as none.
var rawAmounts = []string{"MilliValue", "ScaledValue", "AsInt64"}

// ofLists are the methods of a list of resources that give a quantity.
var ofLists = []string{"Cpu", "Memory", "Pods", "Storage", "StorageEphemeral", "Name"}

// TestAmountsAreBounded: quantities become numbers in internal/kube/facts alone. The outside judge of the lab has its own reading, since it shares no code with what
// it judges.
func TestAmountsAreBounded(t *testing.T) {
	root, seen := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if name := d.Name(); rel != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") || slices.Contains([]string{"internal/kube/facts", "lab/judge"}, filepath.ToSlash(rel)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		for _, pos := range rawAmountsIn(file) {
			t.Errorf("%s:%d: a quantity is converted raw: use facts.Milli, facts.Count, facts.Sum or facts.Resources", rel, fset.Position(pos).Line)
		}
		return nil
	})
	if err != nil || seen < 300 {
		t.Fatalf("%d files were read: %v", seen, err)
	}
}

func rawAmountsIn(file *ast.File) (out []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) > 1 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		raw := slices.Contains(rawAmounts, sel.Sel.Name)
		if inner, ok := sel.X.(*ast.CallExpr); ok && sel.Sel.Name == "Value" {
			of, ok := inner.Fun.(*ast.SelectorExpr)
			raw = ok && slices.Contains(ofLists, of.Sel.Name)
		}
		if raw {
			out = append(out, sel.Pos())
		}
		return true
	})
	return out
}

func TestRawAmountsAreFound(t *testing.T) {
	src := `package x
func f(list L, q Q) {
	_ = q.MilliValue()
	_ = list.Cpu().Value()
	_ = list.Name("nvidia.com/gpu", "").Value()
	_ = q.ScaledValue(-3)
	_ = f().Value()
	_ = flag.Value
}`
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(rawAmountsIn(file)); got != 4 {
		t.Errorf("%d found, want 4", got)
	}
}
