package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// figures are what is printed of one checkout.
type figures struct {
	structs []receiver
	rooms   []roomFigures
	total   size
	words   []oddWord
}

// roomFigures are those of one room. Back counts arrows against a walk from file to file, least those against the
// best order that was found.
type roomFigures struct {
	path string
	size
	arrows, back, least int
}

func (r roomFigures) backShare() float64  { return ratio(r.back, r.arrows) }
func (r roomFigures) leastShare() float64 { return ratio(r.least, r.arrows) }

// figures measures a checkout.
func (h *house) figures() figures {
	f := figures{structs: h.structs(), words: h.oddWords()}
	for _, p := range h.paths() {
		r := h.rooms[p]
		g := h.arrows(r)
		one := roomFigures{path: p, size: h.sizeOf(r), arrows: g.count(), back: g.back(g.walked()), least: g.back(g.best())}
		f.rooms = append(f.rooms, one)
		f.total = f.total.plus(one.size)
	}
	return f
}

// room finds the figures of a room; those of a room that is not there are zero.
func (f figures) room(path string) roomFigures {
	i := slices.IndexFunc(f.rooms, func(r roomFigures) bool { return r.path == path })
	if i < 0 {
		return roomFigures{path: path}
	}
	return f.rooms[i]
}

// largest is the struct of a room, or below it, that has most methods.
func (f figures) largest(room string) receiver {
	for _, s := range f.structs {
		if s.room == room || strings.HasPrefix(s.room, room+"/") {
			return s
		}
	}
	return receiver{}
}

// mostStructs is how many structs are printed.
const mostStructs = 10

func (f figures) print(w io.Writer) {
	fmt.Fprintf(w, "## Methods on the largest structs\n\n| struct | room | methods |\n|---|---|---|\n")
	for _, s := range f.structs[:min(mostStructs, len(f.structs))] {
		fmt.Fprintf(w, "| `%s` | `%s` | %d |\n", s.name, s.room, s.methods)
	}
	fmt.Fprint(w, "\n## Rooms\n\n")
	printHead(w, "room", "files", "lines", "comment lines", "functions", "conditions a function", "branches a function",
		"arrows", "back", "share", "least", "share")
	for _, r := range f.rooms {
		fmt.Fprintf(w, "| `%s` | %s | %d | %d | %s | %d | %s |\n",
			r.path, r.sizeCells(), r.arrows, r.back, percent(r.backShare()), r.least, percent(r.leastShare()))
	}
	fmt.Fprintf(w, "| all | %s | | | | | |\n", f.total.sizeCells())
	printOwners(w, now)
	fmt.Fprintf(w, "\n## Odd words\n\n| word | where | count |\n|---|---|---|\n")
	for _, o := range f.words {
		fmt.Fprintf(w, "| %s | %s | %d |\n", o.word, o.where, o.count)
	}
}

func (s size) sizeCells() string {
	return fmt.Sprintf("%d | %d | %s | %d | %.2f | %.2f",
		s.files, s.lines, percent(s.commentShare()), s.functions, s.conditionsEach(), s.branchesEach())
}

func printOwners(w io.Writer, ownersOf func(decision) []string) {
	fmt.Fprintf(w, "\n## Owners of the twelve decisions\n\n| decision | answered by |\n|---|---|\n")
	for _, d := range decisions {
		fmt.Fprintf(w, "| %s | %s |\n", d.question, quoted(ownersOf(d)))
	}
}

// printHead prints the first two lines of a table.
func printHead(w io.Writer, columns ...string) {
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

func quoted(names []string) string {
	return "`" + strings.Join(names, "`, `") + "`"
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
