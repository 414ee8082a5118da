package world

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/lab/model"
)

// account plays the load of the stretch from one step to the next on the pods as they stood over it, and keeps the true account.
func (w *World) account(from time.Time, dt time.Duration) error {
	pods, counts := w.census()
	taken, unbound := w.table.takeReturns()
	facts := model.StepFacts{At: from, Dt: dt, Services: counts, Loans: w.loanFacts(), Demands: w.table.takeDemands(), Returns: taken, Unbound: unbound, Pinned: w.pins()}
	for _, j := range w.jobs {
		facts.OfflineUsed += j.play.UsedCores()
		facts.OfflineUseful += j.play.UsefulCoreHours() - j.usefulBefore
		facts.OfflineLost += j.play.LostCoreHours() - j.lostBefore
	}
	outcomes, err := w.truth.Step(facts)
	if err != nil {
		return err
	}
	w.violating = 0
	for i := range outcomes {
		if outcomes[i].Violated {
			w.violating++
		}
		w.use(w.fleet.Services[i], pods[i], &outcomes[i], dt)
	}
	w.useOffline(dt)
	return nil
}

// seat is one pod of a service and what it does.
type seat struct {
	pod  *pod
	does duty
}

// duty is what a bound pod of a service does.
type duty int

const (
	starts duty = iota
	serves
	leaves
)

// census sorts the services' bound pods by service and counts them.
func (w *World) census() ([][]seat, []model.PodCount) {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	pods, counts := make([][]seat, len(w.fleet.Services)), make([]model.PodCount, len(w.fleet.Services))
	waiting := make([]bool, len(counts))
	for _, p := range w.table.pods {
		i, ok := w.serviceByName[p.owner]
		if !ok || p.kind != online {
			continue
		}
		if p.object.Spec.NodeName == "" {
			waiting[i] = waiting[i] || p.object.DeletionTimestamp == nil
			continue
		}
		if !p.occupies() {
			continue
		}
		does := leaves
		switch {
		case p.serves():
			does = serves
			counts[i].Ready++
		case p.goneAt.IsZero():
			does = starts
			counts[i].Starting++
		default:
			counts[i].Leaving++
		}
		pods[i] = append(pods[i], seat{p, does})
	}
	if lent := w.table.roomIsAway(); lent {
		for i := range counts {
			counts[i].WaitsForLent = waiting[i]
		}
	}
	return pods, counts
}

// roomIsAway reports whether room of online is lent or on its way home; the caller holds the lock.
func (t *table) roomIsAway() bool {
	for _, l := range t.loans {
		if l.Spec.From == onlinePool && fleet.Phase(l.Status.Phase).Away() {
			return true
		}
	}
	return false
}

// use adds to the exporters what a service's pods used and answered in a step.
func (w *World) use(s *model.Service, pods []seat, o *model.Outcome, dt time.Duration) {
	e := w.exporters.model
	latencies := o.Latencies()
	for _, at := range pods {
		p := at.pod
		if !p.exports {
			continue
		}
		switch at.does {
		case serves:
			e.Use(p.exported, o.CPU, dt)
			if s.HTTP {
				e.Serve(p.exported, o.Served*dt.Seconds()/float64(o.Ready), &latencies)
			}
		case starts:
			e.Use(p.exported, s.StartingCores(), dt)
		default:
			e.Use(p.exported, 0, dt)
		}
	}
}

// useOffline adds to the exporters what the jobs' pods used.
func (w *World) useOffline(dt time.Duration) {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	for _, p := range w.table.pods {
		if j := w.jobByName[p.owner]; p.kind == offline && j != nil && p.exports {
			w.exporters.model.Use(p.exported, j.play.MemberCores(p.object.Name), dt)
		}
	}
}

// loanFacts are all loans in order of their names, those that ended since the last step once more.
func (w *World) loanFacts() []model.LoanFacts {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	loans := w.table.ended
	w.table.ended = nil
	for _, l := range w.table.loans {
		loans = append(loans, l)
	}
	slices.SortFunc(loans, func(a, b *v1alpha1.Loan) int { return strings.Compare(a.Name, b.Name) })
	out := make([]model.LoanFacts, len(loans))
	for i, l := range loans {
		f := &out[i]
		*f = model.LoanFacts{UID: string(l.UID), Kind: fleet.ParcelKind(l.Spec.Kind), Phase: phaseOf(l), Cores: l.Spec.Capacity.CPU.AsApproximateFloat64(),
			FromOffline: l.Spec.From == offlinePool}
		f.Name = l.Name
		for _, h := range l.Status.History {
			f.History = append(f.History, model.PhaseAt{Phase: fleet.Phase(h.Phase), At: h.Time.Time})
		}
		f.FirstNotice, f.Due, f.CleanAt = timeOf(l.Status.FirstNotice), timeOf(l.Status.Due), timeOf(l.Status.CleanTime)
	}
	return out
}

