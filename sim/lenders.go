package sim

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// tidal is Katalyst's tide: each ten seconds at most one machine changes sides. When an online pod finds no room, offline machines are turned
// one by one until it would fit; else the emptiest online machine is lent if its online pods fit elsewhere. There is no notice: what is on
// the machine is killed.
type tidal struct{ due time.Duration }

// tidalEvery is the pace of its loop.
const tidalEvery = 10 * time.Second

// Decide implements Policy.
func (l *tidal) Decide(w *World) {
	// The loop runs each ten seconds and the fleet changes each fifteen: one or two passes a tick.
	for l.due += tick; l.due >= tidalEvery; l.due -= tidalEvery {
		l.pass(w)
	}
	w.fillOffline(false)
}

func (l *tidal) pass(w *World) {
	if w.pending() {
		if n := w.fewestOffline(); n >= 0 && w.unplaced() > 0 {
			w.takeBack(n)
		}
		return
	}
	if n := w.emptiest(); n >= 0 && w.fitsElsewhere(n) {
		w.handOver(n)
	}
}

// unplaced are the cores of the online pods that wait and would find no room either once all offline pods are gone that
// have a notice on machines that are online's.
func (w *World) unplaced() int32 {
	sum, t := int32(0), w.rooms.table
	if !w.pending() {
		return sum
	}
	t.Would(func() bool {
		for i := range w.machines {
			if m := &w.machines[i]; m.home == onlinePool && m.toOnline && m.offline > 0 {
				for _, id := range m.pods {
					if p := &w.pods[id]; p.kind == offline && p.leaving {
						t.Remove(p.room)
					}
				}
			}
		}
		for _, r := range w.waiting {
			if p := &w.pods[r.id]; p.uid == r.uid {
				if _, ok := t.Place(w.rooms.services[p.owner]); !ok {
					sum += p.cores
				}
			}
		}
		return true
	})
	return sum
}

// pending reports whether an online pod waits.
func (w *World) pending() bool {
	return slices.ContainsFunc(w.waiting, func(r podRef) bool { return w.pods[r.id].uid == r.uid })
}

// fewestOffline is the lent machine with the least offline work on it, or -1.
func (w *World) fewestOffline() int32 {
	best := none
	for i := range w.machines {
		m := &w.machines[i]
		if m.home == onlinePool && m.toOffline && !m.toOnline && !m.gone && (best < 0 || m.offline < w.machines[best].offline) {
			best = int32(i)
		}
	}
	return best
}

// emptiest is the online machine with the least online work on it, or -1.
func (w *World) emptiest() int32 {
	best := none
	for i := range w.machines {
		m := &w.machines[i]
		if m.home == onlinePool && m.toOnline && !m.toOffline && !m.gone && m.offline == 0 && (best < 0 || m.online < w.machines[best].online) {
			best = int32(i)
		}
	}
	return best
}

// fitsElsewhere tries whether the online pods of a machine fit on the others.
func (w *World) fitsElsewhere(n int32) bool {
	t := w.rooms.table
	return t.Would(func() bool {
		t.SetOpen(w.rooms.ids[n], fleet.Online, false)
		for _, id := range w.machines[n].pods {
			p := &w.pods[id]
			if p.kind != online || p.leaving {
				continue
			}
			if _, ok := t.Place(w.rooms.services[p.owner]); !ok {
				return false
			}
		}
		return true
	})
}

// handOver gives a machine to offline; its online pods are killed and made again elsewhere.
func (w *World) handOver(n int32) {
	m := &w.machines[n]
	m.toOnline, m.toOffline, m.away = false, true, w.rooms.cells
	w.borrowed++
	w.acc.move(w)
	for _, id := range slices.Clone(m.pods) {
		if p := &w.pods[id]; p.kind == online && !p.leaving {
			w.kill(id)
		}
	}
	w.open(n)
}

// takeBack gives a machine back to online at once; what is on it is killed.
func (w *World) takeBack(n int32) {
	m := &w.machines[n]
	m.toOnline, m.toOffline, m.away = true, false, nil
	w.borrowed--
	for _, id := range slices.Clone(m.pods) {
		if w.pods[id].kind == offline {
			w.endMember(id)
		}
	}
	w.open(n)
}

// fillOffline starts members wherever they may land, the higher priority first; as guests of online machines, too, where they may be that.
func (w *World) fillOffline(guests bool) {
	for _, i := range w.byPriority() {
		j := &w.jobs[i]
		for len(j.members)+j.ending < int(j.most) && !j.done {
			if !w.addMember(i, w.rooms.members[i]) && !(guests && w.addMember(i, w.rooms.guests[i])) {
				break
			}
		}
	}
}

// tdm is Volcano's time division: in a fixed window of the night offline pods may land on online machines too; after it each job loses one
// pod a minute. An online pod that finds no room preempts.
type tdm struct{}

// The window of the night, in hours of the day.
const (
	tdmFrom = 22
	tdmTo   = 6
)

// Decide implements Policy.
func (tdm) Decide(w *World) {
	hour := w.now.UTC().Hour()
	open := hour >= tdmFrom || hour < tdmTo
	held := 0
	for i := range w.machines {
		m := &w.machines[i]
		if m.home != onlinePool || m.gone {
			continue
		}
		if m.toOffline != open {
			m.toOffline = open
			w.acc.move(w)
		}
		if m.offline > 0 {
			held++
		}
	}
	w.borrowed = held
	if open {
		if !w.pending() {
			w.fillOffline(true) // online pods stand before them in the queue
		}
	} else if w.tick%perMinute == 0 {
		for i := range w.jobs {
			w.endLent(i)
		}
	}
	w.preempt()
}

// endLent ends the youngest member of a job that is on an online machine.
func (w *World) endLent(i int) {
	for _, id := range slices.Backward(w.jobs[i].members) {
		if w.machines[w.pods[id].node].home == onlinePool {
			w.endMember(id)
			return
		}
	}
}

// preempt ends offline pods on the machines where the fewest have to go for each online pod that waits, as the scheduler's preemption does.
func (w *World) preempt() {
	need := w.unplaced()
	for need > 0 {
		best := none
		for i := range w.machines {
			m := &w.machines[i]
			if m.home == onlinePool && m.toOnline && w.staying(m) > 0 && (best < 0 || m.free+m.offline > w.machines[best].free+w.machines[best].offline) {
				best = int32(i)
			}
		}
		if best < 0 {
			return
		}
		for _, id := range slices.Clone(w.machines[best].pods) {
			if p := &w.pods[id]; p.kind == offline && !p.leaving && need > 0 {
				need -= p.cores
				w.endMember(id)
			}
		}
	}
}

// staying are the cores of offline pods on a machine without a notice.
func (w *World) staying(m *machine) int32 {
	sum := int32(0)
	for _, id := range m.pods {
		if p := &w.pods[id]; p.kind == offline && !p.leaving {
			sum += p.cores
		}
	}
	return sum
}
