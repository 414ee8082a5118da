package judge

import (
	"maps"
	"slices"
	"strings"
)

// lookCells asks whether a cell is in two hands.
func (j *Judge) lookCells(*Look) {
	for _, s := range j.shares {
		j.saw(ruleCell, len(s.Parcels))
		for i := range s.Parcels {
			for k := range i {
				a, b := &s.Parcels[k], &s.Parcels[i]
				if c := overlap(a.Cells, b.Cells); c >= 0 {
					j.while(ruleCell, s.Node, 0, "cell %d is in two parcels: of loan %s, held by %s, and of loan %s, held by %s", c, a.LoanName, a.Holder, b.LoanName, b.Holder)
				}
			}
		}
	}
	taken := map[string][]*Loan{} // by node UID
	for _, l := range j.loans {
		if !l.ended() {
			taken[l.NodeUID] = append(taken[l.NodeUID], l)
		}
	}
	for _, all := range taken {
		for i := range all {
			for k := range i {
				if c := overlap(all[i].Cells, all[k].Cells); c >= 0 {
					names := []string{all[i].Name, all[k].Name}
					slices.Sort(names)
					j.while(ruleCell, all[i].Node, spanCell, "cell %d is lent twice: by %s", c, strings.Join(names, " and "))
				}
			}
		}
	}
	j.lookBoundCells()
}

// lookBoundCells asks whether pods of both sides are bound to one cell.
func (j *Judge) lookBoundCells() {
	bound := map[string][]*Pod{}
	for _, uid := range slices.Sorted(maps.Keys(j.pods)) {
		p := j.pods[uid]
		if p.there() && !p.Leaving && p.Side != Neither && len(p.Cells) > 0 {
			bound[p.Node] = append(bound[p.Node], p)
		}
	}
	for node, all := range bound {
		j.saw(ruleCell, 1)
		for _, a := range all {
			if a.Side != Online {
				continue
			}
			for _, b := range all {
				if c := overlap(a.Cells, b.Cells); b.Side == Offline && c >= 0 {
					j.while(ruleCell, node, spanCell, "cell %d is bound to the online pod %s and the offline pod %s", c, a.Ref, b.Ref)
				}
			}
		}
	}
}

// lookSides asks whether each pod is where its side may be.
func (j *Judge) lookSides(*Look) {
	homes := map[string]Side{}
	for name, n := range j.nodes {
		if p := j.home(n); p != nil {
			homes[name] = p.Side
		}
	}
	for _, p := range j.pods {
		n := j.nodes[p.Node]
		if !p.there() || p.Side == Neither || p.Filler || n == nil || homes[p.Node] == Neither {
			continue
		}
		j.saw(ruleSide, 1)
		s := j.shareOf(n)
		if s == nil || len(s.Parcels) == 0 {
			if homes[p.Node] != p.Side {
				j.while(ruleSide, p.Ref.String(), spanSide, "runs on node %s, all of which is %s's", p.Node, homes[p.Node])
			}
			continue
		}
		if !j.holds(s, p, homes[p.Node]) {
			j.while(ruleSide, p.Ref.String(), spanSide, "runs on node %s, of which its side does not hold the cells: %s", p.Node, s.inWords())
		}
	}
}

// holds reports whether a pod's side holds its cells, or any cell where it is bound to none.
func (j *Judge) holds(s *Share, p *Pod, home Side) bool {
	listed := 0
	for i := range s.Parcels {
		parcel := &s.Parcels[i]
		listed += len(parcel.Cells)
		mine := j.side(parcel.Holder) == p.Side
		if len(p.Cells) == 0 && mine {
			return true
		}
		if overlap(p.Cells, parcel.Cells) >= 0 && !mine {
			return false
		}
	}
	if len(p.Cells) > 0 {
		for _, c := range p.Cells {
			if !s.lists(c) && home != p.Side {
				return false
			}
		}
		return true
	}
	// Cells that no parcel lists are at home. A machine whose cells were not counted is taken for one with more of them.
	all, known := j.cells[s.Node]
	return home == p.Side && (!known || all > listed)
}

func (s *Share) lists(cell int) bool {
	return slices.ContainsFunc(s.Parcels, func(p Parcel) bool { return slices.Contains(p.Cells, cell) })
}

