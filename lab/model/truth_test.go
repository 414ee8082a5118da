package model

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/judge"
	"github.com/springtide/springtide/lab/traces"
	"github.com/springtide/springtide/series"
)

var update = flag.Bool("update", false, "rewrite golden files")

// flat is a fleet of two services under constant load: each at 1 (the peak of its last week), so that static provisioning is at 1/1.2 of its
// capacity, and half of the static replicas are far too few.
func flat(t *testing.T) *Fleet {
	t.Helper()
	var sources []traces.Source
	for _, name := range []string{"a", "b"} {
		load := series.New(noon.Add(-24*time.Hour), time.Minute, 3*24*60)
		for i := range load.Values {
			load.Values[i] = 1
		}
		sources = append(sources, traces.Source{Name: name, Group: "n", Kind: traces.Requests, Load: load, Disaggregated: name == "b"})
	}
	f, err := NewFleet(sources, Spec{OnlineCores: 800, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func newTruth(t *testing.T, f *Fleet) *Truth {
	t.Helper()
	tr, err := NewTruth(TruthOptions{Fleet: f, Start: noon, Nodes: 16, AllocatableCores: 1024, OnlineCores: 800, OfflineDemand: 2})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// play runs n steps of facts that only differ in time.
func play(t *testing.T, tr *Truth, n int, f StepFacts) {
	t.Helper()
	for range n {
		f.At, f.Dt = tr.to, Step
		if _, err := tr.Step(f); err != nil {
			t.Fatal(err)
		}
	}
}

func staticPods(f *Fleet) []PodCount {
	var out []PodCount
	for _, s := range f.Services {
		out = append(out, PodCount{Ready: s.Static})
	}
	return out
}

func TestOnStaticReplicasTheRunIsTheStaticOne(t *testing.T) {
	f := flat(t)
	tr := newTruth(t, f)
	play(t, tr, 240, StepFacts{Services: staticPods(f), OfflineUsed: 0})
	r := tr.Report(10 * time.Second)
	if r.SLOViolationMinutes != 0 || r.SLOViolationMinutesStatic != 0 || r.HarmMinutes != 0 {
		t.Errorf("violations %d, static %d, harm %d", r.SLOViolationMinutes, r.SLOViolationMinutesStatic, r.HarmMinutes)
	}
	near(t, "virtual hours", r.VirtualHours, 1, 0)
	near(t, "core-hours", r.OnlineCoreHours, f.StaticCores(), 1e-9)
	near(t, "static core-hours", r.OnlineCoreHoursStatic, f.StaticCores(), 1e-9)
	near(t, "wall seconds a day", r.WallSecondsPerVirtualDay, 240, 1e-9)
	// By hand: rate × cost, and 2 % of every pod. 224 offline cores meet a demand of 2 core-hours and stop.
	var used float64
	for i := range 240 {
		for k, rate := range f.Rates(noon.Add(time.Duration(i) * Step)) {
			s := f.Services[k]
			used += (rate*s.CPUSeconds + 0.02*float64(s.Static*s.Cores)) * 15
		}
	}
	near(t, "utilisation", r.MeanUtilisation, used/1024/3600, 1e-9)
	near(t, "static utilisation", r.MeanUtilisationStatic, (used+2*3600)/1024/3600, 1e-9)
	near(t, "static offline core-hours", r.OfflineCoreHoursStatic, 2, 1e-9)
	if r.Recalls.P50Seconds != nil || r.Forecast.WQL != nil || r.Forecast.Coverage90 != nil {
		t.Error("what is unknown must be null")
	}
}

// Service a has half of its replicas for 90 s that begin in the middle of a minute: three minutes are touched, two of them while a replica
// waits for lent room. The backlog of 30 s drains later and is in the account.
func TestViolationMinutes(t *testing.T) {
	f := flat(t)
	tr := newTruth(t, f)
	full := staticPods(f)
	half := slices.Clone(full)
	half[0] = PodCount{Ready: f.Services[0].Static / 2, Starting: 3, Leaving: 1}
	waiting := slices.Clone(half)
	waiting[0].WaitsForLent = true

	play(t, tr, 2, StepFacts{Services: full})
	play(t, tr, 2, StepFacts{Services: half})    // the rest of minute 0
	play(t, tr, 4, StepFacts{Services: waiting}) // minute 1
	r := tr.Report(0)
	if r.SLOViolationMinutes != 2 || r.HarmMinutes != 1 || r.SLOViolationMinutesStatic != 0 {
		t.Errorf("violations %d, harm %d, static %d; want 2, 1, 0", r.SLOViolationMinutes, r.HarmMinutes, r.SLOViolationMinutesStatic)
	}
	s := f.Services[0]
	other := float64(f.Services[1].Static * f.Services[1].Cores)
	near(t, "core-hours", r.OnlineCoreHours, (120*other+float64(s.Cores)*(30*float64(s.Static)+90*float64(s.Static/2+4)))/3600, 1e-9)
	play(t, tr, 4, StepFacts{Services: full})
	if r := tr.Report(0); r.SLOViolationMinutes != 3 || r.HarmMinutes != 1 {
		t.Errorf("with the backlog: violations %d, harm %d; want 3, 1", r.SLOViolationMinutes, r.HarmMinutes)
	}
	for _, g := range tr.Report(0).Groups {
		if want := map[string]int{"minute": 3}[g.Name]; g.SLOViolationMinutes != want {
			t.Errorf("group %s has %d, want %d", g.Name, g.SLOViolationMinutes, want)
		}
	}
}

func TestStartingPodsUseWhatTheyUse(t *testing.T) {
	f := flat(t)
	one, more := newTruth(t, f), newTruth(t, f)
	pods := staticPods(f)
	play(t, one, 4, StepFacts{Services: pods})
	pods[0].Starting = 10
	play(t, more, 4, StepFacts{Services: pods, OfflineUsed: 100})
	got := more.Report(0).MeanUtilisation - one.Report(0).MeanUtilisation
	near(t, "ten starting pods and 100 offline cores", got*1024, 10*0.3*float64(f.Services[0].Cores)+100, 1e-9)
}

func TestLoansAndRecalls(t *testing.T) {
	f := flat(t)
	tr := newTruth(t, f)
	at := func(sec int) time.Time { return noon.Add(time.Duration(sec) * time.Second) }
	loan := func(uid string, kind fleet.ParcelKind, p fleet.Phase, notice, due, clean int) LoanFacts {
		l := LoanFacts{UID: uid, Kind: kind, Phase: p, Cores: 64}
		for to, sec := range map[*time.Time]int{&l.FirstNotice: notice, &l.Due: due, &l.CleanAt: clean} {
			if sec > 0 {
				*to = at(sec)
			}
		}
		return l
	}
	step := func(n int, loans ...LoanFacts) { play(t, tr, n, StepFacts{Services: staticPods(f), Loans: loans}) }
	n, s := fleet.KindNode, fleet.KindSocket
	step(4, loan("1", n, fleet.Emptying, 0, 0, 0), loan("2", s, fleet.Emptying, 0, 0, 0))
	step(4, loan("1", n, fleet.Lent, 0, 0, 0), loan("2", s, fleet.Cancelled, 0, 0, 0), loan("3", n, fleet.Lent, 0, 0, 0))
	step(4, loan("1", n, fleet.Noticed, 120, 300, 0), loan("3", n, fleet.Noticed, 130, 200, 0), loan("4", s, fleet.Lent, 0, 0, 0))
	step(4, loan("1", n, fleet.Draining, 120, 300, 0), loan("3", n, fleet.Lent, 0, 0, 0), loan("4", s, fleet.Noticed, 180, 210, 0))
	late := loan("4", s, fleet.Draining, 180, 210, 0)
	late.Name, late.History = "loan-4", []PhaseAt{{fleet.Lent, at(90)}, {fleet.Noticed, at(180)}, {fleet.Draining, at(240)}}
	// 6 is what online borrowed: it goes back late, and is no recall.
	borrowed := loan("6", n, fleet.Emptying, 100, 110, 0)
	borrowed.FromOffline = true
	// 1 comes home in time after 130 s, 4 never does and is overdue, 3's notice was taken back, 5 is not due yet.
	step(4, loan("1", n, fleet.Returned, 120, 300, 250), loan("3", n, fleet.Lent, 0, 0, 0), late, loan("5", s, fleet.Noticed, 290, 900, 0), borrowed)
	r := tr.Report(0)
	if r.Loans != (LoanReport{Node: 2, Socket: 2}) {
		t.Errorf("loans %+v, want 2 nodes (1, 3) and 2 sockets (4, 5): 2 was cancelled", r.Loans)
	}
	if r.Recalls.Count != 2 || r.Recalls.Late != 1 || *r.Recalls.P50Seconds != 120 || *r.Recalls.P99Seconds != 130 {
		t.Errorf("recalls %d, late %d, p50 %v, p99 %v; want 2, 1, 120 (loan 4, until now), 130", r.Recalls.Count, r.Recalls.Late, *r.Recalls.P50Seconds, *r.Recalls.P99Seconds)
	}
	if want := "loan-4: Noticed 12:03:00, Draining 12:04:00, due 12:03:30, not clean yet"; len(r.Recalls.LateLoans) != 1 || r.Recalls.LateLoans[0] != want {
		t.Errorf("the late recalls are %q, want %q", r.Recalls.LateLoans, want)
	}
	// In minutes: two nodes in the second, a socket in the third, a node in the fourth and fifth.
	near(t, "core-hours lent", r.CoreHoursLent, 64*(2+1+1+1)/60.0, 1e-9)
}

func TestForecastScores(t *testing.T) {
	f := flat(t)
	tr := newTruth(t, f)
	play(t, tr, 40, StepFacts{Services: staticPods(f)})
	s, truth := f.Services[0], 0.0
	for i := range 20 {
		truth += f.Rates(noon.Add(5*time.Minute + time.Duration(i)*Step))[0] / 20
	}
	say := func(quantiles []float64, factors ...float64) ForecastFacts {
		v := make([]float64, len(factors))
		for i, x := range factors {
			v[i] = x * truth
		}
		return ForecastFacts{Service: 0, For: noon.Add(5 * time.Minute), Step: 5 * time.Minute, Quantiles: quantiles, Values: v}
	}
	// By hand, in units of the truth: 2·0.5·|1−0.8| = 0.2 and 2·0.1·(1.5−1) = 0.1: mean 0.15. The truth lies below the 0.9 quantile.
	tr.Forecast(say([]float64{0.5, 0.9}, 0.8, 1.5))
	r := tr.Report(0).Forecast
	near(t, "wql", *r.WQL, 0.15, 1e-9)
	near(t, "coverage", *r.Coverage90, 1, 0)
	// A second one: 2·0.5·(1.2−1) = 0.2 and 2·0.9·(1−0.9) = 0.18. Pooled by quantile: 0.2 and 0.14.
	tr.Forecast(say([]float64{0.5, 0.9}, 1.2, 0.9))
	r = tr.Report(0).Forecast
	near(t, "wql", *r.WQL, 0.17, 1e-9)
	near(t, "coverage", *r.Coverage90, 0.5, 0)
	// One in cores, of the same load; 0.9 lies between its quantiles: 0.5·0.9 + 0.5·1.2 = 1.05 covers.
	cpu := say([]float64{0.8, 1}, 0.9, 1.2)
	cpu.CPU = true
	for i := range cpu.Values {
		cpu.Values[i] *= s.CPUSeconds
	}
	tr.Forecast(cpu)
	r = tr.Report(0).Forecast
	near(t, "coverage", *r.Coverage90, 2/3.0, 1e-9) // idle pods lift the truth in cores by 3 %, still below
	// Not over yet: not scored.
	late := say([]float64{0.5}, 1)
	late.For = noon.Add(9 * time.Minute)
	tr.Forecast(late)
	if got := tr.Report(0).Forecast.Count; got != 3 {
		t.Errorf("%d forecasts were scored, want 3", got)
	}
}

func TestStepsMustFollowEachOther(t *testing.T) {
	f := flat(t)
	for name, facts := range map[string]StepFacts{
		"does not follow": {At: noon.Add(Step), Dt: Step, Services: staticPods(f)},
		"must last up to": {At: noon, Dt: time.Minute, Services: staticPods(f)},
		"the fleet has 2": {At: noon, Dt: Step},
	} {
		if _, err := newTruth(t, f).Step(facts); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
	end := newTruth(t, f)
	end.to = noon.Add(48 * time.Hour)
	if _, err := end.Step(StepFacts{At: end.to, Dt: Step, Services: staticPods(f)}); err == nil || !strings.Contains(err.Error(), "n/a has no load") {
		t.Errorf("a step after the replay gives %v", err)
	}
	if _, err := NewTruth(TruthOptions{Fleet: f, Nodes: 1, AllocatableCores: 10, OnlineCores: 20}); err == nil {
		t.Error("more online cores than cores were accepted")
	}
}

func TestReportSpeaksTheContract(t *testing.T) {
	f := flat(t)
	tr := newTruth(t, f)
	play(t, tr, 4, StepFacts{Services: staticPods(f), Pinned: []Pin{{"n1", "shop/cart"}}})
	b, err := json.Marshal(tr.Report(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"sloViolationMinutes", "meanUtilisation", "meanUtilisationStatic", "onlineCoreHours", "onlineCoreHoursStatic", "coreHoursLent",
		"loans.node", "loans.socket", "recalls.count", "recalls.late", "recalls.p50Seconds", "recalls.p99Seconds",
		"demands.count", "demands.p50Seconds", "demands.p99Seconds", "demands.p50WallSeconds", "demands.p99WallSeconds",
		"returns.count", "returns.unbound", "returns.p50Seconds", "returns.p99Seconds", "returns.p50WallSeconds", "returns.p99WallSeconds", "forecast.wql", "forecast.coverage90",
	} {
		at := any(got)
		for key := range strings.SplitSeq(path, ".") {
			m, ok := at.(map[string]any)
			if ok {
				at, ok = m[key]
			}
			if !ok {
				t.Errorf("the report has no %s", path)
				break
			}
		}
	}
	if p := got["pinned"].([]any)[0].(map[string]any); p["node"] != "n1" || p["minutes"] != 1.0 {
		t.Errorf("pinned %v", p)
	}
}

// TestTheJudgeHasALineInTheReport: one line of the judge, and below it what it found, with time and object.
func TestTheJudgeHasALineInTheReport(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 57, 15, 0, time.UTC)
	r := Report{Judge: &judge.Report{From: at, To: at.Add(time.Hour), JudgedHours: 1,
		Rules:    []judge.RuleReport{{Rule: "wait", Judged: 3, Findings: 1}, {Rule: "told"}},
		Findings: []judge.Finding{{Rule: "wait", At: at.Add(75 * time.Second), Since: at, Object: "shop/cart-x2", What: "waits, and node node-017 has room for it"}}}}
	var got []string
	for line := range strings.Lines(r.Text(100)) {
		if f := strings.Fields(line); len(f) > 0 && (f[0] == "judge" || f[0] == "wait") {
			got = append(got, strings.Join(f, " "))
		}
	}
	want := []string{"judge 1 findings in 2 promises over 1 h: wait 1 (nothing to judge: told)",
		"wait 03-02 10:57:15 to 10:58:30 wait: shop/cart-x2: waits, and node node-017 has room for it"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r.Judge = nil
	if text := r.Text(100); strings.Contains(text, "judge") {
		t.Errorf("a run without a judge has a line of it:\n%s", text)
	}
}

// A day of the default fleet on static provisioning: the report as a person reads it.
func TestText(t *testing.T) {
	f := testFleet(t, 40, nil)
	tr, err := NewTruth(TruthOptions{Fleet: f, Start: traces.ReplayStart(), Nodes: 200, AllocatableCores: 12800, OnlineCores: testCores, OfflineDemand: 60_000})
	if err != nil {
		t.Fatal(err)
	}
	play(t, tr, 24*240, StepFacts{Services: staticPods(f), OfflineUsed: 3200, OfflineUseful: 0, Pinned: []Pin{{"node-017", "shop/cart"}}})
	r := tr.Report(300 * time.Second)
	got := r.Text(100)
	const golden = "testdata/report.txt"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant (rewrite with -update)\n%s", got, want)
	}
	if r.SLOViolationMinutes != r.SLOViolationMinutesStatic {
		t.Errorf("the run on static replicas violates %d minutes, the static one beside it %d", r.SLOViolationMinutes, r.SLOViolationMinutesStatic)
	}
	for _, s := range r.ByService {
		if s.SLOViolationMinutesStatic > 0 {
			t.Logf("%-28s %-6s static violates %d minutes", s.Service, s.Size, s.SLOViolationMinutesStatic)
		}
	}
}

func TestSparkline(t *testing.T) {
	for want, in := range map[string][]float64{
		"▁▅█":  {0, 4, 8},
		"▅█":   {1, 4, 2, 8},
		"█ ▁":  {9, math.NaN(), -1},
		"":     nil,
		"▂▂▂▂": {1, 1, 1, 1},
	} {
		width := len([]rune(want))
		if got := Sparkline(in, width, 8); got != want {
			t.Errorf("%v: got %q, want %q", in, got, want)
		}
	}
	if got := Sparkline([]float64{0, 0}, 10, 0); got != "▁▁" {
		t.Errorf("without a scale: %q", got)
	}
}
