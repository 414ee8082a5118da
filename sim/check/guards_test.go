package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// blur alters what plans are made from and what they are checked against alike: a guard that both have.
func blur(change func(*fleet.Snapshot)) Mutant {
	return Mutant{Input: func(in *planner.Input) { change(in.Snapshot) }, Door: change}
}

// drop takes a kind of move out of all plans.
func drop(kind planner.MoveKind) Mutant {
	return Mutant{Plan: func(p *planner.Plan, _ *fleet.Snapshot) {
		p.Moves = slices.DeleteFunc(p.Moves, func(m planner.Move) bool { return m.Kind == kind })
	}}
}

// anyVersion takes the demand for a version off a write.
func anyVersion(w *protocol.Write) {
	w.If.Version, w.If.Absent = "", w.If.Absent && w.Object.Kind != protocol.ObjectShare
}

// anyVersionOf does so for the writes of one kind of object.
func anyVersionOf(kind protocol.ObjectKind) func(*protocol.Write) {
	return func(w *protocol.Write) {
		if w.Object.Kind == kind {
			anyVersion(w)
		}
	}
}

// The searches in which a controller dies, in which another leads while it stops for a while, and in which its watches stall and it stops.
var (
	crash = Options{Shape: Sockets, Turns: 1, Faults: 1, Only: []kind{crashes, fails}}
	usurp = Options{Shape: Sockets, Turns: 1, Faults: 1, Pauses: 1, Only: []kind{usurps}}
	stall = Options{Shape: Sockets, Turns: 1, Faults: 1, Pauses: 1, Only: []kind{lags}}
	// One leads after a freeze while the other still acts.
	thawed = Options{Shape: Sockets, Turns: 1, Faults: 1, Freezes: 1, Only: []kind{usurps}}
)

// unmanaged machines have no agents; controllers decide Clean for them.
func unmanaged(only ...kind) Options {
	return Options{Shape: Machines, Turns: 1, Faults: 1, NoAgents: true, Only: only}
}

// bundled is where the bundled scheduler alone binds.
func bundled(faults int, only ...kind) Options {
	return Options{Shape: Machines, Turns: 1, Faults: faults, NoAgents: true, Bundled: true, Only: only}
}

// guard is what keeps the protocol safe, with the search that finds it missing.
type guard struct {
	name   string
	within Options
	breaks string
	mutant Mutant
}

