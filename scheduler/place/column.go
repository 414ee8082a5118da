package place

import (
	"slices"
	"strings"
)

// zoneKey is the label key under which the zone of a machine is a spread domain.
const zoneKey = "topology.kubernetes.io/zone"

// column is the domain of each machine by one label key.
type column struct {
	key    string
	keys   []string // of which key is made
	at     uint64   // the position in the journal of machines that it is in line with
	values []string
	number map[string]int32
	of     []int32 // by node; none where the label is missing
	// label: the domain is what the label says, and no zone or GPU model that is known otherwise.
	label bool
	// machines is how many are in each domain, shared how many domains have several, and labelled how many machines are in one; of a label alone.
	machines         []int32
	shared, labelled int32
}

// labelColumn interns a label.
func (t *Table) labelColumn(key string) *column {
	c := t.column(labelOf + key)
	c.label, c.keys[0] = true, key
	return c
}

// labelOf stands before a label that is taken as it is.
const labelOf = "\x00label:"

// column interns a label key.
func (t *Table) column(key string) *column {
	c := t.columns[key]
	if c == nil {
		c = &column{key: key, keys: strings.Split(key, keySeparator), number: map[string]int32{}}
		t.columns[key] = c
	}
	return c
}

func (t *Table) settleColumn(c *column) {
	if c.at == t.relabels.end() {
		return
	}
	nodes, ok := t.relabels.since(c.at)
	if !ok {
		c.of, c.shared, c.labelled = slices.Repeat([]int32{none}, len(t.nodes)), 0, 0
		clear(c.machines)
		for i := range t.nodes {
			c.set(int32(i), t.domainIn(c, &t.nodes[i]))
		}
	} else {
		for len(c.of) < len(t.nodes) {
			c.of = append(c.of, none)
		}
		for _, i := range nodes {
			c.set(i, t.domainIn(c, &t.nodes[i]))
		}
	}
	if c.key == zoneKey {
		c.values = t.zones
	}
	c.at = t.relabels.end()
}

// set puts a machine into a domain, and counts it there where that is asked for.
func (c *column) set(i, d int32) {
	was := c.of[i]
	c.of[i] = d
	if !c.label || was == d {
		return
	}
	c.machines = append(c.machines, make([]int32, len(c.values)-len(c.machines))...)
	if was != none {
		c.labelled--
		if c.machines[was]--; c.machines[was] == 1 {
			c.shared--
		}
	}
	if d != none {
		c.labelled++
		if c.machines[d]++; c.machines[d] == 2 {
			c.shared++
		}
	}
}

func (t *Table) domainIn(c *column, n *node) int32 {
	if !n.known {
		return none
	}
	if c.key == zoneKey {
		return n.zoneAt // values follow when the column is settled
	}
	var value string
	var ok bool
	if c.label {
		value, ok = n.labels.Get(c.keys[0])
	} else {
		value, ok = n.valueOf(c.keys)
	}
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

// keySeparator stands between the keys, and between the values, of domains by several keys. No label holds it.
const keySeparator = "\x1f"

func joinKeys(keys []string) string { return strings.Join(keys, keySeparator) }

// firstOf is the value of the first of the keys.
func firstOf(value string) string {
	first, _, _ := strings.Cut(value, keySeparator)
	return first
}

// valueOf joins a machine's values of some keys; false where one is missing.
func (n *node) valueOf(keys []string) (string, bool) {
	values := make([]string, 0, 4)
	for _, k := range keys {
		v, ok := n.labels.Get(k)
		switch k {
		case zoneKey:
			v, ok = n.zone, n.zone != ""
		case GPUModelKey:
			v, ok = n.kind.GPUModel, n.kind.GPUModel != ""
		}
		if !ok {
			return "", false
		}
		values = append(values, v)
	}
	if len(values) == 1 {
		return values[0], true
	}
	return strings.Join(values, keySeparator), true
}
