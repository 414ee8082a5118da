package check

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// Options bound a search.
type Options struct {
	// Shape is what the two parcels are.
	Shape Shape
	// Faults and Turns are how many faults, and turns of the tide, a run may have.
	Faults, Turns int
	// Pauses is how often a controller may stop within a cycle while everything else goes on; elsewhere a cycle is one transition.
	Pauses int
	// Freezes is how often all may be frozen.
	Freezes int
	// Borrow makes the machines those of the offline pool, which online borrows.
	Borrow bool
	// Gang makes the two jobs one of two members that work together or not at all.
	Gang bool
	// NoAgents takes the agents away: the controllers decide Clean. Sockets need an agent, so nothing but machines is lent.
	NoAgents bool
	// Bundled lets the bundled scheduler alone bind, without agents: a hand-over waits for its acknowledgement, and for no margin.
	Bundled bool
	// Skew makes the clock of the second controller run ahead by a step.
	Skew bool
	// Only are the kinds of faults that happen; none are all of them.
	Only []kind
	// Most ends a search that grew beyond it; 0 means no end.
	Most int
	// Mutant takes one guard away.
	Mutant Mutant
}

// String names the bounds.
func (o Options) String() string {
	s := fmt.Sprintf("%s,faults=%d,pauses=%d,turns=%d", o.Shape, o.Faults, o.Pauses, o.Turns)
	if o.Freezes > 0 {
		s += fmt.Sprintf(",freezes=%d", o.Freezes)
	}
	for _, x := range []struct {
		on   bool
		name string
	}{{o.Borrow, "borrow"}, {o.Gang, "gang"}, {o.Skew, "skew"}, {o.NoAgents, "noagents"}, {o.Bundled, "bundled"}} {
		if x.on {
			s += "," + x.name
		}
	}
	for _, k := range o.Only {
		s += "," + k.String()
	}
	return s
}

// Mutant is the code under check with one guard taken away at a seam: what it is given, what it decides, or what the API refuses.
type Mutant struct {
	// Input and Door alter the facts that plans are made from and checked against, Plan alters what was decided, Passes lets an action
	// through that the door refused. Write alters a write of the protocol, Script the order of all writes of a plan.
	Input  func(*planner.Input)
	Plan   func(*planner.Plan, *fleet.Snapshot)
	Door   func(*fleet.Snapshot)
	Passes func(planner.Action) bool
	Write  func(*protocol.Write)
	Script func([]act) []act
	// AnyLeader lets the API take writes of any leader, Overlap a cell in two parcels.
	AnyLeader, Overlap bool
	// Blind lets the node side say Clean whatever the node's marks are, Prompt while a scheduler that saw older ones still binds.
	Blind, Prompt bool
	// StaleList lets a controller decide Clean by the pods that its watches show, StaleMarks by the marks.
	StaleList, StaleMarks bool
	// Unasked lets a controller wait for no acknowledgement, Hasty lets the bundled scheduler give it while a binding of before has no answer, and Eager
	// counts a dead instance as over while its last request is under way.
	Unasked, Hasty, Eager bool
	// Namesake lets the bundled scheduler count a share for another node of the name.
	Namesake bool
	// Unread lets marks be written whatever a read of the share shows.
	Unread bool
	// Heedless lets a leader not ask whether another one saw a freeze.
	Heedless bool
}

// Result is what a search found.
type Result struct {
	States, Transitions, Depth int
	Took                       time.Duration
	// Complete says that everything within the bounds was visited.
	Complete bool
	// Broken is the property that does not hold, Trace the shortest way there.
	Broken string
	Trace  []string
}

// Line is the result in one line; it says where a search was cut off before it had seen all.
func (r *Result) Line() string {
	line := fmt.Sprintf("%d states, %d transitions, depth %d, %.1f s", r.States, r.Transitions, r.Depth, r.Took.Seconds())
	if !r.Complete && r.Broken == "" {
		line += ", cut off"
	}
	return line
}

// search is a breadth-first search, so that the first state that breaks a property is one of the nearest.
type search struct {
	x      *model
	seed   maphash.Seed
	table  []int32 // hash table of one more than the number of a state, with open addressing
	states []state
	parent []int32
	by     []step
	// sure are the transitions that happen again and again where they can: those of state i begin at from[i].
	sure []int32
	from []int
}

func newSearch(o Options) *search {
	return &search{x: newModel(o), seed: maphash.MakeSeed(), table: make([]int32, 1<<12)}
}

// find is the number of a state, and whether it had one.
func (g *search) find(s *state) (int32, bool) {
	if 2*len(g.states) >= len(g.table) {
		g.table = make([]int32, 2*len(g.table))
		for i := range g.states {
			_, free := g.look(&g.states[i])
			g.table[free] = int32(i) + 1
		}
	}
	at, free := g.look(s)
	if at >= 0 {
		return at, true
	}
	g.states = append(g.states, *s)
	g.table[free] = int32(len(g.states))
	return int32(len(g.states)) - 1, false
}

