package archtest

import (
	"go/ast"
	"go/parser"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var want = regexp.MustCompile(`// want "([^"]*)"`)

// TestPurityFinds plays the refusals on small sources, so that a check that finds nothing any more is found itself.
func TestPurityFinds(t *testing.T) {
	for _, archive := range []string{"refused", "fine"} {
		a, err := txtar.ParseFile(filepath.Join("testdata", archive+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		all, err := listing()
		if err != nil {
			t.Fatal(err)
		}
		c := newChecker(all)
		for _, f := range a.Files {
			t.Run(archive+"/"+f.Name, func(t *testing.T) {
				src, err := parser.ParseFile(c.fset, f.Name, f.Data, parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				p, err := c.check("trial", []*ast.File{src})
				if err != nil {
					t.Fatal(err)
				}
				compareFindings(t, string(f.Data), purity(p))
			})
		}
	}
}

// compareFindings takes off each finding what its line wants, and reports what is left on either side.
func compareFindings(t *testing.T, src string, found []finding) {
	t.Helper()
	wanted := 0
	for i, line := range strings.Split(src, "\n") {
		for _, m := range want.FindAllStringSubmatch(line, -1) {
			wanted++
			at := slices.IndexFunc(found, func(f finding) bool { return f.pos.Line == i+1 && strings.Contains(f.text, m[1]) })
			if at < 0 {
				t.Errorf("line %d: nothing found of %q", i+1, m[1])
				continue
			}
			found = slices.Delete(found, at, at+1)
		}
	}
	for _, f := range found {
		t.Errorf("line %d: found, and not wanted: %s", f.pos.Line, f.text)
	}
	t.Log(wanted, "wanted")
}

// TestImportsAreRefused plays the tables of imports on files that are not there.
func TestImportsAreRefused(t *testing.T) {
	for _, c := range []struct{ file, imports, want string }{
		{"planner/make.go", "os", "take the bytes"},
		{"planner/make.go", "net/netip", "take the facts"},
		{"planner/make.go", "log/slog", "return the numbers"},
		{"planner/make.go", "crypto/rand", "hash"},
		{"fleet/id.go", "sync/atomic", "in parallel"},
		{"internal/loop/protocol/session.go", "sync", "in parallel"},
		{"internal/loop/cycle.go", "sync", ""},
		{"planner/make.go", "math/rand/v2", ""},
		{"planner/make.go", "gonum.org/v1/gonum/mat", "not allowed"},
		{"hpa/size.go", "gonum.org/v1/gonum/mat", ""},
		{"hpa/size.go", "gonum.org/v1/gonumextra", "not allowed"},
		{"internal/loop/cycle.go", "k8s.io/client-go/rest", "not allowed"},
		{"portrait/fold.go", "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/util", "only portrait/histogram.go"},
		{"portrait/histogram.go", "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/util", ""},

		{"fleet/id.go", module + "planner", "imports go down"},
		{"planner/make.go", module + "fleet", ""},
		{"hpa/size.go", module + "api/v1alpha1", "imports go down"},
		{"api/v1alpha1/loan.go", module + "internal/validate", "imports go down"},
		{"api/v1alpha1/loan.go", module + "api/config", "imports go down"},
		{"api/v1alpha1/loan.go", module + "deploy/crd", "imports go down"},
		{"deploy/crd/crd.go", module + "api/v1alpha1", "imports go down"},
		{"deploy/crd/crd.go", module + "internal/validate", "imports go down"},
		{"internal/validate/set.go", module + "api/config", "imports go down"},
		{"internal/validate/set.go", module + "api/v1alpha1", ""},
		{"api/config/load.go", module + "internal/validate", ""},
		{"cmd/springtide/main.go", module + "lab/plane", "through its APIs alone"},
		{"internal/cli/root.go", module + "lab/plane", "through its APIs alone"},
		{"cmd/springtide/main.go", module + "internal/cli", ""},
		{"internal/cli/root.go", module + "internal/cli/doctor", ""},
		{"internal/cli/doctor/doctor.go", module + "internal/cli/examine", ""},
		{"internal/cli/doctor/doctor.go", module + "internal/cli/screen", ""},
		{"internal/cli/doctor/doctor.go", module + "internal/cli/explain", "of the same floor"},
		{"internal/cli/doctor/doctor.go", module + "internal/cli", "of a higher floor"},
		{"internal/cli/doctor/doctor.go", module + "internal/cli/clitest", "of the same floor"},
		{"internal/cli/cluster/options.go", module + "internal/cli/takeover", "of a higher floor"},
		{"internal/cli/cell/cell.go", module + "internal/cli/usage", "of the same floor"},
		{"internal/cli/adopt/adopt.go", module + "internal/cli/adopt/foreign", ""},
		{"internal/cli/unheardof/x.go", module + "internal/cli/cell", "has no floor"},
		{"internal/cli/doctor/doctor.go", module + "internal/cli/unheardof", "has no floor"},
		{"cmd/springtide-lab/up.go", module + "lab/plane", ""},
		{"planner/make.go", module + "unheardof", "no level"},
		{"unheardof/make.go", "fmt", "no level"},
	} {
		got := refuseImport(c.file, c.imports)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: got %q, want %q", c.file, c.imports, got, c.want)
		}
	}
}

// TestCirclesAreFound plays the check of the edges on small tables.
func TestCirclesAreFound(t *testing.T) {
	if got := findCircle(map[string][]string{"a": {"b", "c"}, "b": {"c"}, "c": {"d"}}); got != nil {
		t.Errorf("no circle is there, and %v was found", got)
	}
	if got := findCircle(map[string][]string{"a": {"b"}, "b": {"c", "d"}, "d": {"b"}}); len(got) == 0 {
		t.Error("b -> d -> b was not found")
	}
}
