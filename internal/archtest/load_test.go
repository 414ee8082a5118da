package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// typed is one package with its names resolved, so that an alias of an import or a dot import hides nothing.
type typed struct {
	path  string // below the module
	fset  *token.FileSet
	files []*ast.File
	pkg   *types.Package
	info  *types.Info
}

// listed is what `go list` says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Standard                bool
	Error                   *struct{ Err string }
}

// trialImports are what trial sources import beyond what the pure rooms do.
var trialImports = []string{
	"cmp", "crypto/rand", "fmt", "maps", "math/rand", "math/rand/v2", "os", "slices", "sort", "strings", "sync", "time",
}

// listing is one run of the go command for all tests: every package of the pure rooms and what they import, with compiled types.
var listing = sync.OnceValues(func() ([]listed, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Standard,Error"}
	args = append(args, pureDirs()...)
	cmd := exec.Command("go", append(args, trialImports...)...)
	cmd.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if l.Error != nil {
			return nil, fmt.Errorf("%s: %s", l.ImportPath, l.Error.Err)
		}
		all = append(all, l)
	}
})

// pureDirs are the patterns of the pure rooms that exist.
func pureDirs() []string {
	var out []string
	for room := range levels {
		if isPure(room) {
			if _, err := os.Stat(filepath.Join("..", "..", room)); err == nil {
				out = append(out, "./"+room+"/...")
			}
		}
	}
	return out
}

// checker resolves names with the compiled types of what is imported.
type checker struct {
	fset *token.FileSet
	imp  types.Importer
}

func newChecker(all []listed) *checker {
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	fset := token.NewFileSet()
	return &checker{fset: fset, imp: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok {
			return nil, fmt.Errorf("no compiled types of %s: add it to trialImports", path)
		}
		return os.Open(file)
	})}
}

// check resolves the names of one package.
func (c *checker) check(path string, files []*ast.File) (*typed, error) {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	pkg, err := (&types.Config{Importer: c.imp}).Check(module+path, c.fset, files, info)
	if err != nil {
		return nil, err
	}
	return &typed{path: path, fset: c.fset, files: files, pkg: pkg, info: info}, nil
}

// purePackages are all packages of the pure rooms, resolved.
func purePackages(t *testing.T) []*typed {
	t.Helper()
	all, err := listing()
	if err != nil {
		t.Fatal(err)
	}
	c := newChecker(all)
	var out []*typed
	for _, l := range all {
		path, own := strings.CutPrefix(l.ImportPath, module)
		if _, room, ok := levelOf(path); !own || !ok || !isPure(room) {
			continue
		}
		var files []*ast.File
		for _, name := range l.GoFiles {
			f, err := parser.ParseFile(c.fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		p, err := c.check(path, files)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	if len(out) < 10 {
		t.Fatalf("only %d pure packages found", len(out))
	}
	return out
}
