package place

import (
	"math"
	"slices"
)

// view is the index of a class: for each spread domain a tournament over its machines, whose winner is the machine with the best score, the first
// by name of equal ones. A view catches up with the machines that changed when it is next asked, and costs then what they cost: a score and a
// path to the root each. So N equal pods that are placed one after the other go where N separate best choices would.
type view struct {
	viewKey
	older, newer *view  // by when they were asked for
	at           uint64 // the position in the journal of changes that it is in line with
	// version is that of the weights.
	version int
	score   []int32 // by node
	// removed is how many machines each filter removed, of those that the profile leaves.
	removed byFilter
	domains []tournament
	// Where there is more than one domain: that of each node, and its leaf there.
	domainOf, leafOf []int32
	column           *column
	parts            *parts // of a class with constraints: its domains are theirs
	// steps are how widely the images of the class were spread when all machines were scored.
	steps []int64
}

// tournament is a binary tree: tree[size+i] is the node of leaf i, and each entry above is the better one of the two below it. The size is any
// number: where it is no power of two the leaves are of two depths, and the winner is the same.
type tournament struct {
	size int
	tree []int32
}

// newTournament has as many leaves, and no winner before its games are played.
func newTournament(leaves int) tournament {
	return tournament{size: max(leaves, 1), tree: make([]int32, 2*max(leaves, 1))}
}

// top is the best node, or none.
func (g *tournament) top() int32 { return g.tree[1] }

// better reports whether node a stands before b.
func (t *Table) better(v *view, a, b int32) bool {
	if a == none || b == none {
		return a != none
	}
	if v.score[a] != v.score[b] {
		return v.score[a] > v.score[b]
	}
	return t.rank[a] < t.rank[b]
}

// play plays the games above a leaf again.
func (t *Table) play(v *view, g *tournament, leaf int32, node int32) {
	i := g.size + int(leaf)
	g.tree[i] = node
	if !fits(v.score[node]) {
		g.tree[i] = none
	}
	t.playUp(v, g, i, node)
}

// leave plays the games above a leaf again whose node is in no game any more.
func (t *Table) leave(v *view, g *tournament, leaf int32, node int32) {
	i := g.size + int(leaf)
	g.tree[i] = none
	t.playUp(v, g, i, node)
}

func (t *Table) playUp(v *view, g *tournament, i int, node int32) {
	for i >>= 1; i >= 1; i >>= 1 {
		a, b := g.tree[2*i], g.tree[2*i+1]
		if !t.better(v, a, b) {
			a = b
		}
		if g.tree[i] == a && a != node {
			return // what has changed lost here before, and lost again
		}
		g.tree[i] = a
	}
}

// playAbove plays the games above the leaves in t.games, which are in falling order, each game once a round.
func (t *Table) playAbove(v *view, g *tournament) {
	games := t.games
	for len(games) > 0 {
		next := games[:0]
		for _, i := range games {
			i >>= 1
			if i == 0 || len(next) > 0 && next[len(next)-1] == i {
				continue
			}
			a, b := g.tree[2*i], g.tree[2*i+1]
			if !t.better(v, a, b) {
				a = b
			}
			// A winner of before that has not changed since is known above.
			if g.tree[i] != a || a != none && t.changes.last[a] > v.at {
				g.tree[i] = a
				next = append(next, i)
			}
		}
		games = next
	}
}

// playAll plays all games.
func (t *Table) playAll(v *view, g *tournament) {
	for i := g.size - 1; i >= 1; i-- {
		a, b := g.tree[2*i], g.tree[2*i+1]
		if !t.better(v, a, b) {
			a = b
		}
		g.tree[i] = a
	}
}

type viewKey struct {
	class ClassID
	key   string
}

// mostSlots bounds the views that are kept, by machines: 64 Mi of them are about a gibibyte. Beyond that the view that was not asked for longest
// goes, and its class costs a pass when it is next asked.
const mostSlots = 64 << 20

// view returns the index of a class over the domains of a label key, in line with the table.
func (t *Table) view(id ClassID, key string) *view {
	t.rankNames()
	k := viewKey{id, key}
	v := t.views[k]
	if v == nil {
		v = &view{viewKey: k}
		if key != "" && key != preemptKey && key != spreadKey {
			v.column = t.column(key)
		}
		t.views[k] = v
	} else {
		t.unlinkView(v)
	}
	t.linkView(v)
	t.slots -= len(v.score)
	t.catchUp(v)
	t.slots += len(v.score)
	for t.slots > mostSlots && t.oldest != v {
		old := t.oldest
		t.unlinkView(old)
		delete(t.views, old.viewKey)
		t.slots -= len(old.score)
	}
	return v
}

