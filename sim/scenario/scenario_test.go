package scenario

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/internal/replay"
)

// stranger is a fleet in a directory of its own, with a tide for a load.
func stranger(t *testing.T, yaml string, change func(i int, v float64) float64) *Scenario {
	t.Helper()
	dir := t.TempDir()
	var one, long bytes.Buffer
	one.WriteString("ts,value\n")
	long.WriteString("id,ts,value\n")
	begin := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for i := range 35 * 24 {
		v := 100 + 80*math.Sin(2*math.Pi*float64(i)/24)
		if change != nil {
			v = change(i, v)
		}
		at := begin.Add(time.Duration(i) * time.Hour).Format(time.RFC3339)
		row := at + "," + strings.ReplaceAll(strconv.FormatFloat(v, 'g', 6, 64), "NaN", "")
		one.WriteString(row + "\n")
		long.WriteString("Shop A," + row + "\nshop_b," + row + "\n")
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(long.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"one.csv": one.Bytes(), "long.csv.gz": zipped.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Parse(filepath.Join(dir, "s.yaml"), []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const fleetYAML = `
name: stranger
start: 2026-05-29T00:00:00Z
days: 2
history: 15d
fleet: {nodes: 20}
services:
- {name: one, trace: one.csv, weight: 3}
- {name: long, trace: long.csv.gz}
`

func build(t *testing.T, s *Scenario) *Built {
	t.Helper()
	b, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A stranger's traces, one series and several, plain and gzipped, run without touching code; and the rule holds.
func TestAStrangersTraces(t *testing.T) {
	b := build(t, stranger(t, fleetYAML, nil))
	var names []string
	static := 0
	for i := range b.Services {
		o := &b.Services[i]
		names = append(names, string(o.ID()))
		static += o.Static * o.Cores
		peak := replay.Peak(replay.Frame{End: b.End(), Replay: b.Duration()}.LastWeek(o.Load))
		if n := int(math.Ceil(peak * Headroom / o.Capacity())); n != o.Static {
			t.Errorf("%s: last week's peak and a fifth asks for %d replicas, static is %d", o.Name, n, o.Static)
		}
		if !o.Calm || o.Young || !o.Disaggregated {
			t.Errorf("%s: calm %v, young %v, disaggregated %v", o.Name, o.Calm, o.Young, o.Disaggregated)
		}
		if o.Load.Since(b.RunStart()).Known() != int((WarmUp+b.Duration())/time.Minute) || o.Load.End() != b.End() {
			t.Errorf("%s: the run has gaps, or ends at %s", o.Name, o.Load.End())
		}
	}
	if got := strings.Join(names, " "); got != "online/long-shop-a online/long-shop-b online/one" {
		t.Errorf("services are %s", got)
	}
	if static > 20*64 || static < 20*64*9/10 {
		t.Errorf("static provisioning requests %d cores of %d", static, 20*64)
	}
	if a, o := b.Services[0].Static, b.Services[2].Static; o < 3*a-3 || o > 3*a+3 {
		t.Errorf("weights 1 and 3 give %d and %d replicas", a, o)
	}
}

// Without a number of machines the fleet follows from the services.
func TestTheFleetFollows(t *testing.T) {
	yaml := strings.Replace(fleetYAML, "fleet: {nodes: 20}", "fleet: {staticShare: 0.5}\ndefaults: {peakCores: 170}", 1)
	b := build(t, stranger(t, yaml, nil))
	// 170 × 1.2 / (0.85 × 8) = 30 replicas of 8 cores for each of three services; half of the fleet, 64 cores a machine.
	if b.Services[0].Static != 30 || b.Online != 23 {
		t.Errorf("%d replicas on %d machines, want 30 on 23", b.Services[0].Static, b.Online)
	}
}

// Static provisioning fits the machines that it fills, whatever of them its replicas leave over.
func TestTheFleetHoldsStaticProvisioning(t *testing.T) {
	for defaults, perMachine := range map[string]int{"cores: 8": 8, "cores: 20": 3, "cores: 24": 2, "cores: 8, memoryPerCoreGiB: 6": 5} {
		b := build(t, stranger(t, fleetYAML+"defaults: {"+defaults+"}\n", nil))
		replicas := 0
		for i := range b.Services {
			replicas += b.Services[i].Static
		}
		if most := 20 * perMachine; replicas > most || replicas < most-len(b.Services) {
			t.Errorf("%s: %d replicas on 20 machines that hold %d each", defaults, replicas, perMachine)
		}
		yaml := strings.Replace(fleetYAML, "fleet: {nodes: 20}", "defaults: {peakCores: 170, "+defaults+"}", 1)
		b = build(t, stranger(t, yaml, nil))
		replicas = 0
		for i := range b.Services {
			replicas += b.Services[i].Static
		}
		if b.Online != (replicas+perMachine-1)/perMachine {
			t.Errorf("%s: %d machines for %d replicas, of which each holds %d", defaults, b.Online, replicas, perMachine)
		}
	}
}

// Fifths of a machine do not add up exactly; a share of the fleet that is a whole number of replicas is that number all the same.
func TestSharesOfAFleetAreWhole(t *testing.T) {
	for nodes := 16; nodes <= 18; nodes++ {
		yaml := strings.Replace(fleetYAML, "{nodes: 20}", fmt.Sprintf("{nodes: %d}", nodes), 1) + "defaults: {cores: 12}\n"
		for _, o := range build(t, stranger(t, yaml, nil)).Services {
			if share := nodes * int(o.Spec.Weight); o.Static != share { // the weights are 3, 1 and 1, and a machine holds five
				t.Errorf("%d machines: %d replicas of %s, whose share is %d", nodes, o.Static, o.Name, share)
			}
		}
	}
}

// Measurements from the start of the run on reach no size, scale, class or history.
func TestTheRunDecidesNothing(t *testing.T) {
	for name, change := range map[string]func(float64) float64{
		"gone": func(float64) float64 { return math.NaN() }, "zero": func(float64) float64 { return 0 }, "hundred": func(v float64) float64 { return 100 * v },
	} {
		want := build(t, stranger(t, fleetYAML, nil))
		got := build(t, stranger(t, fleetYAML, func(i int, v float64) float64 {
			if i >= 28*24 {
				return change(v)
			}
			return v
		}))
		differs := false
		for i := range want.Services {
			x, y := &want.Services[i], &got.Services[i]
			if x.Static != y.Static || x.Calm != y.Calm || x.Name != y.Name {
				t.Errorf("%s: %s: %d and %d replicas", name, x.Name, x.Static, y.Static)
			}
			n := x.Load.Index(want.Start)
			for k, v := range x.Load.Values[:n] {
				if math.Float64bits(v) != math.Float64bits(y.Load.Values[k]) {
					t.Fatalf("%s: %s: history differs at %s", name, x.Name, x.Load.Time(k))
				}
			}
			differs = differs || x.Load.Values[n+100] != y.Load.Values[n+100]
		}
		if !differs {
			t.Errorf("%s: the change did not reach the run: the test cannot fail", name)
		}
	}
}

// A trace of hours says nothing of the last part of a run that does not end on the hour: it goes on as it was.
func TestARunMayEndWithinAnHour(t *testing.T) {
	s := stranger(t, fleetYAML, nil)
	s.Days = 1.1
	b, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.Services {
		o := &b.Services[i]
		if end := o.Load.End(); end.Before(b.End()) {
			t.Errorf("the load of %s ends at %s, the run at %s", o.ID(), end, b.End())
		}
		for at := b.RunStart(); at.Before(b.End()); at = at.Add(time.Minute) {
			if math.IsNaN(o.Load.At(at)) {
				t.Fatalf("the load of %s is not known at %s", o.ID(), at)
			}
		}
	}
}

// A surge is in the load, and a festival without its service is refused.
func TestSurges(t *testing.T) {
	surge := "surges:\n- {service: online/one, start: 2026-05-29T10:00:00Z, end: 2026-05-29T11:00:00Z, factor: 2}\n"
	plain, with := build(t, stranger(t, fleetYAML, nil)), build(t, stranger(t, fleetYAML+surge, nil))
	at := time.Date(2026, 5, 29, 10, 30, 0, 0, time.UTC)
	if x, y := plain.Services[2].Load.At(at), with.Services[2].Load.At(at); y != 2*x {
		t.Errorf("%v became %v", x, y)
	}
	_, err := stranger(t, fleetYAML+"festivals:\n- {name: f, start: 2026-05-29T10:00:00Z, end: 2026-05-29T11:00:00Z, lifts: [{service: shop/none, factor: 2}]}\n", nil).Build()
	if err == nil || !strings.Contains(err.Error(), `there is no service "shop/none": write one of online/long-shop-a, `) {
		t.Errorf("got %v", err)
	}
}

// A service has what the defaults say and it does not; what it says holds, though it be 0, and is refused where 0 is no value.
func TestAServiceOverridesTheDefaults(t *testing.T) {
	const defaults = "defaults: {startUp: 5m, startUpSpread: 0.3, memoryPerCoreGiB: 2, take: 3, slo: {latency: 200ms, utilisation: 0.6}, windows: [{start: 0 2 * * *, for: 1h, min: 9}]}\n"
	s := stranger(t, strings.Replace(fleetYAML, "weight: 3", "weight: 3, startUp: 0s, startUpSpread: 0, memoryPerCoreGiB: 0, take: 0, slo: {utilisation: 0.7}, windows: []", 1)+defaults, nil)
	if v := s.Services[0]; v.StartUp != 0 || v.StartUpSpread != 0 || v.MemoryPerCoreGiB != 0 || v.Take != 0 ||
		!reflect.DeepEqual(v.SLO, SLO{Utilisation: 0.7}) || len(v.Windows) != 0 || v.Weight != 3 ||
		v.Cores != 8 || v.Min != 2 || v.Namespace != "online" {
		t.Errorf("what it says is not what it has: %+v", v)
	}
	if v := s.Services[1]; v.StartUp != config.Duration(5*time.Minute) || v.StartUpSpread != 0.3 || v.MemoryPerCoreGiB != 2 || v.Take != 3 || len(v.Windows) != 1 || v.Weight != 1 ||
		!reflect.DeepEqual(v.SLO, SLO{Latency: config.Duration(200 * time.Millisecond), Utilisation: 0.6, Quantile: 0.99}) {
		t.Errorf("what it does not say is not what the defaults have: %+v", v)
	}
	for field, want := range map[string]string{
		"min: 0": "s.yaml:3: services[0].min: 0 is out of bounds: write 1 to 1e+06", "burst: 0": "s.yaml:3: services[0].burst: 0 is out of bounds: write 1 to 10",
		`namespace: ""`: `s.yaml:3: services[0].namespace: "" is no name`, "startUp: ": "",
	} {
		_, err := Parse("s.yaml", []byte("name: a\nservices:\n- {name: x, "+field+"}\n"))
		if err == nil || !strings.Contains(err.Error(), want) || want == "" && strings.Contains(err.Error(), "startUp") {
			t.Errorf("%q:\ngot  %v\nwant %s", field, err, want)
		}
	}
}

func TestErrorsNameTheLineAndTheFix(t *testing.T) {
	for in, want := range map[string]string{
		"nmae: x":                  "s.yaml:1: unknown field nmae: did you mean name?",
		"fleet: {machines: 3}":     "s.yaml:1: unknown field machines: write one of coresPerNode, lending, nodes, offlineNodes, scheduler, sockets, staticShare, zones",
		"name: week\ndays: soon\n": "s.yaml:2: cannot unmarshal",
		"name: A B\n":              `s.yaml:1: name: "A B" is no name: write lower-case letters, digits and dashes`,
		"name: a\nstart: 2026-01-01T00:00:00Z\nservices:\n- {name: x, trace: none.csv}\nfleet: {nodes: 1}": "s.yaml:4: services[0].trace: none.csv cannot be read: write a path that begins at the scenario's",
		"name: a\ndays: 0\n":     "s.yaml:2: days: 0 is out of bounds: write 0.02 to 366",
		"name: a\nhistory: 3x\n": `s.yaml:2: "3x" is no duration: write one such as 30s or 1m30s`,
		"name: a\njobs: [{name: j, cores: 4, priority: Low, share: 0.4, every: 1m}]":            "jobs: their shares add up to 0.4: make it 1",
		"name: a\ntenants: [{name: shop, parent: company}]":                                     "tenants[0].parent: company is no tenant above this one: write parents first",
		"name: a\nfaults: {kinds: [clocksBack], random: 1}":                                     "faults.kinds[0]: no window or slice has a time zone whose clocks change: give one a timeZone, as in Europe/Berlin",
		"name: a\nfaults: {list: [{kind: quake, for: 1m}]}":                                     `faults.list[0].kind: "quake" is no fault: write one of nodesLost`,
		"name: a\ndays: 0.125\nfaults:\n  list:\n  - {kind: crash, after: 30m, for: 45m}\n":     "s.yaml:5: faults.list[0].for: it ends 1h15m0s after the start, and nothing may go wrong in the last 2h0m0s of the run (faults.quiet, 2h0m0s unless written): end it by 1h0m0s, or write faults.quiet: 1h45m0s",
		"name: a\ndays: 0.125\nfaults: {quiet: 1h, list: [{kind: crash, after: 2h, for: 61m}]}": "faults.list[0].for: it ends 3h1m0s after the start, and the run after 3h0m0s: end it by 2h0m0s",
		"name: a\n---\nname: b\n": "s.yaml: holds more than one document: keep one",
	} {
		if _, err := Parse("s.yaml", []byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\ngot  %v\nwant %s", in, err, want)
		}
	}
}

// A fault may last until the quiet time begins, which may be no time at all.
func TestFaultsEndBeforeTheQuiet(t *testing.T) {
	for _, faults := range []string{"{list: [{kind: crash, after: 15m, for: 45m}]}", "{quiet: 0s, list: [{kind: crash, after: 2h, for: 1h}]}", "{quiet: 4h, list: [{kind: crash, for: 1h}]}"} {
		if _, err := Parse("s.yaml", []byte("name: a\ndays: 0.125\nfaults: "+faults)); err == nil || strings.Contains(err.Error(), "faults.list") {
			t.Errorf("%s: %v", faults, err)
		}
	}
}

// The zones whose clocks may be changed are those of windows and slices, each once, and none that keeps its time.
func TestClocks(t *testing.T) {
	in := func(zone string) Window {
		return Window{Start: "0 2 * * *", For: config.Duration(time.Hour), TimeZone: zone}
	}
	s := &Scenario{Start: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Tenants: []Tenant{{Slices: []Slice{{Window: in("America/New_York")}, {Window: in("Europe/Berlin")}}}}}
	v := &Service{Windows: []ServiceWindow{{Window: in("Europe/Berlin")}, {Window: in("Asia/Shanghai")}, {Window: in("")}, {Window: in("No/Where")}}}
	b := &Built{Scenario: s, Services: []Online{{Spec: v}}}
	got := b.Clocks()
	if len(got) != 2 || got[0].String() != "Europe/Berlin" || got[1].String() != "America/New_York" {
		t.Fatalf("%v", got)
	}
	for _, x := range []struct {
		forward bool
		after   time.Time
		want    time.Time
	}{
		{true, s.Start, time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC)},
		{false, s.Start, time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)},
		{false, time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC), time.Date(2027, 10, 31, 1, 0, 0, 0, time.UTC)},
	} {
		if at, ok := ClockChange(got[0], x.after, x.forward); !ok || !at.Equal(x.want) {
			t.Errorf("forward %t after %s: %s, %t", x.forward, x.after, at, ok)
		}
	}
}

func TestBadTraces(t *testing.T) {
	for text, want := range map[string]string{
		"ts,value\n2026-05-01T00:00:00Z,1\n":                                   "too short",
		"ts,value\n2026-05-01T00:00:00Z,many\n":                                `t.csv:2: value: "many" is no number`,
		"time,load\n":                                                          "t.csv:1: header: found time,load: begin with the header ts,value, or id,ts,value for several series",
		"ts,value\n2026-05-01T00:00:00Z,1\n2026-05-01T01:00:00Z,-3\n":          "t.csv:3: value: -3 is negative, and no load is: write 0 or more, or nothing for a missing value",
		"id,ts,value\na,2026-05-01T00:00:00Z,1\nb,2026-05-01T00:00:00Z,-0.5\n": "t.csv:3: value: -0.5 is negative",
		mixed(time.Hour, time.Minute):                                          "t.csv:22: ts: one value in 1m0s from here on, one in 1h0m0s before: resample the series to one step",
		mixed(time.Minute, 5*time.Minute):                                      "t.csv:22: ts: one value in 5m0s from here on, one in 1m0s before: resample the series to one step",
		"ts,value\n2026-05-01T00:00:00Z,1\n2026-05-03T00:00:00Z,1\n":           "too coarse to replay",
		"ts,value\n2026-05-01T00:00:00Z,1\n2026-05-01T00:01:30Z,1\n":           "resample it to whole minutes",
	} {
		s := stranger(t, fleetYAML, nil)
		if err := os.WriteFile(filepath.Join(s.dir, "t.csv"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Services[0].Trace = "t.csv"
		if _, err := s.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// A load that is of no use is refused with the reason, whether it is the only one or one of several windows.
func TestUselessLoadsSayWhy(t *testing.T) {
	const fix = ": give another stretch of the trace by from and to, or leave it out"
	const start = 28 * 24
	within := func(from, to int, then func(float64) float64) func(int, float64) float64 {
		return func(i int, v float64) float64 {
			if i >= from && i < to {
				return then(v)
			}
			return v
		}
	}
	nothing := func(float64) float64 { return 0 }
	for what, c := range map[string]struct {
		change func(i int, v float64) float64
		want   string
	}{
		"zeros": {within(0, start, nothing), "the last week before the start has no load at all"},
		"a blip": {func(i int, v float64) float64 {
			if i == start-50 {
				return v
			}
			return 0
		}, "99 % of the last week before the start has no load"},
		"a spike": {within(start-50, start-49, func(v float64) float64 { return 100 * v }), "one spike owns last week's scale"},
		"gaps":    {within(start-48, start, func(float64) float64 { return math.NaN() }), "more than 5 % of the history is missing"},
	} {
		_, err := stranger(t, fleetYAML, c.change).Build()
		if want := "services[0] one: one.csv: the load is of no use: " + c.want + fix; err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", what, err, want)
		}
	}
	// A history of twelve days leaves room for two windows.
	yaml := strings.Replace(strings.Replace(fleetYAML, "history: 15d", "history: 12d", 1), "- {name: one, trace: one.csv, weight: 3}\n", "", 1)
	b := build(t, stranger(t, yaml, within(0, 14*24, nothing)))
	if want := "long-shop-a: 1 of 2 windows are left out: the last week before the start has no load at all"; len(b.Notes) < 1 || b.Notes[0] != want {
		t.Errorf("got  %q\nwant %s", b.Notes, want)
	}
	_, err := stranger(t, yaml, within(0, start, nothing)).Build()
	if want := `long.csv.gz: id "Shop A": none of 2 windows is usable: the last week before the start has no load at all` + fix; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// The shipped examples are read and built, and those that are compared are what they say.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	built := map[string]*Built{}
	for _, f := range files {
		s, err := Load(f)
		if err != nil {
			t.Fatal(err)
		}
		built[s.Name] = build(t, s)
	}
	week := built["week"]
	fine, static := 0, 0
	for i := range week.Services {
		o := &week.Services[i]
		t.Logf("%-28s static %3d calm %-5v young %-5v disaggregated %v", o.Name, o.Static, o.Calm, o.Young, o.Disaggregated)
		static += o.Static * o.Cores
		if o.Spec.StartUp != config.Duration(180*time.Second) || o.Spec.StartUpSpread != 0 {
			t.Errorf("%s starts up in %s, with a spread of %v", o.Name, time.Duration(o.Spec.StartUp), o.Spec.StartUpSpread)
		}
		if !o.Disaggregated {
			fine++
		}
	}
	t.Log(week.Notes, static)
	if week.Online != 1000 || len(week.Services) < 30 || fine < 7 {
		t.Errorf("%d machines, %d services, %d of them by the minute", week.Online, len(week.Services), fine)
	}

	// A third of other-week is bursty, and it plays no minute that week.yaml plays, nor one twice.
	other, bursty := built["other-week"], 0
	for i := range other.Services {
		o := &other.Services[i]
		if !o.Calm {
			bursty++
		}
		for _, b := range []*Built{week, other} {
			for k := range b.Services {
				if p := &b.Services[k]; p != o && filepath.Base(p.Spec.Trace) == filepath.Base(o.Spec.Trace) && o.measured(other).Before(p.measured(b).Add(b.Duration())) &&
					p.measured(b).Before(o.measured(other).Add(other.Duration())) {
					t.Errorf("%s of other-week plays what %s of %s plays, from %s", o.Name, p.Name, b.Name, o.measured(other))
				}
			}
		}
	}
	if 3*bursty != len(other.Services) {
		t.Errorf("%d of %d services of other-week are bursty, want a third", bursty, len(other.Services))
	}

	// The services of small-services have 3 to 5 replicas, and fill the machines.
	small := built["small-services"]
	static = 0
	for i := range small.Services {
		o := &small.Services[i]
		static += o.Static * o.Cores
		if o.Static < 3 || o.Static > 5 {
			t.Errorf("%s has %d replicas", o.Name, o.Static)
		}
	}
	if len(small.Services) != 500 || small.Online != (static+63)/64 {
		t.Errorf("small-services has %d services, and %d machines for %d cores", len(small.Services), small.Online, static)
	}
}

// measured is when the first minute that is played was measured, by the clock of the trace.
func (o *Online) measured(b *Built) time.Time { return b.Start.Add(-o.shift) }

// mixed is a series of one step for twenty values, and of another one from then on.
func mixed(first, then time.Duration) string {
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	text := "ts,value\n"
	for i := range 60 {
		text += fmt.Sprintf("%d,1\n", at.Unix())
		if at = at.Add(first); i >= 19 {
			at = at.Add(then - first)
		}
	}
	return text
}