var guards = []guard{
	{"a Clean report counts for its epoch alone", Options{Shape: Sockets, Turns: 1}, "without a Clean report", blur(func(s *fleet.Snapshot) {
		for i := range s.Nodes {
			for k := range s.Nodes[i].Share.Parcels {
				if e := &s.Nodes[i].Share.Parcels[k]; e.Clean {
					e.CleanEpoch = e.Epoch
				}
			}
		}
	})},
	{"an acknowledgement counts for its epoch alone", Options{Shape: Sockets, Turns: 1, Faults: 1}, "before the latest announced deadline", blur(func(s *fleet.Snapshot) {
		for i := range s.Pods {
			if p := &s.Pods[i]; p.AckEpoch > 0 {
				p.AckEpoch = p.NoticeEpoch
			}
		}
	})},
	{"no eviction before the deadline", Options{Shape: Sockets, Turns: 1}, "before the latest announced deadline", blur(func(s *fleet.Snapshot) {
		for i := range s.Loans {
			if l := &s.Loans[i]; !l.Deadline.IsZero() {
				l.Deadline = now.Add(-brief)
			}
		}
	})},
	{"a deadline counts for pods that know it", Options{Shape: Sockets, Turns: 1}, "was never told of it", Mutant{Input: func(in *planner.Input) {
		for i := range in.Snapshot.Pods {
			for k := range in.Snapshot.Loans {
				if p, l := &in.Snapshot.Pods[i], &in.Snapshot.Loans[k]; p.Node == l.Node && !l.Deadline.IsZero() && !now.Before(l.Deadline) && p.NoticeLoan == "" {
					p.NoticeLoan, p.NoticeEpoch = l.ID, l.Epoch
				}
			}
		}
	}}},
	{"a loan belongs to one node UID", Options{Shape: Sockets, Turns: 1, Faults: 1}, "", blur(func(s *fleet.Snapshot) {
		for i := range s.Loans {
			for k := range s.Nodes {
				if s.Nodes[k].Name == s.Loans[i].NodeName {
					s.Loans[i].Node = s.Nodes[k].ID
				}
			}
		}
	})},
	{"a claim is kept for its time", Options{Shape: Sockets, Turns: 1}, "a claim is lost", Mutant{Input: func(in *planner.Input) { in.Options.ClaimHold = 0 }}},
	{"the due time never moves later", Options{Shape: Sockets, Turns: 1}, "due time", Mutant{Plan: func(p *planner.Plan, _ *fleet.Snapshot) {
		for i := range p.Moves {
			if m := &p.Moves[i]; m.Kind == planner.MoveAnnounce && !m.Before.Due.IsZero() {
				m.After.Due = m.Before.Due.Add(time.Hour)
			}
		}
	}}},
	{"resourceVersions are compared", Options{Shape: Sockets, Turns: 1, Faults: 1, Pauses: 1}, "", Mutant{Write: anyVersion}},
	{"the door asks whether decisions still hold", usurp, "", Mutant{Passes: func(planner.Action) bool { return true }}},
	{"a machine is opened only while it is lent", usurp, "two holders", Mutant{Passes: func(a planner.Action) bool {
		m, ok := a.(*planner.Mark)
		return ok && m.Want.OfflineLabel
	}}},
	{"the node side says Clean only behind closed marks", stall, "two holders", Mutant{Blind: true}},
	{"the node side waits for what schedulers still bind", Options{Shape: Machines, Turns: 1, Faults: 1, Only: []kind{bindsLate}}, "two holders",
		Mutant{Prompt: true}},
	{"a controller waits for what schedulers still bind", unmanaged(bindsLate), "two holders", Mutant{Prompt: true}},
	{"a hand-over waits for the acknowledgement", bundled(1, bindsLate), "two holders", Mutant{Unasked: true}},
	{"an acknowledgement waits for the answers to bindings", bundled(1, bindsLate), "two holders", Mutant{Hasty: true}},
	{"a dead instance counts until its last request is over", bundled(2, bindsLate, falls), "two holders", Mutant{Eager: true}},
	{"a share counts for the node of its UID alone", bundled(1, dies), "two holders", Mutant{Namesake: true}},
	{"a parcel whose share was handed over is not taken back by its loan", bundled(1, fails), "two holders", Mutant{Plan: func(p *planner.Plan, _ *fleet.Snapshot) {
		for i := range p.Moves {
			if mv := &p.Moves[i]; mv.Kind == planner.MoveRepair {
				mv.After.Phase = mv.Before.Phase
			}
		}
	}}},
	{"a controller counts the pods of a list of its own", unmanaged(lags), "two holders", Mutant{StaleList: true}},
	{"a controller reads the marks live", unmanaged(lags), "two holders", Mutant{StaleMarks: true}},
	{"the disruption ledger is asked", Options{Shape: Sockets, Turns: 2}, "ledger", blur(func(s *fleet.Snapshot) {
		for i := range s.Pools {
			s.Pools[i].Ledger = fleet.Ledger{}
		}
	})},
	{"what ran out under a freeze is announced again", Options{Shape: Sockets, Turns: 1, Freezes: 1}, "under a freeze",
		Mutant{Input: func(in *planner.Input) { in.Thawed = time.Time{} }}},
	{"a leader uses the freeze that another saw", thawed, "under a freeze", Mutant{Heedless: true}},
	{"a share is written over the version that was judged", stall, "", Mutant{Write: anyVersionOf(protocol.ObjectShare)}},
	{"a loan is written over the version that was judged", stall, "", Mutant{Write: anyVersionOf(protocol.ObjectLoan)}},
	{"evictions follow the write of their drain", stall, "before the latest announced deadline", Mutant{Write: func(w *protocol.Write) { w.Drained = "" }}},
	{"an eviction names the pod that was judged", stall, "was never told of it", without("EvictPod.UID")},
	{"a share is created where there is none", usurp, "without a Clean report", without("SetShare.Absent")},
	{"the share is read before marks open a machine", usurp, "two holders", Mutant{Unread: true}},
	{"what a crash left is repaired", crash, "no progress", drop(planner.MoveRepair)},
	{"a machine that vanished ends its loan", Options{Shape: Sockets, Turns: 1, Faults: 1, Only: []kind{dies}}, "no progress", drop(planner.MoveNodeGone)},
	{"a share is written before its loan's phase", crash, "takes cells that the borrower holds", reversed("SetShare before SetLoan")},
	{"a loan is forgotten for an adopted one once that one is away", stall, "a claim is lost", Mutant{Plan: forgetWhatIsAdopted}},
	{"what no loan answers for is adopted", Options{Shape: Sockets, Turns: 1, Faults: 1, Only: []kind{erases}}, "no progress", drop(planner.MoveAdopt)},
	{"an entry of a loan that is gone is cleared", Options{Shape: Sockets, Turns: 1, Faults: 1, Only: []kind{erases}}, "no progress", drop(planner.MoveClear)},
	{"the ladder ends a wait", Options{Shape: Sockets, Turns: 1}, "no progress", drop(planner.MoveDrain)},
}

