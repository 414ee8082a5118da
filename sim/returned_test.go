package sim

import (
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/sim/scenario"
)

// TestReturnToBoundPod: machines come home for pods that wait in a crowd that no forecast foresaw. By the bundled
// scheduler, which follows the share, the first of them is bound in the step of the return; by the cluster's own, which
// waits for the marks, a step or two later. Without one nothing counts.
func TestReturnToBoundPod(t *testing.T) {
	crowd := scenario.Faults{Quiet: config.Duration(time.Hour), List: []scenario.Fault{
		{Kind: scenario.FlashCrowd, After: config.Duration(time.Hour), For: config.Duration(30 * time.Minute), Share: 1, Factor: 3}}}
	for _, c := range []struct {
		name, scheduler string
		faults          scenario.Faults
		most            float64 // seconds
	}{
		{"bundled", v1alpha1.SchedulerName, crowd, tick.Seconds()},
		{"the cluster's own", "", crowd, 2 * tick.Seconds()},
		{"no crowd", v1alpha1.SchedulerName, scenario.Faults{}, 0},
	} {
		b := troubled(2, 3, c.faults)
		b.Fleet.Scheduler = c.scheduler
		b.Fleet.Lending.LowPercent, b.Fleet.Lending.HighPercent = 1, 3
		got := play(t, b, whole)
		if c.most == 0 {
			if got.Returns != 0 || got.ReturnToBoundP50Seconds != nil || got.ReturnToBoundP99Seconds != nil {
				t.Errorf("%s: %d parcels came home for pods that wait", c.name, got.Returns)
			}
			continue
		}
		if got.Returns == 0 || got.ReturnToBoundP99Seconds == nil {
			t.Errorf("%s: no parcel came home for pods that wait", c.name)
			continue
		}
		t.Logf("%s: %d returns, p50 %.0f s, p99 %.0f s", c.name, got.Returns, *got.ReturnToBoundP50Seconds, *got.ReturnToBoundP99Seconds)
		if *got.ReturnToBoundP99Seconds > c.most || *got.ReturnToBoundP50Seconds > *got.ReturnToBoundP99Seconds {
			t.Errorf("%s: p50 %.0f s, p99 %.0f s from the return to the first bound pod, want at most %.0f s", c.name, *got.ReturnToBoundP50Seconds, *got.ReturnToBoundP99Seconds, c.most)
		}
	}
}
