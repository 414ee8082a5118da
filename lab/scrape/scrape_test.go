package scrape_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/lab/model"
	"github.com/springtide/springtide/lab/prom"
	"github.com/springtide/springtide/lab/scrape"
	"github.com/springtide/springtide/lab/traces"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/signal"
	"github.com/springtide/springtide/store/promql"
)

// town is the demo's services on nodes, its exporters, and a Prometheus that scrapes them.
type town struct {
	t        testing.TB
	now      time.Time
	fleet    *model.Fleet
	exporter *model.Exporter
	prom     *prom.Prom
	scraper  *scrape.Scraper
	services []fleet.Service
	refs     [][]model.PodRef
	queues   []measure.Queue
	history  *promql.History
	looks    []signal.Looks // of each service
}

// fewPods bounds the pods of a service: the demo has a thousand, and what is asked here is asked of each.
const fewPods = 6

func newTown(t testing.TB, services, podsEach int, o scrape.Options) *town {
	t.Helper()
	sources, err := traces.Services(services, 1)
	if err != nil {
		t.Fatal(err)
	}
	f, err := model.NewFleet(sources, model.Spec{OnlineCores: 6400, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	w := &town{t: t, fleet: f, now: traces.ReplayStart(), exporter: model.NewExporter(), queues: make([]measure.Queue, len(f.Services))}
	if w.prom, err = prom.Open(t.TempDir(), prom.Options{Now: func() time.Time { return w.now }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.prom.Close() })
	if err := w.prom.LoadRules("../../deploy/rules/springtide.rules.yaml"); err != nil {
		t.Fatal(err)
	}
	w.scraper = scrape.New(w.exporter, w.prom, o)
	for i, s := range f.Services {
		svc := fleet.Service{ID: s.ID(), Target: s.Name, TargetKind: "Deployment", SLO: s.SLO, Min: 2, Request: s.Request}
		set := fleet.Name{Namespace: s.Name.Namespace, Name: s.Name.Name + "-7d"}
		w.exporter.AddReplicaSet(set, s.Name.Name)
		w.refs = append(w.refs, nil)
		long := w.now.Add(-time.Hour)
		for k := range min(podsEach, s.Static) {
			name := fleet.Name{Namespace: set.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, k)}
			ref := w.exporter.AddPod(model.PodMeta{Name: name, UID: name.String(), Node: fmt.Sprintf("node-%d", (i+7*k)%20), OwnerKind: "ReplicaSet",
				OwnerName: set.Name, Container: "app", Request: s.Request, HTTP: s.HTTP, Created: long})
			w.exporter.Started(ref, long)
			w.exporter.Ready(ref, true, long.Add(time.Minute))
			w.refs[i] = append(w.refs[i], ref)
			svc.Pods = append(svc.Pods, fleet.Pod{Name: name, Phase: fleet.PodRunning, Ready: true, CurrentRevision: true, Requests: s.Request,
				Created: long, Started: fleet.KnownAt(long, long), ReadySince: fleet.KnownAt(long.Add(time.Minute), long)})
		}
		svc.Desired = fleet.KnownAt(int32(len(svc.Pods)), w.now)
		w.services = append(w.services, svc)
	}
	w.looks = make([]signal.Looks, len(w.services))
	url, err := w.prom.Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if w.history, err = promql.New(promql.Options{Address: url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.history.Close)
	return w
}

// step plays one step of the world. Every fourth minute the container of a pod starts again.
func (w *town) step() {
	w.t.Helper()
	w.now = w.now.Add(model.Step)
	for i, rate := range w.fleet.Rates(w.now) {
		s, refs := w.fleet.Services[i], w.refs[i]
		o := s.Step(&w.queues[i], math.Min(rate, s.Capacity*float64(len(refs))), len(refs), model.Step)
		l := o.Latencies()
		for _, r := range refs {
			w.exporter.Use(r, o.CPU, model.Step)
			if s.HTTP {
				w.exporter.Serve(r, o.Served*model.Step.Seconds()/float64(len(refs)), &l)
			}
		}
	}
	if w.now.Truncate(4 * time.Minute).Equal(w.now) {
		i := int(w.now.Unix()/240) % len(w.refs)
		w.exporter.Restart(w.refs[i][0])
	}
	if _, err := w.scraper.Step(w.now); err != nil {
		w.t.Fatal(err)
	}
	if w.now.Truncate(time.Minute).Equal(w.now) {
		if err := w.prom.EvalRules(w.t.Context(), w.now); err != nil {
			w.t.Fatal(err)
		}
	}
}

// stale names the services that lack a live signal, with the signals.
func (w *town) stale() []string {
	w.t.Helper()
	if err := w.history.Prefetch(w.t.Context(), w.services, w.now); err != nil {
		w.t.Fatal(err)
	}
	samples, err := w.history.Live(w.t.Context(), w.services, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for i := range w.services {
		s := &w.services[i]
		l := hpa.Observe(s, &samples, &w.looks[i], w.now)
		p := portrait.Portrait{Service: s.ID, Signal: l.LoadSignal}
		tg := hpa.Ask(s, p, forecast.Tide{}, l, w.now, hpa.Options{}).Within(hpa.Bounds{})
		if missing := tg.LiveMissing(); len(missing) > 0 {
			out = append(out, fmt.Sprintf("%s %s lacks %v: %s", w.now.Format(time.TimeOnly), s.ID, missing, tg.Why()))
		}
	}
	return out
}

// TestFreshAtEveryInterval: whether Prometheus scrapes every 15, 30 or 60 s, and though a fifth of the scrapes is lost, containers start again
// and cAdvisor sends times of its own, each service of the demo is Fresh and each is recorded.
func TestFreshAtEveryInterval(t *testing.T) {
	for _, every := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute} {
		t.Run(every.String(), func(t *testing.T) {
			if testing.Short() && every < time.Minute {
				t.Skip("the longest interval is the hardest")
			}
			w := newTown(t, 40, fewPods, scrape.Options{Interval: every, Loss: 0.2, OwnTimes: true, Seed: 1})
			const learn, watch = 22 * time.Minute, 20 * time.Minute
			asked, stale := 0, []string(nil)
			for begin := w.now; w.now.Sub(begin) < learn+watch; {
				w.step()
				if w.now.Sub(begin) < learn || !w.now.Truncate(30*time.Second).Equal(w.now) {
					continue
				}
				asked += len(w.services)
				stale = append(stale, w.stale()...)
			}
			// By chance four scrapes of one kubelet in a row are lost now and then: that delays a scale-in by a cycle or two.
			if allowed := asked / 500; len(stale) > allowed || every == time.Minute && len(stale) > 0 {
				t.Errorf("%d of %d answers were not Fresh:\n%s", len(stale), asked, stale)
			}
			if at := w.history.Stats().CPUInterval; at < every || at > every*3/2 {
				t.Errorf("the interval was learned as %v", at)
			}
			for _, series := range []string{"springtide:workload_cpu_usage_cores:sum", "springtide:workload_memory_working_set_bytes:max"} {
				// A scrape of kube-state-metrics that failed leaves nothing to join with: four of five minutes are recorded then.
				v, err := w.prom.Query(t.Context(), fmt.Sprintf("min(count_over_time(%s[20m]))", series), w.now)
				if err != nil || len(v) != 1 || v[0].Value < 12 {
					t.Errorf("%s in 20 minutes: %v, %v", series, v, err)
				}
			}
		})
	}
}
