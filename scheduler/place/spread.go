package place

import (
	"math"
	"slices"

	"github.com/springtide/springtide/scheduler/rules"
)

// Spread is one constraint by which pods stand apart, as a topologySpreadConstraint of Kubernetes has it: the pods of a set are counted in each domain of a
// label, over the machines that count.
type Spread struct {
	// Set names the pods that are counted: those whose Needs.Sets name it. Empty for a set that has none. Self says that the pod itself is to be counted.
	Set  string
	Self bool
	// Key is the label whose values are the domains.
	Key string
	// MaxSkew is by how much a domain with the pod may exceed the one with the fewest; where there are less domains than MinDomains, the fewest are 0.
	MaxSkew, MinDomains int32
	// Soft: the constraint refuses no machine, and is a term of the score.
	Soft bool
	// Nodes are the machines that count; nil for all. Taints: machines with taints that the pod does not tolerate do not count.
	Nodes  *rules.Selector
	Taints bool
}

// hostKey is the label by which each machine is a domain of its own in the score.
const hostKey = "kubernetes.io/hostname"

// limit is a constraint as a class has it.
type limit struct {
	*Spread
	counter int32
	col     *column
}

// span is which machines count for some constraints, and in which domain.
type span struct {
	col         *column
	all         []*column // a machine without one of these labels does not count
	nodes       *rules.Selector
	taints      bool
	tolerations []rules.Toleration
	at          uint64  // the position in the journal of machines that it is in line with
	of          []int32 // by node, its domain; none where it does not count
	size        []int32 // machines that count, by domain
	present     int32   // domains that have some
	counters    []int32
}

type spanKey struct{ key, all, nodes, tolerations string }

// counter counts the pods of a set in the domains of a span. It follows each pod at once, and machines when it is next asked.
type counter struct {
	set, span int32
	counts    []int32 // by domain
	having    []int32 // how many domains that are present have a count
	least     int32   // of those
	version   uint64
}

type counterKey struct{ set, span int32 }

// podSet is the pods of a set.
type podSet struct {
	on       map[int32]int32 // by node
	counters []int32
}