// TestEachGuardIsNeeded takes the guards away, one at a time: the search must find what each one keeps.
func TestEachGuardIsNeeded(t *testing.T) {
	for _, g := range guards {
		t.Run(g.name, func(t *testing.T) {
			o := g.within
			if raceEnabled && o.Faults+o.Pauses > 0 {
				t.Skip("a search of this size is for runs without the race detector")
			}
			o.Mutant, o.Most = g.mutant, 1_000_000
			r := Run(o)
			if r.Broken == "" || !strings.Contains(r.Broken, g.breaks) {
				t.Fatalf("found %q in %s (%s), want a property that breaks (%s)", r.Broken, r.Line(), o, g.breaks)
			}
			t.Logf("%s, after %s\n%s", o, r.Line(), r.Explain())
		})
	}
}

// secondLines are guards that others stand in front of: without them the search finds nothing, until the one in front is gone too.
var secondLines = []struct {
	name         string
	within       Options
	breaks       string
	front, alone Mutant // the guard in front is gone, and both are
}{
	{"a cell is in one parcel alone", Options{Shape: Sockets, Turns: 1, Faults: 1, Only: []kind{lags}}, "two holders",
		Mutant{Passes: moves(planner.MoveBegin), Input: withoutOrphans}, Mutant{Passes: moves(planner.MoveBegin), Input: withoutOrphans, Overlap: true}},
	{"a lending waits for the taint", Options{Shape: Machines, Turns: 1, Faults: 1, Only: []kind{fails}}, "two holders",
		Mutant{Blind: true}, Mutant{Blind: true, Plan: lendWhatIsClean, Passes: moves(planner.MoveLend)}},
	{"leaderEpoch never falls", usurp, "without a Clean report", Mutant{Write: anyVersion}, Mutant{Write: anyVersion, AnyLeader: true}},
}

// moves lets those of a kind pass the door.
func moves(kind planner.MoveKind) func(planner.Action) bool {
	return func(a planner.Action) bool {
		m, ok := a.(*planner.Move)
		return ok && m.Kind == kind
	}
}

// withoutOrphans hides from plans what shares say in loans that are not seen: machines of such shares are not lent.
func withoutOrphans(in *planner.Input) {
	s := in.Snapshot
	for i := range s.Nodes {
		share := &s.Nodes[i].Share
		share.Parcels = slices.DeleteFunc(slices.Clone(share.Parcels), func(e fleet.ShareParcel) bool { return s.Orphaned(&e) })
	}
}

// forgetWhatIsAdopted forgets a loan in the same plan that adopts its parcel.
func forgetWhatIsAdopted(p *planner.Plan, s *fleet.Snapshot) {
	for i := range s.Loans {
		l := &s.Loans[i]
		if l.Phase == fleet.Returned && slices.ContainsFunc(p.Moves, func(m planner.Move) bool {
			return m.Kind == planner.MoveAdopt && m.After.Node == l.Node && fleet.Overlap(m.After.Cells, l.Cells)
		}) {
			p.Moves = append(p.Moves, planner.Move{Kind: planner.MoveForget, Before: *l, After: *l, Node: l.NodeName})
		}
	}
}

// lendWhatIsClean lends what the node side reported, whatever the marks and the pods are.
func lendWhatIsClean(p *planner.Plan, s *fleet.Snapshot) {
	for i := range s.Loans {
		l := &s.Loans[i]
		n := s.Node(l.Node)
		if n == nil || slices.ContainsFunc(p.Moves, func(m planner.Move) bool { return m.Before.ID == l.ID }) {
			continue
		}
		if after, err := l.Lend(s.At, n.Share.Find(l.ID)); err == nil {
			p.Moves = append(p.Moves, planner.Move{Kind: planner.MoveLend, Before: *l, After: after, Node: l.NodeName})
		}
	}
}

// TestSecondLines takes a guard and the one in front of it away: a property breaks, and sooner than without the one in front alone.
func TestSecondLines(t *testing.T) {
	for _, g := range secondLines {
		t.Run(g.name, func(t *testing.T) {
			o := g.within
			o.Mutant, o.Most = g.alone, 100_000
			both := Run(o)
			if !strings.Contains(both.Broken, g.breaks) || both.Broken == "" {
				t.Fatalf("found %q in %s (%s), want %s", both.Broken, both.Line(), o, g.breaks)
			}
			o.Mutant, o.Most = g.front, both.States
			if r := Run(o); r.Broken != "" {
				t.Errorf("it is not missed: without the guard in front alone\n%s", r.Explain())
			}
			t.Logf("%s, after %s\n%s", o, both.Line(), both.Explain())
		})
	}
}
