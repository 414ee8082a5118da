package world

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/liar"
	"github.com/springtide/springtide/lab/model"
	"github.com/springtide/springtide/lab/prom"
	"github.com/springtide/springtide/lab/scrape"
)

// exporters are the world's exporters and the database that scrapes them.
type exporters struct {
	model   *model.Exporter
	prom    *prom.Prom
	scraper *scrape.Scraper
}

// openPrometheus opens the database, writes what its rules would have recorded of the services' past, and serves it.
func (w *World) openPrometheus(ctx context.Context, dir string, rules []string) error {
	p, err := prom.Open(dir, prom.Options{Now: w.clock.Now, Logger: w.log})
	if err != nil {
		return err
	}
	w.onClose(p.Close)
	exporter := model.NewExporter()
	w.exporters = exporters{model: exporter, prom: p, scraper: scrape.New(exporter, p, w.options.scrapes())}
	if err := p.LoadRules(rules...); err != nil {
		return err
	}
	past, err := p.Backfill()
	if err != nil {
		return err
	}
	for _, s := range w.fleet.Services {
		for _, r := range s.History(w.start) {
			if err := past.AppendSeries(past.Series(scrape.Labels(r.Labels)), points(&r)); err != nil {
				return errors.Join(fmt.Errorf("write the past of %s: %w", s.Name, err), past.Discard())
			}
		}
	}
	if err := past.Commit(ctx); err != nil {
		return err
	}
	if w.prometheusURL, err = p.Serve("127.0.0.1:0"); err != nil || !w.options.Liar {
		return err
	}
	if w.liar, err = liar.Listen(w.prometheusURL); err != nil {
		return err
	}
	w.onClose(w.liar.Close)
	return nil
}

// points are the known values of a recorded series.
func points(r *model.Recorded) []prom.Point {
	out := make([]prom.Point, 0, r.Series.Len())
	for i, v := range r.Series.Values {
		if v == v { // a gap is NaN
			out = append(out, prom.Point{At: r.Series.Time(i), Value: v})
		}
	}
	return out
}

// export brings the exporters' view of pods and workloads up to date.
func (w *World) export() {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	e := w.exporters.model
	for _, p := range w.table.left {
		if p.exports {
			e.RemovePod(p.exported)
		}
		// The kubelet ended it, and not the world.
		if j := w.jobByName[p.owner]; p.kubelet && p.kind == offline && j != nil && p.begun && !p.ended {
			p.ended = true
			j.play.End(p.object.Name, w.clock.Now())
		}
	}
	w.table.left = nil
	for _, p := range w.table.pods {
		switch {
		case p.boundAt.IsZero() || p.kind == stranger:
			continue
		case p.exports && (p.gone || p.finished()):
			p.exports = false
			e.RemovePod(p.exported)
			continue
		case p.gone || p.finished():
			continue
		case !p.exports:
			p.exports = true
			p.exported = e.AddPod(w.podMeta(p))
			e.Started(p.exported, p.boundAt)
		}
		if ready := p.serves(); ready != p.exportedReady {
			p.exportedReady = ready
			e.Ready(p.exported, ready, p.readyAt)
		}
		if p.restarted != p.exportedRestarts {
			p.exportedRestarts = p.restarted
			e.Restart(p.exported)
			e.Ready(p.exported, p.exportedReady, p.readyAt)
		}
	}
	ready := map[fleet.Name]int{}
	for _, p := range w.table.pods {
		if p.kind == online && p.serves() {
			ready[p.owner]++
		}
	}
	for _, s := range w.fleet.Services {
		if d := w.table.deployments[s.Name]; d != nil {
			e.SetDeployment(s.Name, int(*d.Spec.Replicas), ready[s.Name])
		}
	}
}

// podMeta is what a pod's series are labelled with. The creation time is brought into virtual time, as all stamps are.
func (w *World) podMeta(p *pod) model.PodMeta {
	o := p.object
	m := model.PodMeta{
		Name: fleet.Name{Namespace: o.Namespace, Name: o.Name}, UID: string(o.UID), Node: o.Spec.NodeName,
		Container: o.Spec.Containers[0].Name, Request: p.requests, Created: w.clock.At(o.CreationTimestamp.Time),
	}
	if len(o.OwnerReferences) > 0 {
		m.OwnerKind, m.OwnerName = o.OwnerReferences[0].Kind, o.OwnerReferences[0].Name
	}
	if i, ok := w.serviceByName[p.owner]; ok && p.kind == online {
		m.HTTP = w.fleet.Services[i].HTTP
		w.exporters.model.AddReplicaSet(fleet.Name{Namespace: o.Namespace, Name: m.OwnerName}, p.owner.Name)
	}
	return m
}

// scrape appends what the exporters say at now.
func (w *World) scrape(now time.Time) error {
	n, err := w.exporters.scraper.Step(now)
	w.spent.Samples += n
	return err
}

// observe does what Prometheus does once a virtual minute: it scrapes the controllers and begins to evaluate its rules.
func (w *World) observe(ctx context.Context, now time.Time) error {
	for _, c := range w.controllers {
		if !c.running() {
			continue
		}
		extra := labels.FromStrings("job", "springtide", "instance", c.id)
		// A controller that does not answer shows as up == 0; that is all a scrape says of it.
		if err := w.exporters.prom.Scrape(ctx, c.metricsURL, now, extra); err != nil {
			w.log.Debug("scrape", "controller", c.id, "err", err)
		}
	}
	if url := w.plane.SchedulerMetrics(); url != "" {
		extra := labels.FromStrings("job", "springtide-scheduler", "instance", "scheduler")
		if err := w.exporters.prom.Scrape(ctx, url, now, extra); err != nil {
			w.log.Debug("scrape", "scheduler", url, "err", err)
		}
	}
	if err := w.noteWrites(ctx, now); err != nil {
		return err
	}
	if w.options.scrapes().OwnTimes && now.Truncate(freshEvery).Equal(now) && !now.Before(w.counted) {
		w.noteFresh(ctx)
	}
	if now.Truncate(forecastStep).Equal(now) {
		if err := w.noteForecasts(ctx, now); err != nil {
			return err
		}
	}
	ruling := make(chan error, 1)
	w.ruling = ruling
	go func() { ruling <- w.exporters.prom.EvalRules(ctx, now) }()
	return nil
}

// awaitRules waits for the end of the last evaluation. As on a real Prometheus, rules take their time next to those who
// read: what they record of a minute is there by the next step. It is the world's largest work, and the other core
// would wait for it.
func (w *World) awaitRules() error {
	if w.ruling == nil {
		return nil
	}
	err := <-w.ruling
	w.ruling = nil
	return err
}
