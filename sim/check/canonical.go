package check

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// fresh is above every number in use: a version, UID or epoch of a leader that is new. Canonical names make it small again.
const fresh int8 = 50

// The versions of an object. It only matters whether a remembered version is the API's: a version never comes back.
const (
	current int8 = 1 + iota
	outdated
)

// remembered is the canonical name of a version that a component remembers of an object.
func remembered(ver, now int8) int8 {
	switch ver {
	case 0:
		return 0
	case now:
		return current
	}
	return outdated
}

// used is a set of small numbers in use, which canonical renames to 1, 2, 3 in their order.
type used uint64

func (u *used) add(n int8) {
	if n > 0 {
		*u |= 1 << n
	}
}

// below is how many numbers of the set are smaller.
func (u used) below(n int8) int8 { return int8(bits.OnesCount64(uint64(u) & (1<<n - 1))) }

func (u used) rank(n int8) int8 {
	if n <= 0 {
		return 0
	}
	return u.below(n) + 1
}

// owners are those whose pods are distinguished by UIDs of their own: the service, each slot of a job, and ourselves.
const owners = 1 + jobPods + 1

// uidsPerOwner keeps the UIDs of different owners' pods apart.
const uidsPerOwner = 10

func ownerOf(slot int) int { return max(slot-onlinePods+1, 0) }

// names are the numbers that only mean something by being equal or in order: of loans, and of each owner's pods.
type names struct {
	loans used
	pods  [owners]used
}

// see collects the names of facts; in what controllers remember a notice keeps its loan's name in use.
func (n *names) see(f *facts, notices bool) {
	for i := range f.m {
		for k := range f.m[i].share.e {
			n.loans.add(f.m[i].share.e[k].loan)
		}
	}
	for i := range f.l {
		n.loans.add(f.l[i].uid)
	}
	for i := range f.p {
		n.pods[ownerOf(i)].add(f.p[i].uid)
		if notices {
			n.loans.add(f.p[i].loan)
		}
	}
}

// rename gives facts the names' ranks. A notice of a forgotten loan is no notice.
func (n *names) rename(f *facts) {
	for i := range f.m {
		for k := range f.m[i].share.e {
			e := &f.m[i].share.e[k]
			e.loan = n.loans.rank(e.loan)
		}
	}
	for i := range f.l {
		f.l[i].uid = n.loans.rank(f.l[i].uid)
	}
	for i := range f.p {
		p, owner := &f.p[i], ownerOf(i)
		if p.uid > 0 {
			p.uid = n.pods[owner].rank(p.uid) + int8(owner)*uidsPerOwner
		}
		if p.loan > 0 && n.loans&(1<<p.loan) == 0 {
			p.loan, p.epoch, p.ack, p.beat = 0, 0, 0, false
		}
		p.loan = n.loans.rank(p.loan)
	}
}

// age brings the versions that a view remembers to what they are worth by now.
func (f *facts) age(now *facts) {
	for i := range f.m {
		f.m[i].share.ver = remembered(f.m[i].share.ver, now.m[i].share.ver)
	}
	for i := range f.l {
		f.l[i].ver = remembered(f.l[i].ver, now.versionOf(f.l[i].uid))
	}
	f.ver = remembered(f.ver, now.ver)
}

// versionOf is the version of a loan; 0 where there is none.
func (f *facts) versionOf(uid int8) int8 {
	if l := f.loan(uid); l != nil {
		return l.ver
	}
	return 0
}

// settleVersions makes every version of the API's the current one.
func (f *facts) settleVersions() {
	for i := range f.m {
		f.m[i].share.ver = min(f.m[i].share.ver, current)
	}
	for i := range f.l {
		f.l[i].ver = min(f.l[i].ver, current)
	}
	f.ver = current
}

// rankLeaders names the epochs of leaders by their order. Of those that objects carry it only matters which controllers they refuse.
func (s *state) rankLeaders() {
	var leaders used
	for i := range s.c {
		leaders.add(s.c[i].leader)
	}
	for i := range s.f.m {
		m := &s.f.m[i]
		if m.leader = leaders.below(m.leader) + 1; m.uid == 0 {
			m.leader = 0
		}
		if m.share.ver > 0 {
			m.share.leader = leaders.below(m.share.leader) + 1
		}
	}
	for i := range s.f.l {
		if l := &s.f.l[i]; l.uid > 0 {
			l.leader = leaders.below(l.leader) + 1
		}
	}
	s.f.leader = leaders.below(s.f.leader) + 1
	for i := range s.c {
		s.c[i].leader = leaders.rank(s.c[i].leader)
	}
}

// canonical brings a state to the one that stands for all that differ from it by names alone.
func (x *model) canonical(s *state) {
	goes := -1 // the slot of the pod that is on its way
	var n names
	n.see(&s.f, false)
	for i := range s.c {
		c := &s.c[i]
		for _, id := range [...]viewID{c.plan, c.door, c.stalled} {
			n.see(&x.all[id], true)
		}
		n.loans.add(c.loan)
	}
	n.loans.add(s.report.loan)
	for i := range s.f.p {
		if s.f.p[i].state == waiting && s.f.p[i].uid == s.binding.pod {
			goes = i
		}
	}
	for i := range s.c {
		c := &s.c[i]
		for _, id := range [...]*viewID{&c.plan, &c.door, &c.stalled} {
			if *id == 0 {
				continue
			}
			f := x.all[*id]
			if id != &c.plan {
				f.age(&s.f) // a plan depends on no version
			}
			if n.rename(&f); f != x.all[*id] {
				*id = x.intern(f)
			}
		}
		c.held = remembered(c.held, s.f.versionOf(c.loan))
		c.loan = n.loans.rank(c.loan)
		for k := range c.wrote {
			c.wrote[k] = remembered(c.wrote[k], s.f.m[k].share.ver)
		}
	}
	s.report.ver = remembered(s.report.ver, s.f.m[s.report.machine].share.ver)
	n.rename(&s.f)
	if goes < 0 || s.f.m[s.binding.machine].uid != s.binding.node {
		s.binding = binding{} // in vain
	} else {
		s.binding.pod = s.f.p[goes].uid
	}
	s.report.loan = n.loans.rank(s.report.loan)
	s.f.settleVersions()
	s.rankLeaders()
	slices.SortFunc(s.f.p[:onlinePods], func(a, b pod) int {
		return cmp.Or(fleet.TrueFirst(a.state != absent, b.state != absent), cmp.Compare(a.uid, b.uid))
	})
	if !x.Skew && s.c[0].leader < s.c[1].leader {
		s.c[0], s.c[1] = s.c[1], s.c[0] // they are alike but for what they know: who led last stands first
	}
}
