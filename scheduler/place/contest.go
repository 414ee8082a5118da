package place

// contest draws the nodes of tournaments one by one, best first: a heap of games whose winners were not drawn yet. Drawing a winner replaces its
// game with those that it won on its way up, so each draw costs the height of a tree.
type contest []entry

// entry is a game of a tournament.
type entry struct {
	v      *view
	domain int
	at     int
	more   int64 // is added to the scores of the domain
}

func (e *entry) node() int32 { return e.v.domains[e.domain].tree[e.at] }

func (q contest) before(t *Table, a, b int) bool {
	x, y := q[a].node(), q[b].node()
	if sx, sy := int64(q[a].v.score[x])+q[a].more, int64(q[b].v.score[y])+q[b].more; sx != sy {
		return sx > sy
	}
	return t.rank[x] < t.rank[y]
}

func (q *contest) add(t *Table, e entry) {
	if e.node() == none {
		return
	}
	*q = append(*q, e)
	h := *q
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(t, i, up) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// next draws the best node.
func (q *contest) next(t *Table) (entry, bool) {
	if len(*q) == 0 {
		return entry{}, false
	}
	h := *q
	won := h[0]
	h[0] = h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	for i := 0; ; {
		best := i
		for _, below := range [2]int{2*i + 1, 2*i + 2} {
			if below < len(h) && h.before(t, below, best) {
				best = below
			}
		}
		if best == i {
			break
		}
		h[i], h[best] = h[best], h[i]
		i = best
	}
	g := &won.v.domains[won.domain]
	for i := won.at; i < g.size; {
		winner, other := 2*i, 2*i+1
		if g.tree[winner] != won.node() {
			winner, other = other, winner
		}
		q.add(t, entry{v: won.v, domain: won.domain, at: other, more: won.more})
		i = winner
	}
	return won, true
}
