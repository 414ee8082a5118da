// Package archtest proves that imports go strictly down, and that what is pure stays pure. It reads the direct imports and calls of our
// own packages; what third-party code does inside is its own affair.
package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/springtide/springtide/"

// levels is docs/architecture.md as a table. The longest prefix wins.
var levels = map[string]int{
	"fleet": 0, "internal/series": 0,
	"portrait": 1, "forecast/model": 1, "internal/measure": 1, "internal/replay": 1, "quota": 1, "reclaim": 1, "scheduler/place": 1, "agent/shape": 1, "agent/share": 1,
	"forecast":      2,
	"hpa":           3,
	"planner":       4,
	"internal/loop": 5,
	"store":         6, "internal/kube": 6, "internal/validate": 6, "internal/clock": 6, "internal/pgtest": 6, "internal/scripttest": 6, "api": 6, "deploy": 6,
	"internal/csvseries": 6, "internal/backtest": 6,
	"sim": 7, "lab": 7, "scheduler/host": 7, "agent/host": 7, "agent/notice": 7, "dashboards": 7,
	"cmd": 8, "internal/archtest": 8, "e2e": 8, "docs": 8, "tools": 8, "bench": 8,
}

// sameLevel are imports between packages of one level that are meant: adapters share the vocabulary of the API and its validation.
var sameLevel = map[string][]string{
	"portrait":          {"forecast/model"}, // a portrait keeps what the models learned, and they know nothing of it
	"internal/kube":     {"api", "internal/validate", "internal/clock"},
	"internal/validate": {"api", "store", "deploy"}, // a tenant's PromQL is confined in one place
	"api":               {"deploy", "internal/validate"},
	"store":             {"internal/pgtest"},
	"deploy":            {"api"},
}

// pureBelow is the first level that may do I/O.
const pureBelow = 5

// forbidden in pure packages, each with what to do instead.
var forbidden = map[string]string{
	"net": "take the facts as arguments", "net/http": "take the facts as arguments", "os": "take the bytes as arguments",
	"log": "return the numbers, shells log them", "log/slog": "return the numbers, shells log them",
	"math/rand": "seed a generator of math/rand/v2 from ids", "sync": "the shell runs in parallel, the core does not",
	"context": "nothing here can be cancelled, since nothing waits",
}

// thirdParty lists what pure packages may import from outside.
var thirdParty = []string{"gonum.org/v1/gonum", "github.com/robfig/cron/v3", "github.com/rickar/cal/v2"}

// oneFile are packages that exactly one file may import.
var oneFile = map[string]string{"k8s.io/autoscaler/vertical-pod-autoscaler": "portrait/histogram.go"}

type file struct {
	pkg, name string
	ast       *ast.File
	fset      *token.FileSet
	test      bool
}

func load(t *testing.T) []file {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		files = append(files, file{pkg: path.Dir(rel), name: rel, ast: f, fset: fset, test: strings.HasSuffix(rel, "_test.go")})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files found: the walk looks in the wrong place", len(files))
	}
	return files
}

// levelOf finds the level of a package by its longest known prefix, and that prefix.
func levelOf(pkg string) (int, string, bool) {
	for p := pkg; p != "."; p = path.Dir(p) {
		if l, ok := levels[p]; ok {
			return l, p, true
		}
	}
	return 0, "", false
}

func imports(f file) []string {
	var out []string
	for _, s := range f.ast.Imports {
		p, _ := strconv.Unquote(s.Path.Value)
		out = append(out, p)
	}
	return out
}

