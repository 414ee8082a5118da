package check

import (
	"fmt"
	"math/bits"

	"github.com/springtide/springtide/fleet"
)

func phaseOf(l *loan) fleet.Phase { return fleet.Phases()[l.phase] }

// lent are the cells of a machine that offline holds: those of its share's parcels that say so, and at home in its pool all others.
func (x *model) lent(f *facts, machine int8) int8 {
	m := &f.m[machine]
	var set int8
	if x.Borrow {
		set = x.Shape.all()
	}
	if m.share.ver == 0 || m.share.node != m.uid {
		return set
	}
	for _, e := range m.share.e {
		if set &^= e.cells; e.holder == offline {
			set |= e.cells
		}
	}
	return set
}

// home is whose the machines are.
func (x *model) home() int8 {
	if x.Borrow {
		return offline
	}
	return online
}

// taking counts the pods that take room of a machine.
func (f *facts) taking(machine int8) int {
	return f.on(machine, online) + f.on(machine, offline) + f.on(machine, noSide)
}

// on counts the pods on a machine that take room of a side.
func (f *facts) on(machine int8, side int8) int {
	n := 0
	for i := range f.p {
		p := &f.p[i]
		if (p.state == bound || p.state == ending) && p.machine == machine && sideOf(i) == side {
			n++
		}
	}
	return n
}

func sideOf(slot int) int8 {
	switch {
	case slot < onlinePods:
		return online
	case slot < fillerSlot:
		return offline
	}
	return noSide
}

func size(cells int8) int { return bits.OnesCount8(uint8(cells)) }

// checkState looks at what must hold in every state: no pod is on cells that another side holds, and the ledger is not
// overspent.
func (x *model) checkState(f *facts) {
	for i := range int8(x.Shape.machines()) {
		if f.m[i].uid == 0 {
			continue
		}
		lent := size(x.lent(f, i))
		if n := f.on(i, offline); n > lent {
			x.breaks("two holders: %d offline pods are on machine m%d, of which offline holds %d cells", n, i, lent)
		}
		if n := f.on(i, online); n > x.Shape.units()-lent {
			x.breaks("two holders: %d online pods are on machine m%d, of which online holds %d cells", n, i, x.Shape.units()-lent)
		}
	}
	for i := range f.l {
		for k := range i {
			a, b := &f.l[i], &f.l[k]
			if a.uid > 0 && b.uid > 0 && a.node == b.node && a.cells&b.cells != 0 && phaseOf(a).Away() && phaseOf(b).Away() {
				x.breaks("two holders: loans %d and %d are both away with cells of machine m%d", b.uid, a.uid, a.machine)
			}
		}
	}
	if f.taken > budget {
		x.breaks("the ledger is overspent: %d pods were taken in a minute of at most %d", f.taken, budget)
	}
}

// checkShare looks at a NodeShare that is about to be written: the holder of a parcel changes after a Clean report of
// its epoch alone, and cells that came home for a claimant go to no other.
func (x *model) checkShare(s *state, machine int8, old, next *share) {
	if next.node != s.f.m[machine].uid {
		return // nothing is held of a machine that is gone
	}
	if old.ver > 0 && old.node == next.node {
		for _, o := range old.e {
			if o.loan == 0 {
				continue
			}
			holder := x.home() // of cells that are in no parcel
			for _, n := range next.e {
				if n.loan == o.loan || n.cells&o.cells != 0 && s.f.loan(o.loan) == nil { // it is made again
					holder = n.holder
				}
			}
			if holder != o.holder && o.clean != o.epoch {
				x.breaks("the holder of loan %d's cells changed without a Clean report of epoch %d", o.loan, o.epoch)
			}
		}
	}
	for _, n := range next.e {
		if n.loan > 0 && n.holder != x.home() && !hadEntry(old, n.loan) && !x.madeAgain(s, old, &n) {
			x.breaks("loan %d takes cells that the borrower holds from the beginning", n.loan)
		}
		for i := range s.f.l {
			l := &s.f.l[i]
			if l.uid > 0 && l.uid != n.loan && l.machine == machine && l.node == next.node && l.cells&n.cells != 0 && !hadEntry(old, n.loan) && x.open(l) {
				x.breaks("a claim is lost: loan %d takes cells that loan %d brought home for a claimant", n.loan, l.uid)
			}
		}
	}
}