// linkView makes a view the newest.
func (t *Table) linkView(v *view) {
	v.older, v.newer = t.newest, nil
	if t.newest != nil {
		t.newest.newer = v
	} else {
		t.oldest = v
	}
	t.newest = v
}

func (t *Table) unlinkView(v *view) {
	if v.older != nil {
		v.older.newer = v.newer
	} else {
		t.oldest = v.newer
	}
	if v.newer != nil {
		v.newer.older = v.older
	} else {
		t.newest = v.older
	}
}

func (t *Table) catchUp(v *view) {
	if v.at == t.changes.end() && v.version == t.weightsVersion {
		return
	}
	nodes, ok := t.changes.since(v.at)
	if c := &t.classes[v.class]; len(c.images) > 0 && !t.sameSteps(c, &v.steps) {
		ok = false
	}
	if !ok || v.version != t.weightsVersion || !t.follow(v, nodes) {
		t.build(v)
	}
	v.at, v.version = t.changes.end(), t.weightsVersion
}

// follow scores again what has changed; false where the view has no place for it.
func (t *Table) follow(v *view, nodes []int32) bool {
	c := &t.classes[v.class]
	if v.key == spreadKey {
		return t.followParts(v, c, nodes)
	}
	p := t.settleProfile(c.profile)
	if v.column != nil {
		t.settleColumn(v.column)
	}
	for len(v.score) < len(t.nodes) {
		v.score = append(v.score, unfit)
		if v.column != nil {
			v.domainOf, v.leafOf = append(v.domainOf, none), append(v.leafOf, none)
		}
	}
	if v.column == nil && len(t.nodes) > v.domains[0].size || v.column != nil && len(v.domains) < len(v.column.values) {
		return false
	}
	if v.column == nil {
		t.games = t.games[:0]
		for k, i := range nodes {
			if t.changes.isLast(v.at+uint64(k), i) {
				t.games = append(t.games, i)
			}
		}
		// Names that follow each other are neighbours, and neighbours share most of their games.
		slices.SortFunc(t.games, func(a, b int32) int { return int(b - a) })
		g := &v.domains[0]
		for k, i := range t.games {
			v.rate(i, t.rateFor(v, c, p, i))
			leaf := int32(g.size) + i
			g.tree[leaf] = i
			if !fits(v.score[i]) {
				g.tree[leaf] = none
			}
			t.games[k] = leaf
		}
		t.playAbove(v, g)
		return true
	}
	for k, i := range nodes {
		if !t.changes.isLast(v.at+uint64(k), i) {
			continue
		}
		v.rate(i, t.rateFor(v, c, p, i))
		d := v.column.of[i]
		if d != v.domainOf[i] {
			return false // it moved to another domain, or is new
		}
		if d != none {
			t.play(v, &v.domains[d], v.leafOf[i], i)
		}
	}
	return true
}

// rate gives a machine another score.
func (v *view) rate(i, score int32) {
	v.removed.count(v.score[i], -1)
	v.removed.count(score, 1)
	v.score[i] = score
}

// byFilter counts machines by the filter that removed them.
type byFilter [Filters]int32

// count counts a machine with a score, or takes it out; one that a pod fits, or that the profile removed, counts nowhere.
func (r *byFilter) count(score, times int32) {
	if !fits(score) && score != unfit {
		r[score-unfit] += times
	}
}

func (t *Table) rateFor(v *view, c *class, p *profile, i int32) int32 {
	if v.key == preemptKey {
		return t.ratePreempt(c, p, i)
	}
	return t.rate(c, p, i)
}

