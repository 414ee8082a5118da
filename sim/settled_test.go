package sim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/sim/scenario"
)

// slowly is a fleet without faults whose pods take three quarters of an hour to start, and whose load rises so late that those that it asks for start
// when the run ends.
func slowly() *scenario.Built {
	b := tinyAfter(2*24*time.Hour+scenario.WarmUp, 20, 2, func(at time.Time) float64 {
		if at.Before(begin.Add(80 * time.Minute)) {
			return 20
		}
		return 36
	})
	b.Services[0].Spec.StartUp = config.Duration(45 * time.Minute)
	return b
}

// A pod that takes long to start gets that long: the end finds pods that start and a service that waits for them, and
// all is in order.
func TestASlowStartIsNoHang(t *testing.T) {
	starting, broken := 0, time.Duration(0)
	watched(t, slowly(), whole, func(w *World) {
		s := &w.services[0]
		starting, broken = s.starting, time.Duration(s.broken)*tick
	})
	if starting == 0 || broken <= settledWithin {
		t.Errorf("at the end %d pods start and the SLO has been broken for %s: the test cannot fail", starting, broken)
	}
}

// Pods that never become ready are no slow ones: their service is judged by the start-up that it says.
func TestASlowPodThatHangs(t *testing.T) {
	b := slowly()
	shared := Share(b)
	w := NewWorld(b, shared.rates)
	w.watch = func() { w.starting = agenda{} } // its readiness does not arrive
	w.services[0].Spec.StartUp = config.Duration(5 * time.Minute)
	err := runController(context.Background(), w, *whole.controller(b), shared)
	var broken *Broken
	if !errors.As(err, &broken) || !strings.Contains(broken.What, "has broken its SLO for") {
		t.Errorf("pods that never become ready: %v", err)
	}
}

// The bounds are the start-up beyond half an hour: a pod's own, as it was drawn, and of a service the longest that it may draw.
func TestTheBoundsOfAStart(t *testing.T) {
	const startUp = 45 * time.Minute
	for want, spoil := range map[string]func(c *controller, after int32){
		"has been starting for": func(c *controller, after int32) {
			p := &c.w.pods[c.w.services[0].pods[0]]
			p.ready, p.readyAt = false, c.w.tick-after
			p.bound = p.readyAt - ticks(startUp)
		},
		"has broken its SLO for": func(c *controller, after int32) {
			s := &c.w.services[0]
			s.Spec.StartUp, s.Spec.StartUpSpread = config.Duration(startUp), 0.2
			s.desired, s.broken = 1, ticks(time.Duration(float64(startUp)*1.8221))+after // e to the 0.6
		},
	} {
		c := accused(t, wholeLoan())
		spoil(c, ticks(settledWithin))
		if c.checkSettled(); c.err != nil {
			t.Errorf("too early: %v", c.err)
		}
		spoil(c, ticks(settledWithin)+1)
		c.checkSettled()
		mustBreak(t, c, want)
	}
}
