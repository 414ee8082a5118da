package host

// tally counts the pods of owners and pools: a disruption ledger bounds what is taken by shares of them. It is made when the first pods are to be taken, and
// follows each pod from then on. When the names of owners or pools change it is made again at the next question.
type tally struct {
	valid         bool
	owners, pools map[string]int
}

// of is how many bound pods an owner has, and how many pods are on the nodes of a pool.
func (t *tally) of(c *core, owner, pool string) (ofOwner, ofPool int) {
	if !t.valid {
		*t = tally{valid: true, owners: map[string]int{}, pools: map[string]int{}}
		for _, p := range c.byRef {
			t.enter(c, p)
			if p.stage == bound {
				t.own(c, p)
			}
		}
	}
	return t.owners[owner], t.pools[pool]
}

// enter counts a pod that holds room on a node.
func (t *tally) enter(c *core, p *pod) {
	if t.valid {
		p.counted.pool = c.poolOf(p.node)
		t.pools[p.counted.pool]++
	}
}

// own counts a pod that is bound.
func (t *tally) own(c *core, p *pod) {
	if t.valid {
		p.counted.owner = c.ownerOf(p.object)
		t.owners[p.counted.owner]++
	}
}

// leave ends what a pod counts for.
func (t *tally) leave(p *pod) {
	if t.valid {
		t.pools[p.counted.pool]--
		if p.stage == bound {
			if t.owners[p.counted.owner]--; t.owners[p.counted.owner] == 0 {
				delete(t.owners, p.counted.owner)
			}
		}
	}
}
