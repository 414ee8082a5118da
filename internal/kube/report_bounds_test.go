package kube

import (
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// Statuses that are not written when the time of all of them is over wait for the next cycle.
func TestAReportEndsInTime(t *testing.T) {
	w := newWorldWith(t, watch.Options{ReportWithin: time.Nanosecond}, kubetest.Service("cart"),
		kubetest.Pool("web", "Online", kubetest.InWeb))
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
