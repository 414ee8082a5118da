package prom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// Backfill is a history being written. It is a database of its own with a head that spans the whole retention, so that
// series may come one after the other, each from its first sample to its last; Commit turns it into one block of the live
// database. Samples of one series go in order of time; different series may be written by several goroutines.
type Backfill struct {
	store
	db   *tsdb.DB
	prom *Prom
	dir  string
}

// Backfill begins a history, which should end before the first live sample.
func (p *Prom) Backfill() (*Backfill, error) {
	dir, err := os.MkdirTemp(p.dir, "backfill-")
	if err != nil {
		return nil, fmt.Errorf("make the backfill's directory: %w", err)
	}
	// A head takes samples up to half its range behind the newest one.
	db, err := openDB(dir, p.logger, 2*retention)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Backfill{store: store{to: db}, db: db, prom: p, dir: dir}, nil
}

// AppendSeries writes a run of one series, in order of time.
func (b *Backfill) AppendSeries(s *Series, points []Point) error {
	return b.commit(context.Background(), func(app storage.Appender) error {
		for _, point := range points {
			if err := s.append(app, point.At, point.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

// Rules writes what the loaded recording rules would have recorded at from, from+step, ... up to and including to: the same
// values, and a stale marker where a series ends. Groups and rules are taken in order, so a rule may read what an earlier
// one recorded. Alerting rules have no history.
func (b *Backfill) Rules(ctx context.Context, from, to time.Time, step time.Duration) error {
	for _, group := range b.prom.ruleGroups() {
		for _, rule := range group.Rules() {
			recording, ok := rule.(*rules.RecordingRule)
			if !ok {
				continue
			}
			if err := b.record(ctx, recording, from, to, step); err != nil {
				return fmt.Errorf("backfill rule %s of group %s: %w", rule.Name(), group.Name(), err)
			}
		}
	}
	return nil
}

// rulesWindow bounds what one range query of a backfill holds in memory.
const rulesWindow = 12 * time.Hour

// record evaluates one rule by range queries, window after window. A range query costs a fraction of the instant queries
// that it stands for, since each sample is read once.
func (b *Backfill) record(ctx context.Context, rule *rules.RecordingRule, from, to time.Time, step time.Duration) error {
	series := map[string]*recorded{}
	for begin := from; !begin.After(to); {
		steps := max(1, rulesWindow/step)
		end := begin.Add((steps - 1) * step)
		if end.After(to) {
			end = begin.Add(to.Sub(begin).Truncate(step))
		}
		if err := b.recordWindow(ctx, rule, series, window{begin, end, step}); err != nil {
			return err
		}
		begin = end.Add(step)
	}
	return nil
}

// window is the range of one query.
type window struct {
	begin, end time.Time
	step       time.Duration
}

// recorded is a series of a rule.
type recorded struct {
	series *Series
	last   int64 // of its last value, in milliseconds; zero before there is one
	ended  bool
}

// recordWindow evaluates one window and writes its series, ending those that had a value at one step and none at the next.
func (b *Backfill) recordWindow(ctx context.Context, rule *rules.RecordingRule, known map[string]*recorded, w window) error {
	query, err := b.prom.engine.NewRangeQuery(ctx, b.db, nil, rule.Query().String(), w.begin, w.end, w.step)
	if err != nil {
		return err
	}
	defer query.Close()
	matrix, err := query.Exec(ctx).Matrix()
	if err != nil {
		return err
	}
	step := w.step.Milliseconds()
	return b.commit(ctx, func(app storage.Appender) error {
		for _, s := range matrix {
			r := recordedSeries(known, rule, s)
			for _, point := range s.Floats {
				if r.last != 0 && !r.ended && point.T > r.last+step {
					if err := r.series.append(app, time.UnixMilli(r.last+step), staleNaN); err != nil {
						return err
					}
				}
				if err := r.series.append(app, time.UnixMilli(point.T), point.F); err != nil {
					return err
				}
				r.last, r.ended = point.T, false
			}
		}
		return endGone(app, known, w)
	})
}

// recordedSeries finds or makes the series that a rule records a result in: the result's labels without the name, under
// the rule's own.
func recordedSeries(known map[string]*recorded, rule *rules.RecordingRule, s promql.Series) *recorded {
	builder := labels.NewBuilder(s.Metric).Set(model.MetricNameLabel, rule.Name())
	rule.Labels().Range(func(l labels.Label) { builder.Set(l.Name, l.Value) })
	ls := builder.Labels()
	key := ls.String()
	r := known[key]
	if r == nil {
		r = &recorded{series: &Series{labels: ls}}
		known[key] = r
	}
	return r
}

// endGone ends the series whose last value lies before the window's last step.
func endGone(app storage.Appender, known map[string]*recorded, w window) error {
	for _, r := range known {
		next := r.last + w.step.Milliseconds()
		if r.ended || next > w.end.UnixMilli() {
			continue
		}
		if err := r.series.append(app, time.UnixMilli(next), staleNaN); err != nil {
			return err
		}
		r.ended = true
	}
	return nil
}

// Commit makes the history part of the live database and ends the backfill.
func (b *Backfill) Commit(ctx context.Context) error {
	if b.db.Head().NumSeries() == 0 {
		return b.Discard()
	}
	before := b.prom.db.Blocks()
	if err := b.db.Snapshot(b.prom.liveDir(), true); err != nil {
		return errors.Join(fmt.Errorf("write the history's block: %w", err), b.Discard())
	}
	if err := b.Discard(); err != nil {
		return err
	}
	// The live database looks for new blocks once a second.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !hasNew(b.prom.db.Blocks(), before) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the history's block: %w", ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// Discard drops a backfill that is not wanted after all.
func (b *Backfill) Discard() error {
	return errors.Join(b.db.Close(), os.RemoveAll(b.dir))
}

// hasNew says whether now holds a block that before does not.
func hasNew(now, before []*tsdb.Block) bool {
	return slices.ContainsFunc(now, func(block *tsdb.Block) bool {
		return !slices.ContainsFunc(before, func(old *tsdb.Block) bool { return old.Meta().ULID == block.Meta().ULID })
	})
}
