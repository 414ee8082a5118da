package quota

import (
	"strings"

	"github.com/springtide/springtide/reason"
)

// bounds names, by node, what keeps its online services from all that they wish for; nil where all have it. It looks at the edges as
// these grants leave them, so it is asked before anything else is granted.
func (f *flow) bounds(r *round) []reason.Reason {
	var out []reason.Reason
	var keepers []keeper
	for i := range r.wish {
		missing := r.wish[i].sub(r.online[i]).floor()
		if missing.isZero() {
			continue
		}
		if out == nil {
			out, keepers = make([]reason.Reason, len(r.wish)), f.keepers()
		}
		out[i] = f.bound(i, missing, keepers)
	}
	return out
}

func (r *round) boundOf(i int) reason.Reason {
	if r.bounds == nil {
		return reason.Reason{}
	}
	return r.bounds[i]
}

// bound names the edge that binds a node on the way up: the first of which nothing more comes through, of the resource
// of which least of what is missing does. Where all edges let more through there is nothing more at the top, by a
// lending limit or because it is used.
func (f *flow) bound(i int, missing amount, keepers []keeper) reason.Reason {
	lack, room := amountsOf(missing), amountsOf(f.room(i))
	d, least := 0, 2.0
	for k := range lack {
		if lack[k] > 0 && room[k]/lack[k] < least {
			d, least = k, room[k]/lack[k]
		}
	}
	root := i
	for j := i; j > 0; j = f.tr.nodes[j].parent {
		root = j
		above := amountsOf(f.room(f.tr.nodes[j].parent))[d]
		if slack := amountsOf(f.borrow[j].sub(f.edge(j)).floor())[d]; slack > above {
			continue
		}
		if j == i {
			return reason.Of(reason.OwnBorrowingLimit, only(f.borrow[j], d))
		}
		return reason.Of(reason.BorrowingLimit, f.tr.nodes[j].tenant.ID, only(f.borrow[j], d))
	}
	// A rest that rounding left counts for nothing, and a quota above this one keeps no more than there is room here.
	if k := keepers[root]; k.hidden[d] > room[d] {
		n := &f.tr.nodes[k.by[d]]
		return reason.Of(reason.LendingLimit, n.tenant.ID, only(n.lend, d))
	}
	return reason.Of(reason.SupplyBinds, dimNames[d])
}

var dimNames = [dims]string{"cpu", "memory", "gpu", "parcels"}

// only tells one resource of an amount.
func only(r amount, d int) string {
	x := [dims]amount{{cpu: r.cpu}, {memory: r.memory}, {gpu: r.gpu}, {parcels: r.parcels}}[d]
	if d > 0 && x.isZero() {
		return dimNames[d] + "=0"
	}
	return strings.TrimPrefix(x.String(), "cpu=0 ")
}

// keeper is who of a tree keeps the most of each resource by its lending limit.
type keeper struct {
	hidden amounts
	by     [dims]int
}

// keepers are those of each root. Where a quota above one keeps something too, the limit of that one is what binds first. A root itself is none:
// trees do not lend to each other, and what it keeps is within reach of all below it.
func (f *flow) keepers() []keeper {
	n := len(f.tr.nodes)
	out, root, behind := make([]keeper, n), make([]int, n), make([][dims]bool, n)
	rest := amounts{float64(n), 1024 * float64(n)} // what rounding leaves of an edge: a millicore or some bytes of each node
	for i := 1; i < n; i++ {
		p := f.tr.nodes[i].parent
		if root[i] = root[p]; root[i] == 0 {
			root[i] = i
			continue
		}
		behind[i] = behind[p]
		for d, v := range amountsOf(f.hidden(i)) {
			if behind[i][d] || v <= rest[d] {
				continue
			}
			behind[i][d] = true
			if k := &out[root[i]]; v > k.hidden[d] {
				k.hidden[d], k.by[d] = v, i
			}
		}
	}
	return out
}