func TestImportsGoStrictlyDown(t *testing.T) {
	for _, f := range load(t) {
		level, room, ok := levelOf(f.pkg)
		if !ok {
			t.Errorf("%s: package %s has no level: add it to the table and to docs/architecture.md", f.name, f.pkg)
			continue
		}
		if f.test {
			continue
		}
		for _, imp := range imports(f) {
			own, found := strings.CutPrefix(imp, module)
			if !found {
				continue
			}
			to, toRoom, ok := levelOf(own)
			switch {
			case !ok:
				t.Errorf("%s imports %s, which has no level", f.name, own)
			case toRoom == room || to < level || slices.Contains(sameLevel[room], toRoom):
			default:
				t.Errorf("%s (level %d) imports %s (level %d): imports go down", f.name, level, own, to)
			}
			if toRoom == "lab" && !strings.HasPrefix(f.pkg, "lab") && !strings.HasPrefix(f.pkg, "cmd/springtide-lab") && room != "e2e" {
				t.Errorf("%s imports %s: the product speaks to the lab through its APIs alone", f.name, own)
			}
			if toRoom == "api" && level < 6 {
				t.Errorf("%s imports %s: below level 6 facts are of package fleet", f.name, own)
			}
		}
	}
}

func TestPurePackagesArePure(t *testing.T) {
	for _, f := range load(t) {
		level, _, ok := levelOf(f.pkg)
		if !ok || level >= pureBelow || f.test {
			continue
		}
		for _, imp := range imports(f) {
			first, _, _ := strings.Cut(imp, "/")
			why, bad := forbidden[imp]
			if !bad {
				why, bad = forbidden[first] // net/netip, os/exec and whatever else lies below
			}
			if bad {
				t.Errorf("%s imports %s: %s", f.name, imp, why)
			}
			if strings.Contains(first, ".") && !strings.HasPrefix(imp, module) && !allowed(imp, f.name) {
				t.Errorf("%s imports %s: pure packages stand on the standard library, gonum, the cron parser and the calendar library", f.name, imp)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a goroutine in a pure package: the shell runs in parallel", f.fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "LoadLocation"}, n.Sel.Name) {
					t.Errorf("%s: time.%s in a pure package: now is an argument, zones are resolved at the edge", f.fset.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

func allowed(imp, name string) bool {
	for prefix, only := range oneFile {
		if strings.HasPrefix(imp, prefix) {
			return name == only
		}
	}
	return slices.ContainsFunc(thirdParty, func(p string) bool { return imp == p || strings.HasPrefix(imp, p+"/") })
}

// TestHeavyImportsStayAtTheEdge keeps Kubernetes itself and Prometheus' cloud-SDK-heavy packages out of the controller and the agent.
func TestHeavyImportsStayAtTheEdge(t *testing.T) {
	for _, f := range load(t) {
		edge := strings.HasPrefix(f.pkg, "lab/") || strings.HasPrefix(f.pkg, "cmd/springtide-lab") || strings.HasPrefix(f.pkg, "scheduler/host") || f.test
		for _, imp := range imports(f) {
			if edge {
				continue
			}
			if strings.HasPrefix(imp, "k8s.io/kubernetes") {
				t.Errorf("%s imports %s: only the lab's binary, scheduler/host and tests may", f.name, imp)
			}
			for _, heavy := range []string{"tsdb", "rules", "storage/remote", "web"} {
				if p := "github.com/prometheus/prometheus/" + heavy; imp == p || strings.HasPrefix(imp, p+"/") {
					t.Errorf("%s imports %s: it drags cloud SDKs into the controller", f.name, imp)
				}
			}
		}
	}
}

// TestCronIsAParser keeps the cron library's runner out: it skips runs when clocks go forward.
func TestCronIsAParser(t *testing.T) {
	for _, f := range load(t) {
		if !slices.Contains(imports(f), "github.com/robfig/cron/v3") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "cron" && s.Sel.Name == "New" {
					t.Errorf("%s: cron.New is the runner: use the parser and Next", f.fset.Position(s.Pos()))
				}
			}
			return true
		})
	}
}

// TestZonesAreCompiledIn: windows name zones, and the binary that judges and evaluates them brings them along, whatever its other packages do.
func TestZonesAreCompiledIn(t *testing.T) {
	if !slices.ContainsFunc(load(t), func(f file) bool {
		return f.name == "cmd/springtide/main.go" && slices.Contains(imports(f), "time/tzdata")
	}) {
		t.Error("cmd/springtide/main.go does not import time/tzdata")
	}
}
