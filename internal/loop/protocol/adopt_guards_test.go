package protocol

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// Each guard of an adoption by itself: the machine of the name, the notice of pods, whose the entries are, and what online borrowed.
func TestWhichAdoptionsPass(t *testing.T) {
	fromOffline := func(s *fleet.Snapshot, m *planner.Move) {
		s.Pools[1].Class, s.Pools[0].Class = fleet.Offline, fleet.Online
		e := &s.Nodes[0].Share.Parcels[0]
		m.Before.Deadline, m.After.Deadline, e.Holder, e.Next = doorTime.Add(time.Second), doorTime.Add(time.Second), "batch", ""
	}
	for _, c := range []struct {
		name string
		bend func(s *fleet.Snapshot, m *planner.Move)
		want string
	}{
		{"the machine has another name", func(s *fleet.Snapshot, _ *planner.Move) { s.Nodes[0].Name = "n9" }, "node n1 is gone"},
		{"a loan of the entry's name, with another UID, is on other cells", func(s *fleet.Snapshot, _ *planner.Move) {
			s.Loans = versioned().Loans
			s.Loans[0].UID, s.Loans[0].Cells = "lu9", []int{3}
		}, ""},
		{"the entry's loan goes on, on other cells", func(s *fleet.Snapshot, _ *planner.Move) {
			s.Loans = versioned().Loans
			s.Loans[0].Cells = []int{3}
		}, "the node's share has cells [0] in loan l1"},
		{"a loan on other cells goes on", func(s *fleet.Snapshot, _ *planner.Move) {
			s.Loans = versioned().Loans
			s.Loans[0].ID, s.Loans[0].UID, s.Loans[0].Cells = "l5", "lu5", []int{3}
		}, ""},
		{"an entry that is home follows one that is away", func(s *fleet.Snapshot, m *planner.Move) {
			home := fleet.ShareParcel{Cells: []int{1}, Holder: "web", Loan: "l5", LoanUID: "lu5"}
			s.Nodes[0].Share.Parcels, s.Pods[1].Node = append(s.Nodes[0].Share.Parcels, home), "u2"
			m.Before.Cells, m.After.Cells = []int{0, 1}, []int{0, 1}
		}, ""},
		{"an entry that is home, and no pod", func(s *fleet.Snapshot, _ *planner.Move) {
			s.Nodes[0].Share.Parcels[0].Holder, s.Pods[1].Node = "web", "u2"
		}, "nothing of its borrower"},
		{"an entry that is home, and a pod", func(s *fleet.Snapshot, _ *planner.Move) { s.Nodes[0].Share.Parcels[0].Holder = "web" }, ""},
		{"what online borrowed comes home at any time", fromOffline, ""},
		{"offline pods at home are no loan", func(s *fleet.Snapshot, m *planner.Move) {
			fromOffline(s, m)
			s.Nodes[0].Share.Parcels = nil
		}, "nothing of its borrower"},
	} {
		s, m := orphanFacts(), adoption()
		c.bend(s, &m)
		expect(t, c.name, judge(NewDoor(s).CheckMove(&m)), c.want)
	}
	for _, c := range []struct {
		name string
		bend func(n *fleet.Node, e *fleet.ShareParcel)
		want string
	}{
		{"the machine has another name", func(n *fleet.Node, _ *fleet.ShareParcel) { n.Name = "n9" }, "node n1 is gone"},
		{"the entry is of another name", func(_ *fleet.Node, e *fleet.ShareParcel) { e.Loan = "l9" }, "no entry"},
		{"one of its cells is there", func(n *fleet.Node, e *fleet.ShareParcel) { e.Holder, e.Cells = "batch", []int{0, 8} }, "pool batch holds"},
		{"its cells are there, and home", func(n *fleet.Node, e *fleet.ShareParcel) { e.Cells = []int{0, 8} }, ""},
		{"it is the second entry", func(n *fleet.Node, e *fleet.ShareParcel) {
			n.Share.Parcels = []fleet.ShareParcel{{Cells: []int{1}, Holder: "batch", Loan: "l5", LoanUID: "lu5"}, *e}
		}, ""},
	} {
		s, m := orphanFacts(), clearing()
		s.Nodes[0].Share.Parcels[0].Holder = "web"
		c.bend(&s.Nodes[0], &s.Nodes[0].Share.Parcels[0])
		expect(t, "clear: "+c.name, judge(NewDoor(s).CheckMove(&m)), c.want)
	}
}

