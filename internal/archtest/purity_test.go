package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clock are the names of package time that read the machine's clock, wait for it, or ask it for its zones.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "LoadLocation", "Local"}

// fromSeed are the functions of math/rand/v2 that draw from nothing that the process shares.
var fromSeed = []string{"New", "NewPCG", "NewChaCha8", "NewZipf"}

// stdStreams are the functions of fmt that read or write what the process shares.
var stdStreams = []string{"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"}

// allowedImpure are findings that are meant, by package, function and rule, each with its reason. An entry that nothing needs fails the test.
var allowedImpure = map[string]string{
	"forecast/calendar init init":     "the calendar library has no other way to be told a zone, and the zone of the process must not show",
	"forecast/calendar init variable": "the same: it is set before anything reads it, and always to UTC",
}

// finding is one place where a pure package is not.
type finding struct {
	pos       token.Position
	key, text string
}

// TestPureRoomsArePure resolves every name of the pure rooms and refuses what reads the world, what is shared, and what depends on the order
// of a map.
func TestPureRoomsArePure(t *testing.T) {
	used := map[string]bool{}
	for _, p := range purePackages(t) {
		for _, f := range purity(p) {
			if _, ok := allowedImpure[f.key]; ok {
				used[f.key] = true
				continue
			}
			t.Errorf("%s:%d: %s (to allow it, with a reason: %q)", filepath.Base(f.pos.Filename), f.pos.Line, f.text, f.key)
		}
	}
	for key := range allowedImpure {
		if !used[key] {
			t.Errorf("allowedImpure[%q] allows what is not there: take it out", key)
		}
	}
}

// purity finds what is refused in a pure package.
func purity(p *typed) []finding {
	v := &purityVisitor{typed: p}
	for _, file := range p.files {
		for _, decl := range file.Decls {
			v.fn = "var"
			if f, ok := decl.(*ast.FuncDecl); ok {
				v.fn = f.Name.Name
				if f.Recv == nil && f.Name.Name == "init" {
					v.refuse(f.Pos(), "init", "an init function: what a package needs is a value of its declaration")
				}
			}
			ast.Inspect(decl, v.visit)
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				v.mapOrder(f.Body)
			}
		}
	}
	slices.SortFunc(v.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.pos.Filename, b.pos.Filename), cmp.Compare(a.pos.Offset, b.pos.Offset), cmp.Compare(a.text, b.text))
	})
	return slices.Compact(v.found)
}

type purityVisitor struct {
	*typed
	fn    string
	found []finding
}

func (v *purityVisitor) refuse(pos token.Pos, rule, text string) {
	v.found = append(v.found, finding{v.fset.Position(pos), fmt.Sprintf("%s %s %s", v.path, v.fn, rule), text})
}

func (v *purityVisitor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.Ident:
		v.name(n)
	case *ast.GoStmt:
		v.refuse(n.Pos(), "go", "a goroutine: the shell runs in parallel, the core does not")
	case *ast.SelectStmt:
		v.refuse(n.Pos(), "channel", "a select: nothing here waits")
	case *ast.ChanType:
		v.refuse(n.Pos(), "channel", "a channel: values go in and come out")
	case *ast.SendStmt:
		v.refuse(n.Pos(), "channel", "a send: values go in and come out")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			v.refuse(n.Pos(), "channel", "a receive: values go in and come out")
		}
		if n.Op == token.AND {
			v.shared(n.X, "its address is taken")
		}
	case *ast.RangeStmt:
		if t := v.info.TypeOf(n.X); t != nil {
			if _, ok := t.Underlying().(*types.Chan); ok {
				v.refuse(n.Pos(), "channel", "a range over a channel: values go in and come out")
			}
		}
		if n.Tok == token.ASSIGN {
			v.shared(n.Key, "it is assigned")
			v.shared(n.Value, "it is assigned")
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, to := range n.Lhs {
				v.shared(to, "it is assigned")
			}
		}
	case *ast.IncDecStmt:
		v.shared(n.X, "it is counted")
	case *ast.CallExpr:
		v.call(n)
	}
	return true
}

