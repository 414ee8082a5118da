package place

// zoneKey is the label key under which the zone of a machine is a spread domain.
const zoneKey = "topology.kubernetes.io/zone"

// column is the domain of each machine by one label key.
type column struct {
	key    string
	at     uint64 // the position in the journal of machines that it is in line with
	values []string
	number map[string]int32
	of     []int32 // by node; none where the label is missing
}

// column interns a label key.
func (t *Table) column(key string) *column {
	c := t.columns[key]
	if c == nil {
		c = &column{key: key, number: map[string]int32{}}
		t.columns[key] = c
	}
	return c
}

func (t *Table) settleColumn(c *column) {
	nodes, ok := t.relabels.since(c.at)
	if !ok {
		c.of = make([]int32, len(t.nodes))
		for i := range t.nodes {
			c.of[i] = t.domainIn(c, &t.nodes[i])
		}
	} else {
		for len(c.of) < len(t.nodes) {
			c.of = append(c.of, none)
		}
		for _, i := range nodes {
			c.of[i] = t.domainIn(c, &t.nodes[i])
		}
	}
	if c.key == zoneKey {
		c.values = t.zones
	}
	c.at = t.relabels.end()
}

func (t *Table) domainIn(c *column, n *node) int32 {
	if !n.known {
		return none
	}
	if c.key == zoneKey {
		return n.zoneAt // values follow when the column is settled
	}
	value, ok := n.labels.Get(c.key)
	if !ok {
		return none
	}
	d, seen := c.number[value]
	if !seen {
		d = int32(len(c.values))
		c.number[value] = d
		c.values = append(c.values, value)
	}
	return d
}
