package kube

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// An API server that takes status writes and never answers them holds up a cycle for the bound of a write, and not for ever.
func TestStatusWritesEndInTime(t *testing.T) {
	var ended, steps atomic.Int32
	o := watch.Options{ActionWithin: 10 * time.Millisecond, Namespace: kubetest.Namespace, Identity: "test", Clock: &kubetest.Clock{Time: kubetest.Now}, Writers: 2,
		Alive: func() { steps.Add(1) }}
	o, err := o.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	w := &statusWriter{c: newReports(watch.New(nil, nil, o, nil), nil, nil, nil, nil, nil)}
	for range 5 {
		w.todo = append(w.todo, func(ctx context.Context) error {
			<-ctx.Done()
			ended.Add(1)
			return ctx.Err()
		})
	}
	err = w.flush(t.Context())
	if err == nil || ended.Load() != 5 || steps.Load() != 5 {
		t.Errorf("%d writes ended and %d steps were passed, want 5 of each; error %v", ended.Load(), steps.Load(), err)
	}
}

// Statuses that are not written when the time of all of them is over wait for the next cycle.
func TestAReportEndsInTime(t *testing.T) {
	w := newWorldWith(t, watch.Options{ReportWithin: time.Nanosecond}, kubetest.Service("cart"), kubetest.Pool("web", "Online", kubetest.InWeb))
	before := len(w.dyn.Actions())
	err := w.Report(t.Context(), &loop.Report{Snapshot: w.snapshot(t), Plan: &planner.Plan{}, Receipt: &loop.Receipt{}})
	if err == nil || !strings.Contains(err.Error(), "took longer than 1ns") {
		t.Errorf("the report ends with %v", err)
	}
	for _, a := range w.dyn.Actions()[before:] {
		if a.GetVerb() != "list" && a.GetVerb() != "watch" {
			t.Errorf("written after the time was over: %v", a)
		}
	}
}
