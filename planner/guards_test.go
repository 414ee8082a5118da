package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// A pool's view counts its loans, phase by phase; loans of other pools are none of its.
func TestTheViewCountsLoans(t *testing.T) {
	w := newWorld(8)
	for i, phase := range []fleet.Phase{fleet.Returned, fleet.Lent, fleet.Noticed, fleet.Draining, fleet.Fenced, fleet.WrittenOff, fleet.Lent} {
		w.loan(i, phase, 2)
	}
	w.s.Loans[0].From = "another"
	w.s.Loans[6].From = "another"
	w.s.Frozen = "so that no loan takes a step"
	p := made(w.input())
	i := slices.IndexFunc(p.Pools, func(v PoolView) bool { return v.Pool == "online" })
	v := &p.Pools[i]
	if v.Lent[fleet.KindNode] != 3 || v.LentCapacity.CPU != 3*64000 || v.Promised.CPU != 2*64000 || v.Lost.CPU != 2*64000 || v.WrittenOff != 1 {
		t.Errorf("lent %v (%s), promised %s, lost %s, written off %d", v.Lent, v.LentCapacity, v.Promised, v.Lost, v.WrittenOff)
	}
	moving := 0
	for _, l := range w.s.Loans {
		if l.From == "online" && l.Phase.Moving() {
			moving++
		}
	}
	if moving < 2 || v.Moving[fleet.KindNode] != moving {
		t.Errorf("moving %v, want %d", v.Moving, moving)
	}
}

// Parcels in motion use up what may move at once.
func TestWhatMovesUsesUpTheBudget(t *testing.T) {
	for moving, want := range map[int]int{0: 2, 1: 1, 2: 0} {
		w := newWorld(8).service("web", 6, 7, 1, 25)
		w.s.Pools[1].MovesAtOnce = 2
		for i := range moving {
			w.loan(i, fleet.Emptying, 1)
		}
		if p := made(w.input()); moves(p, MoveBegin) != want {
			t.Errorf("%d parcels move: %d loans begin, want %d", moving, moves(p, MoveBegin), want)
		}
	}
}

// A service that is passed over, for whatever reason, hides none that follows it.
func TestEachServiceIsScaled(t *testing.T) {
	for name, bend := range map[string]func(s *fleet.Service){
		"its HPA is gone":       func(s *fleet.Service) { s.Actuation, s.HPA = fleet.ByHPAFloor, nil },
		"its size is not known": func(s *fleet.Service) { s.Desired = fleet.Known[int32]{} },
		"it is blocked":         func(s *fleet.Service) { s.Blocked = fleet.Problem{Reason: "HPAFound", Message: "x"} },
		"it is observed":        func(s *fleet.Service) { s.Mode = fleet.Observe },
		"it has its size":       func(s *fleet.Service) { s.Desired.Value, s.Min, s.Max = 3, 3, 3 },
		"it is raised by its HPA": func(s *fleet.Service) {
			s.Actuation, s.HPA = fleet.ByHPAFloor, &fleet.HPAFacts{Name: "hpa", Min: 1, Max: 50}
		},
	} {
		w := newWorld(6).service("api", 3, 0, 3, 60).service("web", 3, 0, 3, 60)
		bend(w.service1("api"))
		p := made(w.input())
		raised := func(id fleet.ServiceID) bool {
			return slices.ContainsFunc(p.Raises, func(a Scale) bool { return a.Service == id })
		}
		if !raised("shop/web") {
			t.Errorf("%s: the next one is not raised: %+v", name, p.Raises)
		}
		if byHPA := name == "it is raised by its HPA"; raised("shop/api") != byHPA {
			t.Errorf("%s: it is raised: %t", name, raised("shop/api"))
		}
	}
}