// limitsOf interns the constraints of a class, those that refuse machines first.
func (t *Table) limitsOf(n *Needs) []limit {
	var out []limit
	for _, soft := range [...]bool{false, true} {
		var all []*column
		var keys []string
		for i := range n.Spread {
			if s := &n.Spread[i]; s.Soft == soft && !slices.Contains(keys, s.Key) {
				keys = append(keys, s.Key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			all = append(all, t.labelColumn(key))
		}
		for i := range n.Spread {
			if s := &n.Spread[i]; s.Soft == soft {
				out = append(out, limit{s, t.counter(s, n.Tolerations, joinKeys(keys), all), t.labelColumn(s.Key)})
			}
		}
	}
	return out
}

// counter finds the count of a constraint.
func (t *Table) counter(s *Spread, tolerations []rules.Toleration, keys string, all []*column) int32 {
	k := spanKey{key: s.Key, all: keys}
	x := span{col: t.labelColumn(s.Key), all: all}
	if s.Nodes != nil && !s.Nodes.Empty() {
		x.nodes, k.nodes = s.Nodes, string(appendSelector(nil, s.Nodes))
	}
	if s.Taints {
		x.taints, x.tolerations, k.tolerations = true, tolerations, string(appendTolerations([]byte{1}, tolerations))
	}
	at, ok := t.spanAt[k]
	if !ok {
		at = int32(len(t.spans))
		t.spans, t.spanAt[k] = append(t.spans, x), at
	}
	set := int32(none)
	if s.Set != "" {
		set = t.setNumber(s.Set)
	}
	id, ok := t.counterAt[counterKey{set, at}]
	if !ok {
		id = int32(len(t.counters))
		t.counters, t.counterAt[counterKey{set, at}] = append(t.counters, counter{set: set, span: at}), id
		t.spans[at].counters = append(t.spans[at].counters, id)
		if set != none {
			t.sets[set].counters = append(t.sets[set].counters, id)
		}
		t.recount(id)
	}
	return id
}

// setNumber interns the name of a set.
func (t *Table) setNumber(name string) int32 {
	id, fresh := intern(t.setOf, name)
	if fresh {
		t.sets = append(t.sets, podSet{on: map[int32]int32{}})
	}
	return id
}

// countSets counts a pod in its sets, or takes it out. As upstream has it, neither a pod that leaves counts nor one that is not there yet.
func (t *Table) countSets(p *pod, times int32) {
	if p.role != stays {
		return
	}
	i := p.row >> 1
	for _, id := range t.classes[p.class].sets {
		s := &t.sets[id]
		if s.on[i] += times; s.on[i] == 0 {
			delete(s.on, i)
		}
		for _, k := range s.counters {
			t.counters[k].add(&t.spans[t.counters[k].span], i, times)
		}
	}
}

// onNode counts the pods of a counter's set on a machine.
func (t *Table) onNode(k *counter, i int32) int32 {
	if k.set == none {
		return 0
	}
	return t.sets[k.set].on[i]
}

func (k *counter) add(s *span, i, times int32) {
	if int(i) >= len(s.of) || s.of[i] == none {
		return
	}
	d := s.of[i]
	from, to := k.counts[d], k.counts[d]+times
	k.counts[d] = to
	k.version++
	k.have(from, -1)
	k.have(to, 1)
	if k.least = min(k.least, to); k.having[k.least] == 0 {
		k.settle()
	}
}

// have counts domains that have a count.
func (k *counter) have(count, times int32) {
	for int(count) >= len(k.having) {
		k.having = append(k.having, 0)
	}
	k.having[count] += times
}

// settle finds the fewest again.
func (k *counter) settle() {
	k.least = 0
	for n := range k.having {
		if k.having[n] > 0 {
			k.least = int32(n)
			return
		}
	}
}

// recount counts all again.
func (t *Table) recount(id int32) {
	k := &t.counters[id]
	s := &t.spans[k.span]
	k.counts, k.having = make([]int32, len(s.size)), k.having[:0]
	if k.set != none {
		for i, n := range t.sets[k.set].on {
			if int(i) < len(s.of) && s.of[i] != none {
				k.counts[s.of[i]] += n
			}
		}
	}
	for d, n := range s.size {
		if n > 0 {
			k.have(k.counts[d], 1)
		}
	}
	k.settle()
	k.version++
}

// settleSpread brings what the constraints of a class count in line with the machines.
func (t *Table) settleSpread(c *class) {
	for i := range c.limits {
		t.settleColumn(c.limits[i].col)
		t.settleSpan(t.counters[c.limits[i].counter].span)
	}
}

func (t *Table) settleSpan(id int32) {
	s := &t.spans[id]
	if s.at == t.relabels.end() {
		return
	}
	for _, c := range s.all {
		t.settleColumn(c)
	}
	s.size = append(s.size, make([]int32, len(s.col.values)-len(s.size))...)
	nodes, ok := t.relabels.since(s.at)
	if !ok {
		s.of, s.present = slices.Repeat([]int32{none}, len(t.nodes)), 0
		clear(s.size)
		for i := range t.nodes {
			t.spanNode(s, int32(i))
		}
		for _, k := range s.counters {
			t.recount(k)
		}
	} else {
		for len(s.of) < len(t.nodes) {
			s.of = append(s.of, none)
		}
		for _, id := range s.counters {
			k := &t.counters[id]
			k.counts = append(k.counts, make([]int32, len(s.size)-len(k.counts))...)
		}
		for k, i := range nodes {
			if t.relabels.isLast(s.at+uint64(k), i) {
				t.moveNode(s, i)
			}
		}
	}
	s.at = t.relabels.end()
}

// spanNode counts a machine where it counts, and returns where it did before.
func (t *Table) spanNode(s *span, i int32) (was int32) {
	was, s.of[i] = s.of[i], t.inSpan(s, i)
	if was == s.of[i] {
		return was
	}
	if was != none {
		if s.size[was]--; s.size[was] == 0 {
			s.present--
		}
	}
	if d := s.of[i]; d != none {
		if s.size[d]++; s.size[d] == 1 {
			s.present++
		}
	}
	return was
}

// moveNode does so for a machine that has changed, and its pods go with it.
func (t *Table) moveNode(s *span, i int32) {
	was, is := s.of[i], t.inSpan(s, i)
	if was == is {
		return
	}
	two := [2]int32{was, is}
	each := func(times int32) {
		for _, id := range s.counters {
			for _, d := range two {
				if k := &t.counters[id]; d != none && s.size[d] > 0 {
					k.have(k.counts[d], times)
				}
			}
		}
	}
	each(-1)
	t.spanNode(s, i)
	for _, id := range s.counters {
		k := &t.counters[id]
		n := t.onNode(k, i)
		if was != none {
			k.counts[was] -= n
		}
		if is != none {
			k.counts[is] += n
		}
		k.version++
	}
	each(1)
	for _, id := range s.counters {
		t.counters[id].settle()
	}
}

// inSpan is the domain in which a machine counts, or none.
func (t *Table) inSpan(s *span, i int32) int32 {
	n := &t.nodes[i]
	for _, c := range s.all {
		if c.of[i] == none {
			return none
		}
	}
	if s.nodes != nil && !s.nodes.Matches(n.name, n.labels) || s.taints && !rules.Admits(s.tolerations, n.taints, false) {
		return none
	}
	return s.col.of[i]
}

// count is how many pods of its set a counter has in a domain.
func (k *counter) count(d int32) int32 { return k.counts[d] }

// least is how many pods the domain with the fewest has for a constraint.
func (t *Table) least(l *limit) int32 {
	k := &t.counters[l.counter]
	if t.spans[k.span].present < max(l.MinDomains, 1) {
		return 0
	}
	return k.least
}

// keeps reports whether a domain that has a number of pods keeps to the skew with one more.
func (t *Table) keeps(l *limit, count int32) bool {
	if l.Self {
		count++
	}
	return count-t.least(l) <= l.MaxSkew
}

// spreads reports whether the constraints of a class let a pod onto a machine.
func (t *Table) spreads(c *class, i int32) bool {
	if len(c.limits) == 0 {
		return true
	}
	t.settleSpread(c)
	return t.spreadsNow(c, i)
}

// spreadsNow is spreads where all is in line with the machines.
func (t *Table) spreadsNow(c *class, i int32) bool {
	for k := range c.limits {
		l := &c.limits[k]
		if l.Soft {
			return true // the others are too
		}
		d := l.col.of[i]
		if d == none || !t.keeps(l, t.counters[l.counter].count(d)) {
			return false
		}
	}
	return true
}

// SpreadVersion changes when what the constraints of a class count does; 0 where none of them refuses machines.
func (t *Table) SpreadVersion(id ClassID) uint64 {
	c := &t.classes[id]
	if len(c.limits) == 0 || c.limits[0].Soft {
		return 0
	}
	t.settleSpread(c)
	sum := uint64(1)
	for i := range c.limits {
		sum += t.counters[c.limits[i].counter].version
	}
	return sum
}

// Placeable reports whether some machine takes a pod of a class now.
func (t *Table) Placeable(id ClassID) bool { return t.best(id) != none }

// scans reports whether a pass over all machines finds the best one for a class: its constraints refuse machines, or their score is the same for all of them.
// Otherwise the index is what counts.
func (t *Table) scans(c *class) bool {
	if len(c.limits) == 0 {
		return true
	}
	t.settleSpread(c)
	for i := range c.limits {
		if l := &c.limits[i]; l.Soft && (int(l.col.labelled) < t.known || t.counters[l.counter].set != none && len(t.sets[t.counters[l.counter].set].on) > 0) {
			return false
		}
	}
	return true
}

// moreForAll is what the constraints of a class that scans add to the score of each machine.
func (t *Table) moreForAll(c *class) int64 {
	if n := len(c.limits); n > 0 && c.limits[n-1].Soft {
		return t.weights.of(c.side).Zones * whole
	}
	return 0
}

// refusedBySpread counts machines that a pod would fit but for the constraints of its class.
func (t *Table) refusedBySpread(c *class, scores []int32) (n int32) {
	some := false
	for i := range c.limits {
		l := &c.limits[i]
		some = some || !l.Soft && (int(l.col.labelled) < t.known || !t.keeps(l, t.counters[l.counter].most()))
	}
	for i := 0; some && i < len(scores); i++ {
		if fits(scores[i]) && !t.spreadsNow(c, int32(i)) {
			n++
		}
	}
	return n
}

// most is how many pods the domain with the most has.
func (k *counter) most() int32 {
	n := int32(0)
	for _, x := range k.counts {
		n = max(n, x)
	}
	return n
}

// spreadKey is that of the view whose machines are parted by the constraints of its class.
const spreadKey = "\x00spread"

// parts are the machines of a view in groups that are alike to the constraints of its class. A domain of several machines is one group; where each domain is
// one machine, those with equally many pods are one, so that a pod that lands moves its machine to another group and changes no other.
type parts struct {
	own     []bool // by constraint: each domain is one machine
	fixedOf []int32
	sizes   []int32 // by what does not change with pods
	fixed   map[string]int32
	byKey   map[string]int32
	all     []part
	spare   map[int32][]int32 // by the same, those without machines
	key     []byte
	// more is what weigh said when the changes of the table were at a position, for weights of a version.
	more    []int64
	at      uint64
	version int
}

// part is one group; values has its domain, or its count, for each constraint.
type part struct {
	values       []int32
	key          string
	fixed        int32
	members, fit int32
}

// ownDomains says for each constraint whether each domain is one machine.
func (c *class) ownDomains(out []bool) []bool {
	for i := range c.limits {
		l := &c.limits[i]
		out = append(out, l.Soft && l.Key == hostKey || l.col.shared == 0)
	}
	return out
}

// value is what a machine is to a constraint: its domain, or how many pods it has; none where the label is missing.
func (t *Table) value(l *limit, own bool, i int32) int32 {
	d, k := l.col.of[i], &t.counters[l.counter]
	switch {
	case d == none, !own:
		return d
	case l.Soft && l.Key == hostKey:
		return t.onNode(k, i)
	}
	return k.count(d)
}

// fixedGroup is what a machine is to those constraints whose domains have several.
func (t *Table) fixedGroup(p *parts, c *class, i int32) int32 {
	p.key = p.key[:0]
	for k := range c.limits {
		if !p.own[k] {
			p.key = appendInts(p.key, int64(c.limits[k].col.of[i]))
		} else {
			p.key = append(p.key, byte(b2i(c.limits[k].col.of[i] == none)))
		}
	}
	g, ok := p.fixed[string(p.key)]
	if !ok {
		g = int32(len(p.sizes))
		p.fixed[string(p.key)] = g
		p.sizes = append(p.sizes, 0)
	}
	return g
}

// partOf finds the group of a machine, or makes it.
func (t *Table) partOf(v *view, c *class, i int32) int32 {
	p := v.parts
	p.key = appendInts(p.key[:0], int64(p.fixedOf[i]))
	for k := range c.limits {
		p.key = appendInts(p.key, int64(t.value(&c.limits[k], p.own[k], i)))
	}
	if d, ok := p.byKey[string(p.key)]; ok {
		return d
	}
	fixed := p.fixedOf[i]
	x := part{key: string(p.key), fixed: fixed}
	for k := range c.limits {
		x.values = append(x.values, t.value(&c.limits[k], p.own[k], i))
	}
	var d int32
	if free := p.spare[fixed]; len(free) > 0 {
		d = free[len(free)-1]
		p.spare[fixed] = free[:len(free)-1]
		p.all[d] = x
	} else {
		d = int32(len(p.all))
		p.all = append(p.all, x)
		g := newTournament(int(p.sizes[fixed]))
		for k := range g.tree {
			g.tree[k] = none
		}
		v.domains = append(v.domains, g)
	}
	p.byKey[x.key] = d
	return d
}

// buildParts parts machines that are all scored.
func (t *Table) buildParts(v *view, c *class) {
	t.settleSpread(c)
	p := &parts{own: c.ownDomains(nil), fixed: map[string]int32{}, byKey: map[string]int32{}, spare: map[int32][]int32{}}
	v.parts, v.domains = p, nil
	n := len(t.nodes)
	fixed, part := numbering{of: make([]int32, n), n: 1}, numbering{of: make([]int32, n), n: 1}
	values := make([]int32, n)
	for k := range c.limits {
		t.valuesOf(&c.limits[k], p.own[k], values)
		part.split(values)
		if p.own[k] {
			for i, d := range c.limits[k].col.of {
				values[i] = min(d, 0) // whether it has one
			}
		}
		fixed.split(values)
	}
	p.fixedOf, v.leafOf, v.domainOf = make([]int32, n), make([]int32, n), part.of
	groups := slices.Repeat([]int32{none}, fixed.n)
	for i, g := range fixed.of {
		if groups[g] == none {
			groups[g] = t.fixedGroup(p, c, int32(i))
		}
		g = groups[g]
		p.fixedOf[i], v.leafOf[i] = g, p.sizes[g]
		p.sizes[g]++
	}
	at := slices.Repeat([]int32{none}, part.n)
	for i, d := range part.of {
		if at[d] == none {
			at[d] = t.partOf(v, c, int32(i))
		}
		d = at[d]
		v.domainOf[i] = d
		p.all[d].members++
		if fits(v.score[i]) {
			p.all[d].fit++
			v.domains[d].tree[v.domains[d].size+int(v.leafOf[i])] = int32(i)
		}
	}
	for d := range v.domains {
		t.playAll(v, &v.domains[d])
	}
}

// valuesOf is value for all machines.
func (t *Table) valuesOf(l *limit, own bool, out []int32) {
	k := &t.counters[l.counter]
	copy(out, l.col.of)
	switch {
	case !own:
	case l.Soft && l.Key == hostKey:
		for i, d := range out {
			out[i] = min(d, 0)
		}
		if k.set != none {
			for i, n := range t.sets[k.set].on {
				if out[i] != none {
					out[i] = n
				}
			}
		}
	default:
		for i, d := range out {
			if d != none {
				out[i] = k.count(d)
			}
		}
	}
}

// numbering gives machines with equal values equal numbers.
type numbering struct {
	of []int32
	n  int
}

// split distinguishes machines by one more value.
func (x *numbering) split(values []int32) {
	width := int(slices.Max(values)) + 2
	seen := make(map[int]int32, 0)
	var dense []int32
	if x.n*width <= 4*len(values)+64 {
		dense = slices.Repeat([]int32{none}, x.n*width)
	}
	n := int32(0)
	for i, v := range values {
		at := int(x.of[i])*width + int(v) + 1
		if dense != nil {
			if dense[at] == none {
				dense[at] = n
				n++
			}
			x.of[i] = dense[at]
			continue
		}
		d, ok := seen[at]
		if !ok {
			d = n
			seen[at] = d
			n++
		}
		x.of[i] = d
	}
	x.n = int(n)
}

// followParts scores machines again that have changed; false where their domains have.
func (t *Table) followParts(v *view, c *class, nodes []int32) bool {
	t.settleSpread(c)
	p := v.parts
	var own [8]bool
	if len(v.score) < len(t.nodes) || !slices.Equal(p.own, c.ownDomains(own[:0])) {
		return false
	}
	profile := t.settleProfile(c.profile)
	for k, i := range nodes {
		if !t.changes.isLast(v.at+uint64(k), i) {
			continue
		}
		if t.fixedGroup(p, c, i) != p.fixedOf[i] {
			return false
		}
		was, fit := v.domainOf[i], fits(v.score[i])
		v.rate(i, t.rateFor(v, c, profile, i))
		is := t.partOf(v, c, i)
		p.all[was].fit -= int32(b2i(fit))
		p.all[is].fit += int32(b2i(fits(v.score[i])))
		if is != was {
			t.leave(v, &v.domains[was], v.leafOf[i], i)
			p.all[is].members++
			if p.all[was].members--; p.all[was].members == 0 {
				delete(p.byKey, p.all[was].key)
				p.spare[p.all[was].fixed] = append(p.spare[p.all[was].fixed], was)
			}
			v.domainOf[i] = is
		}
		t.play(v, &v.domains[is], v.leafOf[i], i)
	}
	return true
}

// refused stands for the score of a group that a constraint lets no pod into.
const refused = math.MinInt64

// weigh says what each group of a view adds to the score of its machines, as upstream's plugin has it over all machines that a pod fits.
func (t *Table) weigh(c *class, v *view) []int64 {
	p := v.parts
	if len(p.more) == len(p.all) && p.at == t.changes.end() && p.version == t.weightsVersion {
		return p.more // as the reason of a decision had it
	}
	out := slices.Grow(p.more[:0], len(p.all))[:len(p.all)]
	p.more, p.at, p.version = out, t.changes.end(), t.weightsVersion
	soft, fit := len(c.limits), int64(0)
	for k := range c.limits {
		if c.limits[k].Soft {
			soft = k
			break
		}
	}
	for d := range p.all {
		x := &p.all[d]
		out[d] = 0
		for k := range c.limits[:soft] {
			l, n := &c.limits[k], x.values[k]
			if n != none && !p.own[k] {
				n = t.counters[l.counter].count(n)
			}
			if n == none || !t.keeps(l, n) {
				out[d] = refused
				break
			}
		}
		if x.fit == 0 {
			out[d] = refused
		}
		if out[d] != refused && !slices.Contains(x.values[soft:], none) {
			fit += int64(x.fit)
		}
	}
	weight := t.weights.of(c.side).Zones
	if soft == len(c.limits) || weight == 0 || fit == 0 {
		return out
	}
	scores := slices.Grow(t.raw[:0], len(p.all))[:len(p.all)]
	t.raw = scores
	clear(scores)
	for k := soft; k < len(c.limits); k++ {
		l := &c.limits[k]
		size := fit
		if !p.own[k] {
			size = 0
			seen := slices.Grow(t.seen[:0], len(l.col.values))[:len(l.col.values)]
			t.seen = seen
			clear(seen)
			for d := range p.all {
				if x := p.all[d].values; out[d] != refused && !slices.Contains(x[soft:], none) && !seen[x[k]] {
					seen[x[k]] = true
					size++
				}
			}
		}
		per := math.Log(float64(size + 2))
		for d := range p.all {
			n := p.all[d].values[k]
			if n != none && !p.own[k] {
				n = t.counters[l.counter].count(n)
			}
			scores[d] += float64(n)*per + float64(l.MaxSkew-1)
		}
	}
	least, most := int64(math.MaxInt64), int64(0)
	for d := range p.all {
		if out[d] != refused && !slices.Contains(p.all[d].values[soft:], none) {
			s := int64(math.Round(scores[d]))
			least, most = min(least, s), max(most, s)
		}
	}
	for d := range p.all {
		if out[d] == refused || slices.Contains(p.all[d].values[soft:], none) {
			continue
		}
		s := int64(100)
		if most > 0 {
			s = 100 * (most + least - int64(math.Round(scores[d]))) / most
		}
		out[d] = weight * s * (whole / 100)
	}
	return out
}
