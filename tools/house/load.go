package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// house is a checkout: its rooms by path, and what resolves their names.
type house struct {
	module string
	fset   *token.FileSet
	rooms  map[string]*room
	std    types.Importer
}

// room is one package directory, without its tests and without generated files.
type room struct {
	path  string // below the module's root
	files []*source
	pkg   *types.Package
	info  *types.Info
	open  bool // its types are being resolved
}

// source is one file of a room.
type source struct {
	name  string // without the folder
	ast   *ast.File
	lines int
}

// load parses every package of a checkout as it is built for Linux. Names are resolved when arrows are asked for. It
// compiles nothing, so that an older commit is read as fast as this one.
func load(dir string) (*house, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	build.Default.CgoEnabled = false // the source importer would call cgo for packages of the standard library
	h := &house{module: moduleOf(string(mod)), fset: token.NewFileSet(), rooms: map[string]*room{}}
	h.std = importer.ForCompiler(h.fset, "source", nil)
	linux := build.Default
	linux.GOOS = "linux"
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		if ok, err := linux.MatchFile(filepath.Dir(p), d.Name()); err != nil || !ok {
			return err
		}
		return h.read(dir, p)
	})
	if err != nil {
		return nil, err
	}
	if len(h.rooms) == 0 {
		return nil, fmt.Errorf("%s holds no Go package", dir)
	}
	return h, nil
}

// read adds one file to its room.
func (h *house) read(dir, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(dir, file)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	return h.add(rel, text)
}

// add parses one file; its path is below the root.
func (h *house) add(rel string, text []byte) error {
	f, err := parser.ParseFile(h.fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(f) {
		return nil
	}
	p := path.Dir(rel)
	if h.rooms[p] == nil {
		h.rooms[p] = &room{path: p}
	}
	lines := strings.Count(string(text), "\n")
	h.rooms[p].files = append(h.rooms[p].files, &source{name: path.Base(rel), ast: f, lines: lines})
	return nil
}

// resolve finds what each name of a room stands for. Names of other modules stay open: they are in none of the rooms.
func (h *house) resolve(r *room) {
	if r.pkg != nil || r.open {
		return
	}
	r.open = true
	defer func() { r.open = false }()
	var files []*ast.File
	for _, f := range r.files {
		files = append(files, f.ast)
	}
	r.info = &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: h, Error: func(error) {}} // errors follow from the names that stay open
	r.pkg, _ = conf.Check(path.Join(h.module, r.path), h.fset, files, r.info)
}

// Import gives packages of this module and of the standard library.
func (h *house) Import(p string) (*types.Package, error) {
	if below, ok := strings.CutPrefix(p, h.module+"/"); ok {
		r := h.rooms[below]
		if r == nil {
			return nil, fmt.Errorf("no package %s", p)
		}
		h.resolve(r)
		if r.pkg == nil {
			return nil, fmt.Errorf("%s imports itself", p)
		}
		return r.pkg, nil
	}
	if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
		return nil, errors.New("a package of another module")
	}
	return h.std.Import(p)
}

// moduleOf is the path that go.mod gives the module.
func moduleOf(mod string) string {
	for line := range strings.Lines(mod) {
		if p, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(p)
		}
	}
	return ""
}
