package place

// root is a PCIe root: what hangs on it, and what is free of that.
type root struct {
	gpus, nics         int64
	freeGPUs, freeNICs int64
	cell               int // the number of its cell
}

// rootHold is what a pod holds of a root, by the root's place on its machine.
type rootHold struct {
	at         int32
	gpus, nics int64
}

func (t *Table) rootsOf(n *node) []root {
	if n.roots == none {
		return nil
	}
	return t.roots[n.roots : n.roots+int32(len(n.kind.roots))]
}

// setRoots gives a machine the roots of its kind, all free.
func (t *Table) setRoots(n *node, roots []Root) {
	n.roots = none
	if len(roots) == 0 {
		return
	}
	if free := t.spareRoots[len(roots)]; len(free) > 0 {
		n.roots = free[len(free)-1]
		t.spareRoots[len(roots)] = free[:len(free)-1]
	} else {
		n.roots = int32(len(t.roots))
		t.roots = append(t.roots, make([]root, len(roots))...)
	}
	for i, r := range roots {
		t.roots[n.roots+int32(i)] = root{gpus: r.GPUs, nics: r.NICs, freeGPUs: r.GPUs, freeNICs: r.NICs, cell: r.Cell}
	}
}

func (t *Table) takeRoots(n *node, holds []rootHold, times int64) {
	roots := t.rootsOf(n)
	for _, h := range holds {
		roots[h.at].freeGPUs -= times * h.gpus
		roots[h.at].freeNICs -= times * h.nics
	}
}

// oneRoot finds the root with the fewest free GPUs that has what a pod asks for, on one of the cells if any are named.
func (t *Table) oneRoot(n *node, c *class, cells []cellHold) int {
	best := -1
	roots := t.rootsOf(n)
	for i := range roots {
		r := &roots[i]
		if r.freeGPUs < c.want[gpus] || r.freeNICs < c.nics || !t.onCells(r.cell, cells) {
			continue
		}
		if best < 0 || r.freeGPUs < roots[best].freeGPUs || r.freeGPUs == roots[best].freeGPUs && r.freeNICs < roots[best].freeNICs {
			best = i
		}
	}
	return best
}

func (t *Table) onCells(id int, cells []cellHold) bool {
	for _, h := range cells {
		if t.cells[h.cell].id == id {
			return true
		}
	}
	return len(cells) == 0
}

// chooseRoots says which roots a pod with GPUs holds on a machine whose roots are known: one that has all, else what is free on each in turn.
// A pod that asked for one root and finds none is on no root: it was put there by facts.
func (t *Table) chooseRoots(n *node, c *class, cells []cellHold) []rootHold {
	if n.roots == none || c.want[gpus] == 0 && c.nics == 0 {
		return nil
	}
	if i := t.oneRoot(n, c, cells); i >= 0 {
		return []rootHold{{at: int32(i), gpus: c.want[gpus], nics: c.nics}}
	}
	var out []rootHold
	rest := c.want[gpus]
	for i := range t.rootsOf(n) {
		if part := min(rest, max(t.rootsOf(n)[i].freeGPUs, 0)); part > 0 {
			out = append(out, rootHold{at: int32(i), gpus: part})
			rest -= part
		}
	}
	return out
}
