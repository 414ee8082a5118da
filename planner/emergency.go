package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/reclaim"
)

// shortenNotices answers online pods that wait for room while machines for them are under notice: of those, in the
// order in which they will be home, it brings the deadlines of as many as the pods need down to the shortest notice
// there is. It is announced in the loan first, and the pods get a new notice. Shortened notices ignore heartbeats.
func (m *follower) shortenNotices() {
	s := m.in.Snapshot
	for i := range s.Pools {
		p := &s.Pools[i]
		if p.Class != fleet.Online || !m.in.permit(loansOf(p), gives).None() {
			continue
		}
		l := m.ledgerOf(p)
		short := m.lacking(l)
		if short.IsZero() {
			continue
		}
		for _, n := range m.homeward(p.ID) {
			if short.Floor().IsZero() {
				break
			}
			room := withGPUs(m.on(n.ID).Coming())
			if !reclaim.Helps(room, short) {
				continue
			}
			short = short.Sub(room)
			m.shortenOn(n)
		}
	}
}

// homeward lists the machines of a pool that are ready and whose loans are all on their way home: those that drain first, then by the time of their
// deadline. One that is not ready, or about to leave, brings no room, whenever it comes.
func (m *follower) homeward(pool fleet.PoolID) []*fleet.Node {
	s := m.in.Snapshot
	var out []*fleet.Node
	last := map[fleet.NodeID]time.Time{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if st := m.on(n.ID).Moves; n.Pool != pool || !n.Lasts() || st.Homeward == 0 || st.Homeward != st.Live {
			continue
		}
		out = append(out, n)
		for _, l := range m.noticedOn(n.ID) {
			if l.Deadline.After(last[n.ID]) {
				last[n.ID] = l.Deadline
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *fleet.Node) int {
		return cmp.Or(last[a.ID].Compare(last[b.ID]), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func (m *follower) shortenOn(n *fleet.Node) {
	s := m.in.Snapshot
	loans := m.noticedOn(n.ID)
	// In whole seconds, as loans and pods keep it: one that was announced a moment ago is not announced again.
	soon := s.At.Add(reclaim.EmergencyNotice + time.Second - time.Nanosecond).Truncate(time.Second)
	for _, l := range loans {
		m.shortened[l.ID] = l.Deadline
		if !l.Deadline.After(soon) || m.allAnswered(n.ID, loans) {
			continue
		}
		after, err := l.Announce(soon, reason.Of(reason.Emergency))
		m.step(passShorten, MoveAnnounce, *l, after, err)
		if err == nil {
			m.shortened[l.ID] = after.Deadline
		}
	}
}

// released is what of a parcel its borrower was seen to have left: its capacity less the parcel's part of what offline pods of the machine
// still ask for.
func (m *maker) released(l *fleet.Loan) fleet.Resources {
	var away int
	for _, o := range m.on(l.Node).Loans {
		if o.Phase.Away() {
			away += len(o.Cells)
		}
	}
	left := l.Capacity
	for _, p := range m.on(l.Node).Pods {
		if p.Class == fleet.PodOffline {
			left = left.Sub(p.Requests.Part(float64(len(l.Cells)) / float64(away)))
		}
	}
	return left.CPUAndMemory().Floor()
}

// allAnswered reports whether every offline pod of a machine acknowledged one of the notices.
func (m *follower) allAnswered(node fleet.NodeID, loans []*fleet.Loan) bool {
	return !slices.ContainsFunc(m.on(node).Pods, func(p *fleet.Pod) bool {
		return p.Class == fleet.PodOffline && !p.Deleting && !answers(p, loans)
	})
}
