package quota

import (
	"github.com/springtide/springtide/fleet"
)

// flow is what passes the edges of the tree. For a node and all below it together,
//
//	net  = granted − surplus of their own
//	edge = net, or −min(−net, lending limit) where there is more surplus than grants
//
// where the nets of a node sum its own grants, less its own surplus, and the edges of its children. A grant is possible while no edge
// exceeds its borrowing limit and the top has no more out than in.
type flow struct {
	tr      *tree
	borrow  []fleet.Resources // the limits in force, bursts included
	net     []fleet.Resources
	surplus []fleet.Resources
	granted []fleet.Resources
}

// newFlow makes the room for what passes the edges of a tree.
func newFlow(tr *tree) *flow {
	n := len(tr.nodes)
	all := make([]fleet.Resources, 3*n)
	return &flow{tr: tr, net: all[:n:n], surplus: all[n : 2*n : 2*n], granted: all[2*n:]}
}

// begin begins anew, with what each tenant does not use of its own, and no grants.
func (f *flow) begin(used, borrow []fleet.Resources) {
	tr := f.tr
	f.borrow = borrow
	clear(f.net)
	clear(f.granted)
	for i := len(tr.nodes) - 1; i >= 0; i-- {
		f.surplus[i] = tr.nodes[i].own.Sub(used[i]).Floor()
		f.net[i] = f.net[i].Sub(f.surplus[i])
		if i > 0 {
			p := tr.nodes[i].parent
			f.net[p] = f.net[p].Add(f.edge(i))
		}
	}
}

// edge is what a node takes in over its edge, or lets out where negative.
func (f *flow) edge(i int) fleet.Resources {
	return f.net[i].Max(fleet.Resources{}.Sub(f.tr.nodes[i].lend))
}

// hidden is the surplus that the lending limit keeps below a node: what comes out of it does not show above.
func (f *flow) hidden(i int) fleet.Resources {
	return f.edge(i).Sub(f.net[i])
}

// room is how much more may be granted to a node.
func (f *flow) room(i int) fleet.Resources {
	if i == 0 {
		return fleet.Resources{}.Sub(f.net[0]).Floor()
	}
	up := f.borrow[i].Sub(f.edge(i)).Floor().Min(f.room(f.tr.nodes[i].parent))
	return f.hidden(i).Add(up)
}

// grant gives a node what it asks for as far as there is room, and returns it.
func (f *flow) grant(i int, ask fleet.Resources) fleet.Resources {
	got := ask.Min(f.room(i)).Floor()
	f.granted[i] = f.granted[i].Add(got)
	for more := got; !more.IsZero(); i = f.tr.nodes[i].parent {
		before := f.edge(i)
		f.net[i] = f.net[i].Add(more)
		more = f.edge(i).Sub(before)
		if i == 0 {
			break
		}
	}
	return got
}

// lent is what of each node's surplus others were granted. Where a grant could have come from several, each gave in proportion to what it
// had to give.
func (f *flow) lent() []fleet.Resources {
	out := make([]fleet.Resources, len(f.tr.nodes))
	asked := make([]fleet.Resources, len(f.tr.nodes)) // what leaves over the edge
	for i := range f.tr.nodes {
		// What the node's own surplus and its lending children must bring up: the node's grants, its borrowing children, what leaves, less
		// what comes in from above.
		need := f.granted[i].Add(asked[i]).Sub(f.net[i].Floor())
		have := f.surplus[i]
		for _, c := range f.tr.nodes[i].children {
			edge := f.edge(c)
			need = need.Add(edge.Floor())
			have = have.Add(fleet.Resources{}.Sub(edge).Floor())
		}
		need = need.Min(have).Floor()
		give := func(part fleet.Resources) fleet.Resources {
			gives := portion(part, need, have)
			have, need = have.Sub(part), need.Sub(gives)
			return gives
		}
		for _, c := range f.tr.nodes[i].children {
			asked[c] = give(fleet.Resources{}.Sub(f.edge(c)).Floor())
		}
		out[i] = give(f.surplus[i])
	}
	return out
}

// portion is what one of several gives of what is needed: its part of what all those have who were not asked yet, rounded down. The last
// one has all that is left and gives the rest.
func portion(part, need, have fleet.Resources) fleet.Resources {
	return fleet.Resources{CPU: share(part.CPU, need.CPU, have.CPU), Memory: share(part.Memory, need.Memory, have.Memory),
		GPU: share(part.GPU, need.GPU, have.GPU), Pods: share(part.Pods, need.Pods, have.Pods)}
}

func share[T ~int64](part, need, have T) T {
	if part <= 0 || have <= 0 {
		return 0
	}
	return scale(part, min(need, have), have)
}
