package store

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/forecast/calendar"
	"github.com/springtide/springtide/forecast/festive"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reclaim"
	"github.com/springtide/springtide/series"
	"github.com/springtide/springtide/slo"
)

// examplePortrait is folded from two days of load that rise with the level.
func examplePortrait(service fleet.ServiceID, level float64) portrait.Portrait {
	load := series.New(epoch.Add(-48*time.Hour), 5*time.Minute, 48*12)
	for i := range load.Values {
		if i%50 != 0 {
			load.Values[i] = level * (2 + math.Sin(2*math.Pi*float64(i)/288))
		}
	}
	p := portrait.Portrait{Version: portrait.Version, Service: service}
	return portrait.Fold(p, portrait.Batch{Load: load, StartUps: []time.Duration{time.Minute}}, portrait.Options{})
}

// exampleAccounts are one of a service that is bad now and then, and one of a service that was never judged.
func exampleAccounts() map[fleet.ServiceID]*slo.Account {
	var cart slo.Account
	for i := range 3000 {
		m := slo.Minute{At: epoch.Add(time.Duration(i) * time.Minute), All: slo.Good, Names: []string{"cpu"},
			States: []slo.State{slo.Good}}
		if i%100 == 3 {
			m.All, m.States[0], m.Cause = slo.Bad, slo.Bad, slo.Forecast
		}
		cart.Budget.Add(m, slo.DefaultOver)
	}
	cart.Choice = slo.Choose(slo.Choice{}, &cart.Record, slo.Terms{Now: epoch, Good: slo.DefaultGood,
		Over: slo.DefaultOver})
	return map[fleet.ServiceID]*slo.Account{"shop/cart": &cart, "shop/pay": {}}
}

func exampleTide(service fleet.ServiceID, made time.Time) forecast.Tide {
	return forecast.Tide{Service: service, Signal: portrait.CPU, Made: made, Start: made.Truncate(5 * time.Minute), Step: 5 * time.Minute,
		Quantiles: []float64{0.5, 0.9}, Paths: [][]float64{{1, 2.25, math.NaN()}, {2, 1. / 3, 1e-9}}, Model: "seasonal", Trusted: true, SkillLost: true, Note: "n",
		Ordinary: [][]float64{{1, 2, 3}, {2, 3, 4}}, Days: []forecast.LiftedDay{{Name: "11.11", From: made, To: made.Add(24 * time.Hour), Factor: 2.5, Kin: true}}}
}

// rounded compares what is stored to five digits.
var rounded = cmp.Comparer(func(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-5*max(math.Abs(a), math.Abs(b))
})

