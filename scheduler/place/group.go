package place

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Role is some pods of a gang that are alike. Within a domain of the gang neither zones are compared nor constraints (Needs.Spread) asked.
type Role struct {
	Class ClassID
	// Min is how many must be placed, or none of the gang is; Count how many are wanted.
	Min, Count int
}

// GPUModelKey stands for the GPU model among the label keys of a gang.
const GPUModelKey = "springtide.dev/gpu-model"

// GangRequest is a gang that is to be placed.
type GangRequest struct {
	Roles []Role
	// Domain is the label key by which all pods must be in one domain; empty for none. Value names the domain, where pods of the gang are there already.
	Domain, Value string
	// Prefer are label keys by which the pods should be in one domain, the most important first. One is given up where it cannot be kept together with
	// those before it. Each subset may be tried, so they should be few.
	Prefer []string
	// Most asks for the domain that holds the most pods, instead of the one with the least room.
	Most bool
}

// GangDecision is where the pods of a gang are to be bound.
type GangDecision struct {
	// Pods are those of each role.
	Pods [][]Decision
	// Domain is the one that was chosen by the keys, in the order of Domain and the Prefer that was kept; empty without keys.
	Domain string
	// Kept are the preferred keys that hold.
	Kept []string
}

// Labels says in which domain the pods are, as in "rack=r1,network-pod=p2"; empty without keys.
func (d *GangDecision) Labels(g *GangRequest) string {
	var out []string
	for i, v := range strings.Split(d.Domain, keySeparator) {
		if keys := g.keys(d.Kept); i < len(keys) {
			out = append(out, keys[i]+"="+v)
		}
	}
	return strings.Join(out, ",")
}

// keys are the label keys by which the pods are in one domain where some preferences are kept.
func (g *GangRequest) keys(kept []string) []string {
	keys := make([]string, 0, 1+len(kept))
	if g.Domain != "" {
		keys = append(keys, g.Domain)
	}
	return append(keys, kept...)
}

// wishes are the subsets of the keys, best first: all of them at first, and none at last.
func wishes(keys []string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for dropped := range 1 << len(keys) {
			var kept []string
			for i, key := range keys {
				if dropped>>(len(keys)-1-i)&1 == 0 {
					kept = append(kept, key)
				}
			}
			if !yield(kept) {
				return
			}
		}
	}
}

// DecideGang places at least Min pods of each role, or none: in one domain by the keys that are asked for. Of the domains with enough room the one
// with the least is tried first, so that large ones stay whole. Since a gang holds nothing until all of it has a place, two gangs never wait for each
// other.
func (t *Table) DecideGang(g GangRequest) (GangDecision, bool) {
	order := make([]int, len(g.Roles))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return t.largestFirst(g.Roles[a].Class, g.Roles[b].Class) })
	for kept := range wishes(g.Prefer) {
		keys := g.keys(kept)
		if len(keys) == 0 {
			if out, ok := t.gangIn(&g, order, "", none); ok {
				return out, true
			}
			continue
		}
		key := joinKeys(keys)
		col := t.column(key)
		t.settleColumn(col)
		if g.Most {
			if d := t.fullest(&g, order, key, col); d != none {
				out, ok := t.gangIn(&g, order, key, d)
				out.Domain, out.Kept = col.values[d], kept
				return out, ok
			}
			continue
		}
		for d := range t.domainsWithRoom(&g, col) {
			if out, ok := t.gangIn(&g, order, key, d); ok {
				out.Domain, out.Kept = col.values[d], kept
				return out, true
			}
		}
	}
	return GangDecision{}, false
}

// fullest is the domain that holds the most pods of a gang; none where no domain holds one.
func (t *Table) fullest(g *GangRequest, order []int, key string, col *column) int32 {
	best, most, all := int32(none), 0, 0
	for _, r := range g.Roles {
		all += r.Count
	}
	for d := range t.domainsWithRoom(g, col) {
		n := 0
		t.Would(func() bool {
			out, ok := t.gangIn(g, order, key, d)
			for _, pods := range out.Pods {
				n += len(pods)
			}
			return ok
		})
		if n > most {
			best, most = d, n
		}
		if most == all {
			break
		}
	}
	return best
}