// madeAgain reports whether a loan takes the place of others that are gone, whose borrower held the cells.
func (x *model) madeAgain(s *state, old *share, n *entry) bool {
	held := int8(0)
	for _, o := range old.e {
		if o.loan > 0 && o.holder == n.holder && s.f.loan(o.loan) == nil {
			held |= o.cells
		}
	}
	return n.cells&^held == 0
}

func hadEntry(sh *share, loan int8) bool {
	for _, e := range sh.e {
		if e.loan == loan {
			return true
		}
	}
	return false
}

// open reports whether a loan came home to online and its room is not taken yet, nor had the time to.
func (x *model) open(l *loan) bool {
	return !x.Borrow && phaseOf(l) == fleet.Returned && !l.claimed && !l.old
}

// checkForget: a claim stands until its room was taken or its time is over.
func (x *model) checkForget(s *state, l *loan) {
	if x.open(l) && s.f.m[l.machine].uid == l.node {
		x.breaks("a claim is lost: loan %d was deleted before its room was taken", l.uid)
	}
	if phaseOf(l).Away() && s.f.m[l.machine].uid == l.node {
		x.breaks("loan %d was deleted while the borrower holds its cells", l.uid)
	}
}

// checkEviction: only offline pods are evicted, and none before the latest announced deadline, of which it has a notice, unless it answered the notice of this
// epoch. A pod that could get no notice is waited for as long as the deadline is put off.
func (x *model) checkEviction(s *state, c *controller, p *pod, l int8) {
	for i := range s.f.p[:onlinePods] {
		if &s.f.p[i] == p {
			x.breaks("online pod web-%02d was evicted", p.uid)
		}
	}
	fast := x.Skew && c == &s.c[1]
	noticed := false
	for i := range s.f.l {
		o := &s.f.l[i]
		if o.uid == 0 || o.machine != p.machine || o.node != s.f.m[p.machine].uid {
			continue
		}
		if p.loan == o.uid && p.epoch == o.epoch {
			if noticed = true; p.ack == p.epoch {
				return
			}
		}
	}
	for i := range s.f.l {
		o := &s.f.l[i]
		if o.uid == 0 || o.machine != p.machine || o.node != s.f.m[p.machine].uid {
			continue
		}
		if o.uid == l && (o.wait == past || o.wait == near && fast) {
			if o.sleptWait {
				x.breaks("pod %d was evicted on a deadline of loan %d that ran out under a freeze", p.uid, l)
			}
			if !noticed && o.announced != extended && !o.old {
				x.breaks("pod %d was evicted by loan %d, and was never told of it", p.uid, l)
			}
			return
		}
	}
	x.breaks("pod %d was evicted before the latest announced deadline of loan %d, and had not answered", p.uid, l)
}

// checkKill: a kill was announced, and its time has come; not while all was frozen.
func (x *model) checkKill(s *state, l int8) {
	switch o := s.f.loan(l); {
	case o != nil && o.kill != past:
		x.breaks("a pod was killed before the announced time of loan %d", l)
	case o != nil && o.sleptKill:
		x.breaks("a pod was killed at a time of loan %d that came under a freeze", l)
	}
}

// unsettled names what is not in order in a state that lasts: a loan on its way, a share that tells another story, a pod that waits.
func (x *model) unsettled(f *facts) string {
	for i := range f.l {
		l := &f.l[i]
		if l.uid == 0 {
			continue
		}
		if x.Borrow && phaseOf(l) == fleet.Noticed && f.on(l.machine, online) > 0 {
			continue // what online borrows it keeps as long as it needs it
		}
		if phaseOf(l).Moving() || phaseOf(l) == fleet.WrittenOff {
			return "loan " + string(loanID(l.uid, l.machine, l.cells)) + " stays " + string(phaseOf(l))
		}
	}
	for i := range f.m {
		m := &f.m[i]
		for _, e := range m.share.e {
			if m.uid > 0 && m.share.node == m.uid && e.loan > 0 && f.loan(e.loan) == nil {
				return fmt.Sprintf("the share of m%d names loan %d, which is gone", i, e.loan)
			}
		}
	}
	if n := f.members[0]; x.Gang && n > 0 && n < jobPods {
		return "a gang is asked for in part"
	}
	for i := range f.p[:onlinePods] {
		if f.p[i].state == waiting {
			return "an online pod waits for room"
		}
	}
	return ""
}
