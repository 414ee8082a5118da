package main

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
)

// graph holds, for each file of a room, the files whose names it uses. A name is a method, or what is declared at the
// level of the package: a function, a type, a variable, a constant. Fields are not counted: they belong to the type.
// Two files have at most one arrow each way.
type graph map[string]map[string]bool

// arrows finds the arrows between the files of a room.
func (h *house) arrows(r *room) graph {
	h.resolve(r)
	in := map[types.Object]string{}
	for _, f := range r.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && r.info.Defs[id] != nil {
				in[r.info.Defs[id]] = f.name
			}
			return true
		})
	}
	g := graph{}
	for _, f := range r.files {
		g[f.name] = map[string]bool{}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			used := r.info.Uses[id]
			if fn, ok := used.(*types.Func); ok {
				used = fn.Origin()
			} else if used == nil || r.pkg == nil || used.Parent() != r.pkg.Scope() {
				return true
			}
			if to := in[used]; to != "" && to != f.name {
				g[f.name][to] = true
			}
			return true
		})
	}
	return g
}

// count is how many arrows there are.
func (g graph) count() (n int) {
	for _, to := range g {
		n += len(to)
	}
	return n
}

// back counts the arrows that run against an order in which users stand before what they use.
func (g graph) back(order []string) (n int) {
	at := map[string]int{}
	for i, f := range order {
		at[f] = i
	}
	for from, to := range g {
		for f := range to {
			if at[f] < at[from] {
				n++
			}
		}
	}
	return n
}

// walked is the order that a depth-first walk gives, files by name and their arrows by name. Without circles no arrow
// runs back in it. It is the order of a reader who follows each name to where it is declared before reading on.
func (g graph) walked() []string {
	seen := map[string]bool{}
	var out []string
	var visit func(f string)
	visit = func(f string) {
		if seen[f] {
			return
		}
		seen[f] = true
		for _, to := range slices.Sorted(maps.Keys(g[f])) {
			visit(to)
		}
		out = append(out, f)
	}
	for _, f := range slices.Sorted(maps.Keys(g)) {
		visit(f)
	}
	slices.Reverse(out)
	return out
}

// best is an order with few arrows back. The fewest are not found in reasonable time; this one is found greedily
// (Eades, Lin and Smyth): files that use nothing that is left go last, files that nothing left uses go first, and
// otherwise the file that uses most and is used least goes first, by name among equals. Then each file moves to its
// best place until none gains. A walk that is improved in this way is taken where it has fewer.
func (g graph) best() []string {
	used := g.turned()
	left := slices.Sorted(maps.Keys(g))
	among := func(m map[string]bool) (n int) {
		for _, f := range left {
			if m[f] {
				n++
			}
		}
		return n
	}
	var first, last []string
	for len(left) > 0 {
		pick, most, end := 0, -len(g), false
		for i, f := range left {
			out, in := among(g[f]), among(used[f])
			if out == 0 {
				pick, end = i, true
				break
			}
			if in == 0 {
				out = len(g)
			}
			if out-in > most {
				pick, most = i, out-in
			}
		}
		if end {
			last = append(last, left[pick])
		} else {
			first = append(first, left[pick])
		}
		left = slices.Delete(left, pick, pick+1)
	}
	slices.Reverse(last)
	greedy, walked := g.improve(append(first, last...)), g.improve(g.walked())
	if g.back(walked) < g.back(greedy) {
		return walked
	}
	return greedy
}

// turned holds, for each file, the files that use it.
func (g graph) turned() graph {
	out := graph{}
	for f := range g {
		out[f] = map[string]bool{}
	}
	for from, to := range g {
		for f := range to {
			out[f][from] = true
		}
	}
	return out
}

// improve moves single files as long as that takes an arrow back away.
func (g graph) improve(order []string) []string {
	for again := true; again; {
		again = false
		for _, f := range slices.Clone(order) {
			from := slices.Index(order, f)
			rest := slices.Delete(slices.Clone(order), from, from+1)
			// cost is what moving f from before to behind each file adds, or takes when it is negative.
			cost, to, least := 0, 0, 0
			here := 0
			for i, x := range rest {
				if g[f][x] {
					cost++
				}
				if g[x][f] {
					cost--
				}
				if cost < least {
					least, to = cost, i+1
				}
				if i+1 == from {
					here = cost
				}
			}
			if least < here {
				order = slices.Insert(rest, to, f)
				again = true
			}
		}
	}
	return order
}
