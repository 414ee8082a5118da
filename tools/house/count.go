package main

import (
	"cmp"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
)

// size is how large a room is, and how much of it explains the rest.
type size struct {
	files, lines, comments int
	// functions are those with a name; what stands in a function literal counts for the function around it.
	functions, conditions, branches int
}

func (s size) plus(o size) size {
	return size{s.files + o.files, s.lines + o.lines, s.comments + o.comments,
		s.functions + o.functions, s.conditions + o.conditions, s.branches + o.branches}
}

func (s size) conditionsEach() float64 { return ratio(s.conditions, s.functions) }
func (s size) branchesEach() float64   { return ratio(s.branches, s.functions) }
func (s size) commentShare() float64   { return ratio(s.comments, s.lines) }

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// sizeOf counts one room.
func (h *house) sizeOf(r *room) size {
	var out size
	for _, f := range r.files {
		one := size{files: 1, lines: f.lines, comments: h.commentLines(f.ast)}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				one.functions++
				one.conditions += conditions(fn)
				one.branches += branches(fn)
			}
		}
		out = out.plus(one)
	}
	return out
}

// commentLines are the lines on which a comment stands, alone or after code.
func (h *house) commentLines(f *ast.File) int {
	lines := map[int]bool{}
	for _, group := range f.Comments {
		for _, c := range group.List {
			for l := h.fset.Position(c.Pos()).Line; l <= h.fset.Position(c.End()-1).Line; l++ {
				lines[l] = true
			}
		}
	}
	return len(lines)
}

// conditions are the && and || of a function.
func conditions(fn *ast.FuncDecl) (n int) {
	ast.Inspect(fn, func(x ast.Node) bool {
		if b, ok := x.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
			n++
		}
		return true
	})
	return n
}

// branches are the ifs of a function, and the cases of its switches and selects without the default.
func branches(fn *ast.FuncDecl) (n int) {
	ast.Inspect(fn, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.IfStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		}
		return true
	})
	return n
}

// receiver is a struct, and how many methods it has.
type receiver struct {
	name    string // room.Type
	room    string
	methods int
}

// structs are all structs with methods, those with most first.
func (h *house) structs() []receiver {
	count := map[receiver]int{}
	for _, r := range h.rooms {
		isStruct := map[string]bool{}
		for _, f := range r.files {
			ast.Inspect(f.ast, func(x ast.Node) bool {
				if t, ok := x.(*ast.TypeSpec); ok {
					_, isStruct[t.Name.Name] = t.Type.(*ast.StructType)
				}
				return true
			})
		}
		for _, f := range r.files {
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && isStruct[receiverOf(fn)] {
					count[receiver{name: path.Base(r.path) + "." + receiverOf(fn), room: r.path}]++
				}
			}
		}
	}
	var out []receiver
	for r, n := range count {
		r.methods = n
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b receiver) int {
		return cmp.Or(cmp.Compare(b.methods, a.methods), cmp.Compare(a.room, b.room), cmp.Compare(a.name, b.name))
	})
	return out
}

// receiverOf is the name of the type whose method a function is, or empty.
func receiverOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) != 1 {
		return ""
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// paths are the rooms in order.
func (h *house) paths() []string { return slices.Sorted(maps.Keys(h.rooms)) }
