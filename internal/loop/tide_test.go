package loop_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/looptest"
	"github.com/springtide/springtide/planner"
)

// run turns a new loop in the world for a while.
func run(t *testing.T, w *looptest.World, epoch int64, d time.Duration) *loop.Loop {
	t.Helper()
	l := loop.New(w.Ports(), loop.DefaultOptions())
	goOn(t, w, l, epoch, d)
	return l
}

// goOn turns a loop that ran before.
func goOn(t *testing.T, w *looptest.World, l *loop.Loop, epoch int64, d time.Duration) {
	t.Helper()
	if err := w.Run(l, epoch, w.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.Records {
		if faults := r.Plan.Unresolved(); len(faults) > 0 {
			t.Fatalf("%s: the planner withholds from itself: %+v", r.At, faults)
		}
	}
}

// witness checks every snapshot for what must never be seen, and remembers what was.
type witness struct {
	t      *testing.T
	w      *looptest.World
	phases map[fleet.LoanID][]fleet.Phase
	kinds  map[fleet.LoanID]fleet.ParcelKind
	// lacking is the service time in which the ready pods carried less than the load at the SLO, of all.
	lacking, all time.Duration
	late         int
}

func watch(t *testing.T, w *looptest.World) *witness {
	v := &witness{t: t, w: w, phases: map[fleet.LoanID][]fleet.Phase{}, kinds: map[fleet.LoanID]fleet.ParcelKind{}}
	w.Each = v.look
	return v
}

func (v *witness) look(s *fleet.Snapshot) {
	if n := planner.Drift(s); n != 0 {
		v.t.Errorf("%s: loans and shares differ on %d parcels", s.At, n)
	}
	for i := range s.Loans {
		l := &s.Loans[i]
		seen := v.phases[l.ID]
		if len(seen) == 0 || seen[len(seen)-1] != l.Phase {
			v.phases[l.ID] = append(seen, l.Phase)
		}
		v.kinds[l.ID] = l.Kind
		if l.Phase == fleet.Returned && l.Late(s.At) {
			v.late++
		}
	}
	for i := range s.Nodes {
		held := map[int]fleet.LoanID{}
		for _, e := range s.Nodes[i].Share.Parcels {
			for _, c := range e.Cells {
				if other, ok := held[c]; ok {
					v.t.Fatalf("%s: cell %d of %s is in loans %s and %s", s.At, c, s.Nodes[i].Name, other, e.Loan)
				}
				held[c] = e.Loan
			}
		}
	}
	for i := range s.Services {
		svc := &s.Services[i]
		v.all += longTurn
		if v.w.Truth(svc.ID, s.At) > float64(svc.Ready())*svc.Request.CPU.Cores()*svc.SLO.CPULimit() {
			v.lacking += longTurn
		}
	}
}

// cycles counts the loans of a kind that went through all phases from home to home.
func (v *witness) cycles(kind fleet.ParcelKind) int {
	whole := []fleet.Phase{fleet.Emptying, fleet.Lent, fleet.Noticed, fleet.Draining, fleet.Returned}
	n := 0
	for id, seen := range v.phases {
		if v.kinds[id] == kind && slices.Equal(seen, whole) {
			n++
		}
	}
	return n
}

// longTurn is the pace of a loop that runs for most of a day: half the default, which makes its task no easier.
const longTurn = 30 * time.Second

// From the ebb to the height of the flood in a small fleet: the ebb lends machines and sockets, the flood finds its replicas ready and its
// machines home.
func TestTheTideMovesMachines(t *testing.T) {
	long(t)
	t.Parallel()
	o := looptest.Default()
	o.Services, o.Online, o.Peak, o.History = 4, 6, 30, 9*24*time.Hour
	o.Start = o.Start.Add(5 * time.Hour)
	w := looptest.New(o)
	v := watch(t, w)
	lo := loop.DefaultOptions()
	lo.React = longTurn
	goOn(t, w, loop.New(w.Ports(), lo), 1, 16*time.Hour)

	for _, kind := range []fleet.ParcelKind{fleet.KindNode, fleet.KindSocket} {
		if v.cycles(kind) == 0 {
			t.Errorf("no %s was lent and recalled through all phases: %v", kind, v.phases)
		}
	}
	if v.late > 0 {
		t.Errorf("%d sights of recalls that came after their due time", v.late)
	}
	if len(w.Evicted) == 0 {
		t.Error("no recall had to evict offline work: the test shows little")
	}
	for _, p := range w.Evicted {
		if p.Class != fleet.PodOffline {
			t.Errorf("%s pod %s was evicted", p.Class, p.Name)
		}
	}
	if v.lacking > v.all/1000 {
		t.Errorf("replicas were too few for %s of %s", v.lacking, v.all)
	}
	raised, before := 0, 0
	for i := range w.Records {
		for _, a := range w.Records[i].Plan.Raises {
			svc, load := w.Service(0), w.Truth(a.Service, w.Records[i].At)
			raised++
			if load < float64(a.From)*svc.Request.CPU.Cores()*0.63*1.1 {
				before++ // the load was still within the tolerance of the replicas that there were
			}
		}
	}
	if raised == 0 || before < raised/2 {
		t.Errorf("%d of %d raises came before the load asked for them", before, raised)
	}
	for i := range w.Records {
		if w.Records[i].Revision != fleet.Revision(i+1) || w.Records[i].Receipt.Count(loop.Failed) > 0 || len(w.Records[i].InputDigest) != 32 {
			t.Fatalf("record %d: %+v", i, w.Records[i])
		}
	}
}

// While history cannot be read nothing scales in and nothing more is lent, and the reports say so; afterwards the ebb goes on.
func TestHistoryDown(t *testing.T) {
	t.Parallel()
	o := looptest.Default()
	o.Services, o.Online, o.History = 4, 6, fewDays
	o.Start = o.Start.Add(22 * time.Hour) // the ebb has begun
	w := looptest.New(o)
	l := run(t, w, 1, 30*time.Minute)

	w.HistoryErr = looptest.ErrDown
	down := len(w.Records)
	goOn(t, w, l, 1, time.Hour)
	for _, r := range w.Records[down:] {
		if n := len(r.Plan.Lowers); n > 0 {
			t.Fatalf("%s: %d services scale in without history: %+v", r.At, n, r.Plan.Lowers)
		}
		for _, m := range r.Plan.Moves {
			if m.Kind == planner.MoveBegin && r.At.Sub(w.Records[down].At) > 3*time.Minute { // a sample is fresh for 150 s
				t.Fatalf("%s: %s is lent without history", r.At, m.Node)
			}
		}
	}
	for _, report := range w.Reports[down:] {
		if report.HistoryErr == nil {
			t.Fatalf("%s: the report says nothing of the history that is down", report.At)
		}
		if report.At.Sub(report.Made) > 5*time.Minute {
			t.Fatalf("%s: a tide is of %s: they are made from what is known while history is down", report.At, report.Made)
		}
	}
	if n := w.Reports[len(w.Reports)-1].Trusted; n > 0 {
		t.Errorf("%d tides are trusted after an hour without samples", n)
	}
	w.HistoryErr = nil
	up := len(w.Records)
	goOn(t, w, l, 1, time.Hour)
	if w.Reports[len(w.Reports)-1].HistoryErr != nil {
		t.Errorf("history is back, and reported down: %v", w.Reports[len(w.Reports)-1].HistoryErr)
	}
	lowers := 0
	for _, r := range w.Records[up:] {
		lowers += len(r.Plan.Lowers)
	}
	if lowers == 0 {
		t.Error("nothing scaled in after history came back")
	}
	if n := w.Reports[len(w.Reports)-1].Trusted; n != o.Services {
		t.Errorf("%d of %d tides are trusted after history came back", n, o.Services)
	}
}

// A metric that dies never reads as no load: the service that it belongs to keeps its replicas.
func TestAMetricThatDies(t *testing.T) {
	long(t)
	t.Parallel()
	o := looptest.Default()
	o.Services, o.Online, o.History = 3, 5, fewDays
	o.Start = o.Start.Add(12 * time.Hour)
	died := o.Start.Add(30 * time.Minute)
	for name, value := range map[string]float64{"gone": math.NaN(), "zero": 0} {
		t.Run(name, func(t *testing.T) {
			o.Twist = func(id fleet.ServiceID, at time.Time, load float64) float64 {
				if id == "shop/svc-001" && !at.Before(died) {
					return value
				}
				return load
			}
			w := looptest.New(o)
			run(t, w, 1, 3*time.Hour)
			for _, r := range w.Records {
				for _, a := range r.Plan.Lowers {
					if a.Service == "shop/svc-001" && r.At.After(died) {
						t.Fatalf("%s: scaled in %d -> %d: %s", r.At, a.From, a.To, a.Why.Text())
					}
				}
			}
		})
	}
}

// The store is down: the loop goes on and says so, and journals again when it is back.
func TestStoreDown(t *testing.T) {
	t.Parallel()
	o := looptest.Default()
	o.Services, o.Online, o.History = 4, 6, fewDays
	o.Start = o.Start.Add(22 * time.Hour)
	w := looptest.New(o)
	w.StoreErr = looptest.ErrDown
	l := run(t, w, 1, 40*time.Minute)
	if len(w.Loans()) == 0 {
		t.Error("nothing was lent while the store was down: the loop stood still")
	}
	for _, report := range w.Reports {
		if report.StoreErr == nil {
			t.Fatalf("%s: the report says nothing of the store that is down", report.At)
		}
	}
	if len(w.Records) > 0 || w.Saves > 1 { // a loop that ends tries once
		t.Fatalf("%d records were taken, %d savings of portraits tried while the store was down", len(w.Records), w.Saves)
	}
	w.StoreErr = nil
	reports := len(w.Reports)
	goOn(t, w, l, 1, time.Minute)
	for _, report := range w.Reports[reports:] {
		if report.StoreErr != nil {
			t.Errorf("%s: the store is back, and reported down: %v", report.At, report.StoreErr)
		}
	}
	if len(w.Records) == 0 || len(w.Portraits) != o.Services || len(w.Tides) != o.Services || len(w.Decisions) != o.Services {
		t.Errorf("the store was not filled again: %d records, %d portraits, %d tides, %d decisions",
			len(w.Records), len(w.Portraits), len(w.Tides), len(w.Decisions))
	}
}

// A restart forgets nothing: portraits are folded on, not learned again, and decisions of before still count for
// stabilisation. A service that fell silent long ago does not make the reading of all others long.
func TestRestart(t *testing.T) {
	t.Parallel()
	o := looptest.Default()
	o.Services, o.Online, o.History = 4, 6, 6*24*time.Hour
	silent := o.Start.Add(-3 * 24 * time.Hour)
	o.Twist = func(id fleet.ServiceID, at time.Time, load float64) float64 {
		if id == "shop/svc-003" && at.After(silent) {
			return math.NaN()
		}
		return load
	}
	w := looptest.New(o)
	run(t, w, 1, time.Hour)
	points := w.Portraits["shop/svc-000"].Quality.Points
	w.Reads = nil
	stopped := w.Now()
	run(t, w, 2, 20*time.Minute)
	for _, r := range w.Reads {
		switch long := r.From.Before(stopped.Add(-15 * time.Minute)); {
		case r.Services == 1 && r.From.Before(silent.Add(-5*time.Minute)):
			t.Errorf("at %s the silent service was read from %s on: its portrait was forgotten", r.At, r.From)
		case long && r.Services > 1:
			t.Errorf("at %s %d services were read from %s on: their portraits were forgotten", r.At, r.Services, r.From)
		}
	}
	if now := w.Portraits["shop/svc-000"].Quality.Points; now <= points || now > points+6 {
		t.Errorf("%d points after the restart, %d before", now, points)
	}
	ds := w.Decisions["shop/svc-000"]
	for i := 1; i < len(ds); i++ {
		if !ds[i].At.After(ds[i-1].At) {
			t.Fatalf("decision %d of %d is of %s, the one before of %s", i, len(ds), ds[i].At, ds[i-1].At)
		}
	}
	if d := ds[len(ds)-1].At.Sub(ds[0].At); d < 79*time.Minute {
		t.Errorf("decisions reach back %s over the restart", d)
	}
}

// A portrait of another version, as an older release stored it, is learned again.
func TestPortraitsOfAnotherVersion(t *testing.T) {
	t.Parallel()
	o := looptest.Default()
	o.Services, o.Online, o.History = 2, 3, fewDays
	w := looptest.New(o)
	run(t, w, 1, time.Minute)
	for id, p := range w.Portraits {
		p.Version--
		w.Portraits[id] = p
	}
	w.Reads = nil
	run(t, w, 2, time.Minute)
	if len(w.Reads) == 0 || w.Reads[0].From.After(w.Now().Add(-14*24*time.Hour)) {
		t.Errorf("history was not read from the beginning: %+v", w.Reads)
	}
}

// A new leader watches one window before it takes anything away, and goes on with what was announced.
func TestANewLeaderWatches(t *testing.T) {
	long(t)
	t.Parallel()
	quiet := func(records []loop.Record, since time.Time) {
		t.Helper()
		for _, r := range records {
			if r.At.Sub(since) >= planner.DefaultOptions().Window {
				return
			}
			for _, m := range r.Plan.Moves {
				if m.Kind == planner.MoveBegin || m.Kind == planner.MoveRecall {
					t.Errorf("%s: %s of %s %s after the lead began", r.At, m.Kind, m.Before.ID, r.At.Sub(since))
				}
			}
			if len(r.Plan.Lowers) > 0 {
				t.Errorf("%s: %+v scales in %s after the lead began", r.At, r.Plan.Lowers[0], r.At.Sub(since))
			}
		}
	}
	o := looptest.Default()
	o.Services, o.Online, o.History = 4, 6, fewDays
	o.Start = o.Start.Add(10 * time.Hour) // the trough: what is lent now is recalled within hours
	w := looptest.New(o)
	w.Service(0).Desired = fleet.KnownAt(w.Service(0).Desired.Value+3, o.Start) // there is something to take away
	l := run(t, w, 1, 30*time.Minute)
	quiet(w.Records, o.Start)
	if !slices.ContainsFunc(w.Records, func(r loop.Record) bool { return len(r.Plan.Lowers) > 0 }) {
		t.Error("nothing scaled in after the window: the test shows nothing")
	}
	toRecall(t, w, l)
	records, since := len(w.Records), w.Now()
	run(t, w, 2, 4*time.Minute)
	quiet(w.Records[records:], since)
	if slices.ContainsFunc(w.Loans(), func(l fleet.Loan) bool { return l.Phase == fleet.Noticed && l.LeaderEpoch == 1 }) {
		t.Error("the new leader left an announced recall lying")
	}
	if got := w.Records[len(w.Records)-1].LeaderEpoch; got != 2 {
		t.Errorf("records carry leader epoch %d", got)
	}
}

// toRecall turns the loop until a recall was announced.
func toRecall(t *testing.T, w *looptest.World, l *loop.Loop) {
	t.Helper()
	for began := w.Now(); !slices.ContainsFunc(w.Loans(), func(l fleet.Loan) bool { return l.Phase == fleet.Noticed }); {
		if w.Now().Sub(began) > 6*time.Hour {
			t.Fatal("nothing was recalled")
		}
		goOn(t, w, l, 1, 15*time.Second)
	}
}

// A notice whose deadline passed under a freeze is given again when it ends: no pod is evicted by a deadline that was
// never in force, whichever controller leads then, and whenever the announcement comes through.
func TestThawAnnouncesAgain(t *testing.T) {
	long(t)
	t.Parallel()
	for name, thaw := range map[string]func(t *testing.T, w *looptest.World, l *loop.Loop){
		"the same leader": func(t *testing.T, w *looptest.World, l *loop.Loop) { goOn(t, w, l, 1, time.Nanosecond) },
		"the next leader": func(t *testing.T, w *looptest.World, _ *loop.Loop) { run(t, w, 2, time.Nanosecond) },
		"a refused write": func(t *testing.T, w *looptest.World, l *loop.Loop) {
			w.ApplyErr = looptest.ErrDown
			_ = w.Run(l, 1, w.Now().Add(time.Nanosecond))
			w.ApplyErr = nil
			goOn(t, w, l, 1, time.Nanosecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := looptest.Default()
			o.Services, o.Online, o.History = 4, 6, fewDays
			o.Start = o.Start.Add(10 * time.Hour)
			w := looptest.New(o)
			l := run(t, w, 1, 30*time.Minute)
			toRecall(t, w, l)
			w.Frozen = "maintenance"
			goOn(t, w, l, 1, 20*time.Minute)
			evicted := len(w.Evicted)
			w.Frozen = ""
			thaw(t, w, l)
			announced := 0
			for _, m := range w.Records[len(w.Records)-1].Plan.Moves {
				if m.Kind == planner.MoveAnnounce && m.After.Deadline.Sub(m.Before.Deadline) > 15*time.Minute {
					announced++
				}
			}
			if announced == 0 {
				t.Errorf("no deadline was announced anew: %+v", w.Records[len(w.Records)-1].Plan.Moves)
			}
			if len(w.Evicted) > evicted {
				t.Errorf("%d pods were evicted with the thaw, before the new deadline", len(w.Evicted)-evicted)
			}
		})
	}
}

// A freeze holds every action from the next cycle on, and nothing is held any more when it ends.
func TestFreeze(t *testing.T) {
	t.Parallel()
	o := looptest.Default()
	o.Services, o.Online, o.History = 4, 6, fewDays
	o.Start = o.Start.Add(21 * time.Hour)
	w := looptest.New(o)
	l := run(t, w, 1, 30*time.Minute)
	w.Frozen = "maintenance"
	frozen := len(w.Records)
	goOn(t, w, l, 1, time.Hour)
	withheld := 0
	for _, r := range w.Records[frozen:] {
		if n := r.Receipt.Count(loop.Done); n > 0 {
			t.Fatalf("%s: %d actions were done under a freeze: %+v", r.At, n, r.Receipt.Results)
		}
		withheld += len(r.Plan.Withheld)
	}
	if withheld == 0 {
		t.Error("nothing was withheld in an hour of ebb: the test shows nothing")
	}
	w.Frozen = ""
	thawed := len(w.Records)
	goOn(t, w, l, 1, 10*time.Minute)
	done := 0
	for _, r := range w.Records[thawed:] {
		done += r.Receipt.Count(loop.Done)
	}
	if done == 0 {
		t.Error("nothing was done after the freeze")
	}
}

// With watermarks at the top everything comes home and stays: the way to take Springtide away.
func TestWatermarksAtTheTopBringEverythingHome(t *testing.T) {
	t.Parallel()
	o := looptest.Default()
	o.Services, o.Online, o.History = 4, 8, fewDays
	w := looptest.New(o)
	l := run(t, w, 1, time.Hour)
	if len(w.Loans()) == 0 {
		t.Fatal("nothing was lent: the test shows nothing")
	}
	for i := range w.Pools {
		if w.Pools[i].Class == fleet.Online {
			w.Pools[i].LowWatermark, w.Pools[i].HighWatermark = 0.99, 1
		}
	}
	goOn(t, w, l, 1, 30*time.Minute)
	for _, loan := range w.Loans() {
		t.Errorf("%s is still %s", loan.ID, loan.Phase)
	}
}