// build scores all machines.
func (t *Table) build(v *view) {
	c := &t.classes[v.class]
	p := t.settleProfile(c.profile)
	v.score = slices.Grow(v.score[:0], len(t.nodes))[:len(t.nodes)]
	if v.key == preemptKey {
		for i := range v.score {
			v.score[i] = t.ratePreempt(c, p, int32(i))
		}
	} else {
		t.rateAll(c, p, v.score)
	}
	v.removed = byFilter{}
	for _, s := range v.score {
		v.removed.count(s, 1)
	}
	if v.key == spreadKey {
		t.buildParts(v, c)
		return
	}
	if v.column == nil {
		if len(v.domains) == 0 || v.domains[0].size < len(t.nodes) {
			v.domains = []tournament{newTournament(len(t.nodes) + len(t.nodes)/16 + 1)}
		}
		leaves := v.domains[0].tree[v.domains[0].size:]
		for i := range leaves {
			leaves[i] = none
			if i < len(v.score) && fits(v.score[i]) {
				leaves[i] = int32(i)
			}
		}
		t.playAll(v, &v.domains[0])
		return
	}
	t.settleColumn(v.column)
	sizes := make([]int, len(v.column.values))
	v.domainOf, v.leafOf = slices.Clone(v.column.of), make([]int32, len(t.nodes))
	for i, d := range v.domainOf {
		if d != none {
			v.leafOf[i] = int32(sizes[d])
			sizes[d]++
		}
	}
	v.domains = make([]tournament, len(sizes))
	for d, n := range sizes {
		v.domains[d] = newTournament(n)
		v.domains[d].tree[len(v.domains[d].tree)-1] = none // where there is no leaf
	}
	for i, d := range v.domainOf {
		if d == none {
			continue
		}
		leaf := &v.domains[d].tree[v.domains[d].size+int(v.leafOf[i])]
		*leaf = int32(i)
		if !fits(v.score[i]) {
			*leaf = none
		}
	}
	for d := range v.domains {
		t.playAll(v, &v.domains[d])
	}
}

// scan finds the best machine for a class that has no view in one pass, without making one: most classes that come are asked for once. The scores stay
// in t.scores.
func (t *Table) scan(id ClassID) int32 {
	c := &t.classes[id]
	t.rankNames()
	p := t.settleProfile(c.profile)
	t.scores = slices.Grow(t.scores[:0], len(t.nodes))[:len(t.nodes)]
	t.rateAll(c, p, t.scores)
	t.scanned = scanned{class: id, at: t.changes.end(), version: t.weightsVersion}
	t.rankScores(c, p)
	return t.scanned.best.node
}

// scanned is the last scan.
type scanned struct {
	class        ClassID
	at           uint64 // the position in the journal of changes
	version      int    // of the weights
	best, second rated
	// removed is how many machines each filter removed, of those that the profile leaves.
	removed byFilter
}

// rated is a machine with its score; none for no machine.
type rated struct {
	node  int32
	score int64
}

// lastScan is scan, and no pass where the last one was for this class and nothing has changed since.
func (t *Table) lastScan(id ClassID) int32 {
	if s := &t.scanned; s.at == 0 || s.class != id || s.at != t.changes.end() || s.version != t.weightsVersion {
		return t.scan(id)
	}
	return t.scanned.best.node
}

// rankScores finds the best two machines by t.scores, with the scores of their zones, and counts those that were removed: what a decision and its reason need, in
// one pass.
func (t *Table) rankScores(c *class, p *profile) {
	x := &t.scanned
	x.best, x.second = rated{none, math.MinInt64}, rated{none, math.MinInt64}
	zones := t.zonesOf(c)
	byZone, most := t.weighed[:0], int64(0)
	if zones.counts != nil {
		for z := range t.zones {
			if byZone = append(byZone, zones.score(int32(z))); !zones.allow(int32(z)) {
				byZone[z] = refused
			}
			most = max(most, byZone[z])
		}
		t.weighed = byZone
	}
	for i, s := range t.scores {
		if !fits(s) {
			if s != unfit {
				x.removed[s-unfit]++
			}
			continue
		}
		score := int64(s)
		if score+most < x.second.score {
			continue // wherever it is
		}
		if len(byZone) > 0 {
			more := byZone[p.zone[i]]
			if more == refused {
				continue
			}
			score += more
		}
		if score < x.second.score || score == x.second.score && t.rank[i] > t.rank[x.second.node] || len(c.limits) > 0 && !t.spreadsNow(c, int32(i)) {
			continue
		}
		x.second = rated{int32(i), score}
		if b := &x.best; score > b.score || score == b.score && t.rank[i] < t.rank[b.node] {
			x.best, x.second = x.second, x.best
		}
	}
	x.removed[FilterSpread] = t.refusedBySpread(c, t.scores)
	more := t.moreForAll(c)
	x.best.score, x.second.score = x.best.score+more, x.second.score+more
}