// gangIn places a gang in one domain, or everywhere.
func (t *Table) gangIn(g *GangRequest, order []int, key string, domain int32) (GangDecision, bool) {
	out := GangDecision{Pods: make([][]Decision, len(g.Roles))}
	ok := t.Try(func() bool {
		for _, more := range [2]bool{false, true} {
			for _, i := range order {
				r := &g.Roles[i]
				n := r.Min
				if more {
					n = max(r.Count, r.Min)
				}
				for len(out.Pods[i]) < n {
					row := t.bestIn(r.Class, key, domain)
					if row == none {
						if !more {
							return false
						}
						break
					}
					out.Pods[i] = append(out.Pods[i], t.assume(r.Class, row))
				}
			}
		}
		return true
	})
	if !ok {
		return GangDecision{}, false
	}
	return out, true
}

// bestIn finds the best row of one domain. There zones are not compared: the domain decides where the pods are.
func (t *Table) bestIn(id ClassID, key string, domain int32) int32 {
	if key == "" {
		return t.best(id)
	}
	c, col := &t.classes[id], t.column(key)
	for _, s := range t.claimedBest(c) {
		if col.of[s.row>>1] == domain {
			return s.row
		}
	}
	if c.pinned != nil {
		for s := range t.amongPinned(id) {
			if col.of[s.row>>1] == domain {
				return s.row
			}
		}
		return none
	}
	v := t.view(id, key)
	if int(domain) >= len(v.domains) {
		return none
	}
	if i := v.domains[domain].top(); i != none {
		return 2*i + int32(c.side)
	}
	return none
}

// domainsWithRoom yields the domains that could hold the least of each role by their sums, the one with the least room first. Cells, ports and the
// like are judged when the gang is placed.
func (t *Table) domainsWithRoom(g *GangRequest, col *column) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		room := make([][]int64, len(g.Roles))
		for r := range g.Roles {
			room[r] = t.roomByDomain(g.Roles[r].Class, col)
		}
		var fit []int32
		for d := range col.values {
			ok := col.values[d] != "" && (g.Value == "" || firstOf(col.values[d]) == g.Value) // a machine without a zone is in no domain
			for r := range g.Roles {
				ok = ok && room[r][d] >= int64(g.Roles[r].Min)
			}
			if ok {
				fit = append(fit, int32(d))
			}
		}
		slices.SortFunc(fit, func(a, b int32) int {
			for r := range g.Roles {
				if room[r][a] != room[r][b] {
					// Enough for all that is wanted comes before enough for the least.
					x, y := room[r][a] >= int64(g.Roles[r].Count), room[r][b] >= int64(g.Roles[r].Count)
					if x != y {
						return cmp.Compare(b2i(y), b2i(x))
					}
					if x {
						return cmp.Compare(room[r][a], room[r][b])
					}
					return cmp.Compare(room[r][b], room[r][a])
				}
			}
			return cmp.Compare(col.values[a], col.values[b])
		})
		for _, d := range fit {
			if !yield(d) {
				return
			}
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// roomByDomain counts the pods of a class that the machines of each domain could hold by their free room, each machine counted by itself.
func (t *Table) roomByDomain(id ClassID, col *column) []int64 {
	c := &t.classes[id]
	out := make([]int64, len(col.values))
	a, need := &t.avail[c.side], c.need()
	var p *profile
	if c.pinned == nil {
		p = t.settleProfile(c.profile)
	}
	for i, d := range col.of {
		if d == none || p != nil && p.bits[i>>6]>>(i&63)&1 == 0 {
			continue
		}
		n := int64(1) << 30
		for x := range resources {
			if need[x] > 0 {
				n = min(n, max(a.free[x][i], 0)/need[x])
			}
		}
		for _, x := range c.asks {
			n = min(n, max(t.supplies[x.supply].left(int32(i)), 0)/x.amount)
		}
		out[d] += n
	}
	for _, i := range slices.Sorted(maps.Keys(t.claimed)) {
		if d := col.of[i]; d != none {
			// The class's reservation is free for it.
			for _, id := range t.usable(c, i) {
				left := t.claims[id].left
				out[d] += left.resources().Count(c.want.resources())
			}
		}
	}
	return out
}