// A returned parcel is held for the whole of the claim hold, and no longer.
func TestTheClaimIsHeldForItsTime(t *testing.T) {
	for short, want := range map[time.Duration]int{time.Second: 0, 0: 1, -time.Minute: 1} {
		w := newWorld(3)
		l := w.loan(1, fleet.Returned, 2)
		l.Since = t0.Add(-DefaultOptions().ClaimHold + short)
		l.CleanAt = l.Since
		if p := made(w.input()); moves(p, MoveForget) != want {
			t.Errorf("%s before the end of the hold: %d loans are forgotten", short, moves(p, MoveForget))
		}
	}
}

// Each part of an entry that differs from its loan is drift; a loan that is over, or whose machine is gone, has none.
func TestDriftCounts(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(w *world, l *fleet.Loan, e *fleet.ShareParcel)
		want int
	}{
		"they agree":              {func(*world, *fleet.Loan, *fleet.ShareParcel) {}, 0},
		"another holder":          {func(_ *world, _ *fleet.Loan, e *fleet.ShareParcel) { e.Holder = "x" }, 1},
		"another next":            {func(_ *world, _ *fleet.Loan, e *fleet.ShareParcel) { e.Next = "x" }, 1},
		"another epoch":           {func(_ *world, _ *fleet.Loan, e *fleet.ShareParcel) { e.Epoch++ }, 1},
		"the loan is over":        {func(_ *world, l *fleet.Loan, e *fleet.ShareParcel) { l.Phase, e.Holder = fleet.Returned, l.From }, 0},
		"it is over, and is lent": {func(_ *world, l *fleet.Loan, _ *fleet.ShareParcel) { l.Phase = fleet.Returned }, 1},
		"no entry":                {func(w *world, _ *fleet.Loan, _ *fleet.ShareParcel) { w.s.Nodes[1].Share.Parcels = nil }, 1},
		"no entry, and over": {func(w *world, l *fleet.Loan, _ *fleet.ShareParcel) {
			w.s.Nodes[1].Share.Parcels, l.Phase = nil, fleet.Returned
		}, 0},
		"the machine is gone":    {func(w *world, _ *fleet.Loan, _ *fleet.ShareParcel) { w.s.Nodes = w.s.Nodes[:1] }, 0},
		"an entry of no loan":    {func(w *world, _ *fleet.Loan, _ *fleet.ShareParcel) { w.s.Loans = nil }, 1},
		"an entry of a vanished": {func(_ *world, _ *fleet.Loan, e *fleet.ShareParcel) { e.Loan = "loan-x" }, 2},
	} {
		w := newWorld(3)
		l := w.loan(1, fleet.Lent, 2)
		c.bend(w, l, &w.s.Nodes[1].Share.Parcels[0])
		w.s.Sort()
		if got := Drift(&w.s); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Reports for a share's epoch are void once the loan is above it; one of the same epoch says nothing of another.
func TestTheEpochOfARepair(t *testing.T) {
	for epoch, want := range map[int64]int64{1: 2, 2: 2, 3: 4, 7: 8} {
		w := newWorld(3)
		w.loan(1, fleet.Lent, 2)
		e := &w.s.Nodes[1].Share.Parcels[0]
		e.Next, e.Epoch = "online", epoch
		p := made(w.input())
		i := slices.IndexFunc(p.Moves, func(m Move) bool { return m.Kind == MoveRepair })
		if i < 0 || p.Moves[i].After.Epoch != want {
			t.Errorf("a share of epoch %d: %+v, want epoch %d", epoch, p.Moves, want)
		}
	}
}

// Pods that need no notice hide none that does, and the furthest heartbeat counts.
func TestEachPodOfANoticedMachine(t *testing.T) {
	w := newWorld(4).service("web", 1, 3, 1, 4)
	l := w.loan(3, fleet.Noticed, 2)
	l.Asked = "an operator, so that it does not turn back"
	l.Since, l.FirstNotice, l.Deadline, l.Due = t0.Add(-15*time.Second), t0.Add(-15*time.Second), t0.Add(105*time.Second), t0.Add(time.Hour)
	for i := range 4 {
		w.worker(3, i)
	}
	pods := w.s.Pods[len(w.s.Pods)-4:]
	pods[0].Deleting = true
	for i := 1; i < 3; i++ {
		pods[i].NoticeLoan, pods[i].NoticeEpoch, pods[i].NoticeDeadline = l.ID, 2, fleet.KnownAt(l.Deadline, t0)
		pods[i].Heartbeat = fleet.KnownAt(t0.Add(time.Duration(5-i)*time.Minute), t0)
	}
	p := made(w.input())
	if len(p.Notices) != 1 || p.Notices[0].Pod.ID != "w-3-3" {
		t.Errorf("notices %+v, want one for the last", p.Notices)
	}
	i := slices.IndexFunc(p.Moves, func(m Move) bool { return m.Kind == MoveAnnounce && m.Before.ID == l.ID })
	if i < 0 || !p.Moves[i].After.Deadline.Equal(t0.Add(4*time.Minute)) {
		t.Errorf("%+v, want the deadline of the furthest heartbeat", p.Moves)
	}
}

// Pods without a notice, and of other classes, hide none whose notice stands no more.
func TestEachNoticeThatStandsNoMoreIsTakenBack(t *testing.T) {
	w := newWorld(4).service("web", 1, 0, 1, 4)
	w.loan(2, fleet.Lent, 3)
	w.loan(3, fleet.Lent, 3)
	for _, machine := range []int{2, 3} {
		w.worker(machine, 0)
		w.worker(machine, 1)
	}
	for i := range w.s.Pods {
		if p := &w.s.Pods[i]; p.Class == fleet.PodOffline && strings.HasSuffix(p.Name.Name, "1") {
			p.NoticeLoan, p.NoticeEpoch = "loan-"+fleet.LoanID(p.NodeName), 2
		}
	}
	p := made(w.input())
	back := 0
	for _, n := range p.Notices {
		if n.TakenBack {
			back++
		}
	}
	if back != 2 {
		t.Errorf("%d of 2 notices are taken back: %+v", back, p.Notices)
	}
}

// The least important work goes first, by its job's priority, or by its own where it has no job.
func TestTheLeastImportantGoesFirst(t *testing.T) {
	w := newWorld(4)
	l := w.loan(3, fleet.Draining, 2)
	l.Deadline, l.Since = t0.Add(-time.Second), t0.Add(-time.Second)
	job := w.s.Jobs[0]
	job.ID, job.Priority = "batch/high", 100
	w.s.Jobs = append(w.s.Jobs, job)
	for i := range 3 {
		w.worker(3, i)
	}
	pods := w.s.Pods[len(w.s.Pods)-3:]
	pods[0].Job, pods[1].Job, pods[1].Rank = "batch/high", "", 50
	var got []fleet.UID
	for _, e := range made(w.input()).Evictions {
		got = append(got, e.Pod.ID)
	}
	if want := []fleet.UID{"w-3-2", "w-3-1", "w-3-0"}; !slices.Equal(got, want) {
		t.Errorf("evicted %v, want %v", got, want)
	}
}

// Nothing is lent that the tide wants back before the machines were empty, lent for their term, and home again.
func TestLendingLooksBeyondTheTerm(t *testing.T) {
	begun := func(in time.Duration) (int, time.Duration) {
		w := newWorld(8).service("web", 6, 7, 1, 25)
		if in > 0 {
			w.rises = []rise{{"shop/web", in, 320}}
		}
		p := made(w.input())
		i := slices.IndexFunc(p.Pools, func(v PoolView) bool { return v.Pool == "online" })
		return moves(p, MoveBegin), p.Pools[i].Lead.Total()
	}
	n, lead := begun(0)
	if n == 0 {
		t.Fatal("nothing is lent in a calm that lasts")
	}
	span := DefaultOptions().EmptyFor + 30*time.Minute + lead
	if n, _ := begun(span - 6*time.Minute); n > 0 {
		t.Errorf("%d machines are lent, and the flood comes within %s", n, span)
	}
	if n, _ := begun(span + 15*time.Minute); n == 0 {
		t.Errorf("nothing is lent, and the flood comes after %s", span)
	}
}

// A notice is taken back where the room lasts for the term and the way home; not where the flood comes within them.
func TestATurnBackLooksBeyondTheTerm(t *testing.T) {
	turned := func(in time.Duration) (int, time.Duration) {
		w := newWorld(8).service("web", 6, 7, 1, 25)
		if in > 0 {
			w.rises = []rise{{"shop/web", in, 300}}
		}
		l := w.loan(3, fleet.Noticed, 2)
		l.Since, l.FirstNotice, l.Deadline, l.Due = t0.Add(-time.Minute), t0.Add(-time.Minute), t0.Add(time.Minute), t0.Add(time.Hour)
		w.worker(3, 0)
		p := made(w.input())
		i := slices.IndexFunc(p.Pools, func(v PoolView) bool { return v.Pool == "online" })
		return moves(p, MoveTurnBack), p.Pools[i].Lead.Total()
	}
	n, lead := turned(0)
	if n != 1 {
		t.Fatalf("%d notices are taken back in a calm that lasts", n)
	}
	span := 30*time.Minute + lead
	if n, _ := turned(span - 6*time.Minute); n > 0 {
		t.Errorf("a notice is taken back, and the flood comes within %s", span)
	}
	if n, _ := turned(span + 30*time.Minute); n != 1 {
		t.Errorf("no notice is taken back, and the flood comes after %s", span)
	}
}

// The pods that are there show what became of those that the ladder ended: killed ones, ending ones, both, or none.
func TestWhatBecameOfTheEnded(t *testing.T) {
	for _, c := range []struct {
		killed, ending int
		want           string
	}{
		{0, 0, "no offline pod is left on it"},
		{2, 0, "2 pods were killed and are still there"},
		{0, 3, "3 evicted pods are still there"},
		{2, 1, "2 killed and 1 evicted pods are still there"},
		{1, 2, "1 killed and 2 evicted pods are still there"},
		{1, 1, "1 killed and 1 evicted pods are still there"},
	} {
		w := newWorld(4).service("web", 1, 3, 1, 4)
		w.s.Pods[0].Deleting = true
		w.loan(3, fleet.Fenced, 2)
		for i := range c.killed + c.ending {
			w.worker(3, i)
			p := &w.s.Pods[len(w.s.Pods)-1]
			p.Deleting, p.Killed = true, i < c.killed
		}
		in := w.input()
		if got := (&follower{newMaker(&in)}).ended(w.s.Nodes[3].ID).Text(); got != c.want {
			t.Errorf("%d killed, %d ending: %q", c.killed, c.ending, got)
		}
	}
}

// A clean parcel goes home behind closed marks, unless its machine or its borrower is gone, or the borrower is none of offline's.
func TestWhatIsShut(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(w *world, l *fleet.Loan)
		want bool
	}{
		"closed":                               {func(*world, *fleet.Loan) {}, true},
		"marked":                               {func(w *world, _ *fleet.Loan) { w.s.Nodes[3].Marks.OfflineLabel = true }, false},
		"a pod is on it":                       {func(w *world, _ *fleet.Loan) { w.worker(3, 0) }, false},
		"a pod is on it, and a socket goes":    {func(w *world, l *fleet.Loan) { w.worker(3, 0); l.Kind = fleet.KindSocket }, true},
		"marked, and the borrower is gone":     {func(w *world, l *fleet.Loan) { w.s.Nodes[3].Marks.OfflineLabel, l.To = true, "gone" }, true},
		"marked, and the borrower is online's": {func(w *world, l *fleet.Loan) { w.s.Nodes[3].Marks.OfflineLabel, l.To = true, "online" }, true},
		"the machine is gone":                  {func(_ *world, l *fleet.Loan) { l.Node = "uid-gone" }, true},
		"both are gone":                        {func(_ *world, l *fleet.Loan) { l.Node, l.To = "uid-gone", "gone" }, true},
	} {
		w := newWorld(4)
		l := *w.loan(3, fleet.Draining, 2)
		c.bend(w, &l)
		in := w.input()
		if got := (&follower{newMaker(&in)}).shut(&l); got != c.want {
			t.Errorf("%s: shut %t", name, got)
		}
	}
}

