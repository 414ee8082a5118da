package place

// journal names the nodes that changed, in the order of their changes, so that code which derives something from nodes
// catches up with those that changed since it last looked. Its length is bounded: readers that come late start over.
type journal struct {
	base uint64 // the position of the first entry that is kept
	list []int32
	last []uint64 // by node, the position after its last change
}

// end is the position after the last change. Positions start at 1, so that 0 is behind every one.
func (j *journal) end() uint64 { return j.base + uint64(len(j.list)) + 1 }

func (j *journal) add(node int32) {
	for int(node) >= len(j.last) {
		j.last = append(j.last, 0)
	}
	if keep := max(2*len(j.last), 1<<12); len(j.list) >= 2*keep {
		j.base += uint64(keep)
		j.list = j.list[:copy(j.list, j.list[keep:])]
	}
	j.list = append(j.list, node)
	j.last[node] = j.end()
}

// since returns the nodes that changed from a position on, or false where that is not known, or not worth it: most nodes changed.
func (j *journal) since(position uint64) ([]int32, bool) {
	if position == 0 || position-1 < j.base || j.end()-position > uint64(len(j.last)) {
		return nil, false
	}
	return j.list[position-1-j.base:], true
}

// isLast reports whether an entry is the last one of its node: the earlier ones need not be looked at.
func (j *journal) isLast(position uint64, node int32) bool { return j.last[node] == position+1 }
