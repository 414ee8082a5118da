package prom

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// recentSpan is how far back the recent samples reach. The rules look back five minutes and live queries a few more.
const recentSpan = 12 * time.Minute

// database is the time series database, and a copy of the last minutes' samples without compression. Rules and live queries read the last minutes
// of twenty thousand series five times in a virtual minute. To find and decode chunks was most of their cost, and a replayed day has a
// twentieth of a second where a real Prometheus has 15 seconds. Queries that reach further back read the database itself.
type database struct {
	*tsdb.DB

	mu       sync.RWMutex
	byMetric map[string]*recentMetric
	byRef    map[storage.SeriesRef]*recentSeries
	newest   int64
	swept    int64
	// spare is the room of the last committed samples, for the next ones.
	spare []recentAdded
}

// recentMetric holds the series of one name in order of their first samples: sums of floats depend on the order.
type recentMetric struct{ series []*recentSeries }

type recentSeries struct {
	labels labels.Labels
	// samples grow at the end and are replaced as a whole when old ones go, so that a reader keeps its slice.
	samples []recentSample
}

type recentSample struct {
	t int64
	v float64
}

func newDatabase(db *tsdb.DB) *database {
	return &database{DB: db, byMetric: map[string]*recentMetric{}, byRef: map[storage.SeriesRef]*recentSeries{}, newest: math.MinInt64}
}

// Querier implements storage.Queryable. A block can hold what an earlier process or a backfill wrote; all that no block holds was committed here,
// since there is no write-ahead log.
func (d *database) Querier(mint, maxt int64) (storage.Querier, error) {
	d.mu.RLock()
	recent := len(d.byRef) > 0 && mint >= d.newest-recentSpan.Milliseconds()
	d.mu.RUnlock()
	if !recent || slices.ContainsFunc(d.Blocks(), func(b *tsdb.Block) bool { return mint < b.MaxTime() }) {
		return d.DB.Querier(mint, maxt)
	}
	return &recentQuerier{d: d, mint: mint, maxt: maxt}, nil
}

// Appender implements storage.Appendable.
func (d *database) Appender(ctx context.Context) storage.Appender {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := &recentAppender{Appender: d.DB.Appender(ctx), d: d, added: d.spare[:0]}
	d.spare = nil
	return a
}

// recentAppender remembers what it appends. The recent samples take it over at the commit.
type recentAppender struct {
	storage.Appender
	d     *database
	added []recentAdded
}

type recentAdded struct {
	ref    storage.SeriesRef
	labels labels.Labels
	recentSample
}

func (a *recentAppender) Append(ref storage.SeriesRef, l labels.Labels, t int64, v float64) (storage.SeriesRef, error) {
	ref, err := a.Appender.Append(ref, l, t, v)
	if err == nil {
		a.added = append(a.added, recentAdded{ref, l, recentSample{t, v}})
	}
	return ref, err
}

func (a *recentAppender) Commit() error {
	if err := a.Appender.Commit(); err != nil {
		return err
	}
	a.d.take(a.added)
	return nil
}

// take adds committed samples.
func (d *database) take(added []recentAdded) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range added {
		a := &added[i]
		s := d.byRef[a.ref]
		if s == nil {
			s = &recentSeries{labels: a.labels.WithoutEmpty()} // as the database keeps them
			d.byRef[a.ref] = s
			name := s.labels.Get(model.MetricNameLabel)
			m := d.byMetric[name]
			if m == nil {
				m = &recentMetric{}
				d.byMetric[name] = m
			}
			m.series = append(m.series, s)
		}
		switch n := len(s.samples); {
		case n > 0 && s.samples[n-1].t >= a.t: // the same sample once more, or one that the database leaves out
		case n == cap(s.samples):
			kept := s.samples[firstAt(s.samples, a.t-recentSpan.Milliseconds()):]
			s.samples = append(make([]recentSample, 0, len(kept)+len(kept)/2+8), kept...)
			s.samples = append(s.samples, a.recentSample)
		default:
			s.samples = append(s.samples, a.recentSample)
		}
		d.newest = max(d.newest, a.t)
	}
	clear(added) // of the labels
	d.spare = added
	if d.newest-d.swept >= recentSpan.Milliseconds() {
		d.swept = d.newest
		d.sweep()
	}
}

// sweep forgets the series that have ended; the caller holds the lock.
func (d *database) sweep() {
	oldest := d.newest - recentSpan.Milliseconds()
	ended := func(s *recentSeries) bool { return s.samples[len(s.samples)-1].t < oldest }
	maps.DeleteFunc(d.byRef, func(_ storage.SeriesRef, s *recentSeries) bool { return ended(s) })
	for name, m := range d.byMetric {
		m.series = slices.DeleteFunc(m.series, ended)
		if len(m.series) == 0 {
			delete(d.byMetric, name)
		}
	}
}

// firstAt is the index of the first sample at t or later. Scrapes come at one pace, so that the place is known from the pace of the last two and looked for
// from there: each look elsewhere is a miss of the processor's cache, and twenty thousand series are asked.
func firstAt(samples []recentSample, t int64) int {
	n := len(samples)
	if n == 0 || samples[n-1].t < t {
		return n
	}
	i := n - 1
	if n > 1 {
		i = max(0, i-int((samples[i].t-t)/max(1, samples[i].t-samples[i-1].t)))
	}
	for i > 0 && samples[i-1].t >= t {
		i--
	}
	for samples[i].t < t {
		i++
	}
	return i
}

