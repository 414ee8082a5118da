package protocol

import (
	"errors"
	"fmt"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// flowOf lays out the requests of an action that passed the door.
func (s *Session) flowOf(a planner.Action) []request {
	switch a := a.(type) {
	case *planner.Unmark:
		return []request{just(unsteer(s.door.Pod(a.Pod.ID)))}
	case *planner.Scale:
		return s.scaleFlow(a)
	case *planner.GiveBack:
		return []request{just(&Write{Object: Object{ObjectHPA, a.HPA.String()}, If: Precondition{UID: a.ID}, Change: ReturnFloor{To: a.To}, See: SeeVersion})}
	case *planner.Move:
		return s.moveFlow(a)
	case *planner.Notice:
		return []request{just(noticeWrite(a))}
	case *planner.Eviction:
		return []request{{write: func() (*Write, error) {
			if err := s.waitsForDrain(a); err != nil {
				return nil, err
			}
			w := podWrite(a.Pod, EvictPod{}, SeeGone)
			if l := s.door.fresh.Loan(a.Loan); l != nil && !s.mayGoNow(a, l) {
				w.Drained = l.ID
			}
			return w, nil
		}}}
	case *planner.Kill:
		return []request{just(podWrite(a.Pod, KillPod{}, SeeGone))}
	case *planner.JobScale:
		return []request{just(&Write{Object: Object{ObjectJobMember, a.Member()}, If: Precondition{Size: fleet.KnownAt(a.From, s.plan.At)},
			Change: SetParallelism{From: a.From, To: a.To, Victims: a.Victims}, OnConflict: ConflictSameSize, See: SeeVersion})}
	case *planner.Filler:
		return []request{just(fillerWrite(a))}
	case *planner.Mark:
		return s.markFlow(a)
	case *planner.Resize:
		return s.resizeFlow(a)
	case *planner.Standby:
		return standbyFlow(a)
	}
	panic(fmt.Sprintf("an action that the protocol does not know: %T", a))
}

// just is a request whose write is known beforehand.
func just(w *Write) request {
	return request{write: func() (*Write, error) { return w, nil }}
}

func podWrite(p planner.PodRef, c Change, see Sight) *Write {
	return &Write{Object: Object{ObjectPod, p.Name.String()}, If: Precondition{UID: p.ID}, Change: c, See: see}
}

func unsteer(p *fleet.Pod) *Write {
	// A cost that another wrote over ours stays.
	return podWrite(planner.PodRef{Name: p.Name, ID: p.ID}, Unsteer{Cost: p.DeletionCost == VictimCost}, SeeVersion)
}

func noticeWrite(n *planner.Notice) *Write {
	if n.TakenBack {
		return podWrite(n.Pod, DropNotice{}, SeeVersion)
	}
	return podWrite(n.Pod, SetNotice{Loan: n.Loan, Epoch: n.Epoch, Deadline: n.Deadline, Again: n.Again}, SeeVersion)
}

func fillerWrite(f *planner.Filler) *Write {
	w := &Write{Object: Object{ObjectFiller, f.Name}, If: Precondition{Absent: true}, Change: CreateFiller{Filler: f}, See: SeeVersion}
	if f.Delete {
		w.If, w.Change, w.See = Precondition{UID: f.ID}, DeleteFiller{}, SeeGone
	}
	return w
}

// scaleFlow marks who leaves, then writes the replicas. Marks come first, so that the controller of the target finds them.
func (s *Session) scaleFlow(a *planner.Scale) []request {
	size := fleet.KnownAt(a.From, s.plan.At)
	o := Object{ObjectService, string(a.Service)}
	if a.By == fleet.ByHPAFloor {
		return []request{just(&Write{Object: o, If: Precondition{Size: size, LeaderEpoch: s.plan.LeaderEpoch}, Change: SetFloor{From: a.From, To: a.To}, See: SeeVersion})}
	}
	var out []request
	svc := s.door.fresh.Service(a.Service)
	leaves := func(id fleet.UID) bool {
		return slices.ContainsFunc(a.Victims, func(l planner.PodRef) bool { return l.ID == id })
	}
	if a.To < a.From {
		// Pods that a scale-in which never happened had chosen would go first now, in the place of those that are
		// chosen today. Pods of a scale-in that the ReplicaSet is still at keep their marks, and a pod without a note
		// of ours is another owner's.
		for i := range svc.Pods {
			p := &svc.Pods[i]
			if p.LeavesAt.OK && !p.Deleting && !leaves(p.ID) && !(svc.Shrinking() && svc.Goes(p)) {
				out = append(out, just(unsteer(p)))
			}
		}
	}
	for _, l := range a.Victims {
		if p := s.door.Pod(l.ID); p != nil && p.DeletionCost == VictimCost && p.LeavesAt.OK && p.LeavesAt.Value == a.To {
			continue
		}
		out = append(out, just(podWrite(l, Steer{At: a.To}, SeeNothing)))
	}
	return append(out, just(&Write{Object: o, If: Precondition{Size: size, LeaderEpoch: s.plan.LeaderEpoch}, Change: SetSize{From: a.From, To: a.To},
		OnConflict: ConflictSameSize, See: SeeVersion}))
}

// resizeFlow changes the requests of the template, or of each running pod. A pod that changed meanwhile ends it.
func (s *Session) resizeFlow(a *planner.Resize) []request {
	if a.By != fleet.RequestsInPlace {
		return []request{just(&Write{Object: Object{ObjectService, string(a.Service)}, If: Precondition{LeaderEpoch: s.plan.LeaderEpoch},
			Change: SetRequests{From: a.From, To: a.To}, See: SeeVersion})}
	}
	var out []request
	for _, p := range a.Pods {
		out = append(out, just(podWrite(p, ResizePod{From: a.From, To: a.To}, SeeVersion)))
	}
	return out
}

// standbyFlow takes a pod out of traffic, or brings it back. Its requests are noted before it leaves, and restored
// before it comes back. Stopped between two writes, the condition says where the pod is.
func standbyFlow(a *planner.Standby) []request {
	if a.Back {
		return []request{just(podWrite(a.Pod, RestoreCPU{}, SeeVersion)),
			just(podWrite(a.Pod, SetInService{In: true, Why: a.Why.Text()}, SeeVersion))}
	}
	return []request{just(podWrite(a.Pod, NoteCPU{}, SeeNothing)),
		just(podWrite(a.Pod, SetInService{Why: a.Why.Text()}, SeeVersion)),
		just(podWrite(a.Pod, LowerCPU{}, SeeVersion))}
}

// moveFlow writes the NodeShare first and the loan's phase after it: the share is the lock. Stopped between the two, the share is one step ahead,
// and the planner's repair brings both in line.
func (s *Session) moveFlow(m *planner.Move) []request {
	switch m.Kind {
	case planner.MoveBegin:
		return s.beginFlow(m)
	case planner.MoveAdopt:
		return append(s.orphanReads(m), s.beginFlow(m)...)
	case planner.MoveClear:
		return append(s.orphanReads(m), s.clearRequest(m, nil))
	}
	loan := s.door.fresh.Loan(m.Before.ID)
	if loan == nil { // where the door was waived
		return []request{{write: func() (*Write, error) { return nil, errors.New("the loan is gone") }}}
	}
	rests := []Rest{{Object: Object{ObjectLoan, string(m.Before.ID)}, UID: m.Before.UID, Version: loan.Version}}
	judged := Precondition{UID: m.Before.UID, Version: loan.Version, LeaderEpoch: s.plan.LeaderEpoch}
	share := s.shareRequest(&m.After, func() fleet.UID { return m.Before.UID }, rests, nil)
	status := s.loanRequest(m, func() Precondition { return judged })
	switch m.Kind {
	case planner.MoveForget:
		return []request{s.clearRequest(m, rests), just(&Write{Object: Object{ObjectLoan, string(m.Before.ID)},
			If: Precondition{UID: m.Before.UID, Version: loan.Version}, Change: DeleteLoan{}, See: SeeGone})}
	case planner.MoveNodeGone:
		return []request{status} // a machine that is gone took its share along
	case planner.MoveRepair:
		// A repair depends on the loan, so its version is asked first: a loan that was read too long ago must not undo
		// what the share says.
		return []request{status, share}
	}
	return []request{share, status}
}

// orphanReads ask for what a loan that is made again, or an entry that is cleared, depends on: the share as it was
// judged, and that the loans of the entries are gone. Loans and shares are watched apart: one that is not seen yet,
// though its share is, is no loan that is gone.
func (s *Session) orphanReads(m *planner.Move) []request {
	out := []request{s.shareRead(m.Node, m.Before.Node)}
	n := s.door.NodeNamed(m.Node)
	if n == nil {
		return out
	}
	for i := range n.Share.Parcels {
		e := n.Share.Parcels[i]
		if !fleet.Overlap(e.Cells, m.After.Cells) || s.door.fresh.Loan(e.Loan) != nil {
			continue
		}
		out = append(out, request{read: &Object{ObjectLoan, string(e.Loan)}, judge: func(now *Fact) error {
			if now.Exists && now.UID == e.LoanUID {
				return fmt.Errorf("loan %s is there", e.Loan)
			}
			return nil
		}})
	}
	return out
}

// shareRead asks whether the share of a machine is still as this plan knows it.
func (s *Session) shareRead(name string, id fleet.NodeID) request {
	return request{read: &Object{ObjectShare, name}, judge: func(now *Fact) error {
		if _, version, _ := s.shareOf(name, id); now.Version != version {
			return fmt.Errorf("the share of node %s changed since it was checked", name)
		}
		return nil
	}}
}

// beginFlow creates the loan before its first effect. When the share cannot be taken after all, the loan goes again: it had no effect.
func (s *Session) beginFlow(m *planner.Move) []request {
	o := Object{ObjectLoan, string(m.After.ID)}
	var made Precondition
	create := request{
		write: func() (*Write, error) {
			return &Write{Object: o, If: Precondition{Absent: true}, Change: CreateLoan{Loan: &m.After}}, nil
		},
		then: func(_ *Write, a Answer) {
			made = Precondition{UID: a.UID, Version: a.Version, LeaderEpoch: s.plan.LeaderEpoch}
		},
	}
	undo := func() *Write {
		return &Write{Action: m, Object: o, If: Precondition{UID: made.UID, Version: made.Version}, Change: DeleteLoan{}, Undoes: true}
	}
	return []request{create, s.shareRequest(&m.After, func() fleet.UID { return made.UID }, nil, undo), s.loanRequest(m, func() Precondition { return made })}
}

// loanRequest writes the status of a loan.
func (s *Session) loanRequest(m *planner.Move, at func() Precondition) request {
	return request{
		write: func() (*Write, error) {
			w := &Write{Object: Object{ObjectLoan, string(m.After.ID)}, If: at(), Change: SetLoan{Loan: &m.After}, See: SeeVersion}
			if _, version, ok := s.shareOf(m.Node, m.After.Node); ok {
				w.Rests = []Rest{{Object: Object{ObjectShare, m.Node}, Version: version}} // where the share says it already, nothing was written
			}
			return w, nil
		},
		then: func(*Write, Answer) {
			s.door.Wrote(m)
			s.drained[m.After.ID] = m.Kind == planner.MoveDrain
		},
	}
}

// shareOf is the NodeShare of a machine as this plan knows it: as it wrote it, or else as it was read. ok is false where there is none yet.
func (s *Session) shareOf(name string, id fleet.NodeID) (share fleet.Share, version string, ok bool) {
	if w, wrote := s.shares[name]; wrote {
		return w.share, w.version, w.node == id
	}
	n := s.door.NodeNamed(name)
	if n == nil {
		return fleet.Share{}, "", false
	}
	if !n.Share.Exists {
		return fleet.Share{}, n.Share.Former, false
	}
	return n.Share, n.Share.Version, n.ID == id
}

// shareRequest brings the entry of one loan to what the loan will say.
func (s *Session) shareRequest(l *fleet.Loan, uid func() fleet.UID, rests []Rest, undo func() *Write) request {
	return s.putShare(l.NodeName, l.Node, func(share *fleet.Share, exists bool) bool {
		e := fleet.ShareParcel{Cells: l.Cells, Holder: l.Holder(), Next: l.Next(), Loan: l.ID, LoanUID: uid(), Epoch: l.Epoch}
		if exists && !l.Phase.Ended() {
			// An adopted loan takes the place of entries that none answers for. One that begins finds none, but perhaps that of an earlier loan of its name. An entry of
			// another loan that has none of these cells gives way in any case: that loan writes its own again.
			share.Parcels = slices.DeleteFunc(share.Parcels, func(p fleet.ShareParcel) bool {
				return p.LoanUID != e.LoanUID && fleet.Overlap(p.Cells, e.Cells) &&
					((l.Phase.Away() || p.Loan == l.ID) && s.door.replaceable(&p) || s.door.misplaced(&p, e.Cells))
			})
		}
		own := func(p fleet.ShareParcel) bool { return p.LoanUID == e.LoanUID } // more than one where a hand wrote it twice
		i, entries := slices.IndexFunc(share.Parcels, own), len(share.Parcels)
		switch {
		case i >= 0:
			was := share.Parcels[i]
			// The report is the node side's.
			e.Clean, e.CleanEpoch, e.CleanAt = was.Clean, was.CleanEpoch, was.CleanAt
			share.Parcels = append(slices.DeleteFunc(share.Parcels, own), e)
			if exists && sameParcel(&was, &e) && len(share.Parcels) == entries {
				return false
			}
		case exists && l.Phase.Ended() && share.Over(l.Cells) != nil:
			return false // a loan that never had its share holds nothing to let go
		default:
			share.Parcels = append(share.Parcels, e)
		}
		slices.SortFunc(share.Parcels, func(a, b fleet.ShareParcel) int { return slices.Compare(a.Cells, b.Cells) })
		return true
	}, rests, undo)
}

// clearRequest removes the entry of an ended loan and notes how long its machine rests; a share that is gone, or of another machine, has none.
func (s *Session) clearRequest(m *planner.Move, rests []Rest) request {
	return s.putShare(m.Before.NodeName, m.Before.Node, func(share *fleet.Share, exists bool) bool {
		i := slices.IndexFunc(share.Parcels, func(p fleet.ShareParcel) bool { return p.LoanUID == m.Before.UID })
		if !exists || i < 0 || share.Parcels[i].Holder != m.Before.From && fleet.Overlap(share.Parcels[i].Cells, s.cellsOf(m.Before.Node)) {
			return false // where the borrower holds the cells, the entry outlives a loan that ended by hand
		}
		share.Parcels, share.Rest = slices.Delete(share.Parcels, i, i+1), m.Rest
		return true
	}, rests, nil)
}

// cellsOf are the cells that a machine has.
func (s *Session) cellsOf(id fleet.NodeID) []int {
	if n := s.door.fresh.Node(id); n != nil {
		return n.AllCells()
	}
	return nil
}

// putShare writes a share that a change makes of the known one. The version that was read goes along: of two writers one meets a conflict.
func (s *Session) putShare(name string, id fleet.NodeID, change func(share *fleet.Share, exists bool) bool, rests []Rest, undo func() *Write) request {
	var next fleet.Share
	return request{
		write: func() (*Write, error) {
			known, version, exists := s.shareOf(name, id)
			next = fleet.Share{Exists: true, Rest: known.Rest}
			if exists {
				next.Parcels = slices.Clone(known.Parcels)
			}
			if !change(&next, exists) {
				return nil, nil
			}
			w := &Write{Object: Object{ObjectShare, name}, If: Precondition{Version: version, Absent: version == "", LeaderEpoch: s.plan.LeaderEpoch},
				Change: SetShare{Node: id, Create: version == "", Parcels: next.Parcels, Rest: next.Rest}, See: SeeVersion, Rests: rests}
			if undo != nil {
				w.Undo = undo()
			}
			return w, nil
		},
		then: func(_ *Write, a Answer) {
			next.Version = a.Version
			s.shares[name] = wroteShare{node: id, share: next, version: a.Version}
		},
	}
}

func sameParcel(a, b *fleet.ShareParcel) bool {
	return slices.Equal(a.Cells, b.Cells) && a.Holder == b.Holder && a.Next == b.Next && a.Loan == b.Loan && a.Epoch == b.Epoch
}

// waitsForDrain holds back an eviction that follows the drain of its loan in this plan, when the drain was refused: the loan may have turned back,
// or got another deadline. A loan that was seen draining never turns back, and a pod that answered goes in any case.
func (s *Session) waitsForDrain(e *planner.Eviction) error {
	l := s.door.fresh.Loan(e.Loan)
	if l == nil || s.mayGoNow(e, l) || s.drained[e.Loan] {
		return nil
	}
	return fmt.Errorf("loan %s does not drain yet", e.Loan)
}

// waits reports whether an eviction waits for a drain that was not written.
func (s *Session) waits(e *planner.Eviction) bool { return s.waitsForDrain(e) != nil }

// mayGoNow reports whether an eviction needs no drain of this plan.
func (s *Session) mayGoNow(e *planner.Eviction, l *fleet.Loan) bool {
	p := s.door.Pod(e.Pod.ID)
	return l.Phase != fleet.Noticed || p != nil && p.NoticeEpoch > 0 && p.AckEpoch == p.NoticeEpoch
}

// markFlow brings a node's marks to what the loans say. Before marks by which pods may land there, or by which what is there ends, the share is
// asked for once more: a leader that was deposed while it carried its plan out would open a parcel that its successor recalled; the share, which
// every move writes first, shows it. No rule of the API server fences a Node, so the epoch of the last writer is part of the condition.
func (s *Session) markFlow(m *planner.Mark) []request {
	var out []request
	if s.opens(m) {
		out = append(out, s.shareRead(m.Node, m.ID))
	}
	w := &Write{Object: Object{ObjectNode, m.Node}, If: Precondition{UID: fleet.UID(m.ID), LeaderEpoch: s.plan.LeaderEpoch},
		Change: SetMarks{Want: m.Want}, See: SeeVersion}
	if s.opens(m) || s.closes(m) {
		w.OnConflict = ConflictSameLeader
	}
	return append(out, just(w))
}

// opens reports whether marks let pods land on a node, or end what is there, and the node does not have them already.
func (s *Session) opens(m *planner.Mark) bool {
	n := s.door.NodeNamed(m.Node)
	return n != nil && (m.Want.OfflineLabel && !n.Marks.OfflineLabel || !m.Want.HolderTaint && n.Marks.HolderTaint ||
		m.Want.Fence == fleet.FenceExecute && n.Marks.Fence != fleet.FenceExecute)
}

// closes reports whether marks keep pods off a node that the node lets land now. Any other change that meets a conflict
// waits for the next cycle: annotations can wait, and a node that changed might not have the marks any more that let
// the share go unread.
func (s *Session) closes(m *planner.Mark) bool {
	n := s.door.NodeNamed(m.Node)
	return n != nil && (m.Want.HolderTaint && !n.Marks.HolderTaint || !m.Want.OfflineLabel && n.Marks.OfflineLabel) && !s.mayOpen(m)
}

// mayOpen reports whether marks would let pods land on a node, whatever it has now.
func (s *Session) mayOpen(m *planner.Mark) bool {
	return m.Want.OfflineLabel || !m.Want.HolderTaint || m.Want.Fence == fleet.FenceExecute
}

// finished notes what the next cycle should not wait for.
func (s *Session) finished(a planner.Action) {
	if m, ok := a.(*planner.Move); ok && (m.Kind == planner.MoveRecall || m.Kind == planner.MoveAdopt || m.Kind == planner.MoveBegin && !m.After.Deadline.IsZero()) {
		s.soon = true
	}
}
