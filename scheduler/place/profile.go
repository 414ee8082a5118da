package place

import (
	"github.com/springtide/springtide/fleet"
)

// profile is all of a shape that pods which come and go do not change: which machines it may use, as a bitmap, and the terms of the score that
// do not depend on room. Classes that differ by their requests alone share one.
type profile struct {
	class ClassID // one of its classes
	// at is the position in the journal of machines that it is in line with.
	at    uint64
	bits  []uint64
	score []int32 // by node
	// why is the filter that removed each machine, and removed how many each of them removed.
	why     []Filter
	removed byFilter
	// zone is the zone in which a machine that may be used counts, inZone how many of them there are in each.
	zone, inZone []int32
	// version is that of the weights.
	version int
}

type profileKey struct {
	side         side
	pool, holder fleet.PoolID
	stable, gpus bool
	model        string
	needs        string // selector, preferences and tolerations
}

// profileOf interns the profile of a class.
func (t *Table) profileOf(s *Shape, id ClassID) int32 {
	k := profileKey{side: sideOf(s.Side), pool: s.Pool, holder: s.Holder, stable: s.Stable, gpus: s.Requests.GPU > 0}
	if k.gpus {
		k.model = s.GPUModel
	}
	if n := s.Needs; n != nil {
		only := Needs{Selector: n.Selector, Preferred: n.Preferred, Tolerations: n.Tolerations}
		t.key = only.appendKey(t.key[:0])
		k.needs = string(t.key)
	}
	p, ok := t.profileAt[k]
	if !ok {
		p = int32(len(t.profiles))
		t.profiles = append(t.profiles, profile{class: id})
		t.profileAt[k] = p
	}
	return p
}

// settleProfile brings a profile in line with the machines.
func (t *Table) settleProfile(id int32) *profile {
	p := &t.profiles[id]
	nodes, ok := t.relabels.since(p.at)
	if !ok || p.version != t.weightsVersion {
		p.bits, p.why, p.removed = make([]uint64, (len(t.nodes)+63)/64), make([]Filter, len(t.nodes)), byFilter{}
		p.score, p.zone, p.inZone = make([]int32, len(t.nodes)), make([]int32, len(t.nodes)), make([]int32, len(t.zones))
		for i := range p.zone {
			p.zone[i] = none
		}
		for i := range t.nodes {
			t.profileNode(p, int32(i))
		}
	} else {
		for len(p.score) < len(t.nodes) {
			p.score, p.zone, p.why = append(p.score, 0), append(p.zone, none), append(p.why, FilterNone)
		}
		for len(p.inZone) < len(t.zones) {
			p.inZone = append(p.inZone, 0)
		}
		for len(p.bits)*64 < len(t.nodes) {
			p.bits = append(p.bits, 0)
		}
		for k, i := range nodes {
			if t.relabels.isLast(p.at+uint64(k), i) {
				t.profileNode(p, i)
			}
		}
	}
	p.at, p.version = t.relabels.end(), t.weightsVersion
	return p
}

func (t *Table) profileNode(p *profile, i int32) {
	c := &t.classes[p.class]
	row := 2*i + int32(sideOf(c.shape.Side))
	mask := uint64(1) << (i & 63)
	p.bits[i>>6] &^= mask
	if p.zone[i] != none {
		p.inZone[p.zone[i]]--
		p.zone[i] = none
	}
	why := FilterClosed
	if t.open[row] {
		why = t.fixed(c, row)
	}
	if why == FilterNone {
		p.bits[i>>6] |= mask
		p.zone[i] = t.nodes[i].zoneAt
		p.inZone[p.zone[i]]++
		s := Score{}
		t.fixedScore(&s, c, row)
		s.sum()
		p.score[i] = int32(s.Total)
	}
	if !t.nodes[i].known {
		why = FilterNone // it counts nowhere
	}
	p.removed[p.why[i]]--
	p.removed[why]++
	p.why[i] = why
}
