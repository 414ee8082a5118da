package promql

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/route"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	engine "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/teststorage"
	webapi "github.com/prometheus/prometheus/web/api/v1"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/memorystore"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/signal"
)

// rulesFile is the file that users install.
const rulesFile = "../../deploy/rules/springtide.rules.yaml"

// prom is a real Prometheus: its TSDB, engine, rule evaluation and HTTP API, filled by a script of promqltest. Its time begins at 0.
type prom struct {
	*httptest.Server
	t       *testing.T
	storage *teststorage.TestStorage
	engine  *engine.Engine

	mu      sync.Mutex
	queries []string
	// before is called before each query; it answers itself when it returns true.
	before func(w http.ResponseWriter, r *http.Request) bool
}

// newProm starts a server with the samples of a promqltest "load" script. maxSamples is the engine's limit per query.
func newProm(t *testing.T, script string, maxSamples int) *prom {
	t.Helper()
	p := &prom{t: t, storage: promqltest.LoadedStorage(t, script)}
	p.engine = promqltest.NewTestEngineWithOpts(t, engine.EngineOpts{
		MaxSamples: maxSamples, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		EnableAtModifier:         true, EnableNegativeOffset: true, Parser: parser.NewParser(parser.Options{}),
	})
	api := webapi.NewAPI(p.engine, p.storage, nil, nil, nil,
		func(context.Context) webapi.ScrapePoolsRetriever { return nil },
		func(context.Context) webapi.TargetRetriever { return nil },
		func(context.Context) webapi.AlertmanagerRetriever { return nil },
		func() promconfig.Config { return promconfig.Config{} }, nil, webapi.GlobalURLOptions{},
		func(f http.HandlerFunc) http.HandlerFunc { return f }, nil, "", false, false, 0, promslog.NewNopLogger(),
		func(context.Context) webapi.RulesRetriever { return nil }, 0, 0, 0, false, nil,
		func() (webapi.RuntimeInfo, error) { return webapi.RuntimeInfo{}, nil }, &webapi.PrometheusVersion{}, nil, nil,
		prometheus.NewRegistry(), nil, nil, false, nil, false, false, false, false, 5*time.Minute, false, false, nil, nil,
		webapi.OpenAPIOptions{}, parser.NewParser(parser.Options{}))
	router := route.New().WithPrefix("/api/v1")
	api.Register(router)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.FormValue("query")
		p.mu.Lock()
		p.queries = append(p.queries, q)
		before := p.before
		p.mu.Unlock()
		if before == nil || !before(w, r) {
			router.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Server.Close)
	return p
}

// intercept sets what happens before each query.
func (p *prom) intercept(f func(w http.ResponseWriter, r *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = f
}

// asked returns the queries since the last call.
func (p *prom) asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.queries
	p.queries = nil
	return out
}

// record evaluates the shipped rules once a minute from one time to another, both included.
func (p *prom) record(from, to time.Time) {
	p.t.Helper()
	p.recordFile(rulesFile, from, to)
}

// recordFile evaluates the rules of a file.
func (p *prom) recordFile(file string, from, to time.Time) {
	p.t.Helper()
	m := rules.NewManager(&rules.ManagerOptions{
		Appendable: p.storage, Queryable: p.storage, QueryFunc: rules.EngineQueryFunc(p.engine, p.storage),
		Context: p.t.Context(), Logger: promslog.NewNopLogger(), NameValidationScheme: model.UTF8Validation,
		Parser: parser.NewParser(parser.Options{}), NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	})
	groups, errs := m.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, file)
	if len(errs) > 0 {
		p.t.Fatalf("loading %s: %v", file, errs)
	}
	for t := from; !t.After(to); t = t.Add(time.Minute) {
		for _, g := range groups {
			g.Eval(p.t.Context(), t)
			for _, r := range g.Rules() {
				if r.LastError() != nil {
					p.t.Fatalf("rule %s at %v: %v", r.Name(), t, r.LastError())
				}
			}
		}
	}
}

// history opens a reader of the server.
func (p *prom) history(o Options) *History {
	p.t.Helper()
	o.Address = p.URL
	h, err := New(o)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(h.Close)
	return h
}

// at is a time of the test server.
func at(d time.Duration) time.Time { return time.Unix(0, 0).UTC().Add(d) }

// evaluate returns the value of each series of an instant query, by its labels.
func (p *prom) evaluate(query string, at time.Time) map[string]float64 {
	p.t.Helper()
	q, err := p.engine.NewInstantQuery(p.t.Context(), p.storage, nil, query, at)
	if err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	defer q.Close()
	v, err := q.Exec(p.t.Context()).Vector()
	if err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	out := make(map[string]float64, len(v))
	for _, s := range v {
		out[s.Metric.String()] = s.F
	}
	return out
}

// approx compares floats to a millionth.
var approx = cmp.Comparer(func(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b))
})

// observed is what a cycle makes of the samples that were prefetched, at the first look.
func observed(h *History, services []fleet.Service, now time.Time) (map[fleet.ServiceID]hpa.Live, error) {
	samples, err := h.Live(context.Background(), services, now)
	out := map[fleet.ServiceID]hpa.Live{}
	for i := range services {
		out[services[i].ID] = hpa.Observe(&services[i], &samples, &signal.Looks{}, now)
	}
	return out, err
}

// turns are cycles of the real loop on a source. Nothing is written, and the last report is kept.
type turns struct {
	memorystore.Store
	loop     *loop.Loop
	services []fleet.Service
	now      time.Time
	report   *loop.Report
}

func newTurns(h *History, services []fleet.Service) *turns {
	x := &turns{services: services}
	ports := loop.Ports{Observer: x, History: h, Actuator: x, Reporter: x, Journal: x, Memory: x, Clock: x}
	x.loop = loop.New(ports, loop.DefaultOptions())
	return x
}

func (x *turns) cycle(t *testing.T, now time.Time) {
	t.Helper()
	x.now = now
	if _, err := x.loop.Cycle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (x *turns) Snapshot(context.Context) (*fleet.Snapshot, error) {
	return &fleet.Snapshot{At: x.now, Services: x.services}, nil
}

func (x *turns) Apply(context.Context, *planner.Plan) (loop.Receipt, error) {
	return loop.Receipt{}, nil
}

func (x *turns) Report(_ context.Context, r *loop.Report) error {
	x.report = r
	return nil
}

func (x *turns) Append(context.Context, *loop.Record) error  { return nil }
func (x *turns) Now() time.Time                              { return x.now }
func (x *turns) At(t time.Time) time.Time                    { return t }
func (x *turns) Park(context.Context, time.Time, bool) error { return nil }
