package place

// zones is how the pods of a class's group are spread: one more pod counts against the zone with the fewest of all those that have a machine which
// the class may use, whether there is room or not.
type zones struct {
	counts []int32 // pods of the group, by zone
	least  int32
	skew   int32
	weight int64
}

func (t *Table) zonesOf(c *class) zones {
	z := zones{skew: c.shape.ZoneSkew}
	if c.group == none {
		z.skew = 0
		return z
	}
	z.counts = t.groupZones[c.group]
	if c.shape.Zones {
		z.weight = t.weights.of(c.side).Zones
	}
	z.least = -1
	usable := t.usableIn(c)
	for d, n := range z.counts {
		if d < len(usable) && usable[d] > 0 && (z.least < 0 || n < z.least) {
			z.least = n
		}
	}
	return z
}

// usableIn counts the machines that a class may use, by zone.
func (t *Table) usableIn(c *class) []int32 {
	if c.pinned == nil {
		return t.settleProfile(c.profile).inZone
	}
	out := make([]int32, len(t.zones))
	for _, name := range c.pinned {
		if i, ok := t.byName[name]; ok && t.fixed(c, 2*i+int32(c.side)) == FilterNone {
			out[t.nodes[i].zoneAt]++
		}
	}
	return out
}

// score is the term of a zone.
func (z *zones) score(d int32) int64 {
	if z.weight == 0 {
		return 0
	}
	return z.weight * (whole - whole/10*int64(min(max(z.counts[d]-z.least, 0), 10)))
}

// allow reports whether one more pod of the group may land in a zone.
func (z *zones) allow(d int32) bool { return z.skew <= 0 || z.counts[d]+1-z.least <= z.skew }
