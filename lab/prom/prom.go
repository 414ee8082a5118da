package prom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	// retention is how much history is kept: the longest portrait looks back five weeks.
	retention = 40 * 24 * time.Hour
	// headRange is the least span of the live data that is compacted to a block, which is also the largest block: merging blocks would compete
	// with the replay for the machine. A head without end would keep the series of every pod that ever was in memory.
	headRange = 2 * time.Hour
	// The engine's limits are Prometheus' own defaults.
	queryTimeout    = 2 * time.Minute
	queryMaxSamples = 50_000_000
)

// Options say how a Prom behaves; the zero value is usable.
type Options struct {
	// Now is the time that a query over HTTP gets when it names none; the wall clock when nil.
	Now func() time.Time
	// Logger receives what the database and the rules have to say; nothing is logged when nil.
	Logger *slog.Logger
}

// Prom is an open database with its engine, rules and server.
type Prom struct {
	store
	db     *database
	dir    string
	now    func() time.Time
	logger *slog.Logger
	engine *promql.Engine
	parser parser.Parser

	rulesMu sync.RWMutex
	groups  []*rules.Group

	serveMu sync.Mutex
	handler http.Handler
	address string       // once served; the same again after an outage
	server  *http.Server // nil while it serves no client

	scrapeMu sync.Mutex
	targets  map[string]*target
}

// Sample is a value of one series.
type Sample struct {
	Labels labels.Labels
	Value  float64
}

// Open opens the database in dir, which should be empty or hold what an earlier Prom left there.
func Open(dir string, o Options) (*Prom, error) {
	p := &Prom{dir: dir, now: o.Now, logger: o.Logger, targets: map[string]*target{}}
	if p.now == nil {
		p.now = time.Now
	}
	if p.logger == nil {
		p.logger = slog.New(slog.DiscardHandler)
	}
	db, err := openDB(p.liveDir(), p.logger, headRange)
	if err != nil {
		return nil, err
	}
	p.db = newDatabase(db)
	p.store = store{to: p.db}
	p.parser = parser.NewParser(parser.Options{})
	p.engine = promql.NewEngine(promql.EngineOpts{
		Logger:                   p.logger,
		MaxSamples:               queryMaxSamples,
		Timeout:                  queryTimeout,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		Parser:                   p.parser,
	})
	if p.handler, err = p.newHandler(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return p, nil
}

// liveDir is where the blocks lie; a backfill works next to it.
func (p *Prom) liveDir() string { return filepath.Join(p.dir, "tsdb") }

// openDB opens a database whose head covers at least the given span.
func openDB(dir string, logger *slog.Logger, head time.Duration) (*tsdb.DB, error) {
	o := tsdb.DefaultOptions()
	o.WALSegmentSize = -1 // no write-ahead log: see the package comment
	o.RetentionDuration = retention.Milliseconds()
	o.MinBlockDuration = head.Milliseconds()
	o.MaxBlockDuration = head.Milliseconds()
	// The loop that moves full chunks from memory to disk runs at this interval of wall time, in which the lab writes as
	// much as Prometheus does in minutes.
	o.BlockReloadInterval = time.Second
	db, err := tsdb.Open(dir, logger, nil, o, nil)
	if err != nil {
		return nil, fmt.Errorf("open the time series database: %w", err)
	}
	return db, nil
}

// Close stops serving and closes the database.
func (p *Prom) Close() error {
	return errors.Join(p.StopServing(), p.engine.Close(), p.db.Close())
}

// Query evaluates an expression at one time; a scalar comes as a sample without labels. Samples are ordered by labels.
func (p *Prom) Query(ctx context.Context, expr string, ts time.Time) ([]Sample, error) {
	query, err := p.engine.NewInstantQuery(ctx, p.db, nil, expr, ts)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, result.Err)
	}
	var out []Sample
	switch v := result.Value.(type) {
	case promql.Scalar:
		return []Sample{{Value: v.V}}, nil
	case promql.Vector:
		for _, s := range v {
			out = append(out, Sample{Labels: s.Metric.Copy(), Value: s.F})
		}
	default:
		return nil, fmt.Errorf("query %s: wants a vector or a scalar, is a %s", expr, result.Value.Type())
	}
	slices.SortFunc(out, func(a, b Sample) int {
		return cmp.Or(labels.Compare(a.Labels, b.Labels), cmp.Compare(a.Value, b.Value))
	})
	return out, nil
}
