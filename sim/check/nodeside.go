package check

import (
	"slices"
	"time"

	nodeside "github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/fleet"
)

// margin is the node side's. A pod that was placed by older marks lands within it, so a pod that is on its way means
// that the margin is not over.
const margin = nodeside.DefaultMargin

// nodeFacts are what a node side decides on: the machine's marks and share, how many pods of each side it sees there, and whether one is on
// its way.
type nodeFacts struct {
	machine         machine
	at              int8
	online, offline int
	binds           bool
	acks            nodeside.Acks
}

// cleans says which parcels of a machine [nodeside.Machine.Judge] calls Clean now, in the order of its share.
func (x *model) cleans(k nodeFacts) [units]bool {
	if out, ok := x.judged[k]; ok {
		return out
	}
	var f facts
	f.m[k.at] = k.machine
	n := x.node(&f, k.at)
	if x.Mutant.Blind {
		n.Marks.HolderTaint, n.Marks.OfflineLabel = true, false
	}
	m := &nodeside.Machine{Node: &n, ClassOf: func(p fleet.PoolID) fleet.Class {
		return [...]fleet.Class{noSide: "", online: fleet.Online, offline: fleet.Offline}[poolOf(p)]
	}, Agent: !x.NoAgents, Ready: true, Acks: k.acks}
	for range k.online {
		m.Occupants = append(m.Occupants, nodeside.Occupant{Class: fleet.PodOnline, Ask: unit})
	}
	for range k.offline {
		m.Occupants = append(m.Occupants, nodeside.Occupant{Class: fleet.PodOffline, Ask: unit})
	}
	free, o := now.Add(-margin), nodeside.Options{Margin: margin}
	if k.binds || x.Bundled { // there the acknowledgement alone must do
		free = time.Time{}
	}
	if x.Mutant.Prompt {
		o.Margin = 0
	}
	var out [units]bool
	for i, e := range k.machine.share.e {
		if e.loan == 0 || e.next == noSide || e.clean == e.epoch {
			continue
		}
		p := n.Share.Find(loanID(e.loan, k.at, e.cells))
		out[i] = m.Judge(p, free, now, o).Clean
	}
	x.judged[k] = out
	return out
}

// look is what a node side sees of a machine: marks and share of one view, pods of another.
func (x *model) look(s *state, at int8, m machine, pods *facts) nodeFacts {
	acks := nodeside.AcksNone
	if x.Bundled {
		if acks = nodeside.AcksOwed; m.share.acked || s.i.over || x.Mutant.Unasked {
			acks = nodeside.AcksGiven
		}
	}
	m.leader, m.last, m.share.leader, m.share.acked, m.share.ver = 0, 0, 0, false, min(m.share.ver, 1)
	return nodeFacts{m, at, pods.on(at, online), pods.on(at, offline), s.binding.pod > 0 && s.binding.machine == at && !x.Bundled, acks}
}

// agents report what they see on their machines.
func (x *model) agents(s *state, i int8, one doer) bool {
	m := &s.f.m[i]
	if m.share.ver == 0 || m.share.node != m.uid {
		return true
	}
	clean := x.cleans(x.look(s, i, *m, &s.f))
	for k, e := range m.share.e {
		r := report{i, m.uid, e.loan, e.epoch, 0}
		if !clean[k] {
			continue
		}
		if !one(step{reports, i, e.loan}, func(n *state) { n.f.clean(r) }) {
			return false
		}
		if s.faults > 0 && s.report == (report{}) && !one(step{reportsLate, i, e.loan}, func(n *state) { n.report = r }) {
			return false
		}
	}
	return true
}

// judge is a controller that decides Clean on machines without an agent, a leader or one that takes itself for it. Its watches say which
// parcels move, and at which version of the share. Marks and pods it reads live, after it saw the marks closed; the status is written with
// that version.
func (x *model) judge(s *state, ci int, one doer) bool {
	c := &s.c[ci]
	if !x.NoAgents || c.mode == standby || c.stage != idle {
		return true
	}
	seen := x.sees(s, c)
	for i := range int8(x.Shape.machines()) {
		m, live := seen.m[i], &s.f.m[i]
		if m.uid == 0 || m.uid != live.uid || m.share.ver == 0 || m.share.node != m.uid {
			continue
		}
		pods := &s.f
		if x.Mutant.StaleList {
			pods = &seen
		}
		if !x.Mutant.StaleMarks {
			m.taint, m.label, m.fence = live.taint, live.label, live.fence
		}
		clean := x.cleans(x.look(s, i, m, pods))
		k := slices.Index(clean[:], true)
		if k < 0 {
			continue
		}
		r := report{i, m.uid, m.share.e[k].loan, m.share.e[k].epoch, m.share.ver}
		if !one(step{judges, int8(ci), i}, func(n *state) { x.arrive(n, r) }) {
			return false
		}
		if s.faults > 0 && s.report == (report{}) && !one(step{judgesLate, int8(ci), i}, func(n *state) { n.report = r }) {
			return false
		}
	}
	return true
}

// arrive writes a report. A controller's write carries the version of the share that it read.
func (x *model) arrive(n *state, r report) {
	if r.ver != 0 && r.ver != n.f.m[r.machine].share.ver {
		return
	}
	n.f.clean(r)
}

// clean writes a Clean report, unless the parcel is no longer in the share.
func (f *facts) clean(r report) {
	sh := &f.m[r.machine].share
	for i := range sh.e {
		if e := &sh.e[i]; sh.node == r.node && e.loan == r.loan {
			e.clean = r.epoch
			sh.ver = fresh
		}
	}
}
