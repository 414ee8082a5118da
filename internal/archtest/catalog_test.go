package archtest

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/springtide/springtide/api/catalog"
)

// Conditions, refusals and events are rows of api/catalog: each is made at one place alone, from such a row.
var shownBy = map[string][]string{
	"a condition": {"internal/kube/", "agent/host/report.go"},
	"a refusal":   {"api/catalog/"},
	"an event":    {"internal/kube/", "scheduler/host/report.go"},
}

func TestOnlyTheCatalogueIsShown(t *testing.T) {
	places := map[string]map[string]bool{}
	for _, f := range load(t) {
		if f.test || strings.HasPrefix(f.pkg, "lab") || strings.HasPrefix(f.pkg, "sim") {
			continue
		}
		for _, what := range shownIn(f.ast) {
			if places[what] == nil {
				places[what] = map[string]bool{}
			}
			places[what][f.name] = true
		}
	}
	for what, prefixes := range shownBy {
		n := map[string]int{}
		for name := range places[what] {
			i := slices.IndexFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
			if i < 0 {
				t.Errorf("%s makes %s: use a row of api/catalog", name, what)
				continue
			}
			if n[prefixes[i]]++; n[prefixes[i]] > 1 {
				t.Errorf("%s makes %s at a second place of its room", name, what)
			}
		}
		if len(n) != len(prefixes) {
			t.Errorf("%s is made at %v, want a place in each of %v: the test looks in the wrong place", what, n, prefixes)
		}
	}
}

// shownIn finds what a file makes of its own: a condition with a type, a problem with a reason, a call of a recorder.
func shownIn(f *ast.File) (out []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			switch {
			case selects(n.Type, "metav1", "Condition") && len(n.Elts) > 0:
				out = append(out, "a condition")
			case selects(n.Type, "fleet", "Problem") && len(n.Elts) > 0:
				out = append(out, "a refusal")
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Event" ||
				sel.Sel.Name == "Eventf") && len(n.Args) > 3 {
				out = append(out, "an event")
			}
		}
		return true
	})
	return out
}

func selects(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// enumerations are the types whose values become reasons, with how the catalogue finds the row of each.
var enumerations = map[string]func(value string) bool{
	"planner.MoveKind": func(v string) bool {
		return v == "Forget" || catalog.LoanMoved(v) != nil ||
			catalog.LoanLost(v) != nil
	},
	"loop.Cause":      func(v string) bool { return declared(catalog.Service, catalog.ConditionDataFresh, v) },
	"fleet.GangPhase": func(v string) bool { return declared(catalog.Job, catalog.ConditionGangWhole, v) },
	"fleet.Mode": func(v string) bool {
		return v == "Auto" || declared(catalog.Service, catalog.ConditionAbleToScale, "Mode"+v) && declared(catalog.Pool,
			catalog.ConditionReady, "Mode"+v)
	},
}

func declared(object catalog.Kind, kind, reason string) bool {
	return slices.ContainsFunc(catalog.Verdicts(), func(v *catalog.Verdict) bool {
		return v.Object() == object && v.Type() == kind && v.Reason() == reason
	})
}

func TestEveryEnumeratedReasonIsInTheCatalogue(t *testing.T) {
	seen := map[string]int{}
	for _, f := range load(t) {
		if f.test {
			continue
		}
		for of, value := range enumerated(f.ast) {
			name := f.ast.Name.Name + "." + of
			if has, ok := enumerations[name]; ok {
				for _, v := range value {
					if seen[name]++; !has(v) {
						t.Errorf("%s %q has no row in api/catalog", name, v)
					}
				}
			}
		}
	}
	for name := range enumerations {
		if seen[name] < 3 {
			t.Errorf("%d values of %s were found: the test looks in the wrong place", seen[name], name)
		}
	}
}

// enumerated are the string constants of a file by their types.
func enumerated(f *ast.File) map[string][]string {
	out := map[string][]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		of, ok := v.Type.(*ast.Ident)
		for i := range v.Values {
			if lit, is := v.Values[i].(*ast.BasicLit); ok && is {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					out[of.Name] = append(out[of.Name], text)
				}
			}
		}
		return true
	})
	return out
}