// Loans on their way home are those that were recalled: neither lent ones nor ones that begin or are over.
func TestWhichLoansAreOnTheirWayHome(t *testing.T) {
	for phase, want := range map[fleet.Phase]int{fleet.Emptying: 0, fleet.Lent: 0, fleet.Noticed: 1, fleet.Draining: 1, fleet.Fenced: 1, fleet.WrittenOff: 1, fleet.Returned: 0, fleet.Cancelled: 0} {
		w := newWorld(4)
		w.loan(3, phase, 2)
		in := w.input()
		if got := (&follower{newMaker(&in)}).homewardOn(w.s.Nodes[3].ID); len(got) != want {
			t.Errorf("%s: %d loans are on their way home", phase, len(got))
		}
	}
}

// Pods that are ending hide none that is due a notice or an eviction, and the first loan of a machine speaks for all of
// them.
func TestEachPodOfADrainingMachine(t *testing.T) {
	w := newWorld(4)
	w.loan(3, fleet.Draining, 2)
	second := w.s.Loans[0]
	w.s.Loans[0].Kind, w.s.Loans[0].Cells = fleet.KindSocket, []int{0, 1}
	second.ID, second.Kind, second.Cells = "loan-m03-second", fleet.KindSocket, []int{2, 3}
	w.s.Loans = append(w.s.Loans, second)
	e := &w.s.Nodes[3].Share.Parcels[0]
	e.Cells = []int{0, 1}
	other := *e
	other.Cells, other.Loan = []int{2, 3}, second.ID
	w.s.Nodes[3].Share.Parcels = append(w.s.Nodes[3].Share.Parcels, other)
	for i := range w.s.Loans {
		w.s.Loans[i].Deadline, w.s.Loans[i].Due = t0.Add(time.Minute), t0.Add(time.Hour)
	}
	for i := range 4 {
		w.worker(3, i)
		p := &w.s.Pods[len(w.s.Pods)-1]
		switch i {
		case 0:
			p.Deleting = true
		case 1: // it answered
			p.NoticeLoan, p.NoticeEpoch, p.AckEpoch = "loan-m03", 2, 2
		case 2: // it had its notice, and did not answer
			p.NoticeLoan, p.NoticeEpoch = second.ID, 2
		}
	}
	p := made(w.input())
	if len(p.Evictions) != 1 || p.Evictions[0].Pod.ID != "w-3-1" {
		t.Errorf("evictions %+v, want that of the pod that answered", p.Evictions)
	}
	if len(p.Notices) != 1 || p.Notices[0].Pod.ID != "w-3-3" || p.Notices[0].Loan != "loan-m03" {
		t.Errorf("notices %+v, want one for the pod that was not told, by the first loan", p.Notices)
	}
}

