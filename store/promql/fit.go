package promql

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/signal"
)

// Fit says that the source has series of a service in the form of a preset.
type Fit struct {
	Preset string
	// Latency says that there is a histogram of response times, Requests that requests are counted.
	Latency, Requests bool
}

const (
	isLatency  = "latency"
	isRequests = "requests"
)

// exists counts the series of a preset by workload: of its histogram, and of its counter.
func (p *Preset) exists(r *reading) string {
	var ways []string
	add := func(f *form, what, series string) {
		ways = append(ways, marked(f.placed("count", series, r, ""), what))
	}
	for i := range p.forms {
		f := &p.forms[i]
		add(f, isLatency, f.sel(f.histogram+"_bucket", r.scope, []string{`le="+Inf"`}))
		// Of a name without a suffix summaries have numbers, native histograms have histograms.
		add(f, isLatency, "histogram_count("+f.sel(f.histogram, r.scope, nil)+")")
		add(f, isRequests, f.sel(f.counts(), r.scope, nil))
		if f.counter == "" {
			add(f, isRequests, "histogram_count("+f.sel(f.histogram, r.scope, nil)+")")
		}
	}
	return strings.Join(ways, " or ")
}

// Fits looks for each preset's series of services, by what they belong to. Every service is in the answer, the presets
// in the order of their table.
func (h *History) Fits(ctx context.Context, services []fleet.Service, now time.Time) (map[fleet.ServiceID][]Fit,
	error) {
	out := make(map[fleet.ServiceID][]Fit, len(services))
	for i := range services {
		out[services[i].ID] = nil
	}
	refused := refusals{heavy: &h.heavy, now: now}
	for i := range presets {
		p := &presets[i]
		found := map[workload]Fit{}
		err := refused.ask(services, func(sc scope) error {
			answer, err := h.instant(ctx, "series of "+p.Name, p.exists(h.readingOf(sc, 0)), now)
			if err == nil {
				p.fit(answer, found)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for i := range services {
			if f, ok := lookUp(&services[i], found); ok {
				out[services[i].ID] = append(out[services[i].ID], f)
			}
		}
	}
	return out, nil
}

// fit takes an answer in.
func (p *Preset) fit(answer model.Vector, found map[workload]Fit) {
	for _, s := range answer {
		w, ok := homeOf(s.Metric)
		if !ok {
			continue
		}
		f := found[w]
		f.Preset = p.Name
		f.Latency = f.Latency || s.Metric[answerIs] == isLatency
		f.Requests = f.Requests || s.Metric[answerIs] == isRequests
		found[w] = f
	}
}

// serves reports whether series of the form measure a level of the kind.
func (f *Fit) serves(kind fleet.LevelKind) bool {
	return kind == fleet.LevelLatency && f.Latency || kind == fleet.LevelErrors && f.Requests
}

// levelGone is the age from which a level counts as not measured: Prometheus itself forgets a series then.
const levelGone = lookback

// fitsEvery is how often the presets' series are looked for while a level is not measured.
const fitsEvery = 5 * time.Minute

// findProblems finds the levels that nothing measures, and which preset would.
func (h *History) findProblems(ctx context.Context, services []fleet.Service, now time.Time) {
	lacking := h.lacking(services, now)
	h.lookForFits(ctx, lacking, now)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.index.lacking = map[fleet.ServiceID][]loop.LevelProblem{}
	for i := range lacking {
		s := &lacking[i]
		var of []loop.LevelProblem
		for k := range s.SLO.Levels {
			if p, ok := h.index.lack(s, &s.SLO.Levels[k], now); ok {
				of = append(of, p)
			}
		}
		if len(of) > 0 {
			h.index.lacking[s.ID] = of
		}
	}
}

// lacking are the services with a level without a value, of those with a pod that ought to be measured by now.
func (h *History) lacking(services []fleet.Service, now time.Time) []fleet.Service {
	h.mu.Lock()
	defer h.mu.Unlock()
	window := h.cadence.measured()
	var out []fleet.Service
	for i := range services {
		s := &services[i]
		due := slices.ContainsFunc(s.Pods, func(p fleet.Pod) bool { return signal.MustReport(&p, window, now) })
		if due && slices.ContainsFunc(s.SLO.Levels, func(l fleet.Level) bool { return h.index.gone(s, &l, now) }) {
			out = append(out, *s)
		}
	}
	return out
}

// gone reports whether a level that is to be read has no value, or one that is too old.
func (x *index) gone(s *fleet.Service, l *fleet.Level, now time.Time) bool {
	if l.Name == fleet.LevelNameCPU {
		return false
	}
	v, ok := x.level(s, l)
	return !ok || now.Sub(v.At) > levelGone
}

// lookForFits asks for the presets' series where that is due. It is advice: without an answer the former one stays.
func (h *History) lookForFits(ctx context.Context, lacking []fleet.Service, now time.Time) {
	h.mu.Lock()
	before, due := h.index.fits, now.Sub(h.index.fitted) >= fitsEvery || now.Before(h.index.fitted)
	for i := range lacking {
		_, asked := before[lacking[i].ID]
		due = due || !asked
	}
	h.mu.Unlock()
	if !due || len(lacking) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, h.o.Timeout)
	defer cancel()
	fits, err := h.Fits(ctx, lacking, now)
	if err != nil {
		fits = make(map[fleet.ServiceID][]Fit, len(lacking))
		for i := range lacking {
			fits[lacking[i].ID] = before[lacking[i].ID]
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.index.fits, h.index.fitted = fits, now
}

// lack is why a level is not measured; false where it is, or where there is nothing to measure.
func (x *index) lack(s *fleet.Service, l *fleet.Level, now time.Time) (loop.LevelProblem, bool) {
	out := loop.LevelProblem{Level: l.Name}
	if !x.gone(s, l, now) {
		return out, false
	}
	switch {
	case l.Name == fleet.LevelNameMemory:
		out.Message = "no series container_memory_working_set_bytes of its pods, or none " +
			"kube_pod_container_resource_requests; to fix: scrape cAdvisor and kube-state-metrics, and let its pods request " +
			"memory"
		return out, true
	case l.Name == fleet.LevelNameGPU:
		out.Message = "no series " + gpuActive + " or " + gpuUtil + " of its pods; to fix: scrape DCGM's exporter"
		return out, true
	case presetOf(l.Source.Preset) != nil:
		return x.lackOfPreset(s, l)
	}
	for _, q := range ownQueries(s, l) {
		if p, ok := x.problems[q.key]; ok {
			out.Message = p.Message
			return out, true
		}
	}
	return out, false
}

// lackOfPreset is why a preset measures nothing. Where it has the series, there were no requests.
func (x *index) lackOfPreset(s *fleet.Service, l *fleet.Level) (loop.LevelProblem, bool) {
	out := loop.LevelProblem{Level: l.Name}
	stated := presetOf(l.Source.Preset)
	out.Message = fmt.Sprintf("no series of the preset %s (%s) belong to it", stated.Name, stated.series(l.Kind))
	for i := range x.fits[s.ID] {
		f := &x.fits[s.ID][i]
		switch serves := f.serves(l.Kind); {
		case f.Preset == stated.Name && serves:
			return out, false
		case f.Preset == stated.Name:
			out.Message = fmt.Sprintf("the preset %s counts its requests and has no histogram of response times (%s); to fix: "+
				"turn its buckets on", f.Preset, stated.series(l.Kind))
		case serves && out.Preset == "":
			out.Preset = f.Preset
		}
	}
	if out.Preset != "" {
		out.Message += fmt.Sprintf(", and series of the preset %[1]s do; to fix: set source: {preset: %[1]s}", out.Preset)
	} else if !strings.Contains(out.Message, "to fix") {
		out.Message += "; to fix: export them, or state another source"
	}
	return out, true
}

// series names the metrics that measure a level of a kind.
func (p *Preset) series(kind fleet.LevelKind) string {
	return p.each(func(f *form) string {
		if kind == fleet.LevelErrors {
			return f.counts()
		}
		return f.histogram
	})
}

// LevelProblems implements loop.Levelled: why levels are not measured, as of the last Prefetch.
func (h *History) LevelProblems() map[fleet.ServiceID][]loop.LevelProblem {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.index.lacking
}
