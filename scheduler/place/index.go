package place

// index is the trees of all domains: treaps over rows, ordered by the fullest machine first, each branch with the most room of any kind
// that one of its rows has.
type index struct {
	in          []bool
	room        []vec // of the row, as it was when it went in
	most        []vec // of the row and all below it
	left, right []int32
	weight      []uint64 // heap order
	domain      []int32  // whose tree the row is in
	rank        []int32  // by node: the order of names
}

func (x *index) rows() int32 { return int32(len(x.in)) }

// grow makes place for more rows.
func (x *index) grow(rows int) {
	more := rows - len(x.in)
	x.in, x.room, x.most = append(x.in, make([]bool, more)...), append(x.room, make([]vec, more)...), append(x.most, make([]vec, more)...)
	for i := rows - more; i < rows; i++ {
		x.left, x.right, x.domain, x.weight = append(x.left, none), append(x.right, none), append(x.domain, none), append(x.weight, hash(uint64(i)))
	}
}

// hash is the finaliser of splitmix64. It is a bijection, so no two rows have one weight, and the shape of a tree follows from its keys.
func hash(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// before is the order of packing: the fewest free GPUs, the least free CPU, the first machine.
func (x *index) before(a, b int32) bool {
	ra, rb := &x.room[a], &x.room[b]
	switch {
	case ra[gpus] != rb[gpus]:
		return ra[gpus] < rb[gpus]
	case ra[cpu] != rb[cpu]:
		return ra[cpu] < rb[cpu]
	}
	if a>>1 == b>>1 {
		return a < b
	}
	return x.rank[a>>1] < x.rank[b>>1]
}

// pull computes the most room of a branch again.
func (x *index) pull(r int32) {
	m := x.room[r]
	for _, below := range [2]int32{x.left[r], x.right[r]} {
		if below == none {
			continue
		}
		for i, v := range &x.most[below] {
			m[i] = max(m[i], v)
		}
	}
	x.most[r] = m
}

// insert puts a row into a tree and returns the new root.
func (x *index) insert(root, r int32, room vec) int32 {
	x.in[r], x.room[r] = true, room
	return x.sink(root, r)
}

func (x *index) sink(root, r int32) int32 {
	switch {
	case root == none:
		x.pull(r)
		return r
	case x.weight[r] > x.weight[root]:
		x.left[r], x.right[r] = x.split(root, r)
		x.pull(r)
		return r
	case x.before(r, root):
		x.left[root] = x.sink(x.left[root], r)
	default:
		x.right[root] = x.sink(x.right[root], r)
	}
	x.pull(root)
	return root
}

// split parts a tree into what comes before a row and what comes after it.
func (x *index) split(root, at int32) (before, after int32) {
	if root == none {
		return none, none
	}
	if x.before(root, at) {
		x.right[root], after = x.split(x.right[root], at)
		x.pull(root)
		return root, after
	}
	before, x.left[root] = x.split(x.left[root], at)
	x.pull(root)
	return before, root
}

// remove takes a row out of a tree and returns the new root. Afterwards it is as if the row had never been in.
func (x *index) remove(root, r int32) int32 {
	if root == r {
		root = x.merge(x.left[r], x.right[r])
		x.in[r], x.left[r], x.right[r], x.room[r], x.most[r] = false, none, none, vec{}, vec{}
		x.domain[r] = none
		return root
	}
	if x.before(r, root) {
		x.left[root] = x.remove(x.left[root], r)
	} else {
		x.right[root] = x.remove(x.right[root], r)
	}
	x.pull(root)
	return root
}

// merge joins two trees of which one is wholly before the other.
func (x *index) merge(before, after int32) int32 {
	switch {
	case before == none:
		return after
	case after == none:
		return before
	case x.weight[before] > x.weight[after]:
		x.right[before] = x.merge(x.right[before], after)
		x.pull(before)
		return before
	}
	x.left[after] = x.merge(before, x.left[after])
	x.pull(after)
	return after
}

// fullest finds the first row in the order of packing that has the room and is accepted; none if there is no such row.
func (x *index) fullest(root int32, want *vec, accept func(row int32) bool) int32 {
	if root == none || !x.most[root].fits(want) {
		return none
	}
	if r := x.fullest(x.left[root], want, accept); r != none {
		return r
	}
	if x.room[root].fits(want) && (accept == nil || accept(root)) {
		return root
	}
	return x.fullest(x.right[root], want, accept)
}