// A loan that takes its step, or waits, hides none that follows it.
func TestEachLoanIsFollowed(t *testing.T) {
	for name, bend := range map[string]func(w *world, first *fleet.Loan){
		"its machine is gone":     func(w *world, first *fleet.Loan) { first.Node = "uid-gone" },
		"it is over":              func(_ *world, first *fleet.Loan) { first.Phase = fleet.Cancelled },
		"it is to be repaired":    func(w *world, _ *fleet.Loan) { w.s.Nodes[0].Share.Parcels[0].Epoch = 9 },
		"its pool is gone":        func(_ *world, first *fleet.Loan) { first.From = "gone" },
		"an operator asks for it": func(_ *world, first *fleet.Loan) { first.Asked = "maintenance" },
		"online borrowed it": func(w *world, first *fleet.Loan) {
			w.s.Nodes[0].Pool, first.From, first.To, w.s.Nodes[0].Share.Parcels[0].Holder = "offline", "offline", "online", "online"
		},
		"it waits for nothing": func(*world, *fleet.Loan) {},
		"it never had its share": func(w *world, first *fleet.Loan) {
			first.Phase, w.s.Nodes[0].Share.Parcels[0].Loan = fleet.Emptying, "another"
		},
		"it empties and is frozen": func(w *world, first *fleet.Loan) { first.Phase, w.s.Frozen = fleet.Emptying, "a change" },
	} {
		w := newWorld(4)
		w.loan(0, fleet.Lent, 2)
		w.loan(2, fleet.Draining, 2).Node = "uid-vanished"
		bend(w, &w.s.Loans[0])
		p := Make(w.input())
		stepped := slices.ContainsFunc(p.Moves, func(m Move) bool { return m.Kind == MoveNodeGone && m.Before.ID == "loan-m02" })
		withheld := slices.ContainsFunc(p.Withheld, func(x Withheld) bool { return x.Subject.String() == "loan loan-m02" })
		if frozen := w.s.Frozen != ""; stepped == frozen || withheld != frozen {
			t.Errorf("%s: the next loan steps %t, is withheld %t", name, stepped, withheld)
		}
	}
}