// name judges one use of a name, whatever it is called by here.
func (v *purityVisitor) name(id *ast.Ident) {
	obj := v.info.Uses[id]
	if obj == nil || obj.Pkg() == nil {
		if b, ok := obj.(*types.Builtin); ok && (b.Name() == "print" || b.Name() == "println") {
			v.refuse(id.Pos(), "print", b.Name()+": return the words, shells print them")
		}
		return
	}
	f, isFunc := obj.(*types.Func)
	method := isFunc && f.Signature().Recv() != nil
	switch name := obj.Name(); obj.Pkg().Path() {
	case "time":
		if slices.Contains(clock, name) && (!method || name == "Local") {
			v.refuse(id.Pos(), "clock", "time."+name+": now is an argument, zones are resolved at the edge")
		}
	case "math/rand", "math/rand/v2":
		if isFunc && !method && !slices.Contains(fromSeed, name) {
			v.refuse(id.Pos(), "rand", "rand."+name+" draws from what the process shares: seed a generator of math/rand/v2 from ids")
		}
	case "crypto/rand":
		v.refuse(id.Pos(), "rand", "crypto/rand."+name+" never draws the same twice: seed a generator of math/rand/v2 from ids")
	case "fmt":
		if slices.Contains(stdStreams, name) && isFunc && !method {
			v.refuse(id.Pos(), "print", "fmt."+name+": return the words, shells print them")
		}
	}
}

// changers are functions of the standard library that change what their first argument holds.
var changers = map[string][]string{
	"slices": {"Sort", "SortFunc", "SortStableFunc", "Reverse", "Insert", "Delete", "DeleteFunc", "Replace", "Compact", "CompactFunc"},
	"sort":   {"Slice", "SliceStable", "Sort", "Stable", "Strings", "Ints", "Float64s"},
	"maps":   {"Copy", "DeleteFunc", "Insert"},
}

// call finds calls that change a package's variable: delete, clear, copy, sorting in place, and methods with a pointer receiver.
func (v *purityVisitor) call(n *ast.CallExpr) {
	obj := v.callee(n)
	switch obj := obj.(type) {
	case *types.Builtin:
		if slices.Contains([]string{"delete", "clear", "copy"}, obj.Name()) && len(n.Args) > 0 {
			v.shared(n.Args[0], "it is changed by "+obj.Name())
		}
		if obj.Name() == "close" {
			v.refuse(n.Pos(), "channel", "a close: values go in and come out")
		}
	case *types.Func:
		if obj.Pkg() != nil && slices.Contains(changers[obj.Pkg().Path()], obj.Name()) && len(n.Args) > 0 {
			v.shared(n.Args[0], "it is changed by "+obj.Pkg().Name()+"."+obj.Name())
		}
		sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
		recv := obj.Signature().Recv()
		if !ok || recv == nil || v.info.Selections[sel] == nil {
			return
		}
		if _, pointer := recv.Type().Underlying().(*types.Pointer); pointer {
			if _, already := v.info.TypeOf(sel.X).Underlying().(*types.Pointer); !already {
				v.shared(sel.X, "its method "+obj.Name()+" may change it")
			}
		}
	}
}

func (v *purityVisitor) callee(n *ast.CallExpr) types.Object {
	fun := ast.Unparen(n.Fun)
	switch f := fun.(type) {
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		return v.info.Uses[f]
	case *ast.SelectorExpr:
		return v.info.Uses[f.Sel]
	}
	return nil
}

// shared refuses a change of what hangs on a package's variable.
func (v *purityVisitor) shared(e ast.Expr, how string) {
	if e == nil {
		return
	}
	if obj := v.root(e); obj != nil && obj.Pkg() != nil && obj.Parent() == obj.Pkg().Scope() {
		if _, ok := obj.(*types.Var); ok {
			v.refuse(e.Pos(), "variable", fmt.Sprintf("%s.%s is a package's variable, and %s: pass a value", obj.Pkg().Name(), obj.Name(), how))
		}
	}
}

// root is the variable on which an expression hangs: x of x.f[i].g and *x, and y of pkg.y.f.
func (v *purityVisitor) root(e ast.Expr) types.Object {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			if obj := v.info.Uses[x]; obj != nil {
				return obj
			}
			return v.info.Defs[x]
		case *ast.SelectorExpr:
			if v.info.Selections[x] == nil { // a name of another package
				return v.info.Uses[x.Sel]
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// mapOrder finds slices that take the order of a map: appended to in a range over it (or collected from its keys), and
// not sorted later in the same function; and sums of floats over it, whose last bits use the order.
func (v *purityVisitor) mapOrder(body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if v.unordered(n.X) {
				v.inMapRange(body, n)
			}
		case *ast.CallExpr:
			obj, ok := v.callee(n).(*types.Func)
			if !ok || obj.Pkg() == nil || obj.Pkg().Path() != "slices" || (obj.Name() != "Collect" && obj.Name() != "AppendSeq") {
				return true
			}
			if !v.unordered(n.Args[len(n.Args)-1]) {
				return true
			}
			if to := assigned(body, n); to == nil || !v.sortedAfter(body, to, n.End()) {
				v.refuse(n.Pos(), "order", "slices."+obj.Name()+" takes the order of a map: slices.Sorted, or sort it in this function")
			}
		}
		return true
	})
}

