package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
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
	"fleet": 0, "reason": 0, "series": 0, "scheduler/rules": 0,
	"portrait": 1, "signal": 1, "portrait/model": 1, "portrait/capacity": 1, "internal/measure": 1, "internal/replay": 1,
	"forecast/calendar": 1, "festival": 1,
	"quota": 1, "reclaim": 1, "slo": 1, "scheduler/place": 1, "agent/shape": 1, "agent/share": 1,
	"forecast": 2,
	"hpa":      3,
	"planner":  4, "internal/whatif": 4,
	"internal/loop/protocol": 5, "internal/loop": 5, "internal/redact": 5, "internal/eviction": 5,
	"store": 6, "internal/kube": 6, "internal/validate": 6, "internal/clock": 6, "internal/pgtest": 6, "internal/scripttest": 6, "internal/pages": 6, "api": 6, "deploy": 6,
	"api/v1alpha1": 6, "api/config": 6, "api/catalog": 6,
	"internal/serve": 6, "internal/csvseries": 6, "internal/backtest": 6,
	"internal/run": 7, "sim": 7, "lab": 7, "lab/judge": 7, "lab/judge/watch": 7, "scheduler/host/queue": 6, "scheduler/host/bind": 6, "scheduler/host": 7, "scheduler/host/upstream": 7, "scheduler/host/command": 7, "agent/host": 7, "agent/notice": 7, "dashboards": 7,
	"internal/cli": 8,
	"cmd":          9, "cmd/springtide": 9, "cmd/springtide-agent": 9, "cmd/springtide-lab": 9, "cmd/springtide-scheduler": 9, "internal/archtest": 9, "e2e": 9, "e2e/node": 9, "docs": 9, "tools": 9, "bench": 9, "bench/scheduling": 9,
}

// sameLevel are imports between packages of one level that are meant: adapters share the vocabulary of the API and its validation. They go
// one way: the types (api/v1alpha1) and the manifests (deploy) import nothing of ours, the validation imports them, and the
// configuration's file (api/config) imports the validation.
var sameLevel = map[string][]string{
	"fleet":             {"reason"},
	"portrait":          {"portrait/model", "portrait/capacity"}, // it keeps what they learned; they know nothing of it
	"festival":          {"forecast/calendar"},                   // a plan may name a day of the calendar
	"internal/loop":     {"internal/loop/protocol"},
	"internal/kube":     {"api/v1alpha1", "api/catalog", "internal/validate", "internal/clock"},
	"internal/serve":    {"api/v1alpha1", "internal/validate", "store"}, // it answers with the sentences of the validation and what the store keeps
	"internal/validate": {"api/v1alpha1", "store", "deploy"},            // a tenant's PromQL is confined in one place
	"api/config":        {"internal/validate"},
	"store":             {"internal/pgtest"},
	// The host knows upstream's plugins as an interface; the command brings the two together.
	"scheduler/host/upstream": {"scheduler/host"},
	"scheduler/host/command":  {"scheduler/host", "scheduler/host/upstream"},
	"lab":                     {"agent/notice", "lab/judge"}, // a pod of the lab hears of notices by the node agent's code; a report holds the judge's
	"lab/judge/watch":         {"lab/judge"},
	"agent/host":              {"agent/notice"},
}

// pureBelow is the first level that may do I/O.
const pureBelow = 5

// pureAbove are rooms of higher levels that are as pure as the planner.
var pureAbove = []string{"internal/loop/protocol", "lab/judge"}

func isPure(room string) bool { return levels[room] < pureBelow || slices.Contains(pureAbove, room) }

// forbidden in pure packages, each with what to do instead.
var forbidden = map[string]string{
	"net": "take the facts as arguments", "net/http": "take the facts as arguments", "os": "take the bytes as arguments",
	"log": "return the numbers, shells log them", "log/slog": "return the numbers, shells log them",
	"math/rand": "seed a generator of math/rand/v2 from ids", "sync": "the shell runs in parallel, the core does not",
	"crypto": "nothing here is secret, and a hash that is kept is named in hash/*", "hash/maphash": "its seed changes from run to run",
	"syscall": "take the facts as arguments", "runtime": "nothing here goes by the process", "unsafe": "nothing here needs it", "io/ioutil": "take the bytes as arguments",
	"reflect": "a type switch says what is meant", "embed": "take the bytes as arguments", "database": "take the facts as arguments",
	"context": "nothing here can be cancelled, since nothing waits",
}

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
		if _, _, ok := levelOf(f.pkg); !ok {
			t.Errorf("%s: package %s has no level: add it to the table and to docs/architecture.md", f.name, f.pkg)
			continue
		}
		if f.test {
			continue
		}
		for _, imp := range imports(f) {
			if why := refuseImport(f.name, imp); why != "" {
				t.Errorf("%s imports %s: %s", f.name, imp, why)
			}
		}
	}
}

// TestSameLevelGoesOneWay: what adapters share sideways has no circle, so that each can be read without the next.
func TestSameLevelGoesOneWay(t *testing.T) {
	if circle := findCircle(sameLevel); circle != nil {
		t.Errorf("imports between rooms of one level go in a circle: %s", strings.Join(circle, " -> "))
	}
}

// findCircle is a circle of rooms, or nil.
func findCircle(edges map[string][]string) []string {
	for _, room := range slices.Sorted(maps.Keys(edges)) {
		var walk func(path []string) []string
		walk = func(path []string) []string {
			for _, to := range edges[path[len(path)-1]] {
				if to == room {
					return append(path, to)
				}
				if !slices.Contains(path, to) {
					if circle := walk(append(slices.Clone(path), to)); circle != nil {
						return circle
					}
				}
			}
			return nil
		}
		if circle := walk([]string{room}); circle != nil {
			return circle
		}
	}
	return nil
}

// TestThirdPartyIsNeeded keeps the allow-list of imports as short as it can be.
func TestThirdPartyIsNeeded(t *testing.T) {
	needed := map[string]bool{}
	for _, f := range load(t) {
		if _, room, ok := levelOf(f.pkg); ok && !f.test {
			for _, imp := range imports(f) {
				for _, p := range thirdParty[room] {
					if under(imp, p) {
						needed[room+" "+p] = true
					}
				}
			}
		}
	}
	for room, all := range thirdParty {
		for _, p := range all {
			if !needed[room+" "+p] {
				t.Errorf("thirdParty[%q] allows %s, which nothing imports: take it out", room, p)
			}
		}
	}
}

// TestHeavyImportsStayAtTheEdge keeps Kubernetes itself and Prometheus' cloud-SDK-heavy packages out of the controller and the agent.
func TestHeavyImportsStayAtTheEdge(t *testing.T) {
	for _, f := range load(t) {
		edge := strings.HasPrefix(f.pkg, "lab/") || strings.HasPrefix(f.pkg, "cmd/springtide-lab") || strings.HasPrefix(f.pkg, "scheduler/host/upstream") || f.test
		for _, imp := range imports(f) {
			if edge {
				continue
			}
			if strings.HasPrefix(imp, "k8s.io/kubernetes") {
				t.Errorf("%s imports %s: only the lab's binary, scheduler/host/upstream and tests may", f.name, imp)
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