// testRestart: what was given to one process is known to the next.
func testRestart(t *testing.T, w world) {
	dsn := w.dsn(t)
	s := open(t, dsn, Options{})
	var ps []portrait.Portrait
	want := map[fleet.ServiceID]portrait.Portrait{}
	for i := range 250 { // more than one statement writes
		p := examplePortrait(fleet.ServiceID(fmt.Sprintf("shop/s%03d", i)), float64(i+1))
		ps, want[p.Service] = append(ps, p), p
	}
	ps[0].Version++
	delete(want, ps[0].Service)
	if err := s.SavePortraits(t.Context(), ps); err != nil {
		t.Fatal(err)
	}
	ps[1] = examplePortrait(ps[1].Service, 5000)
	want[ps[1].Service] = ps[1]
	if err := s.SavePortraits(t.Context(), ps[1:2]); err != nil {
		t.Fatal(err)
	}
	sums := map[fleet.ServiceID]loop.Summary{
		"shop/cart": {Made: epoch, From: epoch.Add(-168 * time.Hour), To: epoch, CoreHours: 10.5, CoreHoursToday: 21,
			ViolationMinutes:      3,
			ViolationMinutesToday: 4, Verdict: "worth it: 50 % fewer core-hours"},
		"shop/pay": {Made: epoch, Verdict: "needs eight days of history"},
	}
	if err := s.SaveSummaries(t.Context(), map[fleet.ServiceID]loop.Summary{"shop/cart": {Verdict: "an older one"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveSummaries(t.Context(), sums); err != nil {
		t.Fatal(err)
	}
	days := map[fleet.ServiceID]loop.Days{
		"shop/cart": {Effects: festive.Effects{Slots: 2, Shift: 0.5, Week: make([]float64, 14), Noise: 0.01, Seen: []festive.Occurrence{
			{Name: "11.11", Kind: calendar.Sale, Day: 20_000, Log: []float64{0.5, 1.25}}}}, Made: epoch, Kin: "UTC|CN|", Dates: "UTC|CN|"},
		"shop/pay": {Made: epoch},
	}
	accounts := exampleAccounts()
	if err := errors.Join(s.SaveAccounts(t.Context(), map[fleet.ServiceID]*slo.Account{"shop/cart": {},
		"shop/pay": accounts["shop/pay"]}),
		s.SaveAccounts(t.Context(), map[fleet.ServiceID]*slo.Account{"shop/cart": accounts["shop/cart"]})); err != nil {
		t.Fatal(err)
	}
	paces := reclaim.Paces{reclaim.EndKey("online", "Job", 0): reclaim.Pace{}.Add(20*time.Second, epoch), reclaim.CleanKey("online"): {}}
	if err := s.SavePaces(t.Context(), paces); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.SaveDays(t.Context(), map[fleet.ServiceID]loop.Days{"shop/cart": {}}), s.SaveDays(t.Context(), days)); err != nil {
		t.Fatal(err)
	}
	ds := func(from, n int) (out []hpa.Decision) {
		for i := range n {
			out = append(out, hpa.Decision{At: epoch.Add(time.Duration(from+i)*15*time.Second + 123), Replicas: int32(from + i), From: 3})
		}
		return out
	}
	for i := range 8 {
		if err := s.SaveDecisions(t.Context(), map[fleet.ServiceID][]hpa.Decision{"shop/cart": ds(i, 1), "shop/pay": ds(i, 1)}); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			appendAll(t, s, cycle(i))
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t, dsn, Options{})
	got, err := s.LoadPortraits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("%d portraits, want %d", len(got), len(want))
	}
	for id, p := range want {
		// The stored form is rounded, so that forms are compared.
		a, err1 := portrait.Marshal(p)
		b, err2 := portrait.Marshal(got[id])
		if err := errors.Join(err1, err2); err != nil || !bytes.Equal(a, b) {
			t.Errorf("portrait of %s came back changed (%v)", id, err)
		}
	}
	summaries, err := s.LoadSummaries(t.Context())
	if d := cmp.Diff(sums, summaries); err != nil || d != "" {
		t.Errorf("summaries: %v (-want +got):\n%s", err, d)
	}
	kept, err := s.LoadAccounts(t.Context())
	if err != nil || len(kept) != len(accounts) {
		t.Errorf("%d accounts: %v", len(kept), err)
	}
	for id, want := range accounts {
		if got := kept[id]; !bytes.Equal(slo.Marshal(want), slo.Marshal(&got)) {
			t.Errorf("the account of %s came back changed", id)
		}
	}
	if got, err := s.LoadPaces(t.Context()); err != nil || cmp.Diff(paces, got) != "" {
		t.Errorf("paces: %v\n%s", err, cmp.Diff(paces, got))
	}
	if got, err := s.LoadDays(t.Context()); err != nil || cmp.Diff(days, got) != "" {
		t.Errorf("days: %v (-want +got):\n%s", err, cmp.Diff(days, got))
	}
	decisions, err := s.LoadDecisions(t.Context(), epoch.Add(45*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[fleet.ServiceID][]hpa.Decision{"shop/cart": ds(3, 5), "shop/pay": ds(3, 5)}, decisions); d != "" {
		t.Errorf("decisions (-want +got):\n%s", d)
	}
	if rows, err := s.Last(t.Context(), 10); err != nil || len(rows) != 2 || rows[0].LastRevision != 6 {
		t.Errorf("journal: %+v, %v", rows, err)
	}
}

func testTides(t *testing.T, w world) {
	s := open(t, w.dsn(t), Options{KeepTides: 3})
	for i := range 5 {
		made := epoch.Add(time.Duration(i) * time.Hour)
		if err := s.SaveTides(t.Context(), []forecast.Tide{exampleTide("shop/cart", made), exampleTide("shop/pay", made)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SaveTides(t.Context(), []forecast.Tide{exampleTide("shop/cart", epoch.Add(4*time.Hour))}); err != nil {
		t.Fatal(err) // the same again
	}
	for _, service := range []fleet.ServiceID{"shop/cart", "shop/pay"} {
		got, err := s.TidesOf(t.Context(), service, 10)
		if err != nil {
			t.Fatal(err)
		}
		var want []forecast.Tide
		for i := 4; i >= 2; i-- {
			want = append(want, exampleTide(service, epoch.Add(time.Duration(i)*time.Hour)))
		}
		if d := cmp.Diff(want, got, rounded); d != "" {
			t.Errorf("tides (-want +got):\n%s", d)
		}
	}
	if err := s.SaveTides(t.Context(), nil); err != nil {
		t.Errorf("no tides: %v", err)
	}
}