// phaseOf reads a loan's phase; one that was just created has none yet, and is emptying.
func phaseOf(l *v1alpha1.Loan) fleet.Phase {
	if l.Status.Phase == "" {
		return fleet.Emptying
	}
	return fleet.Phase(l.Status.Phase)
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// pins are the machines that the controller says it cannot empty.
func (w *World) pins() []model.Pin {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	var out []model.Pin
	for _, name := range []string{onlinePool, offlinePool} {
		if p := w.table.pools[name]; p != nil {
			for _, pin := range p.Status.Pinned {
				out = append(out, model.Pin{Node: pin.Node, By: pin.By})
			}
		}
	}
	return out
}

// noteWrites adds to the account what the controllers wrote since the last scrape. A counter that is smaller than before began again at zero.
func (w *World) noteWrites(ctx context.Context, now time.Time) error {
	samples, err := w.exporters.prom.Query(ctx, "springtide_api_writes_total", now)
	if err != nil {
		return fmt.Errorf("read the writes: %w", err)
	}
	if w.written == nil {
		w.written = map[string]float64{}
	}
	for _, s := range samples {
		key := s.Labels.String()
		was := w.written[key]
		if s.Value < was {
			was = 0
		}
		w.written[key] = s.Value
		w.truth.Wrote(s.Labels.Get("resource"), int(s.Value-was))
	}
	return nil
}

// forecastEvery is how often the controller's forecasts are recorded, to be scored by the true load.
const forecastEvery = 15 * time.Minute

// forecastStep is the grain of the forecasts that the controller exports.
const forecastStep = 5 * time.Minute

// noteForecasts takes down what the controller says of the load to come: the fleet's for those who watch, the services' to be scored.
func (w *World) noteForecasts(ctx context.Context, now time.Time) error {
	whole, err := w.exporters.prom.Query(ctx, `sum(springtide_pool_demand_cores{lead="1h",quantile="0.9"})`, now)
	if err != nil {
		return fmt.Errorf("read the forecast of the fleet: %w", err)
	}
	w.forecast = math.NaN()
	if len(whole) > 0 {
		w.forecast = whole[0].Value
	}
	if !now.Truncate(forecastEvery).Equal(now) {
		return nil
	}
	samples, err := w.exporters.prom.Query(ctx, "springtide_forecast_load", now)
	if err != nil {
		return fmt.Errorf("read the forecasts: %w", err)
	}
	type key struct{ service, lead string }
	found := map[key]*model.ForecastFacts{}
	var order []key
	for _, s := range samples { // sorted by labels: quantiles rise within a service and lead
		name := fleet.Name{Namespace: s.Labels.Get("exported_namespace"), Name: s.Labels.Get("service")}
		if name.Namespace == "" {
			name.Namespace = s.Labels.Get("namespace")
		}
		i, ok := w.serviceByName[name]
		lead, badLead := time.ParseDuration(s.Labels.Get("lead"))
		q, badQ := strconv.ParseFloat(s.Labels.Get("quantile"), 64)
		if !ok || badLead != nil || badQ != nil {
			continue
		}
		k := key{name.String(), s.Labels.Get("lead")}
		f := found[k]
		if f == nil {
			f = &model.ForecastFacts{Service: i, CPU: !w.fleet.Services[i].HTTP, For: now.Add(lead).Truncate(forecastStep), Step: forecastStep}
			found[k] = f
			order = append(order, k)
		}
		f.Quantiles, f.Values = append(f.Quantiles, q), append(f.Values, s.Value)
	}
	for _, k := range order {
		w.truth.Forecast(*found[k])
	}
	return nil
}

// requestsOf is what the scheduler counts for a pod.
func requestsOf(o *corev1.Pod) fleet.Resources {
	r := facts.Resources(helpers.PodRequests(o, helpers.PodResourcesOptions{}))
	r.Pods = 1
	return r
}
