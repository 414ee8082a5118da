package prom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// noon is the virtual start of the tests, years away from the wall clock.
var noon = time.Date(2031, 3, 3, 12, 0, 0, 0, time.UTC)

func open(t testing.TB) *Prom {
	t.Helper()
	p, err := Open(t.TempDir(), Options{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// served opens a Prom and a real client of it.
func served(t *testing.T) (*Prom, string, v1.API) {
	t.Helper()
	p := open(t)
	url, err := p.Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		t.Fatal(err)
	}
	return p, url, v1.NewAPI(client)
}

// query evaluates an expression and writes its answer as text, one sample a line.
func query(t *testing.T, p *Prom, expr string, ts time.Time) string {
	t.Helper()
	samples, err := p.Query(t.Context(), expr, ts)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, s := range samples {
		fmt.Fprintf(&b, "%s %v\n", s.Labels, s.Value)
	}
	return b.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAPIAnswersAtVirtualTime(t *testing.T) {
	p, url, client := served(t)
	ctx := t.Context()
	for i := range 61 {
		must(t, p.Append(ctx, noon.Add(time.Duration(i-60)*time.Minute), []Sample{
			{Labels: labels.FromStrings("__name__", "requests_total", "service", "cart"), Value: float64(60 * i)},
			{Labels: labels.FromStrings("__name__", "requests_total", "service", "shop"), Value: float64(120 * i)},
		}))
	}

	value, _, _, err := client.Query(ctx, `rate(requests_total[5m])`, noon)
	must(t, err)
	if got, want := value.String(), `{service="cart"} => 1 @[1930305600]`+"\n"+`{service="shop"} => 2 @[1930305600]`; got != want {
		t.Errorf("query:\n%s\nwant:\n%s", got, want)
	}
	value, _, _, err = client.QueryRange(ctx, `sum(requests_total)`, v1.Range{Start: noon.Add(-time.Hour), End: noon, Step: 30 * time.Minute})
	must(t, err)
	if got, want := value.String(), "{} =>\n0 @[1930302000]\n5400 @[1930303800]\n10800 @[1930305600]"; got != want {
		t.Errorf("query_range:\n%s\nwant:\n%s", got, want)
	}
	series, _, _, err := client.Series(ctx, []string{`requests_total{service="shop"}`}, noon.Add(-time.Hour), noon)
	must(t, err)
	if want := []model.LabelSet{{"__name__": "requests_total", "service": "shop"}}; !cmp.Equal(series, want) {
		t.Errorf("series: %v, want %v", series, want)
	}
	names, _, _, err := client.LabelNames(ctx, nil, noon.Add(-time.Hour), noon)
	must(t, err)
	if want := (model.LabelNames{"__name__", "service"}); !cmp.Equal(names, want) {
		t.Errorf("labels: %v, want %v", names, want)
	}
	values, _, _, err := client.LabelValues(ctx, "service", nil, noon.Add(-time.Hour), noon)
	must(t, err)
	if want := (model.LabelValues{"cart", "shop"}); !cmp.Equal(values, want) {
		t.Errorf("label values: %v, want %v", values, want)
	}

	info, err := client.Buildinfo(ctx)
	must(t, err)
	if info.Version != version {
		t.Errorf("buildinfo: %+v", info)
	}
	for what, ask := range map[string]func() error{
		"runtimeinfo": func() error { _, err := client.Runtimeinfo(ctx); return err },
		"config":      func() error { _, err := client.Config(ctx); return err },
		"flags":       func() error { _, err := client.Flags(ctx); return err },
		"tsdb":        func() error { _, err := client.TSDB(ctx); return err },
		"targets":     func() error { _, err := client.Targets(ctx); return err },
		"rules":       func() error { _, err := client.Rules(ctx, nil); return err },
		"alerts":      func() error { _, err := client.Alerts(ctx); return err },
	} {
		if err := ask(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := get(t, url+"/-/ready"); got != "200 " {
		t.Errorf("ready: %s", got)
	}
	if got := get(t, url+"/api/v1/query?query=sum(requests_total)"); !strings.Contains(got, `[1930305600,"10800"]`) {
		t.Errorf("a query without a time is not one at the virtual now: %s", got)
	}
}

// get fetches a page as "code body".
func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return fmt.Sprint(resp.StatusCode, " ", string(body))
}

func TestOutage(t *testing.T) {
	p, url, client := served(t)
	ctx := t.Context()
	up := p.Series(labels.FromStrings("__name__", "up"))
	must(t, p.AppendBatch(noon, []RefValue{{up, 1}}))
	must(t, p.StopServing())
	must(t, p.StopServing())
	if _, _, _, err := client.Query(ctx, "up", noon); err == nil {
		t.Error("answers during the outage")
	}
	must(t, p.AppendBatch(noon.Add(time.Hour), []RefValue{{up, 2}}))
	must(t, p.ServeAgain())
	value, _, _, err := client.Query(ctx, "up", noon.Add(time.Hour))
	must(t, err)
	if got, want := value.String(), "up => 2 @[1930309200]"; got != want {
		t.Errorf("after the outage: %s, want %s", got, want)
	}
	if _, err := p.Serve("127.0.0.1:0"); err == nil {
		t.Errorf("serves twice, beside %s", url)
	}
}

func TestEndedSeriesAreGoneAtOnce(t *testing.T) {
	p := open(t)
	pod := p.Series(labels.FromStrings("__name__", "up", "pod", "a"))
	stays := p.Series(labels.FromStrings("__name__", "up", "pod", "b"))
	must(t, p.AppendBatch(noon, []RefValue{{pod, 1}, {stays, 1}}))
	must(t, p.End(noon.Add(time.Minute), pod))
	for _, c := range []struct {
		at   time.Duration
		want string
	}{
		{0, "2"},
		{59 * time.Second, "2"},
		{time.Minute, "1"},
		{4 * time.Minute, "1"},
	} {
		if got := query(t, p, "count(up)", noon.Add(c.at)); got != "{} "+c.want+"\n" {
			t.Errorf("count(up) after %s = %q, want %s", c.at, got, c.want)
		}
	}
	must(t, p.AppendBatch(noon.Add(2*time.Minute), []RefValue{{pod, 7}}))
	if got := query(t, p, `up{pod="a"}`, noon.Add(2*time.Minute)); !strings.HasSuffix(got, " 7\n") {
		t.Errorf("the series does not come back: %q", got)
	}
}

// TestRefusedBatchesLeaveNothing: a batch with one sample that is too old is refused whole, and the error names it.
func TestRefusedBatchesLeaveNothing(t *testing.T) {
	p := open(t)
	old := p.Series(labels.FromStrings("__name__", "old"))
	other := p.Series(labels.FromStrings("__name__", "other"))
	must(t, p.AppendBatch(noon, []RefValue{{old, 1}}))
	err := p.AppendBatch(noon.Add(-time.Minute), []RefValue{{other, 1}, {old, 2}})
	if err == nil || !strings.Contains(err.Error(), `{__name__="old"} at 2031-03-03T11:59:00Z`) {
		t.Errorf("an old sample is taken, or not named: %v", err)
	}
	if got := query(t, p, "other", noon); got != "" {
		t.Errorf("half a batch was written: %s", got)
	}
}

// TestLiveDataSurvivesCompaction runs for three days, which takes the head to blocks several times.
func TestLiveDataSurvivesCompaction(t *testing.T) {
	p := open(t)
	series := p.Series(labels.FromStrings("__name__", "load"))
	const minutes = 3 * 24 * 60
	for i := range minutes {
		must(t, p.AppendBatch(noon.Add(time.Duration(i)*time.Minute), []RefValue{{series, float64(i)}}))
	}
	must(t, p.db.Compact(t.Context()))
	if len(p.db.Blocks()) == 0 {
		t.Error("nothing was compacted; the test proves nothing")
	}
	end := noon.Add((minutes - 1) * time.Minute)
	if got, want := query(t, p, "count_over_time(load[4d])", end), fmt.Sprintf("{} %d\n", minutes); got != want {
		t.Errorf("samples: %s, want %s", got, want)
	}
	if got, want := query(t, p, "min_over_time(load[4d])", end), "{} 0\n"; got != want {
		t.Errorf("first sample: %s, want %s", got, want)
	}
}

// write puts a rule file into the test's directory.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func TestAlertsGoByVirtualTime(t *testing.T) {
	p, _, client := served(t)
	must(t, p.LoadRules(write(t, `
groups:
- name: recalls
  interval: 1m
  rules:
  - alert: RecallLate
    expr: late > 0
    for: 5m
    labels: {severity: page}
`)))
	late := p.Series(labels.FromStrings("__name__", "late", "pool", "night"))
	state := map[time.Duration]v1.AlertState{}
	for i := range 10 {
		at := time.Duration(i) * time.Minute
		must(t, p.AppendBatch(noon.Add(at), []RefValue{{late, float64(min(i, 1))}}))
		must(t, p.EvalRules(t.Context(), noon.Add(at)))
		alerts, err := client.Alerts(t.Context())
		must(t, err)
		for _, a := range alerts.Alerts {
			state[at] = a.State
		}
	}
	for at, want := range map[time.Duration]v1.AlertState{
		0: "", time.Minute: v1.AlertStatePending, 5 * time.Minute: v1.AlertStatePending, 6 * time.Minute: v1.AlertStateFiring,
	} {
		if state[at] != want {
			t.Errorf("after %s: %q, want %q", at, state[at], want)
		}
	}
	if got, want := query(t, p, `ALERTS{alertstate="firing"}`, noon.Add(6*time.Minute)),
		`{__name__="ALERTS", alertname="RecallLate", alertstate="firing", pool="night", severity="page"} 1`+"\n"; got != want {
		t.Errorf("ALERTS: %s, want %s", got, want)
	}
}

func TestBadRulesAreNamed(t *testing.T) {
	p := open(t)
	err := p.LoadRules(write(t, "groups: [{name: g, rules: [{record: a, expr: 'sum('}]}]"))
	if err == nil || !strings.Contains(err.Error(), "rules.yaml") || !strings.Contains(err.Error(), "unclosed left parenthesis") {
		t.Errorf("LoadRules = %v, want file and fault", err)
	}
	if err := p.LoadRules(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("a missing file is no error")
	}
	must(t, p.LoadRules(write(t, "groups: [{name: g, rules: [{record: a, expr: 'x + on(b) y'}]}]")))
	must(t, p.Append(t.Context(), noon, []Sample{
		{labels.FromStrings("__name__", "x", "b", "1", "c", "1"), 1}, {labels.FromStrings("__name__", "x", "b", "1", "c", "2"), 1},
		{labels.FromStrings("__name__", "y", "b", "1"), 1},
	}))
	if err := p.EvalRules(t.Context(), noon); err == nil || !strings.Contains(err.Error(), "rule a of group g") {
		t.Errorf("EvalRules = %v, want the rule and its fault", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := p.EvalRules(stopped, noon.Add(time.Hour)); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "rule a") {
		t.Errorf("EvalRules = %v, want no fault of a rule where the evaluation was stopped", err)
	}
}

// TestGroupsAreEvaluatedAtTheirInterval calls every 15 s and counts what two groups record.
func TestGroupsAreEvaluatedAtTheirInterval(t *testing.T) {
	p := open(t)
	must(t, p.LoadRules(write(t, `
groups:
- {name: fast, interval: 15s, rules: [{record: fast, expr: vector(1)}]}
- {name: slow, rules: [{record: slow, expr: vector(1)}]}
`)))
	const quarter = 15 * time.Second
	for i := range 40 {
		must(t, p.EvalRules(t.Context(), noon.Add(time.Duration(i)*quarter)))
	}
	got := map[string]string{}
	for _, name := range []string{"fast", "slow"} {
		got[name] = query(t, p, "count_over_time("+name+"[20m])", noon.Add(10*time.Minute))
	}
	if want := map[string]string{"fast": "{} 40\n", "slow": "{} 10\n"}; !maps.Equal(got, want) {
		t.Errorf("recorded %v, want %v", got, want)
	}
}

func TestQueryOrdersItsSamples(t *testing.T) {
	p := open(t)
	var samples []Sample
	for _, name := range []string{"c", "a", "b"} {
		samples = append(samples, Sample{labels.FromStrings("__name__", "x", "s", name), 1})
	}
	must(t, p.Append(t.Context(), noon, samples))
	got, err := p.Query(t.Context(), "x", noon)
	must(t, err)
	if !slices.IsSortedFunc(got, func(a, b Sample) int { return labels.Compare(a.Labels, b.Labels) }) || len(got) != 3 {
		t.Errorf("Query = %v", got)
	}
	if _, err := p.Query(t.Context(), "x[5m]", noon); err == nil || !strings.Contains(err.Error(), "wants a vector") {
		t.Errorf("a matrix is not refused: %v", err)
	}
}