// inWords says who holds what.
func (s *Share) inWords() string {
	var out []string
	for i := range s.Parcels {
		p := &s.Parcels[i]
		text := "loan " + p.LoanName + " held by " + p.Holder
		if p.Next != "" {
			text += ", next " + p.Next
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// lookPairs asks whether each of two records that belong together has the other one.
func (j *Judge) lookPairs(*Look) {
	parcels := map[string]bool{} // UIDs of the loans that shares name
	for name, s := range j.shares {
		n := j.nodes[name]
		for i := range s.Parcels {
			p := &s.Parcels[i]
			j.saw(rulePair, 1)
			switch l := j.loans[p.LoanUID]; {
			case n == nil || n.UID != s.NodeUID:
				j.while(rulePair, "nodeshare "+name, spanPair, "holds a parcel of loan %s, and its node is gone", p.LoanName)
				continue
			case l == nil:
				j.while(rulePair, "nodeshare "+name+" loan "+p.LoanName, spanPair, "holds cells %v for %s, and there is no loan %s", p.Cells, p.Holder, p.LoanName)
			case l.ended() && (p.Holder != l.From || p.Next != ""):
				j.while(rulePair, "nodeshare "+name+" loan "+p.LoanName, spanPair, "has cells %v in the hand of %s (next %s), and the loan is %s", p.Cells, p.Holder, or(p.Next, "none"), l.Phase)
			case !l.ended() && !same(p.Cells, l.Cells):
				j.while(rulePair, "nodeshare "+name+" loan "+p.LoanName, spanPair, "has cells %v in loan %s, which is of cells %v", p.Cells, p.LoanName, l.Cells)
			case l.Epoch > p.Epoch && !l.ended():
				j.while(rulePair, "nodeshare "+name+" loan "+p.LoanName, spanPair, "is at epoch %d of the loan, which is at %d", p.Epoch, l.Epoch)
			}
			parcels[p.LoanUID] = true
		}
	}
	for uid, l := range j.loans {
		j.saw(rulePair, 1)
		switch {
		case !j.nodeStands(l) && !l.ended():
			j.while(rulePair, "loan "+l.Name, spanPair, "is %s, and its node %s is gone", named(l.Phase), l.Node)
		case l.away() && !parcels[uid]:
			j.while(rulePair, "loan "+l.Name, spanPair, "is %s, and the NodeShare of %s has no parcel of it", l.Phase, l.Node)
		}
	}
	for _, n := range j.nodes {
		j.lookMarks(n)
	}
	for _, p := range j.pods {
		if p.Notice.Epoch == 0 || p.Leaving || p.Finished || p.Side != Offline || p.Node == "" {
			continue
		}
		for _, l := range j.loans {
			if l.Name == p.Notice.Loan && (l.Phase == "Lent" || l.ended()) {
				j.while(rulePair, "pod "+p.Ref.String(), spanPair, "carries the notice of loan %s, which is %s", l.Name, l.Phase)
			}
		}
	}
}

// lookMarks asks whether a machine's marks say what its NodeShare says.
func (j *Judge) lookMarks(n *Node) {
	home := j.home(n)
	if home == nil {
		return
	}
	keeps := j.cells[n.Name]                 // how many cells stay online's
	moves, lent, back := false, false, false // cells that are in offline's hands or change them; some that offline has; some that come home
	fenced := false
	s := j.shareOf(n)
	if s != nil {
		for i := range s.Parcels {
			p := &s.Parcels[i]
			j.saw(rulePair, 1)
			moves = moves || p.Next != "" || p.Holder != home.Name
			lent = lent || j.side(p.Holder) == Offline
			back = back || p.Next != ""
			if p.Next != "" || j.side(p.Holder) == Offline {
				keeps -= len(p.Cells)
			}
		}
	}
	for _, l := range j.loansOf(n.Name) {
		fenced = fenced || l.Phase == "Fenced" || l.Phase == "WrittenOff"
		moves = moves || l.Phase == "Emptying" || l.Phase == ""
	}
	label := n.Labels["springtide.dev/offline"] == "true"
	if n.FencedTaint && !fenced {
		j.while(rulePair, "node "+n.Name+" fence", spanPair, "carries the taint springtide.dev/fenced, and no loan of it is Fenced or WrittenOff")
	}
	if home.Side == Offline {
		if !moves && (!n.HolderTaint || !label) {
			j.while(rulePair, "node "+n.Name, spanPair, "is at home in %s, and lacks its taint or label for offline", home.Name)
		}
		return
	}
	switch {
	case n.HolderTaint && !moves:
		j.while(rulePair, "node "+n.Name+" taint", spanPair, "carries the taint springtide.dev/holder, and nothing of it is lent or moves")
	case n.HolderTaint && home.ByCells && keeps > 0:
		j.while(rulePair, "node "+n.Name+" taint", spanPair, "carries the taint springtide.dev/holder, though its scheduler reads cells, and online keeps some: %s", s.inWords())
	case lent && !n.HolderTaint && !(home.ByCells && keeps > 0):
		j.while(rulePair, "node "+n.Name+" taint", spanPair, "is lent, and lacks the taint springtide.dev/holder: %s", s.inWords())
	}
	if label && !lent {
		j.while(rulePair, "node "+n.Name+" label", spanPair, "carries the label springtide.dev/offline, and nothing of it is lent")
	}
}

// lookWaits asks whether a pod waits next to room.
func (j *Judge) lookWaits(*Look) {
	var waiting []*Pod
	for _, p := range j.pods {
		if p.waits() && !p.Picky {
			waiting = append(waiting, p)
		}
	}
	j.saw(ruleWait, len(waiting))
	if len(waiting) == 0 {
		return
	}
	free := j.freeRoom()
	for _, p := range waiting {
		for _, node := range slices.Sorted(maps.Keys(free)) {
			if free[node].fits(p.Request) && p.selects(j.nodes[node].Labels) {
				text := "waits, and node " + node + " of its pool has room for it"
				if s := j.shareOf(j.nodes[node]); s != nil && len(s.Parcels) > 0 {
					text += " (its NodeShare: " + s.inWords() + ")"
				}
				j.while(ruleWait, p.Ref.String(), spanWait, "%s", text)
				break
			}
		}
	}
}

func (p *Pod) selects(labels map[string]string) bool {
	for k, v := range p.Selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// room is what a machine of online has free for pods that wait. Where other cells of it are away, home is what is left of those at home; else it is nil.
type room struct{ free, home Amount }

func (r *room) fits(a Amount) bool { return a.fits(r.free) && (r.home == nil || a.fits(r.home)) }

// freeRoom is what the machines have free, by name, that are at home with all their cells, or of which a parcel came home while others are still away.
func (j *Judge) freeRoom() map[string]*room {
	free := map[string]*room{}
	for name, n := range j.nodes {
		home := j.home(n)
		if home == nil || home.Side != Online || !n.Ready || n.Cordoned || n.ForeignTaint || n.FencedTaint {
			continue
		}
		away, back := map[int]bool{}, false
		if s := j.shareOf(n); s != nil {
			for i := range s.Parcels {
				p := &s.Parcels[i]
				if p.Next == "" && p.Holder == home.Name {
					back = true
					continue
				}
				mark(away, p.Cells)
			}
		}
		for _, l := range j.loansOf(name) {
			mark(away, l.Cells)
		}
		all := j.cells[name]
		switch {
		case len(away) == 0:
			free[name] = &room{free: maps.Clone(n.Room)}
		case back && len(away) < all:
			free[name] = &room{free: maps.Clone(n.Room), home: n.Room.part(all-len(away), all)}
		}
	}
	for _, p := range j.pods {
		r := free[p.Node]
		if r == nil || !p.there() || p.Filler {
			continue
		}
		for name, v := range p.Request {
			r.free[name] -= v
			if r.home != nil && p.Side != Offline {
				r.home[name] -= v
			}
		}
	}
	return free
}

func mark(set map[int]bool, cells []int) {
	for _, c := range cells {
		set[c] = true
	}
}

// part is an amount's part of so many cells of all.
func (a Amount) part(cells, all int) Amount {
	out := Amount{}
	for name, v := range a {
		out[name] = v * int64(cells) / int64(all)
	}
	return out
}
