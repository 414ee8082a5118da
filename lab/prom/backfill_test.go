package prom

import (
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

const historyRules = `
groups:
- name: first
  rules:
  - record: service:load:sum
    expr: sum by (service) (load)
    labels: {source: lab}
  - record: service:requests:rate5m
    expr: sum by (service) (rate(requests_total[5m]))
- name: second
  rules:
  - record: service:load:share
    expr: service:load:sum / on() group_left() sum(service:load:sum)
`

// history is two days of pods that come and go, minute by minute, and their recorded rules.
func history() (series []labels.Labels, points [][]Point) {
	random := rand.New(rand.NewPCG(1, 2))
	for pod := range 12 {
		for _, name := range []string{"load", "requests_total"} {
			var run []Point
			begin := random.IntN(2000)
			end := begin + random.IntN(2*24*60-begin)
			if pod == 0 {
				begin, end = 0, 2*24*60 // one is always there
			}
			for minute := begin; minute < end; minute++ {
				if random.IntN(500) == 0 {
					minute += 10 // a gap that is longer than the lookback
				}
				run = append(run, Point{noon.Add(time.Duration(minute) * time.Minute), float64(random.IntN(1000))})
			}
			series = append(series, labels.FromStrings("__name__", name, "pod", strconv.Itoa(pod), "service", "s"+strconv.Itoa(pod%5)))
			points = append(points, run)
		}
	}
	return series, points
}

// TestBackfillIsWhatLiveWouldHaveBeen writes the same two days as history and minute by minute, and asks both for every
// series at every minute: raw and recorded values agree, and so does where there are none.
func TestBackfillIsWhatLiveWouldHaveBeen(t *testing.T) {
	if testing.Short() {
		t.Skip("two days, minute by minute, on two databases")
	}
	const minutes = 2*24*60 + 30
	series, points := history()

	past, _, pastAPI := served(t)
	must(t, past.LoadRules(write(t, historyRules)))
	b, err := past.Backfill()
	must(t, err)
	for i, ls := range series {
		must(t, b.AppendSeries(b.Series(ls), points[i]))
	}
	must(t, b.Rules(t.Context(), noon, noon.Add((minutes-1)*time.Minute), time.Minute))
	must(t, b.Commit(t.Context()))

	live, _, liveAPI := served(t)
	must(t, live.LoadRules(write(t, historyRules)))
	handles := make([]*Series, len(series))
	for i, ls := range series {
		handles[i] = live.Series(ls)
	}
	for minute := range minutes {
		at := noon.Add(time.Duration(minute) * time.Minute)
		var batch []RefValue
		for i := range points {
			if len(points[i]) > 0 && points[i][0].At.Equal(at) {
				batch = append(batch, RefValue{handles[i], points[i][0].Value})
				points[i] = points[i][1:]
			}
		}
		must(t, live.AppendBatch(at, batch))
		must(t, live.EvalRules(t.Context(), at))
	}

	for _, name := range []string{"load", "requests_total", "service:load:sum", "service:requests:rate5m", "service:load:share"} {
		a, b := everyMinute(t, pastAPI, name, minutes), everyMinute(t, liveAPI, name, minutes)
		if len(a) == 0 {
			t.Errorf("%s: nothing to compare", name)
		}
		if diff := cmp.Diff(b, a); diff != "" {
			t.Errorf("%s: live and backfilled differ (-live +backfilled):\n%.2000s", name, diff)
		}
	}
}

// everyMinute reads one metric over the whole test.
func everyMinute(t *testing.T, client v1.API, name string, minutes int) model.Matrix {
	t.Helper()
	// A step of half a minute also sees whether series end at the same time.
	r := v1.Range{Start: noon, End: noon.Add(time.Duration(minutes-1) * time.Minute), Step: 30 * time.Second}
	value, _, _, err := client.QueryRange(t.Context(), name, r)
	must(t, err)
	return value.(model.Matrix)
}

// TestLiveFollowsHistory writes five weeks of history and goes on where it ends.
func TestLiveFollowsHistory(t *testing.T) {
	p := open(t)
	b, err := p.Backfill()
	must(t, err)
	ls := labels.FromStrings("__name__", "load")
	var run []Point
	for at := noon.Add(-35 * 24 * time.Hour); at.Before(noon); at = at.Add(5 * time.Minute) {
		run = append(run, Point{at, 1})
	}
	must(t, b.AppendSeries(b.Series(ls), run))
	must(t, b.Commit(t.Context()))
	series := p.Series(ls)
	for i := range 12 {
		must(t, p.AppendBatch(noon.Add(time.Duration(i)*5*time.Minute), []RefValue{{series, 1}}))
	}
	if got, want := query(t, p, "count_over_time(load[36d])", noon.Add(time.Hour)), "{} "+strconv.Itoa(35*288+12)+"\n"; got != want {
		t.Errorf("samples in all: %s, want %s", got, want)
	}
	empty, err := p.Backfill()
	must(t, err)
	must(t, empty.Commit(t.Context()))
}

// BenchmarkBackfill writes 14 days at 5 minutes a series, as many goroutines as there are processors, and commits.
func BenchmarkBackfill(b *testing.B) {
	const seriesCount, samples = 4000, 14 * 288
	for b.Loop() {
		p := open(b)
		history, err := p.Backfill()
		must(b, err)
		var wg sync.WaitGroup
		workers := runtime.GOMAXPROCS(0)
		for w := range workers {
			wg.Go(func() {
				run := make([]Point, samples)
				for i := w; i < seriesCount; i += workers {
					for j := range run {
						run[j] = Point{noon.Add(time.Duration(j) * 5 * time.Minute), math.Round(1000 * math.Sin(float64(j)/288))}
					}
					must(b, history.AppendSeries(history.Series(benchLabels(i)), run))
				}
			})
		}
		wg.Wait()
		must(b, history.Commit(b.Context()))
	}
	b.ReportMetric(float64(b.N*seriesCount*samples)/b.Elapsed().Seconds(), "samples/s")
}

// BenchmarkAppendBatch writes one batch of 10,000 live series.
func BenchmarkAppendBatch(b *testing.B) {
	p := open(b)
	batch := make([]RefValue, 10_000)
	for i := range batch {
		batch[i].Ref = p.Series(benchLabels(i))
	}
	for at := noon; b.Loop(); at = at.Add(15 * time.Second) {
		for i := range batch {
			batch[i].Value++
		}
		must(b, p.AppendBatch(at, batch))
	}
	b.ReportMetric(float64(b.N*len(batch))/b.Elapsed().Seconds(), "samples/s")
}

// BenchmarkBackfillRules records two sums over 14 days at 5 minutes of 1,000 series.
func BenchmarkBackfillRules(b *testing.B) {
	p := open(b)
	must(b, p.LoadRules(write(b, `
groups:
- name: sums
  rules:
  - {record: "service:load:sum", expr: "sum by (service) (load)"}
  - {record: "service:load:rate5m", expr: "sum by (service) (rate(load[10m]))"}
`)))
	for b.Loop() {
		history, err := p.Backfill()
		must(b, err)
		run := make([]Point, 14*288)
		for i := range 1000 {
			for j := range run {
				run[j] = Point{noon.Add(time.Duration(j) * 5 * time.Minute), float64(j)}
			}
			must(b, history.AppendSeries(history.Series(benchLabels(i)), run))
		}
		must(b, history.Rules(b.Context(), noon, noon.Add(14*24*time.Hour), 5*time.Minute))
		must(b, history.Discard())
	}
}

func benchLabels(i int) labels.Labels {
	return labels.FromStrings("__name__", "load", "namespace", "shop", "pod", "pod-"+strconv.Itoa(i), "service", "s"+strconv.Itoa(i%40))
}
