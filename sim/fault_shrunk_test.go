package sim

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/sim/scenario"
)

// shrunken is a fleet whose source divides all by a hundred for an hour and a half.
func shrunken(seed uint64) *scenario.Built {
	return troubled(seed, 4, scenario.Faults{Quiet: config.Duration(time.Hour), List: []scenario.Fault{
		{Kind: scenario.MetricsShrunk, After: config.Duration(20 * time.Minute), For: config.Duration(90 * time.Minute), Share: 1, Factor: 0.01}}})
}

// A source that divides every signal by a hundred takes no replica; without the quarantine it does, and the judge finds it.
func TestAShrunkenSourceTakesNothing(t *testing.T) {
	long(t)
	for _, c := range []struct {
		name    string
		holdFor time.Duration
		broken  bool
	}{{"held", 0, false}, {"the quarantine is taken away", time.Nanosecond, true}} {
		t.Run(c.name, func(t *testing.T) {
			found := 0
			for seed := uint64(1); seed <= 4; seed++ {
				b := shrunken(seed)
				shared := Share(b)
				w := NewWorld(b, shared.rates)
				o := *whole.controller(b)
				o.HoldFor = c.holdFor
				err := runController(context.Background(), w, o, shared)
				var why *Broken
				switch {
				case errors.As(err, &why) && strings.Contains(why.What, "of the truth"):
					found++
				case err != nil:
					t.Fatal(err)
				}
			}
			if (found > 0) != c.broken {
				t.Errorf("%d of 4 seeds lose replicas to the source", found)
			}
		})
	}
}

// The same faults with a plan every 15 seconds, the controller's own pace.
func TestSeedsBreakNothingAtTheControllersPace(t *testing.T) {
	long(t)
	seeds := seedsPlayed()
	if os.Getenv("ALL_SEEDS") == "" {
		seeds = max(2, seeds/10) // each takes several times as long as one at a minute; `make full` plays all
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			b := troubled(seed, 4, scenario.Faults{Random: 6, Quiet: config.Duration(90 * time.Minute)})
			b.Tick = config.Duration(15 * time.Second)
			if _, err := Run(context.Background(), b, whole, Share(b)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Under a source that lies no service goes below what its true load asked for within the last minutes; what it had more, by a forecast or before the lie, may go, and so may
// what its tenant has beyond its quota.
func TestWhatALieTakes(t *testing.T) {
	for _, c := range []struct {
		name   string
		less   int32 // than what the true load asks for
		beyond bool
		breaks bool
	}{
		{"as many as the load asks for", 0, false, false},
		{"some more", -2, false, false},
		{"one less", 1, false, true},
		{"half of them", 4, false, true},
		{"half of them, which a quota takes back", 4, true, false},
	} {
		b := shrunken(1)
		w := NewWorld(b, Share(b).rates)
		w.faults = drawFaults(b)
		ctl := newController(w, controllerOptions{Lends: true}, nil)
		ctl.cancel = func() {}
		w.tick = w.faults[0].from + shrunkGrace
		s := &w.services[1]
		s.desired = w.asked(1) + 10
		if ctl.checkShrunk(); ctl.err != nil {
			t.Fatal(ctl.err)
		}
		w.tick++
		s.desired = w.asked(1) - c.less
		if c.beyond {
			ctl.judge.beyond = map[string]bool{s.Name.Namespace: true}
		}
		switch ctl.checkShrunk(); {
		case c.breaks:
			mustBreak(t, ctl, "of the truth")
		case ctl.err != nil:
			t.Errorf("%s: %v", c.name, ctl.err)
		}
	}
}

// A storm of retries begins with no load at all, by the truth: a source that begins to lie then takes nothing that anybody could see fall.
func TestNoLoadIsWorthNoFall(t *testing.T) {
	b := troubled(1, 4, scenario.Faults{Quiet: config.Duration(time.Hour), List: []scenario.Fault{
		{Kind: scenario.RetryStorm, After: config.Duration(time.Hour), For: config.Duration(time.Hour), Share: 1, Factor: 3}}})
	w := NewWorld(b, Share(b).rates)
	w.faults = drawFaults(b)
	storm := w.faults[0]
	for _, c := range []struct {
		name   string
		at     int32
		loaded bool
	}{
		{"before", storm.from - 1, true},
		{"as it begins", storm.from, false},
		{"before the load comes back", storm.from + (storm.to-storm.from)/2 - 1, false},
		{"as it comes back", storm.from + (storm.to-storm.from)/2, false},
		{"ten minutes after it came back", storm.from + (storm.to-storm.from)/2 + 10*perMinute, false},
		{"after that", storm.from + (storm.to-storm.from)/2 + 20*perMinute, true},
		{"at the end", storm.to - 1, true},
		{"afterwards", storm.to, true},
	} {
		for i := range w.services {
			if got := w.loaded(i, c.at); got != c.loaded {
				t.Errorf("%s: service %d has a load worth a fall: %t", c.name, i, got)
			}
		}
	}
}
