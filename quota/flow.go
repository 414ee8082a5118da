package quota

import ()

// flow is what passes the edges of the tree. For a node and all below it together,
//
//	net  = granted − surplus of their own
//	edge = net, or −min(−net, lending limit) where there is more surplus than grants
//
// where the nets of a node sum its own grants, less its own surplus, and the edges of its children. A grant is possible while no edge
// exceeds its borrowing limit and the top has no more out than in.
type flow struct {
	tr      *tree
	borrow  []amount // the limits in force, bursts included
	net     []amount
	surplus []amount
	granted []amount
}

// newFlow makes the room for what passes the edges of a tree.
func newFlow(tr *tree) *flow {
	n := len(tr.nodes)
	all := make([]amount, 3*n)
	return &flow{tr: tr, net: all[:n:n], surplus: all[n : 2*n : 2*n], granted: all[2*n:]}
}

// begin begins again, with what each tenant does not use of its own, and no grants.
func (f *flow) begin(used, borrow []amount) {
	tr := f.tr
	f.borrow = borrow
	clear(f.net)
	clear(f.granted)
	for i := len(tr.nodes) - 1; i >= 0; i-- {
		f.surplus[i] = tr.nodes[i].own.sub(used[i]).floor()
		f.net[i] = f.net[i].sub(f.surplus[i])
		if i > 0 {
			p := tr.nodes[i].parent
			f.net[p] = f.net[p].add(f.edge(i))
		}
	}
}

// edge is what a node takes in over its edge, or lets out where negative.
func (f *flow) edge(i int) amount {
	return f.net[i].max(amount{}.sub(f.tr.nodes[i].lend))
}

// hidden is the surplus that the lending limit keeps below a node: what comes out of it does not show above.
func (f *flow) hidden(i int) amount {
	return f.edge(i).sub(f.net[i])
}

// room is how much more may be granted to a node.
func (f *flow) room(i int) amount {
	if i == 0 {
		return amount{}.sub(f.net[0]).floor()
	}
	up := f.borrow[i].sub(f.edge(i)).floor().min(f.room(f.tr.nodes[i].parent))
	return f.hidden(i).add(up)
}

// grant gives a node what it asks for as far as there is room, and returns it.
func (f *flow) grant(i int, ask amount) amount {
	got := ask.min(f.room(i)).floor()
	f.granted[i] = f.granted[i].add(got)
	for more := got; !more.isZero(); i = f.tr.nodes[i].parent {
		before := f.edge(i)
		f.net[i] = f.net[i].add(more)
		more = f.edge(i).sub(before)
		if i == 0 {
			break
		}
	}
	return got
}

// lent is what of each node's surplus others were granted. Where a grant could have come from several, each gave in proportion to what it
// had to give.
func (f *flow) lent() []amount {
	out := make([]amount, len(f.tr.nodes))
	asked := make([]amount, len(f.tr.nodes)) // what leaves over the edge
	for i := range f.tr.nodes {
		// The amount that the node's own surplus and its lending children must bring up: the node's grants, its
		// borrowing children, what leaves, less what comes in from above.
		need := f.granted[i].add(asked[i]).sub(f.net[i].floor())
		have := f.surplus[i]
		for _, c := range f.tr.nodes[i].children {
			edge := f.edge(c)
			need = need.add(edge.floor())
			have = have.add(amount{}.sub(edge).floor())
		}
		need = need.min(have).floor()
		give := func(part amount) amount {
			gives := portion(part, need, have)
			have, need = have.sub(part), need.sub(gives)
			return gives
		}
		for _, c := range f.tr.nodes[i].children {
			asked[c] = give(amount{}.sub(f.edge(c)).floor())
		}
		out[i] = give(f.surplus[i])
	}
	return out
}

// portion is what one of several gives of what is needed: its part of what all those have who were not asked yet, rounded down. The last
// one has all that is left and gives the rest.
func portion(part, need, have amount) amount {
	return amount{cpu: share(part.cpu, need.cpu, have.cpu), memory: share(part.memory, need.memory, have.memory),
		gpu: share(part.gpu, need.gpu, have.gpu), parcels: share(part.parcels, need.parcels, have.parcels)}
}

func share[T ~int64](part, need, have T) T {
	if part <= 0 || have <= 0 {
		return 0
	}
	return scale(part, min(need, have), have)
}
