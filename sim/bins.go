package sim

// bins keep machines by their free cores, so that the fullest machine with room for a pod is found at once. The order within a bin is that
// of the last change, so it hangs on what happened alone.
type bins struct {
	head       []int32 // first machine with so many free cores, -1 for none
	next, prev []int32
	where      []int32 // the bin of a machine, -1 while it is in none
}

func newBins(machines, cores int) *bins {
	b := &bins{head: make([]int32, cores+1), next: make([]int32, machines), prev: make([]int32, machines), where: make([]int32, machines)}
	for i := range b.head {
		b.head[i] = -1
	}
	for i := range b.where {
		b.where[i] = -1
	}
	return b
}

// put moves a machine to the bin of its free cores; out takes it out of all.
func (b *bins) put(n, free int32) {
	b.out(n)
	if free < 0 {
		return
	}
	b.where[n], b.prev[n], b.next[n] = free, -1, b.head[free]
	if h := b.head[free]; h >= 0 {
		b.prev[h] = n
	}
	b.head[free] = n
}

func (b *bins) out(n int32) {
	at := b.where[n]
	if at < 0 {
		return
	}
	if p := b.prev[n]; p >= 0 {
		b.next[p] = b.next[n]
	} else {
		b.head[at] = b.next[n]
	}
	if x := b.next[n]; x >= 0 {
		b.prev[x] = b.prev[n]
	}
	b.where[n] = -1
}

// fit is the fullest machine with room for so many cores, or -1.
func (b *bins) fit(cores int32) int32 {
	for f := int(cores); f < len(b.head); f++ {
		if b.head[f] >= 0 {
			return b.head[f]
		}
	}
	return -1
}
