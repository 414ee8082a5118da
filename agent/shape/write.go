package shape

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Observed reads a file of a cgroup as it was found; false where there is none.
type Observed func(path, file string) (string, bool)

// Write is one change.
type Write struct {
	Path      string `json:"path"`
	File      string `json:"file"`
	Old       string `json:"old"`
	New       string `json:"new"`
	Why       string `json:"why"`
	Container string `json:"container,omitempty"`
}

// Skip is a wanted value whose file is not there.
type Skip struct{ Path, File string }

// Files of the root of the tree alone: on which devices the kernel enforces weights for I/O, and what these can do.
const (
	IOCostQoS   = "io.cost.qos"
	IOCostModel = "io.cost.model"
)

// ranks order the files of one cgroup when limits widen; they are taken backwards when limits narrow. So memory.high falls before memory.max, and
// the kernel reclaims before it kills; and cpu.idle is cleared before a weight is written.
var ranks = [...]string{"cpu.idle", "cpu.weight", "cpu.max", "cpuset.mems", "cpuset.cpus", "memory.min", "memory.low", "memory.max", "memory.high", "io.weight", "io.max", IOCostModel, IOCostQoS}

func rank(file string) int { return slices.Index(ranks[:], file) }

// Plan orders the writes from what was observed to what is wanted. First every limit that widens, parents first; then every limit that narrows,
// children first. A set that gains and loses is widened to both and narrowed after that, so no process is ever without a CPU or a cell, and
// none is moved off its parent's cells by the kernel. all and allMems are what an empty set stands for.
func Plan(wanted []Group, seen Observed, all, allMems Set) ([]Write, []Skip) {
	p := planner{seen: seen, all: all, mems: allMems, now: map[string]content{}}
	for i := range wanted {
		g := &wanted[i]
		values := slices.Clone(g.Values)
		slices.SortStableFunc(values, func(a, b Value) int { return cmp.Compare(rank(a.File), rank(b.File)) })
		for _, v := range values {
			p.widen(g, v)
		}
	}
	for i := range slices.Backward(wanted) {
		g := &wanted[i]
		values := slices.Clone(g.Values)
		slices.SortStableFunc(values, func(a, b Value) int { return cmp.Compare(rank(b.File), rank(a.File)) })
		for _, v := range values {
			p.narrow(g, v)
		}
	}
	return p.writes, p.skips
}

type planner struct {
	seen      Observed
	all, mems Set
	// now is what a file says after the writes so far. Each is read once: with two hundred pods reads are most of a cycle.
	now    map[string]content
	writes []Write
	skips  []Skip
}

// content is a file's text; there is false where there is no such file.
type content struct {
	text  string
	there bool
}

func (p *planner) current(g *Group, file string) (string, bool) {
	key := g.Path + "/" + file
	has, ok := p.now[key]
	if !ok {
		text, there := p.seen(g.Path, file)
		has = content{normal(file, text), there}
		p.now[key] = has
	}
	return has.text, has.there
}

func (p *planner) write(g *Group, v Value, text string) {
	old, _ := p.current(g, v.File)
	p.now[g.Path+"/"+v.File] = content{text, true}
	p.writes = append(p.writes, Write{Path: g.Path, File: v.File, Old: old, New: text, Why: v.Why, Container: g.Container})
}

// set reads a cpuset file; an empty one stands for everything.
func (p *planner) set(file, text string) (Set, bool) {
	s, err := ParseSet(text)
	if len(s) == 0 && err == nil {
		s = p.all
		if file == "cpuset.mems" {
			s = p.mems
		}
	}
	return s, err == nil
}

func isSet(file string) bool { return strings.HasPrefix(file, "cpuset.") }

func (p *planner) widen(g *Group, v Value) {
	old, ok := p.current(g, v.File)
	if !ok {
		p.skips = append(p.skips, Skip{g.Path, v.File})
		return
	}
	if !isSet(v.File) {
		if !byDevice(v.File) && size(v.File, v.Text) > size(v.File, old) {
			p.write(g, v, v.Text)
		}
		return
	}
	want, fine := p.set(v.File, v.Text)
	has, _ := p.set(v.File, old)
	if !fine || len(want) == 0 {
		return
	}
	if both := has.Union(want); !both.Equal(has) {
		p.write(g, v, both.String())
	}
}

func (p *planner) narrow(g *Group, v Value) {
	old, ok := p.current(g, v.File)
	if !ok {
		return
	}
	if !isSet(v.File) {
		if byDevice(v.File) {
			if !saysOfDevice(old, v.Text) {
				p.write(g, v, v.Text)
			}
			return
		}
		if size(v.File, v.Text) != size(v.File, old) {
			p.write(g, v, v.Text)
		}
		return
	}
	want, fine := p.set(v.File, v.Text)
	has, _ := p.set(v.File, old)
	if fine && len(want) > 0 && !want.Equal(has) {
		p.write(g, v, want.String())
	}
}

// byDevice reports whether a file has a line for each device, and every setting of the device in it.
func byDevice(file string) bool {
	return file == "io.max" || file == IOCostQoS || file == IOCostModel
}

// saysOfDevice reports whether a file by device says what a line asks for. Numbers are compared as such: the kernel answers 95 with 95.00.
func saysOfDevice(text, line string) bool {
	want := strings.Fields(line)
	for have := range strings.Lines(text) {
		f := strings.Fields(have)
		if len(f) == 0 || len(want) == 0 || f[0] != want[0] {
			continue
		}
		return !slices.ContainsFunc(want[1:], func(asked string) bool {
			return !slices.ContainsFunc(f[1:], func(has string) bool { return sameSetting(has, asked) })
		})
	}
	return false
}

// sameSetting compares two of the form key=value.
func sameSetting(a, b string) bool {
	if a == b {
		return true
	}
	key, x, _ := strings.Cut(a, "=")
	other, y, _ := strings.Cut(b, "=")
	m, errM := strconv.ParseFloat(x, 64)
	n, errN := strconv.ParseFloat(y, 64)
	return key == other && errM == nil && errN == nil && m == n
}

// normal is a file's text as a write would say it.
func normal(file, text string) string {
	text = strings.TrimSpace(text)
	if file == "io.weight" {
		text = strings.TrimPrefix(text, "default ")
		text, _, _ = strings.Cut(text, "\n")
	}
	return text
}

// size orders the values of a file: the larger leaves more room.
func size(file, text string) float64 {
	number := func(s string) float64 {
		if s == "max" {
			return math.Inf(1)
		}
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return -1
		}
		return x
	}
	switch file {
	case "cpu.idle": // 1 leaves less
		return -number(text)
	case "cpu.max":
		quota, period, ok := strings.Cut(text, " ")
		if !ok {
			period = strconv.Itoa(quotaPeriod)
		}
		return number(quota) / number(period)
	}
	return number(text)
}
