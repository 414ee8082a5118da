package promql

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
)

// oneCPU is a container that uses a core.
const oneCPU = `  container_cpu_usage_seconds_total{namespace="shop", pod="cart-1-a", container="app", ` +
	`cpu="total"} 0+15x60`

// TestLevelHistory: each minute of a level's history is what the engine says at its end, and the load that of the
// preset; what ended is a hole, and so is what an own query makes of series that ended.
func TestLevelHistory(t *testing.T) {
	e := exporters[4] // Istio
	p := newProm(t, owners+e.series+oneCPU+`
  fails{namespace="shop"} 0+3x39 stale
  all{namespace="shop"} 0+300x60
  depth{namespace="shop"} 5x60
`, 1e6)
	h := p.history(Options{ScrapeInterval: 15 * time.Second})
	own := fleet.Source{Bad: "sum(rate(fails[5m]))", Total: "sum(rate(all[5m]))"}
	services := measured(presetLevels(e.preset)...)
	services[0].SLO.Levels[0].Source = own
	services[0].SLO.Levels = append(services[0].SLO.Levels,
		fleet.Level{Kind: fleet.LevelLatency, Name: "latency-p90", Quantile: 0.9, Limit: 2,
			Source: fleet.Source{Query: "sum(depth) / 10"}},
		fleet.Level{Kind: fleet.LevelBacklog, Name: "backlog", Source: fleet.Source{Query: "sum(depth)"}}, fleet.CPU(0.7))
	services[0].SLO.Objective.GoodMinutes = 0.999
	batches, err := h.Since(t.Context(), services, at(0), at(14*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]portrait.LevelValues{}
	var batch portrait.Batch
	for _, b := range batches {
		batch = b
		for _, l := range b.Levels.Of {
			got[l.Name] = l
		}
	}
	if len(got) != 7 {
		t.Errorf("levels %v, want five latencies of the preset, one of a query, and errors", got)
	}
	by := map[string]string{"latency-p90": "sum(depth) / 10", "errors": "sum(rate(fails[5m])) / sum(rate(all[5m]))"}
	for _, q := range []float64{0.5, 0.95, 0.99, 0.999, 0.9999} {
		by[fleet.LatencyName(q)] = fmt.Sprintf("histogram_quantile(%g, sum by (le) (rate(%s[2m]))) / 1000", q, e.histogram)
	}
	for name, query := range by {
		l := got[name]
		if l.Objective != 0.999 || l.Limit != services[0].SLO.Level(name).Limit || l.Values.Step != time.Minute ||
			len(l.Values.Values) != 14 {
			t.Errorf("%s: %+v", name, l)
			continue
		}
		for i, v := range l.Values.Values {
			end := l.Values.Time(i).Add(time.Minute)
			want, ok := p.evaluate(query, end)["{}"]
			if name == "errors" && end.After(at(9*time.Minute+45*time.Second)) {
				ok = false
			}
			if ok && want == want && math.Abs(v/want-1) > 1e-9 || (!ok || want != want) != (v != v) {
				t.Errorf("%s of the minute until %v is %v, by hand %v %v", name, end, v, want, ok)
			}
		}
	}
	for i, v := range batch.Load.Values {
		end := batch.Load.Time(i).Add(5 * time.Minute)
		if want := p.evaluate(fmt.Sprintf("sum(rate(%s[5m]))", e.total), end)["{}"]; math.Abs(v/want-1) > 1e-9 {
			t.Errorf("the load until %v is %v, by hand %v", end, v, want)
		}
	}
	if len(batch.Load.Values) == 0 {
		t.Error("no load")
	}
	// The same levels live.
	if err := h.Prefetch(t.Context(), services, at(14*time.Minute)); err != nil {
		t.Fatal(err)
	}
	live, err := observed(h, services, at(14*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	levels := live["shop/cart"].Levels
	if levels["latency-p90"] != fleet.KnownAt(0.5, at(14*time.Minute)) || levels["backlog"] != fleet.KnownAt(5.0,
		at(14*time.Minute)) || levels["errors"].OK {
		t.Errorf("live %+v", levels)
	}
	if ps := h.LevelProblems()["shop/cart"]; len(ps) != 1 || ps[0].Level != "errors" || !strings.Contains(ps[0].Message,
		"depends on series without new samples") {
		t.Errorf("problems %+v", ps)
	}
}

// TestLevelHistoryOfABackfill: a long reading has the grid of history, and asks no more questions than a short one.
func TestLevelHistoryOfABackfill(t *testing.T) {
	e := exporters[4]
	p := newProm(t, owners+e.series+"  container_cpu_usage_seconds_total{namespace=\"shop\", pod=\"cart-1-a\", "+
		"container=\"app\", cpu=\"total\"} 0+15x60\n", 1e6)
	h := p.history(Options{ScrapeInterval: 15 * time.Second})
	services := measured(presetLevels(e.preset)...)
	questions := func(from time.Time) int {
		p.asked()
		batches, err := h.Since(t.Context(), services, from, at(15*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range batches {
			if l := b.Levels.Of[1]; l.Values.Step != 5*time.Minute || l.Values.Known() != 3 {
				t.Errorf("from %v: %d values each %v", from, l.Values.Known(), l.Values.Step)
			}
		}
		return len(p.asked())
	}
	day := questions(at(-24 * time.Hour))
	if weeks := questions(at(-14 * 24 * time.Hour)); weeks > day {
		t.Errorf("%d questions of a day, %d of two weeks", day, weeks)
	}
}

// TestThroughputIsTheLoad: what arrives by the service's own query is its load, in history and live, on the grid of
// history; a query that fails leaves its service unread, and no other.
func TestThroughputIsTheLoad(t *testing.T) {
	p := newProm(t, owners+oneCPU+`
  queued_total{namespace="shop"} 0+150x20 3000+300x40
`, 1e6)
	h := p.history(Options{ScrapeInterval: 15 * time.Second})
	work := func(query string) fleet.Level {
		return fleet.Level{Kind: fleet.LevelThroughput, Name: fleet.LevelNameThroughput, Source: fleet.Source{Query: query}}
	}
	const query = "sum(rate(queued_total[2m]))"
	services := measured(work(query))
	batches, err := h.Since(t.Context(), services, at(0), at(14*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, b := range batches {
		for i, v := range b.Load.Values {
			sum, n := 0.0, 0
			for m := range int(b.Load.Step / time.Minute) {
				if x, ok := p.evaluate(query, b.Load.Time(i).Add(time.Duration(m+1)*time.Minute))["{}"]; ok {
					sum, n = sum+x, n+1
				}
			}
			if n > 0 && math.Abs(v/(sum/float64(n))-1) > 1e-9 {
				t.Errorf("the load from %v is %v, by hand %v", b.Load.Time(i), v, sum/float64(n))
			}
			seen++
		}
	}
	if seen == 0 {
		t.Error("no load")
	}
	if err := h.Prefetch(t.Context(), services, at(14*time.Minute)); err != nil {
		t.Fatal(err)
	}
	live, err := observed(h, services, at(14*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if got := live["shop/cart"]; math.Abs(got.Load.Value-20) > 1e-9 || got.LoadSignal != portrait.Requests {
		t.Errorf("live load %+v of %s, want 20 a second", got.Load, got.LoadSignal)
	}
	services = measured(work("sum(rate(queued_total[2m])) * on (pod) group_left () {namespace=\"shop\"}"))
	var unread *loop.UnreadError
	if _, err := h.Since(t.Context(), services, at(0), at(14*time.Minute)); !errors.As(err, &unread) ||
		unread.Services["shop/cart"] == nil {
		t.Errorf("a query that fails: %v", err)
	}
}

// TestLoadsTakeTurns: queries of loads that failed are asked after all others, the one that failed longest ago first.
func TestLoadsTakeTurns(t *testing.T) {
	h := &History{loadFailed: map[metricKey]time.Time{}}
	var services []fleet.Service
	for _, id := range []fleet.ServiceID{"a/a", "b/b", "c/c"} {
		services = append(services, fleet.Service{ID: id, SLO: fleet.Levels(fleet.Level{Kind: fleet.LevelThroughput,
			Name: fleet.LevelNameThroughput, Source: fleet.Source{Query: "sum(x)"}})})
	}
	order := func() (out string) {
		for _, q := range h.loadsInTurn(services) {
			out += string(q.key.service[0])
		}
		return out
	}
	key := func(i int) metricKey { q, _ := arrivals(&services[i]); return q.key }
	for _, step := range []struct {
		does func()
		want string
	}{
		{func() {}, "abc"},
		{func() { h.noteLoad(key(0), true, at(0)) }, "bca"},
		{func() { h.noteLoad(key(1), true, at(time.Minute)) }, "cab"},
		{func() { h.noteLoad(key(0), true, at(time.Hour)) }, "cba"},
		{func() { h.noteLoad(key(0), false, at(time.Hour)) }, "acb"},
	} {
		step.does()
		if got := order(); got != step.want {
			t.Errorf("asked in the order %s, want %s", got, step.want)
		}
	}
}