// look finds a state in the table, or the place where it belongs.
func (g *search) look(s *state) (at int32, free int) {
	mask := len(g.table) - 1
	for i := int(maphash.Comparable(g.seed, *s)) & mask; ; i = (i + 1) & mask {
		switch at := g.table[i] - 1; {
		case at < 0:
			return -1, i
		case g.states[at] == *s:
			return at, i
		}
	}
}

func first(o Options) state {
	var s state
	s.faults, s.pauses, s.turns, s.freezes = int8(o.Faults), int8(o.Pauses), int8(o.Turns), int8(o.Freezes)
	for i := range int8(o.Shape.machines()) {
		s.f.m[i] = o.machine(i*uidsPerMachine + 1)
	}
	s.f.ver = 1
	s.f.spent, s.f.taken = budget, budget // the ledger's minute is spent already
	s.c[0] = controller{mode: leading, leader: 1, watched: true}
	return s
}

// Run searches everything that may happen within the bounds.
func Run(o Options) Result {
	begun := time.Now()
	g := newSearch(o)
	r := g.run(o)
	r.States, r.Took = len(g.states), time.Since(begun)
	return r
}

func (g *search) run(o Options) (r Result) {
	s := first(o)
	if o.Bundled {
		s.i = g.x.reads(&s.f)
	}
	g.x.settle(&s)
	g.find(&s)
	g.parent, g.by = append(g.parent, -1), append(g.by, step{})
	depth := []int32{0}
	for at := int32(0); at < int32(len(g.states)); at++ {
		if o.Most > 0 && len(g.states) > o.Most {
			return r
		}
		from := g.states[at]
		g.from = append(g.from, len(g.sure))
		ok := g.x.next(&from, func(st step, n *state) bool {
			r.Transitions++
			broken := g.x.broken
			to, known := g.find(n)
			if !known {
				g.parent, g.by = append(g.parent, at), append(g.by, st)
				depth = append(depth, depth[at]+1)
				r.Depth = max(r.Depth, int(depth[at])+1)
			}
			if broken != "" {
				r.Broken, r.Trace = broken, append(g.trace(at), g.x.describe(&from, st))
				return false
			}
			if st.kind.sure() {
				g.sure = append(g.sure, to)
			}
			return true
		})
		if !ok {
			return r
		}
	}
	r.Complete = true
	g.from = append(g.from, len(g.sure))
	if at, why := g.stuck(); why != "" {
		r.Broken, r.Trace = "no progress: "+why, g.trace(at)
	}
	return r
}

// trace is the way to a state, in words.
func (g *search) trace(at int32) []string {
	var out []string
	for ; g.parent[at] >= 0; at = g.parent[at] {
		out = append([]string{g.x.describe(&g.states[g.parent[at]], g.by[at])}, out...)
	}
	return out
}

// Explain is a trace as text.
func (r *Result) Explain() string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Broken)
	for i, t := range r.Trace {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, t)
	}
	return b.String()
}

// stuck looks for a way to go on for ever without progress. Everything sure happens again and again where it can, so whatever goes on for
// ever ends in a component of the sure transitions that none of them leaves, and is in each of its states again and again: there nothing
// may be unsettled. It returns the nearest such state.
func (g *search) stuck() (int32, string) {
	component, leaves := g.components()
	for at := range g.states {
		if leaves[component[at]] {
			continue
		}
		if why := g.x.unsettled(&g.states[at].f); why != "" {
			return int32(at), why
		}
	}
	return 0, ""
}

// components are the strongly connected components of the sure transitions (Tarjan), and which of them can be left.
func (g *search) components() (component []int32, leaves []bool) {
	n := len(g.states)
	component = make([]int32, n)
	order, low := make([]int32, n), make([]int32, n)
	for i := range component {
		component[i] = -1
	}
	type frame struct{ at, edge int32 }
	var stack []int32
	var calls []frame
	var count, found int32
	for root := range int32(n) {
		if order[root] != 0 {
			continue
		}
		calls = append(calls, frame{root, 0})
		for len(calls) > 0 {
			c := &calls[len(calls)-1]
			at := c.at
			if c.edge == 0 && order[at] == 0 {
				count++
				order[at], low[at] = count, count
				stack = append(stack, at)
			}
			if out := g.out(at); int(c.edge) < len(out) {
				to := out[c.edge]
				c.edge++
				if order[to] == 0 {
					calls = append(calls, frame{to, 0})
				} else if component[to] < 0 {
					low[at] = min(low[at], order[to])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				up := calls[len(calls)-1].at
				low[up] = min(low[up], low[at])
			}
			if low[at] != order[at] {
				continue
			}
			for {
				top := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				component[top] = found
				if top == at {
					break
				}
			}
			found++
		}
	}
	leaves = make([]bool, found)
	for at := range int32(n) {
		for _, to := range g.out(at) {
			if component[to] != component[at] {
				leaves[component[at]] = true
			}
		}
	}
	return component, leaves
}

// out are the states that surely come after one again and again.
func (g *search) out(at int32) []int32 { return g.sure[g.from[at]:g.from[at+1]] }
