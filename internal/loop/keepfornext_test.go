package loop

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/planner"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// Decisions are kept for as long as they may be asked for, and no longer; a sizing that decided nothing leaves none.
func TestDecisionsAreKept(t *testing.T) {
	l := New(Ports{}, Options{Remember: time.Hour})
	for at := noon; !at.After(noon.Add(3 * time.Hour)); at = at.Add(time.Minute) {
		l.keepForNext(at, &planner.Plan{Targets: []hpa.Target{
			{Service: "shop/cart", Decision: hpa.Decision{At: at, Replicas: 3}},
			{Service: "shop/gone"},
		}}, &Receipt{})
	}
	ds := l.decisions["shop/cart"]
	if len(ds) != 61 || !ds[0].At.Equal(noon.Add(2*time.Hour)) || !ds[60].At.Equal(noon.Add(3*time.Hour)) {
		t.Errorf("%d decisions from %s to %s", len(ds), ds[0].At, ds[len(ds)-1].At)
	}
	if _, ok := l.decisions["shop/gone"]; ok {
		t.Error("a service that was not sized has a decision")
	}
}

// Leads compute with the pace of the loop where that is slower than the planner's own figure, and never with a faster
// one.
func TestThePlanKnowsThePace(t *testing.T) {
	for react, want := range map[time.Duration]time.Duration{15 * time.Second: time.Minute, 5 * time.Minute: 5 * time.Minute} {
		o := DefaultOptions()
		o.React = react
		if got := New(Ports{}, o).o.Planner.Interval; got != want {
			t.Errorf("a cycle each %s is planned for as one each %s, want %s", react, got, want)
		}
	}
}

// Loans that were begun count for an hour; those that were planned and not carried out do not.
func TestBegunLoansAreCounted(t *testing.T) {
	l := New(Ports{}, DefaultOptions())
	begin := func(at time.Time, id fleet.LoanID, outcome Outcome) {
		l.keepForNext(at, &planner.Plan{Moves: []planner.Move{{Kind: planner.MoveBegin, Before: fleet.Loan{ID: id, From: "online"}}}},
			&Receipt{Results: []Result{{Action: "Move", Subject: string(id), Outcome: outcome}}})
	}
	begin(noon, "a", Done)
	begin(noon.Add(time.Minute), "b", Stale)
	begin(noon.Add(2*time.Minute), "c", Failed)
	begin(noon.Add(30*time.Minute), "d", Done)
	if len(l.begun) != 2 {
		t.Errorf("%d loans were begun, want a and d", len(l.begun))
	}
	l.keepForNext(noon.Add(time.Hour), &planner.Plan{}, &Receipt{})
	if len(l.begun) != 1 || l.begun[0] != (planner.Begun{Loan: "d", From: "online", At: noon.Add(30 * time.Minute)}) {
		t.Errorf("after an hour %v count", l.begun)
	}
}

// A recall that is overdue is shown while it is; one that came home is counted once, however long its loan is still seen.
func TestRecallsAreMeasured(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m := NewMetrics(r)
	at := func(now time.Time, loans ...fleet.Loan) {
		s := &fleet.Snapshot{At: now, Loans: loans, Pools: []fleet.Pool{{ID: "online", Class: fleet.Online}}}
		m.observe(s, &planner.Plan{Pools: []planner.PoolView{{Pool: "online"}}}, &Receipt{}, nil, nil, nil,
			newTimer(func() {}), nil, nil)
	}
	late := fleet.Loan{ID: "late", From: "online", Kind: fleet.KindNode, Phase: fleet.Draining, FirstNotice: noon, Due: noon.Add(5 * time.Minute)}
	early := fleet.Loan{ID: "early", From: "online", Kind: fleet.KindSocket, Phase: fleet.Noticed, FirstNotice: noon, Due: noon.Add(time.Hour)}
	lent := fleet.Loan{ID: "lent", From: "online", Kind: fleet.KindNode, Phase: fleet.Lent}
	want := func(overdue, when string) {
		t.Helper()
		text := "# HELP springtide_recalls_overdue Recalled parcels that are not home by the due time of their first notice.\n" +
			"# TYPE springtide_recalls_overdue gauge\nspringtide_recalls_overdue{pool=\"online\"} " + overdue + "\n"
		if err := testutil.GatherAndCompare(r, strings.NewReader(text), "springtide_recalls_overdue"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	at(noon.Add(4*time.Minute), late, early, lent)
	want("0", "before the due time")
	at(noon.Add(6*time.Minute), late, early, lent)
	want("1", "after it")

	late.Phase, late.CleanAt = fleet.Returned, noon.Add(8*time.Minute)
	early.Phase, early.CleanAt = fleet.Returned, noon.Add(2*time.Minute)
	cancelled := fleet.Loan{ID: "back", From: "online", Kind: fleet.KindNode, Phase: fleet.Cancelled}
	for i := range 3 {
		at(noon.Add(time.Duration(9+i)*time.Minute), late, early, lent, cancelled)
	}
	want("0", "once it is home")
	for lateness, seconds := range map[string]float64{"true": 480, "false": 120} {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range families {
			for _, x := range f.GetMetric() {
				if f.GetName() == "springtide_recall_duration_seconds" && x.GetLabel()[0].GetValue() == lateness {
					h := x.GetHistogram()
					found = h.GetSampleCount() == 1 && h.GetSampleSum() == seconds
				}
			}
		}
		if !found {
			t.Errorf("the recall with late=%s was not counted once with its %v s", lateness, seconds)
		}
	}
}
