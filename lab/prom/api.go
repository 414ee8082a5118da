package prom

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/features"
	"github.com/prometheus/prometheus/util/notifications"
	api "github.com/prometheus/prometheus/web/api/v1"
)

// version is what /api/v1/status/buildinfo tells: the version whose module the API is from.
const version = "3.14.0"

// newHandler builds the server's routes: Prometheus' own API under /api/v1, and its two probes.
func (p *Prom) newHandler() (http.Handler, error) {
	registry := prometheus.NewRegistry()
	started := p.now()
	v1 := api.NewAPI(
		p.engine,
		p.db,
		nil, nil, // no remote write
		p.db, // exemplars
		func(context.Context) api.ScrapePoolsRetriever { return nothing{} },
		func(context.Context) api.TargetRetriever { return nothing{} },
		func(context.Context) api.AlertmanagerRetriever { return nothing{} },
		func() config.Config { return config.DefaultConfig },
		map[string]string{"storage.tsdb.path": p.liveDir(), "storage.tsdb.retention.time": retention.String()},
		api.GlobalURLOptions{ListenAddress: "localhost", Host: "localhost", Scheme: "http"},
		func(h http.HandlerFunc) http.HandlerFunc { return h }, // ready as soon as it is served
		admin{p.db.DB},
		p.liveDir(),
		false,    // no administration over HTTP
		false, 0, // no search
		p.logger,
		func(context.Context) api.RulesRetriever { return groupReader{p} },
		0, 0, 0, // no limits for remote read
		false, // not an agent
		nil,   // no cross-origin requests
		func() (api.RuntimeInfo, error) { return p.runtimeInfo(started), nil },
		&api.PrometheusVersion{Version: version, GoVersion: runtime.Version()},
		func() []notifications.Notification { return nil },
		func() (<-chan notifications.Notification, func(), bool) { return nil, nil, false },
		registry, registry,
		nil,        // the default statistics
		false, nil, // no remote write
		false, false, false, // no OTLP
		false,
		0,            // the default lookback
		false, false, // neither type and unit labels nor metadata
		nil, // the default error codes
		features.NewRegistry(),
		api.OpenAPIOptions{Version: version},
		p.parser,
	)
	router := route.New()
	v1.Register(router.WithPrefix("/api/v1"))
	ok := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	router.Get("/-/ready", ok)
	router.Get("/-/healthy", ok)

	mux := http.NewServeMux()
	mux.Handle("/", router)
	mux.Handle("/api/v1/query", p.withNow(router))
	return mux, nil
}

// runtimeInfo is the answer of /api/v1/status/runtimeinfo.
func (p *Prom) runtimeInfo(started time.Time) api.RuntimeInfo {
	return api.RuntimeInfo{
		StartTime:           started,
		ServerTime:          p.now(),
		ReloadConfigSuccess: true,
		LastConfigTime:      started,
		GoroutineCount:      runtime.NumGoroutine(),
		GOMAXPROCS:          runtime.GOMAXPROCS(0),
		StorageRetention:    retention.String(),
	}
}

// groupReader shows the loaded rules to the API.
type groupReader struct{ prom *Prom }

// RuleGroups lists the loaded groups.
func (g groupReader) RuleGroups() []*rules.Group { return g.prom.ruleGroups() }

// AlertingRules lists the alerting rules of all groups.
func (g groupReader) AlertingRules() []*rules.AlertingRule {
	var out []*rules.AlertingRule
	for _, group := range g.prom.ruleGroups() {
		out = append(out, group.AlertingRules()...)
	}
	return out
}

// admin gives the API the database's statistics in the form it asks for.
type admin struct{ *tsdb.DB }

// Stats are the head's statistics by label name.
func (a admin) Stats(label string, limit int) (*tsdb.Stats, error) {
	return a.Head().Stats(label, limit), nil
}

// WALReplayStatus is that of a database without a log: done.
func (a admin) WALReplayStatus() (tsdb.WALReplayStatus, error) { return tsdb.WALReplayStatus{}, nil }

// BlockMetas are the blocks on disk.
func (a admin) BlockMetas() ([]tsdb.BlockMeta, error) { return a.DB.BlockMetas(), nil }

var errNoPools = errors.New("the lab has no scrape pools")

// nothing answers for the parts of a Prometheus that the lab has not: scrape pools and alertmanagers.
type nothing struct{}

func (nothing) ScrapePools() []string                                 { return nil }
func (nothing) TargetsActive() map[string][]*scrape.Target            { return nil }
func (nothing) TargetsDropped() map[string][]*scrape.Target           { return nil }
func (nothing) TargetsDroppedCounts() map[string]int                  { return nil }
func (nothing) ScrapePoolConfig(string) (*config.ScrapeConfig, error) { return nil, errNoPools }
func (nothing) Alertmanagers() []*url.URL                             { return nil }
func (nothing) DroppedAlertmanagers() []*url.URL                      { return nil }
