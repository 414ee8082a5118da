package main

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// comparison is a page: a commit, and the checkout.
type comparison struct {
	before, now             figures
	commitBefore, commitNow string
}

// leastFiles is how many files a room has to be in the page's tables.
const leastFiles = 16

// opening is what the page begins with.
//
//go:embed opening.md
var opening string

func (c comparison) print(w io.Writer) {
	p := c.before.room("planner")
	fmt.Fprintf(w, opening, c.commitBefore, c.commitNow, p.back, p.arrows)
	c.printGoals(w)
	c.printStructs(w)
	c.printRooms(w)
	c.printOwners(w)
	c.printWords(w)
}

func (c comparison) printGoals(w io.Writer) {
	fmt.Fprintf(w, "\n## Goals\n\n| goal | before | now | |\n|---|---|---|---|\n")
	row := func(goal, before, now string, met bool) {
		verdict := "missed"
		if met {
			verdict = "met"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", goal, before, now, verdict)
	}
	methods := func(r receiver) string { return fmt.Sprintf("`%s` %d", r.name, r.methods) }
	each := func(s size) string { return fmt.Sprintf("%.2f", s.conditionsEach()) }
	a, b := c.before.largest("planner"), c.now.largest("planner")
	row("planner's largest struct has under 90 methods", methods(a), methods(b), b.methods < 90)
	x, y := c.before.room("planner"), c.now.room("planner")
	back := func(r roomFigures) string {
		return fmt.Sprintf("%d of %d, %s", r.back, r.arrows, percent(r.backShare()))
	}
	row("under 30 % of planner's arrows run back", back(x), back(y), y.backShare() < .3)
	for _, room := range []string{"planner", "hpa"} {
		x, y := c.before.below(room), c.now.below(room)
		row("under .55 conditions a function in "+room, each(x), each(y), y.conditionsEach() < .55)
	}
	row("at most one of the twelve decisions has several owners",
		fmt.Sprint(several(then)), fmt.Sprint(several(now)), several(now) <= 1)
}

// below sums a room and its sub-packages.
func (f figures) below(room string) (sum size) {
	for _, r := range f.rooms {
		if r.path == room || strings.HasPrefix(r.path, room+"/") {
			sum = sum.plus(r.size)
		}
	}
	return sum
}

func (c comparison) printStructs(w io.Writer) {
	fmt.Fprintf(w, "\n## Methods on the ten largest structs\n\n| | before | | now | |\n|---|---|---|---|---|\n")
	cell := func(all []receiver, i int) string {
		if i >= len(all) {
			return " | "
		}
		return fmt.Sprintf("`%s` | %d", all[i].name, all[i].methods)
	}
	for i := range mostStructs {
		fmt.Fprintf(w, "| %d | %s | %s |\n", i+1, cell(c.before.structs, i), cell(c.now.structs, i))
	}
}

func (c comparison) printRooms(w io.Writer) {
	fmt.Fprintf(w, "\n## Rooms with %d files or more\n\nEach cell is before → now.\n\n", leastFiles)
	printHead(w, "room", "files", "lines", "comment lines", "conditions a function", "branches a function",
		"arrows", "back", "least")
	paths := map[string]bool{}
	for _, r := range slices.Concat(c.before.rooms, c.now.rooms) {
		if r.files >= leastFiles {
			paths[r.path] = true
		}
	}
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		a, b := c.before.room(p), c.now.room(p)
		fmt.Fprintf(w, "| `%s` | %s | %d → %d | %s → %s | %s → %s |\n", p, pair(a.size, b.size), a.arrows, b.arrows,
			percent(a.backShare()), percent(b.backShare()), percent(a.leastShare()), percent(b.leastShare()))
	}
	fmt.Fprintf(w, "| all rooms | %s | | | |\n", pair(c.before.total, c.now.total))
}

func pair(a, b size) string {
	return fmt.Sprintf("%d → %d | %d → %d | %s → %s | %.2f → %.2f | %.2f → %.2f",
		a.files, b.files, a.lines, b.lines, percent(a.commentShare()), percent(b.commentShare()),
		a.conditionsEach(), b.conditionsEach(), a.branchesEach(), b.branchesEach())
}

func (c comparison) printOwners(w io.Writer) {
	fmt.Fprintf(w, "\n## Owners of the twelve decisions\n\n| decision | before | now |\n|---|---|---|\n")
	for _, d := range decisions {
		fmt.Fprintf(w, "| %s | %s | %s |\n", d.question, quoted(d.before), quoted(d.owners))
	}
}

func (c comparison) printWords(w io.Writer) {
	fmt.Fprintf(w, "\n## Odd words\n\n| word | where | before | now |\n|---|---|---|---|\n")
	count := func(all []oddWord, o oddWord) int {
		i := slices.IndexFunc(all, func(x oddWord) bool { return x.word == o.word && x.where == o.where })
		if i < 0 {
			return 0
		}
		return all[i].count
	}
	seen := map[oddWord]bool{}
	for _, o := range slices.Concat(c.before.words, c.now.words) {
		key := oddWord{word: o.word, where: o.where}
		if !seen[key] {
			seen[key] = true
			fmt.Fprintf(w, "| %s | %s | %d | %d |\n", o.word, o.where, count(c.before.words, o), count(c.now.words, o))
		}
	}
}