// recentQuerier reads the recent samples of a span.
type recentQuerier struct {
	d          *database
	mint, maxt int64
}

// Select implements storage.Querier. The hints narrow the span to what one selector of the query needs.
func (q *recentQuerier) Select(_ context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	mint, maxt := q.mint, q.maxt
	if hints != nil {
		mint, maxt = max(mint, hints.Start), min(maxt, hints.End)
	}
	set := &recentSet{at: -1}
	q.each(matchers, func(s *recentSeries) {
		i := firstAt(s.samples, mint)
		j := i + firstAt(s.samples[i:], maxt+1)
		if i < j {
			set.series = append(set.series, recentSlice{labels: s.labels, samples: s.samples[i:j:j]})
		}
	})
	if sorted {
		slices.SortFunc(set.series, func(a, b recentSlice) int { return labels.Compare(a.labels, b.labels) })
	}
	return set
}

// each calls f with every series that the matchers take.
func (q *recentQuerier) each(matchers []*labels.Matcher, f func(*recentSeries)) {
	q.d.mu.RLock()
	defer q.d.mu.RUnlock()
	var names, rest []*labels.Matcher
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel {
			names = append(names, m)
		} else {
			rest = append(rest, m)
		}
	}
	of := func(m *recentMetric) {
	next:
		for _, s := range m.series {
			for _, m := range rest {
				if !m.Matches(s.labels.Get(m.Name)) {
					continue next
				}
			}
			f(s)
		}
	}
	if len(names) == 1 && names[0].Type == labels.MatchEqual {
		if m := q.d.byMetric[names[0].Value]; m != nil {
			of(m)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(q.d.byMetric)) {
		if !slices.ContainsFunc(names, func(m *labels.Matcher) bool { return !m.Matches(name) }) {
			of(q.d.byMetric[name])
		}
	}
}

// LabelValues implements storage.LabelQuerier.
func (q *recentQuerier) LabelValues(_ context.Context, name string, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	found := map[string]bool{}
	q.each(matchers, func(s *recentSeries) {
		if v := s.labels.Get(name); v != "" {
			found[v] = true
		}
	})
	return slices.Sorted(maps.Keys(found)), nil, nil
}

// LabelNames implements storage.LabelQuerier.
func (q *recentQuerier) LabelNames(_ context.Context, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	found := map[string]bool{}
	q.each(matchers, func(s *recentSeries) { s.labels.Range(func(l labels.Label) { found[l.Name] = true }) })
	return slices.Sorted(maps.Keys(found)), nil, nil
}

// Close implements storage.LabelQuerier.
func (*recentQuerier) Close() error { return nil }

// recentSet is an answer.
type recentSet struct {
	series []recentSlice
	at     int
}

func (s *recentSet) Next() bool                      { s.at++; return s.at < len(s.series) }
func (s *recentSet) At() storage.Series              { return &s.series[s.at] }
func (*recentSet) Err() error                        { return nil }
func (*recentSet) Warnings() annotations.Annotations { return nil }

// recentSlice is one series of an answer.
type recentSlice struct {
	labels  labels.Labels
	samples []recentSample
}

func (s *recentSlice) Labels() labels.Labels { return s.labels }

// Iterator implements storage.Series; the engine hands the iterator of the last series over to be used again.
func (s *recentSlice) Iterator(old chunkenc.Iterator) chunkenc.Iterator {
	it, ok := old.(*recentIterator)
	if !ok {
		it = &recentIterator{}
	}
	it.samples, it.at = s.samples, -1
	return it
}

// recentIterator goes over the samples of one series. They are floats: the lab scrapes no native histograms.
type recentIterator struct {
	samples []recentSample
	at      int
}

func (it *recentIterator) value() chunkenc.ValueType {
	if it.at >= len(it.samples) {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

// Next implements chunkenc.Iterator.
func (it *recentIterator) Next() chunkenc.ValueType {
	it.at++
	return it.value()
}

// millis is a time as the database has it. With it Seek is not taken for the one of io.Seeker.
type millis = int64

// Seek implements chunkenc.Iterator.
func (it *recentIterator) Seek(t millis) chunkenc.ValueType {
	it.at = max(it.at, 0)
	if it.at < len(it.samples) && it.samples[it.at].t < t {
		it.at += firstAt(it.samples[it.at:], t)
	}
	return it.value()
}

// At implements chunkenc.Iterator.
func (it *recentIterator) At() (int64, float64) { s := &it.samples[it.at]; return s.t, s.v }

// AtT implements chunkenc.Iterator.
func (it *recentIterator) AtT() int64 { return it.samples[it.at].t }

// AtST implements chunkenc.Iterator: no start is known.
func (*recentIterator) AtST() int64 { return 0 }

// AtHistogram implements chunkenc.Iterator.
func (it *recentIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return it.AtT(), nil
}

// AtFloatHistogram implements chunkenc.Iterator.
func (it *recentIterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return it.AtT(), nil
}

// Err implements chunkenc.Iterator.
func (*recentIterator) Err() error { return nil }