// A row is shown with as many values as its words take.
func TestRowsFitTheirWords(t *testing.T) {
	takes := rowsOf(t)
	n := 0
	for _, f := range load(t) {
		if f.test || f.pkg == "api/catalog" {
			continue
		}
		ast.Inspect(f.ast, func(x ast.Node) bool {
			call, ok := x.(*ast.CallExpr)
			if !ok || call.Ellipsis.IsValid() {
				return true
			}
			for name, given := range shownRows(call) {
				if n++; takes[name] != given {
					t.Errorf("%s: %s takes %d values, and gets %d", f.fset.Position(call.Pos()), name, takes[name], given)
				}
			}
			return true
		})
	}
	if n < 150 {
		t.Errorf("only %d uses of rows were found: the test looks in the wrong place", n)
	}
}

// showing are the functions that take a row and then what its words take.
var showing = []string{"set", "refuse", "accept", "Record", "record", "lacks"}

// shownRows are the rows that a call shows, each with how many values it gives.
func shownRows(call *ast.CallExpr) map[string]int {
	name := ""
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		if row, ok := rowNamed(fun.X); ok && (fun.Sel.Name == "Of" || fun.Sel.Name == "Text") {
			return map[string]int{row: len(call.Args)}
		}
		name = fun.Sel.Name
	}
	if !slices.Contains(showing, name) {
		return nil
	}
	for i, arg := range call.Args {
		if row, ok := rowNamed(arg); ok {
			return map[string]int{row: len(call.Args) - i - 1}
		}
	}
	return nil
}

// rowNamed is the row that an expression names.
func rowNamed(e ast.Expr) (string, bool) {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || !selects(sel, "catalog", sel.Sel.Name) {
		return "", false
	}
	return sel.Sel.Name, true
}

// rowsOf are the rows of the catalogue by name, with how many values the words of each take.
func rowsOf(t *testing.T) map[string]int {
	out, words := map[string]int{}, map[string]string{}
	for _, f := range load(t) {
		if f.test || f.pkg != "api/catalog" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			for i := 0; ok && i < len(v.Values); i++ {
				if w, made := wordsOf(v.Values[i]); made {
					words[v.Names[i].Name] = w
				}
			}
			return true
		})
	}
	for name, w := range words {
		if of, ok := strings.CutPrefix(w, "\x00"); ok {
			w = words[of]
		}
		out[name] = strings.Count(w, "%") - 2*strings.Count(w, "%%")
	}
	return out
}

// wordsOf are the words in the call that makes a row: its last text, or, after a zero byte, the name of the row that
// has them.
func wordsOf(e ast.Expr) (words string, ok bool) {
	call, is := e.(*ast.CallExpr)
	if !is {
		return "", false
	}
	made := ""
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		made = fun.Name
	case *ast.SelectorExpr:
		if made = fun.Sel.Name; made == "when" || made == "do" {
			return wordsOf(fun.X)
		}
	}
	switch made {
	case "refused":
		return "%s", true
	case "verdict", "accepted", "available", "or", "refusal", "event", "also", "lack":
	default:
		return "", false
	}
	for _, arg := range call.Args {
		if text, is := literal(arg); is {
			words, ok = text, true
		}
		if sel, is := arg.(*ast.SelectorExpr); is && sel.Sel.Name == "words" {
			words, ok = "\x00"+sel.X.(*ast.Ident).Name, true
		}
	}
	return words, ok
}

// literal is a text that is written out.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		a, ok := literal(e.X)
		b, also := literal(e.Y)
		return a + b, ok && also
	}
	return "", false
}