// Of the entries of a machine those are asked for that the adoption replaces and whose loan is not seen; one that is passed over hides none that follows it.
func TestWhichLoansAnAdoptionAsksFor(t *testing.T) {
	seen, other := fleet.Loan{ID: "l5", UID: "lu9", Node: "u1", NodeName: "n1", Cells: []int{3}, From: "web", To: "batch", Phase: fleet.Lent}, fleet.ShareParcel{Cells: []int{5}, Holder: "batch", Loan: "l6", LoanUID: "lu6"}
	for name, c := range map[string]struct {
		entries []fleet.ShareParcel // before that of l1
		want    []string
	}{
		"alone":                                   {nil, []string{"NodeShare n1", "Loan l1"}},
		"after one of other cells":                {[]fleet.ShareParcel{other}, []string{"NodeShare n1", "Loan l1"}},
		"after one whose loan's name is seen":     {[]fleet.ShareParcel{{Cells: []int{0}, Holder: "batch", Loan: "l5", LoanUID: "lu5"}}, []string{"NodeShare n1", "Loan l1"}},
		"after another whose loan is not seen":    {[]fleet.ShareParcel{{Cells: []int{0}, Holder: "batch", Loan: "l7", LoanUID: "lu7"}}, []string{"NodeShare n1", "Loan l7", "Loan l1"}},
		"after one of other cells that lie apart": {[]fleet.ShareParcel{other, other}, []string{"NodeShare n1", "Loan l1"}},
	} {
		s, m := orphanFacts(), adoption()
		s.Loans = []fleet.Loan{seen}
		s.Nodes[0].Share.Parcels = append(c.entries, s.Nodes[0].Share.Parcels...)
		var got []string
		for _, r := range New(&planner.Plan{LeaderEpoch: 4}, s).orphanReads(&m) {
			got = append(got, r.read.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	s, m := orphanFacts(), adoption()
	s.Nodes = s.Nodes[1:]
	if got := New(&planner.Plan{LeaderEpoch: 4}, s).orphanReads(&m); len(got) != 1 {
		t.Errorf("of a machine that is gone %d objects are read, want its share", len(got))
	}
}

// The facts of an adoption are judged whole: a loan that is gone, or another one of the name, lets it pass; the loan
// itself does not, and neither does another share.
func TestWhatAnAdoptionReads(t *testing.T) {
	for name, c := range map[string]struct {
		now  Fact
		want string
	}{
		"gone":                      {Fact{}, ""},
		"gone, with the UID":        {Fact{UID: "lu1"}, ""},
		"there":                     {Fact{Exists: true, UID: "lu1"}, "loan l1 is there"},
		"another loan of the name":  {Fact{Exists: true, UID: "lu9"}, ""},
		"one whose UID is not told": {Fact{Exists: true}, ""},
	} {
		m := adoption()
		reads := New(&planner.Plan{LeaderEpoch: 4}, orphanFacts()).orphanReads(&m)
		expect(t, name, judge(reads[1].judge(&c.now)), c.want)
	}
}

// An entry gives way to a loan's own where it is another loan's, has cells of it, none answers for it, and the borrower has the cells or it is of the loan's name.
// Each part is asked by itself.
func TestEachReasonThatAnEntryStays(t *testing.T) {
	const own, there, gone = "lu2", "l5", "l9"
	loanThere := fleet.Loan{ID: there, UID: "lu5", Node: "u1", NodeName: "n1", Cells: []int{3}, From: "web", To: "batch", Phase: fleet.Lent}
	for _, c := range []struct {
		name  string
		phase fleet.Phase
		entry fleet.ShareParcel
		bend  func(l *fleet.Loan)
		stays bool
		write bool
	}{
		{"its loan is gone", fleet.Lent, fleet.ShareParcel{Cells: []int{0}, Loan: gone, LoanUID: "lu9"}, nil, false, true},
		{"its loan is gone, and it has one of the cells", fleet.Noticed, fleet.ShareParcel{Cells: []int{0, 1}, Loan: gone, LoanUID: "lu9"}, nil, false, true},
		{"its loan is gone, and it has other cells", fleet.Lent, fleet.ShareParcel{Cells: []int{1}, Loan: gone, LoanUID: "lu9"}, nil, true, true},
		{"its loan is there", fleet.Lent, fleet.ShareParcel{Cells: []int{0}, Loan: there, LoanUID: "lu5"}, func(l *fleet.Loan) { l.Cells = []int{0} }, true, true},
		{"its loan is there, and has one of the cells", fleet.Emptying, fleet.ShareParcel{Cells: []int{0, 1}, Loan: there, LoanUID: "lu5"}, func(l *fleet.Loan) { l.Cells = []int{0, 1} }, true, true},
		{"its loan is there, and has none of the cells", fleet.Lent, fleet.ShareParcel{Cells: []int{0}, Loan: there, LoanUID: "lu5"}, nil, false, true},
		{"its loan is there and has none of the cells, and the new one empties", fleet.Emptying, fleet.ShareParcel{Cells: []int{0}, Loan: there, LoanUID: "lu5"}, nil, false, true},
		{"its loan is there, and it has other cells", fleet.Lent, fleet.ShareParcel{Cells: []int{1}, Loan: there, LoanUID: "lu5"}, nil, true, true},
		{"its loan has another UID", fleet.Lent, fleet.ShareParcel{Cells: []int{0}, Loan: there, LoanUID: "lu0"}, nil, false, true},
		{"its loan is over", fleet.Lent, fleet.ShareParcel{Cells: []int{0}, Loan: there, LoanUID: "lu5"}, func(l *fleet.Loan) { l.Phase = fleet.Returned }, false, true},
		{"its loan is gone, and the new one empties", fleet.Emptying, fleet.ShareParcel{Cells: []int{0}, Loan: gone, LoanUID: "lu9"}, nil, true, true},
		{"an earlier loan of the name is gone, and the new one empties", fleet.Emptying, fleet.ShareParcel{Cells: []int{0}, Loan: "l2", LoanUID: "lu0"}, nil, false, true},
		{"an earlier loan of the name, of other cells", fleet.Emptying, fleet.ShareParcel{Cells: []int{1}, Loan: "l2", LoanUID: "lu0"}, nil, true, true},
		{"an earlier loan of the name, and the new one is over", fleet.Cancelled, fleet.ShareParcel{Cells: []int{0}, Loan: "l2", LoanUID: "lu0"}, nil, true, false},
		{"its loan is gone, and the new one is over", fleet.Returned, fleet.ShareParcel{Cells: []int{0}, Loan: gone, LoanUID: "lu9"}, nil, true, false},
		{"an earlier loan, of other cells, and the new one is over", fleet.Cancelled, fleet.ShareParcel{Cells: []int{1}, Loan: "l2", LoanUID: "lu0"}, nil, true, true},
	} {
		f := versioned()
		f.Loans = []fleet.Loan{loanThere}
		if c.bend != nil {
			c.bend(&f.Loans[0])
		}
		f.Nodes[0].Share.Parcels = []fleet.ShareParcel{c.entry}
		l := fleet.Loan{ID: "l2", UID: own, Node: "u1", NodeName: "n1", Cells: []int{0}, From: "web", To: "batch", Phase: c.phase, Epoch: 2}
		w, err := New(&planner.Plan{LeaderEpoch: 4}, f).shareRequest(&l, func() fleet.UID { return own }, nil, nil).write()
		if err != nil || (w != nil) != c.write {
			t.Errorf("%s: %+v, %v", c.name, w, err)
			continue
		}
		if w == nil {
			continue
		}
		parcels := w.Change.(SetShare).Parcels
		has := func(uid fleet.UID) bool {
			return slices.ContainsFunc(parcels, func(p fleet.ShareParcel) bool { return p.LoanUID == uid })
		}
		if has(c.entry.LoanUID) != c.stays || !has(own) {
			t.Errorf("%s: %+v, want the entry to stay: %t", c.name, parcels, c.stays)
		}
	}
}

// The requests of each kind of move, in their order; one whose loan is gone has none that is sent.
func TestWhatEachMoveWrites(t *testing.T) {
	for _, c := range []struct {
		kind planner.MoveKind
		gone bool
		want string
	}{
		{planner.MoveBegin, true, "CreateLoan, SetShare, SetLoan"},
		{planner.MoveAdopt, true, "read NodeShare n1, CreateLoan, SetShare, SetLoan"},
		{planner.MoveClear, true, "read NodeShare n1, SetShare"},
		{planner.MoveRecall, true, "the loan is gone"},
		{planner.MoveForget, true, "the loan is gone"},
		{planner.MoveRepair, true, "the loan is gone"},
		{planner.MoveNodeGone, true, "the loan is gone"},
		{planner.MoveRecall, false, "SetShare, SetLoan"},
		{planner.MoveForget, false, "SetShare, DeleteLoan"},
		{planner.MoveRepair, false, "SetLoan, SetShare"},
		{planner.MoveNodeGone, false, "SetLoan"},
	} {
		f := versioned()
		m := planner.Move{Kind: c.kind, Before: f.Loans[0], After: f.Loans[0], Node: "n1"}
		m.After.Epoch++
		e := &f.Nodes[0].Share.Parcels[0]
		if c.kind == planner.MoveForget || c.kind == planner.MoveClear {
			e.Holder = "web"
		}
		if c.gone {
			f.Loans = nil
			e.Cells = []int{3} // no loan is asked for
			m.After.Node, m.After.Cells = "u1", []int{0}
		}
		var got []string
		for _, r := range New(&planner.Plan{LeaderEpoch: 4}, f).moveFlow(&m) {
			switch w, err := writeOf(r); {
			case r.read != nil:
				got = append(got, "read "+r.read.String())
			case err != nil:
				got = append(got, err.Error())
			default:
				got = append(got, strings.Fields(line(Step{Write: w}))[0])
			}
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s, the loan is gone %t: %q, want %q", c.kind, c.gone, text, c.want)
		}
	}
}

func writeOf(r request) (*Write, error) {
	if r.write == nil {
		return nil, nil
	}
	return r.write()
}
