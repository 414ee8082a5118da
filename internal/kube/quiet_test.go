package kube

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
)

// Whole cycles of a quiet half hour, each observed, planned, carried out and reported: the loads sway by two per cent, and once the first cycles
// have marked machines and made promises nothing is written of loans and machines, and of services what a reader would call a change.
func TestQuietCyclesWriteNothing(t *testing.T) {
	const services, replicas, lent = 4, 3, 6
	objects := []metav1.Object{kubetest.Pool("web", "Online", kubetest.InWeb),
		kubetest.Pool("batch", "Offline", kubetest.InBatch), kubetest.Node("home", kubetest.InBatch)}
	for i := range services {
		name := fmt.Sprintf("svc%d", i)
		objects = append(objects, kubetest.Node(fmt.Sprintf("n%d", i), kubetest.InWeb),
			kubetest.Deployment(name, replicas), kubetest.ReplicaSet(name, 1), kubetest.Service(name))
		for k := range replicas {
			objects = append(objects, kubetest.Pod("shop", fmt.Sprintf("%s-%d", name, k), fmt.Sprintf("n%d", (i+k)%services),
				"ReplicaSet", name+"-1"))
		}
	}
	for i := range lent {
		n, l := fmt.Sprintf("lent-%d", i), fmt.Sprintf("l-%d", i)
		objects = append(objects, kubetest.Node(n, kubetest.InWeb), kubetest.Loan(l, n, "Lent", 1, 0),
			kubetest.NodeShare(n, l, "batch", "", 1, false, 0))
	}
	w := newWorld(t, objects...)
	w.rooms.Events = declared{record.NewFakeRecorder(1000), t}
	rec := w.recordWrites()
	history := map[fleet.ServiceID][]hpa.Decision{}
	cycle := func(minute int) {
		t.Helper()
		w.clock.Time = kubetest.Now.Add(time.Duration(minute) * time.Minute)
		s := w.snapshot(t)
		s.LeaderEpoch, s.WatchedSince = 7, kubetest.Now.Add(-time.Hour)
		in := planner.Input{Snapshot: s, Portraits: map[fleet.ServiceID]portrait.Portrait{}, Tides: map[fleet.ServiceID]forecast.Tide{},
			Live: map[fleet.ServiceID]hpa.Live{}, History: history, Options: planner.DefaultOptions()}
		for i := range s.Services {
			svc := &s.Services[i]
			each := 0.6 * svc.Request.CPU.Cores() * (1 + 0.02*float64((minute+i)%3-1))
			load := each * replicas
			in.Portraits[svc.ID] = portrait.Portrait{Version: portrait.Version, Service: svc.ID, Signal: portrait.CPU, Step: 5 * time.Minute, FastestFalls: portrait.Falls{1, 1, 1},
				Quality: portrait.Quality{Score: 1, Points: 4000 + minute, Needed: 576, LastSample: s.At}}
			tide := forecast.Tide{Service: svc.ID, Signal: portrait.CPU, Made: s.At, Start: s.At.Add(-5 * time.Minute), Step: 5 * time.Minute, Quantiles: []float64{0.5, 0.95},
				Trusted: true, Model: "flat", Paths: [][]float64{slices.Repeat([]float64{load}, 300), slices.Repeat([]float64{load}, 300)}}
			in.Tides[svc.ID] = tide
			live := hpa.Live{CPU: map[fleet.Name]fleet.Known[fleet.MilliCPU]{}, Load: fleet.KnownAt(load, s.At), LoadSignal: portrait.CPU}
			for _, p := range svc.Pods {
				live.CPU[p.Name] = fleet.KnownAt(fleet.FromCores(each), s.At)
			}
			in.Live[svc.ID] = live
		}
		plan := planner.Make(in)
		receipt, err := w.Apply(t.Context(), &plan)
		if err != nil {
			t.Fatal(err)
		}
		for i := range plan.Targets {
			history[plan.Targets[i].Service] = append(history[plan.Targets[i].Service], plan.Targets[i].Decision)
		}
		if err := w.Report(t.Context(), &loop.Report{Snapshot: s, Plan: &plan, Receipt: &receipt, Portraits: in.Portraits, Tides: in.Tides}); err != nil {
			t.Fatal(err)
		}
	}
	for minute := range 5 {
		cycle(minute)
	}
	first := rec.without("events")
	if len(first) < services+2 {
		t.Fatalf("the first cycles wrote %v only", first)
	}
	for minute := 5; minute < 35; minute++ {
		cycle(minute)
	}
	if quiet := rec.without("events")[len(first):]; len(quiet) > 0 {
		t.Errorf("thirty quiet cycles wrote %v\n(the first five: %v)", quiet, first)
	}
}