// A machine is occupied by online pods where online keeps nothing of it; what others than online lend, or a machine that is gone, is not.
func TestWhatOnlineOccupies(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(w *world, l *fleet.Loan)
		want bool
	}{
		"a pod is on it":               {func(*world, *fleet.Loan) {}, true},
		"no pod is on it":              {func(w *world, _ *fleet.Loan) { w.s.Pods = nil }, false},
		"an offline pod is on it":      {func(w *world, _ *fleet.Loan) { w.s.Pods = nil; w.worker(3, 0) }, false},
		"online keeps a socket":        {func(w *world, l *fleet.Loan) { w.s.Loans[0].Kind, w.s.Loans[0].Cells = fleet.KindSocket, []int{2, 3} }, false},
		"its pool is gone":             {func(_ *world, l *fleet.Loan) { l.From = "gone" }, false},
		"its pool is one of offline's": {func(_ *world, l *fleet.Loan) { l.From = "offline" }, false},
		"the machine is gone":          {func(w *world, _ *fleet.Loan) { w.s.Nodes = w.s.Nodes[:3] }, false},
	} {
		w := newWorld(4).service("web", 1, 3, 1, 4)
		l := *w.loan(3, fleet.Emptying, 1)
		c.bend(w, &l)
		in := w.input()
		if got := newMaker(&in).occupied(&l); got != c.want {
			t.Errorf("%s: occupied %t", name, got)
		}
	}
}

// A machine without an agent on which an online pod landed late comes home by a whole notice, and what pods and node side need after it.
func TestTheRecallForALateBind(t *testing.T) {
	w := newWorld(4).service("web", 1, 3, 1, 4)
	w.loan(3, fleet.Lent, 2)
	w.s.Nodes[3].AgentAlive, w.s.Nodes[3].AgentKnown = false, false
	in := w.input()
	p := made(in)
	i := slices.IndexFunc(p.Moves, func(m Move) bool { return m.Kind == MoveRecall && m.Before.ID == "loan-m03" })
	if i < 0 {
		t.Fatalf("no recall: %+v", p.Moves)
	}
	if l := p.Moves[i].After; !l.Deadline.Equal(t0.Add(2*time.Minute)) || !l.Due.Equal(l.Deadline.Add(in.Options.Drain+in.Options.Clean)) {
		t.Errorf("deadline %s, due %s", l.Deadline, l.Due)
	}
}
