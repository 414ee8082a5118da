package prom

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"pgregory.net/rapid"
)

// TestRecentAnswersAsTheDatabase: whatever is asked about the last minutes, the recent samples say what the database says. Pods come and go
// meanwhile, series end by a stale marker, and rules record some.
func TestRecentAnswersAsTheDatabase(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p, err := Open(t.TempDir(), Options{Now: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	must(t, p.LoadRules(write(t, "groups: [{name: g, rules: [{record: 'zone:used:rate2m', expr: 'sum by (zone) (rate(used_total[2m]))'}]}]")))
	series := map[string]*Series{}
	asked := 0
	for step := range 140 { // 35 minutes
		now := start.Add(time.Duration(step) * 15 * time.Second)
		var values []RefValue
		for pod := range 12 {
			if step/20 < pod%4 { // comes later
				continue
			}
			name := fmt.Sprintf("p%d-%d", pod, step/(30+pod)) // goes, and another one comes
			for _, metric := range []string{"used_total", "ready"} {
				key := metric + name
				if series[key] == nil {
					series[key] = p.Series(labels.FromStrings(model.MetricNameLabel, metric, "pod", name, "zone", string(rune('a'+pod%3)), "node", ""))
				}
				values = append(values, RefValue{series[key], float64(step*pod + len(metric))})
			}
			if old := series["ready"+fmt.Sprintf("p%d-%d", pod, step/(30+pod)-1)]; old != nil && step%(30+pod) == 0 {
				if err := p.End(now, old); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := p.AppendBatch(now, values); err != nil {
			t.Fatal(err)
		}
		if step%4 == 0 {
			if err := p.EvalRules(t.Context(), now); err != nil {
				t.Fatal(err)
			}
		}
		for _, expr := range []string{
			`used_total`, `sum by (zone) (rate(used_total[2m]))`, `rate(used_total{zone!="b", pod=~"p[1-5].*"}[5m])`, `max by (pod) (timestamp(ready) and rate(ready[1m]))`,
			`count by (__name__) ({__name__=~".+"})`, `{zone="a"}`, `ready{zone=""}`, `absent(ready)`, `max_over_time(ready[3m] offset 2m)`,
			`count_over_time(ready[15m])`, // further back than the recent samples
		} {
			asked += asTheDatabase(t, p, expr, now)
		}
	}
	if q, err := p.db.Querier(start.Add(34*time.Minute-recentSpan/2).UnixMilli(), start.Add(35*time.Minute).UnixMilli()); err != nil {
		t.Fatal(err)
	} else if _, ok := q.(*recentQuerier); !ok || asked < 1000 {
		t.Errorf("the last minutes are answered by %T, %d samples in all", q, asked)
	}
	if n := len(p.db.byRef); n == 0 || n >= len(series) {
		t.Errorf("%d series are kept, of those that ended too", n)
	}
	// A block that comes later is read, although the recent samples cover its span.
	end := start.Add(34 * time.Minute)
	past, err := p.Backfill()
	must(t, err)
	must(t, past.AppendSeries(past.Series(labels.FromStrings(model.MetricNameLabel, "ready", "pod", "of the past")), []Point{{end, 1}}))
	must(t, past.Commit(t.Context()))
	if asTheDatabase(t, p, `ready{pod="of the past"}`, end.Add(15*time.Second)) != 1 {
		t.Error("the block's series is not there")
	}
}

// asTheDatabase holds the answer to a query to be the same with and without the recent samples, and returns the number of its samples.
func asTheDatabase(t *testing.T, p *Prom, expr string, at time.Time) int {
	t.Helper()
	got, err := p.Query(t.Context(), expr, at)
	must(t, err)
	plain := &Prom{engine: p.engine, db: newDatabase(p.db.DB)} // knows of no recent samples
	want, err := plain.Query(t.Context(), expr, at)
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s at %s:\n%v\nthe database says\n%v", expr, at.Format(time.TimeOnly), got, want)
	}
	return len(got)
}

// The place of a time is found whatever the pace of the samples.
func TestFirstAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var samples []recentSample
		at := int64(0)
		for range rapid.IntRange(0, 40).Draw(t, "samples") {
			at += rapid.SampledFrom([]int64{1, 15000, 15000, 15000, 60000, 600000}).Draw(t, "gap")
			samples = append(samples, recentSample{t: at})
		}
		asked := rapid.Int64Range(-5, at+5).Draw(t, "asked")
		if len(samples) > 0 && rapid.Bool().Draw(t, "exactly") {
			asked = rapid.SampledFrom(samples).Draw(t, "of").t
		}
		want := 0
		for want < len(samples) && samples[want].t < asked {
			want++
		}
		if got := firstAt(samples, asked); got != want {
			t.Errorf("%d of %v, want %d", got, samples, want)
		}
	})
}