// unordered says whether a range over e uses the order of a map.
func (v *purityVisitor) unordered(e ast.Expr) bool {
	if t := v.info.TypeOf(e); t != nil {
		if _, ok := t.Underlying().(*types.Map); ok {
			return true
		}
	}
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		obj := v.callee(call)
		return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == "maps" && slices.Contains([]string{"Keys", "Values", "All"}, obj.Name())
	}
	return false
}

// inMapRange judges the body of a range over a map.
func (v *purityVisitor) inMapRange(body *ast.BlockStmt, loop *ast.RangeStmt) {
	var key types.Object
	if id, ok := loop.Key.(*ast.Ident); ok {
		key = v.root(id)
	}
	ast.Inspect(loop.Body, func(n ast.Node) bool {
		as, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, to := range as.Lhs {
			obj := v.root(to)
			if obj == nil || (obj.Pos() >= loop.Pos() && obj.Pos() < loop.End()) || v.byKey(to, key) {
				continue
			}
			basic, _ := v.info.TypeOf(to).Underlying().(*types.Basic)
			if basic != nil && basic.Info()&types.IsFloat != 0 && (as.Tok == token.ADD_ASSIGN || as.Tok == token.SUB_ASSIGN || as.Tok == token.MUL_ASSIGN) {
				v.refuse(as.Pos(), "float", "a sum of floats in the order of a map: its last bits change from run to run, so go by sorted keys")
			}
			if i >= len(as.Rhs) {
				continue
			}
			call, ok := as.Rhs[i].(*ast.CallExpr)
			if !ok {
				continue
			}
			if b, ok := v.callee(call).(*types.Builtin); ok && b.Name() == "append" && !v.sortedAfter(body, to, loop.End()) {
				v.refuse(as.Pos(), "order", "append in the order of a map: go by sorted keys, or sort the slice in this function")
			}
		}
		return true
	})
}

// byKey says whether an expression holds what belongs to the key of the range: each key comes once, so the order does not show.
func (v *purityVisitor) byKey(e ast.Expr, key types.Object) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if ix, ok := n.(*ast.IndexExpr); ok && key != nil {
			if id, ok := ast.Unparen(ix.Index).(*ast.Ident); ok && v.info.Uses[id] == key {
				found = true
			}
		}
		return !found
	})
	return found
}

// assigned is what the value of a call goes to, if it goes to a variable at once.
func assigned(body *ast.BlockStmt, call *ast.CallExpr) ast.Expr {
	var to ast.Expr
	ast.Inspect(body, func(n ast.Node) bool {
		if as, ok := n.(*ast.AssignStmt); ok {
			for i, r := range as.Rhs {
				if r == call && i < len(as.Lhs) {
					to = as.Lhs[i]
				}
			}
		}
		return to == nil
	})
	return to
}

// sorts says whether a function sorts, by its name or its package.
func sorts(f types.Object) bool {
	return strings.Contains(strings.ToLower(f.Name()), "sort") || (f.Pkg() != nil && f.Pkg().Path() == "sort")
}

// sortedAfter says whether what e hangs on is sorted after pos: by a call whose name says that it sorts, of e or in a range over it.
func (v *purityVisitor) sortedAfter(body *ast.BlockStmt, e ast.Expr, pos token.Pos) bool {
	want := v.root(e)
	mentions := func(n ast.Node) bool {
		found := false
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && want != nil && v.info.Uses[id] == want {
				found = true
			}
			return !found
		})
		return found
	}
	sorted := false
	var over []*ast.RangeStmt // ranges over what is asked for
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if n.Pos() >= pos && mentions(n.X) {
				over = append(over, n)
			}
		case *ast.CallExpr:
			if n.Pos() < pos {
				return true
			}
			obj := v.callee(n)
			if obj == nil || !sorts(obj) {
				return true
			}
			inside := slices.ContainsFunc(over, func(r *ast.RangeStmt) bool { return n.Pos() >= r.Pos() && n.End() <= r.End() })
			if inside || mentions(n) {
				sorted = true
			}
		}
		return !sorted
	})
	return sorted
}
